"""Questions to the rows of X on the GPU: the fused passes, X'X and the information, moments.

Every sum has one owner and a fixed order, so the result has the same bits in every run on the same card.
"""

from functools import cache

import cupy as cp

from ._gpu_kernels import (
    blocks_for,
    i32,
    i64,
    kernel,
    launch,
    properties,
    random_arguments,
    resident_blocks,
)
from ._gpu_memory import WIDENED
from ._moments import combine_moments
from .cuda import MAX_CHAINS, THREADS, TYPES, definitions, layout

_REDUCED = 32  # sums that a block of the second stage adds


def hold(X, y, weight):
    """X (n, p), y (n,) and the weights (n,) or (0,), C-contiguous on the current device."""
    X = cp.ascontiguousarray(cp.asarray(X))
    return X if X.data.ptr % 16 == 0 else X.copy(), cp.asarray(y, dtype=cp.uint8), cp.asarray(weight)


def latent(X, y, coef, bounds, sweep, key, threads):
    """As ``cpu.latent``; ``bounds`` and ``threads`` say nothing to a GPU."""
    (n, p), (n_chains, q) = X.shape, coef.shape
    out = cp.empty((n_chains, q + 1))
    for first in range(0, n_chains, MAX_CHAINS):
        some = coef[first : first + MAX_CHAINS]
        plan = _plan("latent_pass", X, some)
        sums = plan.sums()
        plan.run(
            (X, y, plan.padded(some), sums, i64(n), i32(p), i32(q), i32(len(some)), i32(first)),
            random_arguments(key, sweep),
        )
        plan.add(sums, out[first : first + MAX_CHAINS])
    return out[:, :q], out[:, q]


def score(X, y, weight, coef, bounds, threads):
    """As ``cpu.score``."""
    (n, p), (n_chains, q) = X.shape, coef.shape
    out = cp.empty((n_chains, q + 1))
    for first in range(0, n_chains, MAX_CHAINS):
        some = coef[first : first + MAX_CHAINS]
        plan = _plan("score_pass", X, some)
        sums = plan.sums()
        sizes = i64(n), i32(p), i32(q), i32(len(some)), i32(len(weight) > 0)
        plan.run((X, y, weight, plan.padded(some), sums, *sizes))
        plan.add(sums, out[first : first + MAX_CHAINS])
    return out[:, q], out[:, :q]


def _plan(name, X, coef):
    return _Plan(cp.cuda.runtime.getDevice(), name, X.shape, X.dtype.name, coef.shape)


@cache
class _Plan:
    """A pass for rows and chains of these shapes: its kernel, its layout and its grid."""

    def __init__(self, device, name, shape, dtype, coef_shape):
        n, p = shape
        self.n_chains, self.q = coef_shape
        limit = properties(device)["sharedMemPerBlockOptin"]
        self.layout = layout(p, self.q, self.n_chains, dtype, limit)
        self.definitions = definitions(self.layout.chains, dtype, self.layout.staged)
        self.real = {4: cp.float32, 8: cp.float64}[TYPES[dtype][3]]
        self.function = kernel("passes", name, self.definitions)
        tiles = -(-n // self.layout.tile)
        self.blocks = int(min(tiles, resident_blocks(self.function, self.layout.shared_bytes)))

    def padded(self, coef):
        """Coefficients as the kernel reads them: (q, chains), those of chains that are not there zero."""
        out = cp.zeros((self.q, self.layout.chains), self.real)
        out[:, : self.n_chains] = coef.T
        return out

    def sums(self):
        return cp.empty((self.blocks, self.q + 1, self.layout.chains))

    def run(self, arguments, random=()):
        cut = i32(self.layout.tile), i32(self.layout.buffers)
        launch(self.function, self.blocks, *arguments, *cut, *random, shared_bytes=self.layout.shared_bytes)

    def add(self, sums, out):
        """out = the sums of all blocks; out (n_chains, rows) is contiguous."""
        _, rows, chains = sums.shape
        add_blocks = kernel("passes", "add_blocks", self.definitions)
        sizes = i32(self.blocks), i32(rows), i32(self.n_chains)
        launch(add_blocks, -(-rows * chains // _REDUCED), sums, out, *sizes, shared_bytes=8 * THREADS)


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As ``cpu.gram``, on the host: it is asked for a few times in a fit."""
    n, p = X.shape
    q = p + fit_intercept
    step = max(1, min(n, WIDENED // q))
    total = cp.zeros((q, q))
    centre, scale = cp.asarray(centre), cp.asarray(scale)
    if beta is not None:
        beta = cp.asarray(beta)
    for start in range(0, n, step):
        rows = widened(X[start : start + step], q)
        rows[:, :p] = (rows[:, :p] - centre) / scale
        squared = weight[start : start + step]
        if beta is not None:
            information = _information(rows, beta, X)
            squared = squared * information if len(weight) else information
        total += (rows.T * squared if squared.size else rows.T) @ rows
    return cp.asnumpy((total + total.T) / 2)


def _information(rows, beta, X):
    """The mean over the rows of beta (m, q) of phi(eta)^2 / (Phi(eta) Phi(-eta)), eta = x beta, for each row x."""
    eta, out = cp.ascontiguousarray(rows @ beta.T), cp.empty(len(rows))
    function = kernel("rows", "information_weights", element(X))
    launch(function, blocks_for(len(rows)), eta, out, i64(len(rows)), i32(len(beta)))
    return out


def moments(X, weight):
    """As ``cpu.moments``, on the host."""
    step = max(1, min(len(X), WIDENED // X.shape[1]))
    blocks = (slice(start, start + step) for start in range(0, len(X), step))
    mean, variance = combine_moments(
        (widened(X[rows], X.shape[1]), weight[rows] if len(weight) else cp.ones(len(X[rows]))) for rows in blocks
    )
    return cp.asnumpy(mean), cp.asnumpy(variance)


def widened(X, q):
    """Rows in float64, with a column of ones if q says so."""
    out = cp.empty((len(X), q))
    function = kernel("rows", "widen_rows", element(X))
    launch(function, blocks_for(out.size), X, out, i64(len(X)), i32(X.shape[1]), i32(q))
    return out


def element(X):
    return (f"-DELEMENT={TYPES[X.dtype.name][0]}",)
