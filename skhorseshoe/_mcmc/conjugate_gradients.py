"""Draws of many coefficients without a Cholesky factor of their precision Q: perturb, then solve.

A draw from N(Q^-1 b, Q^-1) is the solution of Q beta = b + e with e ~ N(0, Q). Such an e is a sum over rows, or comes
from a Cholesky factor of X'X, computed once for all sweeps. The solution is found by conjugate gradients with the
diagonal of Q, which includes the prior precisions, as preconditioner (Nishimura & Suchard 2022). Shrinkage makes this
quick: preconditioned, Q is near the identity but for the directions of the few coefficients that the data determine.
The prior precisions alone take three times as many steps where few coefficients are away from zero. Each step is one
pass over X for all chains, or a product with X'X.

References
----------
Nishimura, A. & Suchard, M. A. (2022). Prior-preconditioned conjugate gradient method for accelerated Gibbs sampling in
"large n, large p" Bayesian sparse regression. Journal of the American Statistical Association 118, 2468-2481.

Siden, P., Lindgren, F., Bolin, D. & Villani, M. (2018). Efficient covariance approximations for large sparse precision
matrices. Journal of Computational and Graphical Statistics 27, 898-909.
"""

import numpy as np

from .._backends import COEF_PURPOSE, LEAST_RESIDUAL, PERTURB_PURPOSE, PROBE_PURPOSE, PROBE_ROWS_PURPOSE
from .._backends.limits import is_without_matrix

_TOLERANCE = 1e-6  # largest preconditioned residual of a coefficient of a draw, relative to its perturbation
_MOST_SOLVER_STEPS = 10_000  # largest number of conjugate gradient steps with passes over X
_COLUMNS_PER_STEP = 50  # columns to a step on X'X with which steps take about as long as four Cholesky factors
_PROBES = 2  # number of random vectors of a chain that estimate the shrinkage
_NUMBERS_PER_SUM = 4  # least number of stored numbers of a block for each of its sums


def precision(rows, fixed, key):
    """``IterativePrecision`` for the likelihood of z and the fixed prior."""
    form = GramByPasses(rows, fixed, key) if is_without_matrix(rows.X) else GramMatrix(rows.gram(), rows, fixed, key)
    return IterativePrecision(form)


class GramByPasses:
    """H = X' diag(weight) X + F, with a pass over X for each product.

    rows : ``Rows``, whose back end has ``gram_product`` and ``gram_noise``. fixed : ``FixedPrior``, with precision F.
    key : of the random numbers. weight : (n,) float64 on the device, or empty for none.
    """

    most_steps, tolerance = _MOST_SOLVER_STEPS, _TOLERANCE

    def __init__(self, rows, fixed, key, weight=()):
        ops, columns, p = rows.ops, rows.columns, rows.shape[1]
        self.rows, self.X, self.prior, self.key = rows, rows.held[0], fixed, key
        self.fixed, self.columns = ops.to_device((fixed, columns))
        self.extra_diagonal = self.fixed.diagonal  # the part of H whose noise the caller adds with its own diagonal
        self.weight = weight if len(weight) else ops.to_device(np.empty(0))
        n_blocks = max(1, min(len(rows.bounds) - 1, rows.X.size // (_NUMBERS_PER_SUM * (p + 1))))
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
        row_noise = rows.ops.gram_noise(
            self.X, self.weight, shape, self.bounds, self.key, sweep, purpose_of_rows, attempt, rows.threads
        )
        return self.columns.gradient(row_noise) + standard[:, q:] * self.fixed.anchor, standard[:, :q]

    def solve_otherwise(self, b, d, x):
        """The error where ``most_steps`` are not enough."""
        raise np.linalg.LinAlgError(
            f"Conjugate gradients have not converged in {self.most_steps} steps ({b.shape[1]} coefficients). Little "
            "bounds the coefficients: give slab_scale='per_contrast' or a guess expected_nonzero. Or columns of X are "
            "very large or nearly equal: scale them (standardize=True) or drop one."
        )

    def with_information(self, beta):
        """This with the Fisher information, averaged over the rows of beta (m, q), in place of X'X."""
        rows = self.rows
        points = zip(*rows.columns.coefficients(rows.ops.to_host(beta)), strict=True)
        weights = (rows.likelihood.information(self.X @ coef[:, None] + intercept)[:, 0] for coef, intercept in points)
        return GramByPasses(rows, self.prior, self.key, sum(weights) / len(beta))


class GramMatrix:
    """H = M + F as a matrix, with the Cholesky factor of its correlations.

    M : (q, q) on the host, overwritten. Other arguments are those of ``GramByPasses``.
    """

    extra_diagonal, tolerance = 0.0, _TOLERANCE

    def __init__(self, M, rows, fixed, key):
        self.rows, self.fixed, self.key = rows, fixed, key
        self.H = H = rows.ops.to_device(fixed.add_to(M))
        self.diagonal = H.reshape(-1)[:: len(H) + 1].copy()
        self.scale = self.diagonal**0.5
        # A column of zeros is taken as uncorrelated with the others.
        inverse = rows.ops.where(self.scale > 0, 1.0 / rows.ops.where(self.scale > 0, self.scale, 1.0), 0.0)
        correlations = H * inverse
        correlations *= inverse[:, None]
        correlations.reshape(-1)[:: len(H) + 1] = 1.0
        self.root = rows.ops.Root(correlations)
        self.most_steps = max(100, len(H) // _COLUMNS_PER_STEP)
        self.cholesky = None  # ``Precision``, once it is needed

    def times(self, v):
        return self.rows.ops.times_symmetric(v, self.H, self.rows.threads)

    def noise(self, shape, sweep, attempt, purpose, purpose_of_rows):
        """As ``GramByPasses.noise``, without random numbers of rows."""
        n_chains, q = shape
        standard = self.rows.ops.normal((n_chains, 2 * q), self.key, sweep, purpose, attempt)
        return self.root.times(standard[:, q:]) * self.scale, standard[:, :q]

    def solve_otherwise(self, b, d, x):
        """(H + diag(d_c))^-1 b_c by Cholesky factors, where ``most_steps`` are not enough: columns are nearly equal."""
        if self.cholesky is None:
            self.cholesky = self.rows.ops.Precision(self.H, self.rows.threads, n_workers=1)
        return self.cholesky.draw(b, d, 0.0 * b)

    def with_information(self, beta):
        return GramMatrix(self.rows.information(beta), self.rows, self.fixed, self.key)


class IterativePrecision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), with b and d of each chain.

    form : H, as ``GramByPasses`` or ``GramMatrix``; for ``solve`` alone, as ``ShrinkageByProducts``.
    """

    def __init__(self, form):
        self.form, self.ops = form, form.rows.ops
        self.watch = self.ops.Watch()

    def noise(self, ops, shape, key, sweep):
        """The random part of ``draw``: vectors with covariance H, and standard normals."""
        return self.form.noise(shape, sweep, 0, COEF_PURPOSE, PERTURB_PURPOSE)

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
        residual = total - (b * mean).sum(axis=1)
        by_rounding = residual <= LEAST_RESIDUAL * total
        factor = ops.where(by_rounding, 1.0, (2.0 * gamma / ops.where(by_rounding, 1.0, residual)) ** 0.5)
        return factor[:, None] * mean + deviation

    def _perturbation(self, d, noise):
        form_noise, standard = noise
        return form_noise + (d + self.form.extra_diagonal) ** 0.5 * standard

    def solve(self, b, d):
        """Q_c^-1 b_c; b, d (m, q). Each right-hand side stops by itself, and further steps do not change it."""
        where = self.ops.where
        scale = 1.0 / (self.form.diagonal + d)
        x, residual = 0.0 * b, b.copy()
        direction = scale * residual
        size = (residual * direction).sum(axis=1)
        tolerance = self.form.tolerance**2 * b.shape[1]
        for step in range(self.form.most_steps):
            active = size > tolerance
            if not self.watch.any_left(active, step):
                return x
            product = self.form.times(direction) + d * direction
            length = where(active, size / where(active, (direction * product).sum(axis=1), 1.0), 0.0)
            x += length[:, None] * direction
            residual -= length[:, None] * product
            scaled = scale * residual
            last_size, size = size, (residual * scaled).sum(axis=1)
            direction *= where(active, size / where(active, last_size, 1.0), 0.0)[:, None]
            direction += scaled
        return self.form.solve_otherwise(b, d, x)

    def inverse_diagonal(self, d, sweep):
        """Unbiased estimates of the diagonal of Q_c^-1; (n_chains, q).

        The variance of entry x_j of a draw is 1 / Q_jj, its variance given all other entries, plus the mean square of
        its conditional mean, which a few draws estimate (Siden et al. 2018).
        """
        diagonal, total = self.form.diagonal + d, 0.0
        for probe in range(_PROBES):
            e = self._perturbation(d, self.form.noise(d.shape, sweep, probe, PROBE_PURPOSE, PROBE_ROWS_PURPOSE))
            total = total + (self.solve(e, d) - e / diagonal) ** 2
        return 1.0 / diagonal + total / _PROBES

    def information(self, beta):
        """This with the Fisher information, averaged over the rows of beta (m, q), in place of X'X."""
        return IterativePrecision(self.form.with_information(beta))
