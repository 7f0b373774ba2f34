"""An X that is larger than the memory of the GPU: it stays on the host, and every pass reads it from there."""

import cupy as cp
import numpy as np
from cupyx import empty_pinned

from ..._utils.memmap import WINDOW, ahead, cut

PART = 2**28  # bytes that are copied together, if a few blocks read as much
_ALIGNED = 256  # bytes
_BLOCKS = 4  # blocks that read a part, at least: one alone is slower than the copy


class HostRows(np.ndarray):
    """An X of the host that the GPU has no room for."""


class Conveyor:
    """Arrays on their way to the GPU: through pinned memory into one of two buffers, while it computes on the other."""

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.slots = []
        self.turn = 0

    def reserve(self, n_bytes):
        """Make buffers of so many bytes, unless they are as large."""
        if not self.slots or len(self.slots[0].pinned) < n_bytes:
            self.stream.synchronize()
            self.slots = []
            self.slots = [_Slot(n_bytes) for _ in range(2)]

    def bring(self, layout, write):
        """Arrays on the GPU, for what is queued on the current stream from now on and until ``done`` is called.

        layout : the shape and dtype of each. write : fills such arrays of the host.
        """
        size = room_of(layout)
        self.reserve(size)
        self.turn = 1 - self.turn
        return self.slots[self.turn].load(layout, size, write, self.stream)

    def done(self):
        """What reads the arrays brought last has been queued."""
        self.slots[self.turn].used.record()


class _Slot:
    """A buffer on the GPU, and one of the host on the way there."""

    def __init__(self, n_bytes):
        self.pinned, self.buffer = empty_pinned(n_bytes, np.uint8), cp.empty(n_bytes, cp.uint8)
        self.copied, self.used = (cp.cuda.Event(disable_timing=True) for _ in range(2))
        self.used.record()  # the memory may be that of an array which the current stream has yet to read

    def load(self, layout, size, write, stream):
        self.copied.synchronize()  # what was here before has left the pinned buffer
        write(*_arrays(self.pinned, layout))
        stream.wait_event(self.used)
        self.buffer[:size].set(self.pinned[:size], stream=stream)
        self.copied.record(stream)
        cp.cuda.get_current_stream().wait_event(self.copied)
        return _arrays(self.buffer, layout)


def room_of(layout):
    """Bytes of a buffer for arrays of these shapes and dtypes."""
    return sum(_aligned(*array) for array in layout)


def _aligned(shape, dtype):
    return -(-int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize // _ALIGNED) * _ALIGNED


def _arrays(memory, layout):
    """Arrays of these shapes and dtypes, one after the other in a buffer."""
    out, at = [], 0
    for shape, dtype in layout:
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        out.append(memory[at : at + size].view(dtype).reshape(shape))
        at += _aligned(shape, dtype)
    return out


class Streamed:
    """The rows of a ``HostRows`` as a pass reads them; all chains share what is brought."""

    def __init__(self, X):
        self.X = X.view(np.ndarray)
        self.shape, self.dtype = X.shape, X.dtype
        self.conveyor = Conveyor()

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
        self.conveyor.reserve(room_of([((n_rows, self.shape[1]), self.dtype)]))
        for b, end in cuts:
            yield (b, end), edges[b], self._bring(self.X[edges[b] : edges[end]])
            self.conveyor.done()

    def _bring(self, rows):
        def write(pinned):
            for some in _read(rows):
                pinned[some] = rows[some]

        (part,) = self.conveyor.bring([(rows.shape, self.dtype)], write)
        return part


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
