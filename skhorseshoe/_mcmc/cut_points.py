"""The block of the cut points of ordered classes, and the rows of a likelihood that has them.

A sampler sees theta_k = log(c_k+1 - c_k) as coefficients that follow those of the columns and the intercept; the first
cut point is 0, since the intercept moves it. The prior of the cut points, at the mean of the columns, is that of as
many intercepts in order: for two classes it is that of the intercept.
"""

import numpy as np

from .._backends import EFFECT_PURPOSE, NO_SWEEP
from .._utils.memmap import cut
from .blocks import Block
from .cut_point_draws import CutPointDraws

_FIRST_DEVIATION = 0.5  # of theta at the start
_HELD = 1e12  # precision of theta while it is held
_RIDGE = 1e-2  # least precision of theta in a reference, for classes of which the data tell little
_POINTS_AT_A_TIME, _ROWS_AT_A_TIME = 4, 2**12
_SHARED = "n", "shape", "columns", "is_sparse", "likelihood", "ops", "threads", "groups", "size"


class CutPoints(Block):
    """theta, which is part of the state of beta. problem : ``Problem``, with ``Rows``. n_chains : chains."""

    def __init__(self, problem, n_chains):
        self.rows, self.key = RowsWithCutPoints(problem.rows, problem.fixed), problem.key

    def given(self, problem):
        """As in ``Block``."""
        return problem._replace(rows=self.rows, fixed=problem.fixed.padded(self.rows.n_own))

    def start(self, beta):
        """As in ``Block``: about the theta that the shares of the classes tell."""
        rows = self.rows
        theta = np.log(np.diff(rows.likelihood.first_own(rows.rows.shares()), prepend=0.0))
        noise = rows.ops.normal((len(beta), rows.n_own), self.key, NO_SWEEP, EFFECT_PURPOSE)
        return np.hstack([beta, theta + _FIRST_DEVIATION * noise])

    def sweep(self, state, law):
        """Nothing of its own: theta moves with beta."""
        return law(state)

    def judged(self):
        """Nothing further: theta is judged with beta."""
        return None

    def values(self, state):
        """The cut points but the first (n_chains, K - 2)."""
        return (self.rows.cut_points(state.beta),)

    def draws_of(self, n_chains, room):
        """``CutPointDraws``."""
        return CutPointDraws(n_chains, room, self.rows.n_own)

    def prior(self):
        """As in ``Block``."""
        return {}

    def arrays(self):
        """Nothing further."""
        return {}


class RowsWithCutPoints:
    """``Rows`` whose coefficients (m, q + K - 2) end with theta."""

    takes_fused_calls = False

    def __init__(self, rows, fixed):
        for name in _SHARED:
            setattr(self, name, getattr(rows, name))
        self.rows, self.fixed, self.n_own = rows, fixed, rows.likelihood.n_own
        self.precision, self.q = fixed.wide**-2.0, rows.shape[1] + rows.columns.fit_intercept
        self.centre = fixed.anchor * fixed.wide  # the intercept at the mean of the columns is its product with beta

    def cut_points(self, beta):
        """c_2 to c_K-1; (m, K - 2)."""
        return np.cumsum(np.exp(beta[:, self.q :]), axis=1)

    @property
    def quick(self):
        """As of ``Rows``."""
        return self

    def score(self, beta):
        """Log-likelihood and log-prior of theta (m,), and their gradient (m, q + K - 2)."""
        own, gaps = self.cut_points(beta), np.exp(beta[:, self.q :])
        loglik, score, by_own = self.rows.score(np.ascontiguousarray(beta[:, : self.q]), own=own)
        at_mean = own - (beta[:, : self.q] @ self.centre)[:, None]  # cut points where columns are at their means
        loglik = loglik - (at_mean**2).sum(axis=1) * self.precision / 2 + beta[:, self.q :].sum(axis=1)
        by_own = by_own - at_mean * self.precision
        score = score + self.precision * at_mean.sum(axis=1)[:, None] * self.centre
        by_theta = np.cumsum(by_own[:, ::-1], axis=1)[:, ::-1] * gaps + 1.0
        return loglik, np.hstack([score, by_theta])

    def lines(self, fixed, widths, n_splits=0, n_columns=None):
        """As ``Rows.lines``; theta is held."""
        return self.rows.lines(self.fixed, widths[: 1 + self.q], n_splits, n_columns)

    def holding(self, theta):
        """The rows as line moves see them, which move none of theta (m, K - 2)."""
        return _Holding(self, theta)

    def gram(self):
        """X'X, and so large a precision of theta that data augmentation leaves it where chains start."""
        H = np.diag(np.full(self.q + self.n_own, _HELD))
        H[: self.q, : self.q] = self.rows.gram()
        return H

    def information(self, beta, spare=()):
        """The Fisher information averaged over the rows of beta (m, q + K - 2)."""
        q, k = self.q, self.n_own
        weight, both, of_theta = (values / len(beta) for values in self._sums_of_information(beta))
        of_rows = self.rows.weight if len(self.rows.weight) else 1.0
        H = np.zeros((q + k, q + k))
        H[:q, :q] = self.rows.gram(weight=weight * of_rows)
        H[q:, q:] = of_theta + _RIDGE * np.eye(k)
        for j in range(k):
            H[q + j, :q] = H[:q, q + j] = self.rows.weighted_sum(both[:, j] * of_rows)
        return H

    def _sums_of_information(self, beta):
        """The information of each row about eta (n,), that about both eta and theta (n, K - 2), and that of all rows
        about theta, each summed over the rows of beta."""
        k, of_rows = self.n_own, self.rows.weight if len(self.rows.weight) else np.ones(self.n)
        weight, both, of_theta = np.zeros(self.n), np.zeros((self.n, k)), np.zeros((k, k))
        for points in (beta[block] for block in cut(0, len(beta), _POINTS_AT_A_TIME)):
            predictors = self.rows.predictors(np.ascontiguousarray(points[:, : self.q])).astype(np.float64)
            predictors += 0.0 if self.rows.offset is None else self.rows.offset[:, None]
            for c, gaps in enumerate(np.exp(points[:, self.q :])):
                to_theta, own = np.triu(np.tile(gaps[:, None], k)), np.cumsum(gaps)  # derivatives of own, in columns
                for some in cut(0, self.n, _ROWS_AT_A_TIME):
                    of_eta, with_own, *of_own = self.likelihood.fisher_information(predictors[some, c], own)
                    weight[some] += of_eta
                    both[some] += with_own @ to_theta.T
                    diagonal, beside = (of_rows[some] @ values for values in of_own)
                    of_own = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
                    of_theta += to_theta @ of_own @ to_theta.T
        return weight, both, of_theta

    def separated_by(self, beta):
        """As ``Rows.separated_by``."""
        return self.rows.separated_by(beta)

    def information_by_rows(self, beta):
        """As ``Rows.information_by_rows``."""
        weight = self._sums_of_information(beta)[0] / len(beta)
        return self.rows, beta[:, : self.q], weight * (self.rows.weight if len(self.rows.weight) else 1.0), None


class _Holding:
    """Rows of coefficients (m, q) with theta held."""

    def __init__(self, rows, theta):
        self.rows, self.own, self.ops, self.columns = rows, np.cumsum(np.exp(theta), axis=1), rows.ops, rows.columns

    def line(self, beta, direction, steps):
        """Log-likelihoods and log-priors at beta + step direction; (m, k)."""
        loglik, centre = self.rows.rows.line(beta, direction, steps, own=self.own), self.rows.centre
        at = (beta @ centre)[:, None] + steps * (direction @ centre)[:, None]
        return loglik - ((self.own[:, None] - at[:, :, None]) ** 2).sum(axis=2) * self.rows.precision / 2
