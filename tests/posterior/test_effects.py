"""Average effects of categories: the levels of a row are set together, and each contrast is that of the definition."""

from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from by_hand import effect_by_hand
from scipy.sparse import csr_array
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from skhorseshoe import terms
from skhorseshoe._model import phi_series
from skhorseshoe._posterior import average_changes, column_changes, input_rows
from skhorseshoe.inspection import marginal_effects


@pytest.fixture(scope="module")
def table(seed):
    """240 patients: a ward of four levels, one rare, a sex, an age, two labs of which one has missing values."""
    rng = np.random.default_rng(seed)
    ward, age = rng.choice(list("abcd"), 240, p=[0.4, 0.3, 0.25, 0.05]), rng.normal(60, 12, 240)
    X = pd.DataFrame({"ward": ward, "age": age, "sex": rng.choice(["m", "f"], 240), "lab": rng.gamma(2, 3, 240)})
    X["sodium"] = rng.normal(140, 4, 240)
    X.loc[rng.random(240) < 0.2, "sodium"] = np.nan
    score = 0.8 * (ward == "b") - 0.5 * (ward == "c") + 0.04 * (age - 60) + 0.4 * (X["sex"] == "m")
    return X, score + rng.standard_normal(240) > 0


def encoder(*more, categories=("ward", "sex"), numbers=("age", "lab", "sodium")):
    plain = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_column_transformer((OneHotEncoder(), [*categories]), (plain, [*numbers]), *more)


@pytest.fixture(scope="module")
def model(table, short_fit):
    steps = encoder()
    return make_pipeline(steps, short_fit(steps.fit_transform(table[0]), table[1], n_iter=100, n_chains=2))


def agree(row, draws):
    numbers = [draws.mean(), draws.std(ddof=1), *np.quantile(draws, [0.05, 0.95])]
    np.testing.assert_allclose(row[["mean", "sd", "5%", "95%"]].astype(float), numbers, rtol=0, atol=1e-12)


def test_contrasts_are_those_of_a_loop_by_hand(model, table):
    X, _ = table
    frame = marginal_effects(model, X)
    common = X["ward"].mode()[0]
    others = [level for level in "abcd" if level != common]
    first = X["sex"].mode()[0]
    second = "m" if first == "f" else "f"
    wards = [f"ward: {level} - {common}" for level in others]
    assert frame.index.tolist() == [*wards, "age", f"sex: {second} - {first}", "lab", "sodium"]
    assert frame["change"].tolist()[:4] == ["level"] * 3 + ["+1"]
    assert [*frame.attrs["features"].values()] == ["ward"] * 3 + ["age", "sex", "lab", "sodium"]
    for level in others:
        agree(frame.loc[f"ward: {level} - {common}"], effect_by_hand(model, X, "ward", level, common))
    for name in ("age", "lab", "sodium"):
        agree(frame.loc[name], effect_by_hand(model, X, name, lambda old: old + 1))


def test_a_reference_and_pairs(model, table):
    X, _ = table
    beside_d = marginal_effects(model, X, ["ward", "age"], reference="d")
    assert beside_d.index.tolist() == ["ward: a - d", "ward: b - d", "ward: c - d", "age"]
    pairs = marginal_effects(model, X, ["ward", "sex", "age"], change="pairs")
    assert pairs.index.tolist()[:3] == ["ward: b - a", "ward: c - a", "ward: d - a"]
    assert len(pairs) == 6 + 1 + 1
    for b, a in [("b", "a"), ("d", "c")]:
        agree(pairs.loc[f"ward: {b} - {a}"], effect_by_hand(model, X, "ward", b, a))
    assert pairs.loc["ward: d - a", "mean"] == pytest.approx(-beside_d.loc["ward: a - d", "mean"], abs=1e-15)
    both = marginal_effects(model, X, ["ward", "sex"], reference={"ward": "c", "sex": "m"})
    assert both.index.tolist() == ["ward: a - c", "ward: b - c", "ward: d - c", "sex: f - m"]


@pytest.mark.parametrize("far", [1, 40], ids=["series", "beyond the series"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_way_of_computing_makes_no_difference(model, table, far, weighted, monkeypatch, seed):
    """A series for all rows or row by row, all changes at once through the steps or one by one, whole or in parts."""
    X, _ = table
    weight = np.random.default_rng(seed).integers(0, 3, 240).astype(float) if weighted else None
    given = {"sample_weight": weight, "change": far}
    usual = marginal_effects(model, X, **given)
    agree(usual.loc["age"], effect_by_hand(model, X, "age", lambda old: old + far, weight=weight))
    ways = [(phi_series, "FURTHEST", 0.0), (average_changes, "_NUMBERS_HELD", 1), (input_rows, "_ROWS_AT_A_TIME", 57)]
    ways += [(column_changes, "_ALIKE", -1.0), (column_changes, "_outputs", lambda *_: {})]
    for module, name, value in ways:
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            other = marginal_effects(model, X, **given)
        np.testing.assert_allclose(other.iloc[:, 1:5], usual.iloc[:, 1:5], rtol=0, atol=1e-12)


STEPS = {
    "spline": encoder((SplineTransformer(n_knots=4), ["age"]), numbers=("lab", "sodium")),
    "interactions": make_pipeline(
        make_column_transformer(
            (OneHotEncoder(sparse_output=False, drop="first"), ["ward"]),
            (StandardScaler(), ["age"]),
            (SimpleImputer(), ["sodium"]),
        ),
        PolynomialFeatures(interaction_only=True),
    ),
    "unknown": make_pipeline(encoder(), FunctionTransformer(lambda rows: rows + rows[:, [0]])),
    "target": make_column_transformer((TargetEncoder(), ["ward"]), (StandardScaler(), ["age"])),
}


@pytest.mark.parametrize("kind", STEPS)
def test_any_steps_are_those_of_the_loop_by_hand(kind, table, short_fit):
    X, y = table
    steps = STEPS[kind]
    model = make_pipeline(steps, short_fit(steps.fit_transform(X, y), y, n_chains=2))
    frame = marginal_effects(model, X, ["ward", "age"], reference="a")
    agree(frame.loc["ward: c - a"], effect_by_hand(model, X, "ward", "c", "a"))
    agree(frame.loc["age"], effect_by_hand(model, X, "age", lambda old: old + 1))


CATEGORIES = {
    "object": ("abcd", lambda X: X.astype({"ward": object})),
    "category": ("dabc", lambda X: X.astype({"ward": pd.CategoricalDtype([*"dabc", "never"])})),
    "ordered": ("cbad", lambda X: X.assign(ward=pd.Categorical(X["ward"], [*"cbad"], ordered=True))),
    "polars": ("abcd", pl.from_pandas),
    "array": ("abcd", lambda X: X.to_numpy(object)),
    "numbers": (
        [1, 2, 3, 4],
        lambda X: X.assign(ward=X["ward"].map({"a": 1, "b": 2, "c": 3, "d": 4}).astype("category")),
    ),
}


@pytest.mark.parametrize("kind", CATEGORIES)
def test_every_kind_of_column_may_be_a_category(kind, table, short_fit):
    X, y = table[0][["age", "ward"]], table[1]
    levels, made = CATEGORIES[kind]
    rows, wards = made(X), ["abcd"[sorted(levels).index(level)] for level in levels]

    def steps(levels):
        encoder = OneHotEncoder(categories=[sorted(levels)], sparse_output=False)
        return make_column_transformer((encoder, [1]), ("passthrough", [0]))

    plain = make_pipeline(steps("abcd"), short_fit(steps("abcd").fit_transform(X), y)).fit(X, y)
    frame = marginal_effects(make_pipeline(steps(levels).fit(rows), plain[-1]), rows, 1, reference=levels[-1])
    name = "x1" if kind == "array" else "ward"
    assert frame.index.tolist() == [f"{name}: {level} - {levels[-1]}" for level in levels[:-1]]
    for place in range(3):
        agree(frame.iloc[place], effect_by_hand(plain, X, "ward", wards[place], wards[-1]))


def test_levels_are_encoded_once(short_fit, monkeypatch):
    """However many there are, rows pass through the steps as they are, in one state, and once for all levels."""
    wards = np.random.default_rng(2).integers(0, 20, 400).astype(str)
    X, y = pd.DataFrame({"age": np.arange(400.0), "ward": wards}), np.arange(400) % 3 == 0
    steps = encoder(categories=["ward"], numbers=["age"]).set_params(sparse_threshold=0)
    model = make_pipeline(steps, short_fit(steps.fit_transform(X), y, n_chains=2))
    passed, usual = [], column_changes.classifier_rows
    monkeypatch.setattr(column_changes, "classifier_rows", lambda *args: passed.append(args[2]) or usual(*args))
    frame = marginal_effects(model, X, ["ward"], reference="0")
    assert [len(rows) for rows in passed] == [400, 20]
    for level in "1", "7":
        agree(frame.loc[f"ward: {level} - 0"], effect_by_hand(model, X, "ward", level, "0"))


def test_rows_without_a_level_do_not_count(model, table, short_fit):
    X, y = table
    gaps = X.assign(ward=X["ward"].where(np.arange(240) % 5 > 0))
    steps = encoder()
    whole = make_pipeline(steps, short_fit(steps.fit_transform(gaps), y, n_chains=2))
    frame = marginal_effects(whole, gaps, "ward", reference="a")
    assert frame.index.tolist() == ["ward: b - a", "ward: c - a", "ward: d - a"]
    agree(frame.loc["ward: b - a"], effect_by_hand(whole, gaps, "ward", "b", "a"))
    assert "(of those that have a" in frame.attrs["header"]


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("kind", ["frame", "array", "sparse"])
def test_level_columns_are_one_category(table, scaled, kind, short_fit):
    """0 to 1 for one of them, beside the row's own level, is what no row can be."""
    dummies = pd.get_dummies(table[0][["ward", "age"]], dtype=float)
    rows = dummies if kind == "frame" else dummies.to_numpy() if kind == "array" else csr_array(dummies.to_numpy())
    scaler = StandardScaler(with_mean=kind != "sparse")
    clf = short_fit(scaler.fit_transform(rows) if scaled else rows, table[1], n_chains=2)
    model = make_pipeline(scaler if scaled else FunctionTransformer(accept_sparse=True), clf)
    asked = model if scaled else clf
    name, levels = ("ward", list(dummies)[1:]) if kind == "frame" else ("x1 and 3 more", ["x1", "x2", "x3", "x4"])
    frame = marginal_effects(asked, rows, reference=levels[2])
    assert frame.index.tolist() == [next(iter(dummies)) if kind == "frame" else "x0"] + [
        f"{name}: {level} - {levels[2]}" for level in levels if level != levels[2]
    ]
    coef = clf.coef_draws_.reshape(-1, 5).astype(float)

    def mean(level):
        set_to = dummies.to_numpy().copy()
        set_to[:, 1:] = np.eye(4)[level]
        seen = scaler.transform(csr_array(set_to) if kind == "sparse" else set_to) if scaled else set_to
        return norm.cdf(seen @ coef.T + clf.intercept_draws_.ravel()).mean(axis=0)

    agree(frame.loc[f"{name}: {levels[1]} - {levels[2]}"], mean(1) - mean(2))
    alone = marginal_effects(asked, rows, levels[1], reference=levels[2])
    pd.testing.assert_frame_equal(alone, frame.loc[[f"{name}: {levels[1]} - {levels[2]}"]], rtol=1e-9)
    if kind == "frame":
        pd.testing.assert_frame_equal(marginal_effects(asked, rows, "ward", reference=levels[2]), frame.iloc[1:])
    assert len(marginal_effects(asked, rows, levels[1], change="pairs")) == 3
    common = levels[int(np.argmax(dummies.iloc[:, 1:].sum()))]
    (label,) = marginal_effects(asked, rows, common).index
    assert label.startswith(f"{name}: {common} - ")


@pytest.mark.parametrize("change", ["auto", "sd", "unit", 3])
def test_booleans_are_false_or_true_whatever_numbers_change_by(table, change, short_fit):
    X = table[0][["age", "sex"]].assign(married=table[0]["lab"] > 5)
    steps = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["sex", "married"]), (StandardScaler(), ["age"])
    )
    model = make_pipeline(steps, short_fit(steps.fit_transform(X), table[1], n_chains=2))
    row = marginal_effects(model, X, change=change).loc["married"]
    assert row["change"] == "0 to 1"
    agree(row, effect_by_hand(model, X, "married", True, False))


@pytest.mark.parametrize("kind", ["objects", "polars", "pyarrow", "array"])
def test_a_missing_value_stays_the_one_that_an_encoder_knows(kind, table, short_fit):
    """None, among booleans and among text; and booleans stay booleans."""
    X, row = table[0][["ward", "age"]], np.arange(240)
    X = X.assign(ward=X["ward"].where(row % 7 > 0), married=(table[0]["lab"] > 5).astype("boolean").where(row % 5 > 0))
    columns = {name: [None if pd.isna(value) else value for value in X[name]] for name in X}
    make = {"polars": pl.DataFrame, "pyarrow": pa.table}.get(kind, lambda columns: pd.DataFrame(columns, dtype=object))
    rows = make(columns).to_numpy() if kind == "array" else make(columns)
    steps = make_column_transformer((OneHotEncoder(sparse_output=False), [0, 2]), (StandardScaler(), [1]))

    def effects(rows):
        model = make_pipeline(steps, short_fit(steps.fit_transform(rows), table[1], n_chains=2))
        return marginal_effects(model, rows, change="sd")[["change", "mean"]].reset_index(drop=True)

    pd.testing.assert_frame_equal(effects(rows), effects(X), rtol=1e-9)


def test_a_number_that_an_encoder_passes_over_is_no_change(table, short_fit):
    """It makes zeros of a code that it does not know: an effect of no level at all."""
    X = table[0][["age"]].assign(code=table[0]["ward"].map(dict(zip("abcd", (10, 20, 30, 40), strict=True))))
    steps = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["code"]), (KBinsDiscretizer(3), ["age"]), sparse_threshold=0
    )
    model = make_pipeline(steps, short_fit(steps.fit_transform(X), table[1]))
    for features in (None, "code"):
        with pytest.raises(ValueError, match=r"not with column 'code' changed.*X\.astype.*no such value"):
            marginal_effects(model, X, features)
    assert len(marginal_effects(model, X.astype({"code": "category"}), change=10)) == 4


def test_what_is_left_out_is_said(model, table):
    X = table[0].assign(name=[f"patient {i}" for i in range(240)], site="north", empty=None)
    steps = make_pipeline(FunctionTransformer(lambda rows: rows[list(table[0])]), *[step for _, step in model.steps])
    frame = marginal_effects(steps, X)
    assert len(frame) == 3 + 1 + 3
    says = " ".join(frame.attrs["header"].split())
    assert "left out: 'name' (240 levels), 'site' (1 level)" in says
    assert "average of 1 row," in marginal_effects(steps, X[:1], "age").attrs["header"]
    with pytest.raises(ValueError, match=r"'name' has 240 levels, and 200 is the most there may be: gather rare"):
        marginal_effects(steps, X, "name")
    with pytest.raises(ValueError, match=r"'site' has one level in these rows, 'north': there is nothing to compare"):
        marginal_effects(steps, X, "site")
    with pytest.raises(ValueError, match="'empty' has no value in any row"):
        marginal_effects(steps, X, "empty")
    many = X.assign(name=[f"{i % 60}" for i in range(240)])
    assert (marginal_effects(steps, many, "name")["mean"] == 0).all()  # no step takes it
    mixed = X.assign(name=[(date(2020, 1, 1), "never", 7)[i % 3] for i in range(240)])
    assert len(marginal_effects(steps, mixed, "name")) == 2  # levels without an order
    with pytest.raises(ValueError, match="60 levels, and 50 is the most in pairs: compare them with one reference"):
        marginal_effects(steps, many, "name", change="pairs")
    with pytest.raises(ValueError, match="features is empty, or no column"):
        marginal_effects(steps, X, [])


OPAQUE = FunctionTransformer(lambda rows: rows[["ward", "age"]])
NAMED = FunctionTransformer(OPAQUE.func, feature_names_out=lambda *_: np.array(["ward", "age"], object))


@pytest.mark.parametrize("first", [[], [OPAQUE], [NAMED]], ids=["known", "opaque", "named"])
@pytest.mark.parametrize("kind", ["frame", "polars"])
def test_the_outcome_and_other_columns_that_no_step_takes_are_left_out(first, kind, table, short_fit):
    whole = table[0].assign(id=range(240), died=table[1], when=pd.date_range("2020-01-01", periods=240))
    whole = (
        pl.from_pandas(whole[[*whole.columns[::-1]]])
        if kind == "polars"
        else whole[["died", *whole.columns.drop("died")]]
    )
    inputs = table[0][["ward", "age"]]
    steps = make_pipeline(*first, encoder(categories=["ward"], numbers=["age"])).fit(inputs)
    model = make_pipeline(steps, short_fit(steps.transform(inputs), table[1]))
    frame, alone = marginal_effects(model, whole), marginal_effects(model, inputs)
    assert {*frame.attrs["features"].values()} == {"ward", "age"}
    pd.testing.assert_frame_equal(frame.loc[alone.index], alone, rtol=1e-9)
    says = " ".join(frame.attrs["header"].split())
    assert says.count("(changes nothing)" if first else "(not used by the model)") >= 2
    if not first:  # the outcome is no category of the model
        assert "ward: a - c" in marginal_effects(model, whole, reference="c").index
    assert (marginal_effects(model, whole, ["died", "id"])["mean"] == 0).all()  # asked for by name


@pytest.mark.parametrize("change", ["auto", "unit", "sd", "pairs", 10])
def test_a_column_of_zeros_and_ones_goes_from_one_to_the_other_whatever_is_asked(change, table, short_fit):
    X = table[0][["age"]].assign(smoker=(table[0]["lab"] > 5).astype(float), never=0.0)
    X.loc[::9, "smoker"] = np.nan
    steps = make_pipeline(SimpleImputer(strategy="most_frequent"), StandardScaler())
    model = make_pipeline(steps, short_fit(steps.fit_transform(X), table[1]))
    known = X[X["smoker"].notna()]
    frame = marginal_effects(model, X, ["age", "smoker"], change=change)
    assert frame.loc["smoker", "change"] == "0 to 1"
    agree(frame.loc["smoker"], effect_by_hand(model, known, "smoker", 1, 0))
    header = " ".join(frame.attrs["header"].split())
    assert ("by one standard deviation, or from 0 to 1 where it has no other values" in header) == (change == "sd")
    if change == 10:  # a single value does not tell that there are no others
        assert marginal_effects(model, X, "never", change=10).loc["never", "change"] == "+10"


@pytest.mark.parametrize("kind", [pd.Series, lambda times: times.date, lambda times: times - times[0]])
def test_dates_are_neither_numbers_nor_levels(kind, model, table):
    times = kind(pd.date_range("2020-01-01", periods=240)[np.arange(240) % 40])
    X = table[0].assign(seen=np.asarray(times))
    opaque = make_pipeline(FunctionTransformer(lambda rows: rows[list(table[0])]), *[step for _, step in model.steps])
    frame = marginal_effects(opaque, X, reference={"ward": "a"})
    assert "left out: 'seen' (dates or durations)" in " ".join(frame.attrs["header"].split())
    assert not any("seen" in str(label) for label in frame.index)
    with pytest.raises(ValueError, match=r"'seen' holds dates or durations.* such as days since a date\. If its val"):
        marginal_effects(model, X, "seen")
    with pytest.raises(ValueError, match="such as days since a date"):
        marginal_effects(model, X, change=pd.Timedelta("365D"))
    levels = marginal_effects(model, X.astype({"seen": "category"}), "seen")
    assert len(levels) == 39


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"reference": "x", "features": "ward"}, r"reference='x' is no level of 'ward' in these rows: they have \['a'"),
        ({"reference": "a"}, r"level of one category, and among the features are 2: \['ward', 'sex'\].*Give a dict"),
        ({"reference": "a", "features": "age"}, r"among the features are 0: \[\]"),
        ({"reference": {"age": 60}}, r"reference has 'age', which is no category among the features.*with change"),
        ({"reference": {"warrd": "a"}}, r"reference has 'warrd', which is no category"),
        ({"reference": "a", "features": "ward", "change": "pairs"}, "compares all levels.*no reference"),
        ({"features": "warrd"}, "no 'warrd' among .* Did you mean 'ward'"),
        ({"features": ["age", "ward", 1]}, "features has 'age' 2 times: give each column once"),
        ({"change": "each"}, "change must be .*'pairs' or a finite number; got 'each'"),
    ],
)
def test_what_cannot_be_is_refused_with_a_cure(model, table, given, says):
    with pytest.raises(ValueError, match=says):
        marginal_effects(model, table[0], **given)


def test_steps_that_depend_on_the_other_rows_are_refused(table, short_fit):
    X = table[0][["age", "lab"]]
    model = make_pipeline(FunctionTransformer(lambda rows: rows - rows.mean()), short_fit(X - X.mean(), table[1]))
    with pytest.raises(ValueError, match=r"must treat each row by itself.*learn in fit"):
        marginal_effects(model, X)


def test_a_level_beside_itself_is_refused(table, short_fit):
    dummies = pd.get_dummies(table[0][["ward", "age"]], dtype=float)
    clf = short_fit(dummies, table[1])
    with pytest.raises(ValueError, match="'ward_b' of 'ward', which is the reference too: name another"):
        marginal_effects(clf, dummies, "ward_b", reference="ward_b")
    for name in ("ward", "ward_b"):
        with pytest.raises(ValueError, match=f"features has '{name}' 2 times"):
            marginal_effects(clf, dummies, [name, "age", name])


@pytest.mark.parametrize("first", [[], [FunctionTransformer()]], ids=["encoder", "a step before it"])
def test_a_table_may_have_its_columns_in_another_order(table, first, short_fit):
    X, y = table
    steps = make_pipeline(*first, encoder()).fit(X)
    model = make_pipeline(steps, short_fit(steps.transform(X), y, n_chains=2))
    usual, other = marginal_effects(model, X), marginal_effects(model, X[X.columns[::-1]])
    assert {*usual.index} == {*other.index}
    pd.testing.assert_frame_equal(other.loc[usual.index], usual, rtol=1e-9, check_names=False)
    assert (
        terms.summary(model, X[X.columns[::-1]])["n_columns"].to_dict()
        == terms.summary(model, X)["n_columns"].to_dict()
    )
