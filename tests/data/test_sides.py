"""Columns whose coefficient nothing bounds, and columns far from zero: found, named, and with a cure."""

import functools
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data import column_checks
from skhorseshoe._data.column_checks import extremes, one_sided, widest
from skhorseshoe._data.rows import Rows
from skhorseshoe._fit import findings
from skhorseshoe._utils.threads import Threads

NAMES = ["noise", "level", "level_0", "constant", "zeros", "touches", "negative", "apart", "mixed"]
WITH_INTERCEPT, WITHOUT = {"level", "level_0", "touches", "negative", "apart"}, {"level", "level_0", "negative"}


def columns(n=60):
    """y, and columns of all kinds, by name."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    ones = np.flatnonzero(y)
    level = np.where(np.isin(np.arange(n), ones[[2, 20]]), 1.0, 0.0)  # occurs in class 1 only
    in_zeros = np.where(np.isin(np.arange(n), [0, 30, n - 2]), 1.0, 0.0)  # and in class 0 only
    touches = np.where(y, 2.0 + rng.random(n), 1.0 + rng.random(n))
    touches[[0, 1]] = 2.0
    mixed = level + in_zeros
    values = rng.standard_normal(n), level, in_zeros, np.full(n, 3.0), np.zeros(n), touches
    X = np.column_stack([*values, -level, np.where(y, 5.0, 4.0), mixed])
    return pd.DataFrame(X, columns=NAMES), y.astype(np.uint8)


@pytest.mark.parametrize("block", [1, 20, 10**6])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("kind", ["float64", "float16", "csr"])
def test_columns_of_all_kinds(kind, fit_intercept, block, monkeypatch):
    monkeypatch.setattr(column_checks, "_BLOCK", block * len(NAMES))
    X, y = columns()
    X = csr_array(X.to_numpy()) if kind == "csr" else X.to_numpy().astype(kind)
    found = {NAMES[j] for j in one_sided(*extremes(X, y, fit_intercept))[0]}
    assert found == (WITH_INTERCEPT if fit_intercept else WITHOUT)


@pytest.mark.parametrize("cuts", [[7], [1, 20, 59], list(range(1, 60))])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_columns_in_pieces_of_the_rows(fit_intercept, cuts):
    """As workers of a cluster hold them; a piece may have rows of one class only."""
    X, y = columns()
    pieces = zip(np.split(X.to_numpy(), cuts), np.split(y, cuts), strict=True)
    low, high = functools.reduce(widest, (extremes(rows, labels, fit_intercept) for rows, labels in pieces))
    assert {NAMES[j] for j in one_sided(low, high)[0]} == (WITH_INTERCEPT if fit_intercept else WITHOUT)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_columns_on_a_gpu(kind, one_gpu):
    X, y = columns()
    held = one_gpu.to_device(X.to_numpy())
    if kind is csr_array:
        from skhorseshoe._backends._gpu.csr import Csr

        held = Csr.of(csr_array(X.to_numpy()))
    assert {NAMES[j] for j in one_sided(*extremes(held, y, True))[0]} == WITH_INTERCEPT


@pytest.mark.parametrize("standardize", [True, False])
def test_ranges_are_in_the_unit_of_the_prior(standardize):
    X, y = columns()
    X = 100 * X[["noise", "level"]].to_numpy()
    found, spans = Rows(X, y, True, cpu, Threads(1), standardize=standardize).one_sided()
    assert found.tolist() == [1]
    assert spans[0] == pytest.approx(100 / X[:, 1].std() if standardize else 100)


def test_a_column_is_read_as_long_as_it_may_be_one():
    """Of 10,000 rows of noise a few settle it."""

    class Counted(np.ndarray):
        rows = 0

        def __getitem__(self, at):
            if isinstance(at, slice):
                Counted.rows += at.stop - at.start
            return np.asarray(self)[at]

    X = np.random.default_rng(0).standard_normal((10_000, 300))
    low, high = extremes(X.view(Counted), (np.arange(10_000) % 2).astype(np.uint8), True)
    assert not len(one_sided(low, high)[0])
    assert Counted.rows < 5000


@pytest.mark.parametrize(("slab_scale", "told"), [(None, True), (2.0, False)])
def test_a_level_of_one_class_is_named_with_its_cure(slab_scale, told, seed):
    """Whether or not the chains look well."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((400, 2)), columns=["a", "b"])
    y = X["a"] + rng.standard_normal(400) > 0
    X["rare"] = 0.0
    X.loc[np.flatnonzero(y)[:4], "rare"] = 1.0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        HorseshoeProbitClassifier(n_iter=300, burn_in=300, slab_scale=slab_scale, random_state=seed).fit(X, y)
    text = " ".join(str(w.message) for w in caught)
    assert ("Column 'rare': all values in one class lie on one side" in text) == told
    assert ("slab_scale=2" in text) == told
    if told:
        assert [w.category for w in caught] == [ConvergenceWarning]


def fit_with_level(seed, rows_of_level, scaled=False, **params):
    """A level of events alone in so many rows beside a column that matters; what was said."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((2000, 2)), columns=["a", "b"])
    y = X["a"] + rng.standard_normal(2000) > 0
    X["rare"] = 0.0
    X.loc[np.flatnonzero(y)[:rows_of_level], "rare"] = 1.0
    if scaled:
        X["rare"] /= X["rare"].std()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = HorseshoeProbitClassifier(random_state=seed, **{"n_iter": 300, "burn_in": 300, **params}).fit(X, y)
    return model, " ".join(str(w.message) for w in caught)


def test_a_slab_is_too_far_for_a_level_that_was_scaled(seed):
    """Then slab_scale=2 is neither the cure nor a bound."""
    for slab_scale in (None, 2.0):
        _, text = fit_with_level(seed, 4, scaled=True, slab_scale=slab_scale)
        assert "Column 'rare': all values in one class lie on one side" in text
        assert "slab_scale=2" in text
        assert "lie within 10 of one another; here they lie 22.4 apart" in text
    _, text = fit_with_level(seed, 4, scaled=True, slab_scale=0.5)
    assert "one side" not in text


def test_a_level_that_is_noise_to_the_model_is_not_named(seed):
    """Two rows of a common class say nothing, so the posterior keeps the coefficient at zero."""
    model, text = fit_with_level(seed, 2, global_scale=1e-9)
    assert model.shrinkage_[2] > 0.95
    assert "one side" not in text
    model, text = fit_with_level(seed, 200)
    assert model.shrinkage_[2] < 0.95
    assert "one side" in text


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("sampler", ["hmc", "pxda", "gibbs"])
def test_with_an_intercept_it_does_not_matter_where_columns_have_their_zero(sampler, dtype, seed, short_fit):
    """The offset is a power of two, so that no digit of X is lost."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((300, 3)) * 64) / 64
    y = X[:, 0] + rng.standard_normal(300) > 0
    offset = 2.0**12 if dtype == "float32" else 2.0**30
    near, far = (
        short_fit((X + shift).astype(dtype), y, sampler=sampler, n_iter=1500, burn_in=200, standardize=False)
        for shift in (0.0, offset)
    )
    error = near.coef_draws_.std(axis=(0, 1)) * 5 / np.sqrt(np.minimum(near.ess_, far.ess_))
    assert (abs(near.coef_ - far.coef_) < error).all()
    proba = near.predict_proba(X), far.predict_proba((X + offset).astype(dtype))
    np.testing.assert_allclose(*proba, atol=0.05)


@pytest.mark.parametrize(("dtype", "distance", "told"), [
    ("float64", 1e9, False), ("float64", 1e14, True), ("float32", 1e3, False), ("float32", 1e5, True),
])  # fmt: skip
def test_columns_too_far_from_zero_are_named(dtype, distance, told, seed):
    X = np.random.default_rng(seed).standard_normal((200, 3)) + np.array([0, distance, 0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        HorseshoeProbitClassifier(n_iter=5, burn_in=5, random_state=0).fit(X.astype(dtype), X[:, 0] > 0.5)
    said = [str(w.message) for w in caught if "from zero" in str(w.message)]
    assert len(said) == told
    if told:
        assert re.match(r"Column 'x1' lies up to \de\+", said[0])
        assert ("give X as float64" in said[0]) == (dtype == "float32")


@pytest.mark.parametrize("slab_scale", [None, 2.0])
def test_a_level_of_one_class_that_is_not_shrunk_has_another_cure(slab_scale, seed):
    """A slab does not bound it, and its chains may look well."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((300, 2)), columns=["a", "b"])
    y = X["a"] + rng.standard_normal(300) > 0
    X["site"] = np.where(y & (np.arange(300) < 20), 1.0, 0.0)
    model = HorseshoeProbitClassifier(n_iter=300, slab_scale=slab_scale, unpenalized=["site"], random_state=seed)
    with pytest.warns(ConvergenceWarning, match=r"Column 'site': .* and slab_scale does not bound an unpenalized one"):
        model.fit(X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_level_that_nothing_bounds_is_not_called_undetermined_too(seed, monkeypatch):
    monkeypatch.setattr(findings, "LOOSE", 0.0)
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((300, 2)), columns=["a", "b"])
    y = X["a"] + rng.standard_normal(300) > 0
    X["site"] = np.where(y & (np.arange(300) < 40), 1.0, 0.0)
    model, undetermined = HorseshoeProbitClassifier(n_iter=20, burn_in=20, random_state=seed), "columns are collinear"
    with pytest.warns(ConvergenceWarning, match="Column 'site': all values in one class") as caught:
        model.set_params(unpenalized=["site"]).fit(X, y)
    assert not any(undetermined in str(w.message) for w in caught)
    with pytest.warns(UserWarning, match=undetermined):
        model.set_params(unpenalized=["b"]).fit(X, y)


def test_complete_separation_by_a_column_that_is_not_shrunk_is_told_whatever_r_hat_says(seed):
    """The prior alone bounds it, and chains of a few columns can mix well over a prior."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([np.tile([-1.0, 1.0], 20), rng.standard_normal(40)])
    model = HorseshoeProbitClassifier(n_iter=4000, unpenalized=[0], fit_intercept=False, random_state=seed)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, X[:, 0] > 0)
    (text,) = [str(w.message) for w in caught if w.category is ConvergenceWarning]
    assert "'x0'" in text
    assert "Remove the column from unpenalized" in text
    assert ("R-hat" in text) == (model.rhat_.max() > 1.01 or model.ess_.min() < 400)
