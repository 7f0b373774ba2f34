"""Slopes of groups with ordered classes: answers beside what follows from the draws. Their law is in
``tests/mcmc/test_slopes_law.py``."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from test_ordered_classes_in_groups import LEVELS, classes_at, in_order

from skhorseshoe import HorseshoeProbitClassifier, inspection, plotting

RNG = np.random.default_rng(5)
N, N_GROUPS = 300, 30
X = pd.DataFrame({"a": RNG.standard_normal(N), "time": 3 * RNG.random(N) + 5})
PATIENT = np.repeat(np.arange(N_GROUPS), N // N_GROUPS)
GROUPS = pd.DataFrame({"patient": PATIENT})
B = RNG.standard_normal((N_GROUPS, 2)) @ [[1.0, 0.4], [0.0, 0.9]]
Z = X["a"] + B[PATIENT, 0] + B[PATIENT, 1] * (X["time"] - 6.5) + RNG.standard_normal(N)
Y = pd.Series(pd.cut(Z, [-np.inf, -0.8, 1.0, np.inf], labels=LEVELS))
FAST = {"burn_in": 120, "random_state": 0, "ordered": True, "group_slopes": {"patient": ["time"]}}
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(**FAST, n_iter=200).fit(X, Y, groups=GROUPS)


def parts(model):
    """Linear predictors without effects (n, m), all cut points (K - 1, m), effects in rows (n, m), and the variance of
    these in new groups (n, m)."""
    eta, cuts = X.to_numpy() @ model.coef_draws_.reshape(-1, 2).T, model.cut_points_draws_.reshape(-1, 2).T
    x = (X["time"] - X["time"].mean()).to_numpy()[:, None]
    u, v = (draws.reshape(-1, N_GROUPS)[:, PATIENT].T for draws in model.group_effect_draws_.values())
    s, t = (draws.ravel() for draws in model.group_scale_draws_.values())
    (r,) = model.group_correlation_draws_.values()
    return eta, cuts, u + x * v, s**2 + 2 * x * r.ravel() * s * t + x**2 * t**2


def test_probabilities_of_known_groups_have_their_slopes_and_of_new_ones_the_average(model):
    eta, cuts, effects, variance = parts(model)
    known = in_order(model, model.predict_proba(X, groups=GROUPS, new_groups=False))
    np.testing.assert_allclose(known, classes_at(eta + effects, cuts).mean(axis=1), atol=1e-9)
    root = np.sqrt(1 + variance)
    of_new = classes_at(eta / root, [cut / root for cut in cuts])
    new = in_order(model, model.predict_proba(X))
    np.testing.assert_allclose(new, of_new.mean(axis=1), atol=1e-9)
    half = GROUPS.assign(patient=np.where(np.arange(N) % 2, PATIENT, 1000 + PATIENT))
    mixed = in_order(model, model.predict_proba(X, groups=half, new_groups=False))
    np.testing.assert_allclose(mixed, np.where(np.arange(N)[:, None] % 2, known, new), atol=1e-12)
    ends = in_order(model, np.moveaxis(model.predict_interval(X, 0.8), 1, 2))
    np.testing.assert_allclose(ends[:, 1], np.quantile(of_new, 0.9, axis=1), atol=1e-9)


@pytest.mark.parametrize("asked", ["at least", "one and the rest"])
def test_models_of_one_class_average_over_groups_with_their_slopes(model, asked):
    make = inspection.at_least if asked == "at least" else inspection.one_vs_rest
    two = make(model, "mild")
    part = slice(1, None) if asked == "at least" else slice(1, 2)
    proba = in_order(model, model.predict_proba(X))[:, part].sum(axis=1)
    np.testing.assert_allclose(two.predict_proba(X)[:, 1], proba, atol=1e-9)
    later = X.assign(time=X["time"] + 1)
    changed = in_order(model, model.predict_proba(later))[:, part].sum(axis=1)
    effects = inspection.marginal_effects(two, X, features=["time"])
    assert effects.loc["time", "mean"] == pytest.approx((changed - proba).mean(), abs=1e-7)
    check = inspection.predictive_check(two, X, Y.isin(LEVELS[part]), by="a", groups=GROUPS, new_groups=True)
    assert check["outside"].mean() < 0.5


@pytest.mark.slow
def test_groups_are_left_out_with_effects_and_slopes_integrated_out(model):
    found = inspection.loo(model, X, Y, groups=GROUPS, max_draws=100)
    eta, cuts, *_ = parts(model)
    some = np.concatenate([np.arange(25) * 8 + 4 + 200 * chain for chain in range(4)])
    s, t = (draws.ravel()[some] for draws in model.group_scale_draws_.values())
    r = next(iter(model.group_correlation_draws_.values())).ravel()[some]
    x, place = (X["time"] - X["time"].mean()).to_numpy()[:, None], Y.cat.codes.to_numpy()
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    logs, share = [], []
    for first, w in zip(nodes, weights, strict=True):
        for second, v in zip(nodes, weights, strict=True):
            effects = s * first + x * t * (r * first + np.sqrt(1 - r**2) * second)
            p = classes_at(eta[:, some] + effects, cuts[:, some])[np.arange(N), :, place]
            logs.append(np.log(np.maximum(p, 1e-300)).reshape(N_GROUPS, -1, len(some)).sum(axis=1))
            share.append(w * v / weights.sum() ** 2)
    of_groups = logsumexp(logs, axis=0, b=np.array(share)[:, None, None])
    given_all = (logsumexp(of_groups, axis=1) - np.log(len(some))).sum()
    assert found.elpd_loo + found.p_loo == pytest.approx(given_all, abs=0.02)


def test_tables_have_cut_points_and_slopes(model):
    assert model.summary().index.tolist()[2:] == [
        "(global scale)",
        "(cut none|mild)",
        "(cut mild|strong)",
        "(patient scale)",
        "(patient:time scale)",
        "(patient, patient:time correlation)",
    ]
    assert np.corrcoef(model.group_effects("patient")["time: mean"], B[:, 1])[0, 1] > 0.6
    assert (inspection.sensitivity(model, X, Y, groups=GROUPS)["likelihood"] > 0).all()
    plotting.GroupEffectsDisplay.from_estimator(model, factor="patient")
