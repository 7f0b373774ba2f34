"""Chains for rows with groups: effects of groups and their scale move after each sweep of a sampler.

"hmc"    as ``hmc_burn_in.py``, which also freezes the map along which effects follow. In the coordinates of the prior,
         as ``hmc_prior_coordinates_burn_in.py``, they do not follow, since there is no matrix over the columns.
"gibbs"  as ``gibbs.py``, with beta and u drawn together given z. With n_g rows in a group, m_g the sum of their x_i
         and z_g that of z_i - offset_i, beta is drawn with X'X - sum_g m_g m_g' / (n_g + s^-2) in place of X'X, and
         X'z - sum_g m_g z_g / (n_g + s^-2) in place of X'z; then u_g ~ N((z_g - m_g beta) / (n_g + s^-2), 1 / (n_g +
         s^-2)).
"""

import numpy as np

from .._backends import EFFECT_PURPOSE, XI_PURPOSE
from . import gibbs, group_moves
from .chains import GibbsChains
from .grouped_rows import GroupedRows
from .hmc_burn_in import HmcChains
from .hmc_prior_coordinates_burn_in import PriorCoordinateChains
from .marginal_precision import MarginalPrecision

_MEASURED = "measured_beta", "measured_effects", "measured_scale"  # names of saved arrays
_SWEEPS_BETWEEN_STATES = 3  # sweeps from one state that is added to the averages of the map to the next
_SECOND_DRAW = 2**30  # added to the number of the sweep where it draws for a purpose again: other random numbers


class _Grouped:
    """Base of the chains; ``problem.rows`` are ``GroupedRows``."""

    def __init__(self, problem, start, burn_in, saved=None):
        rows = GroupedRows(problem.rows, len(start.beta), problem.key, saved)
        super().__init__(problem._replace(rows=rows), start, burn_in, saved)

    def _swept(self, law):
        """The state after a sweep of all unknowns, of which ``law`` moves beta and its scales."""
        rows, fixed, tau_0, _ = self.problem
        return group_moves.sweep(self.state, law, rows, fixed, tau_0)

    def _judged(self):
        """As in ``Chains``, with log s."""
        return np.column_stack([self.state.beta, np.log(self.problem.rows.scale)])

    def _next_phase(self):
        """Ends a phase, for chains whose burn-in has phases."""
        super()._next_phase()
        self.problem.rows.tune_widths()

    def arrays(self):
        """The arrays of the chains without groups, and those of ``GroupedRows``."""
        return {**super().arrays(), **self.problem.rows.arrays()}

    def effects_and_scale(self):
        """u (n_groups, n_chains) and s (n_chains,)."""
        return self.problem.rows.effects, self.problem.rows.scale


class GroupedHmcChains(_Grouped, HmcChains):
    """As ``HmcChains``."""

    def advance(self):
        """As ``HmcChains.advance``; states of the second half of a window are averaged for the next map."""
        is_due = self.window is not None and self.window.n_seen % _SWEEPS_BETWEEN_STATES == 1
        if is_due and self.state.sweep < self.phase_ends[-2]:
            self.problem.rows.add_to_averages()
        super().advance()

    def _law(self, state, reference, tuning):
        """With the score of the reference that follows from the held effects of each chain."""
        score = self.problem.rows.reference_score
        reference.mass_matrix.set_b(reference.information @ reference.point + score)
        return super()._law(state, reference._replace(score=score), tuning)

    def _mode(self):
        rows = self.problem.rows
        rows.stay(self.state.beta)
        reference = super()._mode()
        point = reference.point
        rows.follows = True
        information = rows.information(point[None], self.precision.work)
        rows.set_reference(point)
        _, (score,) = rows.score(point[None])
        return reference._replace(score=score, information=information)

    def _set_reference(self, reference, spread=None):
        super()._set_reference(reference, spread)
        self.problem.rows.set_reference(reference.point)


class _Measured(_Grouped):
    """Chains that measure the shrinkage at their state of the first call, which is saved for a later run: burn-in keeps
    no effects."""

    def __init__(self, problem, start, burn_in, saved=None):
        self.measured = None if saved is None or _MEASURED[0] not in saved else [saved[name] for name in _MEASURED]
        super().__init__(problem, start, burn_in, saved)

    def _information(self, beta):
        # beta, of states of burn-in, is of no use: the information depends on the effects too.
        if self.measured is None:
            self.measured = [values.copy() for values in (self.state.beta, *self.effects_and_scale())]
        return self._measure()

    def arrays(self):
        """The arrays of other chains with groups, and where the shrinkage is measured."""
        more = {} if self.measured is None else dict(zip(_MEASURED, self.measured, strict=True))
        return {**super().arrays(), **more}


class GroupedPriorCoordinateChains(_Measured, PriorCoordinateChains):
    """As ``PriorCoordinateChains``."""

    def _measure(self):
        (rows, fixed, _, _), (beta, effects, scale) = self.problem, self.measured
        s_sq = np.exp(2 * np.log(scale).mean())  # square of the geometric mean of s
        shared = rows.groups.codes, np.full(rows.n_chains, s_sq)
        weights = rows.rows.information_weights(beta, effects)
        return rows.ops.ShrinkageByRows(rows.rows, fixed.variances, beta, weights, shared)


class GroupedGibbsChains(_Measured, GibbsChains):
    """As ``GibbsChains``."""

    def _precision(self):
        return MarginalPrecision(super()._precision(), self.problem.rows)

    def _sweep(self, state):
        rows, fixed, tau_0, key = self.problem
        sizes, sums, t = self.precision.sizes, self.precision.sums, state.sweep
        # beta and its scales, given s: z given beta and u, then beta given z with u integrated out.
        shift, variance = rows.rows.shift(len(state.beta), rows.effects), 1.0 / (sizes + rows.scale**-2.0)
        latent_rows = _LatentRows(rows, shift, variance, sums)
        new = gibbs.sweep(state, latent_rows, self.precision, tau_0, rows.ops, key)
        # u given beta and z.
        mean = (latent_rows.z_sums - sums @ new.beta.T) * variance
        noise = rows.ops.normal((len(new.beta), rows.n_groups), key, t + _SECOND_DRAW, EFFECT_PURPOSE).T
        rows.effects = mean + np.sqrt(variance) * noise
        # u, s, beta and tau with z integrated out.
        rows.set_origin(new.beta)
        beta, tau_sq_inv = group_moves.move_effects_and_scale(rows, new.beta, new.tau_sq_inv, fixed, tau_0, t)
        # xi given tau, which has moved.
        xi_inv = rows.ops.exponential(tau_0**-2 + tau_sq_inv, key, t + _SECOND_DRAW, XI_PURPOSE)
        return new._replace(beta=beta, tau_sq_inv=tau_sq_inv, xi_inv=xi_inv)

    def _measure(self):
        (rows, fixed, _, _), (beta, effects, scale) = self.problem, self.measured
        return rows.ops.Precision(fixed.add_to(rows.marginal(beta, effects, scale)), rows.threads)


class _LatentRows:
    """The rows as ``gibbs.sweep`` needs them: X'z less the part of the effects.

    rows : ``GroupedRows``. variance : 1 / (n_g + s^-2) (n_groups, n_chains). sums : m_g (n_groups, q).
    """

    def __init__(self, rows, shift, variance, sums):
        self.rows, self.shift, self.variance, self.sums = rows, shift, variance, sums
        self.z_sums = None  # z_g (n_groups, n_chains), once ``latent`` has drawn z

    def latent(self, beta, sweep, key):
        """X'z - sum_g m_g z_g / (n_g + s^-2), and z'z."""
        xtz, ztz = self.rows.rows.latent(beta, sweep, key, self.shift)
        self.z_sums = self.rows.row_groups.sums(self.shift.terms)
        return xtz - (self.z_sums * self.variance).T @ self.sums, ztz
