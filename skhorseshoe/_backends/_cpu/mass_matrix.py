"""Trajectories of split Hamiltonian Monte Carlo on the host, and its mass matrix: the precision of the Gaussian of
reference and prior."""

import numpy as np

from ..._utils.threads import share_ranges
from .. import Trajectory, not_definite
from .gaussian import LEAST_SHARED_COLUMNS, share_out
from .library import function, record

_begin, _kick_and_rotate = function("begin_trajectory"), function("kick_and_rotate_chains")
_to_beta, _kick = function("trajectory_beta"), function("kick_trajectory")
_move_scales, _fused_trajectories = function("move_scales"), function("fused_trajectories")


class Dynamics:
    """Trajectories of the chains. Each method is a call of the core (``exports/trajectories.cpp``) for each range of
    chains, and overwrites the trajectory that it is given.

    shape : (n_chains, number of coordinates). record : ``Dynamics`` of the core.
    """

    _moving = None, None  # the trajectory that moves, which is the same in all steps, and its record

    def __init__(self, threads, shape):
        self.threads, self.shape = threads, shape

    def _begin(self, at, sweep, key, same_scales=False):
        """A ``Trajectory`` from the fields of a ``State``, with fresh v."""
        trajectory = Trajectory(*(np.empty(self.shape) for _ in range(3)), np.empty(self.shape[0]))
        at = tuple(None if values is None else np.ascontiguousarray(values) for values in at)
        inputs = self.record, at, sweep, key, same_scales
        self._run(lambda spare, first, last: _begin(*inputs, first, last, trajectory))
        return trajectory

    def kick_and_rotate(self, trajectory, angle):
        """A half-kick of v, and a rotation of (u, v) by an angle."""
        inputs, moving = (angle, self.shape[1]), self._record_of(trajectory)
        share_ranges(self.threads, self.shape, lambda first, last: _kick_and_rotate(*inputs, first, last, moving))
        return trajectory

    def to_beta(self, trajectory, tau_sq_inv=None):
        """The coefficients at u; with ``tau_sq_inv`` (n_chains,) in coordinates of the prior, which is overwritten."""
        beta = np.empty((self.shape[0], self.q))
        inputs, at = (self.record, trajectory.u), (beta, None, tau_sq_inv, None, None)
        self._run(lambda spare, first, last: _to_beta(*inputs, first, last, at))
        return beta

    def kick(self, trajectory, angle, beta, loglik, score):
        """A half-kick of v at beta, with the force and the energy there."""
        at, moving = (beta, None, None, loglik, np.ascontiguousarray(score)), self._record_of(trajectory)
        self._run(lambda spare, first, last: _kick(self.record, angle, at, first, last, moving))
        return trajectory

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau, of the slow lambda_j and of tau again, which is reversible, with u
        held; and the share of the moves of tau that were accepted."""
        scales, accepted = (lambda_sq_inv.copy(), tau_sq_inv.copy()), np.empty(len(tau_sq_inv))
        inputs = self.record, _moves(tuning, tau_0), (None, *scales, None, None), sweep, key
        self._run(lambda spare, first, last: _move_scales(*inputs, first, last, spare, accepted))
        return *scales, accepted

    def _fused(self, new, rows, plan, sweep, key, with_scales, tau_acceptance, threads):
        """Acceptances after the trajectories of a sweep, in one call for each thread. new : fields of a ``State``, in
        place. rows : their record. plan : a ``SweepPlan``."""
        acceptance = np.empty(len(new[0]))
        inputs = self.record, rows, plan, sweep, key, with_scales, record("State", new), acceptance, tau_acceptance
        threads.run(lambda first, last: self._check(_fused_trajectories(*inputs, first, last)), len(acceptance))
        return acceptance

    def _run(self, task):
        """Call task(spare, first, last) for ranges of chains, with scratch that no other thread uses meanwhile."""
        share_ranges(self.threads, self.shape, lambda first, last: task(None, first, last))

    def _record_of(self, trajectory):
        if self._moving[0] is not trajectory:
            self._moving = trajectory, record("Trajectory", trajectory)
        return self._moving[1]

    def _check(self, minor):
        if minor:
            raise not_definite(self.q, minor)


class MassMatrix(Dynamics):
    """The Gaussian N(m, M^-1) of each chain, M = H + diag(d) = L L', m = M^-1 b, and its position u = L'(beta - m); and
    the parts of the leapfrog steps for which M is the mass matrix.

    H : (q, q) float64. b : (n_chains, q) float64, or (q,) for all. d is tau^-2 lambda^-2 for the first p coefficients,
    n_contrasts of which, side by side, share a lambda, and 0 for the others.
    """

    def __init__(self, H, b, n_chains, p, threads, memory_from=None, n_contrasts=1):
        """memory_from : a Precision of the same size that is not used while this computes."""
        self.q = q = len(H)
        super().__init__(threads, (n_chains, q))
        n_workers = threads.n if q >= LEAST_SHARED_COLUMNS else 1
        self.spare = memory_from.work if memory_from else [np.empty((q, q)) for _ in range(n_workers)]
        self.H, self.b, self.mean, self.log_norm = H, np.empty(self.shape), np.empty(self.shape), np.empty(n_chains)
        self._last_reference = self._planned = None
        if b is not None:
            self.set_b(b)
        fields = {"cholesky_factors": np.empty((n_chains, q, q)), "mean": self.mean, "log_norm": self.log_norm}
        sizes = {"p": p, "q": q, "n_contrasts": n_contrasts}
        self._gaussians = record("Gaussians", fields | {"H": H, "b": self.b, **sizes})

    def set_reference(self, H, b):
        """Take H and b of another reference."""
        self.H[...] = H
        self.set_b(b)

    def set_b(self, b):
        """Take another b."""
        self.b[...] = b

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v. same_scales : whether the one before ended with its scales."""
        self._take(reference)
        return self._begin(state[:5], state.sweep, key, same_scales)

    def _take(self, reference):
        """Make the record with this reference."""
        if self._last_reference is not reference:
            point, score, information, _ = self._last_reference = reference
            by_chain = np.ascontiguousarray(np.broadcast_to(score, self.shape))
            quadratic = record("Reference", (point, by_chain, information))
            self.record = record("Dynamics", (self._gaussians, quadratic, None, None))

    def fused_trajectories(self, state, rows, reference, tuning, tau_0, key, with_scales, threads):
        """The state after the trajectories of a sweep."""
        new, tau_acceptance = tuple(values.copy() for values in state[:5]), state.tau_acceptance
        if tuning.tau_moves:
            tau_acceptance = np.empty(len(new[0]))
        if self._planned != (planned := (tuning, tau_0)):
            apart, self._planned = tuning.apart and tuning.tau_moves > 0, planned
            self._plan = record("SweepPlan", (tuning.step, tuning.n_steps, apart, _moves(tuning, tau_0)))
        self._take(reference)
        acceptance = self._fused(new, rows, self._plan, state.sweep, key, with_scales, tau_acceptance, threads)
        return *new, state.sweep, acceptance, tau_acceptance

    def _run(self, task):
        if self.q < LEAST_SHARED_COLUMNS:
            self._check(task(self.spare[0], 0, self.shape[0]))
        else:
            share_out(self.threads, self.spare, self.shape[0], lambda w, c: self._check(task(self.spare[w], c, c + 1)))


def _moves(tuning, tau_0):
    """The fields of ``ScaleMoves``."""
    slow = np.asarray(tuning.slow, np.int64)
    return tau_0, tuning.tau_step, tuning.tau_moves, slow, len(slow)
