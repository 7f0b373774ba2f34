"""Terms: what is found, and how large it is; against loops by hand."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from by_hand import sizes_by_hand
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

from skhorseshoe import HorseshoeProbitClassifier, inspection, terms
from skhorseshoe.diagnostics import ess_bulk
from skhorseshoe.sets import credible_sets

SHORT = HorseshoeProbitClassifier(n_iter=50, burn_in=50, random_state=0)


def test_each_input_column_is_a_term_under_its_own_name(of_clinic, clinic):
    found = terms.find(of_clinic)
    assert {name: len(columns) for name, columns in found.items()} == {"ward": 4, "sex": 2, "age": 5, "crp": 2}
    assert [*found["ward"]] == [f"onehotencoder__ward_{one}" for one in "abcd"]
    assert terms.find(of_clinic, clinic[0]) == found


def test_what_is_made_of_several_columns_and_of_unknown_ones_stands_by_itself(clinic):
    X, y = clinic[0][["age", "crp"]].fillna(1), clinic[1]
    steps = ColumnTransformer([("both", PolynomialFeatures(2, include_bias=False), ["age", "crp"])])
    found = terms.find(make_pipeline(steps, StandardScaler(), clone(SHORT)).fit(X, y))
    assert {name: len(columns) for name, columns in found.items()} == {"age": 2, "crp": 2, "age x crp": 1}
    assert [*terms.find(make_pipeline(PCA(2), clone(SHORT)).fit(X, y))] == ["pca0", "pca1"]


def test_a_table_without_steps_has_categories_and_columns(dummies):
    X, clf = dummies
    assert terms.find(clf) == {"age": ["age"], "ward": [f"ward_{one}" for one in "abcd"]}
    assert terms.find(clone(SHORT).fit(X.to_numpy(), clf.predict(X)))["x1 and 3 more"] == ["x1", "x2", "x3", "x4"]
    pairs = pd.MultiIndex.from_tuples([("lab", "age"), *(("ward", one) for one in "abcd")])
    of_pairs = clone(SHORT).fit(X.set_axis(pairs, axis=1), clf.predict(X))
    assert [*terms.find(of_pairs)] == [("lab", "age"), "ward"]
    assert inspection.contributions(of_pairs, X.set_axis(pairs, axis=1)[:1]).loc[(0, "ward"), "value"] in "abcd"


@pytest.fixture(scope="module")
def equal_names(seed):
    """A ward whose level a_1 has the name of a level of another category, ward_a; the ward alone matters."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(["a_1", "b"], 300), "ward_a": rng.choice(["1", "2"], 300)})
    y = 1.5 * (X["ward"] == "a_1") + rng.standard_normal(300) > 0.7
    behind = ColumnTransformer([("p", "passthrough", [1, 2]), ("q", MaxAbsScaler(), [0, 3])])
    return X, y, make_pipeline(OneHotEncoder(), behind, clone(SHORT)).fit(X, y)


def test_levels_of_equal_names_stay_with_their_categories(equal_names):
    X, _, model = equal_names
    sizes = terms.summary(model, X)["mean"]
    assert sizes["ward"] > 0.5 > 2 * sizes["ward_a"]
    effects = inspection.marginal_effects(model, X, reference={"ward": "b", "ward_a": "2"})["mean"]
    for name, high, low in (("ward", "a_1", "b"), ("ward_a", "1", "2")):
        ends = (model.predict_proba(X.assign(**{name: level}))[:, 1].mean() for level in (high, low))
        assert effects[f"{name}: {high} - {low}"] == pytest.approx(np.subtract(*ends), abs=1e-9)


def test_what_is_found_can_be_asked_for_also_where_names_repeat(equal_names):
    X, y, _ = equal_names
    model = make_pipeline(OneHotEncoder(), clone(SHORT)).fit(X, y)
    found = terms.find(model)
    assert found == {"ward": [0, "ward_b"], "ward_a": [2, "ward_a_2"]}
    pd.testing.assert_frame_equal(terms.summary(model, X, terms=found), terms.summary(model, X))


def test_a_level_with_the_name_of_an_input_is_not_taken_for_it(clinic):
    X, y = clinic[0][["ward"]].assign(ward_a=clinic[0]["sex"]), clinic[1]
    model = make_pipeline(OneHotEncoder(), clone(SHORT)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"'ward_a' is an input column, and .* is made of 'ward'\. Give columns .* by number: 0"
    ):
        terms.summary(model, X, terms={"mine": ["ward_a"]})
    assert terms.summary(model, X, terms={"mine": [4, 5]}).loc["mine", "n_columns"] == 2


def test_an_interaction_is_not_counted_to_one_of_its_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.standard_normal(400), "sex": rng.integers(0, 2, 400).astype(float)})
    y = 2 * X["age"] * X["sex"] + rng.standard_normal(400) > 0
    product = FunctionTransformer(
        lambda rows: rows.assign(age_sex=rows["age"] * rows["sex"]),
        feature_names_out=lambda _, names: [*names, "age_sex"],
    )
    unnamed = FunctionTransformer(
        lambda rows: product.func(rows).to_numpy(), feature_names_out=lambda *_: ["first", "second", "third"]
    )
    model = make_pipeline(product, clone(SHORT)).fit(X, y)
    header = " ".join(terms.levels(model, "sex", X).attrs["header"].split())
    assert header.endswith("; held: 'age_sex', of which the steps do not tell the inputs")
    assert terms.find(model) == {"age": ["age"], "sex": ["sex"], "age_sex": ["age_sex"]}
    assert terms.summary(model, X).index[0] == "age_sex"
    with pytest.raises(
        ValueError, match=r"make no column of 'sex' alone, as far as they tell\. A step .* ColumnTransf"
    ):
        terms.levels(make_pipeline(unnamed, clone(SHORT)).fit(X, y), "sex", X)


def test_a_name_before_and_behind_the_steps_means_one_thing_or_is_refused(clinic):
    """A column keeps the name of the input, and others are made of it too."""
    X, y = clinic[0][["age"]].assign(x=clinic[0]["age"] ** 2 % 7), clinic[1]
    model = make_pipeline(PolynomialFeatures(2, include_bias=False), StandardScaler(), clone(SHORT)).fit(X, y)
    found = terms.find(model)
    assert found["age"] == ["age", "age^2"]
    assert terms.find(model, terms=found) == found
    with pytest.raises(
        ValueError, match=r"'age' is an input .*: 0 is the latter, and \[0, 2\] are all that are made of"
    ):
        terms.find(model, terms={"linear": ["age"]})
    assert terms.find(model, terms={"linear": [0]})["linear"] == ["age"]


@pytest.mark.parametrize("weighted", [False, True])
def test_the_size_of_a_term_is_that_of_a_loop_over_rows(clinic, clinic_pipeline, weighted, seed):
    X, y = clinic
    w = np.random.default_rng(seed).integers(1, 4, len(X)) if weighted else np.ones(len(X))
    model = clinic_pipeline().fit(X, y, **({"horseshoeprobitclassifier__sample_weight": w} if weighted else {}))
    names, Z, draws = model[:-1].get_feature_names_out().tolist(), model[:-1].transform(X), model[-1].coef_draws_
    frame = terms.summary(model, X, sample_weight=w if weighted else None, effect=0.3)
    assert sorted(frame.index) == ["age", "crp", "sex", "ward"]
    assert (np.diff(frame["mean"]) <= 0).all()
    for name, columns in terms.find(model).items():
        at = [names.index(column) for column in columns]
        sizes = sizes_by_hand(draws[..., at], Z[:, at], w)
        row = frame.loc[name]
        assert abs(row["mean"] - sizes.mean()) < 1e-10
        assert np.allclose(row[["5%", "95%"]].astype(float), np.quantile(sizes, [0.05, 0.95]), atol=1e-10)
        assert abs(row["probability"] - min((sizes > 0.3).mean(), 1 - 1 / min(ess_bulk(sizes), sizes.size))) < 1e-9
        assert row["n_columns"] == len(at)


def test_no_size_is_surer_than_its_own_draws_can_tell(dummies):
    X, clf = dummies
    sure = copy(clf)
    steps = np.random.default_rng(0).standard_normal(clf.coef_draws_.shape).cumsum(axis=1)
    sure.coef_draws_, sure.ess_ = 99.0 + steps, np.full(5, 1e9)  # as of coefficients before groups are averaged over
    frame = terms.summary(sure, X, terms={name: [name] for name in X})
    np.testing.assert_allclose(frame["probability"]["age"], 1 - 1 / frame["ess"]["age"])
    assert (frame["probability"] <= 1 - 1 / frame["ess"] + 1e-12).all()


def test_sparse_rows_have_the_sizes_of_dense_ones(dummies):
    X, clf = dummies
    clf = clone(SHORT).fit(X.to_numpy(), clf.predict(X))
    dense, sparse = (terms.summary(clf, Z, terms={"both": [0, 1]}) for Z in (X.to_numpy(), csr_array(X.to_numpy())))
    assert np.allclose(dense["mean"], sparse["mean"], atol=1e-12)


def test_columns_of_the_user_are_a_term_beside_those_that_are_found(of_clinic, clinic, dummies):
    X, _ = clinic
    frame = terms.summary(of_clinic, X, terms={"person": ["age", "sex"]})
    assert sorted(frame.index) == ["crp", "person", "ward"]
    assert frame.loc["person", "n_columns"] == 7
    table, clf = dummies
    frame = terms.summary(clf, table, terms={"young": ["ward_a", "ward_b"]})
    assert sorted(frame.index) == ["age", "ward_c", "ward_d", "young"]


@pytest.mark.parametrize(
    ("asked", "error", "says"),
    [
        (
            {"one": ["wrad"]},
            ValueError,
            "The term 'one'.*'wrad'.*missing='ignore' leaves out names that are no columns",
        ),
        ({"one": [["age"]]}, ValueError, r"The term 'one'.*\['age'\]"),
        ({"one": [99]}, ValueError, "The term 'one': there is no 99"),
        ({"one": []}, ValueError, "The term 'one' must be a list of columns, one at least"),
        ({"one": "age"}, ValueError, "The term 'one' must be a list of columns, one at least; got 'age'"),
        ({"same": ["same"]}, ValueError, "The term 'same' has the same value in all rows of the fit"),
        (["age"], TypeError, "terms must be a dict of names and lists of columns"),
        ({}, TypeError, "terms must be a dict"),
    ],
)
def test_terms_that_cannot_be_are_refused(clinic, asked, error, says):
    X, y = clinic[0].assign(same=1.0), clinic[1]
    steps = make_column_transformer(
        (OneHotEncoder(), ["ward"]),
        ("passthrough", ["age", "same"]),
        sparse_threshold=0,
        verbose_feature_names_out=False,
    )
    model = make_pipeline(steps, clone(SHORT)).fit(X, y)
    with pytest.raises(error, match=says):
        terms.summary(model, X, terms=asked)
    overlap = {"one": ["ward", "age"], "two": ["age"]}  # each column is kept or dropped once
    for of_columns in (inspection.select, inspection.contributions):
        with pytest.raises(
            ValueError, match=r"must not overlap here: .*age.* is in 'one' and in 'two'.*terms\.summary"
        ):
            of_columns(model, X, terms=overlap)
        with pytest.raises(ValueError, match=r"terms\.find\(model, terms=\.\.\.\) with missing='ignore'"):
            of_columns(model, X, terms={"one": ["wrad"]})


def test_sets_of_a_database_may_overlap_and_have_names_that_were_not_measured(of_clinic, clinic):
    """Each set has the effect of its columns, whatever the others are."""
    X, _ = clinic
    sets = {"a": ["age", "TP53"], "b": {"ward", "age", "BRCA1", np.nan}, "c": ["sex"], "none": ["TP53"]}
    found = terms.summary(of_clinic, X, terms=sets, missing="ignore")
    assert sorted(found.index) == ["a", "b", "c", "crp"]
    for name, columns in {"a": ["age"], "b": ["ward", "age"], "c": ["sex"]}.items():
        alone = terms.summary(of_clinic, X, terms={name: columns})
        pd.testing.assert_series_equal(found.loc[name], alone.loc[name])
    header = " ".join(found.attrs["header"].split())
    assert "Left out: 4 names that are no columns, 1 of 4 terms as a whole. 5 columns are in several terms" in header
    kept = terms.find(of_clinic, X, terms={"a": ["age", "TP53"]}, missing="ignore")
    assert {name: len(columns) for name, columns in kept.items()} == {"a": 5, "ward": 4, "sex": 2, "crp": 2}
    assert inspection.select(of_clinic, X, terms=kept).terms_.keys() == kept.keys()
    with pytest.raises(ValueError, match="None of the terms has a column of this model, whose columns are 'onehot"):
        terms.summary(of_clinic, X, terms={"none": ["TP53"]}, missing="ignore")
    with pytest.raises(ValueError, match="missing='skip'"):
        terms.summary(of_clinic, X, terms=sets, missing="skip")


def test_what_rows_alone_can_tell_asks_for_them(of_clinic, clinic):
    X, _ = clinic
    with pytest.raises(ValueError, match="The term 'age' has several columns: give X, the rows of the fit"):
        terms.summary(of_clinic)
    with pytest.raises(ValueError, match="X is needed, the rows of the fit: they tell the levels"):
        terms.levels(of_clinic, "ward")
    with pytest.raises(ValueError, match=r"effect must be a number from 0 on, or a dict .*; got -1"):
        terms.summary(of_clinic, X, effect=-1)


def test_a_model_of_an_array_has_terms_by_number(dummies):
    X, clf = dummies
    clf = clone(SHORT).fit(X.to_numpy(), clf.predict(X))
    assert terms.summary(clf, X.to_numpy(), terms={"two": [0, 1]}).loc["two", "n_columns"] == 2
    with pytest.raises(ValueError, match="'ward'"):
        terms.summary(clf, X.to_numpy(), terms={"two": ["ward"]})
    with pytest.raises(ValueError, match="There is no category 'ward' with a column for every level; there are"):
        terms.levels(clf, "ward")


@pytest.mark.parametrize("spoil", [lambda X: X[:0], lambda X: X.assign(age=np.nan), lambda X: X.drop(columns="age")])
def test_rows_are_checked_even_where_no_term_needs_them(dummies, spoil):
    X, clf = dummies
    with pytest.raises(ValueError, match=r"0 sample|NaN|feature names"):
        terms.summary(clf, spoil(X))
    with pytest.raises(ValueError, match="sample_weight"):
        terms.summary(clf, X, sample_weight=[1.0, 2.0])


def test_the_header_counts_levels_beside_one_another(dummies):
    header = dummies[1].summary().attrs["header"]
    assert "Categories" in header
    assert "ward" in header


def test_rows_without_names_behind_the_steps_are_no_fault(of_clinic, clinic):
    X, y = clinic
    with warnings.catch_warnings(action="error"):  # not while the model is fitted
        terms.summary(of_clinic, X)
        terms.levels(of_clinic, "ward", X)
        inspection.contributions(of_clinic, X[:3])
        inspection.select(of_clinic, X, y, rule="fsr", terms="auto")
        credible_sets(of_clinic, X)
