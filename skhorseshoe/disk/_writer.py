"""Appends rows to a folder, from where the last conversion has stopped.

The files grow at their ends. From time to time they are brought to the disk, and then the manifest is replaced in one
step: at every moment it describes rows that are there. It calls itself complete at last.
"""

import os
import zlib
from contextlib import contextmanager
from itertools import pairwise, zip_longest

import numpy as np

from .._utils.atomic_files import damaged, open_to_write, put_note, strangers
from .._utils.lock import alone, lock_of
from ._folder import CODES, CURE, DTYPES, FORMAT, HEADER, MANIFEST, header, read_manifest, x_file

COMMIT = 2**26  # bytes of X, about, between two manifests
_WHAT = "conversion"
_NEW = {"rows": 0, "names": None, "classes": None, "position": None, "complete": False}


def begun(folder, what, dtype):
    """The manifest of a conversion that has written rows, or a new one; a ValueError if the folder holds others.

    what : of JSON types, all that the rows depend on. dtype : of X at first.
    """
    there = (folder / MANIFEST).exists()
    if not there and folder.exists() and strangers(folder, (MANIFEST, lock_of(_WHAT))):
        raise ValueError(f"{str(folder)!r} is not empty and holds no rows: give a new or an empty folder.")
    manifest = read_manifest(folder) if there else _NEW
    if not manifest["rows"]:
        return {"format": FORMAT, "what": what, "dtype": dtype, "blocks": [], **_NEW}
    was = manifest["what"]
    if different := [_difference(name, was.get(name), now) for name, now in what.items() if was.get(name) != now]:
        raise ValueError(
            f"{str(folder)!r} holds rows of another conversion: {', '.join(different)}. Give another folder, or remove "
            "it to start anew."
        )
    return manifest


def _difference(name, was, now):
    """In words; of two lists, of files for example, the first place where they differ."""
    if isinstance(was, list) and isinstance(now, list):
        was, now = next((old, new) for old, new in zip_longest(was, now) if old != new)
    return f"{name} (was {was}, is {now})"


@contextmanager
def writing(folder, what, dtype):
    """A ``Writer`` that goes on where the last one has stopped; a RuntimeError if another one is at work."""
    folder.mkdir(parents=True, exist_ok=True)
    with alone(folder, _WHAT):
        writer = Writer(folder, begun(folder, what, dtype))  # what another one has written meanwhile is there to stay
        try:
            yield writer
        finally:
            with writer.codes:
                writer.X.close()


class Writer:
    """Appends rows to the files of a folder.

    n : rows that are written. manifest : describes those that count.
    """

    def __init__(self, folder, manifest):
        self.folder, self.manifest, self.n = folder, manifest, manifest["rows"]
        self.since = 0  # bytes of X that no manifest describes yet
        self.sums = 0, 0  # their checksums, and those of the codes
        if not self.n:
            put_note(folder / MANIFEST, manifest)
        for dtype in DTYPES:
            if dtype != manifest["dtype"]:  # of a conversion that was killed while it made its rows wider
                (folder / x_file(dtype)).unlink(missing_ok=True)
        self.X, self.codes = self._open(x_file(manifest["dtype"]), self._row_bytes()), self._open(CODES, 1)

    def _row_bytes(self):
        return np.dtype(self.manifest["dtype"]).itemsize * len(self.manifest["names"] or [])

    def _open(self, name, row_bytes):
        """A file without what no manifest describes, at its end."""
        path, size = self.folder / name, HEADER + self.n * row_bytes
        there = path.exists()
        if self.n and (not there or path.stat().st_size < size):
            raise damaged(path, "it is too short", CURE)
        file = open_to_write(path, "r+b" if there else "w+b")
        file.truncate(size)
        file.seek(size)
        return file

    def check_same(self, X, codes):
        """Raise a ValueError unless these are the last rows that were written, which start at the position."""
        first = self.manifest["position"]["row"]
        self.X.seek(HEADER + first * self._row_bytes())
        self.codes.seek(HEADER + first)
        there = np.frombuffer(self.X.read(), self.manifest["dtype"]), np.frombuffer(self.codes.read(), np.uint8)
        if not (np.array_equal(there[0], X.ravel()) and np.array_equal(there[1], codes)):
            raise ValueError(
                f"The source is not that of the rows in {str(self.folder)!r}: those from row {first} on are others "
                "now. Remove the folder to start anew."
            )

    def append(self, X, codes, position, names, classes):
        """Add rows (m, p) and the codes (m,) of their labels, uint8.

        position : where the source has them. names : of the columns. classes : of the codes, or None.
        """
        self.manifest |= {"names": names, "classes": classes}
        if X.dtype.itemsize > 4 and self.manifest["dtype"] == "float32":
            self._widen()
        X = np.ascontiguousarray(X, self.manifest["dtype"])
        self.manifest["position"] = {"at": position, "row": self.n}
        self.X.write(X.data)
        self.codes.write(codes.data)
        self.sums = zlib.crc32(X.data, self.sums[0]), zlib.crc32(codes.data, self.sums[1])
        self.n += len(X)
        self.since += X.nbytes
        if self.since >= COMMIT:
            self.commit()

    def commit(self):
        """Bring the rows to the disk, then the manifest."""
        for file in (self.X, self.codes):
            file.flush()
            os.fsync(file.fileno())
        if self.n > self.manifest["rows"]:
            self.manifest["blocks"].append([self.n, *self.sums])
        self.manifest["rows"] = self.n
        put_note(self.folder / MANIFEST, self.manifest)
        self.since, self.sums = 0, (0, 0)

    def _widen(self):
        """Go on in float64, with all rows."""
        if self.n:
            self.commit()
        old, self.manifest["dtype"] = self.X, "float64"
        self.X = open_to_write(self.folder / x_file("float64"), "w+b")
        self.X.write(bytes(HEADER))
        old.seek(HEADER)
        for before, block in pairwise([[0], *self.manifest["blocks"]]):
            count = (block[0] - before[0]) * len(self.manifest["names"])
            wide = np.frombuffer(old.read(4 * count), np.float32).astype(np.float64)
            self.X.write(wide.data)
            block[1] = zlib.crc32(wide.data)
        if self.n:
            self.commit()
        old.close()
        os.unlink(old.name)

    def finish(self):
        """The last step: the files say their shapes, the manifest that it is complete."""
        self.commit()
        self.X.seek(0)
        self.X.write(header(self.manifest["dtype"], (self.n, len(self.manifest["names"]))))
        self.codes.seek(0)
        self.codes.write(header("uint8", (self.n,)))
        self.manifest["complete"] = True
        self.commit()
