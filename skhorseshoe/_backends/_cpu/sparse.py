"""The back end for sparse rows on the CPU: ``dense``, with answers of its own to whatever reads X, a CSR matrix.

X is never made dense, nor copied. Indices ascend within a row, and none comes twice. Random numbers are those of the
same rows in an array.

In a kernel, what belongs to a column has the chains as its last axis, so that a stored number meets those of all chains
side by side. It is padded with zeros to a width that is a multiple of four: four chains share each load of a number.
Sums over rows are held in float64 from the start: a row touches few of them.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types, uint32, uint64
from scipy.sparse import csr_array

from ..centring import finish, uncentred
from . import dense
from .dense import sum_of_parts
from .jit import kernel
from .normal_tail import information_weights
from .passes import add_weighted_rows, for_rows, latent_pass, line_pass, linear_predictor, score_pass, scratch
from .philox import normal_and_unit, stream
from .simd import add_times, lane, lanes, load, store

NEAR_ROWS = 0
SEGMENTED = False  # CSR is not cut without a copy of its starts

_TILE = 256  # rows
_TOGETHER = 2**18  # numbers, float64, that are computed for a block of rows
_PREDICTED_ROWS = 512  # that share a copy of the coefficients which they need


def __getattr__(name):
    """The rest of what a back end offers is that of ``dense``."""
    return getattr(dense, name)


def hold(X, y, weight):
    return X, y, weight


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0):
    rows, by_column, squares = csr(X), _by_column(coef, X.dtype), np.zeros((len(bounds) - 1, len(coef)))

    def some(edges, blocks, sums):
        latent_pass(rows, y, by_column, edges, first_row, sweep, *key, sums, squares[blocks])

    return _sum(some, by_column.shape, bounds, threads)[: len(coef)], squares.sum(axis=0)


def score(X, y, weight, coef, bounds, threads):
    rows, by_column, logliks = csr(X), _by_column(coef, X.dtype), np.zeros((len(bounds) - 1, len(coef)))

    def some(edges, blocks, sums):
        score_pass(rows, y, weight, by_column, edges, sums, logliks[blocks])

    score = _sum(some, by_column.shape, bounds, threads)[: len(coef)]
    return logliks.sum(axis=0), score


def line(X, y, weight, coef, direction, steps, bounds, threads):
    rows, both = csr(X), _by_column(np.concatenate([coef, direction]), np.float64)
    logliks = np.zeros((len(bounds) - 1, *steps.shape))

    def some(first, last):
        line_pass(rows, y, weight, both, steps, bounds[first : last + 1], logliks[first:last])

    threads.run(some, len(logliks))
    return logliks.sum(axis=0)


def gram_product(X, weight, vectors, bounds, threads):
    """X' diag(weight) X of the columns of X and one of ones, times vectors (m, q), in one pass; (m, q) float64.

    weight : (n,) or (0,) for none. q = p or p + 1, with or without the column of ones.
    """
    rows, by_column = csr(X), _by_column(vectors, np.float64)

    def some(edges, blocks, sums):
        product_pass(rows, weight, by_column, edges, sums)

    return _sum(some, by_column.shape, bounds, threads)[: len(vectors)]


def gram_noise(X, weight, shape, bounds, attempt, sweep, purpose, key, threads):
    """Gaussian vectors whose covariance is the matrix of ``gram_product``; shape = (n_chains, q)."""
    rows, (n_chains, q) = csr(X), shape

    def some(edges, blocks, sums):
        noise_pass(rows, weight, n_chains, edges, attempt, sweep, purpose, *key, sums)

    return _sum(some, (q, _width(n_chains)), bounds, threads)[:n_chains]


def _width(n_chains):
    return -(-n_chains // 4) * 4


def _by_column(coef, dtype):
    """coef (n_chains, q) with the chains as the last axis, padded with zeros; (q, width)."""
    out = np.zeros((coef.shape[1], _width(len(coef))), dtype)
    out[:, : len(coef)] = coef.T
    return out


def _sum(some, shape, bounds, threads):
    """Sums (width, q) over all blocks, added in order; some(edges, blocks, sums) adds to those of a slice of blocks,
    of this shape (q, width)."""
    sums = np.zeros((len(bounds) - 1, *shape))
    threads.run(lambda first, last: some(bounds[first : last + 1], slice(first, last), sums[first:last]), len(sums))
    return np.ascontiguousarray(sums.sum(axis=0).T)


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As that of ``dense``. The centre comes off the sums over rows at the end, and the rounding that is left of them
    is about f / (1 - f) times as large as without one, f the share of a column that is stored. A column that is stored
    as a whole has its centre taken off before.
    """
    n, p = X.shape
    q = p + fit_intercept
    held = csr(X)
    stored = sum(np.bincount(X.indices[at : at + _TOGETHER], minlength=p) for at in range(0, X.nnz, _TOGETHER))
    shift = np.where(stored == n, centre, 0.0)
    coef = None if beta is None else uncentred(beta, centre, scale, p)
    sums = np.zeros((2, q)), np.zeros(2)
    edges = np.linspace(0, n, 3).astype(int)
    step = n if beta is None else max(64, _TOGETHER // (4 * max(len(beta), X.nnz // n)))

    def add(part, total):
        for start in range(edges[part], edges[part + 1], step):
            stop = min(start + step, edges[part + 1])
            squared = weight[start:stop]
            if coef is not None:
                information = information_weights(X[start:stop], *coef)
                squared = squared * information if len(squared) else information
            sums[1][part] += gram_pass(held, squared, shift, start, stop, total, sums[0][part, :p])

    H = sum_of_parts(add, q, 2, spare, threads)
    finish(H, sums[0].sum(axis=0)[:p], sums[1].sum(), centre - shift, scale)
    return H


def moments(X, weight):
    """Mean and variance of the columns, weighted; (p,) float64 each, without cancellation. weight : (n,) or (0,)."""
    mean, square, stored = np.empty((3, X.shape[1]))
    size = column_moments(csr(X), weight, mean, square, stored)
    return mean, square / size


def each_block(X, coef, threads, budget, use):
    """As that of ``dense``. A row's product sums over its stored numbers in order, whatever rows come with it.

    Only the coefficients that a block needs are looked up, once for all of its rows.
    """
    n = X.shape[0]
    size = max(1, min(_PREDICTED_ROWS, budget // (8 * len(coef))))

    def some(first, last):
        for start in range(first * size, min(n, last * size), size):
            rows = slice(start, min(n, start + size))
            use(_product(X[rows], coef), rows)

    threads.run(some, -(-n // size))


def _product(X, coef):
    """X coef' for few rows; (n, n_draws) float64."""
    needed, at = np.unique(X.indices, return_inverse=True)
    narrow = csr_array((X.data, at, X.indptr), shape=(X.shape[0], len(needed)))
    out = np.zeros((X.shape[0], len(coef)))
    step = max(16, _TOGETHER // max(1, len(needed)))
    for start in range(0, len(coef), step):
        out[:, start : start + step] = narrow @ np.ascontiguousarray(coef[start : start + step, needed].T, np.float64)
    return out


class Csr(NamedTuple):
    """Rows in CSR form, as kernels take them."""

    data: object  # float32 or float64
    indices: object  # int32 or int64, as is indptr
    indptr: object
    p: int  # columns


def csr(X):
    """The ``Csr`` of a matrix; read-only: kernels are compiled once per type."""
    views = [array.view() for array in (X.data, X.indices, X.indptr)]
    for view in views:
        view.flags.writeable = False
    return Csr(*views, X.shape[1])


@for_rows(scratch, types.NamedTuple)
def _scratch(X, coef):
    return _TILE, _TILE, np.empty((coef.shape[1], _TILE), coef.dtype), np.empty((0, 0), coef.dtype)


@for_rows(linear_predictor, types.NamedTuple)
def _linear_predictor(X, coef, start, rows, out):
    """Unsigned indices are not looked at for a minus sign."""
    data, indices, indptr, p = X
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


@for_rows(add_weighted_rows, types.NamedTuple)
def _add_weighted_rows(X, weights, start, rows, partial, total):
    data, indices, indptr, p = X
    flat, width, number = total.reshape(-1), uint64(total.shape[1]), np.float64
    for c in range(0, total.shape[1], 4):
        for r in range(rows):
            w = weights[c : c + 4, r]
            factors = lanes(number(w[0]), number(w[1]), number(w[2]), number(w[3]))
            for k in range(uint64(indptr[start + r]), uint64(indptr[start + r + 1])):
                at = uint64(indices[k]) * width + uint64(c)
                store(add_times(load(flat, at), factors, number(data[k])), flat, at)
    if total.shape[0] > p:
        for c in range(total.shape[1]):
            for r in range(rows):
                total[p, c] += weights[c, r]


@kernel
def product_pass(X, row_weight, vectors, bounds, sums):
    """X' diag(row_weight) X vectors over blocks of rows, all in float64; vectors (q, width), sums as in ``passes``.

    row_weight : (n,), or (0,) for none.
    """
    tile, _, eta, partial = scratch(X, vectors)
    for block in range(sums.shape[0]):
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, vectors, start, rows, eta)
            if row_weight.shape[0]:
                for c in range(eta.shape[0]):
                    for r in range(rows):
                        eta[c, r] *= row_weight[start + r]
            add_weighted_rows(X, eta, start, rows, partial, sums[block])


@kernel
def noise_pass(X, row_weight, n_chains, bounds, attempt, sweep, purpose, k0, k1, sums):
    """X' diag(row_weight)^(1/2) e, e ~ N(0, I), over blocks of rows; sums and row_weight as in ``product_pass``."""
    e = np.zeros((sums.shape[2], _TILE))
    for block in range(sums.shape[0]):
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            for c in range(n_chains):
                st = stream(c, purpose, start)
                for r in range(rows):
                    e[c, r], _ = normal_and_unit(attempt, uint32(sweep), start + r, st, k0, k1)
                    if row_weight.shape[0]:
                        e[c, r] *= math.sqrt(row_weight[start + r])
            add_weighted_rows(X, e, start, rows, e, sums[block])


@kernel
def gram_pass(X, row_weight, shift, start, stop, total, column_sums):
    """Lower triangle of X' diag(row_weight) X over rows start to stop - 1, and the weighted sums of the columns.

    Indices ascend within a row. row_weight : (stop - start,), or (0,) for none. shift : (p,), taken from each stored
    number. total : (at least p, p) and column_sums : (p,), float64, added to. Returns the sum of the weights.
    """
    data, indices, indptr, _ = X
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
def column_moments(X, row_weight, mean, square, stored):
    """Weighted mean and sum of squares about it of every column, in two passes; returns the sum of the weights.

    mean, square, stored : (p,) float64, overwritten. A column is summed about the first number stored in it, so that
    one whose numbers are all alike has no variance, not even by rounding. stored : the weight of the stored numbers.
    """
    data, indices, indptr, _ = X
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
