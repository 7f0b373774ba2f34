"""The back end for sparse rows on the CPU: ``dense``, but for functions that read X, a CSR matrix.

X is never made dense or copied. Indices ascend within a row without duplicates.
"""

import numpy as np
from scipy.sparse import csr_array

from ..._model import PROBIT
from ..._utils.threads import share_ranges
from ..centring import centre_gram, uncentred
from .dense import *  # noqa: F403 - part of what a back end offers
from .dense import fused_score_rows, sum_of_shards
from .library import function
from .passes import add_pairs, by_chain, by_column, or_none, pass_rows, rows_of

MOST_FUSED_ROWS = 0  # the core reads CSR rows by passes alone
SEGMENTED = False  # cutting a CSR matrix would copy its starts of rows

_coefficients_by_column, _add_up_score = function("coefficients_by_column"), function("add_up_score")
_score_pass, _product_pass, _noise_pass = function("score_pass"), function("product_pass"), function("noise_pass")
_gram_pass, _column_moments = function("gram_pass"), function("column_moments")
_NUMBERS_AT_A_TIME = 2**18  # float64 numbers that are computed at a time for a block of rows
_PREDICTED_ROWS = 512  # rows that share a copy of the coefficients that they need


def hold(X, y, weight):
    return X, y, weight


def fused_score(rows, beta):
    """Log-likelihood and score at the sampler's coefficients, of two classes and without an offset or effects."""
    if rows.offset is not None:
        return None
    (X, y, weight), made, (n_chains, q), bounds = rows.held, fused_score_rows(rows), beta.shape, rows.bounds
    width, n_blocks = n_chains + -n_chains % 4, len(bounds) - 1
    coef, sums, logliks = np.empty((q, width), X.dtype), np.empty((n_blocks, q, width)), np.zeros((n_blocks, n_chains))
    _coefficients_by_column(made, np.ascontiguousarray(beta), n_chains, width, coef)

    def add_blocks(first, last):
        sums[first:last] = 0.0
        of_pass = pass_rows(y, or_none(weight), bounds[first : last + 1], likelihood=rows.likelihood)
        _score_pass(rows_of(X), of_pass, (coef, q, width), n_chains, sums[first:last], logliks[first:last])

    rows.threads.run(add_blocks, n_blocks)
    gradient, inputs = np.empty(beta.shape), (made, sums, n_chains, width)
    share_ranges(rows.threads, (q, n_chains), lambda first, last: _add_up_score(*inputs, first, last, gradient))
    return add_pairs(logliks), gradient


def gram_product(X, weight, vectors, bounds, threads):
    """X' diag(weight) X of the columns of X and one of ones, times vectors (m, q), in one pass; (m, q) float64.

    weight : (n,) or (0,) for none. q = p or p + 1, with or without the column of ones.
    """
    by_columns = by_column(vectors)
    return _sum(_product_pass, [(by_columns, *by_columns.shape)], X, weight, vectors.shape, bounds, threads)


def gram_noise(X, weight, shape, bounds, key, sweep, purpose, attempt, threads):
    """Gaussian vectors whose covariance is the matrix of ``gram_product``; shape = (n_chains, q)."""
    m, q = shape
    random = m, attempt, sweep, purpose, key, q, m + -m % 4
    return _sum(_noise_pass, random, X, weight, shape, bounds, threads)


def _sum(add_blocks, given, X, weight, shape, bounds, threads):
    """Sums over all blocks, (m, q), added in pairs. add_blocks : a pass, which adds to sums of some blocks by column.
    given : its arguments after the rows."""
    (m, q), x, weight = shape, rows_of(X), or_none(weight)
    sums = np.zeros((len(bounds) - 1, q, m + -m % 4))

    def add(first, last):
        add_blocks(x, pass_rows(None, weight, bounds[first : last + 1]), *given, sums[first:last])

    threads.run(add, len(sums))
    return by_chain(add_pairs(sums), m)


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=(), likelihood=PROBIT):
    """As ``dense.gram``. The centre is subtracted from the sums at the end, so that rounding is about f / (1 - f) times
    as large as without a centre, where f is the share of a column that is stored. A column that is stored as a whole is
    centred first.
    """
    n, p = X.shape
    q = p + fit_intercept
    starts = range(0, X.nnz, _NUMBERS_AT_A_TIME)
    stored = sum(np.bincount(X.indices[at : at + _NUMBERS_AT_A_TIME], minlength=p) for at in starts)
    shift = np.where(stored == n, centre, 0.0)
    coef = None if beta is None else uncentred(beta, centre, scale, p)
    sums, sizes = np.zeros((2, p)), np.zeros(2)
    edges = np.linspace(0, n, 3).astype(int)
    step = n if beta is None else max(64, _NUMBERS_AT_A_TIME // (4 * max(len(beta), X.nnz // n)))

    def add(shard, total):
        for start in range(edges[shard], edges[shard + 1], step):
            stop = min(start + step, edges[shard + 1])
            row_weight = weight[start:stop]
            if coef is not None:
                information = likelihood.information(X[start:stop] @ coef[0].T + coef[1]).mean(axis=1)
                row_weight = row_weight * information if len(row_weight) else information
            inputs = rows_of(X), or_none(row_weight), shift, start, stop, total, total.shape[1]
            _gram_pass(*inputs, sums[shard], sizes[shard : shard + 1])

    H = sum_of_shards(add, q, 2, spare, threads)
    centre_gram(H, sums.sum(axis=0), sizes.sum(), centre - shift, scale)
    return H


def moments(X, weight):
    """Mean and variance of the columns, weighted; (p,) float64 each, without cancellation. weight : (n,) or (0,)."""
    (mean, square, stored), size = np.empty((3, X.shape[1])), np.empty(1)
    _column_moments(rows_of(X), or_none(weight), mean, square, stored, size)
    return mean, square / size


def each_block(X, coef, threads, budget, use, together=1):
    """As ``dense.each_block``. The product of a row is the sum over its stored numbers in order, in any block.

    Only the coefficients that a block needs are copied, once for all of its rows.
    """
    n = X.shape[0]
    size = max(1, min(_PREDICTED_ROWS, budget // (8 * len(coef))) // together) * together

    def use_blocks(first, last):
        for start in range(first * size, min(n, last * size), size):
            rows = slice(start, min(n, start + size))
            use(_product(X[rows], coef), rows)

    threads.run(use_blocks, -(-n // size))


def _product(X, coef):
    """X coef' for few rows; (n, n_draws) float64."""
    needed, at = np.unique(X.indices, return_inverse=True)
    narrow = csr_array((X.data, at, X.indptr), shape=(X.shape[0], len(needed)))
    out = np.zeros((X.shape[0], len(coef)))
    step = max(16, _NUMBERS_AT_A_TIME // max(1, len(needed)))
    for start in range(0, len(coef), step):
        out[:, start : start + step] = narrow @ np.ascontiguousarray(coef[start : start + step, needed].T, np.float64)
    return out
