"""Average marginal effects with categories: their time beside a prediction, and their values beside statsmodels.

README.md says how to run it.
"""

import argparse
import json
import subprocess
import time
import venv
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from _measure import HERE, figure, ratio, run_sections
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.inspection import contributions, marginal_effects

LEVELS = (2, 3, 4, 5, 6, 8)  # of the six categories
LIMIT = 10.0  # times a prediction
STEP = 1e-3  # of a column of numbers, whose effect is then a derivative
PEER = """
import json, sys
import pandas as pd, statsmodels, statsmodels.api as sm
design = pd.read_csv(sys.argv[1])
y = design.pop("y")
fit = sm.Probit(y, sm.add_constant(design)).fit(disp=0, maxiter=100, tol=1e-12)
found = fit.get_margeff(at="overall", method="dydx", dummy=True).summary_frame()
mean = {}
for name in design:
    if "=" in name:  # all levels of a row set together
        others = [one for one in design if one.split("=")[0] == name.split("=")[0]]
        ends = [design.assign(**dict.fromkeys(others, 0.0)).assign(**{name: value}) for value in (1.0, 0.0)]
        high, low = (fit.predict(sm.add_constant(rows, has_constant="add")).mean() for rows in ends)
        mean[name] = high - low
print(json.dumps({"version": statsmodels.__version__, "margeff": found["dy/dx"].to_dict(), "set": mean}))
"""


def rows_of(n, rng, levels=LEVELS, n_numbers=34):
    """A table of numbers and categories, and labels of which half are positive."""
    X = pd.DataFrame({f"lab{j}": rng.normal(50, 10, n) for j in range(n_numbers)})
    score = (X["lab0"] - 50) / 20 - (X["lab1"] - 50) / 30
    for k in levels:
        X[f"cat{k}"] = rng.choice(list("abcdefgh")[:k], n)
        score += 0.6 * (X[f"cat{k}"] == "b") - 0.6 / k
    return X, (score + rng.standard_normal(n) > 0).to_numpy()


def model_of(X, y, drop=None, **params):
    words = [name for name in X if name.startswith("cat")]
    steps = make_column_transformer((OneHotEncoder(drop=drop, sparse_output=False), words), remainder=StandardScaler())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make_pipeline(steps, HorseshoeProbitClassifier(random_state=0, **params)).fit(X, y)


def speed(report, options):
    """Processor time of all effects and of a prediction of the same rows, in turns, with one thread."""
    n, draws = (600, 20) if options.quick else (60_000, 1000)
    X, y = rows_of(n, np.random.default_rng(0))
    model = model_of(X, y, n_iter=draws, burn_in=200, n_jobs=1)
    asked = {
        "predict": lambda: model.predict_proba(X),
        "effects": lambda: marginal_effects(model, X),
        "contributions": lambda: contributions(model, X[:1000]),
    }
    seconds = {name: [] for name in asked}
    with threadpool_limits(1):
        for _ in range(2 if options.quick else 5):
            for name, function in asked.items():
                begin = time.process_time()
                function()
                seconds[name].append(time.process_time() - begin)
    figures = {name: figure(values[1:]) for name, values in seconds.items()}
    report.figures["speed"] = figures
    what = f"{n} x 40, 6 categories, {4 * draws} draws"
    report.add(f"predict_proba, {what}", figures["predict"], "s")
    report.add(
        "contributions of 1000 of these rows", figures["contributions"], "s", at_most=None if options.quick else 1
    )
    report.add(f"marginal_effects, all {len(marginal_effects(model, X[:500]))} contrasts", figures["effects"], "s")
    report.add("marginal_effects beside predict_proba", ratio(figures["effects"], figures["predict"]), at_most=LIMIT)


def equal(report, options):
    """Effects under a flat prior beside those of maximum likelihood, in posterior standard deviations."""
    n, draws = (600, 100) if options.quick else (20_000, 4000)
    X, y = rows_of(
        n, np.random.default_rng(1), levels=(2, 4), n_numbers=5
    )  # the last one is noise, for there must be a shrunk column
    names = ["cat2=b", *(f"cat4={level}" for level in "bcd")]
    design = pd.DataFrame({name: (X[name[:4]] == name[5:]).astype(float) for name in names})
    for name in X.columns[:5]:
        design[name] = X[name]
    peer = _peer(options.environment, design.assign(y=y.astype(int)))
    report.figures["statsmodels"] = peer["version"]
    model = model_of(X, y, drop="first", n_iter=draws, burn_in=500, unpenalized=list(range(8)), target_ess=None)
    found = marginal_effects(model, X, change=STEP, reference={"cat2": "a", "cat4": "a"})
    worst = {"get_margeff": 0.0, "levels set together": 0.0}
    for label, row in found.drop("lab4").iterrows():
        name = label if label in X.columns else label.replace(": ", "=").removesuffix(" - a")
        scale = STEP if label in X.columns else 1.0
        of_peer = {"get_margeff": peer["margeff"][name], "levels set together": peer["set"].get(name)}
        if name.startswith("cat4"):
            report.figures[name] = {"skhorseshoe": row["mean"], "sd": row["sd"], **of_peer}
            del of_peer["get_margeff"]  # which sets one dummy alone, beside those of the row's own level
        for which, value in of_peer.items():
            if value is not None:
                error = float(abs(row["mean"] / scale - value) / (row["sd"] / scale))
                report.figures[f"{name}, {which}"] = {"error in sd": error, "MCSE in sd": float(row["ess"] ** -0.5)}
                worst[which] = max(worst[which], error)
    mcse = 3 * float(found["ess"].min()) ** -0.5
    for which, error in worst.items():
        report.add(f"largest error beside statsmodels, {which}, {n} rows", error, "sd", at_most=mcse)


def _peer(folder, design):
    """What statsmodels says, in an environment of its own."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "statsmodels"], check=True)
    path = folder / "design.csv"
    design.to_csv(path, index=False)
    done = subprocess.run([python, "-c", PEER, path], stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".venv-effects", help="of statsmodels")
    run_sections("effects", {"speed": speed, "equal": equal}, parser)
