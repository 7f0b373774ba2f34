"""Average marginal effects as they are drawn."""

import numpy as np
import pandas as pd
import pytest
from artists import drawn, outside, row_names, segments, texts
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skhorseshoe.inspection import marginal_effects
from skhorseshoe.plotting import EffectsDisplay


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
