"""Which columns the rules of HorseshoeSelector find, and which they let in; README.md says how to run it."""

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import Report
from sklearn.metrics import log_loss

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.datasets import make_sparse_probit

RULES = ("dss", "interval", "shrinkage")
NEW_ROWS = 2000  # that a model of the selected columns is scored on


class Case(NamedTuple):
    """n rows of p columns, the first k of which matter, with coefficients of one size and alternating signs."""

    n: int
    p: int
    k: int
    size: float = 0.0
    rho: float = 0.0  # correlation of every pair of columns

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = np.sqrt(1 - self.rho) * rng.standard_normal((n, self.p)) + np.sqrt(self.rho) * rng.standard_normal((n, 1))
        coef = np.zeros(self.p)
        coef[: self.k] = self.size * (-1.0) ** np.arange(self.k)
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        what = f"{self.k or 'none'} of {self.p}" + (f"; {self.size:g}" if self.k else "")
        return f"{self.n}; {what}" + (f", correlated by {self.rho:g}" if self.rho else "")


class Paper(NamedTuple):
    """Data made as by Terenin, Dong & Draper (2019)."""

    n: int
    p: int

    def make(self, seed, n):
        return make_sparse_probit(n, self.p, random_state=seed)

    def __str__(self):
        return f"{self.n}; 6 of {self.p}; the paper's"


class Twins(NamedTuple):
    """Two columns matter; a third is nearly a copy of the first and counts as one to be let in."""

    n: int
    p: int

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.p))
        X[:, 2] = X[:, 0] + 0.05 * rng.standard_normal(n)
        coef = np.zeros(self.p)
        coef[:2] = 1.0, -0.7
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        return f"{self.n}; 2 of {self.p}; 1 and -0.7, one with a twin"


JUDGED = [Paper(2000, 100), Paper(10_000, 100)]
CASES = [
    *JUDGED,
    Case(500, 3, 0),
    Case(500, 50, 0),
    Case(500, 50, 3, 0.5),
    Case(500, 50, 3, 0.5, rho=0.5),
    Case(500, 50, 3, 0.5, rho=0.9),
    Case(500, 50, 3, 0.2),
    Case(200, 100, 3, 0.8),
    Case(500, 10, 3, 0.5),
    Case(500, 50, 25, 0.5),
    Twins(300, 20),
]


def measure(report, case, n_seeds, n_iter):
    """Rows for a case: over data sets, each with its own seed, what each rule finds and lets in."""
    counts = {rule: {"found": [], "let in": [], "log loss": []} for rule in (*RULES, "mean", "all")}
    begin = time.perf_counter()
    for seed in range(n_seeds):
        X, y, coef = case.make(seed, case.n + NEW_ROWS)
        new = X[case.n :], y[case.n :]
        X, y = X[: case.n], y[: case.n]
        model = fit(X, y, seed, n_iter)
        size = abs(model.coef_[0])
        supports = {rule: HorseshoeSelector(model, rule=rule, prefit=True).fit(X).support_ for rule in RULES}
        supports["mean"] = size >= size.mean()  # the default threshold of SelectFromModel
        for rule, support in supports.items():
            counts[rule]["found"].append(int((support & (coef != 0)).sum()))
            counts[rule]["let in"].append(int((support & (coef == 0)).sum()))
        for rule in RULES:
            counts[rule]["log loss"].append(score_again(supports[rule], X, y, *new, seed, n_iter))
        counts["all"]["log loss"].append(log_loss(new[1], model.predict_proba(new[0])))
    report.figures[str(case)] = {**counts, "seconds a data set": (time.perf_counter() - begin) / n_seeds}

    k = int((coef != 0).sum())
    for rule, count in counts.items():
        judged = case in JUDGED and rule in RULES
        if k and count["found"]:
            share = float(np.mean(count["found"])) / k
            report.add(f"{case}: {rule}, share found", share, at_least=1 if judged else None)
        if count["let in"]:
            report.add(f"{case}: {rule}, noise let in, mean", float(np.mean(count["let in"])))
            report.add(f"{case}: {rule}, noise let in, most", max(count["let in"]), at_most=1 if judged else None)
        if count["log loss"]:
            report.add(f"{case}: {rule}, log loss of new rows", float(np.mean(count["log loss"])))


def score_again(support, X, y, X_new, y_new, seed, n_iter):
    """Log loss on new rows of a second fit, with the selected columns alone."""
    if not support.any():
        return log_loss(y_new, np.full(len(y_new), y.mean()))
    return log_loss(y_new, fit(X[:, support], y, seed, n_iter).predict_proba(X_new[:, support]))


def fit(X, y, seed, n_iter):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the length that is asked for, converged or not
        return HorseshoeProbitClassifier(n_iter=n_iter, random_state=seed).fit(X, y)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="data sets for each case")
    parser.add_argument("--longer", action="store_true", help="the paper's data alone, with four times the draws")
    parser.add_argument("--output", type=Path, help="default: results/selection-<date>.json, if all 20 are run")
    options = parser.parse_args()

    report = Report()
    report.head()
    for case in JUDGED if options.longer else CASES:
        measure(report, case, options.seeds, 4000 if options.longer else 1000)
    name = "selection-longer" if options.longer else "selection"
    report.write(name, options.output, complete=options.seeds >= 20)


if __name__ == "__main__":
    main()
