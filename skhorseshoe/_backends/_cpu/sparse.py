"""The back end for sparse rows on the CPU: ``dense``, with answers of its own to whatever reads X, a CSR matrix.

X is never made dense, nor copied. Indices ascend within a row, and none comes twice.
"""

import numpy as np
from scipy.sparse import csr_array

from ..centring import finish, uncentred
from .dense import (  # noqa: F401 - most are part of what a back end offers
    SCORES_TOGETHER,
    Exchanges,
    Outbox,
    Precision,
    PriorCoordinates,
    Root,
    RowGroups,
    Shift,
    ShrinkageByRows,
    Watch,
    Whitening,
    add_pairs,
    average_phi,
    by_chain,
    by_column,
    concatenate,
    empty_like,
    exp,
    exponential,
    first_inside,
    fisher_weight,
    gamma,
    global_scale,
    growth,
    latent,
    line,
    local_scales,
    metropolis,
    minimum,
    move_along_lines,
    ndtr,
    near_exchanges,
    near_path,
    near_prior_path,
    near_score,
    next_hermite,
    normal,
    place,
    proposals,
    quantiles,
    score,
    sum_of_parts,
    sums_by_group,
    times_symmetric,
    to_device,
    to_host,
    uniform,
    using,
    where,
)
from .normal_tail import information_weights
from .passes import product_pass
from .sparse_passes import column_moments, gram_pass, noise_pass

NEAR_ROWS = 0
SEGMENTED = False  # CSR is not cut without a copy of its starts

_TOGETHER = 2**18  # numbers, float64, that are computed for a block of rows
_PREDICTED_ROWS = 512  # that share a copy of the coefficients which they need


def hold(X, y, weight):
    return X, y, weight


def gram_product(X, weight, vectors, bounds, threads):
    """X' diag(weight) X of the columns of X and one of ones, times vectors (m, q), in one pass; (m, q) float64.

    weight : (n,) or (0,) for none. q = p or p + 1, with or without the column of ones.
    """
    of_columns = by_column(vectors)

    def some(edges, sums):
        product_pass(X, weight, of_columns, edges, sums)

    return _sum(some, vectors.shape, bounds, threads)


def gram_noise(X, weight, shape, bounds, attempt, sweep, purpose, key, threads):
    """Gaussian vectors whose covariance is the matrix of ``gram_product``; shape = (n_chains, q)."""

    def some(edges, sums):
        noise_pass(X, weight, shape[0], edges, attempt, sweep, purpose, key, sums)

    return _sum(some, shape, bounds, threads)


def _sum(some, shape, bounds, threads):
    """Sums over all blocks, of this shape (m, q), added in pairs. some(edges, sums) adds to those of a few blocks, in
    the form of ``by_column``."""
    m, q = shape
    sums = np.zeros((len(bounds) - 1, q, m + -m % 4))
    threads.run(lambda first, last: some(bounds[first : last + 1], sums[first:last]), len(sums))
    return by_chain(add_pairs(sums), m)


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As that of ``dense``. The centre comes off the sums over rows at the end, and the rounding that is left of them
    is about f / (1 - f) times as large as without one, f the share of a column that is stored. A column that is stored
    as a whole has its centre taken off before.
    """
    n, p = X.shape
    q = p + fit_intercept
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
            sums[1][part] += gram_pass(X, squared, shift, start, stop, total, sums[0][part, :p])

    H = sum_of_parts(add, q, 2, spare, threads)
    finish(H, sums[0].sum(axis=0)[:p], sums[1].sum(), centre - shift, scale)
    return H


def moments(X, weight):
    """Mean and variance of the columns, weighted; (p,) float64 each, without cancellation. weight : (n,) or (0,)."""
    mean, square, size = column_moments(X, weight)
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
