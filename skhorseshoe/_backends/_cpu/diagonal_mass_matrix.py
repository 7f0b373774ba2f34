"""A mass matrix that is diagonal but for categories, on the host, see ``core/diagonal_gaussian.hpp``."""

import numpy as np

from ..._utils.threads import share_ranges
from .library import function, record
from .mass_matrix import Moving, empty_trajectory

_set_gaussians, _begin = function("set_diagonal_gaussians"), function("begin_diagonal_trajectory")
_kick_and_rotate, _to_beta = function("kick_and_rotate_chains"), function("beta_of_diagonal_trajectory")
_kick, _move_tau = function("kick_diagonal_trajectory"), function("move_tau_with_diagonal")
_SOFTNESS = 0.3  # c of unbounded columns


class DiagonalMassMatrix(Moving):
    """As ``MassMatrix``, with M = diag(H + D), less v v' for each category. A trajectory is overwritten.

    reference : ``DiagonalReference``. fixed : ``FixedPrior``. p : number of shrunk coefficients. sets : places (k,) and
    v (k,) for each category, none in two. unbounded : (q,) 1 for shrunk columns that the data do not bound, 0 for
    others; None for none.
    """

    def __init__(self, reference, fixed, n_chains, p, threads, sets=(), unbounded=None):
        self.threads, q = threads, len(reference.point)
        places = np.concatenate([np.empty(0, np.int64), *(places for places, _ in sets)])
        self.v = np.concatenate([np.empty(0), *(v for _, v in sets)])
        self.diagonal = reference.information.copy()  # H + v^2, without f
        self.diagonal[places] += self.v**2
        self.b = self.diagonal * reference.point + reference.score  # H r + g without sets
        fields = {"point": reference.point, "score": reference.score, "centre": reference.centre}
        fields |= {"anchor": fixed.anchor, "fixed": fixed.diagonal, "whole": self.diagonal, "whole_v": self.v}
        fields |= {"softness": None if unbounded is None else _SOFTNESS * unbounded, "p": p, "q": q}
        fields |= {"places": places, "starts": np.cumsum([0, *(len(v) for _, v in sets)]), "n_sets": len(sets)}
        sizes = {"inverse_root": q, "mean": q, "along": len(places), "grow": len(sets), "shrink": len(sets)}
        sizes |= {} if unbounded is None else {"soft": q, "soft_v": len(places)}
        self.chains = {"soft": None, "soft_v": None} | {name: np.empty((n_chains, k)) for name, k in sizes.items()}
        self.record, self.shape = record("DiagonalGaussians", fields | self.chains), (n_chains, q)

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v."""
        trajectory = empty_trajectory(self.shape)
        inputs = self.record, tuple(map(np.ascontiguousarray, state[:5])), state.sweep, key
        share_ranges(self.threads, self.shape, lambda first, last: _begin(*inputs, first, last, trajectory))
        return trajectory

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau with u held, and the share that was accepted; without sets
        and unbounded columns."""
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
