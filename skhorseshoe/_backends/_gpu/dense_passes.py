"""Questions to the rows of X on the GPU: the fused passes, X'X and the information, moments.

Every sum has one owner and a fixed order, so the result has the same bits in every run on the same card.
"""

from functools import cache

import cupy as cp

from ..moments import combine_moments
from .cuda import MAX_CHAINS, TYPES, definitions, layout, waves
from .gaussian import factor_bytes, fits_one_block
from .host_streaming import HostRows, Streamed, brought
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
from .line_moves import TOGETHER, side_by_side
from .memory import WIDENED


def hold(X, y, weight):
    """X (n, p), y (n,) and the weights (n,) or (0,), C-contiguous on the current device; X only if there is room."""
    if isinstance(X, HostRows):
        X = Streamed(X)
    else:
        X = cp.ascontiguousarray(brought(X))
        X = X if X.data.ptr % 16 == 0 else X.copy()
    return X, cp.asarray(brought(y), dtype=cp.uint8), brought(weight)


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0):
    """As ``cpu.latent``; ``bounds`` and ``threads`` say nothing to a GPU."""
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
    both, steps = side_by_side(coef, direction), cp.ascontiguousarray(steps)
    (n_lines, n_steps), weighted = steps.shape, i32(len(weight) > 0)
    plan = _plan("line_pass", X, both[: 2 * TOGETHER])

    def lines_of(first, vectors):
        return i32(vectors // 2), weighted, steps[first // 2 :], i32(n_steps)

    out = cp.empty((n_lines, n_steps))
    for first, vectors, sums in plan.sums(X, (y, weight), both, lines_of, lambda vectors: vectors // 2 * n_steps):
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
        self.together = min(n_chains, MAX_CHAINS)
        room, adds_rows = (shared_limits(device), cached_bytes(device)), name != "line_pass"
        self.layout = layout(self.p, q, self.together, dtype, *room, adds_rows)
        self.definitions = definitions(self.layout.chains, dtype, self.layout.staged)
        _, _, element, self.real = TYPES[dtype]  # bytes of a number of X, and of one in which rows are computed
        self.function = kernel("dense_passes", name, self.definitions)
        tiles = -(-self.n // self.layout.tile)
        self.blocks = int(min(tiles, self._wanted(device, name, n_chains, self.n * self.p * element)))
        # As the kernel cuts the rows.
        self.edges = [min(self.n, tiles * b // self.blocks * self.layout.tile) for b in range(self.blocks + 1)]

    def _wanted(self, device, name, n_chains, size):
        """Blocks that run at the same time; of latents, beside which factors are computed, such as leave them room."""
        count = properties(device)["multiProcessorCount"]
        room = max(1, resident_blocks(self.function, self.layout.shared_bytes))
        resident = count * min(room, self.layout.at_a_time)
        if name != "latent_pass" or self.layout.at_a_time < room:
            return resident
        if not fits_one_block(self.q):
            return resident * waves(self.layout, self.q, resident, count, size)
        # A block that finds no room begins when others end, and the pass then takes twice as long.
        taken = n_chains * (room - resident_blocks(self.function, self.layout.shared_bytes, (factor_bytes(self.q),)))
        return resident - taken if resident > 8 * taken else resident

    def run(self, X, columns, coef, chains_of, random=()):
        """Sums over the rows (n_chains, q + 1); arguments as of ``sums``."""
        out, rows = cp.empty((len(coef), self.q + 1)), (self.q + 1) * self.layout.chains
        for first, n_chains, sums in self.sums(X, columns, coef, chains_of, lambda n_chains: rows, random):
            total = sums.reshape(self.blocks, self.q + 1, -1).sum(axis=0)
            out[first : first + n_chains] = total[:, :n_chains].T
        return out

    def sums(self, X, columns, coef, chains_of, size, random=()):
        """Of each launch the number of the first chain, how many they are, and the sums of the blocks (blocks, size).

        columns : what there is of each row beside X. chains_of : the arguments for so many chains from the first on.
        size : the sums that a block has of so many chains.
        """
        groups = []
        for first in range(0, len(coef), self.together):
            some = coef[first : first + self.together]
            sums = cp.empty((self.blocks, size(len(some))))
            groups.append((first, len(some), padded(some, self.layout.chains, self.real), sums))
        for (block, end), row, part in self._parts(X):  # all chains share a part
            cut = i32(self.layout.tile), i64(row), i32(block), i32(self.blocks)
            for first, n_chains, by_column, sums in groups:
                sizes = i64(self.n), i32(self.p), i32(self.q), *chains_of(first, n_chains)
                given = part, *columns, by_column, sums[block:end], *sizes, *cut, *random
                launch(self.function, end - block, *given, shared_bytes=self.layout.shared_bytes)
        return [(first, n_chains, sums) for first, n_chains, _, sums in groups]

    def _parts(self, X):
        return X.parts(self.edges) if isinstance(X, Streamed) else [((0, self.blocks), 0, X)]


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
            information = _information(cp.ascontiguousarray(rows @ beta.T))
            squared = squared * information if len(weight) else information
        total += (rows.T * squared if squared.size else rows.T) @ rows
    return cp.asnumpy((total + total.T) / 2)


def _information(eta):
    """The mean over each row of eta (n, m) of phi(eta)^2 / (Phi(eta) Phi(-eta)); (n,)."""
    (n, m), out = eta.shape, cp.empty(len(eta))
    launch(kernel("answers", "information_weights"), blocks_for(n), eta, out, i64(n), i32(m))
    return out


def moments(X, weight):
    """As ``cpu.moments``, on the host."""
    step = max(1, min(len(X), WIDENED // X.shape[1]))
    weight = weight if len(weight) else cp.ones(len(X))
    blocks = (slice(start, start + step) for start in range(0, len(X), step))
    mean, variance = combine_moments((widened(X[rows], X.shape[1]), weight[rows]) for rows in blocks)
    return cp.asnumpy(mean), cp.asnumpy(variance)


def widened(X, q):
    """Rows, which may be on the host, in float64, with a column of ones if q says so."""
    X = brought(X)
    out, p = cp.empty((len(X), q)), X.shape[1]
    out[:, :p], out[:, p:] = X, 1.0
    return out
