"""Net benefit and calibration of predicted probabilities, with draws of the population or of the posterior."""

import warnings
from functools import partial

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._posterior import decisions
from skhorseshoe._posterior.resampling import rows_alone
from skhorseshoe.inspection import at_least, calibration, net_benefit
from skhorseshoe.plotting import DecisionCurveDisplay, PosteriorCalibrationDisplay

THRESHOLDS = [0.05, 0.2, 0.5, 0.8]


@pytest.fixture(scope="module")
def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 3))
    return X, np.where(X[:, 0] + rng.standard_normal(300) > 0.5, "died", "alive")


@pytest.fixture(scope="module")
def model(rows, short_fit):
    X, y = rows
    return make_pipeline(StandardScaler().fit(X), short_fit(StandardScaler().fit_transform(X), y, n_chains=2))


@pytest.fixture(scope="module")
def grouped(rows, seed):
    X, y = rows
    return HorseshoeProbitClassifier(n_iter=40, burn_in=20, random_state=seed).fit(X, y, groups=np.arange(300) % 30)


def by_hand(p, died, threshold):
    """True positives, and false ones at the odds of the threshold."""
    true, false = (np.mean((p >= threshold) & which) for which in (died, ~died))
    return true - false * threshold / (1 - threshold)


def test_net_benefit_is_that_of_the_definition(model, rows):
    X, y = rows
    p, died = model.predict_proba(X)[:, 1], y == "died"
    curve = net_benefit(model, X, y, THRESHOLDS, level=0.8)
    assert [*curve] == ["net_benefit", "10%", "90%", "treat_all", "prob_useful"]
    np.testing.assert_allclose(curve["net_benefit"], [by_hand(p, died, t) for t in THRESHOLDS], atol=1e-15)
    np.testing.assert_allclose(curve["treat_all"], [by_hand(np.ones(300), died, t) for t in THRESHOLDS], atol=1e-14)
    np.testing.assert_allclose(curve[["10%", "90%"]].T, curve.draws.quantile([0.1, 0.9]), rtol=1e-12)
    at = THRESHOLDS[1]
    gain = (p >= at) * np.where(died, 1, -at / (1 - at))
    sd = np.sqrt(gain.var() / 301)  # of Rubin's posterior of a mean
    draws = curve.draws[at]
    assert abs(draws.mean() - gain.mean()) < 4.5 * sd / np.sqrt(1000)
    assert abs(draws.std() / sd - 1) < 4.5 / np.sqrt(2000)
    assert "expected" in net_benefit(model, X).attrs["header"]


def test_what_is_useful_is_better_than_acting_on_all_and_on_nobody(model, rows):
    X, y = rows
    curve = net_benefit(model, X, y, [1e-6, 0.4, 1 - 1e-9])
    assert curve["prob_useful"].tolist() == [0.0, 1.0, 0.0]  # all are acted on, and nobody
    turned = net_benefit(model, -X, y, [0.4])
    assert turned["prob_useful"].item() < 0.05


def test_without_labels_each_draw_of_the_posterior_has_its_own(model, rows):
    X, _ = rows
    p, samples = model.predict_proba(X)[:, 1], model[-1].predict_proba_samples(model[0].transform(X))
    curve = net_benefit(model, X, thresholds=THRESHOLDS)
    for t in THRESHOLDS:
        acts = p >= t
        expected = (acts[:, None] * (samples - (1 - samples) * t / (1 - t))).mean(axis=0)
        np.testing.assert_allclose(curve.draws[t], expected, atol=1e-13)
        assert curve.loc[t, "net_benefit"] == pytest.approx(expected.mean(), abs=1e-13)
    assert curve.draws.index.get_level_values("chain").nunique() == 2


def test_rows_of_a_group_are_drawn_together(grouped, model, rows):
    """Twenty patients, each of whom is there three times, are twenty; also for a model without groups."""
    X, y = rows[0][:20], rows[1][:20]
    again = np.repeat(np.arange(20), 3)
    for ask in (lambda *given, **more: net_benefit(*given, THRESHOLDS, **more), calibration):
        once = ask(grouped, X, y, groups=np.arange(20), new_groups=True)
        thrice = ask(grouped, X[again], y[again], groups=again, new_groups=True)
        np.testing.assert_allclose(thrice.draws, once.draws, rtol=1e-6, atol=1e-9)
        plain = [ask(model, X[i], y[i], groups={"patient": i}).draws for i in (np.arange(20), again)]
        np.testing.assert_allclose(*plain, rtol=1e-6, atol=1e-9)
        with pytest.warns(UserWarning, match="the intervals are too narrow"):
            alone = ask(grouped, X[again], y[again])
        moves = once.draws.std() > 0  # at a threshold that no probability reaches nothing does
        assert moves.sum() > 1
        assert (alone.draws.std() < 0.75 * once.draws.std())[moves].all()


def test_calibration_is_a_logistic_regression_of_the_labels_on_the_logits(model, rows):
    X, y = rows
    z, died = logit(model.predict_proba(X)[:, 1]), y == "died"
    found = calibration(model, X, y)
    fit = LogisticRegression(C=np.inf, tol=1e-10).fit(z[:, None], died)
    assert found.loc["slope", "estimate"] == pytest.approx(fit.coef_[0, 0], rel=1e-5)
    of_intercept = expit(z + found.loc["intercept", "estimate"])
    assert of_intercept.mean() == pytest.approx(died.mean(), abs=1e-9)
    assert [*found] == ["estimate", "5%", "95%"]
    weights = next(rows_alone(np.ones(300)).draws(300, 0))[7]
    drawn = LogisticRegression(C=np.inf, tol=1e-10).fit(z[:, None], died, sample_weight=weights)
    assert found.draws["slope"].iloc[7] == pytest.approx(drawn.coef_[0, 0], rel=1e-5)


def test_calibration_tells_what_was_done_to_the_logits(rows, seed):
    """Logits k z + c have the slope 1 / k; the intercept for a slope of 1 is moved by -c."""
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal(400)
    y, own = rng.random(400) < expit(z), rows_alone(np.ones(400))
    usual = decisions.calibration_of(expit(z), y, own, 0.9, 0)
    scaled, moved = (decisions.calibration_of(expit(other), y, own, 0.9, 0) for other in (3 * z, z + 0.7))
    np.testing.assert_allclose(scaled.draws["slope"], usual.draws["slope"] / 3, rtol=1e-5)
    np.testing.assert_allclose(moved.draws["slope"], usual.draws["slope"], rtol=1e-5)
    np.testing.assert_allclose(moved.draws["intercept"], usual.draws["intercept"] - 0.7, rtol=0, atol=1e-5)
    assert usual.loc["slope", "5%"] < 1.2
    assert usual.loc["slope", "95%"] > 0.8


def test_ordered_classes_are_asked_of_one_cut(rows, short_fit):
    X = rows[0]
    y = np.digitize(X[:, 0] + np.random.default_rng(0).standard_normal(300), [0, 1])
    ordered = short_fit(X, y, ordered=True)
    assert net_benefit(at_least(ordered, 2), X, y >= 2, [0.2])["net_benefit"].item() > 0
    for ask in (net_benefit, calibration):
        with pytest.raises(ValueError, match=rf"{ask.__name__} is of two classes.*inspection.at_least"):
            ask(ordered, X, y)


@pytest.mark.parametrize("wrong", [[], [0.2, 0.2], [0.0], 1.0, [np.nan], [0.2, 3]])
def test_thresholds_are_checked(wrong, model, rows):
    with pytest.raises(ValueError, match=r"thresholds must be .* above 0 and below 1 \(0\.2 for 20 %\); got"):
        net_benefit(model, *rows, wrong)


def test_what_has_no_slope_is_told(model, rows):
    X, y = rows
    order = np.argsort(model.predict_proba(X)[:, 1])
    for of_rows, labels in ((order, np.repeat(["alive", "died"], 150)), (order, np.repeat(["died", "alive"], 150))):
        with pytest.raises(ValueError, match=r"slope of these 300 rows is not known.*threshold of the probability"):
            calibration(model, X[of_rows], labels)
    for of_rows in (np.zeros(9, int), np.flatnonzero(y == "died")):  # one probability, one label
        with pytest.raises(ValueError, match="is not known: all have one label or one probability"):
            calibration(
                model,
                X[of_rows],
                np.where(np.arange(len(of_rows)) < 4, "alive", y[of_rows]) if len(of_rows) == 9 else y[of_rows],
            )
    assert PosteriorCalibrationDisplay.from_estimator(model, X[:1], y[:1], n_draws=20).calibration is None


def test_the_curve_and_the_two_numbers_are_drawn(model, rows):
    X, y = rows
    curve = net_benefit(model, X, y, level=0.5)
    display = DecisionCurveDisplay.from_estimator(model, X, y, level=0.5)
    for line, values in ((display.line_, curve["net_benefit"]), (display.all_, curve["treat_all"]), (display.none_, 0)):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve.index, 0 * curve.index + values]))
    np.testing.assert_allclose(display.interval.T, curve[["25%", "75%"]])
    assert display.legend_.get_texts()[0].get_text() == "50 % interval"
    assert display.ax_.get_ylim()[0] < 0 < curve["net_benefit"].max() < display.ax_.get_ylim()[1]
    shown = PosteriorCalibrationDisplay.from_estimator(model, X, y, n_draws=20)
    slope = calibration(model, X, y).loc["slope"]
    assert f"slope {slope['estimate']:.2f} ({slope['5%']:.2f} to {slope['95%']:.2f})\n" in shown.ax_.texts[0].get_text()
    plt.close("all")


@pytest.mark.parametrize("n", [25, 400])
@pytest.mark.parametrize("shift", [0.0, -3.0])
def test_calibration_is_found_however_far_it_is(n, shift, seed):
    """Rare events, slopes near zero and large, classes that a threshold nearly separates: every draw of the population
    is at the top of its likelihood."""
    rng = np.random.default_rng(seed)
    for strength, size in ((0.1, 0.05), (1.0, 1.0), (8.0, 5.0)):
        z = rng.standard_normal(n)
        y = rng.random(n) < expit(strength * z + shift)
        y[np.argsort(z)[[0, 1, -2, -1]]] = True, False, True, False  # they overlap
        z = size * z - 2
        alone = rows_alone(np.ones(n))
        found = decisions.calibration_of(expit(z), y, alone, 0.9, 0)
        weights = next(alone.draws(n, 0))[:50]
        design = np.column_stack([(z - z.mean()) / z.std(), np.ones(n)])
        free = decisions._logistic(design, 0.0, y, weights, np.zeros((1, 2)))
        np.testing.assert_allclose(free[:, 0] / z.std(), found.draws["slope"][:50], rtol=1e-4, atol=1e-6)
        gradient = weights * (y - expit(free @ design.T)) @ design
        np.testing.assert_allclose(gradient, 0.0, atol=1e-5 * n)
        assert np.isfinite(found.draws.to_numpy()).all()


def test_rows_of_the_fit_are_told(model, grouped, rows):
    X, y = rows
    curve, told = partial(net_benefit, thresholds=THRESHOLDS), "^These are the rows that the model was fitted on"
    for ask in (curve, calibration, DecisionCurveDisplay.from_estimator, PosteriorCalibrationDisplay.from_estimator):
        for seen, also in ((model, {}), (grouped, {"groups": np.arange(300) % 30, "new_groups": False})):
            with pytest.warns(UserWarning, match=told):
                ask(seen, X[::-1], y[::-1], **also)
    plt.close("all")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        net_benefit(model, X)
        calibration(model, X[1:], y[1:])
        calibration(model, X + 1e-3, y)
