"""Kernels that read the stored numbers of rows in CSR form, tile by tile, each row once.

They ask what the kernels of ``dense_passes`` ask, with the same random numbers. What belongs to a column has the chains
as its last axis, so that a stored number meets those of all chains side by side. It is padded with zeros to a width
that is a multiple of four, and four chains share each load of a number. Sums over rows are held in float64 from the
start: a row touches few of them.

data, indices, indptr : the arrays of a CSR matrix; float32 or float64, and int32 or int64.
bounds : (n_blocks + 1,) int64; block b is rows bounds[b] to bounds[b + 1] - 1.
"""

import math

import numpy as np
from numba import uint32, uint64

from .dense_passes import line_tile, score_tile, sum_of_squares
from .jit import device, kernel
from .philox import normal_and_unit, stream
from .simd import add_times, lane, lanes, load, store
from .truncated_normal import truncate_tile

_TILE = 256  # rows


@kernel
def latent_pass(data, indices, indptr, p, y, coef, bounds, first, last, first_row, sweep, key0, key1, sums, squares):
    """Draw z_i ~ N(x_i beta, 1) truncated to the side of y_i, and sum z_i x_i over blocks of rows.

    p : columns of X. coef : (q, width) in X's dtype, q = p or p + 1; row p is the intercept.
    first_row : the number of row 0 among those whose random numbers these are.
    sums : (n_blocks, q, width) float64; blocks first to last - 1 are overwritten with X'z (and 1'z).
    squares : (n_blocks, n_chains) float64; overwritten with z'z.
    """
    width, n_chains = coef.shape[1], squares.shape[1]
    z = np.empty((width, _TILE), coef.dtype)
    words, work = np.empty((4, _TILE), np.uint32), np.empty((5, _TILE), np.float32)
    proposal = np.empty((2, _TILE), coef.dtype)
    for block in range(first, last):
        sums[block] = 0.0
        squares[block] = 0.0
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            linear_predictor(data, indices, indptr, p, coef, start, rows, z)
            for c in range(n_chains):
                truncate_tile(
                    z[c, :rows],
                    y[start : start + rows],
                    first_row + start,
                    c,
                    uint32(sweep),
                    key0,
                    key1,
                    words,
                    work,
                    proposal,
                )
                squares[block, c] += sum_of_squares(z[c, :rows])
            add_weighted_rows(data, indices, indptr, p, z, start, rows, sums[block])


@kernel
def score_pass(data, indices, indptr, p, y, row_weight, coef, bounds, first, last, sums, logliks):
    """The probit log-likelihood sum_i w_i log Phi(s_i x_i beta), s_i = 1 or -1, and its gradient, over blocks of rows.

    As ``latent_pass``, but nothing is drawn. row_weight : (n,) float64 w, or (0,) where each w_i is 1.
    logliks : (n_blocks, n_chains) float64, overwritten like sums.
    """
    width, n_chains = coef.shape[1], logliks.shape[1]
    weight = np.empty((width, _TILE), coef.dtype)
    work = np.empty((4, _TILE))
    for block in range(first, last):
        sums[block] = 0.0
        logliks[block] = 0.0
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            linear_predictor(data, indices, indptr, p, coef, start, rows, weight)
            for c in range(n_chains):
                logliks[block, c] += score_tile(
                    weight[c, :rows], y[start : start + rows], row_weight[start : start + rows], work
                )
            add_weighted_rows(data, indices, indptr, p, weight, start, rows, sums[block])


@kernel
def line_pass(data, indices, indptr, p, y, row_weight, both, steps, bounds, first, last, logliks):
    """The log-likelihoods of ``score_pass`` at beta + step d, over blocks of rows.

    both : (q, width) float64, beta and then the direction d of each chain. steps : (n_chains, k) float64.
    logliks : (n_blocks, n_chains, k) float64, to which is added.
    """
    eta, work = np.empty((both.shape[1], _TILE)), np.empty((4, _TILE))
    for block in range(first, last):
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            linear_predictor(data, indices, indptr, p, both, start, rows, eta)
            line_tile(eta, y[start : start + rows], row_weight[start : start + rows], steps, work, logliks[block])


@kernel
def product_pass(data, indices, indptr, p, row_weight, vectors, bounds, first, last, sums):
    """X' diag(row_weight) X vectors over blocks of rows, all in float64; vectors (q, width), sums as in the others."""
    eta = np.empty((vectors.shape[1], _TILE))
    for block in range(first, last):
        sums[block] = 0.0
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            linear_predictor(data, indices, indptr, p, vectors, start, rows, eta)
            if row_weight.shape[0]:
                for c in range(eta.shape[0]):
                    for r in range(rows):
                        eta[c, r] *= row_weight[start + r]
            add_weighted_rows(data, indices, indptr, p, eta, start, rows, sums[block])


@kernel
def noise_pass(
    data, indices, indptr, p, row_weight, n_chains, bounds, first, last, attempt, sweep, purpose, k0, k1, sums
):
    """X' diag(row_weight)^(1/2) e, e ~ N(0, I), over blocks of rows; sums as in the others."""
    e = np.zeros((sums.shape[2], _TILE))
    for block in range(first, last):
        sums[block] = 0.0
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            for c in range(n_chains):
                st = stream(c, purpose, start)
                for r in range(rows):
                    e[c, r], _ = normal_and_unit(attempt, uint32(sweep), start + r, st, k0, k1)
                    if row_weight.shape[0]:
                        e[c, r] *= math.sqrt(row_weight[start + r])
            add_weighted_rows(data, indices, indptr, p, e, start, rows, sums[block])


@device
def linear_predictor(data, indices, indptr, p, coef, start, rows, out):
    """out[c, r] = (x_(start + r), 1) . coef[:, c]. Unsigned indices are not looked at for a minus sign."""
    has_intercept, number = coef.shape[0] > p, coef.dtype.type
    flat, width = coef.reshape(-1), uint64(coef.shape[1])
    for c in range(0, coef.shape[1], 4):
        zero = lanes(number(0), number(0), number(0), number(0))
        first = load(flat, uint64(p) * width + uint64(c)) if has_intercept else zero
        for r in range(rows):
            total = first
            for k in range(uint64(indptr[start + r]), uint64(indptr[start + r + 1])):
                total = add_times(total, load(flat, uint64(indices[k]) * width + uint64(c)), number(data[k]))
            for i in range(4):
                out[c + i, r] = lane(total, i)


@device
def add_weighted_rows(data, indices, indptr, p, weights, start, rows, out):
    """out[:, c] += sum_r weights[c, r] (x_(start + r), 1)."""
    flat, width, number = out.reshape(-1), uint64(out.shape[1]), np.float64
    for c in range(0, out.shape[1], 4):
        for r in range(rows):
            w = weights[c : c + 4, r]
            factors = lanes(number(w[0]), number(w[1]), number(w[2]), number(w[3]))
            for k in range(uint64(indptr[start + r]), uint64(indptr[start + r + 1])):
                at = uint64(indices[k]) * width + uint64(c)
                store(add_times(load(flat, at), factors, number(data[k])), flat, at)
    if out.shape[0] > p:
        for c in range(out.shape[1]):
            for r in range(rows):
                out[p, c] += weights[c, r]


@kernel
def gram_pass(data, indices, indptr, row_weight, shift, start, stop, total, column_sums):
    """Lower triangle of X' diag(row_weight) X over rows start to stop - 1, and the weighted sums of the columns.

    Indices ascend within a row. row_weight : (stop - start,), or (0,) for none. shift : (p,), taken from each stored
    number. total : (at least p, p) and column_sums : (p,), float64, added to. Returns the sum of the weights.
    """
    size = 0.0
    for i in range(start, stop):
        w = row_weight[i - start] if row_weight.shape[0] else 1.0
        size += w
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            wx = w * (data[k] - shift[j])
            column_sums[j] += wx
            row = total[j]
            for other in range(indptr[i], k + 1):
                at = indices[other]
                row[at] += wx * (data[other] - shift[at])
    return size


@kernel
def column_moments(data, indices, indptr, row_weight, mean, square, stored):
    """Weighted mean and sum of squares about it of every column, in two passes; returns the sum of the weights.

    mean, square, stored : (p,) float64, overwritten. A column is summed about the first number stored in it, so that
    one whose numbers are all alike has no variance, not even by rounding. stored : the weight of the stored numbers.
    """
    size = 0.0
    shift = square  # until the second pass
    stored[:] = 0.0
    shift[:] = 0.0
    mean[:] = 0.0
    for i in range(indptr.shape[0] - 1):
        w = row_weight[i] if row_weight.shape[0] else 1.0
        size += w
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if stored[j] == 0.0:
                shift[j] = data[k]
            stored[j] += w
            mean[j] += w * (data[k] - shift[j])
    for j in range(mean.shape[0]):
        mean[j] = mean[j] / size + shift[j] * (stored[j] / size)
        square[j] = (size - stored[j]) * mean[j] * mean[j]
    for i in range(indptr.shape[0] - 1):
        w = row_weight[i] if row_weight.shape[0] else 1.0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            square[j] += w * (data[k] - mean[j]) ** 2
    return size
