"""What each number of columns predicts, as it is drawn."""

from itertools import pairwise

import numpy as np
import pytest
from artists import dashed, drawn, outside, segments, texts
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.plotting import ModelSizeDisplay


def display_of(difference, suggested=2):
    difference = np.array(difference, float)
    sizes = np.arange(len(difference))
    return ModelSizeDisplay(sizes=sizes, difference=difference, se=np.abs(difference) / 3, suggested_size=suggested)


def test_the_sizes_are_those_of_the_selector(problem):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=40, random_state=0)
    pipeline = make_pipeline(HorseshoeSelector(model, cv=2), LogisticRegression()).fit(*problem)
    found = pipeline[0].sizes_
    display = ModelSizeDisplay.from_estimator(pipeline, beyond=None)
    np.testing.assert_array_equal(drawn(display.points_, 0), found["difference"])
    ends = found["difference"] + np.outer([-1, 1], found["se"])
    np.testing.assert_allclose(segments(display.lines_, 0), ends)
    assert display.points_[0].get_xdata() == [pipeline[0].suggested_size_]
    assert dashed(display.ax_, 1) == 0
    pipeline[0].set_params(cv=None).fit(*problem)
    with pytest.raises(ValueError, match="cv=5"):
        ModelSizeDisplay.from_estimator(pipeline)
    with pytest.raises(TypeError, match="HorseshoeSelector is wanted"):
        ModelSizeDisplay.from_estimator(pipeline[1])


def test_as_many_sizes_as_are_asked_for():
    display = display_of([-9, -3, -1, 0, 0, 0]).plot(beyond=1)
    np.testing.assert_array_equal(display.shown_, [0, 1, 2, 3])
    assert texts(display.ax_) == ["suggested: 2 columns", "other sizes"]
    assert texts(display_of([-9, 0], 1).plot().ax_)[0] == "suggested: 1 column"
    with pytest.raises(ValueError, match=r"beyond .* got -1"):
        display.plot(beyond=-1)


@pytest.mark.parametrize("difference", [[2, 1, 0.1, 0], [-1e5, -20, -3, 0], [-8, 1e4, 0, 0], [0, 0, 0]])
def test_any_loss_stays_on_the_page(difference):
    display = display_of(difference).plot()
    assert outside(display.figure_) == []
    low, high = display.ax_.get_ylim()
    assert low < min(difference) <= max(difference) < high
    labels = [tick.get_window_extent() for tick in display.ax_.get_yticklabels()]
    shown = sorted((box.y0, box.y1) for box in labels if box.y0 > 0)
    assert all(below[1] <= above[0] + 1 for below, above in pairwise(shown))
