"""Why a row has its probability: what its terms add to the score, in the user's own values; and the columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe import terms as public_terms
from skhorseshoe._posterior.table import value_text
from skhorseshoe.inspection import contributions, predict_interval

LABS = ["crp", "sodium", "urea"]


@pytest.fixture(scope="module")
def clinic(seed):
    """Wards, ages and laboratory values, some of which are missing; and the labels."""
    rng, n = np.random.default_rng(seed), 300
    X = pd.DataFrame({"ward": rng.choice(list("abcd"), n), "age": rng.normal(60, 12, n).round()})
    X["crp"], X["sodium"], X["urea"] = rng.gamma(2, 10, n), rng.normal(140, 3, n), rng.gamma(3, 2, n)
    X[LABS] = X[LABS].mask(rng.random((n, 3)) < 0.15)
    score = (X["ward"] == "b") + 0.05 * (X["age"] - 60) + 0.02 * X["crp"].fillna(20) - 0.6
    return X.set_axis([f"patient {i}" for i in range(n)]), score + rng.standard_normal(n) > 0


@pytest.fixture(scope="module")
def clinical(clinic, short_fit):
    """A Pipeline of several columns for each input column."""
    X, y = clinic
    filled = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    steps = make_column_transformer(
        (OneHotEncoder(), ["ward"]), (SplineTransformer(n_knots=4), ["age"]), (filled, LABS)
    )
    return make_pipeline(steps, short_fit(np.asarray(steps.fit_transform(X)), y, n_iter=150, burn_in=100))


def described(draws, level=0.9):
    ends = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return [draws.mean(), draws.std(ddof=1), *ends]


@pytest.mark.parametrize("reference", [None, "patient 7"])
@pytest.mark.parametrize("top", [None, 2])
def test_terms_are_those_of_a_loop_over_draws(clinical, clinic, reference, top):
    X, level, steps, clf = clinic[0], 0.8, clinical[0], clinical[-1]
    rows = X.iloc[[5, 9, 30]]
    origin = clf._column_means if reference is None else steps.transform(X.loc[[reference]])[0]
    frame = contributions(clinical, rows, None if reference is None else X.loc[reference], level=level, top=top)
    coef, found = clf.coef_draws_.reshape(-1, clf.n_features_in_), public_terms.find(clinical)
    names = list(steps.get_feature_names_out())
    for label, row in zip(rows.index, steps.transform(rows), strict=True):
        parts, draws = frame.loc[label], {}
        for name, members in found.items():
            draws[name] = np.array([sum((row[j] - origin[j]) * b[j] for j in map(names.index, members)) for b in coef])
        order = sorted(draws, key=lambda name: -abs(draws[name].mean()))
        shown = order[:top]
        lines = [draws[name] for name in shown]
        if top:
            lines.append(sum(draws[name] for name in order[top:]))
        total = sum(draws.values())
        eta = coef @ row + clf.intercept_draws_.ravel()
        np.testing.assert_allclose(
            parts[["mean", "sd", "10%", "90%"]],
            [described(one, level) for one in (*lines, total, norm.cdf(eta))],
            atol=1e-12,
        )
        others = [f"({len(order) - top} others)"] if top else []
        assert parts.index.tolist() == [*shown, *others, "(total)", "(probability)"]
        assert [v for v in parts["value"].iloc[: len(shown)] if v == v] == [
            rows.loc[label, name] for name in shown if pd.notna(rows.loc[label, name])
        ]
        assert set(parts["value"].iloc[len(shown) :]) == {""}
        if reference is not None:
            assert str(parts["reference"].iloc[0]) == str(X.loc[reference, shown[0]])


def test_the_reference_has_its_probability_in_the_header(clinical, clinic):
    X = clinic[0]
    frame = contributions(clinical, X.iloc[:1], X.iloc[3])
    about = frame.attrs["reference"]
    ends = predict_interval(clinical, X.iloc[[3]])[0]
    np.testing.assert_allclose(about["probability"], [clinical.predict_proba(X.iloc[[3]])[0, 1], *ends], atol=1e-12)
    assert f"the reference, which has a probability of {about['probability'][0]:.3g} (90 % interval" in " ".join(
        frame.attrs["header"].split()
    )
    assert contributions(clinical, X.iloc[:1]).attrs["reference"]["name"] == "average row"


def test_a_row_that_is_the_reference_adds_exactly_nothing(clinical, clinic):
    X = clinic[0]
    frame = contributions(clinical, X.iloc[[3]], X.iloc[3], top=2)
    assert (frame[["mean", "sd", "5%", "95%"]].iloc[:-1] == 0).all(axis=None)
    assert "e-" not in repr(frame)


def test_rounding_is_exactly_nothing(short_fit, seed):
    """A mean over rows misses the value that all have, and a scaler leaves 1e-17 of a mean of zero."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"same": np.full(300, 0.1), "age": rng.normal(60, 12, 300).round(), "dose": rng.random(300)})
    y = X["dose"] + 0.1 * rng.standard_normal(300) > 0.5
    whole, scaler = make_pipeline(FunctionTransformer(), short_fit(X, y)), StandardScaler().fit(X)
    scaled = make_pipeline(scaler, short_fit(scaler.transform(X), y))
    average = X.mean().to_frame().T
    for model in (whole, scaled):
        parts = contributions(model, average, top=None).loc[0, "mean"]
        assert (parts.iloc[:-1] == 0).all()
        assert contributions(model, X[:1]).loc[(0, "same"), "mean"] == 0


def test_values_are_those_of_the_user(clinical, clinic):
    X = clinic[0]
    row = X[X["crp"].isna()].iloc[[0]].assign(urea=123456.0)
    values = contributions(clinical, row).loc[row.index[0], "value"]
    assert values["ward"] == row["ward"].item()
    assert values["age"] == row["age"].item()
    assert np.isnan(values["crp"])
    text = repr(contributions(clinical, row))
    assert "missing" in text
    assert "123456" in text
    first = contributions(clinical, X[:4])
    for table in (pl.from_pandas(X[:4]), X[:4][X.columns[::-1]]):  # by their names, in any order
        told = contributions(clinical, table)
        for name in ("mean", "5%"):
            np.testing.assert_array_equal(told[name], first[name])
        assert list(map(value_text, told["value"])) == list(map(value_text, first["value"]))


def test_the_values_of_a_reference_are_those_of_its_columns_whatever_their_order(clinical, clinic):
    X = clinic[0]
    first = contributions(clinical, X[:2], X[5:6])
    turned = X[5:6].assign(more=1.0)[["more", *X.columns[::-1]]]
    for rows, row in ((X[:2], turned), (X[:2], pl.from_pandas(turned)), (pl.from_pandas(X[:2]), turned)):
        told = contributions(clinical, rows, row)
        assert list(map(value_text, told["reference"])) == list(map(value_text, first["reference"]))
        np.testing.assert_array_equal(told["mean"], first["mean"])
    with pytest.raises(ValueError, match="reference has no value of column 'ward'"):
        contributions(clinical, X[:2], turned.drop(columns="ward"))


def test_a_term_of_several_inputs_has_their_values_side_by_side(patients, short_fit):
    X, y = patients
    steps = make_pipeline(StandardScaler(), PolynomialFeatures(2, interaction_only=True, include_bias=False))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(X), y))
    values = contributions(whole, X[:1], top=None).loc[0, "value"]
    assert values["age x sex"] == f"{X['age'][0]:.4g}, {X['sex'][0]}"
    mine = {"patient": ["age", "sex"], "drug": ["dose"]}
    values = contributions(whole, X[:1], terms=mine, top=None).loc[0, "value"]
    assert values["patient"] == f"{X['age'][0]:.4g}, {X['sex'][0]}"
    wards = X.assign(sex=X["sex"].map({0: "f", 1: "m"}), ward=np.where(X["age"] > X["age"].median(), "a", "b"))
    encode = make_column_transformer((OneHotEncoder(), ["sex", "ward"]), sparse_threshold=0)
    steps = make_pipeline(encode, PolynomialFeatures(2, interaction_only=True, include_bias=False))
    whole = make_pipeline(steps, short_fit(steps.fit_transform(wards), y))
    values = contributions(whole, wards[:1], top=None).loc[0, "value"]
    assert values["sex x ward"] == f"{wards['sex'][0]}, {wards['ward'][0]}"
    rotated = make_pipeline(StandardScaler(), PCA(2, whiten=True))
    whole = make_pipeline(rotated, short_fit(rotated.fit_transform(X), y))
    parts = contributions(whole, X[:1], top=None).loc[0]
    np.testing.assert_allclose(parts.loc[["pca0", "pca1"], "value"].astype(float), rotated.transform(X[:1])[0])


@pytest.mark.parametrize(("form", "between"), [*((pd.DataFrame, sep) for sep in ("_", "__", " - ")), (csr_array, "_")])
def test_level_columns_are_one_term_and_its_value_the_level(form, between, clinic, short_fit):
    X, y = clinic
    dummies = pd.get_dummies(X[["ward", "age"]], prefix_sep=between, dtype=float)
    rows = form(dummies)
    model = short_fit(rows, y)
    frame = contributions(model, rows[:5])
    own = {"age": "age", "ward": "ward"} if form is pd.DataFrame else {"age": "x0", "ward": "x1 and 3 more"}
    told = frame.xs(own["ward"], level="term")["value"].tolist()
    places = ["x" + str(1 + "abcd".index(ward)) for ward in X["ward"].iloc[:5]]
    assert told == (X["ward"].iloc[:5].tolist() if form is pd.DataFrame else places)
    no_row = np.array([60, 0, 0, 0, 0]), np.array([60, 0, 1, 1, 0]), dummies.to_numpy().mean(axis=0)
    for row, name in zip(no_row, ("none", "mixed", "mixed"), strict=True):  # what no level is has no level's name
        assert contributions(model, rows[:1], row).xs(own["ward"], level="term")["reference"].tolist() == [name]
    coef, moved = model.coef_draws_.reshape(-1, 5), (dummies - dummies.mean()).to_numpy()[:5]
    for name, columns in (("age", [0]), ("ward", [1, 2, 3, 4])):
        ours = frame.xs(own[name], level="term")[["mean", "sd", "5%", "95%"]]
        expected = [described(coef[:, columns] @ one[columns]) for one in moved]
        np.testing.assert_allclose(ours, expected, atol=1e-10)


def test_one_other_has_a_line_of_its_own(model, patients):
    X = patients[0]
    assert contributions(model, X[:1], top=2).loc[0].index[:3].isin(X.columns).all()
    assert contributions(model, X[:1], top=1).loc[0].index[1] == "(2 others)"


def test_bad_terms_and_tops_are_refused(model, patients, short_fit):
    X, y = patients
    for top in (0, 2.5, True, "all"):
        with pytest.raises(ValueError, match=rf"top must be .* got {top!r}"):
            contributions(model, X[:1], top=top)
    for terms in ("columns", ["age"]):
        with pytest.raises(TypeError, match=r"terms must be a dict .*, 'auto' or None; got .*(columns|age)"):
            contributions(model, X[:1], terms=terms)
    with pytest.raises(ValueError, match="must not overlap"):
        contributions(model, X[:1], terms={"a": ["age", "sex"], "b": ["sex"]})
    nameless = make_pipeline(FunctionTransformer(np.abs), short_fit(np.abs(X), y))
    with pytest.raises(ValueError, match=r"cannot be told apart.*feature_names_out=.*or a function.*terms=None"):
        contributions(nameless, X[:1])
    assert len(contributions(nameless, X[:1], terms=None)) == 4


def test_columns_sum_to_the_difference_of_scores(model, patients):
    X, rows = patients[0], patients[0].iloc[[5, 9]]
    coef = model[-1].coef_draws_.reshape(-1, 3)
    row = X.median()
    for reference, origin in [(None, X.mean()), (row, row), (row.to_dict(), row), (X.iloc[[7]], X.iloc[7])]:
        moved = model[0].transform(rows) - model[0].transform(pd.DataFrame([origin]))
        frame = contributions(model, rows, reference, terms=None)
        assert frame.index.names == ["row", "feature"]
        for moves, label in zip(moved, rows.index, strict=True):
            parts = frame.loc[label]
            assert parts.index.tolist() == [*X, "(total)"]
            assert parts["mean"].iloc[:-1].sum() == pytest.approx(parts["mean"].iloc[-1], abs=1e-12)
            draws = np.column_stack([coef * moves, coef @ moves])
            np.testing.assert_allclose(parts["mean"], draws.mean(axis=0), atol=1e-9)
            np.testing.assert_allclose(parts["sd"], draws.std(axis=0, ddof=1), atol=1e-9)
            np.testing.assert_allclose(parts[["5%", "95%"]].T, np.quantile(draws, [0.05, 0.95], axis=0), atol=1e-9)
            np.testing.assert_allclose(parts["value"].iloc[:-1] - parts["reference"].iloc[:-1], moves, atol=1e-9)


def test_a_reference_may_be_a_list_of_numbers_and_text(short_fit):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(50, 9, 60), "site": rng.choice(["a", "b"], 60), "smokes": rng.random(60) < 0.5})
    steps = make_column_transformer((OneHotEncoder(drop="first"), ["site", "smokes"]), remainder=StandardScaler())
    y = X["age"] + 10 * rng.standard_normal(60) > 50
    model = make_pipeline(steps, short_fit(steps.fit_transform(X), y))
    for terms in ("auto", None):
        frame = contributions(model, X[:2], X.iloc[7].tolist(), terms=terms)
        pd.testing.assert_frame_equal(frame, contributions(model, X[:2], X.iloc[[7]], terms=terms))


def test_a_column_has_the_deviation_of_all_draws_also_where_few_are_kept(weak_problem, short_fit):
    X, y = weak_problem
    model = short_fit(X, y, n_iter=100, max_draws=10)
    terms, columns = (contributions(model, X[:1], terms=terms).loc[0, "sd"].iloc[:-1] for terms in ("auto", None))
    np.testing.assert_allclose(terms[["x0", "x1", "x2"]], columns[["x0", "x1", "x2"]], rtol=1e-12)


def test_one_draw_has_no_standard_deviation(weak_problem, short_fit):
    X, y = weak_problem
    model = short_fit(X, y, n_iter=1, n_chains=1)
    assert np.isnan(contributions(model, X[:2])["sd"]).all()
    assert np.isnan(model.summary()["sd"]).all()


def test_the_reference_is_the_mean_by_weight_without_a_scaler(patients, seed):
    X, y = patients
    weight = np.random.default_rng(seed).integers(1, 4, len(X))
    clf = HorseshoeProbitClassifier(n_iter=20, burn_in=100).fit(X, y, sample_weight=weight)
    reference = contributions(clf, X.iloc[[0]], terms=None)["reference"].iloc[:-1]
    np.testing.assert_allclose(reference, np.average(X, axis=0, weights=weight), rtol=1e-9)
