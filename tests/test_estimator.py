"""What a user of the estimator can rely on: attributes, parameters, tables, summaries, and a light import."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from card import held_by_fits
from laws import same_draws
from sklearn.utils import estimator_html_repr

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, diagnostics
from skhorseshoe.datasets import make_sparse_probit


def location_draws(model):
    return np.concatenate([model.coef_draws_, model.intercept_draws_[..., None]], axis=2)


SHAPES = {
    **dict.fromkeys(("shrinkage_", "inclusion_score_", "rhat_", "ess_"), (8,)),
    **dict.fromkeys(("intercept_draws_", "global_scale_draws_", "acceptance_draws_"), (3, 150)),
    **{"coef_": (1, 8), "intercept_": (1,), "coef_draws_": (3, 150, 8)},
}
OTHERS = "classes n_features_in n_iter burn_in device moments prior sampler stopped_by tuning"


def test_fitted_attributes_are_arrays_of_the_stated_shapes(fitted):
    for name, shape in SHAPES.items():
        value = getattr(fitted, name)
        assert type(value) is np.ndarray, name
        assert (value.shape, value.dtype) == (shape, np.float64), name
        assert np.isfinite(value).all(), name
    expected = {*SHAPES, *(f"{name}_" for name in OTHERS.split())}
    assert {name for name in vars(fitted) if name.endswith("_")} == expected
    assert ((fitted.shrinkage_ >= 0) & (fitted.shrinkage_ <= 1)).all()
    assert np.array_equal(fitted.inclusion_score_, 1 - fitted.shrinkage_)
    assert np.array_equal(fitted.rhat_, diagnostics.rhat(fitted.coef_draws_))
    assert np.array_equal(fitted.ess_, diagnostics.ess_bulk(fitted.coef_draws_))
    assert (fitted.n_iter_, fitted.burn_in_, fitted.n_features_in_, fitted.device_) == (300, 100, 8, "cpu")


def test_burn_in_is_what_is_thrown_away_of_the_same_chains(problem, short_fit):
    whole = short_fit(*problem, n_iter=30, burn_in=0)
    tail = short_fit(*problem, n_iter=20, burn_in=10)
    assert np.array_equal(location_draws(tail), location_draws(whole)[:, 10:])


@pytest.mark.parametrize("n_chains", [1, 256])
def test_number_of_chains(problem, short_fit, n_chains):
    model = short_fit(*problem, n_chains=n_chains, n_iter=8, burn_in=0)
    assert model.coef_draws_.shape == (n_chains, 8, 8)
    assert len(np.unique(model.coef_draws_[:, 0, 0])) == n_chains
    assert np.isfinite(model.rhat_).all()


@pytest.mark.parametrize("summary", ["mean", "median"])
def test_coef_is_the_summary_of_the_draws(problem, short_fit, summary):
    model, middle = short_fit(*problem, coef_summary=summary), getattr(np, summary)
    assert short_fit(*problem, coef_summary=summary, draws_dtype="float32").coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_[0], middle(model.coef_draws_.reshape(-1, 8), axis=0), rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, middle(model.intercept_draws_), rtol=1e-12)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_selected_coef_is_zero_where_the_interval_covers_zero(seed, short_fit, level):
    X, y, _ = make_sparse_probit(400, 30, random_state=seed)
    model = short_fit(X, y, n_iter=300, burn_in=100, coef_summary="selected", credible_level=level)
    draws = model.coef_draws_.reshape(-1, 30)
    lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
    survives = (lower > 0) | (upper < 0)
    assert 0 < survives.sum() < 30
    assert np.array_equal(model.coef_[0] != 0, survives)
    np.testing.assert_allclose(model.coef_[0, survives], draws.mean(axis=0)[survives], rtol=1e-12)


def test_selected_levels_are_those_that_the_header_counts_and_the_rule_keeps(short_fit, seed):
    """No single coefficient of a level is known: what is judged is its effect relative to the mean over rows."""
    rng = np.random.default_rng(seed)
    ward = rng.choice(list("abc"), 500)
    X = pd.get_dummies(pd.DataFrame({"ward": ward})).astype(float).assign(age=rng.standard_normal(500))
    y = 0.6 * (ward == "c") - 0.6 * (ward == "b") + rng.standard_normal(500) > 0
    model = short_fit(X, y, n_iter=400, burn_in=200, coef_summary="selected")
    kept = model.coef_[0] != 0
    assert kept[:3].any()
    assert np.array_equal(HorseshoeSelector(model, rule="interval", prefit=True, terms=None).fit(X).get_support(), kept)
    assert f"{kept.sum()} of 4 columns clearly matter" in model.summary().attrs["header"]


@pytest.mark.parametrize("summary", ["median", "selected"])
def test_what_coef_holds_does_not_change_probabilities(problem, short_fit, summary):
    by_mean, other = (short_fit(*problem, coef_summary=how).predict_proba(problem[0]) for how in ("mean", summary))
    assert np.array_equal(by_mean, other)


def test_without_an_intercept_a_row_of_zeros_is_even_odds(problem, short_fit):
    model = short_fit(*problem, fit_intercept=False)
    assert np.array_equal(model.intercept_, [0.0])
    assert not model.intercept_draws_.any()
    assert np.array_equal(model.predict_proba(np.zeros((1, 8))), [[0.5, 0.5]])
    assert "(intercept)" not in model.summary().index


def test_an_int_seed_repeats_and_a_random_state_moves_on(problem, short_fit):
    assert same_draws(short_fit(*problem, random_state=3), short_fit(*problem, random_state=3))
    assert not same_draws(short_fit(*problem, random_state=3), short_fit(*problem, random_state=4))
    for generator in (np.random.RandomState, np.random.default_rng):
        rng = generator(3)
        first = short_fit(*problem, random_state=rng)
        assert same_draws(first, short_fit(*problem, random_state=generator(3)))
        assert not same_draws(first, short_fit(*problem, random_state=rng))


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0), None], ids=["int", "RandomState", "None"])
def test_numpy_global_random_state_is_untouched(problem, short_fit, random_state):
    X, y = problem
    np.random.seed(17)  # noqa: NPY002
    before = global_random_state()
    short_fit(X, y, random_state=random_state).predict_proba(X)
    assert global_random_state() == before


def global_random_state():
    _, words, position, *_ = np.random.get_state()  # noqa: NPY002
    return position, words.tobytes()


LABELS = [
    np.array(["no", "yes"]),
    np.array(["no", "yes"], dtype=object),
    np.array([False, True]),
    np.array([-1, 7]),
    np.array([0.0, 2.0]),
]


@pytest.mark.parametrize("labels", LABELS, ids=lambda labels: labels.dtype.name)
@pytest.mark.parametrize("form", [np.asarray, pd.Series])
def test_labels_of_any_kind(problem, short_fit, labels, form):
    X, y = problem
    model = short_fit(X, form(labels[y]))
    assert np.array_equal(model.classes_, labels)
    assert same_draws(model, short_fit(X, y))
    assert np.array_equal(model.predict(X), labels[(model.predict_proba(X)[:, 1] > 0.5).astype(int)])
    assert model.score(X, form(labels[y])) > 0.8


@pytest.mark.parametrize("dtype", ["boolean", "Int64", "uint8[pyarrow]"])
def test_labels_of_nullable_types_are_no_floats(problem, short_fit, dtype):
    X, y = problem[0], pd.Series(problem[1]).astype(dtype)
    model = short_fit(X, y)
    assert model.classes_.dtype == y.dtype.numpy_dtype
    assert model.score(X, y) > 0.8


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
def test_labels_in_a_table_of_one_column_keep_their_type(problem, short_fit):
    labels = pd.DataFrame({"y": problem[1]}).astype("boolean")
    assert short_fit(problem[0], labels).classes_.dtype == bool
    labels.iloc[3] = pd.NA
    with pytest.raises(ValueError, match="row 3 is missing"):
        short_fit(problem[0], labels)


@pytest.mark.parametrize("table", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.filterwarnings("error", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_tables_give_names_and_the_draws_of_the_array(problem, short_fit, table):
    X, y = problem
    names = [f"feature {j}" for j in range(8)]
    frame = table(dict(zip(names, X.T, strict=True)))
    model, plain = short_fit(frame, y), short_fit(X, y)
    assert list(model.feature_names_in_) == names
    assert list(model.summary().index) == [*names, "(intercept)", "(global scale)"]
    assert same_draws(model, plain)
    assert np.array_equal(model.predict_proba(frame), plain.predict_proba(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contiguous_arrays_are_used_as_they_are(long_problem, short_fit, dtype, monkeypatch):
    X, held = long_problem[0].astype(dtype), held_by_fits(monkeypatch)
    model = short_fit(X, long_problem[1], n_iter=2, burn_in=2)
    assert (held[0].dtype, model.coef_draws_.dtype) == (dtype, np.float64)
    assert np.shares_memory(held[0], X)


def test_whole_numbers_in_any_memory_order_give_the_same_draws(problem, short_fit):
    X, y = np.round(problem[0] * 3), problem[1]
    assert same_draws(short_fit(X.astype(int), y), short_fit(X, y))
    assert same_draws(short_fit(np.asfortranarray(X), y), short_fit(X, y))
    assert same_draws(short_fit(np.repeat(X, 2, axis=1)[:, ::2], y), short_fit(X, y))


@pytest.mark.parametrize(("level", "ends"), [(None, ("5%", "95%")), (0.5, ("25%", "75%")), (0.98, ("1%", "99%"))])
def test_summary_is_what_numpy_makes_of_the_draws(fitted, level, ends):
    frame = fitted.summary(level=level)
    draws = np.concatenate([location_draws(fitted), fitted.global_scale_draws_[..., None]], axis=2)
    pooled = draws.reshape(-1, 10)
    expected = {
        "mean": pooled.mean(axis=0),
        "sd": pooled.std(axis=0, ddof=1),
        **{end: np.percentile(pooled, float(end[:-1]), axis=0) for end in ends},
        "prob_positive": [*(pooled[:, :-1] > 0).mean(axis=0), np.nan],  # a scale is positive by definition
        "lfsr": np.maximum(
            [*np.minimum((pooled[:, :-1] > 0).mean(axis=0), (pooled[:, :-1] < 0).mean(axis=0)), np.nan],
            1 / np.minimum(frame["ess"], len(pooled)),
        ),
        "shrinkage": [*fitted.shrinkage_, np.nan, np.nan],
        "ess": diagnostics.ess_bulk(draws),
        "rhat": diagnostics.rhat(draws),
    }
    assert list(frame.columns) == list(expected)
    assert list(frame.index) == [*(f"x{j}" for j in range(8)), "(intercept)", "(global scale)"]
    for column, values in expected.items():
        np.testing.assert_allclose(frame[column], values, rtol=1e-10, err_msg=column)


def test_summary_takes_credible_level_by_default(problem, short_fit):
    assert {"10%", "90%"} < set(short_fit(*problem, credible_level=0.8).summary())


def test_html_evaluates_nothing_of_ours_and_has_no_link(fitted, monkeypatch):
    """As no page is published."""
    monkeypatch.setattr(HorseshoeProbitClassifier, "summary", None)
    for estimator in (fitted, HorseshoeProbitClassifier(), HorseshoeSelector(fitted)):
        html = estimator_html_repr(estimator)
        assert "href=" not in html
        assert len(html) < 200_000


def test_the_import_is_light(run_python):
    code = """
import sys, sklearn
before = set(sys.modules)
import skhorseshoe
print(*(set(sys.modules) - before))
"""
    assert not {"matplotlib", "arviz", "cupy", "dask"} & set(run_python(code).split())
    assert set(dir(skhorseshoe)) == {*skhorseshoe.__all__, "__version__"}
