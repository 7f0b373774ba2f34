"""Probabilities of rows and their calibration as they are drawn: tests of the artists' data, not of pixels."""

import warnings

import numpy as np
import pandas as pd
import pytest
from artists import NAMES, dashed, drawn, outside, overlap, row_names, segments, texts
from matplotlib import pyplot as plt
from scipy.sparse import csr_matrix
from scipy.special import ndtr
from sklearn.isotonic import IsotonicRegression

from skhorseshoe.plotting import EffectsDisplay, PosteriorCalibrationDisplay, ProbabilityIntervalDisplay


def test_probability_intervals_are_those_of_the_draws(model, clf, data):
    X, y = data
    display = ProbabilityIntervalDisplay.from_estimator(model, X[:30], y[:30], level=0.5, order="original")
    np.testing.assert_allclose(drawn(display.points_, 1), model.predict_proba(X[:30])[:, 1])
    scaled = model[0].transform(X[:30]).to_numpy()
    draws = ndtr(np.einsum("cdp,np->ncd", clf.coef_draws_, scaled) + clf.intercept_draws_)
    np.testing.assert_allclose(segments(display.lines_, 1), np.quantile(draws, [0.25, 0.75], axis=(1, 2)))
    np.testing.assert_array_equal(display.points_[0].get_ydata(), np.flatnonzero(y[:30] == "well"))
    assert texts(display.ax_) == ["in truth 'well'", "in truth 'ill'"]
    assert row_names(display.ax_) == list(X.index[:30])
    assert display.ax_.get_xlabel() == "probability of 'well' and 50 % interval"


def test_rows_without_labels_are_all_alike_by_probability(model, data):
    X, _ = data
    display = ProbabilityIntervalDisplay.from_estimator(model, X)
    proba = model.predict_proba(X)[:, 1]
    np.testing.assert_allclose(drawn(display.points_, 0), np.sort(proba)[::-1])
    assert len(display.points_) == 1
    assert display.legend_ is None
    assert ProbabilityIntervalDisplay.from_estimator(model, X[:2].reset_index()[NAMES]).names == [0, 1]


def test_the_threshold_of_probabilities_is_dashed(model, data):
    display = ProbabilityIntervalDisplay.from_estimator(model, data[0][:5], threshold=0.2)
    assert dashed(display.ax_) == 0.2
    assert dashed(display.plot().ax_) == 0.5


def test_rows_that_are_sparse(data, short_fit):
    X, y = csr_matrix(data[0].to_numpy()), data[1]
    fit = short_fit(X, y)
    display = ProbabilityIntervalDisplay.from_estimator(fit, X[:5], y[:5])
    assert display.names == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(display.interval, fit.predict_interval(X[:5]).T)
    PosteriorCalibrationDisplay.from_estimator(fit, X, y, n_draws=20)


def test_bad_labels(model, data):
    X, y = data
    for display in (ProbabilityIntervalDisplay, PosteriorCalibrationDisplay):
        with pytest.raises(ValueError, match="inconsistent"):
            display.from_estimator(model, X[:4], y[:3])
        with pytest.raises(ValueError, match="'dead'"):
            display.from_estimator(model, X[:4], ["dead", "ill", "well", "well"])
    with pytest.raises(ValueError, match=r"order .*'probability', 'original'"):
        ProbabilityIntervalDisplay.from_estimator(model, X[:4], order="size")


def test_labels_and_weights_in_another_order_than_the_rows_are_told(model, data):
    X, y = data[0].iloc[:30], pd.Series(data[1][:30], data[0].index[:30])
    weight = pd.Series(np.ones(30), X.index)
    for ask, name, values in (
        (ProbabilityIntervalDisplay.from_estimator, "y", y),
        (PosteriorCalibrationDisplay.from_estimator, "y", y),
        (EffectsDisplay.from_estimator, "sample_weight", weight),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ask(model, X, **{name: values})
        with pytest.warns(UserWarning, match=f"X and {name} have the same index labels in another order"):
            ask(model, X, **{name: values[::-1]})


@pytest.fixture(scope="module")
def with_copies(data):
    """Rows of which some are there four times."""
    return [each[np.r_[:200, np.repeat(np.arange(50), 3)]] for each in (data[0].iloc, data[1])]


def test_calibration_curve_is_the_isotonic_regression(model, with_copies):
    X, y = with_copies
    display = PosteriorCalibrationDisplay.from_estimator(model, X, y)
    proba = model.predict_proba(X)[:, 1]
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(proba, y == "well")
    np.testing.assert_array_equal(display.line_.get_xdata(), np.unique(proba))
    np.testing.assert_allclose(display.line_.get_ydata(), isotonic.predict(np.unique(proba)))
    assert display.counts.sum() == len(X)
    lower, upper = display.band
    assert (lower <= upper).all()
    assert display.ax_.get_ylabel() == "observed share of 'well'"


def test_the_band_holds_the_curve_if_the_model_is_right(weak_problem, short_fit, seed):
    """Outcomes drawn from the model's own probabilities are in the band of 90 %; those of another model are not."""
    X, y = weak_problem
    fit = short_fit(X, y, n_iter=200, burn_in=100)
    proba = fit.predict_proba(X)[:, 1]
    rng = np.random.default_rng(seed)

    def share_inside(outcomes):
        display = PosteriorCalibrationDisplay.from_estimator(fit, X, outcomes.astype(int), n_draws=100)
        plt.close()
        return ((display.band[0] <= display.observed) & (display.observed <= display.band[1])).mean()

    # The shares of 20 samples vary by about 0.15 each, and their mean by 0.04; that of the band is at least 0.9, since
    # it holds what is open about the coefficients too.
    assert np.mean([share_inside(rng.random(len(X)) < proba) for _ in range(20)]) > 0.8
    assert np.mean([share_inside(rng.random(len(X)) < proba / 2) for _ in range(5)]) < 0.6


def test_calibration_is_reproducible_and_can_be_enlarged(model, with_copies):
    X, y = with_copies
    one, two = (PosteriorCalibrationDisplay.from_estimator(model, X, y, n_draws=50) for _ in range(2))
    np.testing.assert_array_equal(one.band, two.band)
    one.plot(limit=0.1)
    assert one.ax_.get_xlim() == one.ax_.get_ylim() == (0, 0.1)
    heights = np.array([bar.get_height() for bar in one.bars_])
    counts, _ = np.histogram(model.predict_proba(X)[:, 1], 40, range=(0, 0.1))
    np.testing.assert_allclose(heights / heights.max(), counts / counts.max())
    with pytest.raises(ValueError, match=r"limit .* got 1\.5"):
        one.plot(limit=1.5)
    with pytest.raises(ValueError, match=r"n_draws .* got 5"):
        PosteriorCalibrationDisplay.from_estimator(model, X, y, n_draws=5)


def calibration_of(predicted, counts=1):
    predicted = np.array(predicted, float)
    counts = np.broadcast_to(counts, predicted.shape)
    return PosteriorCalibrationDisplay(
        **{"predicted": predicted, "observed": predicted, "band": np.stack([predicted, predicted])},
        **{"counts": counts, "level": 0.9, "label": "ill"},
    )


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.1, 0.02, 0.003, 1e-4])
@pytest.mark.parametrize("power", [0.5, 1, 8])
def test_the_axes_end_where_the_predictions_do(scale, power, seed):
    """At a round number, with a few more of them before it; rows that lie beyond are told."""
    predicted = np.sort(scale * np.random.default_rng(seed).random(5000) ** power)
    ax = calibration_of(predicted).plot().ax_
    (low, limit), page = ax.get_xlim(), ax.figure
    assert ax.get_ylim() == (low, limit)
    assert f"{limit:.0e}"[0] in "125"
    inside = predicted <= limit
    assert predicted[inside].sum() > 0.949 * predicted.sum()
    assert predicted[predicted <= 0.4 * limit].sum() < 0.95 * predicted.sum()
    beyond = f"({(~inside).sum()} of 5000 rows are beyond)"
    assert ax.get_xlabel().partition("\n")[2] == ("" if inside.all() else beyond)
    assert outside(page) == []
    for labels in (ax.get_xticklabels(), ax.get_yticklabels()):
        drawn_labels = [label for label in labels if label.get_text()]
        assert 3 <= len(drawn_labels) <= 7
        assert not overlap(drawn_labels)


def test_few_rows_that_are_far_out_leave_the_axes_alone():
    predicted, counts = [0.0, 0.01, 0.015, 0.9], [9000, 500, 500, 0.1]
    ax = calibration_of(predicted, counts).plot().ax_
    assert ax.get_xlim() == (0, 0.02)
    assert calibration_of(predicted, counts).plot(limit=1).ax_.get_xlabel() == "predicted probability of 'ill'"
    for only in (0.0, 1.0, 0.5):
        assert only <= calibration_of([only]).plot().ax_.get_xlim()[1] <= 1


def test_the_level_of_calibration_is_that_of_its_band(model, data):
    wide, narrow = (
        PosteriorCalibrationDisplay.from_estimator(model, *data, level=level, n_draws=100) for level in (0.9, 0.5)
    )
    assert (wide.band[0] <= narrow.band[0]).all()
    assert (narrow.band[1] <= wide.band[1]).all()
    assert np.ptp(wide.band, axis=0).mean() > 1.3 * np.ptp(narrow.band, axis=0).mean()
