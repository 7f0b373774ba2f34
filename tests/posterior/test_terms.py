"""Terms: what is found, how large it is, what its levels do; against loops by hand."""

import warnings
from copy import copy

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from skhorseshoe import HorseshoeProbitClassifier, inspection, terms
from skhorseshoe.diagnostics import ess_bulk
from skhorseshoe.sets import credible_sets

SHORT = HorseshoeProbitClassifier(n_iter=50, burn_in=50, random_state=0)


@pytest.fixture(scope="module")
def clinic(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("abcd"), 400, p=[0.4, 0.3, 0.2, 0.1]), "age": rng.normal(60, 10, 400)})
    X["sex"], X["crp"] = rng.choice(["f", "m"], 400), rng.gamma(2, 1, 400)
    X.loc[rng.random(400) < 0.1, "crp"] = np.nan
    score = X["ward"].map(dict(zip("abcd", [0.8, -0.8, 0.8, -0.8], strict=True))) + 0.05 * (X["age"] - 60)
    return X, np.where(score + rng.standard_normal(400) > 0, "dead", "alive")


def pipeline(drop=None, **params):
    steps = make_column_transformer(
        (OneHotEncoder(drop=drop), ["ward", "sex"]),
        (make_pipeline(SplineTransformer(n_knots=3), StandardScaler()), ["age"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["crp"]),
        sparse_threshold=0,
    )
    return make_pipeline(steps, HorseshoeProbitClassifier(**{**SHORT.get_params(), **params}))


@pytest.fixture(scope="module")
def model(clinic):
    return pipeline().fit(*clinic)


@pytest.fixture(scope="module")
def dummies(clinic):
    """The same category as columns of a table, with a classifier alone."""
    X = pd.get_dummies(clinic[0][["ward", "age"]], dtype=float)
    return X, clone(SHORT).fit(X, clinic[1])


def test_each_input_column_is_a_term_under_its_own_name(model, clinic):
    found = terms.find(model)
    assert {name: len(columns) for name, columns in found.items()} == {"ward": 4, "sex": 2, "age": 5, "crp": 2}
    assert [*found["ward"]] == [f"onehotencoder__ward_{one}" for one in "abcd"]
    assert terms.find(model, clinic[0]) == found


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


def test_levels_that_interact_add_to_each_row_its_own(clinic):
    X, y = clinic
    pairs = PolynomialFeatures(interaction_only=True, include_bias=False)
    numbers = make_column_transformer((OneHotEncoder(sparse_output=False), ["sex"]), ("passthrough", ["age"]))
    model = make_pipeline(numbers, pairs, StandardScaler(), clone(SHORT)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"'sex' adds .* differs from row to row, .* \('age' x 'sex'\): .*marginal_effects"
    ):
        terms.levels(model, "sex", X)


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


def sizes_by_hand(draws, Z, w):
    """The standard deviation over rows of what columns do together, for each draw."""
    scores = np.einsum("cmk,nk->cmn", draws.astype(float), Z)
    centred = scores - np.average(scores, axis=-1, weights=w)[..., None]
    return np.sqrt(np.average(centred**2, axis=-1, weights=w))


@pytest.mark.parametrize("weighted", [False, True])
def test_the_size_of_a_term_is_that_of_a_loop_over_rows(clinic, weighted, seed):
    X, y = clinic
    w = np.random.default_rng(seed).integers(1, 4, len(X)) if weighted else np.ones(len(X))
    model = pipeline().fit(X, y, **({"horseshoeprobitclassifier__sample_weight": w} if weighted else {}))
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


@pytest.fixture(scope="module")
def rare(seed):
    """A column of which 1 % are ones: a coefficient of 1 is there an effect of 0.1 for one standard deviation."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {"age": rng.normal(60, 10, 3000), "rare": np.arange(3000) % 100 == 0, "half": rng.random(3000) < 0.5}
    )
    X["ward"] = rng.choice(list("abc"), 3000, p=[0.6, 0.38, 0.02])
    y = 0.03 * (X["age"] - 60) + 1.2 * X["rare"] + 0.9 * (X["ward"] == "c") + rng.standard_normal(3000) > 0
    return X.astype({"rare": float, "half": float}), y


@pytest.mark.parametrize("drop", [None, "first"])
@pytest.mark.parametrize("scale", [StandardScaler(), "passthrough"])
def test_the_difference_between_levels_can_be_asked_for(rare, drop, scale):
    X, y = rare
    steps = make_column_transformer((OneHotEncoder(drop=drop), ["ward"]), (scale, ["age", "rare", "half"]))
    model = make_pipeline(steps, HorseshoeProbitClassifier(n_iter=150, burn_in=100, random_state=0, standardize=True))
    model.fit(X, y)
    Z, names, draws = model[:-1].transform(X), model[:-1].get_feature_names_out().tolist(), model[-1].coef_draws_
    frame, usual = terms.summary(model, X, effect={"levels": 0.4}), terms.summary(model, X)
    assert frame["per"].to_dict() == {"age": "sd", "rare": "levels", "half": "levels", "ward": "levels"}
    for name, columns in terms.find(model).items():
        at = [names.index(column) for column in columns]
        scores = draws[..., at].astype(float) @ np.unique(Z[:, at], axis=0).T
        sizes, least = (
            (np.ptp(scores, axis=-1), 0.4) if name != "age" else (sizes_by_hand(draws[..., at], Z[:, at], None), 0.1)
        )
        assert frame.loc[name, "mean"] == pytest.approx(sizes.mean(), rel=1e-5)
        assert frame.loc[name, "probability"] == pytest.approx((sizes > least).mean(), abs=0.01)
    assert frame.loc["rare", "probability"] > max(0.8, usual.loc["rare", "probability"])
    kept = inspection.select(model, X, y, rule="fsr", effect={"sd": 0.1, "levels": 0.4}, terms="auto")
    wrong = dict(zip(names, kept.error_, strict=True))
    assert wrong[terms.find(model)["rare"][0]] == pytest.approx(1 - frame.loc["rare", "probability"])
    assert wrong[terms.find(model)["ward"][0]] > 1 - frame.loc["ward", "probability"]  # likely before the data
    beside = terms.levels(model, "rare", X, reference=0.0, effect=0.4).loc[1.0]
    assert beside["mean"] == pytest.approx(frame.loc["rare", "mean"], rel=0.05)
    assert beside["probability"] == pytest.approx(frame.loc["rare", "probability"], abs=1e-6)


def test_a_classifier_alone_compares_the_levels_of_its_columns(rare):
    X, y = pd.get_dummies(rare[0], dtype=float), rare[1]
    clf = clone(SHORT).fit(X, y)
    frame = terms.summary(clf, X, effect={"levels": 0.4, "sd": 0.2})
    for rows in (csr_array(X.to_numpy()), X.to_numpy()):
        other = terms.summary(clone(SHORT).fit(X.to_numpy(), y), rows, effect={"levels": 0.4, "sd": 0.2})
        np.testing.assert_allclose(other["mean"], frame["mean"])
    draws, (_, one) = clf.coef_draws_[..., 1], terms.levels(clf, "rare", X, effect=0.4)["mean"]
    assert one == pytest.approx(0.99 * draws.mean())
    assert frame.loc["rare", "mean"] == pytest.approx(abs(draws).mean())
    with pytest.raises(ValueError, match=r"'ward_a' is a level of a category, .* ask for 'ward'"):
        terms.levels(clf, "ward_a", X)
    with pytest.raises(ValueError, match=r"effect has 'levels', .* give X, the rows of the fit"):
        terms.summary(clf, effect={"levels": 0.3})
    for wrong in ({}, {"level": 0.1}, {"sd": -1}, {"levels": True}, "0.1", np.nan):
        with pytest.raises(ValueError, match="effect must be a number from 0 on"):
            terms.summary(clf, X, effect=wrong)
    with pytest.raises(ValueError, match="effect must be a number from 0 on, the least difference"):
        terms.levels(clf, "rare", X, effect={"levels": 0.3})


@pytest.mark.parametrize("remainder", [StandardScaler(), "passthrough"])
def test_level_columns_have_the_names_of_the_table_behind_steps_too(remainder, dummies, clinic):
    X, clf = dummies
    model = make_pipeline(make_column_transformer(("passthrough", ["age"]), remainder=remainder), clone(SHORT))
    found, levels = terms.find(model.fit(X, clinic[1])), [f"ward_{one}" for one in "abcd"]
    assert found == {"age": ["passthrough__age"], "ward": [f"remainder__{level}" for level in levels]}
    table, alone = terms.levels(model, "ward", X, reference="ward_b"), terms.levels(clf, "ward", reference="ward_b")
    pd.testing.assert_series_equal(table["share"], alone["share"])
    size = X.iloc[:, 1:3].std(ddof=0).to_numpy() if remainder != "passthrough" else np.ones(2)
    beside = model[-1].coef_draws_[..., 1] / size[0] - model[-1].coef_draws_[..., 2] / size[1]
    assert table.loc["ward_a", "mean"] == pytest.approx(beside.mean())
    told = inspection.contributions(model, X[:9]).xs("ward", level="term")["value"]
    assert told.tolist() == clinic[0]["ward"][:9].tolist()


def test_levels_that_a_classifier_knows_need_no_rows(dummies):
    X, clf = dummies
    coef, rows = clf.coef_draws_[..., 1:], X.to_numpy()[:, 1:]
    assert abs(terms.summary(clf).loc["ward", "mean"] - sizes_by_hand(coef, rows, None).mean()) < 1e-6
    means = (coef - coef @ rows.mean(axis=0)[:, None]).mean(axis=(0, 1))
    np.testing.assert_allclose(terms.levels(clf, "ward")["mean"], means, atol=1e-6)
    assert (
        abs(terms.summary(clf, X).loc["age", "mean"] - abs(clf.coef_draws_[..., 0]).mean() * X["age"].std(ddof=0))
        < 1e-6
    )


@pytest.mark.parametrize("steps", [[], [StandardScaler()]])
def test_shares_of_level_columns_are_those_of_the_rows_that_are_given(steps, dummies, clinic, seed):
    X, y = dummies[0], clinic[1]
    model = make_pipeline(*steps, clone(SHORT)).fit(X, y) if steps else dummies[1]
    w = np.where(X["ward_a"] == 1, 9.0, np.random.default_rng(seed).random(len(X))) * (X["ward_d"] == 0)
    Z, coef = (model[:-1].transform(X), model[-1].coef_draws_) if steps else (X.to_numpy(), dummies[1].coef_draws_)
    frame = terms.levels(model, "ward", X, sample_weight=w)
    scores = Z[:, 1:] @ coef[..., 1:].mean(axis=(0, 1))
    for level in "abc":
        of_level = X[f"ward_{level}"] == 1
        assert frame.loc[f"ward_{level}", "share"] == pytest.approx(w[of_level].sum() / w.sum())
        beside = scores[of_level].mean() - np.average(scores, weights=w)
        assert frame.loc[f"ward_{level}", "mean"] == pytest.approx(beside, abs=1e-5)
    assert len(frame) == 3  # a level whose rows have no weight is none
    for weights, says in ((w[:5], "sample_weight"), (-w, "(?i)negative"), (0 * w, "(?i)sample.weight")):
        with pytest.raises(ValueError, match=says):
            terms.levels(model, "ward", X, sample_weight=weights)
    with pytest.raises(ValueError, match=r"feature|as their names tell"):
        terms.levels(model, "ward", X.drop(columns="age"))
    with pytest.raises(ValueError, match=r"No row of X that counts has one of the levels .*: give rows as the fit"):
        terms.levels(model, "ward", 0 * X)
    with pytest.raises(ValueError, match="X is None: give their X, or leave sample_weight out"):
        terms.levels(model, "ward", sample_weight=w)


def test_sparse_rows_have_the_sizes_of_dense_ones(dummies):
    X, clf = dummies
    clf = clone(SHORT).fit(X.to_numpy(), clf.predict(X))
    dense, sparse = (terms.summary(clf, Z, terms={"both": [0, 1]}) for Z in (X.to_numpy(), csr_array(X.to_numpy())))
    assert np.allclose(dense["mean"], sparse["mean"], atol=1e-12)


@pytest.mark.parametrize("drop", [None, "first"])
@pytest.mark.parametrize("reference", [None, "a", "c"])
def test_a_level_does_what_its_rows_have_together(clinic, drop, reference):
    X, y = clinic
    model = pipeline(drop).fit(X, y)
    names, Z, draws = model[:-1].get_feature_names_out(), model[:-1].transform(X), model[-1].coef_draws_
    at = [j for j, name in enumerate(names) if "ward" in name]
    scores = np.einsum("cmk,nk->cmn", draws[..., at].astype(float), Z[:, at])
    means = {level: scores[..., X["ward"] == level].mean(axis=-1) for level in "abcd"}
    beside = scores.mean(axis=-1) if reference is None else means[reference]
    frame = terms.levels(model, "ward", X, reference=reference)
    assert frame.index.tolist() == [level for level in "abcd" if level != reference]
    for level, row in frame.iterrows():
        by_hand = means[level] - beside
        assert abs(row["mean"] - by_hand.mean()) < 1e-10
        assert np.allclose(row[["5%", "95%"]].astype(float), np.quantile(by_hand, [0.05, 0.95]), atol=1e-10)
        assert abs(row["prob_positive"] - (by_hand > 0).mean()) < 1e-12
        assert abs(row["share"] - (X["ward"] == level).mean()) < 1e-12


def test_a_missing_value_is_a_level(clinic):
    X, y = clinic
    X = X.assign(ward=X["ward"].where(X["ward"] != "c"))
    model = pipeline().fit(X, y)
    *known, missing = terms.levels(model, "ward", X).index
    assert known == ["a", "b", "d"]
    assert pd.isna(missing)
    beside = terms.levels(model, "ward", X, reference=np.nan)
    assert beside.index.tolist() == known
    there = terms.levels(model, "ward", X, reference="a")
    assert abs(there["mean"].iloc[-1] + beside.loc["a", "mean"]) < 1e-12


def test_columns_of_the_user_are_a_term_beside_those_that_are_found(model, clinic, dummies):
    X, _ = clinic
    frame = terms.summary(model, X, terms={"person": ["age", "sex"]})
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


def test_sets_of_a_database_may_overlap_and_have_names_that_were_not_measured(model, clinic):
    """Each set has the effect of its columns, whatever the others are."""
    X, _ = clinic
    sets = {"a": ["age", "TP53"], "b": {"ward", "age", "BRCA1", np.nan}, "c": ["sex"], "none": ["TP53"]}
    found = terms.summary(model, X, terms=sets, missing="ignore")
    assert sorted(found.index) == ["a", "b", "c", "crp"]
    for name, columns in {"a": ["age"], "b": ["ward", "age"], "c": ["sex"]}.items():
        alone = terms.summary(model, X, terms={name: columns})
        pd.testing.assert_series_equal(found.loc[name], alone.loc[name])
    header = " ".join(found.attrs["header"].split())
    assert "Left out: 4 names that are no columns, 1 of 4 terms as a whole. 5 columns are in several terms" in header
    kept = terms.find(model, X, terms={"a": ["age", "TP53"]}, missing="ignore")
    assert {name: len(columns) for name, columns in kept.items()} == {"a": 5, "ward": 4, "sex": 2, "crp": 2}
    assert inspection.select(model, X, terms=kept).terms_.keys() == kept.keys()
    with pytest.raises(ValueError, match="None of the terms has a column of this model, whose columns are 'onehot"):
        terms.summary(model, X, terms={"none": ["TP53"]}, missing="ignore")
    with pytest.raises(ValueError, match="missing='skip'"):
        terms.summary(model, X, terms=sets, missing="skip")


def test_what_rows_alone_can_tell_asks_for_them(model, clinic):
    X, _ = clinic
    with pytest.raises(ValueError, match="The term 'age' has several columns: give X, the rows of the fit"):
        terms.summary(model)
    with pytest.raises(ValueError, match="X is needed, the rows of the fit: they tell the levels"):
        terms.levels(model, "ward")
    with pytest.raises(ValueError, match=r"effect must be a number from 0 on, or a dict .*; got -1"):
        terms.summary(model, X, effect=-1)


@pytest.mark.parametrize(
    ("term", "given", "says"),
    [
        ("wrad", {}, "There is no input column 'wrad': X has"),
        ("ward", {"reference": "z"}, "reference='z' is no level of 'ward': these are"),
        ("age", {}, "'age' has 400 different values, too many for levels .* marginal_effects"),
    ],
)
def test_levels_that_cannot_be_are_refused(model, clinic, term, given, says):
    with pytest.raises(ValueError, match=says):
        terms.levels(model, term, clinic[0], **given)


def test_a_category_that_a_selector_drops_has_no_levels(clinic):
    X, y = clinic
    steps = make_column_transformer((OneHotEncoder(), ["ward"]), ("passthrough", ["age"]))
    last = SelectKBest(lambda rows, _: np.arange(rows.shape[1]), k=1)
    model = make_pipeline(steps, last, clone(SHORT)).fit(X, y)
    assert [*terms.find(model)] == ["age"]
    with pytest.raises(ValueError, match=r"No column that the classifier has is made of 'ward': the steps .* leave it"):
        terms.levels(model, "ward", X)


def test_a_text_with_too_many_levels_is_told_what_helps_there():
    rng = np.random.default_rng(0)
    X, y = pd.DataFrame({"code": np.tile([f"c{k:03d}" for k in range(230)], 2)}), rng.random(460) < 0.5
    coded = make_pipeline(make_column_transformer((OneHotEncoder(), ["code"])), SHORT).fit(X, y)
    with pytest.raises(ValueError, match=r"'code' has 230 .* gather rare ones .*summary_of_sets") as told:
        terms.levels(coded, "code", X)
    assert "number" not in str(told.value)
    pair = {"c001 - c000": {"onehotencoder__code_c001": 1, "onehotencoder__code_c000": -1}}
    assert len(inspection.summary_of_sets(coded, pair)) == 1


def test_levels_of_rows_of_one_level_are_refused(model, clinic):
    X = clinic[0]
    with pytest.raises(ValueError, match="'ward' has one level in these rows, 'a': there is nothing to compare"):
        terms.levels(model, "ward", X[X["ward"] == "a"])


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


def test_rows_without_names_behind_the_steps_are_no_fault(model, clinic):
    X, y = clinic
    with warnings.catch_warnings(action="error"):  # not while the model is fitted
        terms.summary(model, X)
        terms.levels(model, "ward", X)
        inspection.contributions(model, X[:3])
        inspection.select(model, X, y, rule="fsr", terms="auto")
        credible_sets(model, X)
