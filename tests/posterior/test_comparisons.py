"""Ratios of average probabilities, effects within levels, their draws, and numbers needed to treat."""

import operator

import numpy as np
import pandas as pd
import polars as pl
import pytest
from by_hand import COMPARED, effect_by_hand
from scipy.stats import norm
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, SplineTransformer, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._model import phi_series
from skhorseshoe._posterior import average_changes, column_changes, input_rows
from skhorseshoe.inspection import at_least, marginal_effects, number_needed_to_treat, summary
from skhorseshoe.plotting import EffectsDisplay


@pytest.fixture(scope="module")
def table(seed):
    """200 patients: a ward, a sex that some lack, an age, a lab with missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"ward": rng.choice(list("aabc"), 200), "age": rng.normal(60, 12, 200)})
    X["lab"] = np.where(rng.random(200) < 0.2, np.nan, rng.gamma(2, 3, 200))
    X["sex"] = np.where(rng.random(200) < 0.1, None, rng.choice(["m", "m", "f"], 200))
    score = 0.8 * (X["ward"] == "b") + 0.04 * (X["age"] - 60)
    return X, np.digitize(score + rng.standard_normal(200), [0.0, 1.0])


def steps():
    lab, spline = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), SplineTransformer(n_knots=3)
    return make_column_transformer((OneHotEncoder(), ["ward", "sex"]), (spline, ["age"]), (lab, ["lab"]))


@pytest.fixture(scope="module")
def model(table, short_fit):
    behind = steps()
    return make_pipeline(behind, short_fit(behind.fit_transform(table[0]), table[1] > 0, n_chains=2))


CHANGES = {"ward: b": ("ward", "b", "a"), "age": ("age", lambda old: old + 1), "lab": ("lab", lambda old: old + 1)}


def is_by_hand(effects, model, X, comparison, weight=None, where=""):
    for label, ends in CHANGES.items():
        name = [row for row in effects.index if row.startswith(label) and row.endswith(where)]
        expected = effect_by_hand(model, X, *ends, weight=weight, compare=COMPARED[comparison])
        np.testing.assert_allclose(effects.draws[name[0]], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("comparison", COMPARED)
def test_ratios_are_those_of_a_loop_by_hand_whatever_the_way(comparison, weighted, model, table, monkeypatch, seed):
    X, weight = table[0], np.random.default_rng(seed).integers(0, 3, 200).astype(float) if weighted else None
    ways = [(phi_series, "FURTHEST", phi_series.FURTHEST), (phi_series, "FURTHEST", 0.0)]
    ways += [(average_changes, "_NUMBERS_HELD", 1), (input_rows, "_ROWS_AT_A_TIME", 57), (column_changes, "_ALIKE", -1)]
    for module, name, value in ways if comparison == "odds_ratio" else ways[:1]:  # averages are compared at the end
        with monkeypatch.context() as patch:
            patch.setattr(module, name, value)
            asked = {"reference": {"ward": "a"}, "sample_weight": weight, "comparison": comparison}
            is_by_hand(marginal_effects(model, X, **asked), model, X, comparison, weight)


def test_the_header_counts_the_rows_that_count(model, table):
    X, has = table[0], table[0]["sex"].notna()
    header = marginal_effects(model, X, "age", by="sex").attrs["header"]
    assert f"average of {has.sum()} rows within" in header.replace("\n", " ")
    half = marginal_effects(model, X, "age", by="sex", sample_weight=np.arange(200) % 2).attrs["header"]
    assert f"weighted average of {has[1::2].sum()} rows within" in half.replace("\n", " ")


@pytest.mark.parametrize("comparison", COMPARED)
def test_effects_within_levels_are_those_of_their_rows(comparison, model, table, monkeypatch, seed):
    X, weight = table[0], np.random.default_rng(seed).uniform(0, 3, 200)
    monkeypatch.setattr(input_rows, "_ROWS_AT_A_TIME", 57)
    asked = {"reference": "a", "comparison": comparison, "sample_weight": weight}
    effects = marginal_effects(model, X, ["ward", "age", "lab"], by="sex", **asked)
    for sex in "mf":
        rows = X["sex"] == sex
        is_by_hand(effects, model, X[rows], comparison, weight[rows], f"| sex: {sex}")
    draws, sign = effects.draws, "-" if comparison == "difference" else "/"
    compare = operator.sub if comparison == "difference" else operator.truediv
    between = draws[f"age | sex: f {sign} m"]
    np.testing.assert_array_equal(between, compare(draws["age | sex: f"], draws["age | sex: m"]))
    assert len(effects) == 4 * 3
    labels = marginal_effects(model, X, "age", by=X["sex"].rename("who"), **asked | {"reference": None})
    assert labels.index.tolist() == ["age | who: f", "age | who: m", f"age | who: f {sign} m"]
    np.testing.assert_allclose(labels.draws, effects.filter(like="age", axis=0).draws, rtol=1e-12)
    usual = marginal_effects(model, X, by="sex")
    assert not any(label.startswith("sex") for label in usual.index)  # within men, what is it to be a man?


def test_the_table_describes_its_draws_however_it_is_cut(model, table):
    effects = marginal_effects(model, table[0], comparison="odds_ratio", level=0.5)
    draws = effects.draws
    assert draws.index.names == ["chain", "draw"]
    assert len(draws) == model[-1].intercept_draws_.size
    np.testing.assert_allclose(effects[["median", "25%", "75%"]].T, draws.quantile([0.5, 0.25, 0.75]), rtol=1e-12)
    np.testing.assert_allclose(effects["prob_above_1"], (draws > 1).mean())
    assert effects.sort_values("median").tail(2).draws.equals(draws[effects["median"].nlargest(2).index[::-1]])
    for other in (effects.reset_index(), effects.rename(index={"age": "years"})):
        with pytest.raises(ValueError, match="do not have the names that they were computed with"):
            _ = other.draws


def test_columns_may_change_by_amounts_of_their_own(model, table):
    effects = marginal_effects(model, table[0], ["ward", "age", "lab"], change={"lab": 10})
    assert effects["change"].tolist() == ["level", "level", "+1", "+10"]
    alone = [marginal_effects(model, table[0], name, change=by) for name, by in (("age", 1), ("lab", 10))]
    np.testing.assert_allclose(effects["mean"].tail(2), [one["mean"].item() for one in alone], rtol=1e-12)


@pytest.mark.parametrize("kind", ["polars", "category", "booleans", "array"])
def test_any_column_of_levels_may_part_the_rows(kind, table, short_fit):
    X, y = table[0][["age", "sex"]].assign(sex=(table[0]["sex"] == "m").map({True: "m", False: "f"})), table[1] > 0
    usual = marginal_effects(short_fit(X[["age"]], y), X[["age"]], by=X["sex"])
    if kind in ("category", "booleans"):
        X["sex"] = pd.Categorical(X["sex"], ["x", "f", "m"]) if kind == "category" else X["sex"] == "m"
    rows = {"polars": pl.from_pandas, "array": lambda X: X.to_numpy(object)}.get(kind, pd.DataFrame)(X)
    steps = make_column_transformer(("passthrough", [0])).fit(rows)
    whole = make_pipeline(steps, short_fit(X[["age"]].to_numpy(), y))
    effects = marginal_effects(whole, rows, 0, by=1)
    np.testing.assert_allclose(effects.draws, usual.draws, rtol=1e-9)
    assert effects.index[0].endswith(
        "| sex: False" if kind == "booleans" else "| x1: f" if kind == "array" else "| sex: f"
    )


def test_groups_are_averaged_over_and_ordered_classes_cut(table, short_fit, seed):
    X, y = table[0][["age"]].to_numpy(), table[1]
    X = (X - X.mean()) / X.std()
    grouped = HorseshoeProbitClassifier(n_iter=40, burn_in=20, random_state=seed)
    grouped.fit(X, y > 0, groups=np.arange(200) % 20)
    ordered = short_fit(X, y, ordered=True)
    for asked, fit, root in (
        (grouped, grouped, np.sqrt(1 + np.square(grouped.group_scale_draws_)).ravel()),
        (at_least(ordered, 2), at_least(ordered, 2), 1.0),
    ):
        eta = X @ fit.coef_draws_.reshape(-1, 1).T + fit.intercept_draws_.ravel()
        high, low = (norm.cdf(shifted / root).mean(axis=0) for shifted in (eta + fit.coef_draws_.ravel(), eta))
        effects = marginal_effects(asked, X, comparison="odds_ratio")
        np.testing.assert_allclose(effects.draws["x0"], COMPARED["odds_ratio"](high, low), rtol=1e-6)  # float32 draws
    by_hand = ordered.predict_proba(X)[:, 2].mean()  # that the model is that of the highest class
    assert low.mean() == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (-0.1, -0.2, -0.05, "NNTB 10 (5 to 20)"),
        (0.004, 0.002, 0.5, "NNTH 250 (2 to 500)"),
        (-0.1, -0.25, 0.05, "NNTB 10 (NNTB 4 to ∞ to NNTH 20)"),
        (0.01, -0.02, 0.04, "NNTH 100 (NNTH 25 to ∞ to NNTB 50)"),
        (0.01, 0.0, 0.04, "NNTH 100 (NNTH 25 to ∞)"),
        (0.0, 0.0, 0.0, "∞"),
    ],
)
def test_numbers_needed_to_treat_pass_infinity_as_altman_writes_them(mean, low, high, text, model, table):
    effects = marginal_effects(model, table[0], "age").assign(**{"mean": mean, "5%": low, "95%": high})
    assert number_needed_to_treat(effects, adverse=True)["nnt"].tolist() == [text]
    turned = text.replace("NNTB", "x").replace("NNTH", "NNTB").replace("x", "NNTH")
    good = number_needed_to_treat(effects, adverse=False)
    assert good["nnt"].tolist() == [turned]
    assert "class True is a good outcome" in " ".join(good.attrs["header"].split())
    assert text.replace("∞", r"$\infty$") in number_needed_to_treat(effects, adverse=True).to_latex()


def test_what_has_no_number_needed_to_treat(model, table):
    effects = marginal_effects(model, table[0], "age", by="sex")
    assert number_needed_to_treat(effects, adverse=True)["nnt"].eq("").tolist() == [False, False, True]
    for wrong in (marginal_effects(model, table[0], "age", comparison="ratio"), summary(model), [1]):
        with pytest.raises(ValueError, match="with comparison='difference'"):
            number_needed_to_treat(wrong, adverse=True)
    with pytest.raises(ValueError, match=r"adverse must be True or False.*got 'died'"):
        number_needed_to_treat(effects, adverse="died")


@pytest.mark.parametrize("comparison", ["difference", "odds_ratio"])
@pytest.mark.parametrize("use", [EffectsDisplay.from_frame, lambda table: number_needed_to_treat(table, adverse=True)])
def test_a_table_that_lost_what_it_is_is_not_guessed(use, comparison, model, table):
    joined = pd.concat([marginal_effects(model, table[0], name, comparison=comparison) for name in ("age", "ward")])
    with pytest.raises(ValueError, match=r"does not tell what its numbers are.*pd\.concat.*all features in one call"):
        use(joined)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"comparison": "odds"}, "comparison must be one of 'difference', 'ratio', 'odds_ratio'; got 'odds'"),
        ({"by": "age"}, "by='age' has 200 levels in these rows, and may have 2 to 50: gather values .*pandas.cut"),
        ({"by": ["m"] * 200}, "by='by' has only the level 'm' in the rows that count: there is nothing to compare"),
        ({"by": np.arange(200) % 2, "sample_weight": np.arange(200) % 2}, "by='by' has only the level 1 in the rows"),
        ({"by": [None] * 200}, "by='by' has no level in the rows that count: .* leave it out"),
        ({"by": "sexx"}, "no 'sexx' among .* Did you mean 'sex'"),
        ({"by": ["m", "f"]}, r"by must be a column of X or a label for each of its 200 rows; got \['m', 'f'\]"),
        ({"by": "ward", "features": "lab"}, "'lab' has no value in the rows whose ward is 'c': leave it out"),
        (
            {"change": {"labb": 3}},
            r"change has 'labb', which is no column of numbers among the features: \['age', 'lab'\]",
        ),
        ({"change": {"lab": "x"}}, "change must be 'auto'.*got 'x'"),
        (
            {"features": "lab", "change": 1e6, "comparison": "odds_ratio"},
            "behind 'lab' is within 1e-09 of 0 or 1",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_cure(given, says, model, table):
    X = table[0].assign(lab=table[0]["lab"].where(table[0]["ward"] != "c"))
    with pytest.raises(ValueError, match=says):
        marginal_effects(model, X, **given)


def test_a_forest_plot_of_ratios_has_a_line_at_one_and_a_scale_of_logarithms(model, table):
    effects = marginal_effects(model, table[0], comparison="odds_ratio")
    display = EffectsDisplay.from_frame(effects)
    assert display.ax_.get_xscale() == "log"
    assert [line.get_xdata()[0] for line in display.ax_.lines if line.get_linestyle() == "--"] == [1.0]
    assert display.ax_.get_xlabel().startswith("odds ratio of class True")
    assert len(display.points_[0].get_xydata()) == ((effects["5%"] > 1) | (effects["95%"] < 1)).sum()
    assert len(display.ax_.get_xticks()) >= 2
    within = EffectsDisplay.from_frame(marginal_effects(model, table[0], "age", by="sex"))
    assert within.names[0] == "age (+1) | sex: f"


def test_an_event_of_a_whole_level_has_no_ratio_and_the_others_have(seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.standard_normal(300), "sign": (np.arange(300) < 4) * 1.0})
    y = (X["age"] + rng.standard_normal(300) > 0) | (X["sign"] > 0)
    model = HorseshoeProbitClassifier(n_iter=60, burn_in=60, random_state=0, unpenalized=["sign"]).fit(X, y)
    model.coef_draws_[:, :3, 1] = 60.0  # far out, where no other value is possible
    table = marginal_effects(model, X, comparison="odds_ratio")
    assert table.index.tolist() == ["age"]
    assert "left out: 'sign' (no ratio)" in " ".join(table.attrs["header"].split())
    with pytest.raises(ValueError, match="behind 'sign' is within 1e-09 of 0 or 1"):
        marginal_effects(model, X, "sign", comparison="odds_ratio")
    picks = make_pipeline(FunctionTransformer(lambda X: X[["sign"]]), HorseshoeProbitClassifier(n_iter=20))
    picks.fit(X, y)[-1].coef_draws_[:] = 60.0
    assert marginal_effects(picks, X, comparison="odds_ratio").index.tolist() == ["age"]  # which changes nothing


def test_labels_in_another_order_than_the_rows_are_told(model, table):
    X = table[0]
    with pytest.warns(UserWarning, match="X and by have the same index labels in another order"):
        marginal_effects(model, X, "age", by=pd.Series(np.tile(["p", "q"], 100), index=X.index[::-1]))
