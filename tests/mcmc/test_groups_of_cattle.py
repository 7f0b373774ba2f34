"""A public table: cbpp of R's lme4, 15 herds of cattle in four periods, with the animals and the new cases of each.

Published for the logit, ``glmer(cbind(incidence, size - incidence) ~ period + (1 | herd))`` of lme4's reference manual:
coefficients -1.398, -.992, -1.128 and -1.580, standard deviation of herds .642, log-likelihood -92.0. The model here is
probit: draws must have its own posterior, by quadrature. What is published says that the table and the quadrature are
right; the two links differ by a factor of 1.6 to 1.8 where few rows are certain.
"""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import multivariate_t

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import ess_bulk

# Herd by herd: new cases and animals of period 1, 2, ...; two herds have fewer rows.
TABLE = """2 14 3 12 4 9 0 5 | 3 22 1 18 1 21 | 8 22 2 16 0 16 2 20 | 2 10 0 10 2 9 0 6 | 5 18 0 25 0 24 1 4
3 17 0 17 0 18 1 20 | 8 16 1 10 3 9 0 5 | 12 34 | 2 9 0 6 0 8 0 6 | 1 22 1 22 0 18 2 22 | 0 25 5 27 3 22 1 22
2 10 1 8 0 6 0 5 | 1 21 2 24 0 19 0 23 | 11 19 0 2 0 3 0 2 | 1 19 1 15 1 15 0 15"""
PUBLISHED = np.array([-1.3983, -0.9919, -1.1282, -1.5797]), 0.6421, -92.0  # coefficients, deviation, log-likelihood
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(30)


def cattle():
    """Dummies of the later periods with a column of ones, herds, new cases and the animals without."""
    rows = []
    for herd, text in enumerate(TABLE.replace("\n", "|").split("|")):
        counts = np.array(text.split(), int).reshape(-1, 2)
        rows += [(herd, period, cases, size - cases) for period, (cases, size) in enumerate(counts)]
    herd, period, cases, others = np.array(rows).T
    return (period[:, None] == np.arange(1, 4)).astype(float), herd, cases, others


def log_likelihoods(points, log_cdf=log_ndtr):
    """Of points (m, 5): coefficients with the intercept first, and log s; by Gauss-Hermite quadrature."""
    X, herd, cases, others = cattle()
    eta = points[:, :1] + points[:, 1:4] @ X.T
    at = eta[..., None] + np.exp(points[:, 4])[:, None, None] * NODES
    rows = cases[:, None] * log_cdf(at) + others[:, None] * log_cdf(-at)
    by_herd = np.stack([rows[:, herd == g].sum(axis=1) for g in range(herd.max() + 1)], axis=1)
    binomial = (gammaln(cases + others + 1) - gammaln(cases + 1) - gammaln(others + 1)).sum()
    return logsumexp(by_herd, b=WEIGHTS / WEIGHTS.sum(), axis=2).sum(axis=1) + binomial


def log_posterior(points):
    """With s ~ C+(0, 1) in log s, and flat in the coefficients."""
    return log_likelihoods(points) + points[:, 4] - np.log1p(np.exp(2 * points[:, 4]))


def mode(value):
    """The largest value, and the inverse of minus the second derivatives there."""
    found = minimize(lambda x: -value(x[None])[0], np.array([-0.8, -0.5, -0.6, -0.8, -1.0]), method="BFGS")
    return found.x, found.hess_inv


def test_the_quadrature_finds_what_is_published_for_the_logit():
    logit, _ = mode(lambda points: log_likelihoods(points, lambda t: -np.logaddexp(0, -t)))
    coef, s, loglik = PUBLISHED  # by Laplace's approximation, so that the last digits differ
    assert abs(logit[:4] - coef).max() < 0.01
    assert abs(np.exp(logit[4]) - s) < 0.01
    assert abs(log_likelihoods(logit[None], lambda t: -np.logaddexp(0, -t))[0] - loglik) < 0.1


def exact():
    """Posterior means and standard deviations of the probit model, and errors of the means, by importance sampling."""
    centre, covariance = mode(log_posterior)
    law = multivariate_t(centre, 1.3 * covariance, df=5, seed=0)
    points = law.rvs(4000)
    log_share = log_posterior(points) - law.logpdf(points)
    share = np.exp(log_share - logsumexp(log_share))
    mean = share @ points
    deviations = points - mean
    return mean, np.sqrt(share @ deviations**2), np.sqrt(share**2 @ deviations**2)


@pytest.mark.filterwarnings("ignore:By sample_weight")
def test_draws_of_cattle_have_the_posterior_that_quadrature_gives():
    X, herd, cases, others = cattle()
    both = {"X": np.tile(X, (2, 1)), "y": np.repeat([1, 0], len(X)), "groups": np.tile(herd, 2)}
    model = HorseshoeProbitClassifier(random_state=0, unpenalized=[0, 1, 2], n_iter=2000, target_ess=None)
    model.fit(**both, sample_weight=np.concatenate([cases, others]))
    draws = [model.intercept_draws_[..., None], model.coef_draws_, np.log(model.group_scale_draws_)[..., None]]
    draws = np.concatenate(draws, axis=2)
    mean, sd, error = exact()
    error = np.hypot(error, sd / np.sqrt(ess_bulk(draws)))
    assert abs((draws.mean(axis=(0, 1)) - mean) / error).max() < 4.5
    assert abs(draws.std(axis=(0, 1)) / sd - 1).max() < 0.1
    factor = PUBLISHED[0] / draws.mean(axis=(0, 1))[:4]
    assert factor.min() > 1.6
    assert factor.max() < 2.0
