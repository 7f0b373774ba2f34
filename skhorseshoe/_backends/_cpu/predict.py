"""What a fitted model answers, on the CPU: blocks of rows under all draws."""

import numpy as np

from ..._utils.memmap import ahead, cut
from .jit import CONTRACT, REORDER_SUMS, device, kernel
from .normal_tail_numba import upper_tail

_ROWS = 48  # of a block
_FEW_ROWS = 8  # where the draws do not stay in cache
_LARGE = 2**20  # coefficients in all draws, from where they do not
# In multiples of so many rows a library's product treats all alike: OpenBLAS with AVX-512 takes 24 at a time. With
# fewer it takes most of its time to copy the draws.
_STEP = 24
_HELD = 2**15  # coefficients of draws that stay in cache for all rows of such a block
SCORES_TOGETHER = 2**14  # of which Hermite functions stay in cache
_DRAWS = 256  # of a row, whose probabilities are computed together


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


@kernel(fastmath=REORDER_SUMS)
def multiply(X, coef, out):
    """out = X coef' for few rows, four draws at a time; X (n, p) float64, coef (n_draws, p), out (n, n_draws)."""
    n_draws, p = coef.shape
    held = max(4, _HELD // p // 4 * 4)
    for first in range(0, n_draws, held):
        last = min(n_draws, first + held) - 1
        for i in range(X.shape[0]):
            for s0 in range(first, last + 1, 4):
                s1, s2, s3 = min(s0 + 1, last), min(s0 + 2, last), min(s0 + 3, last)
                sum0, sum1, sum2, sum3 = 0.0, 0.0, 0.0, 0.0
                for j in range(p):
                    sum0 += X[i, j] * coef[s0, j]
                    sum1 += X[i, j] * coef[s1, j]
                    sum2 += X[i, j] * coef[s2, j]
                    sum3 += X[i, j] * coef[s3, j]
                out[i, s0], out[i, s1], out[i, s2], out[i, s3] = sum0, sum1, sum2, sum3


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


@kernel
def average_phi(eta):
    """Averages of Phi(-eta) and Phi(eta) over the draws, eta (n, n_draws); (n, 2).

    Both tails are summed, so that a small probability keeps its relative accuracy.
    """
    n_draws, out = eta.shape[1], np.empty((eta.shape[0], 2))
    tail, scratch = np.empty(_DRAWS), np.empty(_DRAWS)
    for i in range(eta.shape[0]):
        lower, upper = 0.0, 0.0
        for start in range(0, n_draws, _DRAWS):
            stop = min(n_draws, start + _DRAWS)
            t = eta[i, start:stop]
            upper_tail(t, scratch, tail)
            below, above = _sum_tails(t, tail)
            lower += below
            upper += above
        out[i, 0] = lower / n_draws
        out[i, 1] = upper / n_draws
    return out


@kernel(fastmath=CONTRACT)
def next_hermite(x, own, before, k):
    """From He_k(x) f(x) and He_{k-1}(x) f(x), ``own`` and ``before``, to He_{k+1}(x) f(x), which overwrites ``before``;
    f is any function, and all are (m, n) float64."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            before[i, j] = x[i, j] * own[i, j] - k * before[i, j]


@device(fastmath=REORDER_SUMS)
def _sum_tails(t, tail):
    """Sums of Phi(-t) and Phi(t) from P(N > |t|)."""
    lower, upper = 0.0, 0.0
    for s in range(t.shape[0]):
        lower += tail[s] if t[s] > 0.0 else 1.0 - tail[s]
        upper += 1.0 - tail[s] if t[s] > 0.0 else tail[s]
    return lower, upper
