"""What all displays share: what they accept, and that ``plot`` only draws."""

import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, plotting

# All but the one that takes a selector, whose tests are in test_selection_path.py.
DISPLAYS = [getattr(plotting, name) for name in plotting.__all__ if name != "SelectionPathDisplay"]


def make(display, model, data, **kwargs):
    X, y = data
    needs = {plotting.ProbabilityIntervalDisplay: (X[:20], y[:20]), plotting.PosteriorCalibrationDisplay: (X, y)}
    return display.from_estimator(model, *needs.get(display, ()), **kwargs)


@pytest.mark.parametrize("display", DISPLAYS)
def test_what_is_accepted(display, model, data):
    X, y = data
    with pytest.raises(TypeError, match=r"ends with one; got LogisticRegression\."):
        make(display, LogisticRegression().fit(X, y), data)
    search = GridSearchCV(make_pipeline(StandardScaler(), LogisticRegression()), {}).fit(X, y)
    with pytest.raises(TypeError, match=r"got GridSearchCV that ends with LogisticRegression\.$"):
        make(display, search, data)
    with pytest.raises(TypeError, match=r"got OneVsRestClassifier\. What it has fitted is its estimators_\[i\]\.$"):
        make(display, OneVsRestClassifier(LogisticRegression()).fit(X, y), data)
    calibrated = CalibratedClassifierCV(LogisticRegression(), cv=2).fit(X, y)
    with pytest.raises(TypeError, match=r"What it has fitted is its calibrated_classifiers_\[i\]\.estimator\.$"):
        make(display, calibrated, data)
    unkept = GridSearchCV(LogisticRegression(), {}, refit=False).fit(X, y)
    with pytest.raises(TypeError, match=r"got GridSearchCV\. It has kept no fitted estimator: set refit=True"):
        make(display, unkept, data)
    with pytest.raises(NotFittedError):
        make(display, HorseshoeProbitClassifier(), data)


class Sampler(BaseEstimator):
    """As those of imbalanced-learn: for fitting alone, so that it transforms nothing."""

    def fit_resample(self, X, y):
        return X, y


@pytest.mark.parametrize("display", DISPLAYS)
def test_samplers_in_a_pipeline_are_passed_over(display, model, data):
    with_sampler = make_pipeline(model[0], Sampler(), model[-1])
    assert make(display, with_sampler, data).figure_ is not None


@pytest.mark.parametrize("display", DISPLAYS)
def test_pipelines_in_a_pipeline_are_looked_into(display, model, data):
    inner = make_pipeline("passthrough", FunctionTransformer(), model[-1])
    nested = make_pipeline(make_pipeline(model[0], FunctionTransformer()), FrozenEstimator(inner))
    flat, deep = vars(make(display, model, data)), vars(make(display, nested, data))
    for name in flat:
        if not name.endswith("_"):  # what is stored to be drawn
            np.testing.assert_array_equal(flat[name], deep[name])


def test_names_come_through_pipelines_in_a_pipeline(model, data, short_fit):
    X, y = data
    inner = make_pipeline(StandardScaler(), short_fit(StandardScaler().fit_transform(X), y))
    inner[0].fit(X.to_numpy())
    nested = make_pipeline(make_pipeline(StandardScaler().fit(X)), Sampler(), inner)
    shown = plotting.CoefficientsDisplay.from_estimator(nested)
    assert set(X.columns) <= set(shown.names)


@pytest.mark.parametrize("display", DISPLAYS)
def test_frozen_estimators_are_looked_into(display, model, data):
    for frozen in (FrozenEstimator(model), make_pipeline(model[0], FrozenEstimator(model[-1]))):
        assert make(display, frozen, data).figure_ is not None


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


@pytest.mark.parametrize(
    "display", [plotting.CoefficientsDisplay, plotting.ProbabilityIntervalDisplay, plotting.PosteriorCalibrationDisplay]
)
@pytest.mark.parametrize("level", [0, 1, 90, "0.9"])
def test_bad_levels(display, model, data, level):
    with pytest.raises(ValueError, match=r"between 0 and 1 \(0\.9 for 90 %\); got"):
        make(display, model, data, level=level)


@pytest.mark.parametrize("display", [plotting.CoefficientsDisplay, plotting.ShrinkageDisplay])
def test_bad_top_and_order(display, model):
    with pytest.raises(ValueError, match="top must be at least 1; got 0"):
        display.from_estimator(model, top=0)
    with pytest.raises(TypeError, match=r"top must be a whole number; got 2\.5"):
        display.from_estimator(model, top=2.5)
    with pytest.raises(ValueError, match="order must be one of 'size', 'name', 'original'; got 'abs'"):
        display.from_estimator(model, order="abs")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_pipeline_names_the_columns_that_its_classifier_got_as_an_array(seed):
    """One-hot columns are sparse, and without names."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"site": rng.choice(["Oslo", "Rome"], 200), "sex": rng.choice(["f", "m"], 200)})
    y = (frame["site"] == "Oslo") ^ (rng.random(200) < 0.2)
    names = ["site_Oslo", "site_Rome", "sex_f", "sex_m"]
    short = HorseshoeProbitClassifier(n_iter=30, burn_in=30, random_state=seed)
    pipeline = make_pipeline(OneHotEncoder(), short).fit(frame, y)
    assert plotting.CoefficientsDisplay.from_estimator(pipeline).names == names
    assert plotting.ShrinkageDisplay.from_estimator(pipeline).names == names
    assert set(plotting.TraceDisplay.from_estimator(pipeline, worst=6).names) >= set(names)
    assert plotting.CoefficientsDisplay.from_estimator(pipeline[-1]).names == ["x0", "x1", "x2", "x3"]
    nameless = make_pipeline(OneHotEncoder(), FunctionTransformer(accept_sparse=True), pipeline[-1])
    assert plotting.CoefficientsDisplay.from_estimator(nameless).names == ["x0", "x1", "x2", "x3"]
    selecting = make_pipeline(OneHotEncoder(sparse_output=False), HorseshoeSelector(short), short).fit(frame, y)
    assert plotting.SelectionPathDisplay.from_estimator(selecting).names == names
