"""What a fitted model answers, on the GPU: blocks of rows under all draws. Only a block is on the GPU at a time."""

import cupy as cp
from cupyx.scipy.special import ndtr  # noqa: F401 - part of what a back end offers

from .cuda import THREADS
from .dense_passes import widened
from .host_streaming import brought
from .launch import i32, kernel, launch
from .memory import ANSWERED

SCORES_TOGETHER = 2**22  # of which there are Hermite functions, so that launches are few
_TOGETHER = 2**25  # linear predictors in a block, or elements of X; fewer rows where draws or columns are many


def average_phi(eta):
    """As ``cpu.average_phi``."""
    means = cp.empty((len(eta), 2))
    function = kernel("answers", "mean_phi")
    launch(function, len(eta), eta, means, i32(eta.shape[1]), shared_bytes=8 * THREADS // 32)
    return means


def each_block(X, coef, threads, budget, use):
    """As ``cpu.each_block``, with products on the GPU, whose own budget it is; X may be on the host."""
    coef = brought(coef).astype(cp.float64, copy=False)
    (m, p), n = coef.shape, X.shape[0]
    size = max(1, min(ANSWERED, _TOGETHER // max(m, p)))
    rows = cp.zeros((size, p))  # of one shape, so that the product treats a row alike in any batch
    for start in range(0, n, size):
        some = cp.ascontiguousarray(brought(X[start : start + size]))
        rows[: len(some)] = widened(some, p)
        eta = cp.ascontiguousarray(rows @ coef.T)
        use(eta[: len(some)], slice(start, start + len(some)))


def next_hermite(x, own, before, k):
    """As ``cpu.next_hermite``."""
    before *= -k
    before += x * own


def quantiles(values, levels, of=None):
    """As ``cpu.quantiles``."""
    values = values if of is None else of(values, out=values)
    return cp.ascontiguousarray(cp.quantile(values, cp.asarray(levels), axis=1).T)
