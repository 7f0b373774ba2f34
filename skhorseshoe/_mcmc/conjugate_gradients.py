"""Draws of many coefficients without a factor of their precision Q: perturb, then solve.

A draw from N(Q^-1 b, Q^-1) is the solution of Q beta = b + e with e ~ N(0, Q). Such an e is a sum over rows, or comes
from a factor of X'X, of which there is one for all sweeps. The solution is found by conjugate gradients, preconditioned
by the diagonal of Q, which holds the prior's precisions (Nishimura & Suchard 2022). Shrinkage makes it quick:
preconditioned, Q is near the identity but for the directions of the few coefficients that the data determine. The
prior's precisions alone take three times as many steps where few coefficients are away from zero, and a third where
they are more than the rows, which is not where this is for. Each step is one pass over X for all chains, or over X'X.

References
----------
Nishimura, A. & Suchard, M. A. (2022). Prior-preconditioned conjugate gradient method for accelerated Gibbs sampling in
"large n, large p" Bayesian sparse regression. Journal of the American Statistical Association 118, 2468-2481.

Siden, P., Lindgren, F., Bolin, D. & Villani, M. (2018). Efficient covariance approximations for large sparse precision
matrices. Journal of Computational and Graphical Statistics 27, 898-909.
"""

import numpy as np

from .._backends import COEF, LEAST_REST, PERTURB, PROBE, PROBE_ROWS
from .._backends.limits import is_without_matrix

_TOLERANCE = 1e-6  # of a preconditioned residual, for each coefficient, where the perturbation is 1
_MAX_STEPS = 10_000
_WORTH = 50  # columns to a step: of so many, steps on X'X take about as long as factors of four chains
_PROBES = 2  # for each chain, whenever the shrinkage is measured
_SUMMED = 4  # stored numbers to a number in a block's sums, at least


def precision(rows, fixed, key):
    """``IterativePrecision`` for the likelihood of z and the fixed prior."""
    form = GramByPasses(rows, fixed, key) if is_without_matrix(rows.X) else GramMatrix(rows.gram(), rows, fixed, key)
    return IterativePrecision(form, rows.ops)


class GramByPasses:
    """H = X' diag(weight) X + F, with a pass over X for each product.

    rows : ``Rows``, whose back end has ``gram_product`` and ``gram_noise``. fixed : ``FixedPrior``, with precision F.
    key : of the random numbers. weight : (n,) float64 on the device, or empty for none.
    """

    most_steps = _MAX_STEPS

    def __init__(self, rows, fixed, key, weight=()):
        ops, columns, p = rows.ops, rows.columns, rows.shape[1]
        self.rows, self.X, self.prior, self.key = rows, rows.held[0], fixed, key
        self.fixed, self.columns = ops.to_device((fixed, columns))
        self.extra_diagonal = self.fixed.diagonal  # what ``noise`` leaves to those who add a diagonal
        self.weight = weight if len(weight) else ops.to_device(np.empty(0))
        n_blocks = max(1, min(len(rows.bounds) - 1, rows.X.size // (_SUMMED * (p + 1))))
        self.bounds = np.linspace(0, rows.n, n_blocks + 1).astype(np.int64)
        mean, variance = ops.moments(self.X, self.weight)
        size = float(self.weight.sum()) if len(weight) else rows.n
        square = (size * (variance + (mean - columns.centre) ** 2) / columns.unit**2)[columns.order]
        diagonal = np.append(square, size)[: len(fixed.anchor)] + fixed.anchor**2 + fixed.diagonal
        self.diagonal = ops.to_device(diagonal)

    def times(self, v):
        """H v_c; v (m, q)."""
        rows, columns = self.rows, self.columns
        sums = rows.ops.gram_product(self.X, self.weight, columns.of_X(v), self.bounds, rows.threads)
        return columns.gradient(sums) + self.fixed.force(v)

    def noise(self, shape, sweep, attempt, purpose, purpose_of_rows):
        """Vectors whose covariance is H less ``extra_diagonal``, and standard normals; (n_chains, q) each."""
        rows, (n_chains, q) = self.rows, shape
        standard = rows.ops.normal((n_chains, q + 1), self.key, sweep, purpose, attempt)
        of_rows = rows.ops.gram_noise(
            self.X, self.weight, shape, self.bounds, attempt, sweep, purpose_of_rows, self.key, rows.threads
        )
        return self.columns.gradient(of_rows) + standard[:, q:] * self.fixed.anchor, standard[:, :q]

    def solve_otherwise(self, b, d):
        """Where ``most_steps`` have not been enough."""
        raise np.linalg.LinAlgError(
            f"Conjugate gradients have not converged in {self.most_steps} steps ({b.shape[1]} coefficients). Little "
            "bounds the coefficients: give slab_scale=2 or a guess expected_nonzero. Or columns of X are very large or "
            "nearly equal: scale them (standardize=True) or drop one."
        )

    def with_information(self, beta):
        """The same with the Fisher information, averaged over the rows of beta (m, q), in place of X'X."""
        rows, p = self.rows, self.rows.shape[1]
        points = rows.columns.of_X(rows.ops.to_host(beta))
        intercepts = points[:, p] if rows.columns.fit_intercept else np.zeros(len(points))
        weights = (
            rows.ops.information_weights(self.X, point[None, :p], intercept)
            for point, intercept in zip(points, intercepts, strict=True)
        )
        return GramByPasses(rows, self.prior, self.key, sum(weights) / len(points))


class GramMatrix:
    """H = M + F, with a matrix that is held, and the Cholesky factor of its correlations.

    M : (q, q) on the host, overwritten. The others are those of ``GramByPasses``.
    """

    extra_diagonal = 0.0

    def __init__(self, M, rows, fixed, key):
        self.rows, self.fixed, self.key = rows, fixed, key
        self.H = H = rows.ops.to_device(fixed.add_to(M))
        self.diagonal = H.reshape(-1)[:: len(H) + 1].copy()
        self.scale = self.diagonal**0.5
        # A column of zeros has no spread: its correlations are those of a column that is like no other.
        inverse = rows.ops.where(self.scale > 0, 1.0 / rows.ops.where(self.scale > 0, self.scale, 1.0), 0.0)
        correlations = H * inverse
        correlations *= inverse[:, None]
        correlations.reshape(-1)[:: len(H) + 1] = 1.0
        self.root = rows.ops.Root(correlations)
        self.most_steps = max(100, len(H) // _WORTH)
        self.factors = None

    def times(self, v):
        return self.rows.ops.times_symmetric(v, self.H, self.rows.threads)

    def noise(self, shape, sweep, attempt, purpose, purpose_of_rows):
        """As ``GramByPasses.noise``; ``purpose_of_rows`` is for those who draw a number for each."""
        n_chains, q = shape
        standard = self.rows.ops.normal((n_chains, 2 * q), self.key, sweep, purpose, attempt)
        return self.root.times(standard[:, q:]) * self.scale, standard[:, :q]

    def solve_otherwise(self, b, d):
        """(H + diag(d_c))^-1 b_c by factors, where ``most_steps`` have not been enough: columns are nearly equal."""
        if self.factors is None:
            self.factors = self.rows.ops.Precision(self.H, self.rows.threads, n_workers=1)
        return self.factors.draw(b, d, 0.0 * b)

    def with_information(self, beta):
        return GramMatrix(self.rows.information(beta), self.rows, self.fixed, self.key)


class IterativePrecision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), for each chain its own b and d.

    form : H, as ``GramByPasses`` or ``GramMatrix``. ops : the back end.
    """

    def __init__(self, form, ops):
        self.form, self.ops, self.watch = form, ops, ops.Watch()

    def noise(self, ops, shape, key, sweep):
        """What ``draw`` takes for randomness: vectors whose covariance is that of H, and standard normals."""
        return self.form.noise(shape, sweep, 0, COEF, PERTURB)

    def begin(self, d):
        """As ``Precision.begin``: nothing can be computed before b is known."""

    def draw(self, b, d, noise, total=None, gamma=None):
        """beta_c = g_c Q_c^-1 b_c + Q_c^-1 e_c, e_c ~ N(0, Q_c); (n_chains, q) float64, as b and d.

        g_c is 1, or with total and gamma (n_chains,) that of g_c^2 = 2 gamma_c / (total_c - b_c' Q_c^-1 b_c).
        """
        perturbation = self._perturbation(d, noise)
        if total is None:
            return self.solve(b + perturbation, d)
        ops, n_chains = self.ops, len(b)
        both = self.solve(ops.concatenate([b, perturbation]), ops.concatenate([d, d]))
        mean, deviation = both[:n_chains], both[n_chains:]
        rest = total - (b * mean).sum(axis=1)
        by_rounding = rest <= LEAST_REST * total
        factor = ops.where(by_rounding, 1.0, (2.0 * gamma / ops.where(by_rounding, 1.0, rest)) ** 0.5)
        return factor[:, None] * mean + deviation

    def _perturbation(self, d, noise):
        of_form, standard = noise
        return of_form + (d + self.form.extra_diagonal) ** 0.5 * standard

    def solve(self, b, d):
        """Q_c^-1 b_c; b, d (m, q). Every right-hand side stops for itself, and more steps do not change it."""
        where = self.ops.where
        scale = 1.0 / (self.form.diagonal + d)
        x, rest = 0.0 * b, b.copy()
        direction = scale * rest
        size = (rest * direction).sum(axis=1)
        enough = _TOLERANCE**2 * b.shape[1]
        for step in range(self.form.most_steps):
            active = size > enough
            if not self.watch.any_left(active, step):
                return x
            turned = self.form.times(direction) + d * direction
            length = where(active, size / where(active, (direction * turned).sum(axis=1), 1.0), 0.0)
            x += length[:, None] * direction
            rest -= length[:, None] * turned
            scaled = scale * rest
            before, size = size, (rest * scaled).sum(axis=1)
            direction *= where(active, size / where(active, before, 1.0), 0.0)[:, None]
            direction += scaled
        return self.form.solve_otherwise(b, d)

    def inverse_diagonal(self, d, sweep):
        """Estimates without bias of the diagonal of Q_c^-1; (n_chains, q).

        A draw x given all its other entries has variance 1 / Q_jj, so that of x_j is this and the mean square of
        x_j's conditional mean, which a few draws tell (Siden et al. 2018).
        """
        diagonal, total = self.form.diagonal + d, 0.0
        for probe in range(_PROBES):
            e = self._perturbation(d, self.form.noise(d.shape, sweep, probe, PROBE, PROBE_ROWS))
            total = total + (self.solve(e, d) - e / diagonal) ** 2
        return 1.0 / diagonal + total / _PROBES

    def information(self, beta):
        """The same with the Fisher information, averaged over the rows of beta (m, q), in place of X'X."""
        return IterativePrecision(self.form.with_information(beta), self.ops)
