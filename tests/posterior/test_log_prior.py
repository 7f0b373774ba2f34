"""The logarithm of the prior at the draws, against quadrature."""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import halfcauchy, norm

from skhorseshoe._model import PROBIT
from skhorseshoe._model.horseshoe import describe_prior, each_slab, log_density_of_tau, log_slab_factor
from skhorseshoe._posterior import arviz


def log_global_scale(tau, tau_0, slab_scale, p, d=1):
    return log_density_of_tau(tau, tau_0, each_slab(slab_scale, p), d)


@cache
def of_slab(tau, slab, d=1):
    """The integral over lambda and d coefficients of N(b; 0, tau^2 lambda^2 I) exp(-|b|^2 / (2 c^2))."""

    def integrand(t):
        return halfcauchy.pdf(np.exp(t)) * np.exp(t) / np.sqrt(1 + (tau * np.exp(t) / slab) ** 2) ** d

    return quad(integrand, -40, 40, points=[0, np.log(slab / tau)], limit=500, epsabs=0)[0]


@pytest.mark.parametrize("d", [1, 2, 9])
@pytest.mark.parametrize(("tau_0", "slab", "p"), [(0.7, None, 4), (1.0, 2.0, 3), (3.0, 0.01, 300), (1e-3, 5.0, 20)])
def test_density_of_the_global_scale_is_that_by_quadrature(tau_0, slab, p, d):
    def density(log_tau):
        return np.exp(log_global_scale(np.exp(log_tau), tau_0, slab, p, d) + log_tau)

    middle = np.log(tau_0)
    ends, peaks = (middle - 45, middle + 35), [middle - 8, middle]
    assert quad(density, *ends, points=peaks, limit=1000)[0] == pytest.approx(1, abs=1e-8)
    tau = tau_0 * np.array([1e-3, 0.1, 1.0, 5.0])
    expected = halfcauchy.logpdf(tau, scale=tau_0)
    if slab is not None:
        expected += p * np.log([of_slab(t, slab, d) for t in tau])
    found = log_global_scale(tau, tau_0, slab, p, d)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-7, atol=1e-7)
    median = np.log(describe_prior(tau_0, slab, np.ones(p), 100, 0.5, of_classes(d))["tau_median"])
    assert quad(density, ends[0], median, points=[median - 8, median - 1], limit=1000)[0] == pytest.approx(
        0.5, abs=2e-3
    )


@pytest.mark.parametrize("d", [1, 2, 9])
def test_effectively_nonzero_columns_given_tau_are_those_by_quadrature(d):
    slabs, sd, tau_0 = np.array([0.3, 2.0, np.inf]), np.array([0.5, 1.0, 2.0]), 0.4
    information = 100 * of_classes(d).information_at(0.5) * sd**2

    def mean(what, slab):
        def integrand(t):
            scale_sq = (tau_0 * np.exp(t)) ** 2
            return np.exp(t - np.logaddexp(0, 2 * t)) * (1 + scale_sq / slab**2) ** (-d / 2) * what(scale_sq)

        return quad(integrand, -40, 40, limit=500, epsabs=0)[0]

    expected = 0.0
    for h, slab in zip(information, slabs, strict=True):
        expected += mean(lambda v: h / (h + 1 / v + slab**-2), slab) / mean(lambda v: 1.0, slab)  # noqa: B023
    found = describe_prior(tau_0, slabs, sd, 100, 0.5, of_classes(d))["m_eff_at_tau_0"]
    assert found == pytest.approx(expected, rel=1e-6)


def of_classes(d):
    """A likelihood with so many linear predictors."""
    return SimpleNamespace(n_predictors=d, information_at=PROBIT.information_at)


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
