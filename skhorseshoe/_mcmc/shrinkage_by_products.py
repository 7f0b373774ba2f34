"""The shrinkage factors of many columns, without a matrix: kappa_j = d_j (Q^-1)_jj, with Q = H + diag(d).

With signs z drawn at random, M the diagonal of Q and x = Q^-1 M^1/2 z, z_j x_j / M_jj^(1/2) is an unbiased estimate of
(Q^-1)_jj (Hutchinson 1989). Conjugate gradients find x in few steps (``conjugate_gradients.py``). A product with H is a
difference of two scores. It has the correlations of the information at one point, and the diagonal of that averaged
over states.
"""

from .._backends import PROBE_PURPOSE
from .conjugate_gradients import IterativePrecision

_PREDICTOR_CHANGE = 0.02  # change of linear predictors, in typical size, over which scores are compared
_LARGEST_RATIO = 10.0  # of the averaged information of a column to that at the point


class ShrinkageByProducts:
    """The estimates for these rows; also H as ``IterativePrecision`` takes it.

    rows : ``Rows``. fixed : ``FixedPrior``. beta : states (m, q) over which the information is averaged; scores are
    compared at their mean. key : of the random numbers.
    """

    tolerance = 0.03  # an estimate needs no more digits
    most_steps = 40  # each with a pass over X for all chains

    def __init__(self, rows, fixed, beta, key):
        self.rows, self.fixed, self.point, self.key = rows, fixed, beta.mean(axis=0), key
        averaged, _, _ = rows.information_diagonal(beta)
        at_point, self.centre, _ = rows.information_diagonal(self.point[None])
        ratio = (averaged / rows.ops.where(at_point > 0, at_point, 1.0)).clip(0.0, _LARGEST_RATIO)
        self.factor = ratio**0.5
        self.rest = averaged - ratio * at_point + fixed.diagonal
        self.diagonal = averaged + fixed.diagonal
        _, self.score = rows.score(self.point[None])
        self.solver = IterativePrecision(self)

    def __call__(self, d, sweep):
        """kappa, estimated; d (n_chains, q), precisions by the scales alone."""
        ops, p = self.rows.ops, self.rows.columns.n_shrunk
        root = (self.diagonal + d) ** 0.5  # M^1/2
        signs = ops.where(ops.normal(d.shape, self.key, sweep, PROBE_PURPOSE) > 0, 1.0, -1.0)
        inverse = signs * self.solver.solve(root * signs, d) / root
        return ((d[:, :p] + self.fixed.slab_precision) * inverse[:, :p]).clip(0.0, None)

    def times(self, v):
        """H v_c; v (n_chains, q)."""
        scaled = v * self.factor
        norm = ((scaled**2 * self.diagonal).sum(axis=1) / self.rows.size()) ** 0.5
        step = (_PREDICTOR_CHANGE / norm)[:, None]
        beta = scaled * step
        beta[:, -1] -= (beta * self.centre).sum(axis=1)
        _, score = self.rows.score(self.point + beta)
        change = (self.score - score) / step
        change = change - change[:, -1:] * self.centre
        return change * self.factor + self.rest * v

    def solve_otherwise(self, b, d, x):
        """x, as near as ``most_steps`` have come."""
        return x
