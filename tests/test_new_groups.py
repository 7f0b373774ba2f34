"""Groups that are all new, whatever their labels; and how many labels are known, which predictions say."""

import warnings
from functools import partial

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt
from sklearn import config_context
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting

QUICK = HorseshoeProbitClassifier(sampler="gibbs", n_iter=20, burn_in=5, random_state=0)
KNOWN = r"Labels in groups that fit has seen: {} of {}\..* give new_groups=True\. new_groups=False says that they are"


def predictions(model, X, y):
    """The methods that take groups, as functions of these alone."""
    names = "predict_proba", "predict_log_proba", "decision_function", "predict", "predict_interval"
    asks = {name: partial(getattr(model, name), X) for name in (*names, "predict_proba_samples")}
    asks |= {
        name: partial(getattr(inspection, name), model, X) for name in ("predict_interval", "predict_proba_samples")
    }
    return {**asks, "score": partial(model.score, X, y)}


def test_new_groups_have_no_effects_of_groups_with_equal_labels(of_patients, visits):
    X, y, groups = visits
    others = np.array([f"B{label}" for label in groups])
    for name, ask in predictions(of_patients, X, y).items():
        expected = ask(groups=others, new_groups=False)
        for labels in (groups, pd.factorize(groups)[0], pd.Series(groups, dtype="category"), groups < "p30"):
            assert np.array_equal(ask(groups=labels, new_groups=True), expected), name
        if name != "predict_proba_samples":  # with groups, of the draws for which effects are kept
            assert np.array_equal(ask(new_groups=True), expected)
        assert not np.array_equal(ask(groups=groups, new_groups=False), expected)


def test_another_hospital_is_predicted_as_well_as_without_groups(seed):
    """Both number their patients from 0; the effects of one are noise for the other."""
    rng = np.random.default_rng(seed)
    patient, X = np.repeat(np.arange(60), 5), rng.standard_normal((2, 300, 2))
    y = X[:, :, 0] + 1.5 * rng.standard_normal((2, 60))[:, patient] + rng.standard_normal((2, 300)) > 0
    model = HorseshoeProbitClassifier(n_iter=100, burn_in=100, random_state=0).fit(X[0], y[0], groups=patient)
    log_loss = {}
    for new_groups in (True, False):
        proba = model.predict_proba(X[1], groups=patient, new_groups=new_groups)
        log_loss[new_groups] = -np.log(proba[np.arange(300), y[1].astype(int)]).mean()
    assert log_loss[True] < log_loss[False] - 0.1


@pytest.mark.filterwarnings("default")
def test_predictions_say_how_many_labels_are_known_until_told_what_equal_labels_are(of_patients, visits):
    X, y, groups = visits
    half = np.where(groups < "p30", groups, np.char.add("new", groups))
    for name, ask in predictions(of_patients, X, y).items():
        for labels, n_known in ((groups, 60), (half, 30), (np.char.add("new", groups), 0)):
            with pytest.warns(UserWarning, match=KNOWN.format(n_known, 60)) as told:
                ask(groups=labels)
            assert [w.filename for w in told] == [__file__], name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for new_groups in (True, False, np.True_):
                ask(groups=half, new_groups=new_groups)
            ask()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", ["net_benefit", "calibration", "predictive_check", "DecisionCurve", "Calibration"])
def test_what_judges_probabilities_says_so_too(name, of_patients, visits):
    X, y, groups = visits
    X = X + 0.1  # rows of the fit would be told too
    asks = {
        "DecisionCurve": lambda **more: plotting.DecisionCurveDisplay.from_estimator(of_patients, X, y, **more),
        "Calibration": lambda **more: plotting.PosteriorCalibrationDisplay.from_estimator(of_patients, X, y, **more),
        "predictive_check": partial(inspection.predictive_check, of_patients, X, y, "age"),
    }
    ask = asks[name] if name in asks else partial(getattr(inspection, name), of_patients, X, y)
    with pytest.warns(UserWarning, match=KNOWN.format(60, 60)) as told:
        ask(groups=groups)
    assert [w.filename for w in told] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for new_groups in (True, False):
            ask(groups=groups, new_groups=new_groups)
    plt.close("all")


@pytest.mark.parametrize("wrong", ["yes", 1, ["p03"], np.array(["p03", "p04"])])
def test_new_groups_is_no_place_for_labels(of_patients, visits, wrong):
    X, y, _ = visits
    for ask in predictions(of_patients, X, y).values():
        with pytest.raises(ValueError, match=r"new_groups must be True, False or None; got .*Labels are groups="):
            ask(new_groups=wrong)


def test_new_groups_are_asked_of_a_model_with_groups(visits):
    X, y, groups = visits
    plain = clone(QUICK).fit(X, y)
    with pytest.raises(ValueError, match="fitted without groups"):
        plain.predict_proba(X, groups, new_groups=True)
    assert np.array_equal(plain.predict_proba(X, new_groups=True), plain.predict_proba(X))


def test_new_groups_are_routed(visits):
    X, y, groups = visits
    with config_context(enable_metadata_routing=True):
        asked = clone(QUICK).set_fit_request(groups=True).set_predict_proba_request(groups=True, new_groups=True)
        model = make_pipeline(StandardScaler(), asked.set_score_request(groups=True, new_groups=True))
        model.fit(X, y, groups=groups)
        numbers = pd.factorize(groups)[0]
        assert np.array_equal(model.predict_proba(X, groups=numbers, new_groups=True), model.predict_proba(X))
        assert model.score(X, y, groups=numbers, new_groups=True) == model.score(X, y)
        assert asked.predict_interval(StandardScaler().fit_transform(X), groups=numbers, new_groups=True).shape == (
            600,
            2,
        )


def test_time_stamps_name_the_groups(visits):
    X, y, groups = visits
    hours = pd.date_range("2024-03-31", periods=60, freq="h", tz="Europe/Oslo")
    for stamps in (hours, hours.tz_localize(None).as_unit("ns")):
        model = clone(QUICK).fit(X, y, groups=stamps[pd.factorize(groups)[0]])
        assert model.group_effects().loc[stamps[7], "mean"] == model.group_effect_moments_["mean"][7]
