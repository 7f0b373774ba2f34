"""Floating-point errors are looked at in what comes out, whatever ``np.seterr`` of the user asks for."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, datasets, diagnostics, inspection, plotting
from skhorseshoe.sets import correlated_sets, credible_sets

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 5))
X[:, 4] = X[:, 0] + 0.1 * RNG.standard_normal(200)
Y = X[:, 0] + 3 * X[:, 2] + RNG.standard_normal(200) > 0
FAR = np.vstack([X, 1e3 * X[:20], 1e-300 * X[:3]])
WIDE = RNG.standard_normal((30, 60))


def fit(X=X, y=Y, **params):
    return HorseshoeProbitClassifier(**{"n_iter": 60, "burn_in": 120, "random_state": 0, **params}).fit(X, y)


FITS = {
    **{sampler: lambda sampler=sampler: fit(sampler=sampler) for sampler in ("hmc", "gibbs", "pxda")},
    "more columns than rows": lambda: fit(WIDE, np.arange(30) % 2),
    "more columns than rows and a slab": lambda: fit(WIDE, np.arange(30) % 2, burn_in=20, slab_scale=2.0),
    "separated": lambda: fit(y=X[:, 0] > 0),
    "sparse": lambda: fit(csr_array(X * (abs(X) > 1))),
    "float32": lambda: fit(X.astype("f4"), draws_dtype="float32"),
    "in folds": lambda: HorseshoeSelector(HorseshoeProbitClassifier(n_iter=60, burn_in=50), cv=2).fit(X, Y),
}
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_interval")
ANSWERS = {
    **{name: lambda model, name=name: getattr(model, name)(FAR) for name in (*METHODS, "predict_proba_samples")},
    "summary": lambda model: repr(model.summary()) + model.summary()._repr_html_(),
    "summary_of_sets": lambda model: repr(model.summary_of_sets({"both": [0, 4]})),
    "to_arviz": lambda model: model.to_arviz(X, Y),
    "marginal_effects": lambda model: repr(inspection.marginal_effects(model, FAR)),
    "odds ratios": lambda model: repr(inspection.marginal_effects(model, X, comparison="odds_ratio")),
    "net_benefit": lambda model: repr(inspection.net_benefit(model, FAR)) + repr(inspection.net_benefit(model, X, Y)),
    "calibration": lambda model: repr(inspection.calibration(model, X, Y)),
    "contributions": lambda model: repr(inspection.contributions(model, FAR[-8:])),
    "loo": lambda model: inspection.loo(model, X, Y),
    "correlated_sets": lambda model: correlated_sets(X),
    "credible_sets": lambda model: repr(credible_sets(model, X)),
    "diagnostics": lambda model: diagnostics.convergence(np.append(model.coef_draws_, 0 * model.coef_draws_, axis=-1)),
    "autocorrelation": lambda model: diagnostics.autocorrelation(0 * model.coef_draws_, 3),
    "data": lambda model: datasets.make_rare_events(1000, 8, random_state=0),
    **{
        rule: lambda model, rule=rule: HorseshoeSelector(model, prefit=True, rule=rule).fit(X, Y)
        for rule in ("dss", "interval", "shrinkage", "fsr")
    },
    "picture": lambda model: plotting.PosteriorCalibrationDisplay.from_estimator(model, X, Y),
}


@pytest.fixture(scope="module")
def model():
    return fit(n_iter=300)


def check(compute):
    """Neither an error nor, where they are warnings, a warning."""
    with np.errstate(all="raise"):
        compute()
    with np.errstate(all="warn"), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        compute()


@pytest.mark.parametrize("compute", FITS.values(), ids=FITS)
def test_fits_say_nothing_of_overflow_or_underflow(compute):
    check(compute)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_answers_say_nothing_of_overflow_or_underflow(answer, model):
    check(lambda: answer(model))
