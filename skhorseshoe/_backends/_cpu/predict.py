"""Linear predictors and probabilities of blocks of rows for all draws, on the CPU."""

import numpy as np

from ..._utils.memmap import cut, read_ahead
from .library import function

_ROWS_AT_A_TIME = 48  # largest number of rows of a block
_ROWS_BESIDE_LARGE_DRAWS = 8  # largest number of rows of a block if the draws do not fit the cache
_COEFFICIENTS_OF_LARGE_DRAWS = 2**20  # least number of coefficients in all draws that do not fit the cache
# Number of rows of which a product of BLAS treats all alike: OpenBLAS with AVX-512 takes 24 at a time. With fewer rows
# it spends most of its time on copies of the draws.
_ROWS_OF_BLAS = 24
PREDICTORS_AT_ONCE = 2**14  # number of linear predictors whose Hermite functions stay in cache
_predictors_of_few_rows = function("predictors_of_few_rows")
_average_probabilities, _next_hermite = function("average_probabilities"), function("next_hermite")
_class_probabilities = function("class_probabilities")


def each_block(X, coef, threads, budget, use):
    """Call use(product, rows) with blocks of X coef', and the slice of rows of each; coef : (n_draws, p).

    budget : largest size of a product (rows, n_draws) float64 of several rows, in bytes. use may overwrite the product.
    A row has the same bits in any block: in a block of few rows each is a sum of its own; otherwise all blocks, the
    last one padded, have the same number of rows, a multiple of ``_ROWS_OF_BLAS``, so that BLAS treats all rows alike.
    """
    n, p = X.shape
    most = _ROWS_AT_A_TIME if coef.size < _COEFFICIENTS_OF_LARGE_DRAWS else _ROWS_BESIDE_LARGE_DRAWS
    block_rows = max(1, min(most, budget // (8 * len(coef))))
    is_few = block_rows < _ROWS_OF_BLAS
    block_rows -= 0 if is_few else block_rows % _ROWS_OF_BLAS
    coef = coef if is_few else coef.astype(np.float64, copy=False)

    def use_blocks(first, last):
        block = np.zeros((block_rows, p))
        product = np.empty((block_rows, len(coef)))
        stop = min(n, last * block_rows)
        for rows in read_ahead(X, cut(first * block_rows, stop, block_rows), stop):
            size = rows.stop - rows.start
            block[:size] = X[rows]
            if is_few:
                predictors_of_few_rows(block[:size], coef, product[:size])
            else:
                np.matmul(block, coef.T, out=product)
            use(product[:size], rows)

    threads.run(use_blocks, -(-n // block_rows))


def predictors_of_few_rows(X, coef, out):
    """out = X coef', X (n, p) float64, coef (n_draws, p) float32 or float64, out (n, n_draws)."""
    coef = np.ascontiguousarray(coef)
    _predictors_of_few_rows(X, coef.dtype == np.float32, coef, len(X), *coef.shape, out)


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
