"""A folder of rows: one file of X, one of the codes of y, and a manifest that says what of them counts.

The files grow at their ends. From time to time they are brought to the disk, and then the manifest is replaced in one
step: at every moment it describes rows that are there. It calls itself complete at last.
"""

import os
import zlib
from contextlib import ExitStack
from copy import deepcopy
from pathlib import Path

import numpy as np

from .._utils.atomic_files import damaged, open_to_write, put_note, strangers
from .._utils.lock import alone, lock_of
from ._folder import CODES, CURE, DTYPES, FORMAT, HEADER, MANIFEST, header, read_manifest, x_file

COMMIT = 2**26  # bytes of X, about, between two manifests
_WHAT = "conversion"
_COPIED = 2**24  # bytes
_NEW = {"rows": 0, "blocks": [], "names": None, "classes": None, "position": None, "complete": False}


class Store:
    """Appends rows to a folder, from where the last conversion has stopped.

    folder : path, made if there is none. what : of JSON types, all that the rows depend on. dtype : of X at first.
    """

    def __init__(self, folder, what, dtype):
        self.folder, self.what = Path(folder), what
        self._new = {"format": FORMAT, "what": what, "dtype": dtype, **_NEW}
        self._look()
        self.since = 0  # bytes of X that no manifest describes yet
        self.sums = 0, 0  # their checksums, and those of the codes

    def _look(self):
        """Read the manifest, of which a new one takes the place if it has no rows."""
        started = (self.folder / MANIFEST).exists()
        self.manifest = read_manifest(self.folder) if started else self._new
        if self.rows:
            self._compare(self.what)
            return
        if not started and self.folder.exists() and strangers(self.folder, (MANIFEST, lock_of(_WHAT))):
            raise ValueError(f"{str(self.folder)!r} is not empty and holds no rows: give a new or an empty folder.")
        self.manifest = deepcopy(self._new)

    @property
    def rows(self):
        """That the manifest describes; ``n`` are written."""
        return self.manifest["rows"]

    @property
    def dtype(self):
        return self.manifest["dtype"]

    def _compare(self, what):
        was = self.manifest["what"]
        different = [_difference(name, was.get(name), now) for name, now in what.items() if was.get(name) != now]
        if different:
            raise ValueError(
                f"{str(self.folder)!r} holds rows of another conversion: {', '.join(different)}. Give another folder, "
                "or remove it to start anew."
            )

    def __enter__(self):
        """Open the files, without what no manifest describes; a RuntimeError if someone else writes to the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(alone(self.folder, _WHAT))
            self._look()  # again: what another conversion has written meanwhile is there to stay
            if not self.rows:
                put_note(self.folder / MANIFEST, self.manifest)
            self.n = self.rows
            for dtype in DTYPES:
                if dtype != self.dtype:  # a conversion that was killed while it wrote its rows anew, in another one
                    (self.folder / x_file(dtype)).unlink(missing_ok=True)
            self.X = self._open(x_file(self.dtype))
            stack.callback(lambda: self.X.close())  # it may be another file by then
            self.codes = stack.enter_context(self._open(CODES))
            self._stack = stack.pop_all()
        return self

    def _open(self, name):
        path = self.folder / name
        size = HEADER + self.rows * (1 if name == CODES else self._row_bytes())
        there = path.exists()
        if self.rows and (not there or path.stat().st_size < size):
            raise damaged(path, "it is too short", CURE)
        file = open_to_write(path, "r+b" if there else "w+b")
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        return file

    def __exit__(self, *_):
        self._stack.close()

    def _row_bytes(self):
        return np.dtype(self.dtype).itemsize * len(self.manifest["names"]) if self.rows else 0

    def check_same(self, X, codes):
        """Raise a ValueError unless these are the last rows that were written, which start at the position."""
        self.X.flush()
        first = self.rows - len(X)
        there = np.memmap(self.X.name, self.dtype, "r", HEADER, (self.rows, X.shape[1]))[max(0, first) :]
        labels = np.fromfile(self.codes.name, np.uint8, offset=HEADER)[max(0, first) :]
        position = self.manifest["position"]["row"]
        if first != position or not (np.array_equal(there, X) and np.array_equal(labels, codes)):
            raise ValueError(
                f"The source is not that of the rows in {str(self.folder)!r}: those from row {position} on are "
                "others now. Remove the folder to start anew."
            )

    def append(self, X, codes, position, names, classes):
        """Add rows (m, p) and the codes (m,) of their labels, uint8.

        position : where the source has them. names : of the columns. classes : of the codes, or None.
        """
        self.manifest |= {"names": names, "classes": classes}
        if X.dtype == np.float64 and self.dtype == "float32":
            self._widen()
        X = np.ascontiguousarray(X, self.dtype)
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
        if self.n > self.rows:
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
        self.X.truncate(HEADER)
        self.X.seek(HEADER)
        old.seek(HEADER)
        start = 0
        for block in self.manifest["blocks"]:
            block[1] = 0
            left = (block[0] - start) * len(self.manifest["names"]) * 4
            start = block[0]
            while left:
                wide = np.frombuffer(old.read(min(left, _COPIED)), np.float32).astype(np.float64)
                self.X.write(wide.data)
                block[1] = zlib.crc32(wide.data, block[1])
                left -= wide.nbytes // 2
        if self.n:
            self.commit()
        old.close()
        os.unlink(old.name)

    def finish(self):
        """The last step: the files say their shapes, the manifest that it is complete."""
        self.commit()
        p = len(self.manifest["names"])
        self.X.seek(0)
        self.X.write(header(np.dtype(self.dtype), (self.n, p)))
        self.codes.seek(0)
        self.codes.write(header(np.dtype(np.uint8), (self.n,)))
        self.manifest["complete"] = True
        self.commit()


def _difference(name, was, now):
    """In words; of two lists, of files for example, only what is not in both."""
    if isinstance(was, list) and isinstance(now, list):
        olds, news = dict.fromkeys(map(str, was)), dict.fromkeys(map(str, now))
        was, now = [item for item in olds if item not in news], [item for item in news if item not in olds]
        if not was and not now:
            return f"{name} (the same, in another order or number)"
    return f"{name} (was {_few(was)}, is {_few(now)})"


def _few(what):
    if not isinstance(what, list):
        return what
    what = list(map(str, what))
    return ("; ".join(what[:3]) or "none of them") + (f" and {len(what) - 3} more" if len(what) > 3 else "")
