"""The generators keep their laws: columns, coefficients, rate; seeds and types; and say what they allow."""

import numpy as np
import pytest
from scipy.special import ndtr

from skhorseshoe.datasets import make_correlated_probit, make_patients, make_rare_events, make_sparse_probit

GENERATORS = [make_sparse_probit, make_rare_events, make_correlated_probit]
CORRELATED = [make_rare_events, make_correlated_probit]


@pytest.mark.parametrize(
    ("make", "params", "rho"),
    [
        (make_sparse_probit, {}, 0.0),
        (make_rare_events, {}, 0.5),
        (make_correlated_probit, {}, 0.6),
        (make_correlated_probit, {"rho": -0.4}, -0.4),
    ],
)
def test_columns_are_a_stationary_autoregression(make, params, rho, seed):
    n, p = 40_000, 8
    X = make(n, p, **params, random_state=seed)[0]
    expected = rho ** abs(np.subtract.outer(np.arange(p), np.arange(p)))
    # 28 correlations and 16 moments: five standard errors each
    np.testing.assert_allclose(np.corrcoef(X, rowvar=False), expected, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=5 / np.sqrt(n))
    np.testing.assert_allclose(X.var(axis=0), 1, atol=5 * np.sqrt(2 / n))
    assert abs(abs(X) > 1.959964).mean() == pytest.approx(0.05, abs=0.005)


@pytest.mark.parametrize("event_rate", [1e-4, 0.97])
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
def test_dtype_and_the_smallest_size(make, seed):
    params = {"n_signals": 1} if make is make_correlated_probit else {}
    X, y, coef, *_ = make(1, 1, **params, dtype=np.float32, random_state=seed)
    assert (X.dtype, y.dtype, coef.dtype) == (np.float32, np.int64, np.float64)
    assert (X.shape, y.shape, coef.shape) == ((1, 1), (1,), (1,))


@pytest.mark.parametrize(
    ("make", "params"),
    [
        *((make, {"n_samples": 0}) for make in GENERATORS),
        *((make, {"n_features": -1}) for make in GENERATORS),
        *((make, {"dtype": np.float16}) for make in GENERATORS),
        *((make, {"rho": -1.0}) for make in CORRELATED),
        *((make, {"rho": np.nan}) for make in CORRELATED),
        (make_rare_events, {"event_rate": 1.0}),
        (make_rare_events, {"event_rate": np.nan}),
        (make_correlated_probit, {"n_signals": -1}),
        (make_correlated_probit, {"n_signals": 301}),
        (make_correlated_probit, {"signal": np.inf}),
    ],
)
def test_errors_name_the_parameter(make, params):
    with pytest.raises(ValueError, match="|".join(params)):
        make(**params)


def test_patients_die_of_what_is_stated(seed):
    """Within the rows of which all measurements that matter are there, the score has the stated law."""
    X, y = make_patients(60_000, random_state=seed)
    assert X.shape == (60_000, 13)
    assert {*y} == {"alive", "died"}
    assert set(X["ward"]) == {"surgery", "medicine", "cardiology", "oncology", "intensive care"}
    known = X.notna().all(axis=1)
    assert 0.4 < known.mean() < 0.6
    X, dead = X[known], y[known] == "died"
    ward = X["ward"].map({"medicine": 0.1, "oncology": 0.5, "intensive care": 0.9}).fillna(0.0)
    score = ward + 0.6 * np.maximum(0, (X["age"] - 60) / 15) ** 1.5 - 1.9
    for name, (median, effect) in {"CRP": (30, 0.25), "lactate": (1.5, 0.6), "albumin": (35, -2)}.items():
        score += effect * np.log(X[name] / median)
    p = ndtr(score)
    Z = X.assign(male=X["sex"] == "male", one=1.0, score=score).select_dtypes(["number", "bool"]).to_numpy(float)
    moments = (dead - p) @ Z / np.sqrt((p * (1 - p)) @ Z**2)
    assert (abs(moments) < 5).all()
    assert not make_patients(5, random_state=1)[0].equals(make_patients(5, random_state=2)[0])
    with pytest.raises(ValueError, match="n_samples and n_features must be at least 1; got 0"):
        make_patients(0)
