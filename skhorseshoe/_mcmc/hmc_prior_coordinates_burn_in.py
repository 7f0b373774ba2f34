"""Chains in the coordinates of the prior, and their burn-in, which finds the step size, centres and sizes.

The second half of a phase determines the centres and sizes for the next: of log tau, of the coefficients that are not
shrunk, and of those that are signals in every chain. The last phase tunes the step size alone.
"""

from math import log

import numpy as np

from .._backends.limits import factors_rows
from . import hmc_prior_coordinates
from .shrinkage_by_products import ShrinkageByProducts
from .tuned_chains import TunedChains

_FIRST_SWEEPS = 20, 10  # number of sweeps at the start, and the largest number of steps of a trajectory in them
_MOST_LEAPFROG_STEPS = 400  # largest number of steps of a trajectory afterwards
# Unit of a coordinate far from zero, in standard deviations by the largest information: of arrays, and of sparse rows.
_FAR_UNIT_IN_DEVIATIONS = 10.0, 20.0
_KNOWN_SHARE = 0.125  # share of the largest information that a coefficient away from zero is assumed to have
_SIGNAL_IN_SIZES = 3.0  # least distance from zero to the mean of a coordinate that gets a centre, in sizes
_LEAST_SIZE, _LARGEST_SIZE = 0.02, 1.0  # bounds of the size of such a coordinate
_LOG_TAU_SIZES = 0.05, 0.7, 2.0  # size of log tau: the least, the first, and the largest
_LEAST_SIZE_SHARE = 1e-3  # least size of another coordinate, in units of its first size
_FEWEST_COLUMNS_TO_EXCHANGE = 3  # least number of columns that vary with which there are exchanges


class PriorCoordinateChains(TunedChains):
    """Chains of ``hmc_prior_coordinates``."""

    RATES, MEAN_ANGLE = ("acceptance", "exchanged"), 4.5
    SEEN = "n", "first", "total", "squares"  # of coordinates: their number, the first, sums of differences and squares

    def __init__(self, problem, start, burn_in, saved=None, blocks=()):
        rows, fixed, _, _ = problem
        p, ops, none = rows.columns.n_shrunk, rows.ops, np.zeros(len(start.beta))
        square = rows.columns.sd[:p] ** 2
        # tau must not be far above the coefficients, whose coordinates would then be too sensitive.
        median = np.median(abs(start.beta[:, :p][:, square > 0]), axis=1) if square.any() else none + np.inf
        tau_sq_inv = np.maximum(start.tau_sq_inv, median**-2.0)
        loglik, score = rows.score(start.beta)
        start = hmc_prior_coordinates.PriorCoordinateState(start.beta, tau_sq_inv, loglik, score, none, none, 0)
        super().__init__(problem, start, burn_in, saved, blocks)
        self.distance, precision, self.width = self._units(square)
        self.exchanges = None
        if (square > 0).sum() >= _FEWEST_COLUMNS_TO_EXCHANGE and rows.columns.n_contrasts == 1:
            self.exchanges = ops.Exchanges(fixed, precision, square, rows.threads)
        self.centre = np.concatenate([np.zeros(p), start.beta[:, p:].mean(axis=0), [log(problem.tau_0)]])
        self.size = np.concatenate([np.ones(p), self.width, [_LOG_TAU_SIZES[1]]])
        if saved is not None:
            self._restore(saved)
        self._make_coordinates()

    def _units(self, square):
        """The units of coordinates: d of the shrunk columns, the precision of a shrunk coefficient away from zero, and
        first standard deviations of the others."""
        rows, fixed, _, _ = self.problem
        information, p = rows.likelihood.largest_information * rows.size(), len(square)
        distance = _FAR_UNIT_IN_DEVIATIONS[rows.is_sparse] / np.sqrt(information * np.where(square > 0, square, 1.0))
        if fixed.slab_scale is not None:
            distance = np.minimum(distance, fixed.slab_scale)
        others, largest = np.ones((2, len(fixed.anchor) - p))
        others[: len(rows.columns.sd) - p], largest[: len(fixed.variances)] = rows.columns.sd[p:], fixed.variances
        width = 1.0 / np.sqrt(_KNOWN_SHARE * information * np.where(others > 0, others, 1.0) ** 2)
        return distance, _KNOWN_SHARE * information * square, np.minimum(width, np.sqrt(largest))

    def _make_coordinates(self):
        rows, fixed, tau_0, _ = self.problem
        d = rows.columns.n_contrasts
        prior = fixed, np.ascontiguousarray(self.distance[::d]), tau_0
        of_chains = self.centre, self.size, len(self.state.beta), rows.threads
        self.coordinates = rows.ops.PriorCoordinates(*prior, *of_chains, d)

    def _law(self, state):
        n_first, few = _FIRST_SWEEPS
        n_steps = self._n_steps_in(state.sweep, few if state.sweep < n_first else _MOST_LEAPFROG_STEPS)
        moves = self.coordinates, self.exchanges
        return hmc_prior_coordinates.sweep(state, self.problem, *moves, self.step, n_steps)

    def _add(self):
        """Add the coordinates of the state to the sums."""
        at = self.coordinates.from_beta(self.state.beta, self.state.tau_sq_inv)
        if self.seen is None:
            self.seen = [0, at[0].copy(), 0.0 * at[0], 0.0 * at[0]]
        centred = at - self.seen[1]
        self.seen[0] += len(at)
        self.seen[2] = self.seen[2] + centred.sum(axis=0)
        self.seen[3] = self.seen[3] + (centred**2).sum(axis=0)

    def _learn(self, n, first, total, squares):
        mean = total / n
        self._centre(first + mean, np.sqrt(np.maximum(squares / n - mean**2, 0.0)))
        self._make_coordinates()

    def _centre(self, mean, deviation):
        """Set centres and sizes by the mean and the standard deviation of coordinates."""
        p, d = len(self.distance), self.problem.rows.columns.n_contrasts
        size = np.clip(deviation[:p], _LEAST_SIZE, _LARGEST_SIZE)
        is_signal = (abs(mean[:p]) > _SIGNAL_IN_SIZES * size).reshape(-1, d).any(axis=1).repeat(d)
        tau_size = np.clip(deviation[-1:], _LOG_TAU_SIZES[0], _LOG_TAU_SIZES[2])
        others = np.maximum(deviation[p:-1], _LEAST_SIZE_SHARE * self.width)
        self.size = np.concatenate([np.where(is_signal, size, 1.0), others, tau_size])
        self.centre = np.concatenate([np.where(is_signal, mean[:p], 0.0), mean[p:]])

    def _information(self, beta):
        rows, fixed, _, key = self.problem
        if not factors_rows(rows.n, rows.is_sparse, rows.columns.n_contrasts, rows.groups):
            return ShrinkageByProducts(rows, fixed, beta, key)
        variances = fixed.variances[:: rows.columns.n_contrasts]  # all contrasts of a column have one prior
        return rows.ops.ShrinkageByRows(*rows.information_by_rows(beta), variances)

    def _shrinkage(self):
        rows, fixed, _, key = self.problem
        beta, tau_sq_inv, d = self.state.beta, self.state.tau_sq_inv, rows.columns.n_contrasts
        shrunk = np.ascontiguousarray(beta[:, : rows.columns.n_shrunk])
        lambda_sq_inv = rows.ops.draw_lambda_given_beta(shrunk, tau_sq_inv, key, self.state.sweep, d, rows.threads)
        precision = tau_sq_inv[:, None] * lambda_sq_inv
        if isinstance(self.information, ShrinkageByProducts):
            n_others = beta.shape[1] - shrunk.shape[1]
            return self.information(np.pad(precision, ((0, 0), (0, n_others))), self.state.sweep)
        return self.information((precision + fixed.slab_precision)[:, ::d]).repeat(d, axis=1)

    def _own_arrays(self):
        return {**super()._own_arrays(), "centre": self.centre, "size": self.size}

    def _restore(self, saved):
        super()._restore(saved)
        self.centre, self.size = saved["centre"], saved["size"]
