"""Coefficients and their shrinkage as they are drawn: tests of the artists' data, not of pixels."""

import numpy as np
import pytest
from artists import NAMES, dashed, drawn, outside, overlap, row_names, segments, texts

from skhorseshoe.plotting import CoefficientsDisplay, ShrinkageDisplay


@pytest.fixture
def many():
    """Statistics of a thousand coefficients, four of them away from zero."""
    mean = np.sin(np.arange(1000.0)) / 50
    mean[[3, 500, 501, 900]] = [1, -3, 2, -1.5]
    return {
        "names": [f"gene {j}" for j in range(1000)],
        "mean": mean,
        "interval": mean + np.array([[-0.1], [0.1]]),
        "level": 0.9,
    }


def test_coefficients_are_those_of_the_draws(model, clf):
    display = CoefficientsDisplay.from_estimator(model, level=0.8, order="original")
    draws = clf.coef_draws_.reshape(-1, 8)
    np.testing.assert_allclose(drawn(display.points_, 1), draws.mean(axis=0))
    np.testing.assert_allclose(segments(display.lines_, 1), np.quantile(draws, [0.1, 0.9], axis=0))
    assert row_names(display.ax_) == NAMES
    assert display.ax_.get_xlabel() == "coefficient: mean and 80 % interval\n(positive favours 'well')"
    display.classes = np.array([0, 1])
    assert display.plot().ax_.get_xlabel().endswith("(positive favours class 1)")


def test_selected_coefficients_are_marked(model, clf):
    display = CoefficientsDisplay.from_estimator(model, order="original")
    low, high = np.quantile(clf.coef_draws_, [0.05, 0.95], axis=(0, 1))
    clear = np.flatnonzero((low > 0) | (high < 0))
    assert 0 < len(clear) < 8
    np.testing.assert_array_equal(display.points_[0].get_ydata(), clear)
    assert texts(display.ax_) == ["90 % interval excludes zero", "includes zero"]

    mask = np.arange(8) % 3 == 0
    display = CoefficientsDisplay.from_estimator(model, selected=mask, order="original")
    np.testing.assert_array_equal(display.points_[0].get_ydata(), [0, 3, 6])
    assert texts(display.ax_) == ["selected", "not selected"]
    for wrong in ([0, 3, 6], mask[:5], ["age"]):
        with pytest.raises(ValueError, match=r"boolean mask of shape \(8,\)"):
            CoefficientsDisplay.from_estimator(model, selected=wrong)


def test_top_and_order_of_coefficients(model, clf):
    size = np.abs(clf.coef_draws_.mean(axis=(0, 1)))
    display = CoefficientsDisplay.from_estimator(model, top=5)
    np.testing.assert_array_equal(display.shown_, np.argsort(-size)[:5])
    assert display.ax_.get_ylabel() == "the 5 largest of 8"
    display.plot(top=5, order="name")
    assert [NAMES[j] for j in display.shown_] == sorted(NAMES[j] for j in np.argsort(-size)[:5])
    display.plot(top=5, order="original")
    np.testing.assert_array_equal(display.shown_, np.sort(np.argsort(-size)[:5]))
    display.plot(top=1000)
    assert len(display.shown_) == 8


def test_a_thousand_coefficients(many):
    display = CoefficientsDisplay(**many).plot()
    np.testing.assert_array_equal(display.shown_[:4], [500, 501, 900, 3])
    assert len(display.ax_.get_yticklabels()) == 20
    assert display.ax_.get_ylabel() == "the 20 largest of 1000"

    display.plot(top=None, order="original")
    np.testing.assert_array_equal(drawn(display.points_, 0), many["mean"])
    np.testing.assert_allclose(segments(display.lines_, 0), many["interval"])
    assert texts(display.ax_)[0].endswith("(gene 3, gene 500, gene 501, gene 900)")

    display.selected = np.arange(1000) < 30
    display.plot(top=None)
    assert texts(display.ax_)[0].endswith(" and 22 more)")


def test_shrinkage_is_that_of_the_model(model, clf):
    display = ShrinkageDisplay.from_estimator(model, order="original", threshold=0.3)
    np.testing.assert_array_equal(drawn(display.points_, 1), clf.shrinkage_)
    below = np.flatnonzero(clf.shrinkage_ < 0.3)
    np.testing.assert_array_equal(display.points_[0].get_ydata(), below)
    assert dashed(display.ax_) == 0.3
    assert texts(display.ax_)[0] == f"below 0.3: {len(below)} of 8"
    display.plot(top=3)
    np.testing.assert_array_equal(display.shown_, np.argsort(clf.shrinkage_)[:3])
    assert display.ax_.get_ylabel() == "the 3 least shrunk of 8"


def test_the_twenty_least_shrunk_are_drawn_and_it_is_said():
    display = ShrinkageDisplay(names=[f"x{j}" for j in range(25)], shrinkage=np.linspace(0.9, 0.1, 25)).plot()
    np.testing.assert_array_equal(display.shown_, np.arange(24, 4, -1))
    assert display.ax_.get_ylabel() == "the 20 least shrunk of 25"
    display.plot(top=None)
    assert len(display.shown_) == 25
    assert display.ax_.get_ylabel() == ""


@pytest.mark.parametrize("n_rows", [60, 61])
def test_names_and_numbers_do_not_overlap(many, n_rows):
    display = CoefficientsDisplay(**many).plot(top=n_rows)
    display.figure_.draw_without_rendering()
    ax = display.ax_
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        assert not overlap(labels)
    assert outside(display.figure_) == []
