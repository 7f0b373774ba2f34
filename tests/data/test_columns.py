"""Columns: standardised without a copy, unpenalised, and on scales that one prior cannot suit."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from laws import all_draws, mcse_mean, same_law
from scipy.sparse import csr_array
from scipy.stats import halfcauchy

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._data import validation
from skhorseshoe._data.rows import Rows
from skhorseshoe._model.horseshoe import each_slab, log_density_of_tau
from skhorseshoe._utils.threads import Threads


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4)) * [1, 5, 0.2, 1] + [0, 20, -1, 3]
    y = (X[:, 1] - 20) / 5 - X[:, 3] + 3 + rng.standard_normal(150) > 0
    return X, y


def test_names_indices_and_masks_mean_the_same_columns(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=10, random_state=0)
    draws = [
        model.set_params(unpenalized=given).fit(frame, y).coef_draws_
        for given in (["b", "d"], [1, 3], [-3, -1], (False, True, False, True), np.array(["d", "b"]), ["b", 3])
    ]
    assert all(np.array_equal(other, draws[0]) for other in draws[1:])
    assert np.array_equal(model.shrinkage_ == 0, [False, True, False, True])
    assert not np.array_equal(draws[0], model.set_params(unpenalized=[]).fit(frame, y).coef_draws_)


@pytest.mark.parametrize(("names", "given", "says"), [
    (None, ["a"], r"no 'a' among the 4 columns of X.*names of a table"),
    (None, ["x"], r"no 'x' among the 4 columns of X\. Give names .*set_output\(.*'standardscaler__age' for 'age'\.$"),
    (None, [4], "no 4 among .*-4 to 3"),
    (None, [0, 0, 1, 0], "a column more than once: .*as booleans"),
    (None, [True, False], "a mask of 2 entries, but X has 4 columns"),
    (None, [[1]], "must be a list of names or indices"),
    (None, ["a", 1], "no 'a' among"),
    (None, [True, 0], r"must be a list of names or indices, or a mask; got \[True, 0\]"),
    (None, [[0], [1, 2]], "must be a list of names or indices"),
    (None, {0, 1}, r"must be a list of names or indices, or a mask; got \{0, 1\}"),
    (["age", "bmi", "sex", "dose"], ["bmi", "Age"], "unpenalized: .*'Age' .* Did you mean 'age'"),
])  # fmt: skip
def test_columns_that_cannot_be_are_refused(data, names, given, says):
    X = data[0] if names is None else pd.DataFrame(data[0], columns=names)
    with pytest.raises(ValueError, match=says):
        HorseshoeProbitClassifier(n_iter=5, burn_in=5, unpenalized=given).fit(X, data[1])


@pytest.mark.parametrize("params", [
    {}, {"sampler": "gibbs"}, {"sampler": "pxda"}, {"fit_intercept": False}, {"slab_scale": 2.0, "standardize": True},
])  # fmt: skip
def test_without_shrunk_columns_the_law_is_that_beside_a_column_of_zeros(params, data, short_fit):
    """It tells nothing of the others, and leaves tau with its prior, but for the factor of a slab."""
    X, y = data
    given = {"n_iter": 800, "burn_in": 100, **params}
    alone = short_fit(X, y, **given, unpenalized=[True] * 4)
    beside = short_fit(np.c_[X, np.zeros(len(X))], y, **given, unpenalized=[0, 1, 2, 3])
    informed = [0, 1, 2, 3, *[4] * alone.fit_intercept]
    same_law(all_draws(alone)[..., informed], np.delete(all_draws(beside), 4, axis=-1)[..., informed])
    for share in (0.1, 0.5, 0.9):
        below = (alone.global_scale_draws_ < np.tan(np.pi / 2 * share)).astype(float)
        assert abs(below.mean() - share) < 4.5 * mcse_mean(below[..., None])[0]


def test_a_model_without_shrunk_columns_says_so(data, short_fit):
    X, y = data
    model = short_fit(X, y, unpenalized=[0, 1, 2, 3], slab_scale=2.0)
    header = model.summary().attrs["header"]
    assert "no column is shrunk; N(0, 100^2) per standard deviation of each" in " ".join(header.split())
    assert "m_eff" not in header
    assert HorseshoeSelector(model, prefit=True, rule="fsr").fit(X, y).get_support().all()
    with pytest.raises(ValueError, match=r"which is 0\. Leave it out: all columns are unpenalized"):
        short_fit(X, y, unpenalized=[True] * 4, expected_nonzero=2)
    tau = np.array([0.1, 1.0, 10.0])
    np.testing.assert_allclose(log_density_of_tau(tau, 0.5, each_slab(2.0, 0)), halfcauchy.logpdf(tau, scale=0.5))


@pytest.mark.parametrize("is_hidden", [False, True])
def test_names_are_seen_where_scikit_learn_sees_none(is_hidden, data, monkeypatch):
    """Before 1.9 it sees none in a table of polars 2, and would take columns by place."""
    X, y = data
    known = validation._get_feature_names
    hidden = pl.DataFrame if is_hidden else ()
    monkeypatch.setattr(validation, "_get_feature_names", lambda X: None if isinstance(X, hidden) else known(X))
    table = pl.DataFrame(dict(zip("abcd", X.T, strict=True)))
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=10, unpenalized=["b"], random_state=0).fit(table, y)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict_proba(table[["b", "a", "c", "d"]])


@pytest.mark.parametrize(("factor", "params", "told"), [
    (1e4, {}, True), (100, {}, False), (1e4, {"standardize": True}, False), (1e4, {"unpenalized": [1]}, False),
])  # fmt: skip
def test_one_warning_names_the_columns_whose_scales_differ(factor, params, told, said):
    """Constant and unpenalized columns have no scale."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1, factor, 0] + [0, 0, 7]
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=10, random_state=0, **params)
    texts = said(model, X, rng.random(60) > 0.4, "different scales")
    assert len(texts) == told
    assert all(re.search("deviation of 'x1' is .*that of 'x0'", text) for text in texts)


@pytest.mark.parametrize(("spread", "told"), [(1.0, False), (0.0, False), (1e4, True)])
def test_a_scale_is_a_standard_deviation_without_an_intercept_too(spread, told, said):
    """And no distance from zero, which standardize=True would not change."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) * [1, spread, 1] + [0, 5000, 0]
    model = HorseshoeProbitClassifier(n_iter=10, burn_in=10, fit_intercept=False, random_state=0)
    texts = said(model, X, rng.random(60) > 0.4, "different scales")
    assert len(texts) == told
    assert all(f"deviation of 'x1' is {X[:, 1].std():.2g}" in text for text in texts)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
@pytest.mark.parametrize("n", [300, 10_000])
def test_a_constant_is_one_whatever_its_sum_rounds_to(n, kind):
    values = np.array([0.1, 0.3, 1 / 3, 2.7, 99.99, -1e-8, 1e6 + 0.1])
    X = np.column_stack([np.random.default_rng(0).standard_normal(n), np.tile(values, (n, 1))])
    rows = Rows(kind(X), np.zeros(n, np.uint8), True, sparse if kind is csr_array else cpu, Threads(1))
    assert rows.columns.informative.tolist() == [True] + [False] * 7
    assert np.isinf(rows.columns.unit[1:]).all()


@pytest.mark.parametrize(("dtype", "values"), [
    ("float16", np.arange(2000, 2025)), ("float32", 20231101 + np.array([0, 2])), ("float64", 1e13 + np.arange(3)),
])  # fmt: skip
@pytest.mark.parametrize(("sampler", "standardize"), [("hmc", True), ("pxda", False)])
@pytest.mark.filterwarnings("ignore:Column")
def test_a_column_of_few_digits_is_no_constant(dtype, values, sampler, standardize, short_fit):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.choice(values, 500), rng.standard_normal(500)])
    y = (X[:, 0] - values.mean()) / values.std() + X[:, 1] + rng.standard_normal(500) > 0
    model = short_fit(X.astype(dtype), y, sampler=sampler, standardize=standardize, n_iter=300)
    assert np.isfinite(model.coef_draws_).all()
    assert (model.coef_draws_[..., 0] != 0).all()
    if dtype == "float16":
        assert 0.6 < model.coef_[0, 0] * values.std() < 1.5
    if dtype != "float32":  # of which a warning says that it leaves no digits
        assert 0.3 < model.coef_[0, 1] < 2


@pytest.mark.parametrize("max_draws", [None, 40])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_all_columns_constant_leave_the_intercept(max_draws, short_fit):
    model = short_fit(np.ones((60, 2)), np.arange(60) % 3 == 0, n_iter=100, max_draws=max_draws)
    assert model.summary().loc["x1", ["mean", "sd", "prob_positive"]].tolist() == [0.0, 0.0, 0.5]
    assert not model.coef_draws_.any()
    assert not np.signbit(model.coef_draws_).any()
    assert abs(model.predict_proba(np.ones((1, 2)))[0, 1] - 1 / 3) < 0.1


@pytest.mark.parametrize(("unpenalized", "named"), [
    ([1, 2, 3], "Columns 'Bergen', 'Oslo', 'Rome': "), ([4, 5], "Columns 'copy', 'other': "), ([0, 1, 2], None),
])  # fmt: skip
def test_unpenalized_columns_that_are_collinear_are_named(unpenalized, named, seed, said):
    rng = np.random.default_rng(seed)
    copy = 1000 * rng.standard_normal(300)
    X = np.column_stack([rng.standard_normal(300), np.eye(3)[rng.integers(0, 3, 300)], copy, copy])
    X = pd.DataFrame(X, columns=["age", "Bergen", "Oslo", "Rome", "copy", "other"])
    model = HorseshoeProbitClassifier(unpenalized=unpenalized, n_iter=500, random_state=seed, standardize=True)
    texts = said(model, X, X["age"] + rng.standard_normal(300) > 0, "unpenalized columns are collinear")
    assert [text.startswith(named) for text in texts] == [True] * (named is not None)
