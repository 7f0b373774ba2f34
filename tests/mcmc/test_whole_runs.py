"""Whole runs draw from the posterior: long runs of other samplers, integrals, and calibration over simulated data."""

from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
import pytest
from _calibration import ranks
from laws import agree, agrees_with_gold, draws_of, load_gold, repeated, same_law, start_further
from reference_gibbs import reference_gibbs
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import mcse_mean, rhat


@pytest.mark.parametrize(
    ("sampler", "n_iter", "thin"),
    [pytest.param("gibbs", 40_000, 10, marks=pytest.mark.slow), ("hmc", 10_000, 2)],
)
def test_posterior_is_that_of_two_other_samplers(sampler, n_iter, thin):
    gold, settings = load_gold(), {"sampler": sampler, "n_iter": n_iter, "thin": thin, "random_state": 1}
    model = HorseshoeProbitClassifier(fit_intercept=False, **settings)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


@pytest.mark.parametrize(
    ("sampler", "n_iter", "thin"),
    [("hmc", 6000, 2), ("pxda", 8000, 4), ("gibbs", 10_000, 5)],
)
def test_posterior_with_slab_and_free_columns_is_that_of_nuts(sampler, n_iter, thin):
    gold = load_gold("slab_150x8")
    settings = {name: gold[name].tolist() for name in ("slab_scale", "global_scale", "unpenalized")}
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, thin=thin, random_state=1, **settings)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


@pytest.fixture(scope="module")
def plain_sampler():
    """Rows, and what a plain sampler draws: coefficients, intercepts and tau."""
    rng = np.random.default_rng(3)
    data = rng.normal([0, 1, -2, 0], 1, (120, 4))
    y = data @ [1.0, 0.5, 0, 0] - 1 + rng.standard_normal(120) > 0
    return data, y, reference_gibbs(data, y, n_iter=8000, burn_in=1000, n_chains=4, rng=rng, global_scale=0.5)


@pytest.mark.parametrize(
    ("sampler", "dtype"),
    [("gibbs", np.float64), ("hmc", np.float32), pytest.param("gibbs", np.float32, marks=pytest.mark.slow)],
)
def test_posterior_with_intercept_is_that_of_a_plain_sampler(sampler, dtype, plain_sampler):
    data, y, (coef, intercept, tau) = plain_sampler
    model = HorseshoeProbitClassifier(n_iter=8000, global_scale=0.5, sampler=sampler, random_state=0)
    model.fit(data.astype(dtype), y)
    agree(model.coef_draws_, coef)
    agree(model.intercept_draws_, intercept)
    agree(np.log(model.global_scale_draws_), np.log(tau))


@pytest.mark.slow
def test_hmc_agrees_with_long_runs_on_rare_events():
    rng = np.random.default_rng(5)
    data = rng.standard_normal((400, 3))
    y = data @ [0.7, 0, 0] - 2.4 + rng.standard_normal(400) > 0
    assert 5 <= y.sum() <= 20
    hmc = draws_of("hmc", 8000, data, y, global_scale=0.5)
    for other in ("gibbs", 48_000), ("pxda", 24_000):
        same_law(hmc, draws_of(*other, data, y, global_scale=0.5))


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(3)
    data = rng.normal(0.5, 1, (20, 30))
    return data, data[:, 0] + rng.standard_normal(20) > 0.5


PARAMS = {
    "slab": {"slab_scale": 2.0},
    "standardised": {"slab_scale": 0.5, "fit_intercept": False, "standardize": True},
    "unpenalised": {"global_scale": 0.05, "unpenalized": [2], "slab_scale": 1.0},
}


@pytest.mark.slow
@pytest.mark.parametrize("params", PARAMS.values(), ids=PARAMS)
def test_both_kinds_of_coordinates_agree(wide, params, monkeypatch):
    """Data augmentation would take 200,000 sweeps here to be a reference."""
    ours = draws_of("hmc", 6000, *wide, **params)
    monkeypatch.setattr("skhorseshoe._fit.plan.fits_prior_coordinates", lambda *given: False)
    theirs = draws_of("hmc", 10_000, *wide, **params)
    if not params.get("fit_intercept", True):
        ours, theirs = (np.delete(draws, -2, axis=2) for draws in (ours, theirs))
    same_law(ours, theirs)


@pytest.mark.parametrize(("sampler", "burn_in", "n_iter"), [("gibbs", 500, 2000), ("hmc", 300, 1000)])
def test_chains_that_start_far_apart_meet(sampler, burn_in, n_iter, monkeypatch):
    start_further(monkeypatch)
    rng = np.random.default_rng(8)
    data = rng.standard_normal((400, 3))
    y = data[:, 0] + rng.standard_normal(400) > 0
    model = HorseshoeProbitClassifier(n_chains=16, sampler=sampler, random_state=0)
    early = model.set_params(n_iter=4, burn_in=0).fit(data, y).coef_draws_[:, 0].std(axis=0)
    late = model.set_params(n_iter=n_iter, burn_in=burn_in).fit(data, y)
    assert (early > late.coef_draws_.std(axis=(0, 1))).all()
    assert rhat(late.coef_draws_).max() < 1.01
    assert rhat(np.log(late.global_scale_draws_)) < 1.02


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
@pytest.mark.parametrize("n_iter", [5000, pytest.param(20_000, marks=pytest.mark.slow)])
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


@pytest.mark.slow
@pytest.mark.parametrize("standardize", [False, True])
def test_samplers_agree_on_quantiles_where_there_is_no_slab(standardize):
    """Means hardly exist there."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((40, 4))
    y = (X @ [1.0, 0.7, 0.0, 0.0] > 0.2).astype(int)
    runs = ("hmc", 20_000), ("pxda", 40_000)
    ours, theirs = (draws_of(sampler, n, X, y, standardize=standardize) for sampler, n in runs)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        bound = np.quantile(np.concatenate([ours, theirs], axis=1), level, axis=(0, 1))
        agree(*((draws < bound).astype(float) for draws in (ours, theirs)), 4.5)


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
