"""A folder from which a run that was killed goes on, and checks that the arrays in it can belong to the run.

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
import zipfile
from contextlib import suppress
from itertools import pairwise
from math import isqrt, prod

import numpy as np

from .._backends.limits import MOST_LEAPFROG_STEPS
from .._mcmc.burn_in import AUTO, MOST_EXTENSIONS, BurnIn, tuned_phases, untuned_phases
from .._mcmc.draws import STORED
from .._mcmc.gibbs import State
from .._mcmc.hmc import HmcState
from .._mcmc.hmc_prior_coordinates import PriorCoordinateState
from .._mcmc.hmc_prior_coordinates_burn_in import is_averaged
from .._utils import atomic_files as _files
from .._utils.lock import alone, lock_of
from .._utils.memmap import cut
from .._utils.memory import check_reading
from .._utils.warn import warn

_MANIFEST = "manifest.json"
_PREFIXES = "draws-", "state-", "manifest"
_LEFTOVERS = re.compile(r"(draws|state)-\d+\.npz(\.new)?|manifest\.json\.new")  # of killed runs, or superseded
_FORMAT = 5
_TASK = "fit"
_BYTES_AT_A_TIME = 2**20  # bytes of an array to read at a time
_CURE = "Nothing of it is used. To start anew, remove the folder or give another one."


def _are_files(files, kind):
    """Whether these are different names of files that a checkpoint writes, each with a checksum."""
    are_valid = all(re.fullmatch(rf"{kind}-\d{{1,18}}\.npz", file[0]) and type(file[1]) is str for file in files)
    return are_valid and len({file[0] for file in files}) == len(files)


def _are_draws(draws, manifest):
    ends = [0, *(end for _, _, _, end in draws)]
    ascend = all(_files.is_count(end, previous + 1) for previous, end in pairwise(ends))
    return ascend and all(_files.is_count(stride, 1) for _, _, stride, _ in draws) and _are_files(draws, "draws")


_FIELDS = {
    "what": lambda identity, manifest: type(identity) is dict,
    "state": lambda state, manifest: len(state) == 2 and _are_files([state], "state"),
    "draws": _are_draws,
}


class Checkpoint:
    """Reads and writes one folder, only within its context.

    identity : all that the draws depend on except the number of sweeps, by name; of JSON types. version : of the
    library.
    """

    def __init__(self, folder, seconds, identity, version):
        self.folder, self.seconds = _files.path_of(folder, "checkpoint"), seconds
        self.name = f"checkpoint={str(self.folder)!r}"
        self.identity = json.loads(json.dumps({"skhorseshoe": version, **identity}))
        self.files = []  # files of draws: name, checksum, stride, number of draws up to their end
        self.state = None  # name of the file of the state
        self.unsure = set()  # names in a manifest that may or may not have been written
        self.sizes = {}  # bytes of the files of draws that were written or read, by name
        self.written = time.monotonic()
        self.failed = False

    def __enter__(self):
        """Lock the folder; a ValueError if it cannot hold a checkpoint, a RuntimeError if another fit writes to it."""
        _files.make(self.folder, self.name)
        foreign_files = _files.foreign(self.folder, (*_PREFIXES, lock_of(_TASK)))
        if foreign_files and not (self.folder / _MANIFEST).exists():
            raise ValueError(f"{self.name} is not a checkpoint: it holds {foreign_files[:3]}. Give an empty folder.")
        self.lock = alone(self.folder, _TASK)
        self.fd = self.lock.__enter__()
        return self

    def __exit__(self, *error):
        return self.lock.__exit__(*error)

    def load(self, n_iter, check):
        """The arrays with which ``Run`` goes on, or None if the folder holds nothing yet.

        Raises a ValueError if it holds another run, more than ``n_iter`` sweeps, or files that are damaged or foreign.
        check : function of the arrays that raises an error if they cannot belong to the run.
        """
        path = self.folder / _MANIFEST
        if not path.exists():
            return None
        manifest = _files.read_note(path, _FORMAT, _FIELDS, _CURE)
        if different := _files.differences(manifest["what"], self.identity):
            raise ValueError(
                f"{self.name} holds another run: {different}. Give another folder, or the data and parameters that it "
                "was made with. In a search or cross-validation set checkpoint=None."
            )
        self.files = manifest["draws"]
        self.state, expected = manifest["state"]
        state = self._read(self.state, expected)
        blocks = [self._read(name, expected) for name, expected, _, _ in self.files]
        with _files.naming(self.folder / self.state, _CURE):
            ends = np.cumsum([block["coef"].shape[1] for block in blocks]).tolist()
            if [[int(state["draws/stride"]), end] for end in ends] != [file[2:] for file in self.files]:
                raise ValueError("the files of draws do not hold what the manifest says of them")
            draws = {name: _joined([block[name] for block in blocks]) for name in STORED if blocks}
            saved = _unflatten(state, draws)
            check(saved)
        if (n_done := int(state["n_iter"])) > n_iter:
            raise ValueError(
                f"{self.name} holds {n_done} sweeps, and n_iter asks for {n_iter} at most: set n_iter={n_done} or more."
            )
        return saved

    def _read(self, name, expected):
        path = self.folder / name
        with _files.naming(path, _CURE):
            with _files.open_to_read(path) as file:
                check_reading(path, os.fstat(file.fileno()).st_size)
                data = file.read()
            self.sizes[name] = len(data)
            if _files.checksum(data) != expected:
                raise ValueError("its checksum is wrong")
            return _unpacked(data)

    def is_due(self):
        return time.monotonic() - self.written >= self.seconds

    def write(self, run):
        """Write the run as it is. If the disk is full or gone, warn once: the run goes on."""
        try:
            self._write(run)
        except (OSError, ValueError) as error:  # a ValueError if a link has the name of a file
            with suppress(OSError, ValueError):  # the folder may be gone
                self._remove_others(self._names_on_disk() | self.unsure)
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

    def _names_on_disk(self):
        """The names in the manifest on disk; an error if it cannot be read."""
        path = self.folder / _MANIFEST
        return _files_of(_files.read_note(path, _FORMAT, _FIELDS, _CURE)) if path.exists() else set()

    def _remove_others(self, more=frozenset()):
        """Remove leftover files that neither this run nor ``more`` names."""
        named = {_MANIFEST, self.state, *(file[0] for file in self.files), *more}
        for name in os.listdir(self.folder if self.fd is None else self.fd):
            if name not in named and _LEFTOVERS.fullmatch(name):
                with suppress(OSError):
                    _files.remove(self.folder / name, self.fd)


def _files_of(manifest):
    """The files that a manifest names."""
    return {name for name, *_ in (manifest["state"], *manifest["draws"])}


def _joined(arrays):
    """Draws of one file after those of another; those of a single file as they are."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=1)


def _packed(arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getbuffer()


def _unpacked(data):
    """The arrays that ``_packed`` was given; an error if they hold no numbers or are compressed, and so may be huge."""
    arrays = {}
    with zipfile.ZipFile(io.BytesIO(data)) as packed:
        for item in packed.infolist():
            if item.compress_type != zipfile.ZIP_STORED or item.file_size > len(data):
                raise ValueError("it is compressed")
            with packed.open(item) as file:
                np.lib.format.read_magic(file)
                shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file)
                if dtype.kind not in "biuf":
                    raise ValueError(f"it holds {dtype}, no numbers")
                n_bytes, n_read = prod(shape) * dtype.itemsize, 0
                if n_bytes == item.file_size - file.tell():  # else it may be huge
                    values = np.empty(shape, dtype, order="F" if by_columns else "C")
                    of_bytes = values.reshape(-1, order="A").view(np.uint8)
                    n_read = sum(file.readinto(of_bytes[part]) for part in cut(0, n_bytes, _BYTES_AT_A_TIME))
                if n_read != n_bytes:
                    raise ValueError("it holds fewer or more numbers than it says")
            arrays[item.filename.removesuffix(".npy")] = values
    return arrays


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


# Shapes have one letter an axis: C chains, n rows, P columns of X, p of them shrunk, q coefficients, M = P + 2 moments,
# s = 1 + p widths, w = q + 1 coordinates; * is any number above 0, k any number.
_STATES = {"gibbs": State, "pxda": State, "hmc": HmcState, "prior": PriorCoordinateState}
_STATE = {"beta": "Cq", "tau_sq_inv": "C", "sweep": "", "lambda_sq_inv": "Cp", "nu_inv": "Cp", "xi_inv": "C"}
_STATE |= {"loglik": "C", "score": "Cq", "acceptance": "C", "tau_acceptance": "C", "exchanged": "C"}
_CHAINS = {  # what chains have beside their state
    "gibbs": {"points": "*q"},
    "pxda": {"points": "*q"},
    "hmc": {"settings": "5", "slow": "k", "accepted": "2", "every": ""},
    "prior": {"points": "*q", "dual": "4", "started": "", "accepted": "3", "centre": "w", "size": "w"},
}
_REFERENCE = {"reference_point": "q", "reference_score": "q", "reference_information": "qq", "spread": "s"}
_STAGE = {"length": "", "n": "", "step": "4", "tau_step": "4", "rates": "2"}
_SEEN = {"beta": "q", "score": "q", "points": "*q", "first": "q", "last": "Cq", "squares": "q", "lagged": "q"}
_SEEN_NOTHING = {"points": "00", **dict.fromkeys(("beta", "score", "first", "last", "squares", "lagged"), "")}
_DRAWS = {"coef": "C*P", "intercept": "C*", "global_scale": "C*", "acceptance": "C*"}
_COUNTS = {"seen": "", "stride": "", "next_kappa": "", "kappa_sum": "p", "kappa_weight": ""}
_MOMENTS = {"all_n_draws": "", "all_mean": "CM", "all_squares": "CM", "all_positive": "CM"}
_INTEGERS = {"n_iter", "key", "room", "sweep", "extensions", "slow", "every", "stage_length", "stage_n", "seen_n"}
_INTEGERS |= {"seen", "stride", "next_kappa", "kappa_weight", "all_n_draws"}
_INTEGERS |= {"group_seen_n", "group_stride", "group_all_n_draws"}
# Shapes with groups of rows, G groups and U draws of their effects: the state of chains, the map that burn-in learns,
# the figures from which it makes the next map, and the draws.
_GROUPS = {"group_effects": "GC", "group_scale": "C", "group_widths": "2", "group_steps": "3"}
_GROUP_KNOWN = {"group_known_beta": "Cq", "group_known_factor": "C", "group_known_grown": "Cq"}
_GROUP_MAP = {"along": "Gq", "point": "q", "precision": "G1", "scale": "", "reach": "", "ratio": "G4", "log_sd": "G4"}
_GROUP_MAP["power"] = "G1"
_GROUP_SEEN = {"n": "", "weight": "n", "log_scale": "", "square": ""}
_MEASURED = {"measured_beta": "Cq", "measured_effects": "GC", "measured_scale": "C"}  # from the first draw on
_GROUP_DRAWS = {"group_stride": "", "group_scale_draws": "CU", "group_effect_draws": "CUG", "group_all_n_draws": ""}
_GROUP_DRAWS |= {f"group_all_{name}": "CG" for name in ("mean", "squares", "positive")}
_FLOAT32 = "group_map_along", "group_effect_draws"
_POSITIVE = "size", "lambda_sq_inv", "tau_sq_inv", "nu_inv", "xi_inv", "global_scale", "spread"
_POSITIVE += "group_scale", "measured_scale", "group_map_scale", "group_map_reach"


def check_saved(saved, problem, settings):
    """Raise a ValueError if arrays from which ``Run`` would go on are missing, or do not agree with one another.

    saved : as ``Run.arrays`` gives it, with the draws. problem, settings : of ``Run``.
    """
    p, n_columns, q = problem.rows.columns.n_shrunk, problem.rows.shape[1], len(problem.fixed.anchor)
    sizes = {"C": settings.n_chains, "n": problem.rows.shape[0], "p": p, "P": n_columns, "q": q, "s": 1 + p, "w": q + 1}
    sizes |= {"M": n_columns + 2, "0": 0, "1": 1, "2": 2, "3": 3, "4": 4}
    if problem.rows.groups is not None:
        sizes["G"] = problem.rows.groups.n
    chains, draws = saved["chains"], saved["draws"]
    top = {name: value for name, value in saved.items() if name not in ("chains", "draws")}
    _check_arrays(top, {"n_iter": "", "target_ess": "", "key": "2", "room": ""}, sizes)
    _require("sweep" in chains and {"seen", "stride"} <= draws.keys(), "'sweep', 'seen' or 'stride' is missing")
    sweep, done, burn_in = int(chains["sweep"]), int(saved["n_iter"]), _burn_in(chains, settings)
    _require(done == max(0, sweep - burn_in.end) and sweep >= 0, f"it has made {sweep} sweeps, and {done} to keep")
    _check_chains(chains, sweep, burn_in, settings, sizes)
    _check_draws(draws, done, settings.max_draws or int(saved["room"]), settings, sizes)


def _burn_in(chains, settings):
    """``BurnIn`` as planned when the chains were saved."""
    if settings.burn_in == AUTO:
        _require("extensions" in chains, "'extensions' is missing")
        _require(int(chains["extensions"]) in range(MOST_EXTENSIONS + 1), "its burn-in is longer than any")
    return BurnIn(settings.burn_in, tuned_phases if settings.sampler == "hmc" else untuned_phases, chains)


def _check_chains(chains, sweep, burn_in, settings, sizes):
    kind, has_groups = settings.kind, "G" in sizes
    expected = {name: _STATE[name] for name in _STATES[kind]._fields} | _CHAINS[kind] | burn_in.shapes(sweep)
    expected |= _GROUPS if has_groups else {}
    if kind == "hmc":
        stages = burn_in.phases.ends
        expected |= {"H": "qq"} if sweep < stages[0] else _REFERENCE
        expected |= _named("group_map", _GROUP_MAP) if has_groups and sweep >= stages[0] else {}
        if stages[0] <= sweep < stages[-1]:
            start, stop = max(t for t in stages if t <= sweep), min(t for t in stages if t > sweep)
            # A phase learns in its second half, and has nothing to keep before that.
            n_seen = sweep - start - (stop - start) // 2
            seen = _SEEN if n_seen > 0 else _SEEN_NOTHING
            expected |= _named("stage", _STAGE | seen)
            if has_groups and n_seen > 1 and stop < stages[-1]:
                expected |= _named("group_seen", _GROUP_SEEN)
    elif has_groups and sweep - burn_in.end >= settings.thin:
        expected |= _MEASURED
    expected |= _GROUP_KNOWN if has_groups and sweep else {}
    if kind == "prior" and is_averaged(sweep, burn_in.phases.ends):
        expected |= {"seen_n": "", "seen_first": "w", "seen_total": "w", "seen_squares": "w"}
    _check_arrays(chains, expected, sizes)
    if kind == "hmc":
        step, n_steps, tau_moves, tau_step, apart = chains["settings"].tolist()
        counts_are_valid = n_steps in range(1, MOST_LEAPFROG_STEPS + 1) and tau_moves in range(5)
        is_valid = counts_are_valid and 0 < step < 4 and 0 < tau_step < 100
        is_valid = is_valid and apart in (0, 1)
        _require(is_valid and int(chains["every"]) > 0, "no burn-in chooses the steps that it has")
        _require(np.isin(chains["slow"], range(sizes["p"])).all(), "it names columns that there are not")
        if "stage_n" in chains:
            progress = int(chains["stage_length"]), int(chains["stage_n"])
            _require(progress == (stop - start, sweep - start), "its stage of burn-in is not that of its sweep")


def _named(prefix, shapes):
    """The shapes, with a prefix to the names."""
    return {f"{prefix}_{name}": shape for name, shape in shapes.items()}


def _check_draws(draws, done, limit, settings, sizes):
    seen, stride = int(draws["seen"]), int(draws["stride"])
    _require(seen == done // settings.thin, f"it has seen {seen} draws in {done} sweeps")
    _require(stride == 1 or (limit and stride > 1 and stride & (stride - 1) == 0), f"it keeps every {stride}-th draw")
    n = seen // stride
    _require(not limit or n <= limit, f"it has {n} draws, more than the {limit} that are kept")
    expected = _COUNTS | (_DRAWS if n else {}) | (_MOMENTS if stride > 1 else {})
    expected |= _GROUP_DRAWS if "G" in sizes else {}
    _check_arrays(draws, expected, sizes | ({"*": n} if n else {}), settings.draws_dtype)
    weight, heaviest = int(draws["kappa_weight"]), max(1, isqrt(seen) // 2)
    is_valid = seen <= weight < seen + heaviest and int(draws["next_kappa"]) == weight + 1
    _require(is_valid and (draws["kappa_sum"] >= 0).all(), "its mean shrinkage is not of these draws")
    _require(stride == 1 or int(draws["all_n_draws"]) == seen, "its moments are not those of its draws")


def _check_arrays(arrays, expected, sizes, dtype_of_coef="float64"):
    """Raise a ValueError unless the arrays have the names and shapes that are expected, and hold finite numbers."""
    for name in sorted(expected.keys() ^ arrays.keys()):
        _require(False, f"the array {name!r} is {'missing' if name in expected else 'not one of this run'}")
    for name, letters in expected.items():
        array = np.asarray(arrays[name])
        pairs = [*zip(letters, array.shape, strict=False)]
        fits = all(sizes.get(letter, size) == size and (letter != "*" or size) for letter, size in pairs)
        dtype = dtype_of_coef if name == "coef" else "float32" if name in _FLOAT32 else float
        fits &= array.dtype.kind in "iu" if name in _INTEGERS else array.dtype == dtype
        fits &= array.ndim == len(letters)
        _require(fits, f"the array {name!r} is {array.shape} of {array.dtype}, which does not fit this run")
        _require(np.isfinite(array).all(), f"the array {name!r} holds numbers that are not finite")
        _require(name not in _POSITIVE or (array > 0).all(), f"the array {name!r} holds numbers that are not above 0")


def _require(condition, message):
    if not condition:
        raise ValueError(message)
