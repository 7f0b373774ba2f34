"""Kernels that read the rows of X, tile by tile, each row once.

A tile of rows stays in cache while everything that is asked of it is computed: the linear predictors of all
chains, what is drawn or derived from them, and the sums over rows. X is an array or, for sparse rows, ``Csr``; the
three operations that see the difference are in ``dense_passes`` and ``sparse_passes``.

bounds : (n_blocks + 1,) int64; block b is rows bounds[b] to bounds[b + 1] - 1.
coef : (q, width), coefficients of all chains in X's dtype, q = p or p + 1 of each, the last of which is then the
intercept. The chains are the last axis, so that a number of X meets those of four chains side by side, and are padded
with zeros to a width that is a multiple of four. What is summed is of the same shape.
"""

import numpy as np
from numba import uint32
from numba.extending import overload

from .jit import COMPILED, REORDER_SUMS, device, kernel
from .normal_tail_numba import cdf_parts, log_likelihood, mills_ratio, sum_logs
from .truncated_normal import truncate_tile


def scratch(X, coef):
    """Rows to a tile, a multiple of four; rows of whole tiles, of which ``partial`` may hold the sum; room for a number
    of each chain and row of a tile; and ``partial``, zeros of the shape of ``coef``, or nothing if not used."""


def linear_predictor(X, coef, start, rows, out):
    """out[c, r] = (x_(start + r), 1) . coefficients of c, for a tile of rows; after the last comes anything."""


def add_weighted_rows(X, weights, start, rows, partial, total):
    """Add sum_r weights[c, r] (x_(start + r), 1) for each c to ``partial`` or, where that is not used, to ``total``.
    Weights after the last row may be overwritten."""


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
        first, last = bounds[block], bounds[block + 1]
        for start in range(first, last, tile):
            rows = min(tile, last - start)
            linear_predictor(X, coef, start, rows, z)
            side = y[start : start + rows]
            for c in range(squares.shape[1]):
                mean = z[c, :rows]
                truncate_tile(mean, side, first_row + start, c, uint32(sweep), key0, key1, words, work, proposal)
                squares[block, c] += sum_of_squares(mean)
            add_weighted_rows(X, z, start, rows, partial, sums[block])
            if (start + rows - first) % most == 0 or start + rows == last:
                flush(partial, sums[block])


@kernel
def score_pass(X, y, row_weight, coef, bounds, sums, logliks):
    """The probit log-likelihood sum_i w_i log Phi(s_i x_i beta), s_i = 1 or -1, and its gradient, over blocks of rows.

    As ``latent_pass``, but nothing is drawn. row_weight : (n,) float64 w, or (0,) where each w_i is 1.
    logliks : (n_blocks, n_chains) float64, added to like sums.
    """
    tile, most, weight, partial = scratch(X, coef)
    work = np.empty((5, tile))
    for block in range(logliks.shape[0]):
        first, last = bounds[block], bounds[block + 1]
        for start in range(first, last, tile):
            rows = min(tile, last - start)
            linear_predictor(X, coef, start, rows, weight)
            side, own_weight = y[start : start + rows], row_weight[start : start + rows]
            for c in range(logliks.shape[1]):
                logliks[block, c] += score_tile(weight[c, :rows], side, own_weight, work)
            add_weighted_rows(X, weight, start, rows, partial, sums[block])
            if (start + rows - first) % most == 0 or start + rows == last:
                flush(partial, sums[block])


@kernel
def line_pass(X, y, row_weight, both, steps, bounds, logliks):
    """The log-likelihoods of ``score_pass`` at beta + step d, over blocks of rows.

    both : like ``coef``, but float64, for 2 n_chains chains: beta and then the direction d of each. All is computed in
    float64: what rounding decides would be other draws for rows that lie elsewhere. steps : (n_chains, k) float64.
    logliks : (n_blocks, n_chains, k) float64, to which is added.
    """
    tile, _, eta, _ = scratch(X, both)
    work, n_chains = np.empty((4, tile)), steps.shape[0]
    for block in range(logliks.shape[0]):
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, both, start, rows, eta)
            side, own_weight = y[start : start + rows], row_weight[start : start + rows]
            for c in range(n_chains):
                line = eta[c], eta[n_chains + c], side, own_weight
                for k in range(steps.shape[1]):
                    logliks[block, c, k] += log_likelihood(line, steps[c, k], work)


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
