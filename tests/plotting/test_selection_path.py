"""The path of sparse summaries as it is drawn."""

import numpy as np
import pytest
from artists import NAMES, dashed, drawn, outside, overlap, row_names, texts
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skhorseshoe import HorseshoeSelector
from skhorseshoe.plotting import SelectionPathDisplay


@pytest.fixture(scope="module")
def selector(model, data):
    X = model[:-1].transform(data[0])
    return HorseshoeSelector(model[-1], level=0.2, prefit=True).fit(X)


def path_of(supports, distances, radius=2.0, names=NAMES):
    return SelectionPathDisplay(
        names=names, supports=np.array(supports, bool), distances=np.array(distances, float), radius=radius, level=0.5
    )


def test_the_path_is_that_of_the_selector(selector):
    display = SelectionPathDisplay.from_estimator(selector, beyond=None)
    path = selector.path_
    np.testing.assert_array_equal(drawn(display.points_, 1), path["distances"])
    assert dashed(display.ax_) == path["radius"]
    chosen = path["chosen"]
    np.testing.assert_array_equal(display.points_[0].get_ydata(), np.arange(chosen + 1))
    kept = np.count_nonzero(path["supports"][chosen])
    assert 0 < kept < 8
    assert texts(display.ax_) == [f"needed: {kept} columns", "not needed"]
    assert "20 % of the draws are nearer" in display.ax_.get_xlabel()
    assert "nats: rise of the log loss" in display.ax_.get_xlabel()
    # The columns by name, until the chosen summary has those that are selected.
    added = {name for text in row_names(display.ax_)[1 : chosen + 1] for name in text.removeprefix("+ ").split(", ")}
    assert added == {NAMES[j] for j in selector.get_support(indices=True)}


def test_as_many_as_are_asked_for(selector):
    chosen = selector.path_["chosen"]
    for beyond in (0, 1):
        display = SelectionPathDisplay.from_estimator(selector, beyond=beyond)
        np.testing.assert_array_equal(display.shown_, np.arange(chosen + 1 + beyond))
    with pytest.raises(ValueError, match=r"beyond .* got -1"):
        display.plot(beyond=-1)
    with pytest.raises(TypeError, match=r"beyond .* got 2\.5"):
        display.plot(beyond=2.5)


def test_columns_that_come_together_and_that_leave():
    supports = np.zeros((4, 8))
    supports[1, :2] = supports[2, 1:3] = supports[3, :4] = 1
    display = path_of(supports, [9, 5, 1, 0]).plot()
    assert row_names(display.ax_) == ["no column", "+ age, bmi", "+ dose \N{MINUS SIGN} age", "+ age, pulse"]
    assert texts(display.ax_)[0] == "needed: 2 columns"
    display.figure_.draw_without_rendering()
    assert display.ax_.get_xlim()[0] < 0  # a divergence of zero is on the page
    assert texts(path_of(np.eye(2, 8, -1), [9, 1]).plot().ax_)[0] == "needed: 1 column"
    assert texts(path_of(np.zeros((1, 8)), [0], radius=0.0).plot().ax_)[0] == "needed: 0 columns"


@pytest.mark.parametrize("n_supports", [12, 60, 61])
def test_many_summaries_stay_on_the_page(n_supports):
    supports = np.tril(np.ones((n_supports, n_supports), bool), -1)
    names = [f"a gene with a long name, number {j}" for j in range(n_supports)]
    display = path_of(supports, np.geomspace(1e5, 0.01, n_supports), names=names).plot(beyond=None)
    assert outside(display.figure_) == []
    along = 1 if n_supports <= 60 else 0
    np.testing.assert_array_equal(drawn(display.points_, along), display.distances)


@pytest.mark.parametrize(
    "radius", [1e3, *(pytest.param(radius, marks=pytest.mark.slow) for radius in (1e-3, 2.0, 14.0))]
)
@pytest.mark.parametrize(
    ("n_supports", "largest", "size", "fewest"),
    [
        *[(n, largest, size, 3) for n in (12, 61) for largest in (1.3, 50, 1e6) for size in (None, (12, 9))],
        *[(n, largest, (3.5, 2.6), 2) for n in (5, 12) for largest in (1.3, 50)],
    ],
)
def test_numbers_on_the_scale_can_be_read(n_supports, largest, size, fewest, radius):
    """None lies on another one, they are spread over the scale, and no point is cut off."""
    supports = np.tril(np.ones((n_supports, n_supports), bool), -1)
    made = path_of(supports, radius * np.geomspace(largest, 0.1, n_supports), radius, [f"x{j}" for j in range(99)])
    ax = None if size is None else plt.subplots(figsize=size, layout="constrained")[1]
    display = made.plot(beyond=None, ax=ax)
    assert outside(display.figure_) == []
    axis = display.ax_.xaxis if n_supports <= 60 else display.ax_.yaxis
    low, high = axis.get_view_interval()
    assert low < 0 < made.distances.max() < high
    assert not overlap(axis.get_ticklabels())
    places = axis.get_transform().transform(np.array([low, *axis.get_ticklocs(), high]))
    assert len(axis.get_ticklabels()) >= fewest
    assert np.diff(places).max() < 0.7 * (places[-1] - places[0])


def test_what_is_accepted(selector, model, data):
    pipeline = make_pipeline(model[0], selector, LogisticRegression())
    for holder in (pipeline, make_pipeline(model[0], make_pipeline(selector, LogisticRegression()))):
        inside = SelectionPathDisplay.from_estimator(holder)
        np.testing.assert_array_equal(inside.distances, selector.path_["distances"])
        assert list(inside.names) == list(data[0].columns)
    for wrong in (model, model[-1], make_pipeline(selector, selector)):
        with pytest.raises(TypeError, match="HorseshoeSelector is wanted"):
            SelectionPathDisplay.from_estimator(wrong)
    with pytest.raises(NotFittedError):
        SelectionPathDisplay.from_estimator(HorseshoeSelector())
    other = HorseshoeSelector(model[-1], rule="interval", prefit=True).fit(model[:-1].transform(data[0]))
    with pytest.raises(ValueError, match="rule='interval'"):
        SelectionPathDisplay.from_estimator(other)
