"""The displays draw the statistics of the draws: tests of the artists' data, not of pixels."""

import sys
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.plotting import (
    AutocorrelationDisplay,
    CoefficientsDisplay,
    PosteriorCalibrationDisplay,
    ProbabilityIntervalDisplay,
    ShrinkageDisplay,
    TraceDisplay,
)

NAMES = ["age", "bmi", "dose", "pulse", "weight", "height", "sodium", "potassium"]


@pytest.fixture(autouse=True)
def _figures():
    with mpl.rc_context(), mpl.rc_context({"backend": "Agg"}):
        yield
        plt.close("all")


@pytest.fixture(scope="module")
def data(problem):
    X, y = problem
    index = [f"patient {i}" for i in range(len(X))]
    return pd.DataFrame(3 * X + 1, columns=NAMES, index=index), np.where(y, "well", "ill")


@pytest.fixture(scope="module")
def model(data, short_fit):
    """A Pipeline: the displays look through it."""
    X, y = data
    scaler = StandardScaler().set_output(transform="pandas").fit(X)
    return make_pipeline(scaler, short_fit(scaler.transform(X), y, n_iter=200, burn_in=100))


@pytest.fixture
def clf(model):
    return model[-1]


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


def make(display, model, data, **kwargs):
    X, y = data
    needs = {ProbabilityIntervalDisplay: (X[:20], y[:20]), PosteriorCalibrationDisplay: (X, y)}
    return display.from_estimator(model, *needs.get(display, ()), **kwargs)


DISPLAYS = [
    AutocorrelationDisplay,
    CoefficientsDisplay,
    PosteriorCalibrationDisplay,
    ProbabilityIntervalDisplay,
    ShrinkageDisplay,
    TraceDisplay,
]


def drawn(lines, along):
    """Data of lines, put together and sorted by the coordinate that counts the rows: 0 for x, 1 for y."""
    points = np.concatenate([line.get_xydata() for line in lines])
    return points[np.argsort(points[:, along]), 1 - along]


def segments(collections, along):
    """Ends of intervals (2, n), likewise."""
    ends = np.concatenate([np.array(c.get_segments()).reshape(-1, 2, 2) for c in collections])
    return ends[np.argsort(ends[:, 0, along])][:, :, 1 - along].T


def texts(ax):
    return [text.get_text() for text in ax.legend_.get_texts()]


# ---------------------------------------------------------------------------------------------- what all displays share


@pytest.mark.parametrize("display", DISPLAYS)
def test_what_is_accepted(display, model, data):
    X, y = data
    with pytest.raises(TypeError, match=r"ends with one; got LogisticRegression\."):
        make(display, LogisticRegression().fit(X, y), data)
    search = GridSearchCV(make_pipeline(StandardScaler(), HorseshoeProbitClassifier()), {})
    with pytest.raises(TypeError, match=r"got GridSearchCV.*best_estimator_"):
        make(display, search, data)
    with pytest.raises(NotFittedError):
        make(display, HorseshoeProbitClassifier(), data)


@pytest.mark.parametrize("display", DISPLAYS)
def test_matplotlib_is_asked_for_when_drawing(display, model, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=f"{display.__name__}.plot requires matplotlib"):
        make(display, model, data)


@pytest.mark.parametrize("display", DISPLAYS)
def test_plot_only_draws(display, model, data):
    """A second drawing, on axes that are given, shows the same and leaves the stored data alone."""
    shown = make(display, model, data)
    stored = {name: np.copy(value) for name, value in vars(shown).items() if not name.endswith("_")}
    first = getattr(shown, "lines_", None) or getattr(shown, "points_", None) or [shown.line_]
    figure, ax = plt.subplots()
    assert shown.plot(ax=ax) is shown
    assert shown.figure_ is figure
    for name, value in stored.items():
        np.testing.assert_array_equal(getattr(shown, name), value)
    second = getattr(shown, "lines_", None) or getattr(shown, "points_", None) or [shown.line_]
    for one, two in zip(np.ravel(first), np.ravel(second), strict=True):
        assert one.figure is not two.figure
        if hasattr(one, "get_xydata"):
            np.testing.assert_array_equal(one.get_xydata(), two.get_xydata())


@pytest.mark.parametrize("display", [CoefficientsDisplay, ProbabilityIntervalDisplay, PosteriorCalibrationDisplay])
@pytest.mark.parametrize("level", [0, 1, 90, "0.9"])
def test_bad_levels(display, model, data, level):
    with pytest.raises(ValueError, match=r"between 0 and 1, as in 0\.9 for 90 %; got"):
        make(display, model, data, level=level)


@pytest.mark.parametrize("display", [CoefficientsDisplay, ShrinkageDisplay])
def test_bad_top_and_order(display, model):
    with pytest.raises(ValueError, match="top must be at least 1; got 0"):
        display.from_estimator(model, top=0)
    with pytest.raises(TypeError, match=r"top must be a whole number; got 2\.5"):
        display.from_estimator(model, top=2.5)
    with pytest.raises(ValueError, match="order must be one of 'size', 'name', 'original'; got 'abs'"):
        display.from_estimator(model, order="abs")


# --------------------------------------------------------------------------------------------------------- coefficients


def test_coefficients_are_those_of_the_draws(model, clf):
    display = CoefficientsDisplay.from_estimator(model, level=0.8, order="original")
    draws = clf.coef_draws_.reshape(-1, 8)
    np.testing.assert_allclose(drawn(display.points_, 1), draws.mean(axis=0))
    np.testing.assert_allclose(segments(display.lines_, 1), np.quantile(draws, [0.1, 0.9], axis=0))
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == NAMES
    assert "80 %" in display.ax_.get_xlabel()


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
    assert texts(display.ax_)[0] == f"below 0.3: {len(below)} of 8"
    display.plot(top=3)
    np.testing.assert_array_equal(display.shown_, np.argsort(clf.shrinkage_)[:3])
    assert display.ax_.get_ylabel() == "the 3 least shrunk of 8"


def test_a_thousand_shrinkages(many):
    kappa = np.linspace(0.99, 0.45, 1000)
    display = ShrinkageDisplay(names=many["names"], shrinkage=kappa).plot()
    np.testing.assert_array_equal(drawn(display.points_, 0), np.sort(kappa))
    n_below = np.count_nonzero(kappa < 0.5)
    assert texts(display.ax_)[0].startswith(f"below 0.5: {n_below} of 1000\n(gene 999, gene 998")


@pytest.mark.parametrize("n_rows", [10, 60, 61, 1000])
def test_names_and_numbers_do_not_overlap(many, n_rows):
    display = CoefficientsDisplay(**many).plot(top=n_rows)
    display.figure_.canvas.draw()
    ax = display.ax_
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels]
        assert not any(one.overlaps(two) for one, two in pairwise(boxes))
    for label in (ax.xaxis.label, ax.yaxis.label, *ax.legend_.get_texts()):
        box, page = label.get_window_extent(), display.figure_.bbox
        assert page.x0 <= box.x0
        assert box.x1 <= page.x1
        assert page.y0 <= box.y0
        assert box.y1 <= page.y1


# --------------------------------------------------------------------------------------------------------------- chains


def test_traces_and_ranks_are_those_of_the_draws(model, clf):
    display = TraceDisplay.from_estimator(model, names=["dose", "(intercept)", "(global scale)"], n_bins=10)
    everything = clf.coef_draws_[..., 2], clf.intercept_draws_, clf.global_scale_draws_
    for row, draws in enumerate(everything):
        ranks = pd.Series(draws.ravel()).rank().to_numpy().reshape(draws.shape)  # a rejected proposal makes a tie
        for c, chain in enumerate(draws):
            np.testing.assert_array_equal(display.lines_[row][c].get_ydata(), chain)
            bins = np.floor((ranks[c] - 0.5) * 10 / draws.size)
            shares = [np.mean(bins == b) * 10 for b in range(10)]
            np.testing.assert_allclose(display.ranks_[row, c], shares)
            heights = [bar.get_height() for bar in display.bars_[row][c]]
            np.testing.assert_allclose(np.divide(heights, heights[0]), np.divide(shares, shares[0]))
    assert display.axes_[0, 0].get_title(loc="left").startswith(f"dose: R-hat {clf.rhat_[2]:.3f}, ESS")


def test_a_chain_that_is_elsewhere_has_its_own_ranks():
    draws = np.random.default_rng(0).standard_normal((1, 4, 100))
    draws[0, 1] += 100
    display = TraceDisplay(names=["x0"], draws=draws).plot(n_bins=20)
    np.testing.assert_allclose(display.ranks_[0, 1], [0] * 15 + [4] * 5)
    assert (display.ranks_[0, [0, 2, 3], 15:] == 0).all()


def test_where_traces_are_drawn(model):
    figure, axes = plt.subplots(2, 2)
    display = TraceDisplay.from_estimator(model, names=["age", "bmi"], ax=axes)
    assert display.axes_ is axes
    assert display.figure_ is figure
    with pytest.raises(ValueError, match=r"3 quantities need axes of shape \(3, 2\); got shape \(2, 2\)"):
        TraceDisplay.from_estimator(model, ax=axes)
    figure, ax = plt.subplots()
    assert TraceDisplay.from_estimator(model, worst=2, ax=ax).axes_.shape == (2, 2)
    assert not ax.axison


@pytest.mark.parametrize("n_chains", [1, 4, 8])
def test_chains_differ_in_grey(n_chains):
    """Each is lighter than the one before, for a reader who sees no colours, and none is as light as the paper."""
    draws = np.random.default_rng(0).standard_normal((1, n_chains, 50))
    lines = TraceDisplay(names=["x0"], draws=draws).plot().lines_[0]
    grey = np.array([mpl.colors.to_rgb(line.get_color()) for line in lines]) @ [0.299, 0.587, 0.114]
    assert (np.diff(grey) > 0.05).all()
    assert grey[-1] < 0.8


def test_autocorrelations_are_those_of_the_draws(model, clf):
    display = AutocorrelationDisplay.from_estimator(model, names=["dose", "(global scale)"], max_lag=20)
    for line, draws in zip(display.lines_, [clf.coef_draws_[..., 2], clf.global_scale_draws_], strict=True):
        curve = line.get_ydata()
        assert curve.shape == (21,)
        halves = draws.reshape(8, -1)
        centred = halves - halves.mean(axis=1, keepdims=True)
        lag_one = (centred[:, 1:] * centred[:, :-1]).sum() / (centred**2).sum()
        assert curve[0] == 1
        assert curve[1] == pytest.approx(lag_one, abs=0.05)  # the mean of the chains counts too
    assert texts(display.ax_)[0] == f"dose (ESS {clf.ess_[2]:.0f})"
    styles = {
        (line.get_linestyle(), line.get_marker())
        for line in AutocorrelationDisplay.from_estimator(model, worst=8).lines_
    }
    assert len(styles) == 8


def test_the_worst_mixing_come_first(model, clf):
    names = TraceDisplay.from_estimator(model, worst=3).names
    assert AutocorrelationDisplay.from_estimator(model, worst=3).names == names
    ess = clf.summary()["ess"]
    assert list(ess[names]) == sorted(ess)[:3]


@pytest.mark.parametrize("display", [TraceDisplay, AutocorrelationDisplay])
def test_bad_names_and_counts(display, model):
    with pytest.raises(ValueError, match=r"no 'sodum' among the 10 quantities.*Did you mean 'sodium'\?"):
        display.from_estimator(model, names=["age", "sodum"])
    with pytest.raises(ValueError, match=r"no 3 among .*\(global scale\)"):
        display.from_estimator(model, names=[3])
    with pytest.raises(ValueError, match="names is empty"):
        display.from_estimator(model, names=[])
    with pytest.raises(ValueError, match="worst must be at least 1; got -1"):
        display.from_estimator(model, worst=-1)
    assert display.from_estimator(model, names="age").names == ["age"]


def test_limits_of_the_chain_displays(model, data, short_fit):
    with pytest.raises(ValueError, match="At most 8 curves can be told apart; got 9"):
        AutocorrelationDisplay.from_estimator(model, worst=9)
    with pytest.raises(ValueError, match="n_bins must be at least 2; got 1"):
        TraceDisplay.from_estimator(model, n_bins=1)
    short = short_fit(*data, n_iter=3)
    with pytest.raises(ValueError, match="more than 3 draws a chain; got 3"):
        AutocorrelationDisplay.from_estimator(short)
    assert AutocorrelationDisplay.from_estimator(model, max_lag=10**6).autocorrelations.shape == (4, 100)


# -------------------------------------------------------------------------------------------------------- probabilities


def test_probability_intervals_are_those_of_the_draws(model, clf, data):
    from scipy.special import ndtr

    X, y = data
    display = ProbabilityIntervalDisplay.from_estimator(model, X[:30], y[:30], level=0.5, order="original")
    np.testing.assert_allclose(drawn(display.points_, 1), model.predict_proba(X[:30])[:, 1])
    scaled = model[0].transform(X[:30]).to_numpy()
    draws = ndtr(np.einsum("cdp,np->ncd", clf.coef_draws_, scaled) + clf.intercept_draws_)
    np.testing.assert_allclose(segments(display.lines_, 1), np.quantile(draws, [0.25, 0.75], axis=(1, 2)))
    np.testing.assert_array_equal(display.points_[0].get_ydata(), np.flatnonzero(y[:30] == "well"))
    assert texts(display.ax_) == ["in truth well", "in truth ill"]
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(X.index[:30])
    assert display.ax_.get_xlabel() == "probability of well and 50 % interval"


def test_order_and_number_of_probabilities(model, data):
    X, _ = data
    display = ProbabilityIntervalDisplay.from_estimator(model, X)
    proba = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(drawn(display.points_, 0), np.sort(proba)[::-1])
    assert len(display.points_) == 1
    assert display.legend_ is None
    assert ProbabilityIntervalDisplay.from_estimator(model, X[:2].reset_index()[NAMES]).names == [0, 1]


def test_bad_labels(model, data):
    X, y = data
    for display in (ProbabilityIntervalDisplay, PosteriorCalibrationDisplay):
        with pytest.raises(ValueError, match=r"one label for each of the 4 rows of X; got shape \(3,\)"):
            display.from_estimator(model, X[:4], y[:3])
        with pytest.raises(ValueError, match=r"not fitted with: \['dead'\]"):
            display.from_estimator(model, X[:4], ["dead", "ill", "well", "well"])
    with pytest.raises(ValueError, match="order must be one of 'probability', 'original'"):
        ProbabilityIntervalDisplay.from_estimator(model, X[:4], order="size")


def test_calibration_curve_is_the_isotonic_regression(model, data):
    X, y = data
    display = PosteriorCalibrationDisplay.from_estimator(model, X, y)
    proba = model.predict_proba(X)[:, 1]
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(proba, y == "well")
    np.testing.assert_array_equal(display.line_.get_xdata(), np.unique(proba))
    np.testing.assert_allclose(display.line_.get_ydata(), isotonic.predict(np.unique(proba)))
    assert display.counts.sum() == len(X)
    lower, upper = display.band
    assert (lower <= upper).all()
    assert display.ax_.get_ylabel() == "observed share of well"
    # Rows that come more than once have one place on the axis, and count as often as they come.
    more = np.r_[np.arange(len(X)), np.repeat(np.arange(50), 3)]
    again = PosteriorCalibrationDisplay.from_estimator(model, X.iloc[more], y[more])
    np.testing.assert_array_equal(again.predicted, display.predicted)
    isotonic.fit(proba[more], y[more] == "well")
    np.testing.assert_allclose(again.observed, isotonic.predict(again.predicted))


def test_the_band_holds_the_curve_if_the_model_is_right(weak_problem, short_fit, seed):
    """Outcomes drawn from the model's own probabilities are in the band of 90 %; those of another model are not."""
    X, y = weak_problem
    fit = short_fit(X, y, n_iter=200, burn_in=100)
    proba = fit.predict_proba(X)[:, 1]
    rng = np.random.default_rng(seed)

    def share_inside(outcomes):
        display = PosteriorCalibrationDisplay.from_estimator(fit, X, outcomes.astype(int), n_draws=200)
        plt.close()
        return ((display.band[0] <= display.observed) & (display.observed <= display.band[1])).mean()

    # The shares of 20 samples vary by about 0.15 each, and their mean by 0.04; that of the band is at least 0.9, since
    # it holds what is open about the coefficients too.
    assert np.mean([share_inside(rng.random(len(X)) < proba) for _ in range(20)]) > 0.8
    assert np.mean([share_inside(rng.random(len(X)) < proba / 2) for _ in range(5)]) < 0.6


def test_calibration_is_reproducible_and_can_be_enlarged(model, data):
    X, y = data
    one, two = (PosteriorCalibrationDisplay.from_estimator(model, X, y, n_draws=50) for _ in range(2))
    np.testing.assert_array_equal(one.band, two.band)
    one.plot(limit=0.1)
    assert one.ax_.get_xlim() == one.ax_.get_ylim() == (0, 0.1)
    heights = np.array([bar.get_height() for bar in one.bars_])
    counts, _ = np.histogram(model.predict_proba(X)[:, 1], 40, range=(0, 0.1))
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max())
    with pytest.raises(ValueError, match=r"at most 1; got 1\.5"):
        one.plot(limit=1.5)
    with pytest.raises(ValueError, match="n_draws must be at least 20; got 5"):
        PosteriorCalibrationDisplay.from_estimator(model, X, y, n_draws=5)
