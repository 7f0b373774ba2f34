"""A diagonal mass matrix, on the host, see ``core/diagonal_gaussian.hpp``."""

import numpy as np

from ..._utils.threads import share_ranges
from .library import function, record
from .mass_matrix import Moving, empty_trajectory

_set_gaussians, _begin = function("set_diagonal_gaussians"), function("begin_diagonal_trajectory")
_kick_and_rotate, _to_beta = function("kick_and_rotate_chains"), function("beta_of_diagonal_trajectory")
_kick, _move_tau = function("kick_diagonal_trajectory"), function("move_tau_with_diagonal")
_SOFTNESS = 0.3  # c of unbounded columns


class DiagonalMassMatrix(Moving):
    """As ``MassMatrix``, with M = diag(H + D). A trajectory is overwritten.

    reference : ``DiagonalReference``. fixed : ``FixedPrior``. p : number of shrunk coefficients. unbounded : (q,) 1 for
    shrunk columns that the data do not bound, 0 for others; None for none.
    """

    def __init__(self, reference, fixed, n_chains, p, threads, unbounded=None):
        self.threads, self.shape = threads, (n_chains, q := len(reference.point))
        self.b = reference.information * reference.point + reference.score  # H r + g
        fields = {"point": reference.point, "score": reference.score, "centre": reference.centre, "p": p, "q": q}
        fields |= {"anchor": fixed.anchor, "fixed": fixed.diagonal, "whole": reference.information, "soft": None}
        fields |= {"softness": None if unbounded is None else _SOFTNESS * unbounded}
        of_chains = ("inverse_root", "mean") if unbounded is None else ("inverse_root", "mean", "soft")
        self.chains, self.diagonal = {name: np.empty(self.shape) for name in of_chains}, reference.information
        self.record = record("DiagonalGaussians", fields | self.chains)

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v."""
        trajectory = empty_trajectory(self.shape)
        inputs = self.record, tuple(map(np.ascontiguousarray, state[:5])), state.sweep, key
        share_ranges(self.threads, self.shape, lambda first, last: _begin(*inputs, first, last, trajectory))
        return trajectory

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau with u held, and the share that was accepted; without
        unbounded columns."""
        scales = lambda_sq_inv.copy(), tau_sq_inv.copy(), np.empty(len(tau_sq_inv))
        law = self.diagonal, self.b, lambda_sq_inv.shape[1], tau_0, tuning.tau_step, tuning.tau_moves, sweep, key

        def move(first, last):
            _move_tau(*law, first, last, *scales)
            _set_gaussians(self.record, *scales[:2], first, last)

        share_ranges(self.threads, self.shape, move)
        return scales

    def kick_and_rotate(self, trajectory, angle):
        """A half-kick of v, and a rotation of (u, v) by an angle."""
        inputs, moving = (angle, self.shape[1]), self._record_of(trajectory)
        share_ranges(self.threads, self.shape, lambda first, last: _kick_and_rotate(*inputs, first, last, moving))
        return trajectory

    def to_beta(self, trajectory):
        """The coefficients at u."""
        beta = np.empty(self.shape)
        inputs = self.record, trajectory.u, beta
        share_ranges(self.threads, self.shape, lambda first, last: _to_beta(inputs[0], first, last, *inputs[1:]))
        return beta

    def kick(self, trajectory, angle, reference, beta, loglik, score):
        """A half-kick of v at beta, with the force and the energy there."""
        at, moving = (beta, None, None, loglik, np.ascontiguousarray(score)), self._record_of(trajectory)
        inputs = angle, self.record, at
        share_ranges(self.threads, self.shape, lambda first, last: _kick(*inputs, first, last, moving))
        return trajectory
