"""The logarithm of the prior at the draws, against quadrature."""

from functools import cache

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import halfcauchy, norm

from skhorseshoe._model.horseshoe import describe_prior, each_slab, log_density_of_tau, log_slab_factor
from skhorseshoe._posterior import arviz


def log_global_scale(tau, tau_0, slab_scale, p):
    return log_density_of_tau(tau, tau_0, each_slab(slab_scale, p))


@cache
def of_slab(tau, slab):
    """The integral over lambda and a coefficient of N(b; 0, tau lambda) exp(-b^2 / (2 c^2))."""

    def integrand(t):
        return halfcauchy.pdf(np.exp(t)) * np.exp(t) / np.sqrt(1 + (tau * np.exp(t) / slab) ** 2)

    return quad(integrand, -40, 40, points=[0, np.log(slab / tau)], limit=500, epsabs=0)[0]


@pytest.mark.parametrize(("tau_0", "slab", "p"), [(0.7, None, 4), (1.0, 2.0, 3), (3.0, 0.01, 300), (1e-3, 5.0, 20)])
def test_density_of_the_global_scale_is_that_by_quadrature(tau_0, slab, p):
    def density(log_tau):
        return np.exp(log_global_scale(np.exp(log_tau), tau_0, slab, p) + log_tau)

    middle = np.log(tau_0)
    ends, peaks = (middle - 45, middle + 35), [middle - 8, middle]
    assert quad(density, *ends, points=peaks, limit=1000)[0] == pytest.approx(1, abs=1e-8)
    tau = tau_0 * np.array([1e-3, 0.1, 1.0, 5.0])
    expected = halfcauchy.logpdf(tau, scale=tau_0)
    if slab is not None:
        expected += p * np.log([of_slab(t, slab) for t in tau])
    found = log_global_scale(tau, tau_0, slab, p)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-7, atol=1e-7)
    median = np.log(describe_prior(tau_0, slab, np.ones(p), 100, 0.5)["tau_median"])
    assert quad(density, ends[0], median, points=[median - 8, median - 1], limit=1000)[0] == pytest.approx(
        0.5, abs=2e-3
    )


def test_slabs_of_columns_in_their_own_units_are_those_of_each_column():
    tau, slabs = np.array([1e-3, 0.1, 1.0, 5.0]), np.array([0.05, 0.7, 3.0, np.inf, 40.0])  # one column has none
    found = log_global_scale(tau, 0.4, slabs, 4)
    expected = halfcauchy.logpdf(tau, scale=0.4)
    expected += sum(np.log([of_slab(t, slab) for t in tau]) for slab in slabs[np.isfinite(slabs)])
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-5)
    same = log_global_scale(tau, 0.4, np.full(4, np.exp(0.05)), 4)  # of a slab that is a point of the grid
    np.testing.assert_allclose(same, log_global_scale(tau, 0.4, np.exp(0.05), 4), rtol=1e-9)
    assert np.array_equal(log_global_scale(tau, 0.4, slabs[3:4], 0), log_global_scale(tau, 0.4, None, 1))


def test_extreme_scales_have_finite_densities():
    tau = np.array([1e-100, 1e-3, 1.0, 1e100])
    for tau_0 in (1e-100, 1.0, 1e100):
        for slab in (None, 1e-100, 1.0, 1e100):
            assert np.isfinite(log_global_scale(tau, tau_0, slab, 10**6)).all()
    assert log_slab_factor(np.ones(1))[0] == pytest.approx(np.log(2 / np.pi))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_what_is_not_shrunk_has_its_wide_normal_prior(weak_problem, short_fit, fit_intercept):
    X, y = weak_problem[0] * [1.0, 3.0, 1.0] + [5.0, -2.0, 0.0], weak_problem[1]
    given = {"unpenalized": [1], "global_scale": 0.3, "slab_scale": 0.5}
    model = short_fit(X, y, fit_intercept=fit_intercept, n_chains=2, standardize=True, **given)
    terms = arviz.log_prior(model, 10)
    at = np.array([4, 12, 20, 28, 36])  # evenly spaced
    coef, intercept = model.coef_draws_[:, at], model.intercept_draws_[:, at]
    size = X[:, 1].std() if fit_intercept else np.sqrt((X[:, 1] ** 2).mean())
    np.testing.assert_allclose(terms["unpenalized"], norm.logpdf(coef[..., [1]], scale=100 / size), rtol=1e-9)
    expected = log_global_scale(model.global_scale_draws_[:, at], 0.3, 0.5, 2)
    np.testing.assert_allclose(terms["global_scale"], expected, rtol=1e-9)
    if fit_intercept:
        expected = norm.logpdf(intercept + coef @ X.mean(axis=0), scale=100)
        np.testing.assert_allclose(terms["intercept"], expected, rtol=1e-9)
    assert terms.keys() == {"global_scale", "unpenalized"} | ({"intercept"} if fit_intercept else set())
