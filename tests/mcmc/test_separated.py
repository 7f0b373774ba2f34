"""Rows that a plane separates: the posterior reaches far out, to where no reference tells how, and up to an edge."""

import numpy as np
import pytest
from laws import draws_of
from scipy.integrate import trapezoid
from scipy.special import log_ndtr

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import mcse_mean

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


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
    signs = 2.0 * y - 1
    eta = grid[:, None, None] * X[:, 0] + b[:, None] * X[:, 1]
    likelihood = np.exp(log_ndtr(signs * eta).sum(axis=2))
    wide = np.exp(-(grid**2) * (X[:, 0] ** 2).mean() / 100.0**2 / 2)
    density = trapezoid(likelihood * prior, b, axis=1) * wide
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
    ours, theirs = (draws_of(sampler, n, X, y, standardize=standardize) for sampler, n in RUNS)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        bound = np.quantile(np.concatenate([ours, theirs], axis=1), level, axis=(0, 1))
        a, b = ((draws < bound).astype(float) for draws in (ours, theirs))
        z = (a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) / np.hypot(mcse_mean(a), mcse_mean(b))
        print(f"{level}: z = {np.round(z, 2)}")
        assert (abs(z) < 4.5).all()


RUNS = ("hmc", 20_000), ("pxda", 40_000)
