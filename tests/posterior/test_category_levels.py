"""What the levels of a category do, and the differences between them; against loops by hand."""

import numpy as np
import pandas as pd
import pytest
from by_hand import sizes_by_hand
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_selection import SelectKBest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, terms

SHORT = HorseshoeProbitClassifier(n_iter=50, burn_in=50, random_state=0)


def test_levels_that_interact_add_to_each_row_its_own(clinic):
    X, y = clinic
    pairs = PolynomialFeatures(interaction_only=True, include_bias=False)
    numbers = make_column_transformer((OneHotEncoder(sparse_output=False), ["sex"]), ("passthrough", ["age"]))
    model = make_pipeline(numbers, pairs, StandardScaler(), clone(SHORT)).fit(X, y)
    with pytest.raises(
        ValueError, match=r"'sex' adds .* differs from row to row, .* \('age' x 'sex'\): .*marginal_effects"
    ):
        terms.levels(model, "sex", X)


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


@pytest.mark.parametrize("drop", [None, "first"])
@pytest.mark.parametrize("reference", [None, "a", "c"])
def test_a_level_does_what_its_rows_have_together(clinic, clinic_pipeline, drop, reference):
    X, y = clinic
    model = clinic_pipeline(drop).fit(X, y)
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


def test_a_missing_value_is_a_level(clinic, clinic_pipeline):
    X, y = clinic
    X = X.assign(ward=X["ward"].where(X["ward"] != "c"))
    model = clinic_pipeline().fit(X, y)
    *known, missing = terms.levels(model, "ward", X).index
    assert known == ["a", "b", "d"]
    assert pd.isna(missing)
    beside = terms.levels(model, "ward", X, reference=np.nan)
    assert beside.index.tolist() == known
    there = terms.levels(model, "ward", X, reference="a")
    assert abs(there["mean"].iloc[-1] + beside.loc["a", "mean"]) < 1e-12


@pytest.mark.parametrize(
    ("term", "given", "says"),
    [
        ("wrad", {}, "There is no input column 'wrad': X has"),
        ("ward", {"reference": "z"}, "reference='z' is no level of 'ward': these are"),
        ("age", {}, "'age' has 400 different values, too many for levels .* marginal_effects"),
    ],
)
def test_levels_that_cannot_be_are_refused(of_clinic, clinic, term, given, says):
    with pytest.raises(ValueError, match=says):
        terms.levels(of_clinic, term, clinic[0], **given)


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


def test_levels_of_rows_of_one_level_are_refused(of_clinic, clinic):
    X = clinic[0]
    with pytest.raises(ValueError, match="'ward' has one level in these rows, 'a': there is nothing to compare"):
        terms.levels(of_clinic, "ward", X[X["ward"] == "a"])
