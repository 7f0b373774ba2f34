"""Data sets from the model itself, and the ranks of the truth among the draws (Talts et al. 2018), for `exactness.py`.

The model is fitted to two classes only, so data sets with one are passed over, as are those that a rule of the case
refuses. That is a condition on the data: the law of the truth given them stays that of the posterior.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from skhorseshoe import HorseshoeProbitClassifier

N_CHAINS, N_DRAWS = 11, 9  # of each chain, so that a rank is one of 100; many chains depend less on how they mix
TAU_0 = 0.5
FREE = 100.0  # standard deviation of a coefficient that is not shrunk, of a column of unit size
SLAB = 1.0
TRIALS = 3
WIDE_SHAPE = 10, 14  # more columns than rows: "hmc" is in the coordinates of the prior
RANKED = 4  # coefficients at most


class Case(NamedTuple):
    """A sampler with an option, sweeps for each draw that is kept, and how many data sets."""

    sampler: str
    simulate: object  # rng -> X, y, weights or None, the true coefficients (p,), intercept and tau
    settings: dict = {}  # noqa: RUF012
    thin: int = 30
    n_sets: int = 100
    intercept: bool = False


def prior(rng, p=3, slab=np.inf):
    """beta (p,) and tau; with a slab, by rejection: it multiplies the horseshoe by exp(-beta^2 / 2 slab^2)."""
    while True:
        tau = TAU_0 * abs(rng.standard_cauchy())
        beta = rng.standard_normal(p) * abs(rng.standard_cauchy(p)) * tau
        if rng.random() < np.exp(-(beta**2).sum() / (2 * slab**2)):
            return beta, tau


def plain(rng, slab=np.inf, shape=(40, 3)):
    beta, tau = prior(rng, shape[1], slab)
    X = rng.standard_normal(shape)
    return X, response(rng, X @ beta), None, beta, 0.0, tau


def with_intercept(rng, slab=np.inf, shape=(40, 3)):
    beta, tau = prior(rng, shape[1], slab)
    X = rng.standard_normal(shape) + 0.3
    intercept = FREE * rng.standard_normal() - X.mean(axis=0) @ beta
    return X, response(rng, X @ beta + intercept), None, beta, intercept, tau


def unpenalised(rng):
    """The first column is not shrunk; data sets that it separates alone are passed over."""
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3))
    beta[0] = FREE / np.sqrt((X[:, 0] ** 2).mean()) * rng.standard_normal()
    y = response(rng, X @ beta)
    separated = (y == (X[:, 0] > 0)).mean() in (0.0, 1.0)
    return X, np.zeros(40, bool) if separated else y, None, beta, 0.0, tau


def standardised(rng):
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3)) * [1.0, 100.0, 0.01]
    beta /= X.std(axis=0)
    return X, response(rng, X @ beta), None, beta, 0.0, tau


def weighted(rng):
    """Each of 15 rows was seen three times; it is given once for each class, weighted by how often."""
    beta, tau = prior(rng)
    X = rng.standard_normal((15, 3))
    ones = response(rng, np.repeat(X @ beta, TRIALS)).reshape(15, TRIALS).sum(axis=1)
    weight = np.concatenate([ones, TRIALS - ones]).astype(float)
    y = np.repeat([True, False], 15)
    seen = weight > 0
    return np.concatenate([X, X])[seen], y[seen], weight[seen], beta, 0.0, tau


def sparse_rows(rng):
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3)) * (rng.random((40, 3)) < 0.6)
    return sparse.csr_array(X), response(rng, X @ beta), None, beta, 0.0, tau


def single(rng):
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3), dtype=np.float32)
    return X, response(rng, X @ beta), None, beta, 0.0, tau


def slab(rng):
    return plain(rng, SLAB)


def wide(rng):
    return plain(rng, SLAB, WIDE_SHAPE)


def wide_with_intercept(rng):
    return with_intercept(rng, SLAB, WIDE_SHAPE)


def response(rng, eta):
    return eta + rng.standard_normal(len(eta)) > 0


CASES = {
    "hmc": Case("hmc", plain, n_sets=200),
    "hmc, intercept": Case("hmc", with_intercept, {"fit_intercept": True}, intercept=True),
    "hmc, slab": Case("hmc", slab, {"slab_scale": SLAB}),
    "hmc, weights": Case("hmc", weighted),
    "hmc, unpenalised": Case("hmc", unpenalised, {"unpenalized": [0]}),
    "hmc, standardised": Case("hmc", standardised, {"standardize": True}),
    "hmc, sparse": Case("hmc", sparse_rows),
    "hmc, float32": Case("hmc", single),
    "hmc, wide": Case("hmc", wide, {"slab_scale": SLAB}),
    "hmc, wide, intercept": Case(
        "hmc", wide_with_intercept, {"slab_scale": SLAB, "fit_intercept": True}, intercept=True
    ),
    "pxda": Case("pxda", plain, thin=100),
    "gibbs": Case("gibbs", plain, thin=1000, n_sets=100),
}


def ranks(name, seed):
    """Ranks, 0 to 99, of the first coefficients, tau, and the intercept if there is one."""
    case, rng = CASES[name], np.random.default_rng([seed, 12])
    while True:
        X, y, weight, beta, intercept, tau = case.simulate(rng)
        if y.any() and not y.all():
            break
    lengths = {"n_iter": N_DRAWS * case.thin, "thin": case.thin, "burn_in": 300, "n_chains": N_CHAINS}
    settings = {"fit_intercept": False, "global_scale": TAU_0, "n_jobs": 1, "random_state": seed, **case.settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HorseshoeProbitClassifier(sampler=case.sampler, **lengths, **settings).fit(X, y, sample_weight=weight)
    draws = [*model.coef_draws_.reshape(-1, len(beta)).T[:RANKED], model.global_scale_draws_.ravel()]
    truth = [*beta[:RANKED], tau]
    if case.intercept:
        draws.append(model.intercept_draws_.ravel())
        truth.append(intercept)
    return [int((one < value).sum()) for one, value in zip(draws, truth, strict=True)]
