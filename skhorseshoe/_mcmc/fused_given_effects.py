"""Rows with effects that follow beta, as fused calls of the core read them (``exports/fused_score.hpp``).

Along the map u = u_0 + A beta, u_0 held, row i has the linear predictor (x_i + A_g(i)) beta + u_0,g(i): these are rows of
an array with a shift. What the density of u adds is quadratic in beta,

    -(u_0 + A beta)' D (u_0 + A beta) / 2,   D = diag(s^-2) of each effect.
"""

import numpy as np


class FusedGivenEffects:
    """What fused calls read of one state after the other. given : ``RowsGivenEffects``, along their map of now."""

    def __init__(self, given):
        self.given, self.effects, rows = given, given.effects, given.rows
        self.map, self.along, X, self.dtype = self.effects.along, None, None, np.promote_types(rows.dtype, np.float32)
        self.of_sampler = _of_sampler(rows)
        if self.map is not None:
            self.along = self.map.astype(np.float64)
            X = self._rows_along_map(rows)
            self.squares = np.array(
                [self.along[factor.part].T @ self.along[factor.part] for factor in self.effects.factors]
            )
        # Twice the chains, so that a call may have two points of each.
        self.n_points = 2 * self.effects.n_chains
        self.of_groups = np.empty((rows.groups.n, self.n_points))
        self.level, q = np.empty(self.n_points), len(rows.columns.q_order)
        self.pull = self.curvature = None
        if self.along is not None:
            self.pull, self.curvature = np.empty((self.n_points, q)), np.empty((self.n_points, q, q))
        rows.ops.give_effects(given, rows, self.of_groups, X, self.level, self.pull, self.curvature)

    def _rows_along_map(self, rows):
        """x_i + A_g(i) (n, q), of X's type."""
        moved = [self.along[factor.part][factor.row_groups.codes] for factor in self.effects.factors]
        return np.ascontiguousarray(sum(moved, self.of_sampler), rows.held[0].dtype)

    def predictors(self, beta):
        """x beta of all rows, as of ``Rows``."""
        return (self.of_sampler @ beta.T).astype(self.dtype)

    def begin(self, beta):
        """Take the effects as they are at beta (n_chains, q), which follow from there."""
        block, m = self.effects, len(beta)
        effects, precision = block.effects, block.precisions(m)
        if self.along is not None:
            effects = effects - self.along @ beta.T
            pull = (effects * block.by_effect(precision)).T @ self.along
            curvature = np.tensordot(precision.T, self.squares, 1)
        of_groups, level = block.of_rows(effects), self.given.weighed(effects**2, precision) / 2
        for some in (slice(m), slice(m, None)):
            self.of_groups[:, some], self.level[some] = of_groups, level
            if self.along is not None:
                self.pull[some], self.curvature[some] = pull, curvature


def _of_sampler(rows):
    """x_i in the sampler's columns (n, q)."""
    c = rows.columns
    own = np.column_stack([rows.held[0], np.ones((rows.n, int(c.fit_intercept)))])[:, c.q_order]
    return (own - c.q_centre[c.q_order]) / c.q_unit[c.q_order]
