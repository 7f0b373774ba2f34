"""Kernels that read the rows of X, tile by tile, each row once.

A tile of rows stays in cache while everything that is asked of it is computed: the linear predictors of all
chains, what is drawn or derived from them, and the sums over rows. X is an array or, for sparse rows, ``Csr``; the
three operations that see the difference are here for an array, in ``sparse`` for the other. For an array, arithmetic is
done in X's own dtype; sums leave for float64 after at most ``_FLUSH`` rows, so that their error does not grow with the
number of rows.

bounds : (n_blocks + 1,) int64; block b is rows bounds[b] to bounds[b + 1] - 1.
coef : coefficients of all chains in X's dtype, q = p or p + 1 of each, the last of which is then the intercept. As the
operations want them: (n_chains, q), or (q, width) for sparse rows; what is summed is of the same shape.
"""

import numpy as np
from numba import types, uint32
from numba.extending import overload

from ..._utils.memmap import WINDOW, ahead, cut, is_on_disk
from .jit import COMPILED, REORDER_SUMS, device, kernel
from .normal_tail import cdf_parts, mills_ratio, sum_log_cdf, sum_logs
from .simd import prefetch
from .truncated_normal import truncate_tile

_SHORT_ROW = 2048  # bytes
_FLUSH = 256  # rows whose sum may be held in X's dtype
_TILE_BYTES = 256 * 1024  # half of a common second-level cache


def scratch(X, coef):
    """Rows to a tile; rows of which ``partial`` may hold the sum, beside a tile; room for a number of each row of a
    tile and each column or row of ``coef``; and ``partial``, zeros of the shape of ``coef``, or nothing if not used."""


def linear_predictor(X, coef, start, rows, out):
    """out[c, r] = (x_(start + r), 1) . coefficients of c, for a tile of rows."""


def add_weighted_rows(X, weights, start, rows, partial, total):
    """Add sum_r weights[c, r] (x_(start + r), 1) for each c to ``partial`` or, where that is not used, to ``total``."""


def for_rows(operation, kind, **options):
    """Have a function do one of the three for an X whose type Numba calls ``kind``."""

    def register(function):
        def chosen(X, *rest):
            return function if isinstance(X, kind) else None

        overload(operation, jit_options={**COMPILED, **options}, strict=False)(chosen)
        return function

    return register


@kernel
def latent_pass(X, y, coef, bounds, first_row, sweep, key0, key1, sums, squares):
    """Draw z_i ~ N(x_i beta, 1) truncated to the side of y_i, and add up z_i x_i over blocks of rows.

    y : (n,) uint8, 0 or 1. first_row : the number of row 0 among those whose random numbers these are.
    sums : float64, for each block an array like ``coef``, to which X'z (and 1'z) is added.
    squares : (n_blocks, n_chains) float64, to which z'z is added.
    """
    tile, most, z, partial = scratch(X, coef)
    words, work = np.empty((4, tile), np.uint32), np.empty((5, tile), np.float32)
    proposal = np.empty((2, tile), coef.dtype)
    for block in range(squares.shape[0]):
        held = 0
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, coef, start, rows, z)
            side = y[start : start + rows]
            for c in range(squares.shape[1]):
                mean = z[c, :rows]
                truncate_tile(mean, side, first_row + start, c, uint32(sweep), key0, key1, words, work, proposal)
                squares[block, c] += sum_of_squares(mean)
            add_weighted_rows(X, z, start, rows, partial, sums[block])
            held += rows
            if held > most or start + rows == bounds[block + 1]:
                flush(partial, sums[block])
                held = 0


@kernel
def score_pass(X, y, row_weight, coef, bounds, sums, logliks):
    """The probit log-likelihood sum_i w_i log Phi(s_i x_i beta), s_i = 1 or -1, and its gradient, over blocks of rows.

    As ``latent_pass``, but nothing is drawn. row_weight : (n,) float64 w, or (0,) where each w_i is 1.
    logliks : (n_blocks, n_chains) float64, added to like sums.
    """
    tile, most, weight, partial = scratch(X, coef)
    work = np.empty((5, tile))
    for block in range(logliks.shape[0]):
        held = 0
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, coef, start, rows, weight)
            side, own_weight = y[start : start + rows], row_weight[start : start + rows]
            for c in range(logliks.shape[1]):
                logliks[block, c] += score_tile(weight[c, :rows], side, own_weight, work)
            add_weighted_rows(X, weight, start, rows, partial, sums[block])
            held += rows
            if held > most or start + rows == bounds[block + 1]:
                flush(partial, sums[block])
                held = 0


@kernel
def line_pass(X, y, row_weight, both, steps, bounds, logliks):
    """The log-likelihoods of ``score_pass`` at beta + step d, over blocks of rows.

    both : like ``coef``, but float64, for 2 n_chains chains: beta and then the direction d of each. All is computed in
    float64: what rounding decides would be other draws for rows that lie elsewhere. steps : (n_chains, k) float64.
    logliks : (n_blocks, n_chains, k) float64, to which is added.
    """
    tile, _, eta, _ = scratch(X, both)
    work = np.empty((4, tile))
    for block in range(logliks.shape[0]):
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, both, start, rows, eta)
            line_tile(eta, y[start : start + rows], row_weight[start : start + rows], steps, work, logliks[block])


@device
def line_tile(eta, y, row_weight, steps, work, logliks):
    """logliks (n_chains, k) += sum w log Phi(s (eta + step change)); eta : (2 n_chains, at least rows), eta and its
    changes. work : (4, at least rows) float64."""
    rows, n_chains = y.shape[0], steps.shape[0]
    t = work[0, :rows]
    for c in range(n_chains):
        for k in range(steps.shape[1]):
            for r in range(rows):
                value = eta[c, r] + steps[c, k] * eta[n_chains + c, r]
                t[r] = value if y[r] else -value
            logliks[c, k] += sum_log_cdf(t, row_weight, work[1, :rows], work[2, :rows], work[3, :rows])


@device(fastmath=REORDER_SUMS)
def sum_of_squares(z):
    total = 0.0
    for r in range(z.shape[0]):
        total += np.float64(z[r]) * np.float64(z[r])
    return total


@device
def score_tile(eta, y, row_weight, work):
    """Replace eta by w d log Phi(s eta) / d eta; returns sum w log Phi(s eta). work : (5, at least rows) float64."""
    rows = eta.shape[0]
    t, squares, e, v, ratio = work[0, :rows], work[1, :rows], work[2, :rows], work[3, :rows], work[4, :rows]
    for r in range(rows):
        t[r] = eta[r] if y[r] else -eta[r]
    cdf_parts(t, squares, e, v)
    mills_ratio(t, e, v, ratio)
    if row_weight.shape[0]:
        for r in range(rows):
            ratio[r] *= row_weight[r]
    for r in range(rows):
        eta[r] = ratio[r] if y[r] else -ratio[r]
    return sum_logs(row_weight, squares, v)


@device
def flush(partial, total):
    """total += partial (in float64); partial = 0."""
    for c in range(partial.shape[0]):
        for j in range(partial.shape[1]):
            total[c, j] += partial[c, j]
            partial[c, j] = 0


@device
def tile_rows(X):
    """Rows to a tile: as many as half a second-level cache holds, in fours, from 4 to 256."""
    rows = _TILE_BYTES // max(1, X.shape[1] * X.itemsize)
    return min(256, max(4, rows // 4 * 4))


@for_rows(scratch, types.Array)
def _scratch(X, coef):
    tile = tile_rows(X)
    return tile, _FLUSH - tile, np.empty((coef.shape[0], tile), coef.dtype), np.zeros(coef.shape, X.dtype)


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


def pieces(X, bounds, first, last):
    """The blocks first to last - 1 of rows as the kernels take them: (rows of X, their slice, bounds, their blocks).

    Rows in memory are one piece. Those on disk are several, of one block each; a block is cut where that does not
    change a bit of its sums. float16, which no kernel reads, is made float32.
    """
    if not is_on_disk(X):
        rows = slice(bounds[first], bounds[last])
        yield X[rows], rows, bounds[first : last + 1] - bounds[first], slice(first, last)
        return
    dtype = np.float32 if X.dtype == np.float16 else X.dtype
    tile = tile_rows.py_func(X[:0].astype(dtype))
    exact = _FLUSH // tile * tile  # between two flushes: passes over parts that end there have the bits of one
    step = exact * max(1, WINDOW // (exact * X.strides[0]))
    slices = (rows for block in range(first, last) for rows in cut(*map(int, bounds[block : block + 2]), step))
    for rows in ahead(X, slices, bounds[last]):
        block = np.searchsorted(bounds, rows.start, side="right") - 1
        x = X[rows].astype(dtype, copy=False)
        x.flags.writeable = False
        yield x, rows, np.array([0, len(x)]), slice(block, block + 1)
