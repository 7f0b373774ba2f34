"""An X that is larger than the memory of the GPU: it stays on the host, and every pass reads it from there."""

import cupy as cp
import numpy as np
from cupyx import empty_pinned

from ..._utils.memmap import WINDOW, ahead, cut

PART = 2**28  # bytes that are copied together, if a few blocks read as much
_BLOCKS = 4  # blocks that read a part, at least: one alone is slower than the copy


class HostRows(np.ndarray):
    """An X of the host that the GPU has no room for."""


class Conveyor:
    """Rows on their way to the GPU: through pinned memory into one of two buffers, while it computes on the other."""

    def __init__(self, dtype):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.dtype, self.slots, self.turn = dtype, [], 0

    def reserve(self, size):
        """Make buffers of so many numbers, unless they are as large."""
        if not self.slots or self.slots[0].pinned.size < size:
            self.stream.synchronize()
            self.slots = []
            self.slots = [_Slot(size, self.dtype) for _ in range(2)]

    def bring(self, rows):
        """Rows of the host on the GPU, for what is queued on the current stream until ``done`` is called."""
        self.turn = 1 - self.turn
        return self.slots[self.turn].load(rows, self.stream)

    def done(self):
        """What reads the rows brought last has been queued."""
        self.slots[self.turn].used.record()


class _Slot:
    """A buffer on the GPU, and one of the host on the way there."""

    def __init__(self, size, dtype):
        self.pinned, self.buffer = empty_pinned(size, dtype), cp.empty(size, dtype)
        self.copied, self.used = (cp.cuda.Event(disable_timing=True) for _ in range(2))
        self.used.record()  # the memory may be that of an array which the current stream has yet to read

    def load(self, rows, stream):
        self.copied.synchronize()  # what was here before has left the pinned buffer
        pinned = self.pinned[: rows.size].reshape(rows.shape)
        for some in _read(rows):
            pinned[some] = rows[some]
        stream.wait_event(self.used)
        self.buffer[: rows.size].set(self.pinned[: rows.size], stream=stream)
        self.copied.record(stream)
        cp.cuda.get_current_stream().wait_event(self.copied)
        return self.buffer[: rows.size].reshape(rows.shape)


class Streamed:
    """The rows of a ``HostRows`` as a pass reads them; all chains share what is brought."""

    def __init__(self, X):
        self.X = X.view(np.ndarray)
        self.shape, self.dtype = X.shape, X.dtype
        self.conveyor = Conveyor(X.dtype)

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        """Some rows, on the host."""
        return self.X[rows]

    def parts(self, edges):
        """((first block, end), first row, rows) of each part; block b reads the rows edges[b] to edges[b + 1].

        The caller queues what reads the rows before it asks for the next.
        """
        n_blocks = len(edges) - 1
        together = max(_BLOCKS, PART * n_blocks // max(1, self.X.nbytes))
        cuts = [(b, min(b + together, n_blocks)) for b in range(0, n_blocks, together)]
        n_rows = max(edges[end] - edges[b] for b, end in cuts)
        self.conveyor.reserve(n_rows * self.shape[1])
        for b, end in cuts:
            yield (b, end), edges[b], self.conveyor.bring(self.X[edges[b] : edges[end]])
            self.conveyor.done()


def brought(values):
    """An array of the host on the GPU, C-contiguous; one that is there already as it is.

    A window goes at a time: of the whole, CuPy would make a copy in pinned memory, rounded up to a power of two, and
    keep its memory. Of an ``np.memmap`` the process has a few pages at a time.
    """
    if isinstance(values, cp.ndarray):
        return values
    if values.nbytes <= WINDOW:
        return cp.ascontiguousarray(cp.asarray(values))
    out, stream = cp.empty(values.shape, values.dtype), cp.cuda.get_current_stream()
    for some in _read(values):
        window = np.ascontiguousarray(values[some])
        out[some].set(window)
        stream.synchronize()  # before the window is gone
    return out


def _read(X):
    """Slices of all rows; if they are in a file, it is read ahead, and its pages leave the process behind."""
    return ahead(X, cut(0, len(X), max(1, WINDOW * len(X) // max(1, X.nbytes))), len(X))


def room_for_parts(n_bytes, multiprocessors):
    """Bytes of the two buffers for an X of so many bytes that is read by rows; an upper bound."""
    return 2 * min(n_bytes, max(PART, 2 * _BLOCKS * n_bytes // multiprocessors))
