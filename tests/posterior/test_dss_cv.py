"""What summaries predict for rows held out: projections and differences, on draws that are made for them."""

from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

from skhorseshoe._posterior import dss_cv
from skhorseshoe._posterior.dss import form_of


def model_of(draws, fit_intercept=True, unpenalized=()):
    """A model with these draws (2, m, p + 1), the last of the intercept."""
    p = draws.shape[2] - 1
    shrinkage = np.full(p, 0.5)
    shrinkage[list(unpenalized)] = 0.0
    return SimpleNamespace(
        coef_draws_=draws[..., :p],
        intercept_draws_=draws[..., p] * fit_intercept,
        shrinkage_=shrinkage,
        n_jobs=1,
        _asked={"fit_intercept": fit_intercept, "class_weight": None},
    )


@pytest.fixture(params=[(60, 8), (12, 20)], ids=["tall", "wide"])
def case(request, seed):
    """Correlated columns, weights, and draws about coefficients that fall off."""
    n, p = request.param
    rng = np.random.default_rng(seed)
    X = 3 + rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    draws = np.append(0.7 ** np.arange(p), -2.0) + 0.1 * rng.standard_normal((2, 30, p + 1))
    return X, rng.uniform(0.5, 2, n), draws


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_draws_are_projected_by_least_squares(case, fit_intercept):
    X, weight, draws = case
    model, support = model_of(draws, fit_intercept), np.arange(X.shape[1]) % 3 == 0
    form, centre = form_of(model, X, weight, informed=False)
    Z = np.column_stack([X - centre, np.ones(len(X))]) if fit_intercept else X
    coef = draws[..., : X.shape[1]].reshape(60, -1)
    flat = np.column_stack([coef, draws[..., -1].ravel() + coef @ centre]) if fit_intercept else coef
    found = dss_cv._projection(flat, form, weight.sum())(np.append(support, True)[: Z.shape[1]])
    free, root, eta = Z[:, np.append(support, True)[: Z.shape[1]]], np.sqrt(weight)[:, None], Z @ flat.T
    best = np.linalg.lstsq(root * free, root * eta, rcond=None)[0]
    noise = np.sqrt(1 + np.average((eta - free @ best) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(found, (best / noise).T, rtol=1e-6, atol=1e-9)


def test_a_projected_probit_is_that_of_the_kept_columns(seed):
    """Of independent Gaussian columns those left out are noise, whose variance adds to that of the score."""
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((20_000, 4)), np.array([1.0, -0.5, 2.0, 0.3])
    model = model_of(np.tile(np.append(beta, 0.4), (2, 3, 1)))
    form, _ = form_of(model, X, np.empty(0), informed=False)
    found = dss_cv._projection(np.tile(np.append(beta, 0.4), (6, 1)), form, len(X))(np.array([1, 1, 0, 0, 1], bool))
    expected = np.array([1.0, -0.5, 0.4]) / np.sqrt(1 + 2.0**2 + 0.3**2)
    np.testing.assert_allclose(found, np.tile(expected, (6, 1)), atol=0.05)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_all_columns_are_the_model_itself(case, make):
    X, weight, draws = case
    model, n = model_of(draws), len(X) // 2
    positive = np.arange(len(X) - n) % 2 == 0
    sizes = np.arange(X.shape[1] + 1)
    scores = dss_cv._fold_scores(model, make(X[:n]), weight[:n], sizes, make(X[n:]), positive)
    eta = X[n:] @ draws[..., :-1].reshape(60, -1).T + draws[..., -1].ravel()
    expected = np.log(norm.cdf(np.where(positive, 1, -1)[:, None] * eta).mean(axis=1))
    np.testing.assert_allclose(scores[:, -1], expected)
    if n > X.shape[1]:
        np.testing.assert_allclose(scores[:, -2], expected, rtol=1e-6)
    assert np.ptp(scores[:, 0].reshape(-1, 2), axis=0).max() < 1e-12  # without a column all rows are alike


def test_each_size_has_the_first_summary_or_the_one_below():
    supports = np.array([[0, 0, 0, 1], [1, 0, 0, 1], [1, 1, 0, 1], [0, 1, 0, 1], [1, 1, 1, 1]], bool)
    given = np.array([0, 0, 0, 1], bool)
    found = dss_cv._supports_of(supports, given, [0, 1, 2, 3])
    np.testing.assert_array_equal(found, supports[[0, 1, 2, 4]])
    np.testing.assert_array_equal(dss_cv._supports_of(supports[[0, 2]], given, [1, 2, 3]), supports[[0, 2, 2]])


@pytest.mark.parametrize("n", [0, 1, 7, 20, 21, 150, 5000])
def test_sizes_end_with_all_columns_that_can_be_chosen(n):
    draws = np.ones((2, 5, n + 3))
    draws[..., 0] = 0.0  # a constant column
    sizes = dss_cv.sizes_of(model_of(draws, unpenalized=[1]))
    np.testing.assert_array_equal(sizes[:21], np.arange(min(n, 20) + 1))
    assert sizes[-1] == n
    assert (np.diff(sizes) > 0).all()
    assert len(sizes) < 50


def test_differences_and_their_errors(seed):
    terms = np.random.default_rng(seed).standard_normal((40, 3))
    found = dss_cv._differences(terms)
    lost = terms[:, 0] - terms[:, 2]
    np.testing.assert_allclose(found["difference"], [lost.sum(), (terms[:, 1] - terms[:, 2]).sum(), 0])
    np.testing.assert_allclose(found["se"][0], np.sqrt(40) * lost.std(ddof=1))
    assert found["se"][2] == 0
    with pytest.raises(ValueError, match="holds out 1 rows"):
        dss_cv._differences(terms[:1])
