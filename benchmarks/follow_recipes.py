"""What a new user meets: default fits of twelve data sets, what they warn of, and how many rounds lead to a clean fit.

    python benchmarks/follow_recipes.py           # six minutes on two free cores
    python benchmarks/follow_recipes.py --quick   # two small data sets
    python benchmarks/follow_recipes.py --before CHECKOUT   # default fits of another commit, timed as well

A third of the rows is held out. A fit that warns is made again as the recipe at the end of its warning says. The fit
with 1000 + 1000 sweeps is what integers would have asked for; L1 logistic regression has a search and scaled columns.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _measure import Report, figure
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_rare_events, make_sparse_probit

_MOST_ROUNDS = 3  # rounds
_RECIPE = r"Fit again with (.+): about (a second|\d+ (s|minutes|hours))\.$"


def one_class(load, which, prepare=lambda X: X):
    X, y = load(return_X_y=True)
    return prepare(X), y == which


def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8))
    return X[rows], y[rows] == 8


def spam(rng):
    """Counts of 57 words, most of them 0."""
    X = np.log1p(rng.gamma(0.3, 2.0, (4600, 57)) * (rng.random((4600, 57)) < 0.3))
    return X, scale(X)[:, :20] @ (1.5 * rng.standard_normal(20)) + rng.standard_normal(4600) > 0


def genes(rng, n_groups=25):
    """80 rows of groups of 20 columns with correlations of 0.7."""
    X = np.sqrt(0.7) * np.repeat(rng.standard_normal((80, n_groups)), 20, axis=1)
    X += np.sqrt(0.3) * rng.standard_normal(X.shape)
    return X, 2 * X[:, 5] - 2 * X[:, 105] + rng.standard_normal(80) > 0


DATA = {
    "wine": lambda rng: one_class(load_wine, 0),
    "wine, scaled": lambda rng: one_class(load_wine, 0, scale),
    "setosa": lambda rng: one_class(load_iris, 0),
    "versicolor": lambda rng: one_class(load_iris, 1),
    "virginica": lambda rng: one_class(load_iris, 2),
    "breast cancer": lambda rng: one_class(load_breast_cancer, 1),
    "breast cancer, scaled": lambda rng: one_class(load_breast_cancer, 1, scale),
    "digits": lambda rng: digits(),
    "spam": spam,
    "genes": genes,
    "500 x 20": lambda rng: make_sparse_probit(500, 20, random_state=rng.integers(1000))[:2],
    "rare events": lambda rng: make_rare_events(20_000, 30, random_state=rng.integers(1000))[:2],
}
QUICK = "versicolor", "500 x 20"


def fit(model, X, y):
    """Seconds of a fit, and the messages of its warnings that end with a recipe."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.perf_counter()
        model.fit(X, y)
        seconds, messages = time.perf_counter() - begin, [str(one.message) for one in caught]
    return seconds, [message for message in messages if re.search(_RECIPE, message)]


def follow(model, message):
    """Set the parameters that the recipe at the end of a message names; False if there is no recipe."""
    recipe = re.search(_RECIPE, message)
    if recipe:
        call = ast.parse(f"f({recipe[1]})", mode="eval").body
        model.set_params(**{word.arg: ast.literal_eval(word.value) for word in call.keywords})
    return recipe is not None


def scores(model, X, y):
    proba = model.predict_proba(X)[:, 1]
    return {"log loss": float(log_loss(y, proba)), "AUC": float(roc_auc_score(y, proba))}


def split(name):
    """X and y of the rows that are fitted, and of those that are held out."""
    X, y = DATA[name](np.random.default_rng(0))
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    return X, y, X_test, y_test


def default_seconds(name):
    """Of a default fit."""
    X, y, *_ = split(name)
    return fit(HorseshoeProbitClassifier(random_state=0), X, y)[0]


def of_checkout(folder, names):
    """``default_seconds`` of each data set, of the library in that folder."""
    command = [sys.executable, __file__, "--seconds-of", *names]
    env = {**os.environ, "PYTHONPATH": str(folder.absolute())}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout)


def contact(name):
    """The figures of one data set."""
    X, y, X_test, y_test = split(name)
    model = HorseshoeProbitClassifier(random_state=0)
    seconds, said = fit(model, X, y)
    found = {"seconds": seconds, "burn-in": model.burn_in_, "sweeps": model.n_iter_, "warnings": len(said), "rounds": 0}
    found |= {"ESS": float(np.nanmin(model.ess_)), "R-hat": float(np.nanmax(model.rhat_))}
    fixed, _ = fit(clone(model).set_params(n_iter=1000, burn_in=1000), X, y)
    found["seconds of 1000 + 1000"] = fixed
    while said and found["rounds"] < _MOST_ROUNDS and follow(model, said[0]):
        _, said = fit(model, X, y)
        found["rounds"] += 1
    found |= {"clean": not said, **scores(model, X_test, y_test)}
    lasso = LogisticRegressionCV(
        Cs=10, l1_ratios=(1,), solver="liblinear", scoring="neg_log_loss", random_state=0, use_legacy_attributes=False
    )
    lasso = make_pipeline(StandardScaler(), lasso)
    seconds, _ = fit(lasso, X, y)
    return found | {"L1": {"seconds": seconds, **scores(lasso, X_test, y_test)}}


def compile_all():
    for shape in ((200, 5), (20, 40)):
        X, y, _ = make_sparse_probit(*shape, random_state=0)
        fit(HorseshoeProbitClassifier(n_iter=50, burn_in=100, random_state=0), X, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", type=Path, help="folder of a checkout whose default fits are timed in the same run")
    parser.add_argument("--seconds-of", nargs="+", choices=DATA, help="only print the seconds of default fits, as JSON")
    parser.add_argument("--output", type=Path, help="default: results/follow-recipes-<date>.json")
    options = parser.parse_args()
    compile_all()
    if options.seconds_of:
        print(json.dumps({name: default_seconds(name) for name in options.seconds_of}))
        return
    report, names = Report(), list(QUICK if options.quick else DATA)
    before = of_checkout(options.before, names) if options.before else {}
    report.figures = found = {}
    for name in names:
        found[name] = one = contact(name)
        one |= {"seconds before": before[name]} if before else {}
        print(name, {key: round(v, 3) if isinstance(v, float) else v for key, v in one.items()}, flush=True)
    report.head()
    report.add("most rounds to a clean fit", max(one["rounds"] for one in found.values()), at_most=1)
    report.add("data sets without a clean fit", sum(not one["clean"] for one in found.values()), at_most=0)
    ratios = [one["seconds"] / one["seconds of 1000 + 1000"] for one in found.values()]
    report.add("time of a default fit beside one of 1000 + 1000 sweeps", figure(ratios))
    if before:
        ratios = [one["seconds"] / one["seconds before"] for one in found.values()]
        report.add("time of a default fit beside that of the other commit", figure(ratios), at_most=0.25)
    best, n = sum(one["log loss"] <= one["L1"]["log loss"] for one in found.values()), len(found)
    report.add(f"of {n} data sets: log loss at most that of L1", best, at_least=9 * n // 12)
    report.write("follow-recipes", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
