"""Rows with effects that follow beta, as fused calls of the core read them (``fused_score.hpp``).

Along the map u = u_0 + A beta, u_0 held, row i has the linear predictor (x_i + A_g(i)) beta + u_0,g(i): a row of
another array, with a shift; with slopes it multiplies u and A by these. What the density of u adds is quadratic in
beta,

    -(u_0 + A beta)' D (u_0 + A beta) / 2,   D = diag(s^-2) of each effect, or Sigma^-1 of those of each group.
"""

from itertools import combinations

import numpy as np


class FusedGivenEffects:
    """What fused calls read of one state after the other. given : ``RowsGivenEffects``, along their map of now."""

    def __init__(self, given):
        self.given, self.effects, rows = given, given.effects, given.rows
        self.map, X, self.dtype = self.effects.along, None, np.promote_types(rows.dtype, np.float32)
        self.of_sampler, m = _of_sampler(rows), 2 * self.effects.n_chains  # a call may have two points of each chain
        q = self.of_sampler.shape[1] + rows.n_own
        self.first = q if self.map is None else self.effects.n_held  # of the coefficients that are followed
        if self.map is not None:
            self.along = self.map[:, self.first :].astype(np.float64)
            X = self._rows_along_map(rows)
            own = [self.along[factor.part] for factor in self.effects.factors]
            self.squares, self.between = np.array([A.T @ A for A in own]), [*self._products_between(own)]
        k = q - self.first
        self.of_groups, self.level = np.empty((rows.groups.n, m)), np.empty(m)
        self.pull, self.curvature = np.empty((m, k)), np.empty((m, k, k))
        rows.ops.give_effects(given, rows, self.of_groups, X, self.level, self.pull, self.curvature)

    def _products_between(self, own):
        """Yields factors with slopes, the numbers i and j of two effects of a group, and A_i' A_j + A_j' A_i. own : the
        A of all factors."""
        for family in self.effects.families:
            for i, j in combinations(range(family.q), 2):
                products = own[family.components[i].number].T @ own[family.components[j].number]
                yield family, i, j, products + products.T

    def _rows_along_map(self, rows):
        """x_i + A_g(i) (n, q), of X's type; with columns for parameters of the likelihood's own."""
        moved = np.hstack([self.of_sampler, np.zeros((rows.n, rows.n_own))])
        for factor in self.effects.factors:
            moved[:, self.first :] += factor.times_slope(self.along[factor.part][factor.codes])
        return moved.astype(rows.held[0].dtype, order="C")

    def predictors(self, beta):
        """x beta of all rows, as of ``Rows``."""
        return (self.of_sampler @ beta[:, : self.of_sampler.shape[1]].T).astype(self.dtype)

    def begin(self, beta):
        """Take the effects as they are at beta (n_chains, q), which follow from there."""
        block, m = self.effects, len(beta)
        effects, precision = block.effects, block.precisions(m)
        if self.map is not None:
            effects = effects - self.along @ beta[:, self.first :].T
        force, of_groups = block.force(effects, precision), block.of_rows(effects)
        level = (effects * force).sum(axis=0) / 2
        if self.map is not None:
            pull, curvature = force.T @ self.along, np.tensordot(precision.T, self.squares, 1)
            for family, i, j, squares in self.between:
                curvature += family.precision[i, j][:, None, None] * squares
        for some in (slice(m), slice(m, None)):
            self.of_groups[:, some], self.level[some] = of_groups, level
            if self.map is not None:
                self.pull[some], self.curvature[some] = pull, curvature


def _of_sampler(rows):
    """x_i in the sampler's columns (n, q)."""
    c = rows.columns
    own = np.column_stack([rows.held[0], np.ones((rows.n, int(c.fit_intercept)))])[:, c.q_order]
    return (own - c.q_centre[c.q_order]) / c.q_unit[c.q_order]
