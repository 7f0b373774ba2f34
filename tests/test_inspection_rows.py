"""Rows of every kind, as the steps before the classifier have them: types of columns, tables of polars, references."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.utils.class_weight import compute_sample_weight

from skhorseshoe import terms
from skhorseshoe.inspection import contributions, loo, marginal_effects, select
from skhorseshoe.plotting import PosteriorCalibrationDisplay, ProbabilityIntervalDisplay
from skhorseshoe.sets import correlated_sets, credible_sets


def test_numbers_that_are_objects_are_numbers(patients, short_fit):
    X, y = patients
    steps = make_column_transformer((OneHotEncoder(), [2]), (StandardScaler(), [0, 1]))
    expected = marginal_effects(make_pipeline(steps, short_fit(steps.fit_transform(X), y)), X)
    for objects in (X.astype(object), X.astype({"sex": bool}).astype(object)):
        whole = make_pipeline(steps, short_fit(clone(steps).fit_transform(objects), y))
        steps.fit(objects)
        np.testing.assert_allclose(marginal_effects(whole, objects)["mean"], expected["mean"], atol=1e-12)


def test_a_name_may_have_two_levels(patients, short_fit):
    X = patients[0].set_axis(pd.MultiIndex.from_product([["who"], patients[0].columns]), axis=1)
    clf = short_fit(X, patients[1])
    assert marginal_effects(clf, X).index.tolist() == list(X)
    assert marginal_effects(clf, X, [("who", "sex")])["change"].tolist() == ["0 to 1"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for asked in ("auto", None):
            assert {*contributions(clf, X[:2], terms=asked).loc[1].index} >= {*X, "(total)"}


def test_a_change_beyond_the_type_of_a_column_is_none_to_warn_of(model, patients):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(marginal_effects(model, patients[0], "sex", change=1e20)["mean"]).all()


def test_steps_may_use_the_methods_of_polars(patients, short_fit):
    X, y = patients

    def plain(rows):
        return rows.assign(both=rows["age"] * rows["dose"] / 100)

    def of_polars(rows):
        return rows.with_columns(both=pl.col("age") * pl.col("dose") / 100)

    clf, table = short_fit(plain(X), y), pl.DataFrame({name: X[name].to_numpy() for name in X})
    expected, whole = make_pipeline(FunctionTransformer(plain), clf), make_pipeline(FunctionTransformer(of_polars), clf)
    pd.testing.assert_frame_equal(marginal_effects(whole, table), marginal_effects(expected, X))
    for reference in (None, X.iloc[5].to_dict(), X.iloc[5], X.iloc[5].tolist()):
        frame = contributions(whole, table[:2], reference, terms=None)
        pd.testing.assert_frame_equal(frame, contributions(expected, X[:2], reference, terms=None))
    for answer in (marginal_effects, contributions):
        with pytest.raises(TypeError, match=r"LazyFrame.*X\.collect\(\)"):
            answer(whole, table.lazy())


IN_MEMORY = {
    "marginal_effects": marginal_effects,
    "contributions": contributions,
    "correlated_sets": lambda model, X: correlated_sets(X),
    "correlated_sets of a model": lambda model, X: correlated_sets(X, model=model),
    "credible_sets": credible_sets,
    "terms.summary": terms.summary,
    "ProbabilityIntervalDisplay": ProbabilityIntervalDisplay.from_estimator,
    "PosteriorCalibrationDisplay": lambda model, X: PosteriorCalibrationDisplay.from_estimator(model, X, X["sex"]),
}


@pytest.mark.parametrize("name", IN_MEMORY)
def test_a_dask_collection_is_refused_where_the_answer_is_made_in_memory(name, patients, short_fit):
    X, y = patients
    rows = pytest.importorskip("dask.dataframe").from_pandas(X, npartitions=3)
    with pytest.raises(TypeError, match=r"X is a Dask collection.*give a sample of its rows"):
        IN_MEMORY[name](short_fit(X, y), rows)


@pytest.mark.parametrize("kind", ["pandas", "polars", "array", "list"])
def test_numbers_stay_numbers_beside_text(kind, patients, short_fit):
    """An encoder knows 1, not "1"."""
    X = patients[0].assign(city=np.where(patients[0]["dose"] > 5, "north", "south"))
    rows = {"pandas": X, "polars": pl.DataFrame(X.to_dict("list")), "array": X.to_numpy(object)}.get(
        kind, X.to_numpy(object).tolist()
    )
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [2, 3]), (StandardScaler(), [0, 1]))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(rows), patients[1]))
    for reference in (X.iloc[5].tolist(), X.iloc[5], X.iloc[5].to_numpy(), rows[5:6]):
        parts = contributions(whole, rows[:2], reference, terms=None).loc[0].iloc[:-1]
        np.testing.assert_array_equal(parts["value"], np.asarray(steps.transform(rows[:1])).ravel())
        np.testing.assert_array_equal(parts["reference"], np.asarray(steps.transform(rows[5:6])).ravel())
    assert len(marginal_effects(whole, rows)) == 4


@pytest.mark.parametrize("dtype", ["Int64", "boolean"])
def test_a_missing_value_of_a_reference_is_that_of_its_column(dtype, patients, short_fit):
    """Which is a level to an encoder."""
    X = patients[0].assign(
        sex=pd.Series(patients[0]["sex"].where(patients[0]["age"] > 40, None)).astype("Int64").astype(dtype)
    )
    steps = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [2]), (StandardScaler(), [0, 1]))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), patients[1]))
    rows = X[X["sex"].isna()].iloc[:1]
    for reference in (rows.iloc[0], rows.iloc[0].to_dict(), rows.iloc[0].tolist()):
        found = contributions(whole, X[:1], reference, terms=None).loc[0, "reference"].iloc[:-1]
        np.testing.assert_array_equal(found, steps.transform(rows).ravel())
    half = {**X.iloc[0].to_dict(), "sex": 0.5}  # which is no value of the column
    assert (contributions(whole, X[:1], half, terms=None).loc[0, "reference"].iloc[:2] == 0).all()


def test_decimal_numbers_are_features_by_default(patients, short_fit):
    X, y = patients
    rows = pl.from_pandas(X.round(1)).with_columns(pl.col("dose").cast(pl.Decimal(9, 1)))
    clf = short_fit(rows, y)
    assert marginal_effects(clf, rows).index.tolist() == list(X)
    pd.testing.assert_frame_equal(marginal_effects(clf, rows), marginal_effects(clf, X.round(1)), rtol=1e-9)


def test_other_rows_than_those_of_the_fit_are_told(seed, short_fit):
    rng = np.random.default_rng(seed)
    X, weight = rng.standard_normal((90, 3)), rng.integers(1, 4, 90).astype(float)
    model, both = short_fit(X, X[:, 0] > 0).fit(X, X[:, 0] > 0, sample_weight=weight), {"both": [0, 1]}
    with warnings.catch_warnings(record=True) as caught:
        terms.summary(model, X, terms=both, sample_weight=weight)
        terms.summary(model, X[::-1].astype(np.float32), terms=both, sample_weight=weight[::-1])
        select(model, X[::-1], sample_weight=weight[::-1])
        select(model, X, rule="fsr", terms=both, sample_weight=weight)
    assert not any("those of the fit" in str(one.message) for one in caught)
    for other, weights, why in (
        (3 * X - 2 * np.average(X, axis=0, weights=weight), weight, "the standard deviation of 'x0' is"),
        (X + 1, weight, "the mean of 'x0' is"),
        (X, None, "they count as 90 by their weights, and in the fit as"),
        (X[:50], weight[:50], "50 rows, and the fit had 90"),
    ):
        with pytest.warns(UserWarning, match=f"must be those of the fit, and these are others: {why}"):
            terms.summary(model, other, terms=both, sample_weight=weights)
        for given in ({}, {"terms": both}, {"rule": "interval", "terms": both}, {"rule": "fsr", "terms": both}):
            with pytest.warns(UserWarning, match=f"these are others: {why}.* then chooses columns for these") as told:
                select(model, other, sample_weight=weights, **given)
            assert sum("these are others" in str(one.message) for one in told) == 1


@pytest.mark.parametrize("class_weight", ["balanced", {False: 1, True: 3}])
def test_rows_without_the_weights_of_their_classes_are_told_the_cure(class_weight, seed, short_fit):
    X = np.random.default_rng(seed).standard_normal((90, 3))
    y = X[:, 0] > 0.5
    model = short_fit(X, y, class_weight=class_weight)
    cure = r"class_weight=.*: multiply sample_weight, .* by sklearn.*compute_sample_weight\(class_weight, y\)"
    with pytest.warns(UserWarning, match=f"these are others: .*{cure}") as told:
        terms.summary(model, X, terms={"both": [0, 1]})
    with pytest.raises(ValueError, match=cure):
        loo(model, X, y)
    assert "TargetEncoder" not in str(told[-1].message)
    with warnings.catch_warnings(action="error"):
        weight = compute_sample_weight(class_weight, y)
        terms.summary(model, X, terms={"both": [0, 1]}, sample_weight=weight)
        select(model, X, y)


def test_the_rows_of_an_encoder_that_fits_across_folds_are_those_of_its_fit_transform(patients, short_fit):
    X, y = patients
    codes = X[["age"]].round(-1).astype(str)
    whole = make_pipeline(TargetEncoder(random_state=0), clone(short_fit(X, y))).fit(codes, y)
    with pytest.raises(ValueError, match="transform gives other values than fit_transform gave in the fit: fit the cl"):
        loo(whole, codes, y)
    seen = TargetEncoder(random_state=0).fit_transform(codes, y)
    assert loo(short_fit(seen, y), seen, y)
