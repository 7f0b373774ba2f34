"""What ``passes`` does with rows in an array.

Arithmetic is done in X's own dtype; sums leave for float64 after at most ``_FLUSH`` rows, so that their error does not
grow with the number of rows.
"""

import numpy as np
from numba import types, uint64

from ..._utils.memmap import WINDOW, ahead, cut, is_on_disk
from .jit import device
from .passes import add_weighted_rows, for_rows, linear_predictor, scratch
from .simd import add_times, lane, lanes, load, prefetch, store

_SHORT_ROW = 2048  # bytes
_FLUSH = 256  # rows whose sum may be held in X's dtype
_TILE_BYTES = 256 * 1024  # half of a common second-level cache


def pieces(X, bounds, first, last):
    """The blocks first to last - 1 of rows as the kernels take them: (rows of X, their slice, bounds, their blocks).

    Rows in memory are one piece, in which the kernels find the blocks.
    """
    if not is_on_disk(X):
        return ((X, slice(0, len(X)), bounds[first : last + 1], slice(first, last)),)
    return _pieces_of_disk(X, bounds, first, last)


def _pieces_of_disk(X, bounds, first, last):
    """Several, of one block each; a block is cut where that does not change a bit of its sums. float16, which no kernel
    reads, is made float32."""
    dtype = np.float32 if X.dtype == np.float16 else X.dtype
    tile = tile_rows.py_func(X[:0].astype(dtype))
    most = _FLUSH // tile * tile  # between two flushes: passes over parts that end there have the bits of one
    step = most * max(1, WINDOW // (most * X.strides[0]))
    slices = (rows for block in range(first, last) for rows in cut(*map(int, bounds[block : block + 2]), step))
    for rows in ahead(X, slices, bounds[last]):
        block = np.searchsorted(bounds, rows.start, side="right") - 1
        x = X[rows].astype(dtype, copy=False)
        x.flags.writeable = False
        yield x, rows, np.array([0, len(x)]), slice(block, block + 1)


@device
def tile_rows(X):
    """Rows to a tile: as many as half a second-level cache holds, in fours, from 4 to 256."""
    rows = _TILE_BYTES // max(1, X.shape[1] * X.itemsize)
    return min(256, max(4, rows // 4 * 4))


@for_rows(scratch, types.Array)
def _scratch(X, coef):
    tile = tile_rows(X)
    return tile, _FLUSH // tile * tile, np.empty((coef.shape[1], tile), coef.dtype), np.zeros(coef.shape, X.dtype)


@for_rows(linear_predictor, types.Array)
def _linear_predictor(X, coef, start, rows, out):
    """Four rows share each load of a coefficient of four chains. Of a last few rows, one is there several times."""
    n_columns, x, flat, number = uint64(X.shape[1]), X.reshape(-1), coef.reshape(-1), coef.dtype.type
    width, ahead, last = uint64(coef.shape[1]), fetch_distance(X), start + rows - 1
    for c in range(0, coef.shape[1], 4):
        first = lanes(number(0), number(0), number(0), number(0))
        if coef.shape[0] > X.shape[1]:
            first = load(flat, n_columns * width + uint64(c))
        for r in range(0, rows, 4):
            if c == 0:
                fetch_two(X, start + r + ahead)
            i0, i1, i2, i3 = four_rows(start + r, last, n_columns)
            s0, s1, s2, s3 = first, first, first, first
            at = uint64(c)
            for j in range(n_columns):
                b = load(flat, at)
                s0 = add_times(s0, b, number(x[i0 + j]))
                s1 = add_times(s1, b, number(x[i1 + j]))
                s2 = add_times(s2, b, number(x[i2 + j]))
                s3 = add_times(s3, b, number(x[i3 + j]))
                at += width
            for i in range(4):
                out[c + i, r], out[c + i, r + 1] = lane(s0, i), lane(s1, i)
                out[c + i, r + 2], out[c + i, r + 3] = lane(s2, i), lane(s3, i)


@for_rows(add_weighted_rows, types.Array)
def _add_weighted_rows(X, weights, start, rows, partial, total):
    """Four rows share each load of a sum of four chains. Where the last few rows end, further weights are zero."""
    n_columns, x, flat, number = uint64(X.shape[1]), X.reshape(-1), partial.reshape(-1), partial.dtype.type
    width, ahead, last = uint64(partial.shape[1]), fetch_distance(X) + 2, start + rows - 1
    has_intercept, ones = partial.shape[0] > X.shape[1], (number(1), number(1), number(1), number(1))
    weights[:, rows : -(-rows // 4) * 4] = 0
    for c in range(0, partial.shape[1], 4):
        for r in range(0, rows, 4):
            if c == 0:
                fetch_two(X, start + r + ahead)
            i0, i1, i2, i3 = four_rows(start + r, last, n_columns)
            w0, w1 = four_chains(weights, c, r), four_chains(weights, c, r + 1)
            w = w0, w1, four_chains(weights, c, r + 2), four_chains(weights, c, r + 3)
            at = uint64(c)
            for j in range(n_columns):
                x_j = number(x[i0 + j]), number(x[i1 + j]), number(x[i2 + j]), number(x[i3 + j])
                add_four(flat, at, w, x_j)
                at += width
            if has_intercept:
                add_four(flat, at, w, ones)


@device(inline="always")
def add_four(flat, at, weights, numbers):
    """Add four times lanes, one after the other, to those at this place."""
    total = load(flat, at)
    for i in range(4):
        total = add_times(total, weights[i], numbers[i])
    store(total, flat, at)


@device(inline="always")
def four_rows(first, last, n_columns):
    """Where consecutive rows begin in memory, none beyond the last."""
    second, third, fourth = min(first + 1, last), min(first + 2, last), min(first + 3, last)
    return uint64(first) * n_columns, uint64(second) * n_columns, uint64(third) * n_columns, uint64(fourth) * n_columns


@device(inline="always")
def four_chains(weights, c, r):
    """The weights of a row."""
    return lanes(weights[c, r], weights[c + 1, r], weights[c + 2, r], weights[c + 3, r])


@device
def fetch_distance(X):
    """How many rows ahead to ask the memory for: a tile where rows are short, for the hardware does not follow four
    short rows at once; none where they are long, and it does."""
    return tile_rows(X) if X.shape[1] * X.itemsize <= _SHORT_ROW else X.shape[0]


@device(inline="always")
def fetch_two(X, row):
    """Prefetch two rows, if X has them: one loop over a tile asks for half of the next, the other for the rest."""
    if row + 2 <= X.shape[0]:
        for i in range(row, row + 2):
            for j in range(0, X.shape[1], 64 // X.itemsize):
                prefetch(X, i, j)
