"""The way from the average row to one of them, as it is drawn."""

import numpy as np
import pytest
from artists import drawn, outside, row_names, segments
from matplotlib import pyplot as plt
from scipy.sparse import csr_array
from scipy.special import expit, logit
from scipy.stats import norm

from skhorseshoe.inspection import contributions, predict_interval
from skhorseshoe.plotting import ContributionsDisplay


def test_bars_lead_from_the_reference_to_the_row(model, data):
    X = data[0]
    display = ContributionsDisplay.from_estimator(model, X.iloc[[4]], X.iloc[9], top=3, level=0.8)
    table = contributions(model, X.iloc[[4]], X.iloc[9], top=3, level=0.8).loc["patient 4"]
    parts = table.iloc[:-2]
    starts = display.score + np.append(0, np.cumsum(parts["mean"]))[:-1]
    bars = np.array([[bar.get_x(), bar.get_x() + bar.get_width()] for bar in display.bars_])
    np.testing.assert_allclose(np.sort(bars), np.sort(np.transpose([starts, starts + parts["mean"]])))
    np.testing.assert_allclose(segments(display.lines_[:1], 1), starts + parts[["10%", "90%"]].T)
    coef, intercept = model[-1].coef_draws_.mean(axis=(0, 1)), model[-1].intercept_draws_.mean()
    scores = np.asarray(model[0].transform(X.iloc[[9, 4]])) @ coef + intercept
    np.testing.assert_allclose(drawn(display.points_, 1), scores, atol=1e-9)
    ends = predict_interval(model, X.iloc[[9, 4]], 0.8)
    np.testing.assert_allclose(norm.cdf(segments(display.lines_[1:], 1)).T, ends, atol=1e-8)  # as far as is drawn
    labels = row_names(display.ax_)
    assert labels[1].startswith(f"{parts.index[0]} ")
    assert labels[-2] == "(5 others)"
    assert labels[0].startswith("reference: ")
    assert labels[-1].startswith("patient 4: ")
    assert outside(display.figure_) == []


def test_the_upper_axis_has_the_probabilities_of_the_scores(model, data):
    display = ContributionsDisplay.from_estimator(model, data[0].to_numpy()[:1], top=2)
    display.figure_.draw_without_rendering()
    ticks = [float(label.get_text().removesuffix(" %")) / 100 for label in display.upper_.get_xticklabels()]
    assert len(ticks) >= 2
    np.testing.assert_allclose(norm.cdf(display.upper_.get_xticks()), ticks)
    assert row_names(display.ax_)[-1].startswith("this row: ")


def test_probabilities_are_told_in_per_cent_and_never_as_0_or_100():
    picture = ContributionsDisplay(
        names=["age 71"],
        mean=np.array([2.0]),
        interval=np.array([[1.0], [3.0]]),
        rows=["average row", "this row"],
        score=-1.0,
        probability=np.array([[0.16, 0.004, 0.5], [0.992, 0.8349, 1.0]]),
        level=0.9,
        classes=np.array(["well", "ill"]),
        predictor=logit,
    ).plot()
    assert row_names(picture.ax_) == ["average row: 16 % (0.4 to 50 %)", "age 71", "this row: 99.2 % (83 to >99.9 %)"]
    assert picture.upper_.get_xlabel() == "probability of 'ill'"
    ticks = [float(label.get_text().removesuffix(" %")) / 100 for label in picture.upper_.get_xticklabels()]
    np.testing.assert_allclose(expit(picture.upper_.get_xticks()), ticks)


def test_a_small_figure_and_names_of_formulas_have_room(model, data, short_fit):
    figure, ax = plt.subplots(figsize=(3.5, 2.6), layout="constrained")
    ContributionsDisplay.from_estimator(model, data[0].iloc[[4]], top=4, ax=ax)
    assert outside(figure) == []
    X = data[0].rename(columns={"age": "$x_1$", "bmi": "two\nlines"})
    display = ContributionsDisplay.from_estimator(short_fit(X, data[1], n_iter=50), X.iloc[[0]])
    assert outside(display.figure_) == []
    assert any(r"\$x_1\$" in name for name in row_names(display.ax_))


def test_a_sure_row_is_drawn_too(model, data):
    sure = ContributionsDisplay.from_estimator(model, 50 * data[0].iloc[[4]])
    assert np.isfinite(segments(sure.lines_[1:], 1)).all()


def test_what_is_no_picture_of_one_row_is_refused(model, data, short_fit):
    X = data[0]
    sparse = csr_array(np.eye(4))
    with pytest.raises(ValueError, match=r"X must be one row.*got 4 rows"):
        ContributionsDisplay.from_estimator(short_fit(sparse, [0, 1, 0, 1]), sparse)
    for rows in (X[:2], X.iloc[[3, 3]]):
        with pytest.raises(ValueError, match=r"X must be one row.*got 2 rows"):
            ContributionsDisplay.from_estimator(model, rows)
    with pytest.raises(TypeError, match="terms=None is a table"):
        ContributionsDisplay.from_estimator(model, X[:1], terms=None)
    for top, error in ((0, ValueError), (61, ValueError), (None, TypeError)):
        with pytest.raises(error, match=rf"top must be .* got {top}"):
            ContributionsDisplay.from_estimator(model, X[:1], top=top)
