"""Gaussians with precision H + diag(d) on the GPU, by Cholesky factors of cuSOLVER or of our own."""

import cupy as cp
import numpy as np

from .. import COEF_PURPOSE, JITTERS, LEAST_RESIDUAL, MAX_CHAINS, not_definite
from .cuda import THREADS
from .host_streaming import gpu_array
from .lapack import VERDICT, potrf, side_by_side, solve_lower, workspaces_for
from .launch import blocks_for, i32, kernel, launch, properties
from .memory import factors_at_a_time


class Cholesky:
    """Lower Cholesky factors of H + diag(d_c), one for each chain, in given matrices.

    If one fits into shared memory, a block for each chain computes it, and solves: one launch for all chains, where the
    library needs several for each, most of the time of a small sweep. Else the library works on the chains side by
    side.
    """

    def __init__(self, H):
        self.H = H
        self.q = q = len(H)
        self.verdict = VERDICT.place()
        self.shared_bytes = 8 * (q * (q + 1) // 2 + 2)  # of a block that computes a factor
        limit = properties(cp.cuda.runtime.getDevice())["sharedMemPerBlockOptin"]
        self.fits = q <= THREADS and self.shared_bytes <= limit
        if not self.fits:
            self.workspaces = workspaces_for(H)
            self.info = cp.zeros(MAX_CHAINS, cp.int32)

    def factorise(self, d, factors, use=None):
        """Compute the factors of all chains in factors (n, q, q), for n chains at a time.

        use(chains, factors) is called for each slice of chains before the matrices are overwritten. Everything is
        queued and the host does not wait: a factorisation that fails is repaired on the GPU, or noted there
        (``lapack``).
        """
        for first in range(0, len(d), len(factors)):
            chains = slice(first, min(first + len(factors), len(d)))
            (self._by_blocks if self.fits else self._by_library)(d[chains], factors, self.verdict[chains])
            if use is not None:
                use(chains, factors[: chains.stop - first])

    def _by_blocks(self, d, factors, verdict):
        arguments = self.H, d, factors, i32(self.q), verdict
        launch(kernel("chains", "factorise_few"), len(d), arguments, shared_bytes=self.shared_bytes)

    def _by_library(self, d, factors, verdict):
        add_diagonal, repair = kernel("chains", "add_diagonal"), kernel("chains", "repair")
        launch(add_diagonal, (blocks_for(self.q**2), len(d)), self.H, d, factors, i32(self.q), np.float64(0.0))

        def factor(c, lane):
            potrf(factors[c], self.workspaces[c % len(self.workspaces)], self.info[c : c + 1], lane)

        side_by_side(factor, len(d), self.q)
        launch(repair, len(d), self.H, d, factors, i32(self.q), self.info, verdict, shared_bytes=16)

    def solve(self, factors, x, transposed=False):
        """L_c^-1 x_c or L_c^-T x_c; factors (n, q, q), x (n, q), or (n, m, q) with m right-hand sides."""
        m = 1 if x.ndim == 2 else x.shape[1]
        if self.fits:
            out = cp.empty(x.shape)
            arguments = factors, cp.ascontiguousarray(x), out, i32(self.q), i32(transposed)
            launch(kernel("chains", "solve_few"), (m, len(x)), arguments, shared_bytes=16)
            return out
        out = x.copy()
        side_by_side(lambda c, lane: solve_lower(factors[c], out[c], transposed, lane), len(out), self.q)
        return out


class Precision:
    """As ``cpu.Precision``; H may be on the host. CuPy keeps the memory of the factors for the next ones."""

    work = ()  # no memory that others could use

    def __init__(self, H, threads, memory_from=None, n_workers=None):
        self.H = H = gpu_array(H)
        self.cholesky = Cholesky(H)

    @staticmethod
    def noise(ops, shape, key, sweep):
        """As ``cpu.Precision.noise``."""
        return ops.normal(shape, key, sweep, COEF_PURPOSE)

    def draw(self, b, d, noise, total=None, gamma=None):
        """As ``cpu.Precision.draw``."""
        beta = cp.empty(b.shape)

        def use(chains, factors):
            half = self.cholesky.solve(factors, b[chains])
            if total is not None:
                residual, twice = total[chains] - (half**2).sum(axis=1), 2.0 * gamma[chains]
                is_right = residual > LEAST_RESIDUAL * total[chains]
                half *= cp.sqrt(twice / cp.where(is_right, residual, twice))[:, None]
            beta[chains] = self.cholesky.solve(factors, half + noise[chains], transposed=True)

        self.cholesky.factorise(d, cp.empty((factors_at_a_time(*d.shape), *self.H.shape)), use)
        return beta

    def inverse_diagonal(self, d, sweep):
        """As ``cpu.Precision.inverse_diagonal``."""
        out = cp.empty_like(d)

        def use(chains, factors):
            for factor, diagonal in zip(factors, out[chains]):  # noqa: B905 - as many of both
                (inverse,) = self.cholesky.solve(factor[None], cp.eye(len(factor))[None])  # row j is column j of L^-1
                diagonal[...] = (inverse**2).sum(axis=1)

        self.cholesky.factorise(d, cp.empty((1, *self.H.shape)), use)
        return out


class Root:
    """As ``cpu.Root``; H may be on the host."""

    def __init__(self, H):
        H, q = gpu_array(H), len(H)
        factor, none, info = cp.empty(H.shape), cp.zeros(q), cp.zeros(1, cp.int32)
        workspace, *_ = workspaces_for(H)
        for jitter in JITTERS:  # the host may wait, since this is done once
            launch(kernel("chains", "add_diagonal"), blocks_for(q * q), H, none, factor, i32(q), np.float64(jitter))
            potrf(factor, workspace, info)
            if int(info[0]) == 0 and float(factor[-1, -1]) > 0.0:  # the library ignores NaN, which ends in the last
                break
        else:
            raise not_definite(q, int(info[0]) or q)
        self.transposed = cp.triu(factor)  # column j of the factor is row j in memory

    def times(self, x):
        """L x_c; x (m, q)."""
        return x @ self.transposed
