"""The shrinkage factors of many columns, without a matrix: kappa_j = d_j (Q^-1)_jj, with Q = H + diag(d).

With signs z drawn at random, z_j (M^-1/2 w)_j is an unbiased estimate of (Q^-1)_jj if Q w = M^1/2 z, M the diagonal
of Q (Hutchinson 1989). Conjugate gradients solve that (Nishimura & Suchard 2022); M as preconditioner makes Q nearly
the identity but for directions of correlated columns that are not shrunk, so a few steps suffice. A product with H is a
difference of two scores. It has the correlations of the information at one point, and the diagonal of that averaged
over states.
"""

from .._backends import PROBE_PURPOSE

_TOLERANCE = 0.03  # largest residual of a coefficient, root mean square, in units of the right-hand side
_MOST_STEPS = 40  # of conjugate gradients, each with a pass over X for all chains
_PREDICTOR_CHANGE = 0.02  # change of linear predictors, in typical size, over which scores are compared
_LARGEST_RATIO = 10.0  # of the averaged information of a column to that at the point


class ShrinkageByProducts:
    """The estimates for these rows.

    rows : ``Rows``. fixed : ``FixedPrior``. point : beta (q,) at which scores are compared. diagonal : the information
    averaged over states, as ``Rows.information_diagonal`` gives it. key : of the random numbers.
    """

    def __init__(self, rows, fixed, point, diagonal, key):
        self.rows, self.fixed, self.point, self.key = rows, fixed, point, key
        averaged, self.centre, _ = diagonal
        at_point, own_centre, _ = rows.information_diagonal(point[None])
        ratio = (averaged / rows.ops.where(at_point > 0, at_point, 1.0)).clip(0.0, _LARGEST_RATIO)
        self.factor = ratio**0.5
        self.rest = averaged - ratio * at_point + fixed.diagonal
        self.diagonal, self.centre = averaged + fixed.diagonal, own_centre
        _, self.score = rows.score(point[None])

    def __call__(self, d, sweep):
        """kappa, estimated; d (n_chains, p) of the scales alone."""
        ops, p = self.rows.ops, d.shape[1]
        full = ops.empty_like(self.rows.ops.concatenate([self.point[None]] * len(d)))
        full[:, :p], full[:, p:] = d, 0.0
        scale = (self.diagonal + full) ** 0.5  # M^1/2
        signs = ops.where(ops.normal(full.shape, self.key, sweep, PROBE_PURPOSE) > 0, 1.0, -1.0)
        solution = self._solve(signs, full, scale)
        return ((d + self.fixed.slab_precision) * (signs * solution / scale**2)[:, :p]).clip(0.0, None)

    def _solve(self, b, d, scale):
        """(M^-1/2 Q M^-1/2)^-1 b_c."""
        x, residual, direction = 0.0 * b, b.copy(), b.copy()
        size = (residual**2).sum(axis=1)
        tolerance = _TOLERANCE**2 * b.shape[1]
        for _ in range(_MOST_STEPS):
            active = size > tolerance
            if not active.any():
                break
            product = self._times(direction / scale, d) / scale
            length = self.rows.ops.where(active, size / (direction * product).sum(axis=1), 0.0)[:, None]
            x, residual = x + length * direction, residual - length * product
            last, size = size, (residual**2).sum(axis=1)
            direction = residual + (size / last)[:, None] * direction
        return x

    def _times(self, v, d):
        """Q v_c."""
        scaled = v * self.factor
        norm = ((scaled**2 * self.diagonal).sum(axis=1) / self.rows.size()) ** 0.5
        step = (_PREDICTOR_CHANGE / norm)[:, None]
        beta = scaled * step
        beta[:, -1] -= (beta * self.centre).sum(axis=1)
        _, score = self.rows.score(self.point + beta)
        change = (self.score - score) / step
        change = change - change[:, -1:] * self.centre
        return change * self.factor + (self.rest + d) * v
