"""Rows in a file that is mapped into memory: read ahead of the passes, and given back to the system behind them.

The system reads a mapped file where it is touched. Touched by a thread of its own, a window ahead, the disk is busy
while the pass computes. Behind the pass the rows leave the process, whose memory so does not grow with their number;
what the system keeps of the file, where it has room, is still there for the next pass.

Where the file is cut while it is mapped, to touch what it has lost ends the process. So its size is looked at, which
takes a few microseconds, before any of it is read.
"""

import mmap
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import numpy as np

WINDOW = 2**22  # bytes that are read ahead, for each thread that computes
_TOGETHER = 32  # rows that are picked from all over a file before their pages leave the process
_PAGE = mmap.PAGESIZE
_LARGE_PAGE = 2**21  # the system may map so much at a touch; of one that is given back in part it would map all again


def is_on_disk(X):
    """Whether X is an ``np.memmap``, or a view of one."""
    return _file_of(X) is not None


def cut(start, stop, step):
    """Slices of at most ``step`` rows, from start to stop."""
    return (slice(at, min(stop, at + step)) for at in range(start, stop, step))


def check_whole(X):
    """Raise a ValueError where X is on disk and its file is shorter than it was when it was mapped."""
    if (file := _file_of(X)) is not None:
        _check_size(file, _mapping(file))


def _check_size(file, mapping):
    needed = file.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY + len(mapping)
    try:
        size = mapping.size()  # of the file that is mapped, whatever has its name by now
    except OSError as error:  # the server of a network drive has lost it
        raise ValueError(f"The file {str(file.filename)!r}, which holds X, can no longer be read: {error}.") from error
    if size < needed:
        raise ValueError(
            f"The file {str(file.filename)!r}, which holds X, was cut to {size} bytes while it was in use, of the "
            f"{needed} that it had. Write it again, and open it anew."
        )


def ahead(X, slices, stop):
    """Yield the slices of rows; where X is on disk, read what comes after them meanwhile.

    slices : consecutive rows, in order. stop : the end of the last. A ValueError if the file has become shorter.
    """
    file = _file_of(X)
    if file is None:
        yield from slices
        return
    window, mapping = max(1, WINDOW // X.strides[0]), _mapping(file)
    coming = deque()  # the first row of a window, and the reading of it
    left = asked = None  # rows that have left the process, and rows that are asked for
    with ThreadPoolExecutor(1, thread_name_prefix="skhorseshoe-read") as reader:
        for rows in slices:
            if left is None:
                left = asked = rows.start
            _check_size(file, mapping)
            while asked < min(stop, rows.stop + window):
                try:
                    coming.append((asked, reader.submit(_touch, X[asked : min(stop, asked + window)])))
                except RuntimeError:  # no thread can be started: the pass itself has the system read them
                    asked = stop
                asked += window
            while coming and coming[0][0] < rows.stop:
                coming.popleft()[1].result()
            yield rows
            if rows.stop - left >= window or rows.stop == stop:
                _leave(X[left : rows.stop], file, rows.stop == stop)
                left = rows.stop


def taken(X, rows):
    """The rows of these numbers, which ascend; where X is on disk, few of its pages are in the process at a time."""
    file = _file_of(X)
    if file is None:
        return X[rows]
    out = np.empty((len(rows), *X.shape[1:]), X.dtype)
    for some in cut(0, len(rows), _TOGETHER):
        check_whole(X)
        out[some] = X[rows[some]]
        _leave(X[rows[some][0] :], file, last=True)  # also what the system has mapped beyond
    return out


def _touch(rows):
    """Have the system read these rows: one byte of each page is asked for."""
    rows.reshape(-1).view(np.uint8)[::_PAGE].max()


def _leave(rows, file, last):
    """Take the pages of these rows out of the process, not out of the system's memory. Nothing is lost: where a page
    of the file can differ from the file, being private, it stays.

    last : whether none follow. Else what is in one large page with them stays, until it is a part of those.
    """
    if file.mode == "c" or not hasattr(mmap, "MADV_DONTNEED"):
        return
    mapping = _mapping(file)
    origin, begin = np.frombuffer(mapping, np.uint8).ctypes.data, rows.ctypes.data
    page = _PAGE if last else _LARGE_PAGE
    end = (begin + rows.nbytes) // page * page - origin
    begin = max(0, begin // _LARGE_PAGE * _LARGE_PAGE - origin)
    if begin < end:
        with suppress(OSError):  # it was an offer
            mapping.madvise(mmap.MADV_DONTNEED, begin, end - begin)


def _mapping(file):
    """What the system maps, of an ``np.memmap``."""
    while not isinstance(file, mmap.mmap):
        file = file.base
    return file


def _file_of(X):
    """The ``np.memmap`` that X is or is a view of, or None."""
    while X is not None and not isinstance(X, np.memmap):
        X = getattr(X, "base", None)
    return X if X is not None and isinstance(getattr(X, "base", None), (mmap.mmap, np.memmap)) else None
