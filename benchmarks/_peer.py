"""One method on one data set: python _peer.py METHOD DATA.npz OUT.json SECONDS SWEEPS CORE. Called by `peers.py`.

A sampler runs with so many sweeps of burn-in and as many kept, then anew with twice as many, and so on, until its
chains have converged or another run would take more than is left of the seconds; the last run counts. After each run
OUT.json is written. A run that does not end in time is ended by the system, in compiled code too.
"""

import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _child import resident
from _peer_samplers import SAMPLERS
from scipy.special import expit, ndtr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score

from skhorseshoe.diagnostics import MAX_RHAT, ess_bulk, rhat

COMPILATION = 120  # seconds beside the budget
ENOUGH = 400  # effective draws of the slowest coefficient, the intercept and tau
PREDICTORS = {
    "logistic regression, L1": lambda cv: LogisticRegressionCV(
        l1_ratios=(1.0,), solver="saga", cv=cv, max_iter=2000, scoring="neg_log_loss", use_legacy_attributes=False
    ),
    "logistic regression, L2": lambda cv: LogisticRegressionCV(
        l1_ratios=(0.0,), cv=cv, max_iter=2000, scoring="neg_log_loss", use_legacy_attributes=False
    ),
    "gradient boosting": lambda cv: HistGradientBoostingClassifier(random_state=0),
}


def draw(name, data, out, budget, sweeps):
    """Runs of a sampler, each twice as long as the one before."""
    X, y, slab, spent = data["X"], data["y"], float(data["slab"]), 0.0
    while True:
        signal.alarm(int(budget - spent) + COMPILATION)
        begin = time.perf_counter()
        run = SAMPLERS[name](X, y, slab, sweeps, sweeps, 1)
        signal.alarm(0)
        whole = time.perf_counter() - begin - run.compilation
        found = {"sweeps": sweeps, **convergence(run), **times(run), "peak memory": resident("VmHWM")}
        found |= scores(probabilities(run, data["X_new"]), data["y_new"])
        out.write_text(json.dumps(found))
        spent += whole
        if found["converged"] or spent + 2 * whole > budget:
            return
        sweeps *= 2


def convergence(run):
    """Bulk ESS of the slowest coefficient, the intercept included, and of tau; the worst R-hat of all of them."""
    beta = np.concatenate([run.coef, run.intercept[..., None]], axis=2)
    draws = np.concatenate([beta, np.log(run.tau)[..., None]], axis=2)
    if not np.isfinite(draws).all():
        return {"finite": False, "converged": False}
    ess, worst = ess_bulk(draws), float(rhat(draws).max())
    found = {"ess": float(ess[:-1].min()), "ess of tau": float(ess[-1]), "rhat": worst, "divergent": run.divergent}
    per_second = {"ESS/s": found["ess"] / (run.burn_in + run.sampling), "ESS/s, sampling": found["ess"] / run.sampling}
    return found | per_second | {"converged": bool(worst <= MAX_RHAT and ess.min() >= ENOUGH)}


def times(run):
    return {"seconds": {"burn-in": run.burn_in, "sampling": run.sampling, "compilation": run.compilation}}


def probabilities(run, X):
    """The mean over at most 2000 draws of P(y = 1)."""
    coef = run.coef.reshape(-1, run.coef.shape[2])
    step = max(1, len(coef) // 2000)
    coef, intercept = coef[::step], run.intercept.reshape(-1)[::step]
    link = ndtr if run.link == "probit" else expit
    blocks = np.array_split(X, max(1, len(X) * len(coef) // 10**7))
    return np.concatenate([link(block @ coef.T + intercept).mean(axis=1) for block in blocks])


def predict(name, data, out, budget):
    """A predictor of scikit-learn, its penalty chosen by five folds."""
    signal.alarm(int(budget) + COMPILATION)
    folds = min(5, int(np.bincount(data["y"]).min()))
    model = PREDICTORS[name](folds)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data["X"], data["y"])
    found = {"seconds": {"fit": time.perf_counter() - begin}, "peak memory": resident("VmHWM")}
    out.write_text(json.dumps(found | scores(model.predict_proba(data["X_new"])[:, 1], data["y_new"])))


def scores(probability, y):
    clipped = np.clip(probability, 1e-9, 1 - 1e-9)
    return {"log loss": float(log_loss(y, clipped)), "AUC": float(roc_auc_score(y, probability))}


def main(name, data, out, budget, sweeps, core):
    os.sched_setaffinity(0, {int(core)})
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    data, out = np.load(data), Path(out)
    if name in SAMPLERS:
        draw(name, data, out, float(budget), int(sweeps))
    else:
        predict(name, data, out, float(budget))


if __name__ == "__main__":
    main(*sys.argv[1:])
