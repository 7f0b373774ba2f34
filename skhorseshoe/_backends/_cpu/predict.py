"""What a fitted model answers, on the CPU: blocks of rows under all draws."""

import numpy as np

from ..._utils.memmap import ahead, cut
from .library import function

_ROWS = 48  # of a block
_FEW_ROWS = 8  # where the draws do not stay in cache
_LARGE = 2**20  # coefficients in all draws, from where they do not
# In multiples of so many rows a library's product treats all alike: OpenBLAS with AVX-512 takes 24 at a time. With
# fewer it takes most of its time to copy the draws.
_STEP = 24
SCORES_TOGETHER = 2**14  # of which Hermite functions stay in cache
_multiply, _average_phi, _next_hermite = function("multiply"), function("average_phi"), function("next_hermite")


def each_block(X, coef, threads, budget, use):
    """Call use(product, rows) with blocks of X coef', and the slice of rows that each is of; coef : (n_draws, p).

    budget : bytes that a product, (rows, n_draws) float64, may have if it is of more than one row. It may be
    overwritten. A row has the same bits whatever rows come with it: in a block of few it is a sum of its own; otherwise
    all blocks are computed with the same number of rows, a multiple of ``_STEP``, the last one padded, so that the
    product treats a row in the same way at any place.
    """
    n, p = X.shape
    block_rows = max(1, min(_ROWS if coef.size < _LARGE else _FEW_ROWS, budget // (8 * len(coef))))
    is_few = block_rows < _STEP
    block_rows -= 0 if is_few else block_rows % _STEP
    coef = coef if is_few else coef.astype(np.float64, copy=False)

    def some(first, last):
        block = np.zeros((block_rows, p))
        product = np.empty((block_rows, len(coef)))
        stop = min(n, last * block_rows)
        for rows in ahead(X, cut(first * block_rows, stop, block_rows), stop):
            size = rows.stop - rows.start
            block[:size] = X[rows]
            if is_few:
                multiply(block[:size], coef, product[:size])
            else:
                np.matmul(block, coef.T, out=product)
            use(product[:size], rows)

    threads.run(some, -(-n // block_rows))


def multiply(X, coef, out):
    """out = X coef' for few rows, X (n, p) float64, coef (n_draws, p) float32 or float64, out (n, n_draws)."""
    coef = np.ascontiguousarray(coef)
    _multiply(X, coef.dtype == np.float32, coef, len(X), *coef.shape, out)


def quantiles(values, levels, of=None):
    """Those of each row of values (m, k), which may be overwritten, or of an increasing function of them; (m, number of
    levels)."""
    last, out = values.shape[1] - 1, np.empty((len(values), len(levels)))
    for i, level in enumerate(levels):
        at = int(level * last)
        share = level * last - at
        values.partition(at, axis=1)  # a place at a time: NumPy vectorises the search for one, not that for several
        ends = np.stack([values[:, at], values[:, min(at + 1, last) :].min(axis=1)])
        low, high = ends if of is None else of(ends)  # its values have the order of the numbers
        out[:, i] = low + share * (high - low) if share < 0.5 else high - (1 - share) * (high - low)
    return out


def average_phi(eta):
    """Averages of Phi(-eta) and Phi(eta) over the draws, eta (n, n_draws); (n, 2).

    Both tails are summed, so that a small probability keeps its relative accuracy.
    """
    eta, out = np.ascontiguousarray(eta, np.float64), np.empty((len(eta), 2))
    _average_phi(eta, *eta.shape, out)
    return out


def next_hermite(x, own, before, k):
    """From He_k(x) f(x) and He_{k-1}(x) f(x), ``own`` and ``before``, to He_{k+1}(x) f(x), which overwrites ``before``;
    f is any function, and all are (m, n) float64."""
    _next_hermite(x, own, before, x.size, k)
