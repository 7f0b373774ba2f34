"""A folder from which a run that was killed goes on.

``manifest.json`` names the other files and their checksums. It is replaced in one step, after the files that it names
have reached the disk. So at every moment the folder holds one complete state of the run, the newest that was written.
If the system reports that this step failed, the old or the new manifest may be there: the files of both stay until one
is written without an error. A file that is written twice has the same bytes, so it agrees with both manifests.
"""

import io
import json
import os
import re
import time
from contextlib import suppress

import numpy as np

from .._mcmc.draws import STORED
from .._utils import atomic_files as _files
from .._utils.lock import alone, lock_of
from .._utils.memory import check_reading
from .._utils.warn import warn

_MANIFEST = "manifest.json"
_PREFIXES = "draws-", "state-", "manifest"
_LEFTOVERS = re.compile(r"(draws|state)-\d+\.npz(\.new)?|manifest\.json\.new")  # of killed runs, or superseded
_FORMAT = 7
_TASK = "fit"
_CURE = "Nothing of it is used. To start anew, remove the folder or give another one."


class Checkpoint:
    """Reads and writes one folder, only within its context.

    identity : all that the draws depend on except the number of sweeps, by name; of JSON types. version : of the
    library. only_read : whether nothing is written, and another fit may write meanwhile.
    """

    def __init__(self, folder, seconds, identity, version, only_read=False):
        self.folder, self.seconds = _files.path_of(folder, "checkpoint"), seconds
        self.name = f"checkpoint={str(self.folder)!r}"
        self.identity = json.loads(json.dumps({"skhorseshoe": version, **identity}))
        self.files = []  # files of draws: name, checksum, stride, number of draws up to their end
        self.state = None  # name of the file of the state
        self.unsure = set()  # names in a manifest that may or may not have been written
        self.sizes = {}  # bytes of the files of draws that were written or read, by name
        self.written = time.monotonic()
        self.failed, self.only_read, self.lock = False, only_read, None

    def __enter__(self):
        """Lock the folder; a ValueError if it cannot hold a checkpoint, a RuntimeError if another fit writes to it."""
        if self.only_read:
            if not (self.folder / _MANIFEST).exists():
                raise ValueError(f"{self.name} holds no draws to read: a fit saves every checkpoint_interval seconds.")
            return self
        _files.make(self.folder, self.name)
        foreign_files = _files.foreign(self.folder, (*_PREFIXES, lock_of(_TASK)))
        if foreign_files and not (self.folder / _MANIFEST).exists():
            raise ValueError(f"{self.name} is not a checkpoint: it holds {foreign_files[:3]}. Give an empty folder.")
        self.lock = alone(self.folder, _TASK)
        self.fd = self.lock.__enter__()
        return self

    def __exit__(self, *error):
        return None if self.lock is None else self.lock.__exit__(*error)

    def load(self, n_iter):
        """The arrays with which ``Run`` goes on, or None if the folder holds nothing yet.

        Raises a ValueError if it holds another run, more than ``n_iter`` sweeps, or files that are damaged or foreign.
        """
        while True:
            manifest = self._manifest()
            try:
                return self._load(n_iter)
            except ValueError:
                if not self.only_read or self._manifest() == manifest:
                    raise  # else the fit that writes has replaced the files that were to be read

    def _manifest(self):
        """What tells one manifest from another, which replaces its file; nothing is opened, which may be no file."""
        path = self.folder / _MANIFEST
        if not path.exists():
            return None
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size

    def _load(self, n_iter):
        path = self.folder / _MANIFEST
        if not path.exists():
            return None
        manifest = _files.read_note(path, _FORMAT, _CURE)
        if different := _files.differences(manifest["what"], self.identity):
            raise ValueError(
                f"{self.name} holds another run: {different}. Give another folder, or the data and parameters that it "
                "was made with. In a search or cross-validation set checkpoint=None."
            )
        self.files = manifest["draws"]
        self.state, expected = manifest["state"]
        state = self._read(self.state, expected)
        blocks = [self._read(name, expected) for name, expected, _, _ in self.files]
        draws = blocks[0] if len(blocks) == 1 else {}  # which are not copied
        if len(blocks) > 1:
            draws = {name: np.concatenate([block[name] for block in blocks], axis=1) for name in STORED}
        if (n_done := int(state["n_iter"])) > n_iter:
            raise ValueError(
                f"{self.name} holds {n_done} sweeps, and n_iter asks for {n_iter} at most: set n_iter={n_done} or more."
            )
        return _unflatten(state, draws)

    def _read(self, name, expected):
        path = self.folder / name
        with _files.naming(path, _CURE):
            with _files.open_to_read(path) as file:
                check_reading(path, os.fstat(file.fileno()).st_size)
                data = file.read()
            self.sizes[name] = len(data)
            if _files.checksum(data) != expected:
                raise ValueError("its checksum is wrong")
            with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
                return dict(arrays)

    def is_due(self):
        return time.monotonic() - self.written >= self.seconds

    def write(self, run):
        """Write the run as it is. If the disk is full or gone, warn once: the run goes on."""
        if self.only_read:
            return
        try:
            self._write(run)
        except (OSError, ValueError) as error:  # a ValueError if a link has the name of a file
            if isinstance(error, OSError) and _files.is_foreign(error):
                raise
            with suppress(OSError, ValueError):  # the folder may be gone
                path = self.folder / _MANIFEST
                on_disk = _files_of(_files.read_note(path, _FORMAT, _CURE)) if path.exists() else set()
                self._remove_others(on_disk | self.unsure)
            if not self.failed:
                warn(
                    f"The checkpoint in {str(self.folder)!r} could not be written: {str(error).rstrip('.')}. The fit "
                    "goes on, with its draws in memory, and tries again later."
                )
            self.failed = True
        self.written = time.monotonic()

    def _write(self, run):
        n, stride, sweep = run.draws.n, run.draws.stride, run.chains.state.sweep
        if self.state == f"state-{sweep}.npz":  # nothing is new
            return
        with os.scandir(self.folder if self.fd is None else self.fd) as entries:
            sizes = {e.name: e.stat(follow_symlinks=False).st_size for e in entries if e.name in self.sizes}
        files, done = [], 0
        for file in self.files:
            name, _, file_stride, end = file
            if file_stride == stride:  # the draws in other files have been given up
                is_complete = sizes.get(name) == self.sizes[name]
                files.append(file if is_complete else self._put_draws(name, run.draws, done, end))
                done = end
        if n > done:
            files.append(self._put_draws(f"draws-{sweep}.npz", run.draws, done, n))
        name = f"state-{sweep}.npz"
        state = [name, _files.put(self.folder / name, _packed(_flatten(run.arrays())), self.fd)]
        body = {"format": _FORMAT, "what": self.identity, "state": state, "draws": files}
        _files.put_note(self.folder / _MANIFEST, body, self.fd, lambda: setattr(self, "unsure", _files_of(body)))
        self.files, self.state, self.unsure = files, name, set()
        self._remove_others()

    def _put_draws(self, name, draws, start, stop):
        """Write these draws; returns their entry in the manifest."""
        data = _packed({array: getattr(draws, array)[:, start:stop] for array in STORED})
        self.sizes[name] = len(data)
        return [name, _files.put(self.folder / name, data, self.fd), draws.stride, stop]

    def _remove_others(self, more=frozenset()):
        """Remove leftover files that neither this run nor ``more`` names."""
        named = {_MANIFEST, self.state, *(file[0] for file in self.files), *more}
        for name in os.listdir(self.folder if self.fd is None else self.fd):
            if name not in named and _LEFTOVERS.fullmatch(name):
                with suppress(OSError):
                    _files.remove(self.folder / name, self.fd)


def _files_of(manifest):
    return {name for name, *_ in (manifest["state"], *manifest["draws"])}


def _packed(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getbuffer()


def _flatten(nested):
    flat = {}
    for name, value in nested.items():
        flat |= {f"{name}/{key}": array for key, array in value.items()} if isinstance(value, dict) else {name: value}
    return flat


def _unflatten(flat, draws):
    nested = {"draws": dict(draws)}
    for path, value in flat.items():
        group, _, name = path.rpartition("/")
        (nested.setdefault(group, {}) if group else nested)[name] = value
    return nested
