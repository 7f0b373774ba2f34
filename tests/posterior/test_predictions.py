"""Probabilities, decisions and classes: averages over the draws, each row on its own."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from scipy.stats import norm

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._utils.threads import open_threads


def test_small_probabilities_keep_their_relative_accuracy(fitted, problem):
    X = 20 * problem[0]
    eta = X @ fitted.coef_draws_.reshape(-1, 8).T + fitted.intercept_draws_.ravel()
    expected = np.column_stack([norm.cdf(-eta).mean(axis=1), norm.cdf(eta).mean(axis=1)])
    assert expected.min() < 1e-20
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(fitted.predict_log_proba(X), np.log(fitted.predict_proba(X)), rtol=1e-12)


@pytest.mark.parametrize("budget", [1000, 10**5, 10**9])
def test_a_row_has_the_same_bits_at_any_place_in_a_block(budget, seed):
    """The last rows of a block do not fill a tile, nor the last columns."""
    rng = np.random.default_rng(seed)
    for n_draws in (1, 7, 250, 593, 1026, 4001):
        p = int(rng.integers(1, 600))
        coef, products = rng.standard_normal((n_draws, p)).astype(["f4", "f8"][n_draws % 2]), []
        X = np.tile(rng.standard_normal(p), (100, 1))
        with open_threads(1) as alone:
            for some in (X, X[:1]):
                cpu.each_block(some, coef, alone, budget, lambda product, rows, to=products: to.extend(product.copy()))
        assert len(products) == 101
        assert all(np.array_equal(product, products[0]) for product in products)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_a_block_takes_no_more_than_working_memory(fitted, problem, kind, monkeypatch):
    seen, plain = [], cpu.average_probabilities
    for ops in (cpu, sparse):
        monkeypatch.setattr(ops, "average_probabilities", lambda eta, law: seen.append(eta.nbytes) or plain(eta, law))
    X = kind(np.tile(problem[0], (10, 1)))
    for megabytes in (0.02, 0.1, 0.3):
        seen.clear()
        with sklearn.config_context(working_memory=megabytes):
            fitted.predict_proba(X)
        assert megabytes * 2**19 < max(seen) <= megabytes * 2**20


def test_decision_is_the_normal_quantile_of_the_probability(fitted, problem):
    decision = fitted.decision_function(problem[0])
    both = np.column_stack([norm.cdf(-decision), norm.cdf(decision)])
    np.testing.assert_allclose(both, fitted.predict_proba(problem[0]), rtol=1e-9)


def test_decision_is_finite_and_ordered_for_rows_far_out(fitted, problem):
    X = problem[0] * np.array([[1.0], [1e3], [1e6]])[np.arange(200) % 3]
    decision = fitted.decision_function(X)
    assert np.isfinite(decision).all()
    assert abs(decision).max() > 37
    assert np.isfinite(fitted.predict_log_proba(X)).all()
    assert np.array_equal(decision > 0, fitted.predict(X) == 1)


def test_missing_values_that_nobody_has_looked_for_are_told(fitted, problem):
    X = problem[0].copy()
    X[5, 2] = np.nan
    with sklearn.config_context(assume_finite=True), pytest.raises(ValueError, match=r"Row 5 of X .*NaN"):
        fitted.predict_proba(X)
