"""What ``passes`` does with rows in an array.

Arithmetic is done in X's own dtype; sums leave for float64 after at most ``_FLUSH`` rows, so that their error does not
grow with the number of rows.
"""

import numpy as np
from numba import types

from ..._utils.memmap import WINDOW, ahead, cut, is_on_disk
from .jit import REORDER_SUMS, device
from .passes import add_weighted_rows, for_rows, linear_predictor, scratch
from .simd import prefetch

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
    return tile, _FLUSH // tile * tile, np.empty((coef.shape[0], tile), coef.dtype), np.zeros(coef.shape, X.dtype)


@for_rows(linear_predictor, types.Array, fastmath=REORDER_SUMS)
def _linear_predictor(X, coef, start, rows, out):
    """Four rows at a time share each load of a coefficient."""
    p = X.shape[1]
    n_chains = coef.shape[0]
    has_intercept = coef.shape[1] > p
    zero = coef.dtype.type(0)
    ahead = fetch_distance(X)
    r = 0
    while r + 4 <= rows:
        fetch_two(X, start + r + ahead)
        x0, x1, x2, x3 = X[start + r], X[start + r + 1], X[start + r + 2], X[start + r + 3]
        for c in range(n_chains):
            b = coef[c]
            s0 = b[p] if has_intercept else zero
            s1, s2, s3 = s0, s0, s0
            for j in range(p):
                s0 += b[j] * x0[j]
                s1 += b[j] * x1[j]
                s2 += b[j] * x2[j]
                s3 += b[j] * x3[j]
            out[c, r], out[c, r + 1], out[c, r + 2], out[c, r + 3] = s0, s1, s2, s3
        r += 4
    while r < rows:
        x0 = X[start + r]
        for c in range(n_chains):
            b = coef[c]
            s0 = b[p] if has_intercept else zero
            for j in range(p):
                s0 += b[j] * x0[j]
            out[c, r] = s0
        r += 1


@for_rows(add_weighted_rows, types.Array, fastmath=REORDER_SUMS)
def _add_weighted_rows(X, weights, start, rows, partial, total):
    """Four rows at a time share each load of a sum."""
    p = X.shape[1]
    n_chains = partial.shape[0]
    ahead = fetch_distance(X) + 2
    r = 0
    while r + 4 <= rows:
        fetch_two(X, start + r + ahead)
        x0, x1, x2, x3 = X[start + r], X[start + r + 1], X[start + r + 2], X[start + r + 3]
        for c in range(n_chains):
            a = partial[c]
            w0, w1, w2, w3 = weights[c, r], weights[c, r + 1], weights[c, r + 2], weights[c, r + 3]
            for j in range(p):
                a[j] += w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
        r += 4
    while r < rows:
        x0 = X[start + r]
        for c in range(n_chains):
            a, w0 = partial[c], weights[c, r]
            for j in range(p):
                a[j] += w0 * x0[j]
        r += 1
    if partial.shape[1] > p:
        for c in range(n_chains):
            for r in range(rows):
                partial[c, p] += weights[c, r]


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
