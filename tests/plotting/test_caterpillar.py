"""The caterpillar of groups' effects, and probabilities of rows with groups."""

import warnings
from functools import partial

import numpy as np
import pytest
from artists import dashed, drawn, outside, row_names, segments, texts
from matplotlib import pyplot as plt

from skhorseshoe import HorseshoeProbitClassifier, plotting
from skhorseshoe.plotting import GroupEffectsDisplay


def test_groups_are_drawn_from_the_largest_effect_to_the_smallest(of_patients):
    display = GroupEffectsDisplay.from_estimator(of_patients, level=0.8)
    frame = of_patients.group_effects(0.8).sort_values("mean", ascending=False, kind="stable")
    assert row_names(display.ax_) == frame.index.tolist()
    np.testing.assert_allclose(drawn(display.points_, 1), frame["mean"])
    np.testing.assert_allclose(segments(display.lines_, 1), frame[["10%", "90%"]].T)
    assert texts(display.ax_) == ["80 % interval excludes zero", "includes zero"]
    clear = (frame["10%"] > 0) | (frame["90%"] < 0)
    np.testing.assert_allclose(display.points_[0].get_xdata(), frame["mean"][clear])
    assert dashed(display.ax_) == 0
    assert "positive favours class True" in display.ax_.get_xlabel()
    assert not outside(display.figure_)


@pytest.mark.parametrize(("most", "n"), [(100, 100), (None, 500), (30, 30), (1, 1)])
def test_of_many_groups_evenly_many_are_drawn(most, n, seed):
    mean = np.random.default_rng(seed).standard_normal(500)
    display = GroupEffectsDisplay(names=range(500), mean=mean, interval=mean + np.array([[-1], [1]]), level=0.9)
    display.plot(most=most)
    assert len(display.shown_) == n
    ranks = np.flatnonzero(np.isin(np.argsort(-mean), display.shown_))
    assert np.array_equal(np.argsort(-mean)[ranks], display.shown_)
    assert n == 1 or (ranks[[0, -1]] == [0, 499]).all()
    assert n == 1 or np.ptp(np.diff(ranks)) <= 1
    words = display.ax_.get_xlabel() + display.ax_.get_ylabel()
    assert (f"{n} of 500 groups, by mean" in words) == (n < 500)
    assert not outside(display.figure_)


def test_what_cannot_be_drawn(fitted, of_patients):
    with pytest.raises(ValueError, match="fitted without groups"):
        GroupEffectsDisplay.from_estimator(fitted)
    with pytest.raises(ValueError, match="most must be at least 1"):
        GroupEffectsDisplay.from_estimator(of_patients, most=0)


def test_probabilities_are_drawn_of_the_rows_own_groups(of_patients, visits):
    X, y, groups = visits
    display = plotting.ProbabilityIntervalDisplay.from_estimator(of_patients, X[:9], groups=groups[:9])
    np.testing.assert_allclose(display.mean, of_patients.predict_proba(X[:9], groups[:9])[:, 1])
    np.testing.assert_allclose(display.interval, of_patients.predict_interval(X[:9], 0.9, groups[:9]).T)
    calibration = plotting.PosteriorCalibrationDisplay
    own = calibration.from_estimator(of_patients, X, y, n_draws=30, groups=groups)
    with pytest.warns(UserWarning, match="the band is too narrow. Give groups="):
        new = calibration.from_estimator(of_patients, X, y, n_draws=30)
    assert own.predicted.std() > 1.1 * new.predicted.std()


@pytest.mark.slow
def test_the_band_of_calibration_is_that_of_rows_that_share_effects(of_patients, visits, seed):
    """Outcomes drawn from the model are in the band of 90 %; a third of the rows are of known groups, the rest of two
    new ones."""
    X, _, groups = visits
    is_new, new = np.arange(600) % 3 > 0, np.arange(600) % 2
    labels = np.where(is_new, [f"n{k}" for k in new], groups)
    codes = np.where(is_new, 60 + new, np.searchsorted(of_patients.groups_, groups))
    rng, inside = np.random.default_rng(seed), []
    for k in rng.integers(120, size=30):
        u = of_patients.group_scale_draws_[0, k] * rng.standard_normal(2)
        effects = np.append(of_patients.group_effect_draws_[0, k], u)[codes]
        score = X @ of_patients.coef_draws_[0, k] + of_patients.intercept_draws_[0, k] + effects
        outcomes = score + rng.standard_normal(600) > 0
        display = plotting.PosteriorCalibrationDisplay.from_estimator(
            of_patients, X, outcomes, n_draws=99, groups=labels
        )
        inside.append(((display.band[0] <= display.observed) & (display.observed <= display.band[1])).mean())
        plt.close()
    assert np.mean(inside) > 0.8


@pytest.mark.parametrize("name", ["ProbabilityIntervalDisplay", "PosteriorCalibrationDisplay"])
@pytest.mark.filterwarnings("error:Labels in groups")
def test_displays_say_how_many_groups_are_known(name, of_patients, visits):
    X, y, groups = visits
    draw = partial(getattr(plotting, name).from_estimator, of_patients, X, y)
    for n_known, n, given in (
        (60, 60, {"groups": groups, "new_groups": False}),
        (30, 60, {"groups": np.where(groups < "p30", groups, np.char.add("q", groups)), "new_groups": False}),
        (0, 60, {"groups": groups, "new_groups": True}),
        (0, 1, {"groups": np.repeat(7, 600), "new_groups": True}),
    ):
        display = draw(**given)
        assert display.known_groups == (n_known, n)
        line = f"\n({n_known} of {n} groups are known from fit)"
        assert line in display.ax_.get_xlabel() + display.ax_.get_ylabel()
    with pytest.raises(UserWarning, match="Labels in groups that fit has seen: 60 of 60"):
        draw(groups=groups)
    with pytest.raises(ValueError, match="Labels are groups="):
        draw(new_groups=groups)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = draw()
    assert "known" not in alone.ax_.get_xlabel() + alone.ax_.get_ylabel()


def test_rows_of_a_new_group_share_its_effect_in_the_band(of_patients, visits):
    """With ``new_groups`` the labels still say which rows belong together: the fewer groups, the wider the band."""
    X, y, groups = visits
    draw = partial(plotting.PosteriorCalibrationDisplay.from_estimator, of_patients, X, y, n_draws=60)
    new = draw(groups=groups, new_groups=True)
    assert np.array_equal(new.band, draw(groups=["B" + label for label in groups]).band)
    width = [np.diff(draw(groups=np.arange(600) % n, new_groups=True).band, axis=0).mean() for n in (2, 600)]
    assert width[0] > 1.5 * width[1]


def test_displays_take_the_offset(visits):
    X, y, _ = visits
    offset = np.linspace(-1, 1, 600)
    model = HorseshoeProbitClassifier(n_iter=30, burn_in=100, random_state=0).fit(X, y, offset=offset)
    display = plotting.ProbabilityIntervalDisplay.from_estimator(model, X[:9], offset=offset[:9])
    np.testing.assert_allclose(display.mean, model.predict_proba(X[:9], offset=offset[:9])[:, 1])
    assert len(plotting.EffectsDisplay.from_estimator(model, X, "pulse", offset=offset).mean) == 1
