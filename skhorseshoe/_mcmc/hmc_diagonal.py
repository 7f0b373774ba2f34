"""Split Hamiltonian Monte Carlo whose mass matrix is diagonal: of the rows it needs products alone, see ``hmc.py``.

Of the information of the reference only the diagonal is kept, in coordinates in which it is nearly all: the intercept
is that at the means of the columns, weighted by the information of the rows, and what the levels of a category have in
common is added. The reference is at the median of the posterior; at a mode, or with another intercept, steps are half
as long. After each trajectory tau moves with u held, and single coefficients move with their local scales
(``core/column_moves.hpp``), both with tests of their own.
"""

from math import cos, sin
from typing import NamedTuple

import numpy as np

from .._backends import MOMENTUM_PURPOSE, SECOND_TRAJECTORY, Trajectory
from . import hmc

_GROW, _SHRINK = -1, 1  # powers of the root of 1 - s's
_LEAST_SHARE, _LARGEST_SHARE = 1e-300, 1.0 - 1e-12  # of s's
_SOFTNESS, _LEAST_RATIO = 0.3, 1e-16  # c of ``DiagonalMassMatrix``, and the least d_j / H_jj there


class DiagonalReference(NamedTuple):
    """The quadratic that stands for the log-likelihood and the fixed prior, in the coordinates with the intercept at
    ``centre``; float64, (q,)."""

    point: object
    score: object  # of the log-likelihood less the energy of the fixed prior
    information: object  # its diagonal, with that of the fixed prior
    centre: object  # means of the columns, 0 for the intercept and without one
    size: float  # the sum of the informations of the rows


class DiagonalMassMatrix:
    """As ``MassMatrix`` of a back end, with M = diag(H + D), less v v' for each category.

    Of the levels of a category, whose columns have the same sum in every row, the information is that diagonal matrix
    with v_j^2 added to it, less v v'. With s = v / a, a^2 the diagonal then, the root of M is L = a (I - g s s').

    Of a column that the data do not bound, H_jj and v_j are multiplied by f_j = 1 / (1 + c (H_jj / d_j)^1/2): where its
    scale is large the coefficient is far out, where the log-likelihood is flat. f depends on the scales alone, which
    stay in a trajectory.

    reference : ``DiagonalReference``. fixed : ``FixedPrior``. sets : places (k,) and v (k,) for each category, none
    in two. unbounded : (q,) 1 for shrunk columns that the data do not bound, 0 for others; None for none.
    """

    def __init__(self, reference, fixed, ops, threads, sets=(), unbounded=None):
        self.at, self.fixed, self.ops, self.threads = reference, fixed, ops, threads
        self.softness = None if unbounded is None else _SOFTNESS * unbounded
        # All sets in a row: their places and v, where each begins, and of which set a place is.
        self.places = np.concatenate([np.empty(0, int), *(places for places, _ in sets)])
        self.v = self.whole_v = np.concatenate([np.empty(0), *(v for _, v in sets)])
        sizes = [len(v) for _, v in sets]
        self.starts, self.set_of = np.cumsum([0, *sizes])[:-1], np.repeat(np.arange(len(sizes)), sizes)
        self.whole = reference.information.copy()  # H + v^2 without f
        self.whole[self.places] += self.v**2
        self.diagonal = self.whole  # with f, of which this and v are (n_chains, ...)
        self.b = self._times_information(reference.point[None]) + reference.score  # H r + g
        self.root = self.mean = None  # a, and m, of the chains (n_chains, q)
        self.along = None  # s of all sets (n_chains, k)
        self.stretch = {}  # by power, for each set (n_chains, n_sets), by how much what is along s changes

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v."""
        beta = state.beta
        self._take(state.lambda_sq_inv, state.tau_sq_inv, 0.0 * beta)
        v = self.ops.normal(beta.shape, key, state.sweep, MOMENTUM_PURPOSE)
        u = self._stretched(self.root * (self._centred(beta) - self.mean), _SHRINK)
        return self._with_force(Trajectory(u, v, None, None), beta, state.loglik, state.score)

    def _take(self, lambda_sq_inv, tau_sq_inv, zeros):
        """Take the scales."""
        d = 0.0 * zeros
        d[:, : lambda_sq_inv.shape[1]] = tau_sq_inv[:, None] * lambda_sq_inv
        if self.softness is not None:
            self._soften(d)
        precision = d + self.diagonal
        self.root = precision**0.5
        self.along = self.v / self.root[:, self.places]
        square = self._set_sums(self.along**2).clip(_LEAST_SHARE, _LARGEST_SHARE)
        for power in (_GROW, _SHRINK):
            self.stretch[power] = (((1.0 - square) ** 0.5) ** power - 1.0) / square
        self.mean = self._stretched(self._stretched(self.b / self.root, _GROW), _GROW) / self.root

    def _soften(self, d):
        """Take f at d (n_chains, q)."""
        f = 1.0 / (1.0 + self.softness * (self.whole / (d + _LEAST_RATIO * self.whole + _LEAST_SHARE)) ** 0.5)
        self.diagonal, self.v = f * self.whole, f[:, self.places] * self.whole_v
        self.b = self._times_information(self.at.point[None]) + self.at.score

    def _set_sums(self, values):
        """Sums over each set of values at the places (m, k); (m, n_sets)."""
        return np.add.reduceat(values, self.starts, axis=1) if len(self.starts) else values

    def _stretched(self, x, power):
        """x (n_chains, q), with what is along s multiplied, for each set."""
        part, s = x[:, self.places], self.along
        x[:, self.places] = part + (self.stretch[power] * self._set_sums(part * s))[:, self.set_of] * s
        return x

    def _times_information(self, x):
        """H x, x (m, q), or (1, q) the same for all chains."""
        product, v = self.diagonal * x, self.v
        product[:, self.places] -= self._set_sums(x[:, self.places] * v)[:, self.set_of] * v
        return product

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau with u held, and the share that was accepted; without sets
        and unbounded columns."""
        scales = lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key, self.threads
        moved = self.ops.move_tau_with_diagonal(self.diagonal, self.b[0], *scales)
        self._take(*moved[:2], 0.0 * self.mean)
        return moved

    def kick_and_rotate(self, trajectory, angle):
        """A half-kick of v, and a rotation of (u, v) by an angle."""
        u, v = trajectory.u, trajectory.v - 0.5 * angle * trajectory.force
        return trajectory._replace(u=u * cos(angle) + v * sin(angle), v=v * cos(angle) - u * sin(angle))

    def to_beta(self, trajectory):
        """The coefficients at u."""
        beta = self.mean + self._stretched(trajectory.u.copy(), _GROW) / self.root
        beta[:, -1] -= (beta * self.at.centre).sum(axis=1)
        return beta

    def kick(self, trajectory, angle, reference, beta, loglik, score):
        """A half-kick of v at beta, with the force and the energy there."""
        trajectory = self._with_force(trajectory, beta, loglik, score)
        v = trajectory.v - 0.5 * angle * trajectory.force
        change = ((v**2).sum(axis=1) - (trajectory.v**2).sum(axis=1)) / 2
        return trajectory._replace(v=v, energy=trajectory.energy + change)

    def _centred(self, beta):
        """beta with the intercept at the means of the columns."""
        beta = beta.copy()
        beta[:, -1] += (beta * self.at.centre).sum(axis=1)
        return beta

    def _with_force(self, trajectory, beta, loglik, score):
        """The trajectory with its force and energy at beta."""
        point, reference_score, _, centre, _ = self.at
        away, push = self._centred(beta) - point, self.fixed.force(beta)
        pull = self._times_information(away)
        total = score - push
        gradient = reference_score - pull - (total - total[:, -1:] * centre)
        potential = (away * (reference_score - pull / 2)).sum(axis=1) - loglik + (push * beta).sum(axis=1) / 2
        energy = potential + ((trajectory.u**2).sum(axis=1) + (trajectory.v**2).sum(axis=1)) / 2
        return trajectory._replace(force=self._stretched(gradient / self.root, _GROW), energy=energy)


def sweep(state, rows, references, tuning, moves, tau_0, ops, key):
    """Draw every unknown once from its law given the others; returns the new state.

    references : ``hmc.Reference`` with its mass matrix, and with one without sets for moves of tau. tuning :
    ``hmc.Tuning``, whose moves of tau are apart. moves : ``ColumnMoves``.
    """
    t = state.sweep
    state = hmc.along_trajectory(state, rows, references[0], tuning._replace(tau_moves=0), tau_0, ops, key)
    acceptance, scales_only = state.acceptance, tuning._replace(step=0.0, n_steps=1)
    state = state._replace(sweep=t + SECOND_TRAJECTORY)
    state = hmc.along_trajectory(state, rows, references[1], scales_only, tau_0, ops, key)  # tau | u
    state = state._replace(acceptance=acceptance, sweep=t)
    beta, lambda_sq_inv = moves.move(state, key)  # (beta_j, lambda_j) | u_j
    loglik, score = rows.score(beta)
    state = state._replace(beta=beta, lambda_sq_inv=lambda_sq_inv, loglik=loglik, score=score)
    return hmc.draw_scales(state, rows, tau_0, key)._replace(sweep=t + 1)
