"""Average marginal effects and credible sets as they are drawn."""

import numpy as np
import pandas as pd
import pytest
from artists import drawn, outside, row_names, segments, texts
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skhorseshoe.inspection import marginal_effects
from skhorseshoe.plotting import CredibleSetsDisplay, EffectsDisplay
from skhorseshoe.sets import credible_sets


@pytest.fixture(scope="module")
def wards(short_fit, seed):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.standard_normal(300), "ward": rng.choice(list("aaabc"), 300)})
    y = np.where(X["age"] + 2 * (X["ward"] == "b") + rng.standard_normal(300) > 0, "ill", "fit")
    steps = make_column_transformer((OneHotEncoder(), ["ward"]), remainder="passthrough")
    return make_pipeline(steps, short_fit(steps.fit_transform(X), y, n_iter=100)), X


def test_effects_are_drawn_in_percentage_points_and_contrasts_together(wards):
    frame = marginal_effects(*wards)
    display = EffectsDisplay.from_estimator(*wards)
    assert row_names(display.ax_) == ["age (+1)", "ward: b - a", "ward: c - a"]
    np.testing.assert_allclose(drawn(display.points_, 1), 100 * frame["mean"])
    np.testing.assert_allclose(segments(display.lines_, 1).T, 100 * frame[["5%", "95%"]])
    assert len(display.points_[0].get_xydata()) == ((frame["5%"] > 0) | (frame["95%"] < 0)).sum()
    between = [line.get_ydata()[0] for line in display.ax_.lines if line.get_linestyle() == "-"]
    assert [y for y in between if y % 1] == [0.5]
    assert texts(display.ax_) == ["90 % interval excludes zero", "includes zero"]
    assert display.ax_.get_xlabel().startswith("change of the probability of 'ill'\nin percentage points")
    assert outside(display.figure_) == []


def test_a_table_may_be_cut_and_sorted(wards):
    frame = marginal_effects(*wards, change=2, level=0.5)
    display = EffectsDisplay.from_frame(frame.iloc[::-1].iloc[1:])
    assert row_names(display.ax_) == ["ward: b - a", "age (+2)"]
    assert "50 % interval" in display.ax_.get_xlabel()


def test_what_is_no_table_of_effects_is_refused(wards):
    for wrong in (wards[0][-1].summary(), wards[1], [1, 2]):
        with pytest.raises(ValueError, match=r"must be a table of inspection\.marginal_effects"):
            EffectsDisplay.from_frame(wrong)


@pytest.fixture(scope="module")
def found(short_fit, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 5))
    X[:, 4] = X[:, 0] + 0.03 * X[:, 4]
    model = short_fit(X, X[:, 0] - X[:, 1] + rng.standard_normal(400) > 0, n_iter=300, burn_in=200)
    return credible_sets(model, X)


def test_sets_stand_above_their_columns(found):
    display = CredibleSetsDisplay.from_sets(found)
    probable = found.members.loc[found.members.index.isin(["x0", "x4"], level=1), "probability"].idxmax()[1]
    labels, title = row_names(display.ax_), f"{probable} and 1 more"
    where = next(i for i, label in enumerate(labels) if label.startswith(f"{title}: 99."))
    assert [label[:4] for label in labels[where + 1 : where + 3]] == [
        f"\N{MIDDLE DOT} {name}" for name in found.members.loc[title].index
    ]
    assert len(labels) == 4  # x1 is a set as it is
    assert np.array_equal(display.is_set, [not label.startswith("\N{MIDDLE DOT}") for label in labels])
    np.testing.assert_allclose(drawn(display.points_, 1)[display.is_set], found.sets["mean"])
    np.testing.assert_allclose(segments(display.lines_, 1)[:, display.is_set].T, found.sets[["5%", "95%"]])
    np.testing.assert_allclose(drawn(display.points_, 1)[~display.is_set], found.members.loc[title, "mean"])
    assert texts(display.ax_)[0].startswith("sets")
    assert display.ax_.get_xlabel().endswith("90 % interval\n(positive favours class True)")
    assert outside(display.figure_) == []


@pytest.mark.parametrize(("probability", "told"), [(1 - 0.89, "11 %"), (0.99999, "99.9 %"), (0.1199, "11.9 %")])
def test_a_probability_is_rounded_down_and_not_by_the_error_of_numbers(found, probability, told):
    display = CredibleSetsDisplay.from_sets(found._replace(sets=found.sets.assign(probability=probability)))
    assert all(name.endswith(f": {told}") for name in np.array(display.names)[display.is_set])


def test_nothing_found_is_drawn_too(found):
    display = CredibleSetsDisplay.from_sets(found._replace(sets=found.sets.iloc[:0], members=found.members.iloc[:0]))
    assert len(drawn(display.points_, 1)) == 0
    assert outside(display.figure_) == []


def test_a_level_is_told_as_far_as_its_ends_are_known(found):
    ends = {"5%": "16.6667%", "95%": "83.3333%"}
    display = CredibleSetsDisplay.from_sets(found._make(table.rename(columns=ends) for table in found))
    assert "66.667 % interval" in display.ax_.get_xlabel()
