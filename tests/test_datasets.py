"""The generators keep their laws: columns, coefficients, rate; seeds and types; and say what they allow."""

import numpy as np
import pytest
from scipy.special import ndtr

from skhorseshoe.datasets import make_correlated_probit, make_rare_events, make_sparse_probit

GENERATORS = [make_sparse_probit, make_rare_events, make_correlated_probit]
CORRELATED = [make_rare_events, make_correlated_probit]


@pytest.mark.parametrize(
    ("make", "params", "rho"),
    [
        (make_sparse_probit, {}, 0.0),
        (make_rare_events, {}, 0.5),
        (make_correlated_probit, {}, 0.6),
        (make_rare_events, {"rho": 0.9}, 0.9),
        (make_correlated_probit, {"rho": -0.4}, -0.4),
        (make_correlated_probit, {"rho": 0}, 0.0),
    ],
)
def test_columns_are_standard_normal_with_the_correlations_of_an_autoregression(make, params, rho, seed):
    n, p = 40_000, 8
    X = make(n, p, **params, random_state=seed)[0]
    expected = rho ** abs(np.subtract.outer(np.arange(p), np.arange(p)))
    # 28 correlations and 16 moments: five standard errors each
    np.testing.assert_allclose(np.corrcoef(X, rowvar=False), expected, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(X.var(axis=0), 1, atol=5 * np.sqrt(2 / n))
    assert abs(abs(X) > 1.959964).mean() == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize("event_rate", [1e-4, 0.005, 0.5, 0.97])
def test_rare_events_have_the_rate_that_was_asked_for(event_rate, seed):
    X, y, coef, intercept = make_rare_events(50_000, 10, event_rate=event_rate, random_state=seed)
    proba = ndtr(intercept + X @ coef)
    assert proba.mean() == pytest.approx(event_rate, rel=1e-9)
    assert abs(y.sum() - proba.sum()) < 5 * np.sqrt((proba * (1 - proba)).sum())


@pytest.mark.parametrize("make", GENERATORS)
def test_the_response_is_the_probit_of_the_linear_predictor(make, seed):
    X, y, coef, *intercept = make(50_000, 10, random_state=seed)
    eta = X @ coef + sum(intercept)
    proba = ndtr(eta)
    # The score of every coefficient, weighted so that its variance is known, is zero but for noise.
    residual = (y - proba)[:, None] * np.column_stack([X, np.ones(len(y))])
    variance = (proba * (1 - proba)) @ np.column_stack([X, np.ones(len(y))]) ** 2
    assert (abs(residual.sum(axis=0)) < 5 * np.sqrt(variance)).all()


def test_coefficients():
    np.testing.assert_array_equal(make_sparse_probit(5, 8)[2], [1.3, 4, -1, 1.6, 5, -2, 0, 0])
    np.testing.assert_array_equal(make_sparse_probit(5, 2)[2], [1.3, 4])
    np.testing.assert_array_equal(make_rare_events(5, 7)[2], [1, -0.8, 0.6, -0.4, 0.3, 0, 0])
    np.testing.assert_array_equal(make_rare_events(5, 2)[2], [1, -0.8])
    np.testing.assert_array_equal(np.flatnonzero(make_correlated_probit()[2]), [0, 60, 120, 180, 240])
    assert (make_correlated_probit()[2][::60] == 2).all()
    np.testing.assert_array_equal(make_correlated_probit(5, 7, n_signals=2, signal=-3)[2], [-3, 0, 0, -3, 0, 0, 0])
    np.testing.assert_array_equal(make_correlated_probit(5, 3, n_signals=3)[2], [2, 2, 2])
    assert not make_correlated_probit(5, 3, n_signals=0)[2].any()


@pytest.mark.parametrize("make", GENERATORS)
def test_default_sizes(make):
    X, y, coef, *intercept = make(random_state=0)
    assert X.shape == {make_sparse_probit: (2000, 50), make_rare_events: (20_000, 50)}.get(make, (100, 300))
    assert X.dtype == np.float64
    assert X.flags.c_contiguous
    assert (y.shape, y.dtype) == (X.shape[:1], np.int64)
    assert set(y) == {0, 1}
    assert (coef.shape, coef.dtype) == (X.shape[1:], np.float64)
    assert all(type(b) is float for b in intercept)


@pytest.mark.parametrize("make", GENERATORS)
def test_the_seed_decides(make):
    first, again, other = (make(30, 6, random_state=s) for s in (3, np.random.RandomState(3), 4))
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    assert not np.array_equal(first[0], other[0])
    state = np.random.RandomState(3)
    assert not np.array_equal(make(30, 6, random_state=state)[0], make(30, 6, random_state=state)[0])


@pytest.mark.parametrize("make", GENERATORS)
def test_dtype(make, seed):
    X, y, coef, *_ = make(500, 20, dtype=np.float32, random_state=seed)
    assert X.dtype == np.float32
    assert (y.dtype, coef.dtype) == (np.int64, np.float64)
    assert make(5, 6, dtype="float32")[0].dtype == np.float32


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (9, 1)])
def test_smallest_sizes(make, shape, seed):
    params = {"n_signals": 1} if make is make_correlated_probit else {}
    X, y, coef, *_ = make(*shape, **params, random_state=seed)
    assert (X.shape, y.shape, coef.shape) == (shape, shape[:1], shape[1:])
    assert np.isfinite(X).all()


@pytest.mark.parametrize("make", GENERATORS)
def test_errors_of_all_say_what_is_allowed(make):
    for shape in [(0, 6), (6, 0), (-1, 6)]:
        with pytest.raises(ValueError, match="at least 1"):
            make(*shape)
    for dtype in (np.int64, np.float16, "complex128"):
        with pytest.raises(ValueError, match=r"numpy\.float32 or numpy\.float64"):
            make(6, 6, dtype=dtype)


@pytest.mark.parametrize("make", CORRELATED)
@pytest.mark.parametrize("rho", [1, -1.0, 2.5, np.nan])
def test_errors_of_rho(make, rho):
    with pytest.raises(ValueError, match="rho must be between -1 and 1"):
        make(6, 6, rho=rho)


@pytest.mark.parametrize("event_rate", [0, 1.0, -0.1, 5, np.nan])
def test_errors_of_event_rate(event_rate):
    with pytest.raises(ValueError, match="event_rate must be between 0 and 1"):
        make_rare_events(6, 6, event_rate=event_rate)


def test_errors_of_signals():
    for n_signals in (-1, 7):
        with pytest.raises(ValueError, match="from 0 to n_features"):
            make_correlated_probit(6, 6, n_signals=n_signals)
    for signal in (np.inf, np.nan):
        with pytest.raises(ValueError, match="finite"):
            make_correlated_probit(6, 6, signal=signal)
