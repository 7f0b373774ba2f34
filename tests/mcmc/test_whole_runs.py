"""Whole runs draw from the posterior: long runs of other samplers, integrals, and calibration over simulated data."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from exactness import ranks
from laws import agrees_with_gold, load_gold, repeated
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import mcse_mean


@pytest.mark.parametrize(
    ("sampler", "n_iter", "thin"),
    [
        *(pytest.param(*one, marks=pytest.mark.slow) for one in (("gibbs", 40_000, 10), ("hmc", 10_000, 2))),
        ("hmc", 4000, 2),
    ],
)
def test_posterior_is_that_of_two_other_samplers(sampler, n_iter, thin):
    gold, settings = load_gold(), {"sampler": sampler, "n_iter": n_iter, "thin": thin, "random_state": 1}
    model = HorseshoeProbitClassifier(fit_intercept=False, **settings)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


@pytest.mark.parametrize(
    ("sampler", "n_iter", "thin"),
    [
        ("hmc", 6000, 2),
        pytest.param("pxda", 8000, 4, marks=pytest.mark.slow),
        pytest.param("gibbs", 10_000, 5, marks=pytest.mark.slow),
    ],
)
def test_posterior_with_slab_and_free_columns_is_that_of_nuts(sampler, n_iter, thin):
    gold = load_gold("slab_150x8")
    settings = {name: gold[name].tolist() for name in ("slab_scale", "global_scale", "unpenalized")}
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, thin=thin, random_state=1, **settings)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


# Rows that a plane separates: the posterior reaches far out, to where no reference tells how, and up to an edge -------


def edge():
    """24 rows without an intercept, whose second column is noise: the first one's coefficient must be positive."""
    rng = np.random.default_rng(4)
    x = np.sort(rng.standard_normal(24) * 2 + 5)
    noise = rng.standard_normal(24)
    sign = np.where(np.arange(24) % 3 == 0, -1, 1)
    return np.column_stack([x * sign, noise]), (sign > 0).astype(int)


def exact_law(X, y, grid):
    """P(b_0 < each point of the grid), b_0 without a penalty, b_1 with a horseshoe and a slab of scale 1."""
    log_s = np.linspace(-14, 14, 800)  # of s = lambda tau, whose density is log s / (s^2 - 1)
    s = np.exp(log_s)
    weight = s * log_s / np.expm1(2 * log_s)
    b = np.concatenate([-np.geomspace(8, 1e-7, 400), np.geomspace(1e-7, 8, 400)])
    prior = (weight / s * np.exp(-((b[:, None] / s) ** 2) / 2)).sum(axis=1) * np.exp(-(b**2) / 2)
    eta = grid[:, None, None] * X[:, 0] + b[:, None] * X[:, 1]
    joint = prior * np.exp(log_ndtr((2.0 * y - 1) * eta).sum(axis=2))
    wide = np.exp(-(grid**2) * (X[:, 0] ** 2).mean() / 100.0**2 / 2)
    density = (joint[:, 1:] + joint[:, :-1]) @ np.diff(b) / 2 * wide
    cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2 * np.diff(grid)))
    return cdf / cdf[-1]


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
@pytest.mark.parametrize("n_iter", [2000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_chains_come_as_near_to_an_edge_as_they_should(sampler, n_iter):
    X, y = edge()
    grid = np.concatenate([np.linspace(0.01, 2, 200), np.geomspace(2.02, 60, 120)])
    cdf = exact_law(X, y, grid)
    np.testing.assert_allclose(np.interp([0.5, 0.7], grid, cdf), [0.00135, 0.0047], rtol=0.02)
    settings = {"unpenalized": [0], "slab_scale": 1.0, "fit_intercept": False, "random_state": 5}
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, **settings).fit(X, y)
    for bound in (0.5, 0.7, 1.0, 2.0, 4.0):
        below = (model.coef_draws_[..., 0] < bound).astype(float)
        exact = np.interp(bound, grid, cdf)
        error = max(mcse_mean(below), np.sqrt(exact * (1 - exact) / below.size))
        print(f"P(b_0 < {bound}) = {below.mean():.5f}, exactly {exact:.5f}, z = {(below.mean() - exact) / error:.2f}")
        assert abs(below.mean() - exact) < 4.5 * error


# Simulation-based calibration (Talts, Betancourt, Simpson, Vehtari & Gelman 2018) -------------------------------------

P_VALUE = 1e-4


@pytest.mark.slow
@pytest.mark.parametrize(("sampler", "few"), [("hmc", 100), ("hmc, wide, intercept", 40), ("gibbs", 20)])
def test_ranks_of_the_truth_are_uniform_over_data_sets(sampler, few):
    with ProcessPoolExecutor(2) as pool:
        found = np.array(list(pool.map(partial(ranks, sampler), range(repeated(few, 200)))))
    places = (found + np.random.default_rng(0).random(found.shape)) / 100
    p_values = stats.kstest(places, "uniform", axis=0).pvalue
    print(f"{sampler}: p values {p_values}")
    assert (p_values > P_VALUE).all()
