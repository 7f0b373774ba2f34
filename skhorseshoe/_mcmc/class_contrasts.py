"""Rows of several classes without an order, as samplers see them: one coefficient for each contrast of a column.

With d contrasts of the classes (``_model/multinomial_probit.py``) a column has d coefficients, which share a scale.
They stand side by side: first those of the first shrunk column, then those of the next, and those of the intercept
last. All columns are centred, so the intercepts have priors of their own.
"""

from functools import partial

import numpy as np

from .._backends.line_moves import choose
from .._model.multinomial_probit import MultinomialProbit
from .._utils.threads import cached_property
from .other_rows import OtherRows

_POINTS_OF_INFORMATION = 8  # most points at which the information of rows is averaged
_ROWS_AT_A_TIME = 2**11


def contrasted(problem):
    rows = RowsOfContrasts(problem.rows)
    return problem._replace(rows=rows, fixed=problem.fixed.repeated(rows.columns.n_contrasts))


class ContrastColumns:
    """``Columns`` with d coefficients each. contrasts : (d, K), of the likelihood."""

    def __init__(self, columns, contrasts):
        self.of_one, self.contrasts = columns, contrasts
        self.n_contrasts, self.n_classes = d, _ = contrasts.shape
        self.n_shrunk, self.fit_intercept = d * columns.n_shrunk, columns.fit_intercept
        self.mean, self.sd = np.repeat(columns.mean, d), np.repeat(columns.sd, d)
        self.order, self.mean_of_X, self.informative = columns.order, columns.mean_of_X, columns.informative

    def coefficients(self, beta):
        """As of ``Columns``, by class: coefficients (m, K, p) and intercepts (m, K)."""
        coef, intercept = self.of_one.coefficients(side_by_side(beta, self.n_contrasts))
        p = coef.shape[1]
        by_contrast = coef.reshape(len(beta), self.n_contrasts, p), intercept.reshape(len(beta), self.n_contrasts)
        return np.einsum("mdp,dk->mkp", by_contrast[0], self.contrasts), by_contrast[1] @ self.contrasts

    def by_column(self, shrunk):
        """As of ``Columns``, of the means over contrasts."""
        return self.of_one.by_column(shrunk.reshape(-1, self.n_contrasts).mean(axis=1))


def side_by_side(beta, d):
    """beta (m, q d) with a row for each contrast, as rows take it; (m d, q)."""
    return np.ascontiguousarray(beta.reshape(len(beta), -1, d).transpose(0, 2, 1)).reshape(len(beta) * d, -1)


def _by_column(values, d):
    """The inverse of ``side_by_side``."""
    m = len(values) // d
    return np.ascontiguousarray(values.reshape(m, d, -1).transpose(0, 2, 1)).reshape(m, -1)


def _few(beta):
    """The points at which the information of rows is averaged."""
    return beta[:: -(-len(beta) // _POINTS_OF_INFORMATION)]


def information_of_rows(likelihood, eta):
    """The information of each row about its d linear predictors, averaged over points, eta (n, m, d); (n, d, d)."""
    at_points = likelihood.fisher_information(eta.reshape(-1, eta.shape[2]))
    return at_points.reshape(*eta.shape, -1).mean(axis=1)


def _terms_of_pairs(likelihood, eta, weight):
    """Terms of ``Segment.class_information``: ``weights_of_pairs``, and nothing else."""
    of_rows = information_of_rows(likelihood, eta.reshape(len(eta), -1, likelihood.n_predictors))
    return weights_of_pairs(of_rows * weight[:, None, None]), np.empty((len(eta), 0)), 0.0


def weights_of_pairs(of_rows):
    """Weights (n, d (d + 1) / 2) with which X'WX makes that of d contrasts, whose information in each row is
    ``of_rows`` (n, d, d): those of each contrast alone and of the sum of two, which are not negative."""
    a, b = np.tril_indices(of_rows.shape[1])
    both = of_rows[:, a, a] + (a != b) * (of_rows[:, b, b] + 2 * of_rows[:, a, b])
    return np.maximum(both, 0.0)  # rounding makes less of some


def joined_pairs(by_pair, d):
    """X'WX of d contrasts, those of a column side by side (q d, q d), from one (q, q) for each of those weights."""
    q, (a, b) = len(by_pair[0]), np.tril_indices(d)
    H, diagonal = np.empty((q, d, q, d)), np.compress(a == b, by_pair, axis=0)
    for i, j, both in zip(a, b, by_pair, strict=True):
        H[:, i, :, j] = H[:, j, :, i] = both if i == j else (both - diagonal[i] - diagonal[j]) / 2
    return H.reshape(q * d, -1)


class PrecisionOfContrasts:
    """Draws of d contrasts given latents, by one Cholesky factor for each chain. whole : ``Precision`` of all
    contrasts, which are alike and independent."""

    def __init__(self, whole, d, ops):
        self.of_one, self.d = ops.Precision(np.ascontiguousarray(whole.H[::d, ::d]), whole.threads), d
        self.noise, self.work = whole.noise, whole.work

    def draw(self, b, precisions, noise):
        """As of ``Precision``, all (n_chains, q d)."""
        b, noise = side_by_side(b, self.d), side_by_side(noise, self.d)
        return _by_column(self.of_one.draw(b, np.ascontiguousarray(precisions[:, :: self.d]), noise), self.d)


class RowsOfContrasts(OtherRows):
    """``Rows`` whose coefficients are (m, q d)."""

    def __init__(self, rows):
        super().__init__(rows)
        self.columns = ContrastColumns(rows.columns, rows.likelihood.contrasts)
        self.d, self.takes_fused_calls = self.columns.n_contrasts, rows.fit_fused_calls

    @cached_property
    def quick(self):
        by_laplace = MultinomialProbit(self.rows.likelihood.n_classes, by_laplace=True)
        return RowsOfContrasts(self.rows.with_likelihood(by_laplace))

    def score(self, beta):
        """Log-likelihood (m,) and its gradient (m, q d)."""
        if self.takes_fused_calls and (answer := self.ops.fused_score(self, beta)) is not None:
            return answer
        loglik, score = self.rows.score(side_by_side(beta, self.d))
        return loglik, _by_column(score, self.d)

    def gram(self):
        """X'X for each contrast; (q d, q d)."""
        return np.kron(self.rows.gram(), np.eye(self.d))

    def latent(self, beta, sweep, key):
        xtz, ztz = self.rows.latent(side_by_side(beta, self.d), sweep, key)
        return _by_column(xtz, self.d), ztz

    def information(self, beta, spare=()):
        """The Fisher information averaged over some of the rows of beta (m, q d)."""
        terms = partial(_terms_of_pairs, self.likelihood)
        by_pair, _, _ = self.rows.class_information(side_by_side(_few(beta), self.d), terms)
        return joined_pairs(by_pair, self.d)

    def information_by_rows(self, beta):
        """Those of a contrast on average."""
        weight = np.empty(self.n)
        for some, eta in self.rows.linear_predictors(side_by_side(_few(beta), self.d), _ROWS_AT_A_TIME):
            of_rows = information_of_rows(self.likelihood, eta.reshape(len(eta), -1, self.d))
            weight[some] = np.trace(of_rows, axis1=1, axis2=2) / self.d
        weight *= self.rows.weight if len(self.rows.weight) else 1.0
        return self.rows, side_by_side(beta[:1], self.d), weight, None

    def lines(self, fixed, widths, n_splits=0, n_columns=None):
        return choose(self, fixed, widths, (), n_splits, n_columns)

    def line(self, beta, direction, steps):
        return self.rows.line(*(side_by_side(values, self.d) for values in (beta, direction)), steps)

    def separated_by(self, beta):
        """Whether all of the points of beta (m, q d) have every row of X on the side of its class."""
        return self.rows.separated_by(side_by_side(beta, self.d), np.all)
