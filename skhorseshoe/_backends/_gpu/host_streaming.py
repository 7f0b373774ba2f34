"""An X that is larger than the memory of the GPU: it stays on the host, from where every pass reads it."""

import cupy as cp
import numpy as np
from cupyx import empty_pinned

from ..._utils import memmap
from ..._utils.memmap import cut, read_ahead

PART_BYTES = 2**28  # bytes of X that are copied at a time, if several blocks read them
_LEAST_BLOCKS_OF_A_PART = 4  # least number of blocks that read a part: a single block is slower than the copy


class HostRows(np.ndarray):
    """An X of the host that does not fit into the memory of the GPU."""


class _Slot:
    """A buffer of the GPU and a pinned one of the host."""

    def __init__(self, size, dtype):
        self.pinned, self.buffer = empty_pinned(size, dtype), cp.empty(size, dtype)
        self.copied, self.used = (cp.cuda.Event(disable_timing=True) for _ in range(2))
        self.used.record()  # the current stream may still read an array that had this memory

    def load(self, rows, stream):
        self.copied.synchronize()  # the last rows have left the pinned buffer
        pinned = self.pinned[: rows.size].reshape(rows.shape)
        for window in _windows(rows):
            pinned[window] = rows[window]
        stream.wait_event(self.used)
        self.buffer[: rows.size].set(self.pinned[: rows.size], stream=stream)
        self.copied.record(stream)
        cp.cuda.get_current_stream().wait_event(self.copied)
        return self.buffer[: rows.size].reshape(rows.shape)


class Streamed:
    """The rows of a ``HostRows`` as passes read them, part by part, each for all chains: through pinned memory into one
    of two buffers, while the GPU computes on the other."""

    def __init__(self, X):
        self.X = X.view(np.ndarray)
        self.shape, self.dtype = X.shape, X.dtype
        self.stream, self.slots = cp.cuda.Stream(non_blocking=True), []

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        """A slice of rows, on the host."""
        return self.X[rows]

    def parts(self, edges):
        """Yield ((first block, end), first row, rows) of each part; block b reads the rows edges[b] to edges[b + 1].

        The caller queues the kernels that read the rows before it asks for the next part.
        """
        n_blocks = len(edges) - 1
        per_part = max(_LEAST_BLOCKS_OF_A_PART, PART_BYTES * n_blocks // max(1, self.X.nbytes))
        cuts = [(b, min(b + per_part, n_blocks)) for b in range(0, n_blocks, per_part)]
        size = max(edges[end] - edges[b] for b, end in cuts) * self.shape[1]
        if not self.slots or self.slots[0].pinned.size < size:
            self.stream.synchronize()
            self.slots = []  # freed before the next ones are made
            self.slots = [_Slot(size, self.dtype) for _ in range(2)]
        for b, end in cuts:
            self.slots.reverse()
            yield (b, end), edges[b], self.slots[0].load(self.X[edges[b] : edges[end]], self.stream)
            self.slots[0].used.record()


def gpu_array(values):
    """An array of the host as one of the GPU, C-contiguous; an array of the GPU as it is.

    It is copied window by window: CuPy would copy the whole to pinned memory, rounded up to a power of two, and keep
    that memory; and of an ``np.memmap`` the process then has a few pages at a time.
    """
    if isinstance(values, cp.ndarray):
        return values
    if values.nbytes <= memmap.WINDOW:
        return cp.ascontiguousarray(cp.asarray(values))
    out, stream = cp.empty(values.shape, values.dtype), cp.cuda.get_current_stream()
    for window in _windows(values):
        copy = np.ascontiguousarray(values[window])
        out[window].set(copy)
        stream.synchronize()  # before the copy is freed
    return out


def _windows(X):
    """Slices of all rows; a file is read ahead, and pages that were read leave the process."""
    return read_ahead(X, cut(0, len(X), max(1, memmap.WINDOW * len(X) // max(1, X.nbytes))), len(X))


def buffer_bytes(n_bytes, multiprocessors):
    """An upper bound of the bytes of both buffers for an X of n_bytes."""
    return 2 * min(n_bytes, max(PART_BYTES, 2 * _LEAST_BLOCKS_OF_A_PART * n_bytes // multiprocessors))
