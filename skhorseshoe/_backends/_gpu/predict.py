"""Linear predictors and probabilities of blocks of rows for all draws, on the GPU, with one block there at a time."""

import cupy as cp
from cupyx.scipy import special

from .cuda import THREADS
from .dense_passes import widened
from .host_streaming import gpu_array
from .launch import i32, kernel, launch
from .memory import PREDICTED_ROWS

PREDICTORS_AT_ONCE = 2**22  # number of linear predictors with Hermite functions at a time, so that launches are few
_BLOCK_NUMBERS = 2**25  # largest number of linear predictors, or of elements of X, of a block


def average_probabilities(eta, likelihood):
    """As ``cpu.average_probabilities``."""
    means = cp.empty((len(eta), 2))
    if likelihood.number is None:
        return likelihood.averages(eta, special, means)
    function = kernel("answers", "mean_probabilities")
    launch(function, len(eta), eta, means, i32(eta.shape[1]), shared_bytes=8 * THREADS // 32)
    return means


def each_block(X, coef, threads, budget, use, together=1):
    """As ``cpu.each_block``, with products on the GPU and a budget of its own; X may be on the host."""
    coef = gpu_array(coef).astype(cp.float64, copy=False)
    (m, p), n = coef.shape, X.shape[0]
    size = max(1, min(PREDICTED_ROWS, _BLOCK_NUMBERS // max(m, p)) // together) * together
    rows = cp.zeros((size, p))  # of one shape, so that the product treats a row alike in any block
    for start in range(0, n, size):
        block = cp.ascontiguousarray(gpu_array(X[start : start + size]))
        rows[: len(block)] = widened(block, p)
        eta = cp.ascontiguousarray(rows @ coef.T)
        use(eta[: len(block)], slice(start, start + len(block)))


def next_hermite(x, current, last, k):
    """As ``cpu.next_hermite``."""
    last *= -k
    last += x * current


def quantiles(values, levels, increasing=None):
    """As ``cpu.quantiles``."""
    values = values if increasing is None else increasing(values, out=values)
    return cp.ascontiguousarray(cp.quantile(values, cp.asarray(levels), axis=1).T)
