"""The block of the cut points of ordered classes, and the rows of a likelihood that has them.

A sampler sees theta_k = log(c_k+1 - c_k) as coefficients that follow those of the columns and the intercept; the first
cut point is 0, since the intercept moves it. The prior of the cut points, at the mean of the columns, is that of as
many intercepts in order: for two classes it is that of the intercept.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from .._backends import EFFECT_PURPOSE, NO_SWEEP
from .._utils.memmap import cut
from .blocks import Block, BlockDraws
from .other_rows import OtherRows

_FIRST_DEVIATION = 0.5  # of theta at the start
_HELD = 1e12  # precision of theta while it is held
_RIDGE = 1e-2  # least precision of theta in a reference, for classes of which the data tell little
_POINTS_AT_A_TIME, _ROWS_AT_A_TIME = 4, 2**12


class CutPoints(Block):
    """theta, which moves with beta and is judged with it. problem : ``Problem``, with ``Rows``. n_chains : chains."""

    def __init__(self, problem, n_chains):
        self.rows, self.key = RowsWithCutPoints(problem.rows, problem.fixed), problem.key

    def given(self, problem):
        return problem._replace(rows=self.rows, fixed=problem.fixed.padded(self.rows.n_own))

    def start(self, beta):
        """About the theta that the shares of the classes tell."""
        rows = self.rows
        theta = np.log(np.diff(rows.likelihood.first_own(rows.rows.shares()), prepend=0.0))
        noise = rows.ops.normal((len(beta), rows.n_own), self.key, NO_SWEEP, EFFECT_PURPOSE, attempt=1)
        return np.hstack([beta, theta + _FIRST_DEVIATION * noise])

    def values(self, state):
        return (self.rows.own.cut_points(state.beta),)

    def draws_of(self, n_chains, room):
        return CutPointDraws("own_draws", (n_chains, room, self.rows.n_own))


class CutPointDraws(BlockDraws):
    """Draws of the cut points but the first (n_chains, room, K - 2)."""

    def judged(self, n, intercept):
        """The cut points themselves, unless the intercept is not judged."""
        return self.kept[:, :n] - (0.0 if intercept is None else intercept[..., None])

    def to_predict(self, n):
        return {"_own_draws": self.kept[:, :n]}

    def attributes(self, stride):
        return {"_own_draws": self.kept}


class Parts(NamedTuple):
    """Coefficients and theta, where coefficients and cut points are multiplied by c: linear c + fixed + slope log c."""

    linear: object  # (m, q + K - 2)
    fixed: object
    slope: object  # (1, q + K - 2)


class OwnParameters:
    """theta behind the coefficients of ``Rows``, of which there are none for two classes, and its prior.

    fixed : ``FixedPrior``."""

    def __init__(self, rows, fixed):
        self.n, self.q, self.fixed = rows.likelihood.n_own, rows.shape[1] + rows.columns.fit_intercept, fixed

    @property
    def centre(self):
        """The intercept at the mean of the columns is its product with the coefficients; (q,)."""
        return (self.fixed.anchor * self.fixed.wide)[: self.q]

    def gaps(self, beta):
        """Those between cut points; (m, K - 2)."""
        # Of a copy, since NumPy 1 rounds by whether the result lies in memory between the rows of beta.
        return np.exp(np.ascontiguousarray(beta[:, self.q :]))

    def cut_points(self, beta):
        """c_2 to c_K-1; (m, K - 2)."""
        return np.cumsum(self.gaps(beta), axis=1)

    def values_or_none(self, beta):
        """The cut points as passes take them."""
        return self.cut_points(beta) if self.n else None

    def at_mean(self, beta, own):
        """The cut points where columns are at their means; (m, K - 2)."""
        return own - (beta[:, : self.q] @ self.centre)[:, None]

    def energy(self, beta):
        """Minus the logarithm of the density of the cut points, up to a constant; (m,)."""
        if not self.n:
            return 0.0
        return (self.at_mean(beta, self.cut_points(beta)) ** 2).sum(axis=1) * self.fixed.wide**-2.0 / 2

    def grown(self, beta, c):
        """beta with coefficients and cut points multiplied by c (m,)."""
        return np.hstack([beta[:, : self.q] * c[:, None], beta[:, self.q :] + np.log(c)[:, None]])

    def parts(self, beta):
        is_own = np.arange(beta.shape[1]) >= self.q
        return Parts(np.where(is_own, 0.0, beta), np.where(is_own, beta, 0.0), is_own[None].astype(float))


class RowsWithCutPoints(OtherRows):
    """``Rows`` whose coefficients (m, q + K - 2) end with theta."""

    def __init__(self, rows, fixed):
        super().__init__(rows)
        self.fixed, self.own = fixed, OwnParameters(rows, fixed)
        self.n_own, self.q, self.centre, self.precision = self.own.n, self.own.q, self.own.centre, fixed.wide**-2.0
        self.prior_of_own = np.ascontiguousarray(self.centre), self.precision  # as fused calls take it
        # In one block, so that they never take steps, whose last bits differ, whatever the number of threads.
        self.takes_fused_calls = rows.fit_fused_calls and rows.offset is None and len(rows.bounds) == 2

    def score(self, beta, shift=None):
        """Log-likelihood and log-prior of theta (m,), and their gradient (m, q + K - 2)."""
        if self.takes_fused_calls and shift is None and (answer := self.ops.fused_score(self, beta)) is not None:
            return answer
        own, gaps = self.own.cut_points(beta), self.own.gaps(beta)
        loglik, score, by_own = self.rows.score(np.ascontiguousarray(beta[:, : self.q]), shift, own)
        at_mean = self.own.at_mean(beta, own)
        loglik = loglik - (at_mean**2).sum(axis=1) * self.precision / 2 + beta[:, self.q :].sum(axis=1)
        by_own = by_own - at_mean * self.precision
        score = score + self.precision * at_mean.sum(axis=1)[:, None] * self.centre
        by_theta = np.cumsum(by_own[:, ::-1], axis=1)[:, ::-1] * gaps + 1.0
        return loglik, np.hstack([score, by_theta])

    def lines(self, fixed, widths, n_splits=0, n_columns=None):
        """Those of coefficients; theta is held."""
        return self.rows.lines(self.fixed, widths[: 1 + self.q], n_splits, n_columns)

    def holding(self, theta):
        """The rows as line moves see them, which move none of theta (m, K - 2)."""
        return Holding(self, theta)

    def line(self, beta, direction, steps, shift=None):
        """With the log-prior of cut points; direction moves none of theta."""
        at_beta, own = np.ascontiguousarray(beta[:, : self.q]), self.own.cut_points(beta)
        direction = np.ascontiguousarray(direction[:, : self.q])
        loglik = self.rows.line(at_beta, direction, steps, shift, own)
        at = (at_beta @ self.centre)[:, None] + steps * (direction @ self.centre)[:, None]
        return loglik - ((own[:, None] - at[:, :, None]) ** 2).sum(axis=2) * self.precision / 2

    def predictors(self, beta):
        return self.rows.predictors(np.ascontiguousarray(beta[:, : self.q]))

    def gram(self, spare=(), weight=None):
        """X'X, and so large a precision of theta that data augmentation leaves it where chains start. weight : (n,),
        for X' diag(weight) X alone."""
        if weight is not None:
            return self.rows.gram(weight=weight)
        H = np.diag(np.full(self.q + self.n_own, _HELD))
        H[: self.q, : self.q] = self.rows.gram()
        return H

    def information(self, beta, spare=(), effects=None):
        """The Fisher information averaged over the rows of beta (m, q + K - 2). effects : (n_groups, m), or None."""
        if effects is not None:
            weight, with_own, of_own = self.terms_of_information(beta, effects)
            return self.bordered(self.rows.gram(weight=weight), with_own, of_own)
        terms = partial(terms_of_rows, self.likelihood, self.own.gaps(beta))
        (H,), *with_own = self.rows.class_information(np.ascontiguousarray(beta[:, : self.q]), terms)
        return self._joined(*(values / len(beta) for values in (H, *with_own)))

    def bordered(self, H, with_own, of_own):
        """The information of coefficients (q, q) and theta. with_own, of_own : as ``terms_of_information`` gives."""
        in_one = np.zeros(self.n, np.int32), 1
        both = [self.rows.sampler_sums(np.ascontiguousarray(w), *in_one)[0][0] for w in with_own.T]
        return self._joined(H, both, of_own)

    def _joined(self, H, both, of_own):
        """The information of coefficients (q, q), of these and theta (K - 2, q), and of theta, as one matrix."""
        both = np.asarray(both)
        return np.block([[H, both.T], [both, of_own + _RIDGE * np.eye(self.n_own)]])

    def terms_of_information(self, beta, effects=None):
        """The information of each row about eta (n,), that about both eta and theta (n, K - 2), and that of all rows
        about theta, averaged over the rows of beta. effects : as in ``information``."""
        k, m, of_rows = self.n_own, len(beta), self.rows.weight if len(self.rows.weight) else np.ones(self.n)
        weight, both, of_theta = np.zeros(self.n), np.zeros((self.n, k)), np.zeros((k, k))
        for points in cut(0, m, _POINTS_AT_A_TIME):
            coef, gaps = np.ascontiguousarray(beta[points, : self.q]), self.own.gaps(beta[points])
            at_points = None if effects is None else effects[:, points]
            for some, eta in self.rows.linear_predictors(coef, _ROWS_AT_A_TIME, at_points):
                of_eta, with_own, of_own = terms_of_rows(self.likelihood, gaps, eta, of_rows[some])
                weight[some] += of_eta[:, 0]
                both[some] += with_own
                of_theta += of_own
        return weight / m, both / m, of_theta / m

    def information_by_rows(self, beta, effects=None):
        return self.rows, beta[:, : self.q], self.terms_of_information(beta, effects)[0], None


def terms_of_rows(likelihood, gaps, eta, weight):
    """Terms of ``Segment.class_information``: the information of each row about eta (n, 1), that about both eta and
    theta (n, K - 2), and that of all rows about theta, summed over points. gaps : (m, K - 2)."""
    (n, _), k = eta.shape, likelihood.n_own
    of_eta, both, of_theta = np.zeros(n), np.zeros((n, k)), np.zeros((k, k))
    for c, of_point in enumerate(gaps):
        to_theta, own = np.triu(np.tile(of_point[:, None], k)), np.cumsum(of_point)  # derivatives of own, in columns
        at_point, with_own, *of_own = likelihood.fisher_information(eta[:, c], own)
        of_eta += at_point
        both += with_own @ to_theta.T
        diagonal, beside = (weight @ values for values in of_own)
        of_theta += to_theta @ (np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)) @ to_theta.T
    return (weight * of_eta)[:, None], weight[:, None] * both, of_theta


class Holding(OtherRows):
    """Rows of coefficients (m, q) with theta (m, K - 2) held. rows : of both."""

    def __init__(self, rows, theta):
        super().__init__(rows)
        self.theta = theta

    def line(self, beta, direction, steps):
        both = np.hstack([beta, self.theta]), np.hstack([direction, np.zeros_like(self.theta)])
        return self.rows.line(*both, steps)
