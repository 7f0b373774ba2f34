"""What tests of whole runs share: a run at its end, and how far its draws are from known shares and from the truth."""

import numpy as np
from laws import KEY
from scipy.stats import kstest

from skhorseshoe._data.collinear_sets import collinear_sets
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem, Run, Settings
from skhorseshoe.diagnostics import ess_bulk


def ended(rows, sampler, n_iter, *prior, burn_in=300, n_chains=16, tau_0=1.0, key=KEY, target_ess=None):
    """A run on these rows at its end. prior : the slab, and the prior of the intercept, as of ``FixedPrior``."""
    settings = Settings(sampler, n_iter, burn_in, n_chains, 1, target_ess, None, None, "float64")
    sets = collinear_sets(rows, rows.n)
    run = Run(Problem(rows, FixedPrior(rows.columns, *prior), tau_0, key), settings, sets=sets)
    with np.errstate(all="ignore"):  # of trajectories that are rejected
        run.go(lambda t: False)
    return run


def of_prior(rng, slab, d=1):
    """tau and d contrasts of two columns, (2, d): with a slab tau is rarer the more it leaves to that."""
    while True:
        tau, *lam = abs(np.tan(np.pi * (rng.random(3) - 0.5)))
        square = (tau * np.array(lam)) ** 2
        if rng.random() < np.prod((1 + square / slab**2) ** (-0.5 * d)):
            return tau, rng.standard_normal((2, d)) / np.sqrt(1 / square + slab**-2)[:, None]


def off(hits, share):
    """By how many standard errors the share of draws that are hits is off."""
    return (hits.mean() - share) / np.sqrt(share * (1 - share) / ess_bulk(hits.astype(float)))


def off_below(values, quantiles, shares):
    """The same of draws below quantiles."""
    return [off(values < end, share) for end, share in zip(quantiles, shares, strict=True)]


def ranks(drawn, truth, each, rng):
    """Where in (0, 1) the truth of each quantity is among its draws (n_chains, n), ``each`` of a chain."""
    spaced = np.linspace(0, drawn[0].shape[1] - 1, each).astype(int)
    below = np.array([(values[:, spaced] < one).sum() for values, one in zip(drawn, truth, strict=True)])
    return (below + rng.random(len(below))) / (len(drawn[0]) * each + 1)


def ranks_of_coefficients(rng, X, rows_of, kind, tau_0):
    """Ranks of an intercept, coefficients whose prior has a slab of 2, tau, and the predictor of the second row, of
    which y is made for X; among draws of 16 chains. rows_of : ``Rows`` of X and y. kind : of the sampler."""
    while True:
        tau = tau_0 * abs(rng.standard_cauchy())
        coef = tau * rng.standard_cauchy(X.shape[1]) * rng.standard_normal(X.shape[1])
        if np.log(rng.random()) < -((coef / 2.0) ** 2).sum() / 2:
            break
    intercept = rng.standard_normal() - X.mean(axis=0) @ coef
    y = (intercept + X @ coef + rng.standard_normal(len(X)) > 0).astype(np.uint8)
    rows, key = rows_of(X, y), rng.integers(2**32, size=2, dtype=np.uint32)
    draws = ended(rows, kind, 250, 2.0, 1.0, tau_0=tau_0, key=key).draws
    alpha, beta = draws.intercept, draws.coef
    drawn = [alpha, *np.moveaxis(beta, 2, 0), draws.global_scale, alpha + beta @ X[1]]
    return ranks(drawn, [intercept, *coef, tau, intercept + X[1] @ coef], 5, rng)


def check_uniform(ranks, names):
    """Of many data sets, (n_sets, n_quantities)."""
    found = {name: kstest(of_name, "uniform").pvalue for name, of_name in zip(names, np.array(ranks).T, strict=True)}
    print({name: round(float(p), 3) for name, p in found.items()})
    assert min(found.values()) > 1e-4, found
