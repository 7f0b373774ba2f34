"""Traces, ranks and autocorrelations as they are drawn: tests of the artists' data, not of pixels."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from artists import texts
from matplotlib import pyplot as plt

from skhorseshoe.plotting import AutocorrelationDisplay, TraceDisplay


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


def test_where_traces_are_drawn(model):
    figure, axes = plt.subplots(2, 2)
    display = TraceDisplay.from_estimator(model, names=["age", "bmi"], ax=axes)
    assert display.axes_ is axes
    assert display.figure_ is figure
    with pytest.raises(ValueError, match=r"ax: .*\(3, 2\); got shape \(2, 2\)"):
        TraceDisplay.from_estimator(model, ax=axes)
    figure, ax = plt.subplots()
    assert TraceDisplay.from_estimator(model, worst=2, ax=ax).axes_.shape == (2, 2)
    assert not ax.axison
    with pytest.raises(ValueError, match=r"ax: only axes of plt\.subplots .*\(1, 2\)"):
        TraceDisplay.from_estimator(model, worst=1, ax=figure.add_axes((0.1, 0.1, 0.8, 0.8)))


@pytest.mark.parametrize("n_chains", [1, 8])
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


def test_eight_curves_differ_in_style(model):
    lines = AutocorrelationDisplay.from_estimator(model, worst=8).lines_
    assert len({(line.get_linestyle(), line.get_marker()) for line in lines}) == 8


def test_the_worst_mixing_come_first(model, clf):
    names = TraceDisplay.from_estimator(model, worst=3).names
    assert AutocorrelationDisplay.from_estimator(model, worst=3).names == names
    ess = clf.summary()["ess"]
    assert list(ess[names]) == sorted(ess)[:3]


def test_titles_and_legends_are_those_of_each_quantity(model, clf):
    names = ["dose", "age", "(global scale)"]
    rows = clf.summary().loc[names]
    traces = TraceDisplay.from_estimator(model, names=names)
    titles = [ax.get_title(loc="left") for ax in traces.axes_[:, 0]]
    assert titles == [f"{name}: R-hat {row['rhat']:.3f}, ESS {row['ess']:.0f}" for name, row in rows.iterrows()]
    curves = AutocorrelationDisplay.from_estimator(model, names=names)
    assert texts(curves.ax_) == [f"{name} (ESS {row['ess']:.0f})" for name, row in rows.iterrows()]


def test_titles_beside_one_another_do_not_overlap_in_narrow_axes(model):
    figure, (ax, *_) = plt.subplots(1, 3, figsize=(13, 6), layout="constrained")
    traces = TraceDisplay.from_estimator(model, names=["(global scale)", "age"], ax=ax)
    figure.draw_without_rendering()
    trace, ranks = (ax._left_title for ax in traces.axes_[0])
    assert trace.get_window_extent().x1 < ranks.get_window_extent().x0


@pytest.mark.parametrize("display", [TraceDisplay, AutocorrelationDisplay])
def test_quantities_are_given_by_name(display, model):
    assert display.from_estimator(model, names="age").names == ["age"]
    with pytest.raises(ValueError, match=r"no 'sodum' .*'sodium'"):
        display.from_estimator(model, names=["age", "sodum"])
    with pytest.raises(ValueError, match=r"no 3 among .*\(global scale\)"):
        display.from_estimator(model, names=[3])
    with pytest.raises(ValueError, match=r"names: there is no 0 among"):
        display.from_estimator(model, names=0)
    with pytest.raises(ValueError, match="names is empty"):
        display.from_estimator(model, names=[])
    with pytest.raises(ValueError, match=r"worst .* got -1"):
        display.from_estimator(model, worst=-1)


def test_limits_of_the_chain_displays(model, data, short_fit):
    with pytest.raises(ValueError, match=r"names: at most 8 .* got 9"):
        AutocorrelationDisplay.from_estimator(model, worst=9)
    with pytest.raises(ValueError, match=r"n_bins .* got 1"):
        TraceDisplay.from_estimator(model, n_bins=1)
    with pytest.raises(ValueError, match=r"at least 4 draws .* got 3"):
        AutocorrelationDisplay.from_estimator(short_fit(*data, n_iter=3))
    assert AutocorrelationDisplay.from_estimator(model, max_lag=10**6).autocorrelations.shape == (4, 100)
