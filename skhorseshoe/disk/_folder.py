"""The folder of rows: X and the codes of y in NumPy's format, and a manifest that says what of them counts.

The files grow at their ends. From time to time they are brought to the disk, and then the manifest is replaced in one
step: at every moment it describes rows that are there, in blocks. It calls itself complete at last. Who goes on begins
with the last block, to compare it with what is there.
"""

import os
import zlib
from contextlib import contextmanager
from itertools import pairwise, zip_longest

import numpy as np
import pandas as pd

from .._utils.atomic_files import damaged, foreign, is_count, naming, open_to_read, open_to_write, put_note, read_note
from .._utils.lock import alone, lock_of

DTYPES = "float16", "float32", "float64"
COMMIT = 2**26  # bytes of X, about, between two manifests
_MANIFEST, _CODES = "manifest.json", "y.npy"
_HEADER = 128  # bytes, of NumPy's format: it has room for any number of rows
_CURE = "Remove its folder and convert again."
_WHAT = "conversion"
_NEW = {"format": "skhorseshoe rows 2", "rows": 0, "names": None, "classes": None, "complete": False}


def _x_file(dtype):
    return f"X-{dtype}.npy"


def _are_blocks(blocks, manifest):
    """Whether each has an end beyond that of the one before, and two checksums, up to the last row."""
    stops = [0, *(stop for stop, _, _ in blocks)]
    ascend = all(is_count(stop, before + 1) for before, stop in pairwise(stops))
    return ascend and stops[-1] == manifest["rows"] and all(is_count(crc) for block in blocks for crc in block[1:])


def _are_distinct(values):
    """Whether these are strings and numbers, each of them there once."""
    plain = (type(value) in (str, bool, int, float) and value == value for value in values)
    return type(values) is list and all(plain) and 0 < len(values) == len({*values})


_FIELDS = {
    "what": lambda what, manifest: type(what) is dict,
    "dtype": lambda dtype, manifest: dtype in DTYPES,
    "rows": lambda rows, manifest: is_count(rows),
    "blocks": _are_blocks,
    "names": lambda names, manifest: manifest["rows"] == 0 or _are_distinct(names),
    "classes": lambda classes, manifest: (
        classes in (None, []) or (_are_distinct(classes) and len({isinstance(label, str) for label in classes}) == 1)
    ),
    "complete": lambda complete, manifest: type(complete) is bool and (manifest["rows"] > 0 or not complete),
}


def _manifest(folder):
    """What the manifest says, None if there is none; a ValueError if it is damaged or foreign."""
    path = folder / _MANIFEST
    return read_note(path, _NEW["format"], _FIELDS, _CURE) if path.exists() else None


def open_rows(folder, check):
    """X as a read-only memory map, in a frame if its columns have names, and y; check : whether to compare the sums."""
    manifest = _manifest(folder)
    if manifest is None:
        raise ValueError(f"{str(folder)!r} holds no rows: skhorseshoe.disk.convert writes them.")
    if not manifest["complete"]:
        rows = manifest["rows"]
        raise ValueError(f"The conversion to {str(folder)!r} has stopped after {rows} rows. The same call goes on.")
    n, dtype, names, classes = (manifest[name] for name in ("rows", "dtype", "names", "classes"))
    paths = folder / _x_file(dtype), folder / _CODES
    X, codes = _map(paths[0], dtype, (n, len(names))), _map(paths[1], "uint8", (n,))
    start = 0
    for stop, *sums in manifest["blocks"] if check else ():
        for array, crc, path in zip((X, codes), sums, paths, strict=True):
            if zlib.crc32(array[start:stop].data) != crc:
                raise damaged(path, f"the checksum of rows {start} to {stop - 1} is wrong", _CURE)
        start = stop
    if classes is not None and codes.max() >= len(classes):
        raise damaged(paths[1], f"it has the code {codes.max()} of {len(classes)} labels", _CURE)
    X = X if names == [*range(len(names))] else pd.DataFrame(X, columns=names, copy=False)
    return X, None if classes is None else np.array(classes)[codes]


def _map(path, dtype, shape):
    with naming(path, _CURE), open_to_read(path) as file:
        array = np.lib.format.open_memmap(path, "r")
        is_whole = os.fstat(file.fileno()).st_size == array.offset + array.nbytes and array.flags.c_contiguous
        if not is_whole or (array.shape, array.dtype) != (shape, dtype):
            raise ValueError(f"it does not hold {shape} of {dtype} and nothing else")
        return array


def begun(folder, what):
    """The manifest of a conversion that has written rows, or a new one; a ValueError if the folder holds others.

    what : of JSON types, all that the rows depend on.
    """
    manifest = _manifest(folder)
    if manifest is None and folder.exists() and foreign(folder, (_MANIFEST, lock_of(_WHAT))):
        raise ValueError(f"{str(folder)!r} is not empty and holds no rows: give a new or an empty folder.")
    if manifest is None or not manifest["rows"]:
        return {**_NEW, "what": what, "dtype": what["dtype"] or "float32", "blocks": []}
    was = manifest["what"]
    if different := [_difference(name, was.get(name), now) for name, now in what.items() if was.get(name) != now]:
        raise ValueError(
            f"{str(folder)!r} holds rows of another conversion: {', '.join(different)}. Give another folder."
        )
    return manifest


def _difference(name, was, now):
    """In words; of two lists, of files for example, the first place where they differ."""
    if isinstance(was, list) and isinstance(now, list):
        was, now = next((old, new) for old, new in zip_longest(was, now) if old != new)
    return f"{name} (was {was}, is {now})"


@contextmanager
def writing(folder, what):
    """A ``Writer`` that goes on where the last one has stopped; a RuntimeError if another one is at work."""
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, _WHAT):
        writer = Writer(folder, begun(folder, what))  # what another one has written meanwhile is there to stay
        try:
            yield writer
        finally:
            with writer.codes:
                writer.X.close()


class Writer:
    """Appends rows to the files of a folder.

    n : the row that comes next. manifest : describes the rows that count.
    """

    def __init__(self, folder, manifest):
        self.folder, self.manifest = folder, manifest
        self.n = ([0, 0] + [stop for stop, _, _ in manifest["blocks"]])[-2]  # where the last block begins
        self.since = 0  # bytes of X that no manifest describes yet
        self.sums = 0, 0  # their checksums, and those of the codes
        if not manifest["rows"]:
            put_note(folder / _MANIFEST, manifest)
        for dtype in {*DTYPES} - {manifest["dtype"]}:  # of a conversion that was killed while it made its rows wider
            (folder / _x_file(dtype)).unlink(missing_ok=True)
        row_bytes = np.dtype(manifest["dtype"]).itemsize * len(manifest["names"] or [])
        self.X, self.codes = self._open(_x_file(manifest["dtype"]), row_bytes), self._open(_CODES, 1)

    def _open(self, name, row_bytes):
        """A file at row n, without what no manifest describes."""
        path, rows = self.folder / name, self.manifest["rows"]
        size = _HEADER + rows * row_bytes
        if rows and (not path.exists() or path.stat().st_size < size):
            raise damaged(path, "it is too short", _CURE)
        file = open_to_write(path, "r+b" if rows else "w+b")
        file.truncate(size)
        file.seek(_HEADER + self.n * row_bytes)
        return file

    def append(self, X, codes):
        """Write rows (m, p) and the codes (m,) of their labels, uint8, or compare them with those that are there."""
        if self.n < self.manifest["rows"]:
            self._check_same(X, codes)
        else:
            self._write(X, codes)
        self.n += len(X)
        if self.since >= COMMIT:
            self._commit()

    def _check_same(self, X, codes):
        dtype = np.dtype(self.manifest["dtype"])
        rows = np.frombuffer(self.X.read(X.size * dtype.itemsize), dtype)
        if not np.array_equal(rows, X.ravel()) or self.codes.read(len(codes)) != codes.tobytes():
            raise ValueError(
                f"The source is not that of the rows in {str(self.folder)!r}: those from row {self.n} on are others "
                "now, or come in other parts. Remove the folder to start anew."
            )

    def _write(self, X, codes):
        if X.dtype.itemsize > 4 and self.manifest["dtype"] == "float32":
            self._widen()
        X = np.ascontiguousarray(X, self.manifest["dtype"])
        self.X.write(X.data)
        self.codes.write(codes.data)
        self.sums = zlib.crc32(X.data, self.sums[0]), zlib.crc32(codes.data, self.sums[1])
        self.since += X.nbytes

    def _widen(self):
        """Go on in float64, with all rows."""
        self._commit()
        old, self.manifest["dtype"] = self.X, "float64"
        self.X = open_to_write(self.folder / _x_file("float64"), "w+b")
        for file in (old, self.X):
            file.seek(_HEADER)
        start = 0
        for block in self.manifest["blocks"]:
            narrow = old.read(4 * (block[0] - start) * len(self.manifest["names"]))
            wide = np.frombuffer(narrow, np.float32).astype(np.float64)
            self.X.write(wide.data)
            start, block[1] = block[0], zlib.crc32(wide.data)
        self._commit()
        old.close()
        os.unlink(old.name)

    def _commit(self):
        """Bring the rows to the disk, then the manifest."""
        for file in (self.X, self.codes):
            file.flush()
            os.fsync(file.fileno())
        if self.n > self.manifest["rows"]:
            self.manifest["blocks"].append([self.n, *self.sums])
        self.manifest["rows"] = self.n
        put_note(self.folder / _MANIFEST, self.manifest)
        self.since, self.sums = 0, (0, 0)

    def finish(self):
        """The last step: the files say their shapes, the manifest that it is complete."""
        if self.n < self.manifest["rows"]:
            raise ValueError(
                f"The source has ended before row {self.manifest['rows']}, where the last call stopped. Give the same "
                f"one anew (a generator cannot be read twice), or remove {str(self.folder)!r} to start anew."
            )
        if self.n == 0:
            raise ValueError("The source has no rows.")
        self._commit()
        X_shape = self.n, len(self.manifest["names"])
        for file, dtype, shape in ((self.X, self.manifest["dtype"], X_shape), (self.codes, "uint8", (self.n,))):
            file.seek(0)
            described = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, described)
        self.manifest["complete"] = True
        self._commit()
