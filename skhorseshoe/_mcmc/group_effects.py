"""The block of the effects u of groups of rows and of their standard deviation s ~ C+(0, scale), for each factor."""

from itertools import combinations

import numpy as np

from . import group_moves
from .blocks import Block
from .cut_points import OwnParameters
from .effects_integrated_out import MarginalPrecision, sweep_given_latents
from .fused_given_effects import FusedGivenEffects
from .group_couplings import Couplings
from .group_draws import GroupDraws
from .group_factors import factors_of, families_of, shifts_of
from .group_map import Followed, GroupMap, GroupState, MapAverages, change_along
from .group_slopes import slopes_to_predict
from .known_predictors import Given, KnownPredictors
from .rows_given_effects import RowsGivenEffects

_SWEEPS_BETWEEN_STATES = 3  # sweeps from one state that is added to the averages of the map to the next
_LARGEST_CORRELATION = 1 - 1e-12  # that is judged
_MEASURED = tuple(f"measured_{field}" for field in GroupState._fields)  # names of saved arrays
_FROZEN = "group_frozen_weight", "group_frozen_centre"  # and these


class GroupEffects(Block):
    """u and s of each chain, and how u follows beta. What has no docstring is as in ``Block``.

    problem : ``Problem``, with ``Rows``. n_chains : chains. saved : what ``arrays`` gave, or None.
    """

    def __init__(self, problem, n_chains, saved=None):
        rows, self.fixed, self.tau_0, self.key = problem
        self.rows, self.ops, self.columns = RowsGivenEffects(rows, self), rows.ops, rows.columns
        self.own = OwnParameters(rows, problem.fixed)
        self.n_chains, self.levels = n_chains, rows.groups.levels
        self.factors = factors_of(rows, self.key)
        self.shifts = shifts_of(self.factors, self.levels, self.key)
        self.families = families_of(self.factors, rows, n_chains, self.key)
        of_families = {one for family in self.families for one in family.components}
        self.units = [*(one for one in self.factors if one not in of_families), *self.families]  # what moves by itself
        self.follows = False  # whether u follows beta; not before the first reference
        self.n_held = 0  # coefficients, the first, that u does not follow
        self.along = self.pending = None  # the maps of all factors, and what the next ones are computed from
        self.frozen = None  # of several factors: the information of rows and the effects about which they follow others
        self._fused = None
        self.point_predictors = None  # x r of all rows (n, 1)
        self.measured = None  # ``GroupState`` at which the shrinkage is measured, where there is no reference
        if saved is None:  # (n_effects, n_chains), of all factors
            self.effects = np.concatenate([factor.start(n_chains, self.ops) for factor in self.factors])
            for family in self.families:
                family.start()
        else:
            self._restore(saved)
        self.known, self.averages = KnownPredictors(saved), MapAverages(saved)
        self.delta, self.beta = self.effects, self.known.grown  # (n_chains, q) where the effects are

    @property
    def point(self):
        """r (q,), about which u follows."""
        return self.factors[0].map.point

    @property
    def scale(self):
        """s (n_chains,), or of several factors (n_factors, n_chains)."""
        return np.stack([factor.scale for factor in self.factors]) if self.levels is not None else self.factors[0].scale

    # What rows ask for.

    def at(self, beta):
        """The effects at beta (m, q); (n_effects, m). One point has the means of the chains; of more points than
        chains, each block of n_chains has the effects of the chains."""
        delta = self.delta
        if len(beta) != self.n_chains:
            delta = delta.mean(axis=1, keepdims=True) if len(beta) == 1 else np.tile(delta, len(beta) // self.n_chains)
        return np.ascontiguousarray(delta + self._followed(beta))

    def precisions(self, m):
        """s^-2 of each factor at m points, as in ``at``; (n_factors, m)."""
        logs = [np.log(factor.scale) for factor in self.factors]
        logs = [one.mean(keepdims=True) if m == 1 else np.tile(one, m // self.n_chains) for one in logs]
        return np.exp(-2 * np.stack(logs))

    def force(self, effects, precision):
        """The prior precision times effects (n_effects, m). precision : of ``precisions``."""
        own, across = effects * self.by_effect(precision), self.across(effects)
        return own if across is None else own + across

    def across(self, effects):
        """What the covariances of slopes add to the product of the prior precision of effects (n_effects, m) and these;
        None where no factor has slopes. m : as in ``at``."""
        if not self.families:
            return None
        out = np.zeros_like(effects)
        for family in self.families:
            out[family.part] = family.across(effects)
        return out

    def carried(self, direction):
        """``change_along`` the maps of now (n_effects, m)."""
        return change_along(self.along, len(self.effects), direction)

    def _followed(self, beta):
        """How much effects change while beta moves from the point of the map to beta (m, q)."""
        return self.carried(beta - self.point)

    def of_rows(self, effects, but=None):
        """Sums of effects (n_effects, m) over the factors, all or without ``but`` of ``units``; for each group, or
        combination of levels, or row where there are slopes, of ``Rows``."""
        if self.levels is None:
            return effects
        return sum(unit.at_levels(effects[unit.part], self.levels) for unit in self.units if unit is not but)

    def sums(self, terms):
        """Sums of terms by row (n, m) over the levels of all factors; (n_effects, m)."""
        return np.concatenate([factor.row_groups.sums(terms) for factor in self.factors])

    def by_effect(self, values):
        """Values of factors (n_factors, m) for each of their effects; (n_effects, m)."""
        return np.repeat(values, [factor.n for factor in self.factors], axis=0)

    def given_others(self, factor, known, effects):
        """``Given``, the predictors of rows without the effects of ``factor``, one of ``units``; with all if it is
        none of these. known : ``KnownPredictors`` of the chains. effects : (n_effects, n_chains)."""
        own = self.own.values_or_none(known.grown)
        if self.units == [factor]:
            return Given(known.values, known.factor, own)
        others = self.of_rows(effects, but=factor)[self.rows.groups.codes]
        values = (known.values * known.factor + others).astype(known.values.dtype)
        return Given(values, np.ones(self.n_chains), own)

    def add_pass(self, beta, predictors):
        """Keep the predictors of a pass at beta (m, q) within a trajectory, if ``_predictors_of`` gives their bits."""
        if len(beta) == self.n_chains and not self._known_apart:
            self.known.add_pass(beta, predictors)

    def next_information(self, spare):
        """The information of beta (q, q) with u following along the map that ``set_reference`` will take."""
        if not self.averages.n:
            self._add_to_averages()
        H, along, h = self.averages.information(self.rows.rows, self.factors, spare, self.families)
        self.pending, self.averages = (self.averages, along, h), MapAverages()
        return H

    # Sweeps.

    def sweep(self, state, law):
        """The law moves beta with delta held. state : of any sampler that asks rows for the score."""
        loglik, score = self.begin_sweep(state.beta)
        new = law(state._replace(loglik=loglik, score=score))
        beta, tau_sq_inv = group_moves.move_effects_and_scale(self, new.beta, new.tau_sq_inv, state.sweep)
        return new._replace(beta=beta, tau_sq_inv=tau_sq_inv)

    def begin_sweep(self, beta):
        """``set_origin``, and the log-density (n_chains,) and its gradient (n_chains, q) there."""
        self.set_origin(beta)
        known, m, points = self.known, self.n_chains, beta
        if self.along is not None:  # one pass finds the gradient at the point of the map too
            points = np.concatenate([beta, np.tile(self.point, (m, 1))])
        if self.rows.takes_fused_calls:
            known.last = None
            self.fused.begin(beta)
            loglik, score = self.ops.fused_score(self.rows, points)
        else:
            if not known.are_of(beta):
                known.begin(beta, self.rows.predictors(beta))
            self._recall()
            if self.along is not None and self.point_predictors is None:
                self.point_predictors = self.rows.predictors(self.point[None])
            common = None if self.along is None else self.point_predictors[:, 0]
            loglik, score, _ = self.rows.score_and_predictors(points, known, common)
        self.reference_score = score[m:]  # (n_chains, q) at the point of the map, with u that has followed to there
        return loglik[:m], score[:m]

    def set_origin(self, beta):
        """Take beta (n_chains, q) as where the effects are; u follows from there."""
        self.beta, self.delta = beta, self.effects - self._followed(beta)

    def _recall(self):
        """Compute the predictors that an earlier run had when it stopped."""
        if self.known.values is None and self.known.beta is not None:
            self.known.values = self._predictors_of(self.known.beta)

    def _predictors_of(self, beta):
        """x beta of all rows (n, m)."""
        return (self.fused if self._known_apart else self.rows).predictors(beta)

    @property
    def _known_apart(self):
        """Whether x beta is computed by itself, which rounds in another way than a pass."""
        return self.rows.rows.takes_fused_calls and len(self.rows.bounds) == 2

    @property
    def fused(self):
        if self._fused is None or self._fused.map is not self.along:
            self._fused = FusedGivenEffects(self.rows)
        return self._fused

    def predictors(self, beta):
        """``KnownPredictors`` of beta at the end of a sweep."""
        self._recall()
        if not self.known.end(beta):
            self.known.begin(beta, self._predictors_of(beta))
        return self.known

    def precision(self, precision):
        return MarginalPrecision(precision, self)

    def sweep_given_latents(self, state, problem, law, precision):
        return sweep_given_latents(state, problem, law, precision, self)

    # What burn-in learns.

    def end_phase(self):
        for unit in self.units:
            unit.tune()

    def see(self, n_seen):
        """Add the state of the chains to the averages for the next map, where it is due."""
        if n_seen % _SWEEPS_BETWEEN_STATES == 1:
            self._add_to_averages()

    def _add_to_averages(self):
        terms = self.terms_of_information(self.predictors(self.beta), self.effects)
        self.averages.add(terms, self._state_at(self.beta))

    def _state_at(self, beta):
        partial = np.zeros((len(self.factors), len(self.factors)))
        for family in self.families:
            partial[family.among_factors] = family.partial().mean(axis=2)
        return GroupState(beta, self.effects, self.scale, partial)

    def terms_of_information(self, known, effects):
        """What ``MapAverages`` take of the information of rows at a state."""
        if self.own.n:
            return self.rows.rows.terms_of_information(known.grown, self.of_rows(effects))
        first = self.factors[0]
        of_first = effects[first.part] if self.units[0] is first else np.zeros((first.n, self.n_chains))
        given = self.given_others(first, known, effects)
        return first.row_groups.curvature(given, of_first)[0], None, None

    def held(self, reference):
        """The reference with the score that follows from the held effects of each chain."""
        reference.mass_matrix.set_b(reference.information @ reference.point + self.reference_score)
        return reference._replace(score=self.reference_score)

    def stay(self, beta):
        self.along, self.frozen, self.follows = None, None, False
        for factor in self.factors:
            factor.map, factor.response = GroupMap.none(factor.n), None
        for family in self.families:
            family.forget()
        self.set_origin(beta)

    def followed(self, reference, spare):
        self.follows, point = True, reference.point
        information = self.rows.information(point[None], spare)
        self.set_reference(point)
        _, (score,) = self.rows.score(point[None])
        return reference._replace(score=score, information=information)

    def set_reference(self, point):
        """Let u follow about this point (q,), along the map of the last ``next_information``."""
        if self.pending is not None:
            (averages, along, h), self.pending = self.pending, None
            self._freeze(averages, along, h, point)

    def learn(self):
        """The lines of s know how effects follow all coefficients; in trajectories they follow those
        that are not shrunk."""
        averages, self.averages, self.n_held = self.averages, MapAverages(), self.columns.n_shrunk
        if averages.n:
            along, _, h, _ = averages.maps(self.rows.rows, self.factors, self.families)
            point = averages.beta / averages.n
            self._freeze(averages, along.astype(np.float32), h, point)

    def _freeze(self, averages, along, h, point):
        self.point_predictors = self.rows.predictors(point[None])
        given = Given(self.point_predictors, np.ones(1), self.own.values_or_none(point[None]))
        averages.freeze(self.factors, along, h, point, given)
        self._follow()
        self.delta = self.effects - self._followed(self.beta)
        if self.levels is not None:
            self.frozen = averages.weight / averages.n, averages.centre / averages.n
            self._find_responses()
        for family in self.families:
            centre = self.frozen[1]
            others = self.of_rows(centre[:, None], but=family) if self.units[1:] else 0.0
            at = given._replace(values=self.point_predictors + others)
            family.freeze(self.frozen[0], at, centre, averages.precision(family))

    def _follow(self):
        """Let effects follow along the maps."""
        self.along = np.concatenate([factor.map.along for factor in self.factors])
        self.along[:, : self.n_held] = 0.0

    def _find_responses(self):
        """Find how the effects of each factor follow those of the others."""
        couplings = Couplings(self.factors, self.frozen[0], self.ops)
        for factor in self.factors:
            factor.response = couplings.response(factor, factor.map.precision + factor.map.scale**-2.0)

    def followed_beside(self, factor, beta):
        """How the effects of a factor follow beta, as it is multiplied by c, and others; ``Followed``."""
        response, grown = factor.response, self.own.parts(beta)

        def follow(beta, effects):
            if response is None:
                return factor.map.followed(beta)
            by_maps = np.concatenate([one.map.followed(beta) for one in self.factors])
            return by_maps[factor.part] + response @ (effects - by_maps)

        centre = 0.0 if self.frozen is None else self.frozen[1][:, None]
        linear, held = follow(grown.linear, self.effects), follow(np.atleast_2d(self.point), centre)
        if not self.own.n:
            return Followed(linear, held)
        return Followed(linear, held - follow(grown.fixed, 0.0), follow(grown.slope, 0.0))

    def mark(self, beta):
        if self.measured is None:
            self.measured = self._state_at(beta).copied()

    # What is judged, kept and saved.

    def judged(self):
        """log s (n_chains, n_factors), and correlations of slopes by Fisher's transformation."""
        logs = np.stack([np.log(factor.scale) for factor in self.factors], axis=1)
        correlations = (_LARGEST_CORRELATION * family.deviations()[1] for family in self.families)
        return np.column_stack([logs, *map(np.arctanh, correlations)])

    def values(self, state):
        """u (n_effects, n_chains) and s (n_chains,), or of several factors (n_chains, n_factors), and behind these the
        correlations of slopes; slopes are those of the columns of X."""
        if not self.families:
            return self.effects, self.scale.T
        scale, correlations = self.scale.T.copy(), []
        for family in self.families:
            deviations, correlation = family.deviations()
            scale[:, [one.number for one in family.components]] = deviations
            correlations.append(correlation)
        unit = np.array([factor.sd for factor in self.factors])
        return self.effects / self.by_effect(unit[:, None]), np.column_stack([scale / unit, *correlations])

    def draws_of(self, n_chains, room):
        names = None if self.levels is None else self.rows.groups.names
        pairs = [pair for family in self.families for pair in combinations(family.components, 2)]
        correlations = [tuple(names[one.number] for one in pair) for pair in pairs]
        slopes = slopes_to_predict(self.factors, self.families, self.rows) if self.families else None
        return GroupDraws(n_chains, room, [factor.n for factor in self.factors], names, correlations, slopes)

    def prior(self):
        scales, names = [float(factor.prior_scale / factor.sd) for factor in self.factors], self.rows.groups.names
        return {"group_scale": scales[0] if self.levels is None else dict(zip(names, scales, strict=True))}

    def arrays(self):
        out = {"group_effects": self.effects, "group_held": self.n_held}
        out |= self.known.arrays() | self.averages.arrays()
        for unit in (*self.factors, *self.families):
            out |= unit.arrays()
        for names, values in ((_MEASURED, self.measured), (_FROZEN, self.frozen)):
            out |= {} if values is None else dict(zip(names, values, strict=True))
        return out

    def _restore(self, saved):
        self.effects = saved["group_effects"].copy()
        for unit in (*self.factors, *self.families):
            unit.restore(saved)
        if _MEASURED[0] in saved:
            self.measured = GroupState(*(saved[name] for name in _MEASURED))
        self.n_held = int(saved["group_held"])
        if self.factors[0].map.along is not None:
            self.follows = True
            self._follow()
        if _FROZEN[0] in saved:
            self.frozen = [saved[name] for name in _FROZEN]
            self._find_responses()
