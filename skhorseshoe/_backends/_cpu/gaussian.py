"""Gaussians with precision H + diag(d), a different d for each chain, by Cholesky factors."""

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsv
from scipy.linalg.lapack import dpotri

from .. import COEF_PURPOSE, LEAST_RESIDUAL, Trajectory, not_definite
from .library import function, record

_upper_factor = function("upper_factor")
_begin_trajectory, kick_and_rotate_trajectory = function("begin_trajectory"), function("kick_and_rotate_trajectory")
_trajectory_beta, _kick_trajectory = function("trajectory_beta"), function("kick_trajectory")
_move_scales, _fused_trajectory = function("move_scales"), function("fused_trajectory")

_SHARED_SIZE = 128  # least number of columns of a matrix for which threads share the chains


class Precision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), with b and d of each chain.

    H : (q, q) float64, symmetric positive semi-definite.
    """

    def __init__(self, H, threads, memory_of=None, n_workers=None):
        """memory_of : a Precision of the same size that is not used while this one is. n_workers : threads that compute
        Cholesky factors, each with a matrix; all by default."""
        self.H = H
        self.threads = threads
        n_workers = (n_workers or threads.n) if len(H) >= _SHARED_SIZE else 1
        self.work = [np.empty_like(H) for _ in range(n_workers)] if memory_of is None else memory_of.work

    def begin(self, d):
        """Announces a ``draw`` with this d, so that other back ends can begin before b is known; nothing here."""

    @staticmethod
    def noise(ops, shape, key, sweep):
        """The random part of ``draw``."""
        return ops.normal(shape, key, sweep, COEF_PURPOSE)

    def draw(self, b, d, noise, total=None, gamma=None):
        """beta_c = g_c Q_c^-1 b_c + L_c^-T noise_c with Q_c = L_c L_c'; (n_chains, q) float64, as b, d and noise.

        g_c is 1, or with total and gamma (n_chains,) that of g_c^2 = 2 gamma_c / (total_c - b_c' Q_c^-1 b_c).
        """
        beta = np.empty_like(b)

        def draw_chain(w, c):
            factor = _lower_factor(self.H, d[c], self.work[w])
            half = dtrsv(factor, b[c], lower=1)
            if total is not None:
                residual = total[c] - half @ half
                if residual > LEAST_RESIDUAL * total[c]:
                    half *= np.sqrt(2.0 * gamma[c] / residual)
            half += noise[c]
            beta[c] = dtrsv(factor, half, lower=1, trans=1, overwrite_x=1)

        _share_out(self.threads, self.work, len(b), draw_chain)
        return beta

    def inverse_diagonal(self, d, sweep):
        """The diagonal of Q_c^-1; (n_chains, q). sweep : for implementations that need random numbers."""
        out = np.empty_like(d)
        for c in range(len(d)):
            inverse, _ = dpotri(_lower_factor(self.H, d[c], self.work[0]), lower=1, overwrite_c=1)
            out[c] = np.diag(inverse)
        return out


def _lower_factor(H, d, work):
    """The lower Cholesky factor of H + diag(d) in Fortran order, in ``work``; its upper triangle is undefined."""
    minor = _upper_factor(H, np.ascontiguousarray(d), len(H), work)  # transposed, the lower factor
    if minor:
        raise not_definite(len(H), minor)
    return work.T


class Root:
    """L with L L' = H, for Gaussians with covariance H (q, q), which is positive semi-definite."""

    def __init__(self, H):
        self.factor = _lower_factor(H, np.zeros(len(H)), np.empty_like(H))

    def times(self, x):
        """L x_c; x (m, q)."""
        return dtrmm(1.0, self.factor, x.T, lower=1).T


class Whitening:
    """The Gaussian N(m, M^-1) of each chain, M = H + diag(d) = L L', m = M^-1 b, and its position u = L'(beta - m).

    H : (q, q) float64. b : (n_chains, q) float64, or (q,) for all. d is tau^-2 lambda^-2 for the first p coefficients,
    0 for the others. Each method is one call of the core (``exports/trajectories.cpp``) for a range of chains, and
    overwrites the trajectory that it is given.
    """

    def __init__(self, H, b, n_chains, p, threads, memory_of=None):
        """memory_of : a Precision of the same size that is not used while this computes."""
        q = len(H)
        self.threads, self.H, self.b = threads, H, b
        n_workers = threads.n if q >= _SHARED_SIZE else 1
        self.spare = memory_of.work if memory_of else [np.empty((q, q)) for _ in range(n_workers)]
        self.factors, self.mean, self.log_norm = np.empty((n_chains, q, q)), np.empty((n_chains, q)), np.empty(n_chains)
        self._p, self._last_reference = p, None
        if b is not None:
            self._record()

    def refer(self, H, b):
        """Take another H and b."""
        self.H[...] = H
        self.set_b(b)

    def set_b(self, b):
        """Take another b."""
        self.b = b
        self._record()

    def _record(self):
        """Make the record ``Gaussians``."""
        arrays = {"factors": self.factors, "mean": self.mean, "log_norm": self.log_norm}
        self._all = record("Gaussians", H=self.H, b=self._by_chain(self.b), p=self._p, q=len(self.H), **arrays)

    def _reference_record(self, reference):
        if self._last_reference is not reference:
            point, slope, information, _ = self._last_reference = reference
            self._reference = record("Reference", point=point, slope=self._by_chain(slope), information=information)
        return self._reference

    def _by_chain(self, values):
        return np.ascontiguousarray(np.broadcast_to(values, self.mean.shape))

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v. same_scales : whether the one before ended with its scales."""
        trajectory = Trajectory(*np.empty((3, *state.beta.shape)), np.empty(len(state.beta)))
        records, arrays = (self._all, self._reference_record(reference)), map(np.ascontiguousarray, state[:5])
        arguments = *records, *arrays, state.sweep, *key, same_scales
        self._share(lambda spare, *chains: _begin_trajectory(*arguments, *chains, *trajectory))
        return trajectory

    def kick_and_rotate(self, trajectory, angle):
        """A half-kick of v, and a rotation of (u, v) by an angle."""
        kick_and_rotate_trajectory(angle, *trajectory[:3], trajectory.u.size)
        return trajectory

    def to_beta(self, trajectory):
        """beta = m + L^-T u."""
        beta = np.empty_like(trajectory.u)
        self._share(lambda spare, *chains: _trajectory_beta(self._all, *chains, trajectory.u, beta))
        return beta

    def kick(self, trajectory, angle, reference, beta, loglik, score):
        """A half-kick of v at beta, with the force and the energy there."""
        arguments = angle, self._all, self._reference_record(reference), beta, loglik, np.ascontiguousarray(score)
        self._share(lambda spare, *chains: _kick_trajectory(*arguments, *chains, *trajectory))
        return trajectory

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau, of the slow lambda_j and of tau again, which is reversible, with u
        held; and the share of the moves of tau that were accepted."""
        scales = lambda_sq_inv.copy(), tau_sq_inv.copy(), np.empty(len(tau_sq_inv))
        arguments = self._all, tau_0, *_moves(tuning), sweep, *key
        self._share(lambda spare, *chains: _move_scales(*arguments, *chains, spare, *scales))
        return scales

    def fused_trajectory(self, state, rows, reference, tuning, tau_0, key, same_scales):
        """The state after a trajectory and its test, in one call. rows : their record."""
        new, acceptance = [np.array(values, order="C") for values in state[:5]], np.empty(len(state.beta))
        tau_acceptance = np.empty(len(acceptance)) if tuning.tau_moves else None
        records, steps = (self._all, self._reference_record(reference), rows), (tuning.step, tuning.n_steps)
        arguments = *records, *steps, tau_0, *_moves(tuning), state.sweep, *key, same_scales
        self._check(_fused_trajectory(*arguments, len(acceptance), self.spare[0], *new, acceptance, tau_acceptance))
        return *new, state.sweep, acceptance, state.tau_acceptance if tau_acceptance is None else tau_acceptance

    def _share(self, task):
        """Call task(spare, first, last) for ranges of chains, with scratch that no other thread uses meanwhile."""
        n_chains, q = self.mean.shape
        if q < _SHARED_SIZE:
            self._check(task(self.spare[0], 0, n_chains))
        else:
            _share_out(self.threads, self.spare, n_chains, lambda w, c: self._check(task(self.spare[w], c, c + 1)))

    def _check(self, minor):
        if minor:
            raise not_definite(len(self.H), minor)


def _moves(tuning):
    slow = np.asarray(tuning.slow, np.int64)
    return tuning.tau_step, tuning.tau_moves, slow, len(slow)


def _share_out(threads, spare, n_chains, task):
    """Call task(w, c) for each chain c, with scratch spare[w] that no other thread uses meanwhile."""

    def run_worker(first, last):
        for w in range(first, last):
            for c in range(w, n_chains, len(spare)):
                task(w, c)

    threads.run(run_worker, len(spare))
