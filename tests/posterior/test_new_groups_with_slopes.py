"""Answers about groups that a fit with slopes has not seen: outcomes that are drawn."""

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting
from skhorseshoe._posterior.decisions import matched_rows
from skhorseshoe._posterior.predictive_check import outcomes_of_groups

RNG = np.random.default_rng(3)
N = 200
GROUPS = pd.DataFrame({"patient": RNG.integers(0, 20, N), "doctor": RNG.integers(0, 6, N)})
X = pd.DataFrame({"a": RNG.standard_normal(N), "time": 2 * RNG.random(N) + 5, "c": RNG.standard_normal(N)})
B = RNG.standard_normal((20, 2)) @ [[1.0, 0.4], [0.0, 0.9]]
Y = X["a"] + B[GROUPS["patient"], 0] + B[GROUPS["patient"], 1] * (X["time"] - 6) + RNG.standard_normal(N) > 0
PATIENT, SLOPES = GROUPS[["patient"]], {"patient": ["time"]}
pytestmark = pytest.mark.filterwarnings("ignore")


def fit(groups=PATIENT, slopes=SLOPES, n_iter=50, burn_in=30, X=X, y=Y, weight=None):
    model = HorseshoeProbitClassifier(random_state=0, n_iter=n_iter, burn_in=burn_in, group_slopes=slopes)
    return model.fit(X, y, weight, groups)


@pytest.fixture(scope="module")
def of_both():
    return fit(GROUPS)


def with_law(model, s, t, r, **others):
    """The model with these scales of effects and slopes of patients, and this correlation, in all draws."""
    model = copy.copy(model)
    for name, value in {"patient": s, "patient:time": t, **others}.items():
        model.group_scale_draws_ = {**model.group_scale_draws_, name: np.full_like(model.intercept_draws_, value)}
    model.group_correlation_draws_ = {"patient, patient:time": np.full_like(model.intercept_draws_, r)}
    return model


@pytest.mark.parametrize(("s", "t", "r"), [(0.7, 0.5, 0.3), (0.0, 2.0, 0.0), (30.0, 20.0, -0.99), (1.0, 1.0, 1.0)])
@pytest.mark.parametrize("known", [False, True])
def test_rows_of_a_new_group_agree_as_often_as_the_normal_law_says(s, t, r, known, of_both, seed):
    """Two scores with mean 0 and correlation rho have one sign with probability 1/2 + asin(rho) / pi."""
    model = with_law(of_both, s, t, r, doctor=0.8)
    model.coef_draws_, model.intercept_draws_ = 0 * model.coef_draws_, 0 * model.intercept_draws_
    model.group_effect_draws_ = {name: 0 * draws for name, draws in model.group_effect_draws_.items()}
    at, n = np.array([-1.5, 0.5]), 1500
    z = np.column_stack([[1, 1], at])
    covariance = z @ [[s * s, s * t * r], [s * t * r, t * t]] @ z.T + (0 if known else 0.64)
    deviation = np.sqrt(1 + np.diag(covariance))
    rho = covariance[0, 1] / deviation.prod()
    rows = pd.DataFrame({"a": 0.0, "time": np.tile(at, n) + X["time"].mean(), "c": 0.0})
    pairs = np.arange(n).repeat(2)
    groups = pd.DataFrame({"patient": 1000 + pairs, "doctor": GROUPS["doctor"][0] if known else 1000 + pairs})
    classifier, matched, arguments = matched_rows(model, rows, None, groups, None, False)
    drawn = np.array([*outcomes_of_groups(classifier, arguments, 80, matched, np.random.default_rng(seed))])
    assert drawn.shape == (80, 2 * n)
    first, second = drawn[:, ::2], drawn[:, 1::2]
    error = 0.5 / np.sqrt(first.size)
    assert abs((first == second).mean() - 0.5 - np.arcsin(rho) / np.pi) < 5 * error
    assert abs((first == np.roll(second, 1, axis=1)).mean() - 0.5) < 5 * error  # those of different groups
    assert abs(first.mean() - 0.5) < 5 * error


def test_bands_of_new_groups_are_wider_than_those_of_known_ones():
    short = HorseshoeProbitClassifier(random_state=0, n_iter=50, burn_in=50, group_slopes=SLOPES)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), short)
    pipe.fit(X, Y, horseshoeprobitclassifier__groups=PATIENT)
    of_patient = GROUPS["patient"].to_numpy()
    new, known = (
        inspection.predictive_check(pipe, X, Y, of_patient, groups=PATIENT, new_groups=are_new)
        for are_new in (True, False)
    )
    assert (new["95%"] - new["5%"]).mean() > 1.2 * (known["95%"] - known["5%"]).mean()
    pytest.importorskip("matplotlib").use("Agg")
    display = plotting.PosteriorCalibrationDisplay.from_estimator(pipe, X, Y, groups=PATIENT, new_groups=True)
    assert display.known_groups == (0, 20)
