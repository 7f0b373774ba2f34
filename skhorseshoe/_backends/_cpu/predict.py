"""Linear predictors and probabilities of blocks of rows for all draws, on the CPU."""

import numpy as np
from scipy import special

from ..._utils.memmap import cut, read_ahead
from .library import function

_ROWS_AT_A_TIME = 48  # largest number of rows of a block
PREDICTORS_AT_ONCE = 2**14  # number of linear predictors whose Hermite functions stay in cache
_linear_predictors = function("linear_predictors")
_average_probabilities, _next_hermite = function("average_probabilities"), function("next_hermite")
_class_probabilities = function("class_probabilities")


def each_block(X, coef, threads, budget, use, together=1):
    """Call use(product, rows) with blocks of X coef', and the slice of rows of each; coef : (n_draws, p).

    budget : largest size of a product (rows, n_draws) float64 of several rows, in bytes. use may overwrite the product.
    together : so many neighbouring rows are in one block. A row has the same bits in any block.
    """
    n, p = X.shape
    block_rows = max(1, min(n, _ROWS_AT_A_TIME, budget // (8 * len(coef))) // together) * together

    def use_blocks(first, last):
        block, product = np.empty((block_rows, p)), np.empty((block_rows, len(coef)))
        stop = min(n, last * block_rows)
        for rows in read_ahead(X, cut(first * block_rows, stop, block_rows), stop):
            size = rows.stop - rows.start
            block[:size] = X[rows]
            linear_predictors(block[:size], coef, product[:size])
            use(product[:size], rows)

    threads.run(use_blocks, -(-n // block_rows))


def linear_predictors(X, coef, out):
    """out = X coef', X (n, p) float64, coef (n_draws, p) float32 or float64, out (n, n_draws)."""
    coef = np.ascontiguousarray(coef)
    _linear_predictors(X, coef.dtype == np.float32, coef, len(X), *coef.shape, out)


def quantiles(values, levels, increasing=None):
    """Quantiles of each row of values (m, k), or of an ``increasing`` function of them; (m, number of levels).

    values may be overwritten.
    """
    last, out = values.shape[1] - 1, np.empty((len(values), len(levels)))
    for i, level in enumerate(levels):
        at = int(level * last)
        share = level * last - at
        values.partition(at, axis=1)  # one index at a time, which NumPy vectorises
        ends = np.stack([values[:, at], values[:, min(at + 1, last) :].min(axis=1)])
        low, high = ends if increasing is None else increasing(ends)
        out[:, i] = low + share * (high - low) if share < 0.5 else high - (1 - share) * (high - low)
    return out


def average_probabilities(eta, likelihood):
    """Averages of P(y = 0) and P(y = 1) over the draws, eta (n, n_draws); (n, 2).

    Both are summed, so that a small probability keeps its relative accuracy.
    """
    eta, out = np.ascontiguousarray(eta, np.float64), np.empty((len(eta), 2))
    if likelihood.number is None:  # the core does not have it
        return likelihood.averages(eta, special, out)
    _average_probabilities(likelihood.number, eta, *eta.shape, out)
    return out


def average_class_probabilities(eta, likelihood):
    """Averages of P(y = k) over the draws, for unordered classes; (n, K).

    eta : (n, m d), the contrasts of each of m draws one after the other: the product of ``each_block`` with the
    coefficients (m d, p). A small average keeps its relative accuracy, and none is 0.
    """
    out = np.empty((len(eta), likelihood.n_classes))
    _fill_class_probabilities(eta, likelihood, True, out)
    return out


def class_probabilities(eta, likelihood):
    """The same of each draw; (n, K, m)."""
    out = np.empty((len(eta), likelihood.n_classes, eta.shape[1] // likelihood.n_predictors))
    _fill_class_probabilities(eta, likelihood, False, out)
    return out


def _fill_class_probabilities(eta, likelihood, averaged, out):
    eta, d = np.ascontiguousarray(eta, np.float64), likelihood.n_predictors
    _class_probabilities(eta, len(eta), eta.shape[1] // d, d, averaged, out)


def next_hermite(x, current, last, k):
    """From He_k(x) f(x) and He_{k-1}(x) f(x), ``current`` and ``last``, to He_{k+1}(x) f(x), which overwrites ``last``;
    f is any function, and all are (m, n) float64."""
    _next_hermite(x, current, last, x.size, k)
