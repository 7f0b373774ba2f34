"""Answers about groups that a fit with slopes has not seen: outcomes that are drawn, and groups that are left out."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr, logsumexp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting
from skhorseshoe._posterior.decisions import matched_rows
from skhorseshoe._posterior.grouped_prediction import GivenRows
from skhorseshoe._posterior.loo import leave_one_out
from skhorseshoe._posterior.loo_groups import group_logliks
from skhorseshoe._posterior.predict import rows_of_fit
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
def model():
    return fit()


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


@pytest.mark.parametrize("weighted", [False, True])
def test_a_group_is_left_out_with_effects_and_slopes_averaged_over(weighted):
    weight = np.random.default_rng(0).integers(1, 4, N).astype(float) if weighted else None
    model = fit(n_iter=20, weight=weight)
    rows, place, _ = rows_of_fit(model, X, Y, weight, None, PATIENT)
    found, draw = group_logliks(model, rows, place, weight, None), 7
    coef, (s, t) = model.coef_draws_[0, draw], (draws[0, draw] for draws in model.group_scale_draws_.values())
    r = model.group_correlation_draws_["patient, patient:time"][0, draw]
    nodes = np.linspace(-6, 6, 151)
    a, b = np.meshgrid(nodes, nodes)
    u, v = s * a, t * (r * a + np.sqrt(1 - r * r) * b)
    eta, time = X.to_numpy() @ coef + model.intercept_draws_[0, draw], X["time"].to_numpy()
    time = time - np.average(time, weights=weight)
    for g in range(0, 20, 3):
        log = -(a**2 + b**2) / 2
        for i in np.flatnonzero(GROUPS["patient"] == g):
            log += (1 if weight is None else weight[i]) * log_ndtr((2.0 * Y[i] - 1) * (eta[i] + u + time[i] * v))
        expected = logsumexp(log) + np.log(np.diff(nodes)[0] ** 2 / (2 * np.pi))
        assert abs(found[g, draw] - expected) < 1e-3


def test_without_variance_of_slopes_loo_is_that_of_a_model_without(model):
    given, without = with_law(model, 0.8, 0.0, 0.5), fit(GROUPS["patient"], slopes=None)
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_"):
        setattr(without, name, getattr(given, name))
    without.group_scale_draws_ = given.group_scale_draws_["patient"]
    a, b = inspection.loo(given, X, Y, groups=PATIENT), inspection.loo(without, X, Y, groups=GROUPS["patient"])
    assert a.n_rows == b.n_rows == 20
    np.testing.assert_allclose(a.elpd_i, b.elpd_i, atol=1e-4)
    np.testing.assert_allclose(a.pareto_k, b.pareto_k, atol=1e-3)
    assert leave_one_out(given, *rows_of_fit(given, X, Y, None, None, PATIENT), 100).n_draws == 100


@pytest.mark.slow
def test_leaving_out_a_group_is_fitting_without_it():
    found = inspection.loo(fit(n_iter=1000, burn_in=200), X, Y, groups=PATIENT, max_draws=1000)
    for g in (0, 7, 14):
        left = GROUPS["patient"] == g
        without = fit(PATIENT[~left], X=X[~left], y=Y[~left], n_iter=1000, burn_in=200)
        rows = GivenRows(X[left].to_numpy(), np.zeros((left.sum(), 1), np.int32))
        expected = logsumexp(group_logliks(without, rows, Y[left].to_numpy(), None, 1000)) - np.log(1000)
        assert abs(found.elpd_i[g] - expected) < 0.15


def test_loo_says_what_it_cannot_leave_out(model, of_both):
    with pytest.raises(ValueError, match=r"loo\(..., groups=groups\).* cv=list\(GroupKFold\(\)\.split"):
        inspection.loo(model, X, Y)
    with pytest.raises(ValueError, match=r"by several factors.* cv=list\(GroupKFold\(\)\.split"):
        inspection.loo(of_both, X, Y, groups=GROUPS)
    many, scale = copy.copy(model), model.group_scale_draws_["patient:time"]
    many._group_slopes = {"factor": [0] * 4, "column": [-1, 0, 1, 2], "centre": [0.0] * 4}
    many.group_scale_draws_ = {**model.group_scale_draws_, "patient:a": scale, "patient:c": scale}
    with pytest.raises(ValueError, match=r"2 slopes at most, and the model has 3.*cross_validate"):
        inspection.loo(many, X, Y, groups=PATIENT)
