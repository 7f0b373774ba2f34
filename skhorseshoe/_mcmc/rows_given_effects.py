"""Rows with groups as a sampler of beta sees them, while the effects of the groups are held.

    z_i = offset_i + x_i beta + u_g(i) + e_i,   u_g ~ N(0, s^2)   (with several factors the sum of their effects)

u follows beta along a map that burn-in freezes (``group_map.py``): u = delta + A (beta - r), and delta is held. The
sampler gets log p(y, u | beta, s) as a function of beta, its gradient, and the information along the map. A poor map
costs acceptance and nothing else.
"""

from .cut_points import Holding
from .group_map import MapAverages
from .known_predictors import KnownPredictors
from .other_rows import OtherRows


class RowsGivenEffects(OtherRows):
    """Rows and, for what they depend on, the ``GroupEffects``, which they do not change."""

    offset = None  # which fused calls have with the effects

    def __init__(self, rows, effects):
        super().__init__(rows)
        self.effects = effects

    @property
    def takes_fused_calls(self):
        block = self.effects
        has_mass_matrix = block.along is not None and block.n_held == 0
        return self.rows.takes_fused_calls and self.ops.fuses_effects(self.rows, has_mass_matrix)

    def score(self, beta):
        """log p(y, u | beta, s) up to a constant (m,), and its gradient (m, q)."""
        loglik, score, predictors = self.score_and_predictors(beta)
        self.effects.add_pass(beta, predictors)
        return loglik, score

    def score_and_predictors(self, beta, known=None, common=None):
        """As ``score``, and x beta of all rows (n, m) if it was not known. known, common : as in ``Rows.shift``."""
        block, m = self.effects, len(beta)
        effects, along = block.at(beta), block.along
        shift = self.rows.shift(m, block.of_rows(effects), known=known, common=common)
        (loglik, score), force = self.rows.score(beta, shift), block.force(effects, block.precisions(m))
        if along is not None:
            score = score + (block.sums(shift.terms) - force).T @ along
        return loglik - (effects * force).sum(axis=0) / 2, score, shift.predictors

    def line(self, beta, direction, steps):
        """log p(y, u | beta, s) at beta + step direction; (n_chains, k)."""
        block, m = self.effects, len(beta)
        effects, precision, slopes = block.at(beta), block.precisions(m), block.carried(direction)
        shift = self.rows.shift(m, block.of_rows(effects), block.of_rows(slopes), kept=False)
        force = block.force(slopes, precision)
        level = (effects * block.force(effects, precision)).sum(axis=0)[:, None]
        linear, square = ((one * force).sum(axis=0)[:, None] for one in (effects, slopes))
        return self.rows.line(beta, direction, steps, shift) - (level + steps * (2 * linear + steps * square)) / 2

    def holding(self, theta):
        """The rows as line moves see them, which move no parameters theta of the likelihood's own."""
        return Holding(self, theta)

    def information(self, beta, spare=()):
        """The information of beta (q, q) with u following along the next map. If u does not follow, that at beta
        (m, q) with u held, or where the shrinkage is measured."""
        if self.effects.measured is not None:
            return self._information_where_measured()
        if self.effects.follows:
            return self.effects.next_information(spare)
        return self.rows.information(beta, spare, self.effects.of_rows(self.effects.at(beta)))

    def _information_where_measured(self):
        """The information of beta (q, q) with u following, by the state at which the shrinkage is measured alone."""
        block, at, known = self.effects, self.effects.measured, KnownPredictors()
        known.begin(at.beta, self.predictors(at.beta))
        averages = MapAverages.of(block.terms_of_information(known, at.effects), at)
        return averages.information(self.rows, block.factors, families=block.families)[0]

    def information_by_rows(self, beta):
        """Those where the shrinkage is measured."""
        block, at = self.effects, self.effects.measured
        rows, beta, weight, _ = self.rows.information_by_rows(at.beta, block.of_rows(at.effects))
        averages = MapAverages.of((0.0, None, None), at)
        return rows, beta, weight, [(unit.codes, unit.rooted(averages)) for unit in block.units]
