"""A whole Pipeline or search is asked, in the units of its data: effects of columns, contributions, tables."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from by_hand import effect_by_hand
from laws import peak_memory
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, OneHotEncoder, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._posterior import average_changes, input_rows
from skhorseshoe.inspection import (
    contributions,
    loo,
    marginal_effects,
    predict_interval,
    predict_proba_samples,
    select,
    summary,
    summary_of_sets,
)
from skhorseshoe.sets import correlated_sets


@pytest.mark.parametrize("kind", ["dropped", "few rows", "of two", "complete", "others"])
def test_levels_that_are_changed_beside_one_another_are_told(kind, patients, short_fit, seed):
    """That no row is in two wards; of few rows that may be chance."""
    X, y = patients
    wards = np.random.default_rng(seed).choice(list("abcd"), len(X), p=[0.4, 0.3, 0.25, 0.05])
    rows = pd.get_dummies(X[["age"]].assign(ward=wards), drop_first=kind != "complete")
    if kind == "others":
        rows.loc[:20, ["ward_b", "ward_c"]] = True
    elif kind == "of two":
        rows["ward_d"] = rows["ward_d"] * 1.5
    clf = short_fit(rows, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        marginal_effects(clf, rows[:20] if kind == "few rows" else rows, "ward_c" if kind == "of two" else None)
    names = {"dropped": "'ward_b', 'ward_c', 'ward_d'", "of two": "'ward_b', 'ward_c'"}.get(kind)
    assert [str(one.message).partition(" seem levels")[0] for one in caught] == [f"Columns {names}"] * bool(names)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("blocks", [(2**20, 2**13), (57, 40)], ids=["whole", "blocks"])
def test_effects_are_those_of_the_definition(model, patients, weighted, blocks, monkeypatch, seed):
    monkeypatch.setattr(input_rows, "_NUMBERS_AT_A_TIME", blocks[0])
    monkeypatch.setattr(input_rows, "_ROWS_AT_A_TIME", blocks[1])
    monkeypatch.setattr(average_changes, "_NUMBERS_HELD", 2)
    X = patients[0][:100]
    weight = np.random.default_rng(seed).uniform(0, 3, len(X)) if weighted else None
    sd = np.sqrt(np.cov(X["dose"], aweights=weight, ddof=0))
    expected = [
        ("auto", "age", "+1", (lambda age: age + 1, None)),
        ("auto", "sex", "0 to 1", (1, 0)),
        (-2.5, "dose", "-2.5", (lambda dose: dose - 2.5, None)),
        ("sd", "dose", f"{sd:+.3g}", (lambda dose: dose + sd, None)),
    ]
    for change, name, words, ends in expected:
        draws = effect_by_hand(model, X, name, *ends, weight)
        frame = marginal_effects(
            model, X, change=change, features=None if change == "auto" else name, sample_weight=weight
        )
        row = frame.loc[name]
        assert row["change"] == words
        numbers = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, [0.05, 0.95]), (draws > 0).mean()]
        np.testing.assert_allclose(row[["mean", "sd", "5%", "95%", "prob_positive"]].astype(float), numbers, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_effect_is_that_of_rows_where_the_column_has_a_value(patients, short_fit, weighted, seed):
    rng = np.random.default_rng(seed)
    X = patients[0].astype(float).mask(rng.random((300, 3)) < 0.3).assign(empty=np.nan)
    weight = rng.integers(0, 3, 300) if weighted else None
    steps = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), patients[1]))
    for change in ("auto", "sd", 2.0):
        frame = marginal_effects(whole, X, change=change, sample_weight=weight)
        assert frame.index.tolist() == ["age", "dose", "sex"]
        n = (weight > 0).sum() if weighted else 300
        assert f"{n} rows (of those that have" in frame.attrs["header"]
        for name in frame.index:
            known = X[name].notna()
            some = weight[known] if weighted else None
            alone = marginal_effects(whole, X[known], name, change=change, sample_weight=some)
            pd.testing.assert_frame_equal(frame.loc[[name]], alone)
    with pytest.raises(ValueError, match="'empty' has no value in any row"):
        marginal_effects(whole, X, "empty", sample_weight=weight)
    with pytest.raises(ValueError, match="'age' has no value in any row of positive weight"):
        marginal_effects(whole, X, "age", change="sd", sample_weight=X["age"].isna())


def test_arrays_sparse_rows_and_other_tables_are_rows(patients, short_fit):
    X, y = patients
    values = X.to_numpy(dtype=float)
    whole = make_pipeline(MaxAbsScaler().fit(values), short_fit(MaxAbsScaler().fit_transform(values), y))
    expected = marginal_effects(whole, values)
    assert expected.index.tolist() == ["x0", "x1", "x2"]
    sparse = marginal_effects(whole, csr_array(values))
    pd.testing.assert_frame_equal(sparse, expected, rtol=1e-9)
    for terms in ("auto", None):
        parts = contributions(whole, csr_array(values[:4]), terms=terms)
        pd.testing.assert_frame_equal(parts, contributions(whole, values[:4], terms=terms), rtol=1e-9)
    named = make_pipeline(MaxAbsScaler().fit(X), whole[-1])
    pd.testing.assert_frame_equal(marginal_effects(named, pl.from_pandas(X)), marginal_effects(named, X))


def test_truth_values_of_pyarrow_are_numbers(patients, short_fit):
    pyarrow = pytest.importorskip("pyarrow")
    X = patients[0].assign(sex=patients[0]["sex"] == 1)
    whole = make_pipeline(MaxAbsScaler().fit(X), short_fit(MaxAbsScaler().fit_transform(X), patients[1]))
    expected = marginal_effects(whole, X)
    for table in (pyarrow.RecordBatch.from_pandas(X), X.convert_dtypes(dtype_backend="pyarrow")):
        pd.testing.assert_frame_equal(marginal_effects(whole, table), expected, rtol=1e-9)


def test_text_that_is_missing_is_a_category_in_polars_too(patients, short_fit):
    polars = pytest.importorskip("polars")
    sex = [None if i % 7 == 0 else "mf"[i % 2] for i in range(300)]
    X = polars.DataFrame({"age": patients[0]["age"].to_numpy(), "sex": sex})
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), ["sex"]), ("passthrough", ["age"]))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), patients[1]))
    assert marginal_effects(whole, X).index.tolist() == ["age", "sex: m - f"]
    assert contributions(whole, X[:1], terms=None).loc[0, "value"].iloc[2] == 1  # of m, f and None
    assert contributions(whole, X[:1]).loc[(0, "sex"), "value"] is None


def test_columns_of_text_in_an_array_are_categories(patients, short_fit):
    X, y = patients[0].astype(object).to_numpy(), patients[1]
    X[:, 2] = np.where(X[:, 2] == 1, "7", "8")  # names, although they look like numbers
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), [2]), (StandardScaler(), [0, 1]))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), y))
    assert marginal_effects(whole, X, reference="8").index.tolist() == ["x0", "x1", "x2: 7 - 8"]


def test_an_error_of_a_step_names_the_feature_to_leave_out(patients, short_fit):
    X = patients[0].assign(code=np.where(patients[0]["sex"] == 1, 102, 250))
    steps = make_column_transformer((OneHotEncoder(), ["code"]), (StandardScaler(), ["age", "dose"]))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), patients[1]))
    with pytest.raises(ValueError, match=r"'code' changed: leave it out of features.*unknown categories"):
        marginal_effects(whole, X)
    assert len(marginal_effects(whole, X, ["age", "dose"])) == 2


def test_without_steps_only_the_column_that_changes_is_looked_at(model, patients, monkeypatch):
    X, clf, seen = patients[0].to_numpy(float), model[-1], []
    expected = [marginal_effects(make_pipeline(FunctionTransformer(), clf), X, change=one) for one in ("auto", "sd")]
    usual = input_rows.classifier_rows
    monkeypatch.setattr(input_rows, "classifier_rows", lambda *given: seen.append(1) or usual(*given))
    for rows in (X, csr_array(X)):
        for change, frame in zip(("auto", "sd"), expected, strict=True):
            pd.testing.assert_frame_equal(marginal_effects(clf, rows, change=change), frame)
    assert len(seen) == 4  # the rows as they are, each time


def test_memory_of_effects_does_not_grow_with_rows_times_draws(model, patients, monkeypatch):
    monkeypatch.setattr(input_rows, "_ROWS_AT_A_TIME", 2**11)
    X = pd.concat([patients[0]] * 60, ignore_index=True)
    marginal_effects(model, X[:10])
    assert peak_memory(lambda: marginal_effects(model, X, "age")) < 5 * 2**20 < 8 * len(X) * 800 / 10


def test_effects_do_not_depend_on_threads(model, patients):
    clf = model[-1]
    frames = [marginal_effects(model, patients[0]) for clf.n_jobs in (1, 3)]
    clf.n_jobs = None
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def test_an_effect_of_few_draws_is_that_of_draws_in_the_middle(model, patients):
    """The one in the middle of each chain."""
    some = copy(model[-1])
    some.coef_draws_, some.intercept_draws_ = some.coef_draws_[:, 100:101], some.intercept_draws_[:, 100:101]
    few, alone = (
        marginal_effects(model, patients[0], max_draws=4),
        marginal_effects(make_pipeline(model[0], some), patients[0]),
    )
    np.testing.assert_allclose(few["mean"], alone["mean"])


def test_every_answer_is_that_of_the_classifier_inside(model, patients):
    X, clf, rows = patients[0], model[-1], model[:-1].transform(patients[0])
    plain, named = clf.summary(), summary(model, sort_by=None)
    assert named.index.tolist() == [*X, "(intercept)", "(global scale)"]
    np.testing.assert_array_equal(plain, named)
    assert not hasattr(clf, "feature_names_in_")
    both = summary_of_sets(model, {"both": ["age", "dose"]}).loc["both", "mean"]
    assert both == pytest.approx(clf.coef_[0, :2].sum())
    assert np.array_equal(predict_interval(model, X, level=0.5), clf.predict_interval(rows, level=0.5))
    assert np.array_equal(predict_proba_samples(model, X, 8), clf.predict_proba_samples(rows, 8))
    assert np.array_equal(loo(model, X, patients[1]).elpd_i, loo(clf, rows, patients[1]).elpd_i)
    for rule in ("dss", "interval"):
        selector = select(model, X, rule=rule)
        assert set(selector.get_feature_names_out()) == set(X.columns[selector.support_])
    assert not hasattr(select(clf, rows, rule="interval"), "feature_names_in_")  # which rows without names would lack


def test_folds_choose_the_number_of_columns_of_a_pipeline(model, patients):
    X, y = patients
    found, alone = select(model, X, y, cv=2), HorseshoeSelector(model[-1], prefit=True, cv=2)
    alone.fit(model[:-1].transform(X), y)
    np.testing.assert_array_equal(found.sizes_["difference"], alone.sizes_["difference"])
    assert set(found.get_feature_names_out()) == set(X.columns[alone.support_])


def test_searches_pipelines_and_frozen_models_are_looked_into(patients):
    X, y = patients
    clf = HorseshoeProbitClassifier(n_iter=20, burn_in=100, n_chains=2, random_state=0)
    steps = make_pipeline(ColumnTransformer([("all", StandardScaler(), list(X))]), SelectKBest(k=2), clf)
    search = GridSearchCV(steps, {"selectkbest__k": [2]}, cv=2).fit(X, y)
    best = search.best_estimator_
    names = best[:-1].get_feature_names_out().tolist()
    for model in (search, FrozenEstimator(search), FrozenEstimator(best), make_pipeline(FrozenEstimator(best))):
        assert summary(model).index[:-2].tolist() == names
        assert np.array_equal(predict_interval(model, X), predict_interval(best, X))
        assert marginal_effects(model, X).index.tolist() == [name.removeprefix("all__") for name in names]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"features": "agee"}, r"no 'agee' among the \d columns of X.*Did you mean 'age'"),
        ({"features": []}, "features is empty"),
        ({"features": {"age", "sex"}}, r"features: there is no \{.*'age'.*\} among the 3 columns"),
        ({"features": [0, 3]}, r"features: there is no 3 .*numbers below 3"),
        ({"features": "dose", "change": "binary"}, r"change='binary'.*'dose' holds other values, such as"),
        ({"features": "flat", "change": "sd"}, r"change='sd'.*'flat' has the same value"),
        ({"change": "double"}, r"change must be .*got 'double'"),
        ({"change": np.nan}, r"change must be .*got nan"),
        ({"level": 90}, r"level must be .*got 90"),
        ({"max_draws": 0}, r"max_draws must be .*got 0"),
        ({"sample_weight": np.zeros(300)}, "(?i)sample.weight"),
    ],
)
def test_what_cannot_be_is_refused_with_a_cure(model, patients, given, says):
    X = patients[0].rename(columns={"sex": "flat"}).assign(flat=1) if given.get("features") == "flat" else patients[0]
    with pytest.raises(ValueError, match=says):
        marginal_effects(model, X, **given)


def test_other_columns_and_references_are_refused(model, patients):
    X = patients[0]
    for answer in (marginal_effects, contributions, predict_interval):
        with pytest.raises(ValueError, match="feature names"):
            answer(model, X.rename(columns={"dose": "drug"}))
        with pytest.raises(ValueError, match=r"no rows|0 sample"):
            answer(model, X[:0])
    with pytest.raises(ValueError, match="no value of column 'sex'"):
        contributions(model, X[:1], {"age": 1, "dose": 2})
    with pytest.raises(ValueError, match=r"one row.*\(2, 3\)"):
        contributions(model, X[:1], X[:2])
    with pytest.raises(ValueError, match=r"also for one row.*\(3,\)"):
        contributions(model, X.to_numpy()[0])


def test_values_under_a_mask_are_refused(model, patients):
    X, y, weight = patients[0].to_numpy(float), patients[1], np.ma.masked_equal(np.r_[9.0, np.ones(299)], 9)
    hidden = np.ma.masked_equal(np.vstack([[7, 7, 7], X[1:]]), 7)
    for answer in (marginal_effects, contributions, predict_interval, correlated_sets):
        with pytest.raises(ValueError, match=r"X is a masked array.*row 0 of column 0"):
            answer(*[hidden] if answer is correlated_sets else [model, hidden])
    with pytest.raises(ValueError, match="reference is a masked array"):
        contributions(model[-1], X[:1], hidden[0])
    for answer in (marginal_effects, lambda *given, **kwargs: loo(*given, y, **kwargs), select):
        with pytest.raises(ValueError, match=r"sample_weight is a masked array.*row 0"):
            answer(model[-1], X, sample_weight=weight)


PLAIN = LogisticRegression()
OTHERS = {
    r"got LogisticRegression\.$": PLAIN,
    r"got GridSearchCV, which ends with LogisticRegression\.$": GridSearchCV(PLAIN, {}, cv=2),
    r"got Pipeline, which ends with LogisticRegression\.$": make_pipeline(StandardScaler(), PLAIN),
    r"got GridSearchCV\. It has kept no fitted estimator: set refit=True": GridSearchCV(PLAIN, {}, cv=2, refit=False),
    r"got OneVsRestClassifier\. .* its estimators_\[i\]\.$": OneVsRestClassifier(PLAIN),
    r"its calibrated_classifiers_\[i\]\.estimator\.$": CalibratedClassifierCV(PLAIN, cv=2),
}


def test_a_pipeline_without_steps_is_no_model():
    with pytest.raises(TypeError, match=r"got Pipeline\."):
        summary(Pipeline([]))


@pytest.mark.parametrize("says", OTHERS)
def test_other_models_are_refused_with_a_hint(says, patients):
    with pytest.raises(TypeError, match=says):
        summary(OTHERS[says].fit(*patients))


def test_models_that_are_not_fitted_are_refused(patients):
    clf = HorseshoeProbitClassifier(n_iter=20)
    for model in (clf, make_pipeline(StandardScaler(), clf), GridSearchCV(clf, {})):
        with pytest.raises(NotFittedError):
            marginal_effects(model, patients[0])


def test_texts_without_columns_have_those_behind_the_steps(short_fit):
    texts = ["good", "bad", "very good", "very bad"] * 15
    steps = TfidfVectorizer().fit(texts)
    model = make_pipeline(steps, short_fit(steps.transform(texts), [1, 0] * 30))
    for answer in (marginal_effects, contributions):
        with pytest.raises(ValueError, match=r"model\[-1\], model\[:-1\]\.transform\(X\)"):
            answer(model, texts)
        assert len(answer(model[-1], model[:-1].transform(texts)))
