"""Functions of the rows of X on the GPU: the fused passes, X'X and the information, moments.

Every sum has one owner and a fixed order, so that every run on the same card gives the same bits.
"""

from functools import cache

import cupy as cp

from ..moments import combine_moments
from .cuda import PASS_CHAINS, TYPES, definitions, layout
from .host_streaming import HostRows, Streamed, gpu_array
from .launch import (
    blocks_for,
    cached_bytes,
    i32,
    i64,
    kernel,
    launch,
    padded,
    properties,
    random_arguments,
    resident_blocks,
    shared_limits,
)
from .line_proposals import LINES_PER_LAUNCH, with_directions
from .memory import WIDENED_NUMBERS


def hold(X, y, weight):
    """X (n, p), y (n,) and the weights (n,) or (0,), C-contiguous on the current device; X only if it fits."""
    if isinstance(X, HostRows):
        X = Streamed(X)
    else:
        X = cp.ascontiguousarray(gpu_array(X))
        X = X if X.data.ptr % 16 == 0 else X.copy()
    return X, cp.asarray(gpu_array(y), dtype=cp.uint8), gpu_array(weight)


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0):
    """As ``cpu.latent``; bounds and threads are not used."""
    plan, random = _plan("latent_pass", X, coef), random_arguments(key, sweep)
    out = plan.run(X, (y,), coef, lambda first, chains: (i32(chains), i32(first), i64(first_row)), random)
    return out[:, :-1], out[:, -1]


def score(X, y, weight, coef, bounds, threads):
    """As ``cpu.score``."""
    plan = _plan("score_pass", X, coef)
    out = plan.run(X, (y, weight), coef, lambda first, chains: (i32(chains), i32(len(weight) > 0)))
    return out[:, -1], out[:, :-1]


def line(X, y, weight, coef, direction, steps, bounds, threads):
    """As ``cpu.line``."""
    both, steps = with_directions(coef, direction), cp.ascontiguousarray(steps)
    (n_lines, n_steps), weighted = steps.shape, i32(len(weight) > 0)
    plan = _plan("line_pass", X, both[: 2 * LINES_PER_LAUNCH])

    def line_arguments(first, vectors):
        return i32(vectors // 2), weighted, steps[first // 2 :], i32(n_steps)

    out = cp.empty((n_lines, n_steps))
    for first, vectors, sums in plan.sums(X, (y, weight), both, line_arguments, lambda vectors: vectors // 2 * n_steps):
        out[first // 2 : (first + vectors) // 2] = sums.sum(axis=0).reshape(-1, n_steps)
    return out


def _plan(name, X, coef):
    n_chains, q = coef.shape
    return _Plan(cp.cuda.runtime.getDevice(), name, X.shape, X.dtype.name, n_chains, q)


@cache
class _Plan:
    """A pass over rows of this shape, for this number of chains: its kernel, its layout and its grid."""

    def __init__(self, device, name, shape, dtype, n_chains, q):
        (self.n, self.p), self.q = shape, q
        self.n_chains = min(n_chains, PASS_CHAINS)  # of one launch
        limits, cached, adds_rows = shared_limits(device), cached_bytes(device), name != "line_pass"
        self.layout = layout(self.p, q, self.n_chains, dtype, limits, cached, adds_rows)
        self.definitions = definitions(self.layout.chains, dtype, self.layout.staged)
        self.real = TYPES[dtype][-1]  # bytes of a number of the type of arithmetic
        self.function = kernel("dense_passes", name, self.definitions)
        tiles = -(-self.n // self.layout.tile)
        at_a_time = min(self.layout.at_a_time, resident_blocks(self.function, self.layout.shared_bytes))
        self.blocks = min(tiles, properties(device)["multiProcessorCount"] * max(1, at_a_time))
        # The rows of each block, as in the kernel.
        self.edges = [min(self.n, tiles * b // self.blocks * self.layout.tile) for b in range(self.blocks + 1)]

    def run(self, X, columns, coef, chain_arguments, random=()):
        """Sums over the rows (n_chains, q + 1); arguments as of ``sums``."""
        out, size = cp.empty((len(coef), self.q + 1)), (self.q + 1) * self.layout.chains
        for first, n_chains, sums in self.sums(X, columns, coef, chain_arguments, lambda n_chains: size, random):
            total = sums.reshape(self.blocks, self.q + 1, -1).sum(axis=0)
            out[first : first + n_chains] = total[:, :n_chains].T
        return out

    def sums(self, X, columns, coef, chain_arguments, size, random=()):
        """For each launch the first chain, the number of chains, and the sums of the blocks (blocks, size).

        columns : arrays by row. chain_arguments(first, n_chains) : arguments for these chains. size(n_chains) : sums of
        a block.
        """
        launches = []
        for first in range(0, len(coef), self.n_chains):
            chains = coef[first : first + self.n_chains]
            sums = cp.empty((self.blocks, size(len(chains))))
            launches.append((first, len(chains), padded(chains, self.layout.chains, self.real), sums))
        for (block, end), row, rows in self._parts(X):  # all chains share a part of X
            cut = i32(self.layout.tile), i64(row), i32(block), i32(self.blocks)
            for first, n_chains, by_column, sums in launches:
                sizes = i64(self.n), i32(self.p), i32(self.q), chain_arguments(first, n_chains)
                arguments = rows, columns, by_column, sums[block:end], sizes, cut, random
                launch(self.function, end - block, arguments, shared_bytes=self.layout.shared_bytes)
        return [(first, n_chains, sums) for first, n_chains, _, sums in launches]

    def _parts(self, X):
        return X.parts(self.edges) if isinstance(X, Streamed) else [((0, self.blocks), 0, X)]


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As ``cpu.gram``, on the host; called a few times in a fit."""
    n, p = X.shape
    q = p + fit_intercept
    step = max(1, min(n, WIDENED_NUMBERS // q))
    total = cp.zeros((q, q))
    centre, scale = cp.asarray(centre), cp.asarray(scale)
    if beta is not None:
        beta = cp.asarray(beta)
    for start in range(0, n, step):
        rows = widened(X[start : start + step], q)
        rows[:, :p] = (rows[:, :p] - centre) / scale
        row_weight = weight[start : start + step]
        if beta is not None:
            information = _mean_weights(cp.ascontiguousarray(rows @ beta.T))
            row_weight = row_weight * information if len(weight) else information
        total += (rows.T * row_weight if row_weight.size else rows.T) @ rows
    return cp.asnumpy((total + total.T) / 2)


def _mean_weights(eta):
    """The mean over each row of eta (n, m) of the information; (n,)."""
    (n, m), out = eta.shape, cp.empty(len(eta))
    launch(kernel("answers", "information_weights"), blocks_for(n), eta, out, i64(n), i32(m))
    return out


def moments(X, weight):
    """As ``cpu.moments``, on the host."""
    step = max(1, min(len(X), WIDENED_NUMBERS // X.shape[1]))
    weight = weight if len(weight) else cp.ones(len(X))
    blocks = (slice(start, start + step) for start in range(0, len(X), step))
    mean, variance = combine_moments((widened(X[rows], X.shape[1]), weight[rows]) for rows in blocks)
    return cp.asnumpy(mean), cp.asnumpy(variance)


def widened(X, q):
    """Rows, which may be on the host, as float64 on the GPU (n, q), with a column of ones if q = p + 1."""
    X = gpu_array(X)
    out, p = cp.empty((len(X), q)), X.shape[1]
    out[:, :p], out[:, p:] = X, 1.0
    return out
