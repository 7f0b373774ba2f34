"""The folder of rows: X and the codes of y, row after row in binary, and a manifest that names the valid blocks.

Rows come in blocks, which the manifest names once they are on the disk. To go on, the last block is compared first.
"""

import errno
import os
from contextlib import contextmanager

import numpy as np
import pandas as pd

from .._utils import atomic_files as _files
from .._utils.lock import alone, lock_of
from .._utils.memmap import check_whole
from .._utils.memory import check_reading
from ._conversion import to_rows
from ._groups import CODES, LABELS, block_entries, read_labels
from ._sources import frames

DTYPES = "float16", "float32", "float64"
BYTES_TO_A_MANIFEST = 2**26  # approximate bytes of X between two manifests
_MANIFEST, _X, _CODES = "manifest.json", "X-{}.bin", "y.bin"
_CURE = "Remove its folder and convert again."
_TASK = "conversion"
_NEW = {"format": "skhorseshoe rows 3", "names": None, "classes": None, "complete": False}
_FULL = errno.ENOSPC, errno.EDQUOT, errno.EFBIG  # no room on the disk, for this user, or in a file of this size


def _manifest(folder):
    """The manifest, or None; a ValueError if it is damaged or foreign."""
    path = folder / _MANIFEST
    return _files.read_note(path, _NEW["format"], _CURE) if path.exists() else None


def open_rows(folder, check, groups):
    """X as a read-only memory map, in a frame if its columns have names, and y; with ``groups`` also the groups. check
    : whether to compare the checksums."""
    manifest = _manifest(folder)
    if manifest is None:
        raise ValueError(f"{str(folder)!r} holds no rows: skhorseshoe.disk.convert writes them.")
    blocks, names, classes = manifest["blocks"], manifest["names"], manifest["classes"]
    n = blocks[-1][1] if blocks else 0
    if not manifest["complete"]:
        raise ValueError(f"The conversion to {str(folder)!r} has stopped after {n} rows. The same call goes on.")
    paths = folder / _X.format(manifest["dtype"]), folder / _CODES
    X, codes = _map(paths[0], manifest["dtype"], (n, len(names))), _map(paths[1], "uint8", (n,))
    for start, stop, *sums in blocks if check else ():
        for path, array, expected in zip(paths, (X, codes), sums[:2], strict=True):
            check_whole(array)
            if _files.checksum(array[start:stop].data) != expected:
                raise _files.damaged(path, f"the checksum of rows {start} to {stop - 1} is wrong", _CURE)
    if classes and codes.max() >= len(classes):
        raise _files.damaged(paths[1], f"it has the code {codes.max()} of {len(classes)} labels", _CURE)
    X = X if names == [*range(len(names))] else pd.DataFrame(X, columns=names, copy=False)
    y = _decoded(paths[1], classes, codes) if classes else None
    has_groups = bool(blocks) and len(blocks[-1]) > 4
    labels = _groups(folder, blocks, check) if groups or (check and has_groups) else None
    return (X, y, labels) if groups else (X, y)


def _groups(folder, blocks, check):
    if len(blocks[-1]) == 4:
        raise ValueError(f"{str(folder)!r} holds no groups: convert(..., groups=...) writes them.")
    path, at = folder / CODES, 0
    labels, codes = read_labels(folder, blocks[-1][-1], _CURE), _map(path, "int32", (blocks[-1][1],))
    lines = _map(folder / LABELS, "uint8", (blocks[-1][-1],)) if check else None
    for start, stop, _, _, *expected in blocks if check else ():
        check_whole(codes)
        if block_entries(at, codes[start:stop], lines[at : expected[-1]]) != expected:
            raise _files.damaged(path, f"the checksum of rows {start} to {stop - 1} is wrong", _CURE)
        at = expected[-1]
    if codes.min() < 0 or codes.max() >= len(labels):
        raise _files.damaged(path, f"it has numbers of other groups than the {len(labels)} that there are", _CURE)
    return _decoded(path, labels, codes)


def _decoded(path, labels, codes):
    array = np.array(labels)
    labels = array if array.tolist() == labels else np.array(labels, object)  # which neither rounds nor cuts them
    check_reading(path, len(codes) * labels.itemsize)
    return labels[codes]


def _map(path, dtype, shape):
    with _files.naming(path, _CURE), _files.open_to_read(path) as file:
        return np.memmap(file, dtype, "r").reshape(shape)  # an error if the size is another


def begun(folder, conversion):
    """The manifest of a conversion, whose parameters are JSON; a ValueError if the folder holds something else."""
    manifest = _manifest(folder)
    if manifest is None and folder.is_dir() and _files.foreign(folder, (_MANIFEST, lock_of(_TASK))):
        raise ValueError(f"{str(folder)!r} is not empty and holds no rows: give a new or an empty folder.")
    if manifest is None or not manifest["blocks"]:
        return {**_NEW, "blocks": [], "what": conversion, "dtype": conversion["dtype"] or "float32"}
    if different := _files.differences(manifest["what"], conversion):
        raise ValueError(f"{str(folder)!r} holds rows of another conversion: {different}. Give another folder.")
    if manifest["complete"] and conversion["source"] is None:  # the source may be another one
        raise ValueError(f"{str(folder)!r} holds rows already: open them with load, or give another folder.")
    return {**manifest, "what": conversion}


def write(folder, conversion, items, needed, report):
    """Write the rows of a source that are not in the folder yet; a RuntimeError if another conversion is at work.

    items : of the source. needed : names of the columns to read, or None. report : function of the number of rows that
    are written.
    """
    _files.make(folder, f"folder={str(folder)!r}")
    with alone(folder, _TASK) as fd:
        if (manifest := begun(folder, conversion))["complete"]:  # ended meanwhile
            return
        if not (blocks := manifest["blocks"]):  # before any other file
            with _naming_if_full(folder / _MANIFEST):
                _files.put_note(folder / _MANIFEST, manifest, fd)
        last = blocks.pop() if blocks else None  # compared, and written again
        n, size, at = last[0] if last else 0, 0, 0
        if blocks and len(blocks[-1]) > 4:
            at = blocks[-1][-1]
        groups = {label: k for k, label in enumerate(read_labels(folder, at, _CURE) if at else ())}
        for X, codes, *of_groups in to_rows(frames(items, n, needed), manifest, n, groups):
            X = np.ascontiguousarray(X, np.promote_types(X.dtype, manifest["dtype"]))
            block = [n, n + len(X), _files.checksum(X.data), _files.checksum(codes.data)]
            block += block_entries(at, of_groups[0], of_groups[1]) if of_groups else []
            if last not in (None, block):
                raise ValueError(f"Rows or parts differ from row {n} on. Remove {str(folder)!r} to start anew.")
            if X.dtype != manifest["dtype"]:
                _widen(folder, manifest, fd)
            _put_rows(folder / _X.format(X.dtype), n * X.shape[1] * X.itemsize, X, fd)
            _put_rows(folder / _CODES, n, codes, fd)
            if of_groups:
                _put_rows(folder / CODES, 4 * n, of_groups[0], fd)
                _put_rows(folder / LABELS, at, of_groups[1], fd)
                at += len(of_groups[1])
            blocks.append(block)
            n, last, size = n + len(X), None, size + X.nbytes
            if size >= BYTES_TO_A_MANIFEST:
                _commit(folder, manifest, fd)
                size = 0
            report(n)
        if last or n == 0:
            raise ValueError(f"The source has no rows from row {n} on. If it is a generator, make it anew.")
        manifest["complete"] = True
        _commit(folder, manifest, fd)


def _widen(folder, manifest, fd):
    p = len(manifest["names"])
    for block in manifest["blocks"]:
        start, count = block[0], (block[1] - block[0]) * p
        with _files.open_to_read(folder / _X.format("float32")) as file:
            rows = np.fromfile(file, np.float32, count, offset=start * p * 4).astype(np.float64)
        _put_rows(folder / _X.format("float64"), start * p * 8, rows, fd)
        block[2] = _files.checksum(rows.data)
    manifest["dtype"] = "float64"


@contextmanager
def _naming_if_full(path):
    """A context whose errors for want of room name the file and the cure."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL:
            raise
        cure = "Free space, or lift the limit, then make the same call: it goes on"
        raise OSError(error.errno, f"{error.strerror}. {cure}", str(path)) from error


def _put_rows(path, at, rows, fd):
    """Write rows to a file from a byte on, and end the file after them. fd : of its folder."""
    with _naming_if_full(path), _files.open_to_write(path, "r+b" if at else "w+b", fd) as file:
        if file.seek(0, os.SEEK_END) < at:
            raise _files.damaged(path, "it is too short", _CURE)
        file.truncate(file.seek(at))
        file.write(rows.data)


def _commit(folder, manifest, fd):
    """Flush the rows to the disk, then write the manifest that names them."""
    of_groups = (folder / CODES, folder / LABELS) if len(manifest["blocks"][-1]) > 4 else ()
    for path in (folder / _X.format(manifest["dtype"]), folder / _CODES, *of_groups):
        with _naming_if_full(path), _files.open_to_write(path, "ab", fd) as file:
            os.fsync(file.fileno())
    with _naming_if_full(folder / _MANIFEST):
        _files.put_note(folder / _MANIFEST, manifest, fd)
    for dtype in {*DTYPES} - {manifest["dtype"]}:  # narrower rows, before ``_widen``
        _files.remove(folder / _X.format(dtype), fd)
