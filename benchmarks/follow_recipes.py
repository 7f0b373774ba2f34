"""What a new user meets: default fits of twelve data sets, their warnings, and the rounds to a clean fit.

    python benchmarks/follow_recipes.py           # six minutes on two free cores
    python benchmarks/follow_recipes.py --quick   # two small data sets

A third of the rows is held out. A fit that warns is made again as the recipe at the end of its warning says. The fit
with 1000 + 1000 sweeps is what integers would have asked for; L1 logistic regression has a search and scaled columns.
"""

import ast
import re
import warnings

import numpy as np
from _data import DATA
from _measure import figure, run, timed
from _samplers import logistic, scores
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skhorseshoe import HorseshoeProbitClassifier

_MOST_ROUNDS = 3
_RECIPE = r"Fit again with (.+): about (a second|\d+ (s|minutes|hours))\.$"
NAMES = "wine", "wine, scaled", "setosa", "versicolor", "virginica", "breast cancer", "breast cancer, scaled", "digits"
NAMES += "spam", "genes", "500 x 20, seed 850", "rare events, 30 columns"
QUICK = "versicolor", "500 x 20, seed 850"


def said(model, X, y):
    """Seconds of a fit, and the messages of its warnings that end with a recipe."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seconds, _ = timed(lambda: model.fit(X, y))
    return seconds, [text for text in (str(one.message) for one in caught) if re.search(_RECIPE, text)]


def follow(model, message):
    """Set the parameters that the recipe at the end of a message names."""
    call = ast.parse(f"f({re.search(_RECIPE, message)[1]})", mode="eval").body
    model.set_params(**{word.arg: ast.literal_eval(word.value) for word in call.keywords})


def split(name):
    """X and y of the rows that are fitted, and of those that are held out."""
    X, y = DATA[name].make()
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
    return X, y, X_test, y_test


def contact(name):
    """The figures of one data set."""
    X, y, X_test, y_test = split(name)
    model = HorseshoeProbitClassifier(random_state=0)
    seconds, words = said(model, X, y)
    found = {
        "seconds": seconds,
        "burn-in": model.burn_in_,
        "sweeps": model.n_iter_,
        "warnings": len(words),
        "rounds": 0,
    }
    found |= {"ESS": float(np.nanmin(model.ess_)), "R-hat": float(np.nanmax(model.rhat_))}
    found["seconds of 1000 + 1000"], _ = said(clone(model).set_params(n_iter=1000, burn_in=1000), X, y)
    while words and found["rounds"] < _MOST_ROUNDS:
        follow(model, words[0])
        _, words = said(model, X, y)
        found["rounds"] += 1
    found |= {"clean": not words, **scores(model.predict_proba(X_test)[:, 1], y_test)}
    lasso = make_pipeline(StandardScaler(), logistic(None, 1, Cs=10, solver="liblinear", random_state=0))
    seconds, _ = said(lasso, X, y)
    return found | {"L1": {"seconds": seconds, **scores(lasso.predict_proba(X_test)[:, 1], y_test)}}


def recipes(report, options):
    names, found = QUICK if options.quick else NAMES, report.figures
    for name in names:
        found[name] = contact(name)
        print(name, {key: round(v, 3) if isinstance(v, float) else v for key, v in found[name].items()}, flush=True)
    every = [found[name] for name in names]
    report.add("most rounds to a clean fit", max(one["rounds"] for one in every), at_most=1)
    report.add("data sets without a clean fit", sum(not one["clean"] for one in every), at_most=0)
    ratios = [one["seconds"] / one["seconds of 1000 + 1000"] for one in every]
    report.add("time of a default fit beside one of 1000 + 1000 sweeps", figure(ratios))
    best, n = sum(one["log loss"] <= one["L1"]["log loss"] for one in every), len(every)
    report.add(f"of {n} data sets: log loss at most that of L1", best, at_least=9 * n // 12)


if __name__ == "__main__":
    run(__file__, __doc__, {"recipes": recipes})
