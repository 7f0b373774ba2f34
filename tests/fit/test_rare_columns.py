"""Rare 0/1 columns: the advice of the warning bounds their coefficients, in whatever unit they come."""

import warnings

import numpy as np
import pandas as pd
import pytest
from follow_recipes import follow
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, terms
from skhorseshoe._backends._cpu import dense, sparse
from skhorseshoe._data.contrasts import absolute_deviations
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import Threads

EVENTS = {"all": [1, 1, 1, 1], "but one": [0, 1, 1, 1], "none": [0, 0, 0, 0]}
AS_GIVEN = FunctionTransformer()
STEPS = {
    "as given": AS_GIVEN,
    "StandardScaler": StandardScaler(),
    "MaxAbsScaler": MaxAbsScaler(),
    "in thousandths": FunctionTransformer(lambda X: 1000 * X),
    "float32": FunctionTransformer(lambda X: X.to_numpy(np.float32)),
    "sparse": FunctionTransformer(lambda X: csr_array(X.to_numpy())),
}


UNITS = [*(how for how in STEPS if how != "StandardScaler"), "standardize"]


def table(events, seed, n=1000):
    rng, at = np.random.default_rng(seed), np.arange(n) < 4
    X = pd.DataFrame({"a": rng.standard_normal(n), "b": 0.5 * rng.standard_normal(n), "rare": at * 1.0})
    y = X["a"] + X["b"] + rng.standard_normal(n) > 1.5
    y[:4] = np.array(events, bool)
    return X, y


def fitted(model, X, y):
    """The texts of the warnings of a fit, in their order."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught]


def followed(model, X, y):
    """The model fitted as the warning of a fit says, if there is one, and whether there was one. It has none itself."""
    texts = fitted(model, X, y)
    if texts:
        follow(model[-1], texts[-1])
        assert not fitted(model, X, y)
    return bool(texts)


@pytest.mark.parametrize(("how", "events"), [
    *(("StandardScaler", events) for events in EVENTS),
    *(pytest.param(how, "all", marks=[pytest.mark.slow] * (how == "MaxAbsScaler")) for how in UNITS),
])  # fmt: skip
def test_who_follows_the_warning_has_a_bounded_coefficient(how, events, seed):
    X, y = table(EVENTS[events], seed)
    params = {"standardize": True} if how == "standardize" else {}
    model = make_pipeline(clone(STEPS.get(how, AS_GIVEN)), HorseshoeProbitClassifier(random_state=0, **params))
    warned = followed(model, X, y)
    assert events == "none" or warned == (events == "all")  # none of four is what chance would have it, mostly
    Z = model[:-1].transform(X)
    Z = Z.toarray() if how == "sparse" else np.asarray(Z)
    effects = np.abs(model[-1].coef_[0]) * np.ptp(Z, axis=0)
    assert effects[2] < 6
    sizes = np.abs(model[-1].coef_[0]) * Z.std(axis=0)
    assert sizes[2] < sizes[:2].min()
    if how != "in thousandths":  # where the prior of tau too has another meaning
        assert model[-1].n_iter_ < 5000


@pytest.mark.parametrize("kind", ["two", "three values", "two in sixty"])
def test_other_rare_columns_are_bounded_too(kind, seed):
    rng, n = np.random.default_rng(seed), 60 if kind == "two in sixty" else 1000
    X = rng.standard_normal((n, 70 if kind == "two in sixty" else 3))
    y = X[:, 0] + rng.standard_normal(n) > 1
    events, others = np.flatnonzero(y), np.flatnonzero(~y)
    X[:, 1:3] = 0.0
    X[events[: 2 if kind == "two in sixty" else 5], 1] = 1.0
    X[events[:3], 1] *= 2 if kind == "three values" else 1
    X[others[: 15 if n > 60 else 2], 2] = 1.0
    model = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0))
    assert followed(model, X, y) == (kind != "two in sixty")
    slab, sd = model[-1].prior_["slab_scale"], X.std(axis=0)
    np.testing.assert_allclose(slab[1:3] / sd[1:3], [2.0 if kind == "three values" else 4.0, 4.0], rtol=0.25)
    assert (np.abs(model[-1].coef_[0] / sd)[1:3] * np.ptp(X, axis=0)[1:3] < 7).all()


@pytest.mark.parametrize("params", [{}, {"slab_scale": 2}])
def test_a_barely_missing_measurement_does_not_come_first(params, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((1000, 4)), columns=["age", "sbp", "bmi", "chol"])
    y = 0.5 * X["age"] + 0.3 * X["sbp"] + rng.standard_normal(1000) > 0.8
    X.loc[np.flatnonzero(~y)[:12], "chol"] = np.nan
    imputer = SimpleImputer(add_indicator=True)
    model = make_pipeline(imputer, StandardScaler(), HorseshoeProbitClassifier(random_state=0, **params))
    before, after = fitted(model, X, y)
    assert model[-1].n_iter_ < 5000  # what nothing bounds is not waited for, as is said before
    assert "slab_scale='per_contrast' bounds it" in before
    follow(model[-1], after)
    assert not fitted(model, X, y)
    found = terms.summary(model, X)
    assert found.index[0] == "age"
    assert found["probability"].nlargest(2).index.tolist() == ["age", "sbp"]
    named = make_pipeline(imputer, StandardScaler().set_output(transform="pandas"), HorseshoeProbitClassifier(n_iter=9))
    named[0].set_output(transform="pandas")
    assert all("'missingindicator_chol'" in text for text in fitted(named, X, y)[:1])


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
def test_the_contrast_of_a_column_is_the_difference_of_its_values(kind, fit_intercept, seed, sizes):
    """However rare one is. With weights, and where rows are read in pieces."""
    rng, n = np.random.default_rng(seed), 4000
    X = np.column_stack([
        7.0 * (np.arange(n) < 3), 5.0 - 3 * (np.arange(n) % 2), rng.standard_normal(n), np.exp(rng.standard_normal(n)),
        np.zeros(n),
    ])  # fmt: skip
    y, weight = (np.arange(n) % 3 == 0).astype(np.uint8), rng.uniform(0.5, 2, n)
    values = csr_array(X) if kind == "sparse" else X.astype(kind)
    sizes(numbers_of_contrasts=700)
    ops = sparse if kind == "sparse" else dense
    for w in (None, weight):
        for standardize in (False, True):
            rows = Rows(values, y, fit_intercept, ops, Threads(1), weight=w, standardize=standardize)
            d = X - np.average(X, axis=0, weights=w) * fit_intercept
            square, size = np.average(d**2, axis=0, weights=w), np.average(abs(d), axis=0, weights=w)
            want = 2 * np.divide(square, size, out=np.zeros(5), where=size > 0)
            np.testing.assert_allclose(rows.contrast * rows.columns.scale, want, rtol=1e-5)
            if fit_intercept:
                np.testing.assert_allclose(want[:2], [7, 3], rtol=0.01)
                assert 2.4 < want[2] < 2.6


def test_deviations_on_a_gpu_are_those_of_the_host(one_gpu):
    X = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32)
    centre, weight = X.mean(axis=0, dtype=np.float64), np.arange(50.0)
    on_gpu = absolute_deviations(one_gpu.to_device(X), weight, centre)
    np.testing.assert_array_equal(on_gpu, absolute_deviations(X, weight, centre))
