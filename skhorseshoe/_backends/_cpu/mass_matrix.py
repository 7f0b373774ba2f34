"""The mass matrix of split Hamiltonian Monte Carlo: the precision of the Gaussian of reference and prior."""

import numpy as np

from .. import Trajectory, not_definite
from .gaussian import LEAST_SHARED_COLUMNS, share_out
from .library import function, record

_begin_trajectory, kick_and_rotate_trajectory = function("begin_trajectory"), function("kick_and_rotate_trajectory")
_trajectory_beta, _kick_trajectory = function("trajectory_beta"), function("kick_trajectory")
_move_scales, _fused_trajectories = function("move_scales"), function("fused_trajectories")


class Moving:
    """Keeps the record of the trajectory that moves, which is the same in all steps."""

    _moving = None, None

    def _record_of(self, trajectory):
        if self._moving[0] is not trajectory:
            self._moving = trajectory, record("Trajectory", trajectory)
        return self._moving[1]


class MassMatrix(Moving):
    """The Gaussian N(m, M^-1) of each chain, M = H + diag(d) = L L', m = M^-1 b, and its position u = L'(beta - m); and
    the parts of the leapfrog steps for which M is the mass matrix.

    H : (q, q) float64. b : (n_chains, q) float64, or (q,) for all. d is tau^-2 lambda^-2 for the first p coefficients,
    n_contrasts of which, side by side, share a lambda, and 0 for the others. Each method is one call of the core
    (``exports/trajectories.cpp``) for a range of chains, and overwrites the trajectory that it is given.
    """

    def __init__(self, H, b, n_chains, p, threads, memory_from=None, n_contrasts=1):
        """memory_from : a Precision of the same size that is not used while this computes."""
        q = len(H)
        self.threads, self.H, self.b = threads, H, np.empty((n_chains, q))
        n_workers = threads.n if q >= LEAST_SHARED_COLUMNS else 1
        self.spare = memory_from.work if memory_from else [np.empty((q, q)) for _ in range(n_workers)]
        self.cholesky_factors, self.mean = np.empty((n_chains, q, q)), np.empty((n_chains, q))
        self.log_norm = np.empty(n_chains)
        self._sizes = {"p": p, "q": q, "n_contrasts": n_contrasts}
        self._last_reference = self._planned = None
        if b is not None:
            self.set_b(b)
        fields = {"cholesky_factors": self.cholesky_factors, "mean": self.mean, "log_norm": self.log_norm}
        self._all = record("Gaussians", fields | {"H": self.H, "b": self.b, **self._sizes})

    def set_reference(self, H, b):
        """Take H and b of another reference."""
        self.H[...] = H
        self.set_b(b)

    def set_b(self, b):
        """Take another b."""
        self.b[...] = b

    def _reference_record(self, reference):
        if self._last_reference is not reference:
            point, score, information, _ = self._last_reference = reference
            fields = {"point": point, "score": self._by_chain(score), "information": information}
            self._reference = record("Reference", fields)
        return self._reference

    def _by_chain(self, values):
        return np.ascontiguousarray(np.broadcast_to(values, self.mean.shape))

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v. same_scales : whether the one before ended with its scales."""
        trajectory = empty_trajectory(state.beta.shape)
        at = tuple(map(np.ascontiguousarray, state[:5]))
        inputs = self._all, self._reference_record(reference), at, state.sweep, key, same_scales
        self._share(lambda spare, first, last: _begin_trajectory(*inputs, first, last, trajectory))
        return trajectory

    def kick_and_rotate(self, trajectory, angle):
        """A half-kick of v, and a rotation of (u, v) by an angle."""
        kick_and_rotate_trajectory(angle, self._record_of(trajectory), trajectory.u.size)
        return trajectory

    def to_beta(self, trajectory):
        """beta = m + L^-T u."""
        beta = np.empty_like(trajectory.u)
        self._share(lambda spare, first, last: _trajectory_beta(self._all, first, last, trajectory.u, beta))
        return beta

    def kick(self, trajectory, angle, reference, beta, loglik, score):
        """A half-kick of v at beta, with the force and the energy there."""
        at = beta, None, None, loglik, np.ascontiguousarray(score)
        inputs, moving = (angle, self._all, self._reference_record(reference), at), self._record_of(trajectory)
        self._share(lambda spare, first, last: _kick_trajectory(*inputs, first, last, moving))
        return trajectory

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau, of the slow lambda_j and of tau again, which is reversible, with u
        held; and the share of the moves of tau that were accepted."""
        scales, accepted = (lambda_sq_inv.copy(), tau_sq_inv.copy()), np.empty(len(tau_sq_inv))
        inputs = self._all, _moves(tuning, tau_0), (None, *scales, None, None), sweep, key
        self._share(lambda spare, first, last: _move_scales(*inputs, first, last, spare, accepted))
        return *scales, accepted

    def fused_trajectories(self, state, rows, reference, tuning, tau_0, key, with_scales, threads):
        """The state after the trajectories of a sweep, in one call for each thread. rows : their record."""
        new, acceptance = tuple(values.copy() for values in state[:5]), np.empty(len(state.beta))
        tau_acceptance = np.empty(len(acceptance)) if tuning.tau_moves else None
        if self._planned != (planned := (tuning, tau_0)):
            apart, self._planned = tuning.apart and tuning.tau_moves > 0, planned
            self._plan = record("SweepPlan", (tuning.step, tuning.n_steps, apart, _moves(tuning, tau_0)))
        inputs = self._all, self._reference_record(reference), rows, self._plan, state.sweep, key, with_scales
        out = record("State", new), acceptance, tau_acceptance
        threads.run(lambda first, last: self._check(_fused_trajectories(*inputs, *out, first, last)), len(acceptance))
        return *new, state.sweep, acceptance, state.tau_acceptance if tau_acceptance is None else tau_acceptance

    def _share(self, task):
        """Call task(spare, first, last) for ranges of chains, with scratch that no other thread uses meanwhile."""
        n_chains, q = self.mean.shape
        if q < LEAST_SHARED_COLUMNS:
            self._check(task(self.spare[0], 0, n_chains))
        else:
            share_out(self.threads, self.spare, n_chains, lambda w, c: self._check(task(self.spare[w], c, c + 1)))

    def _check(self, minor):
        if minor:
            raise not_definite(len(self.H), minor)


def empty_trajectory(shape):
    """A ``Trajectory`` of chains by coordinates, to be filled."""
    return Trajectory(np.empty(shape), np.empty(shape), np.empty(shape), np.empty(shape[0]))


def _moves(tuning, tau_0):
    """The fields of ``ScaleMoves``."""
    slow = np.asarray(tuning.slow, np.int64)
    return tau_0, tuning.tau_step, tuning.tau_moves, slow, len(slow)
