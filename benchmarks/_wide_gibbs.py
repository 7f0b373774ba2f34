"""The chain of "gibbs" at a price that allows thousands of draws where columns are more than rows.

Its coefficients are drawn from the same law by matrices over the rows (Bhattacharya, Chakraborty & Mallick 2016), not
from a factor over the columns. How well it mixes is a matter of the law alone. Nothing else is changed, but shrinkage
is not measured.
"""

from contextlib import contextmanager

import numpy as np

from skhorseshoe._backends import COEF_PURPOSE
from skhorseshoe._mcmc import run
from skhorseshoe._mcmc.chains import GibbsChains


class WidePrecision:
    """Draws from N(Q^-1 b, Q^-1), Q = X'X + diag(fixed + d). X : (n, p), in the order of the coefficients."""

    def __init__(self, X, fixed):
        self.X, self.fixed = X, fixed

    def noise(self, ops, shape, key, sweep):
        n_chains, p = shape
        return ops.normal((n_chains, p + len(self.X)), key, sweep, COEF_PURPOSE)

    def draw(self, b, d, noise):
        X, p = self.X, b.shape[1]
        w = 1.0 / (d + self.fixed)
        u = w * b + np.sqrt(w) * noise[:, :p]
        V = np.eye(len(X)) + np.stack([(X * w_c) @ X.T for w_c in w])
        rest = np.linalg.solve(V, (u @ X.T + noise[:, p:])[:, :, None])[:, :, 0]
        return u - w * (rest @ X)


class WideGibbsChains(GibbsChains):
    """No intercept, no unpenalised columns."""

    def _precision(self):
        return WidePrecision(np.asarray(self.problem.rows.X, np.float64), self.problem.fixed.diagonal)

    def shrinkage(self):
        return np.zeros_like(self.state.lambda_sq_inv)


@contextmanager
def in_its_place():
    """Within it sampler="gibbs" is this chain."""
    before, run._CHAINS["gibbs"] = run._CHAINS["gibbs"], WideGibbsChains
    try:
        yield
    finally:
        run._CHAINS["gibbs"] = before
