"""The mass matrix of split Hamiltonian Monte Carlo on the GPU: the precision of the Gaussian of reference and prior."""

import cupy as cp
import numpy as np

from .. import MOMENTUM_PURPOSE, Trajectory
from .cuda import WARPS
from .gaussian import Cholesky
from .host_streaming import gpu_array
from .launch import blocks_for, i32, kernel, launch, random_arguments
from .variates import normal


class MassMatrix:
    """As ``cpu.MassMatrix``; ``set_reference`` gives it H and b."""

    def __init__(self, H, b, n_chains, p, threads, memory_from=None):
        q = len(H)
        self.p = p
        self.H = gpu_array(H)
        self.b = None if b is None else cp.asarray(b)
        self.cholesky = Cholesky(self.H)
        self.cholesky_factors, self.spare = cp.empty((2, n_chains, q, q))
        self.mean = self.log_norm = self.quadratic = None
        self.columns = self.at = self.units = None  # columns whose lambda_j move, on the host and here; unit vectors

    def set_reference(self, H, b):
        """Take H and b of another reference."""
        self.H[...] = gpu_array(H)
        self.b = cp.asarray(b)

    def begin(self, reference, state, key, same_scales=False):
        """As ``cpu.MassMatrix.begin``."""
        beta, self.quadratic = state.beta, reference[:3]  # without this mass matrix, which would make a cycle
        n_chains, q = beta.shape
        if not same_scales:
            self._set(state.lambda_sq_inv, state.tau_sq_inv)
        u, v = cp.empty_like(beta), normal(beta.shape, key, state.sweep, MOMENTUM_PURPOSE)
        product = kernel("chains", "multiply_transposed")
        launch(product, (blocks_for(32 * q), n_chains), self.cholesky_factors, beta - self.mean, u, i32(q))
        return self._with_force(u, v, None, beta, state.loglik, state.score)

    def kick_and_rotate(self, trajectory, angle):
        """As ``cpu.MassMatrix.kick_and_rotate``."""
        cos, sin, v = cp.cos(angle), cp.sin(angle), trajectory.v - angle / 2 * trajectory.force
        return trajectory._replace(u=trajectory.u * cos + v * sin, v=v * cos - trajectory.u * sin)

    def to_beta(self, trajectory):
        """As ``cpu.MassMatrix.to_beta``."""
        return self.mean + self.cholesky.solve(self.cholesky_factors, trajectory.u, transposed=True)

    def kick(self, trajectory, angle, beta, loglik, score):
        """As ``cpu.MassMatrix.kick``."""
        return self._with_force(trajectory.u, trajectory.v, angle, beta, loglik, score)

    def _with_force(self, u, v, angle, beta, loglik, score):
        """The ``Trajectory`` with the force L^-1 grad U at beta, after a half-kick of v unless the angle is None."""
        point, score_there, information = self.quadratic
        centred = beta - point
        pull = centred @ information
        U = (centred * (score_there - pull / 2)).sum(axis=1) - loglik
        force = self.cholesky.solve(self.cholesky_factors, score_there - pull - score)
        v = v if angle is None else v - angle / 2 * force
        return Trajectory(u, v, force, U + (u**2 + v**2).sum(axis=1) / 2)

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """As ``cpu.MassMatrix.move_scales``."""
        tau_step = cp.zeros(1) + tuning.tau_step
        accepted = cp.zeros_like(tau_sq_inv)
        for move in range(tuning.tau_moves):
            if move == tuning.tau_moves // 2 and len(tuning.slow):
                lambda_sq_inv = self._move_lambda_marginally(lambda_sq_inv, tau_sq_inv, tuning.slow, sweep, key)
            moved = self._move_tau(lambda_sq_inv, tau_sq_inv, tau_0, tau_step, move, sweep, key)
            lambda_sq_inv, tau_sq_inv, accept = moved
            accepted = accepted + accept
        return lambda_sq_inv, tau_sq_inv, accepted / tuning.tau_moves

    def _set(self, lambda_sq_inv, tau_sq_inv):
        """Compute the Gaussian given these scales."""
        d = cp.zeros((len(tau_sq_inv), len(self.H)))
        d[:, : self.p] = tau_sq_inv[:, None] * lambda_sq_inv
        self.cholesky.factorise(d, self.cholesky_factors)
        self.mean, self.log_norm = self._moments(self.cholesky_factors, d)

    def _moments(self, factors, d):
        n_chains, q = d.shape
        half = self.cholesky.solve(factors, cp.zeros_like(d) + self.b)
        log_det = cp.log(factors.reshape(n_chains, q * q)[:, :: q + 1]).sum(axis=1)
        log_norm = 0.5 * cp.log(d[:, : self.p]).sum(axis=1) - log_det + 0.5 * (half**2).sum(axis=1)
        return self.cholesky.solve(factors, half, transposed=True), log_norm

    def _move_tau(self, lambda_sq_inv, tau_sq_inv, tau_0, tau_step, move, sweep, key):
        """lambda^-2 and tau^-2 after a Metropolis step of tau, and the chains that accept it, without the host."""
        n_chains, q = self.mean.shape
        proposed, level, moved, d = (cp.empty_like(a) for a in (tau_sq_inv, tau_sq_inv, lambda_sq_inv, self.mean))
        scales = cp.ascontiguousarray(lambda_sq_inv), tau_sq_inv
        inputs = self.H, i32(self.p), i32(q), self.log_norm, np.float64(tau_0), tau_step, scales
        out, random = (proposed, level, moved, d), (np.uint32(move), random_arguments(key, sweep))
        launch(kernel("chains", "propose_scales"), n_chains, inputs, out, random, shared_bytes=8 * WARPS)
        self.cholesky.factorise(d, self.spare)
        mean, log_norm = self._moments(self.spare, d)
        accept = log_norm > level
        self.mean = cp.where(accept[:, None], mean, self.mean)
        self.log_norm = cp.where(accept, log_norm, self.log_norm)
        cp.copyto(self.cholesky_factors, self.spare, where=accept[:, None, None])
        return cp.where(accept[:, None], moved, lambda_sq_inv), cp.where(accept, proposed, tau_sq_inv), accept

    def _move_lambda_marginally(self, lambda_sq_inv, tau_sq_inv, columns, sweep, key):
        """lambda^-2 after slice steps of lambda_j of these columns, numbers on the host."""
        n_chains, k = len(lambda_sq_inv), len(columns)
        if self.columns != tuple(columns):  # the same in every sweep after burn-in
            units = np.zeros((k, self.cholesky.q))
            units[np.arange(k), columns] = 1.0
            self.columns, self.at, self.units = tuple(columns), *map(cp.asarray, (np.array(columns), units))
        at = self.at
        P = cp.empty((n_chains, k, k))
        for c in range(n_chains):
            (half,) = self.cholesky.solve(self.cholesky_factors[c : c + 1], self.units[None])
            P[c] = half @ half.T
        out, moved = lambda_sq_inv.copy(), cp.ascontiguousarray(lambda_sq_inv[:, at])
        arguments = P, cp.ascontiguousarray(self.mean[:, at]), moved, tau_sq_inv, i32(k), random_arguments(key, sweep)
        launch(kernel("chains", "move_slow_lambda"), n_chains, arguments, shared_bytes=8 * k)
        out[:, at] = moved
        self._set(out, tau_sq_inv)
        return out
