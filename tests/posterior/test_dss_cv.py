"""What summaries predict for rows held out: projections and differences, on draws that are made for them."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import xlogy
from scipy.stats import norm
from sklearn.model_selection import GroupKFold

from skhorseshoe._model import PROBIT
from skhorseshoe._posterior import dss_cv
from skhorseshoe._posterior.dss_cv import Projection, splits_of


def model_of(draws, fit_intercept=True, unpenalized=()):
    """A model with these draws (2, m, p + 1), the last of the intercept."""
    p = draws.shape[2] - 1
    shrinkage = np.full(p, 0.5)
    shrinkage[list(unpenalized)] = 0.0
    return SimpleNamespace(
        _likelihood_of_fit=PROBIT,
        _separated="",
        coef_draws_=draws[..., :p],
        intercept_draws_=draws[..., p] * fit_intercept,
        shrinkage_=shrinkage,
        n_jobs=1,
        _fit_facts={"fit_intercept": fit_intercept, "class_weight": None},
    )


@pytest.fixture(params=[(60, 8), (12, 20)], ids=["tall", "wide"])
def case(request, seed):
    """Correlated columns, weights, and draws about coefficients that fall off."""
    n, p = request.param
    rng = np.random.default_rng(seed)
    X = 3 + rng.standard_normal((n, p)) + rng.standard_normal((n, 1))
    draws = np.append(0.7 ** np.arange(p), -2.0) + 0.1 * rng.standard_normal((2, 30, p + 1))
    return X, rng.uniform(0.5, 2, n), draws


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_no_coefficients_predict_more_alike(seed, make):
    """With skewed columns, of which least squares is far off."""
    rng = np.random.default_rng(seed)
    X, weight = np.exp(rng.standard_normal((300, 6))), rng.uniform(0.5, 2, 300)
    draws = np.array([0.8, -0.8, 0.5, 0.3, 0.0, 0.1, -2.0]) * rng.uniform(0.5, 1.5, (2, 4, 1))
    projection, columns = Projection(model_of(draws), make(X), weight), np.array([0, 2])
    free = np.column_stack([X - np.average(X, axis=0, weights=weight), np.ones(300)])
    target = norm.cdf(free @ projection.draws.T).T
    free = free[:, [*columns, 6]]

    def divergence(gamma, p):
        eta = free @ gamma
        kl = xlogy(p, p) + xlogy(1 - p, 1 - p) - p * norm.logcdf(eta) - (1 - p) * norm.logcdf(-eta)
        return weight @ kl

    found, start = (
        list(map(divergence, coef, target)) for coef in (projection.onto(columns), projection._latent(columns))
    )
    least = [
        minimize(divergence, gamma, args=(p,)).fun for gamma, p in zip(projection.onto(columns), target, strict=True)
    ]
    np.testing.assert_allclose(found, least, atol=0.1)
    assert sum(start) > sum(least) + 2


def test_folds_by_groups_take_a_table_of_one_factor():
    y, patient = np.tile([0, 1], 30), np.repeat(np.arange(12), 5)
    given = [patient, pd.DataFrame({"patient": patient}), {"patient": patient}]
    ours, *others = ([test.tolist() for _, test in splits_of(GroupKFold(3), y[:, None], y, of)] for of in given)
    assert ours == others[0] == others[1]


def test_steps_that_lead_all_draws_too_far_are_shortened(monkeypatch):
    """To the top of -log cosh from 2, where a step of Newton's leads to -11.6."""

    def step(self, columns, x):
        sinh, cosh = np.sinh(x), np.cosh(x)
        return -np.log(cosh[:, 0]), sinh[:, 0] ** 2 / 2, -sinh * cosh

    monkeypatch.setattr(Projection, "_step", step)
    monkeypatch.setattr(Projection, "_latent", lambda self, columns: np.full((3, 1), 2.0))
    assert np.abs(object.__new__(Projection).onto([0])).max() < 0.5


def test_a_projected_probit_is_that_of_the_kept_columns(seed):
    """Of independent Gaussian columns those left out are noise, whose variance adds to that of the score."""
    rng = np.random.default_rng(seed)
    X, beta = rng.standard_normal((20_000, 4)), np.array([1.0, -0.5, 2.0, 0.3])
    model = model_of(np.tile(np.append(beta, 0.4), (2, 3, 1)))
    found = Projection(model, X, np.empty(0)).onto(np.array([0, 1]))
    expected = np.array([1.0, -0.5, 0.4]) / np.sqrt(1 + 2.0**2 + 0.3**2)
    np.testing.assert_allclose(found, np.tile(expected, (6, 1)), atol=0.05)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_all_columns_are_the_model_itself(case, make):
    X, weight, draws = case
    model, n = model_of(draws), len(X) // 2
    positive = np.arange(len(X) - n) % 2 == 0
    sizes = np.arange(X.shape[1] + 1)
    scores = dss_cv._fold_scores(model, make(X[:n]), weight[:n], sizes, make(X[n:]), positive, sizes[:-1])
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


@pytest.mark.parametrize(
    ("difference", "se", "size"),
    [
        ([-3.9, -1, 0], [0.1, 0.1, 0], 0),
        ([-4.1, -1, 0], [4, 1, 0], 3),
        ([-9, -6, 0], [10, 7, 0], 0),
        ([-9, -6, 0], 1, 9),
    ],
)
def test_the_smallest_size_that_loses_little(difference, se, size):
    assert dss_cv._suggested(np.array([0, 3, 9]), np.array(difference), np.broadcast_to(se, 3)) == size


def test_differences_and_their_errors(seed):
    terms = np.random.default_rng(seed).standard_normal((40, 3))
    found = dss_cv._loss_differences(terms)
    lost = terms[:, 0] - terms[:, 2]
    np.testing.assert_allclose(found["difference"], [lost.sum(), (terms[:, 1] - terms[:, 2]).sum(), 0])
    np.testing.assert_allclose(found["se"][0], np.sqrt(40) * lost.std(ddof=1))
    assert found["se"][2] == 0
    with pytest.raises(ValueError, match="holds out 1 rows"):
        dss_cv._loss_differences(terms[:1])
