"""Rows in a file that is mapped into memory: read ahead of a pass, and released behind it.

The system reads a page of a mapped file when it is touched. A separate thread touches pages a window ahead, so the disk
is busy while the pass computes. Behind the pass the rows leave the process, so its memory does not grow with their
number; the system may still have them in its cache for the next pass.

If the file is cut while it is mapped, touching a lost page ends the process. So its size is checked before each read,
which takes a few microseconds.
"""

import mmap
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

WINDOW = 2**22  # bytes to read ahead, for each thread that computes
NUMBERS_AT_A_TIME = 2**20  # elements of X to read at a time
_ROWS_AT_A_TIME = 32  # rows to pick from all over a file before their pages leave the process
_SHARED = "joblib_memmapping_folder_"  # how joblib begins the name of the folder of arrays that its processes share
_PAGE = mmap.PAGESIZE
_LARGE_PAGE = 2**21  # bytes that the system may map at a touch; it would map all of one that is released in part again


def is_on_disk(X):
    """Whether X is an ``np.memmap``, or a view of one, but for what joblib hands to its processes: that is an array of
    the caller's, and draws must not depend on which process fits."""
    return _file_of(X) is not None


def cut(start, stop, step):
    """Slices of at most ``step`` rows, from start to stop."""
    return (slice(at, min(stop, at + step)) for at in range(start, stop, step))


def check_whole(X):
    """Raise a ValueError if X is on disk, and its file is shorter than when it was mapped."""
    if (file := _file_of(X)) is not None:
        _check_size(file, _mapping(file))


def _check_size(file, mapping):
    needed = file.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY + len(mapping)
    try:
        size = mapping.size()  # of the mapped file, although its name may be of another by now
    except OSError as error:  # the server of a network drive has lost it
        raise ValueError(f"The file {str(file.filename)!r}, which holds X, can no longer be read: {error}.") from error
    if size < needed:
        raise ValueError(
            f"The file {str(file.filename)!r}, which holds X, was cut to {size} bytes while it was in use, of the "
            f"{needed} that it had. Write it again, and open it anew."
        )


def read_ahead(X, slices, stop):
    """Yield the slices of rows; if X is on disk, read the rows after each slice meanwhile.

    slices : consecutive rows, in order. stop : the end of the last. A ValueError if the file has become shorter.
    """
    file = _file_of(X)
    if file is None:
        yield from slices
        return
    window, mapping = max(1, WINDOW // X.strides[0]), _mapping(file)
    coming = deque()  # windows that are being read: first row, and the future
    released = requested = None  # the rows before these are released, or requested
    with ThreadPoolExecutor(1, thread_name_prefix="skhorseshoe-read") as reader:
        for rows in slices:
            if released is None:
                released = requested = rows.start
            _check_size(file, mapping)
            while requested < min(stop, rows.stop + window):
                try:
                    coming.append((requested, reader.submit(_touch, X[requested : min(stop, requested + window)])))
                except RuntimeError:  # no thread can be started: the pass itself touches the rows
                    requested = stop
                requested += window
            while coming and coming[0][0] < rows.stop:
                coming.popleft()[1].result()
            yield rows
            if rows.stop - released >= window or rows.stop == stop:
                _leave(X[released : rows.stop], file, rows.stop == stop)
                released = rows.stop


def blocks(X, numbers=None):
    """Slices of all rows of X (n, p), dense or sparse, with at most so many numbers each; read ahead from a disk."""
    n, p = X.shape
    return read_ahead(X, cut(0, n, max(1, (numbers or NUMBERS_AT_A_TIME) // max(1, p))), n)


def taken(X, rows):
    """``X[rows]`` for ascending numbers; if X is on disk, few of its pages are in the process at a time."""
    file = _file_of(X)
    if file is None:
        return X[rows]
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)
    for block in cut(0, len(rows), _ROWS_AT_A_TIME):
        check_whole(X)
        out[block] = X[rows[block]]
        _leave(X[rows[block][0] :], file, last=True)  # also pages beyond them that the system has mapped
    return out


def _touch(rows):
    """Have the system read these rows, by touching one byte of each page."""
    rows.reshape(-1).view(np.uint8)[::_PAGE].max()


def _leave(rows, file, last):
    """Release the pages of these rows from the process, not from the system's cache. Nothing is lost: private pages,
    which may differ from the file, stay.

    last : whether no rows follow. If some do, the large page that they share with these stays.
    """
    if file.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapping = _mapping(file)
    origin, begin = np.frombuffer(mapping, np.uint8).ctypes.data, rows.ctypes.data
    page = _PAGE if last else _LARGE_PAGE
    end = (begin + rows.nbytes) // page * page - origin
    begin = max(0, begin // _LARGE_PAGE * _LARGE_PAGE - origin)
    if begin < end:
        with suppress(OSError):  # it is optional
            mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _mapping(file):
    """The ``mmap`` of an ``np.memmap``."""
    while not isinstance(file, mmap.mmap):
        file = file.base
    return file


def _file_of(X):
    """The ``np.memmap`` of rows on disk that X is or is a view of, or None."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    if X is None or not isinstance(getattr(X, "base", None), (mmap.mmap, np.memmap)):
        return None
    return None if os.path.basename(os.path.dirname(X.filename or "")).startswith(_SHARED) else X
