"""What all displays share: what they accept, and that ``plot`` only draws."""

import re
import sys
from inspect import getdoc, getmembers, ismethod, signature

import numpy as np
import pandas as pd
import pytest
from artists import EVERY, made
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, plotting

# All but those that take a selector, sets, or a model with groups, which have tests of their own.
_OTHERS = {"SelectionPathDisplay", "ModelSizeDisplay", "CredibleSetsDisplay", "GroupEffectsDisplay"}
DISPLAYS = [getattr(plotting, name) for name in plotting.__all__ if name not in _OTHERS]


def make(display, model, data, **kwargs):
    X, y = data
    needs = {plotting.ProbabilityIntervalDisplay: (X[:20], y[:20]), plotting.PosteriorCalibrationDisplay: (X, y)}
    needs[plotting.ContributionsDisplay] = (X[:1],)
    needs[plotting.PredictiveCheckDisplay] = X, y, "age"
    needs |= {plotting.EffectsDisplay: (X[:50],), plotting.DecisionCurveDisplay: (X, y)}
    needs[plotting.PriorDisplay] = (X[:50],)
    return display.from_estimator(model, *needs.get(display, ()), **kwargs)


@pytest.mark.parametrize("display", DISPLAYS)
def test_every_display_wants_a_fitted_classifier(display, data):
    with pytest.raises(NotFittedError):
        make(display, HorseshoeProbitClassifier(), data)
    with pytest.raises(TypeError, match="got LogisticRegression"):
        make(display, LogisticRegression(), data)


class Sampler(BaseEstimator):
    """As those of imbalanced-learn: for fitting alone, so that it transforms nothing."""

    def fit_resample(self, X, y):
        return X, y


@pytest.mark.parametrize("display", DISPLAYS)
def test_pipelines_samplers_searches_and_frozen_ones_are_entered(display, model, data):
    inner = make_pipeline("passthrough", Sampler(), FunctionTransformer(), FrozenEstimator(model[-1]))
    search = GridSearchCV(inner, {})
    search.best_estimator_ = inner  # as if fitted
    nested = make_pipeline(make_pipeline(model[0], FunctionTransformer()), FrozenEstimator(search))
    figure, ax = plt.subplots()
    flat, deep = vars(make(display, model, data)), vars(make(display, nested, data, ax=ax))
    assert deep["figure_"] is figure
    for name in flat:
        if not name.endswith("_"):  # what is stored to be drawn
            np.testing.assert_array_equal(flat[name], deep[name])


@pytest.mark.parametrize("display", EVERY)
def test_every_argument_is_described(display):
    """By an entry of the docstring, whether it is there or shared."""
    methods = [method for name, method in getmembers(display, ismethod) if name.startswith("from_")]
    for routine in (display, *methods, made(display).plot):
        described = re.findall(r"^\**([\w, ]+) : ", getdoc(routine), re.MULTILINE)
        assert set(signature(routine).parameters) <= set(", ".join(described).split(", "))


@pytest.mark.parametrize("display", EVERY)
def test_matplotlib_is_asked_for_when_drawing(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=f"{display.__name__}.plot requires matplotlib"):
        made(display).plot()


@pytest.mark.parametrize("display", EVERY)
def test_plot_only_draws(display):
    """A second drawing, on axes that are given, shows the same and leaves the stored data alone."""
    shown = made(display)
    stored = {name: np.copy(value) for name, value in vars(shown).items()}
    first = shown.plot().figure_
    figure, ax = plt.subplots(figsize=first.get_size_inches(), layout="constrained")
    assert shown.plot(ax=ax) is shown
    assert shown.figure_ is figure is not first
    for name, value in stored.items():
        np.testing.assert_array_equal(getattr(shown, name), value)
    one, two = ([line.get_xydata() for ax in each.axes for line in ax.lines] for each in (first, figure))
    assert len(one) == len(two) > 0
    for pair in zip(one, two, strict=True):
        np.testing.assert_array_equal(*pair)


@pytest.mark.parametrize("display", EVERY)
def test_every_line_stands_out_on_a_dark_page(display):
    with plt.style.context("dark_background"):
        figure = made(display).plot().figure_
    colours = [line.get_color() for line in figure.findobj(Line2D)]
    colours += [colour for lines in figure.findobj(LineCollection) for colour in lines.get_colors()]
    assert min(sum(to_rgb(colour)) for colour in colours) > 0.9


@pytest.mark.parametrize("display", EVERY)
def test_what_is_no_axes_is_refused(display):
    figure, axes = plt.subplots(1, 2)
    for ax in (figure, list(axes)):
        with pytest.raises(TypeError, match=rf"ax must be .* got {type(ax).__name__}"):
            made(display).plot(ax=ax)


@pytest.mark.parametrize("display", [plotting.CoefficientsDisplay, plotting.ShrinkageDisplay])
def test_top_and_order_are_checked(display, model):
    with pytest.raises(ValueError, match=r"top .* got 0"):
        display.from_estimator(model, top=0)
    with pytest.raises(TypeError, match=r"top .* got 2\.5"):
        display.from_estimator(model, top=2.5)
    with pytest.raises(ValueError, match=r"order .*'size', 'name', 'original'; got 'abs'"):
        display.from_estimator(model, order="abs")


def test_a_pipeline_names_the_columns_of_an_array(seed):
    """One-hot columns are sparse, and without names."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"site": rng.choice(["Oslo", "Rome"], 200), "sex": rng.choice(["f", "m"], 200)})
    y = (frame["site"] == "Oslo") ^ (rng.random(200) < 0.2)
    names = ["site_Oslo", "site_Rome", "sex_f", "sex_m"]
    short = HorseshoeProbitClassifier(n_iter=30, burn_in=30, random_state=seed)
    pipeline = make_pipeline(OneHotEncoder(), short).fit(frame, y)
    assert plotting.ShrinkageDisplay.from_estimator(pipeline).names == names
    assert set(plotting.TraceDisplay.from_estimator(pipeline, worst=6).names) >= set(names)
    nameless = make_pipeline(OneHotEncoder(), FunctionTransformer(accept_sparse=True), pipeline[-1])
    assert plotting.ShrinkageDisplay.from_estimator(nameless).names == ["x0", "x1", "x2", "x3"]
    selecting = make_pipeline(OneHotEncoder(sparse_output=False), HorseshoeSelector(short), short).fit(frame, y)
    assert plotting.SelectionPathDisplay.from_estimator(selecting).names == names


@pytest.mark.parametrize("threshold", [30, "0.3"])
def test_thresholds_are_shares(threshold, model, data):
    with pytest.raises(ValueError, match=rf"threshold must be .* got {threshold!r}"):
        plotting.ShrinkageDisplay.from_estimator(model, threshold=threshold)
    with pytest.raises(ValueError, match=rf"threshold must be .* got {threshold!r}"):
        plotting.ProbabilityIntervalDisplay.from_estimator(model, data[0][:5], threshold=threshold)
