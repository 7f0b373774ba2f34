"""Which columns the rules of HorseshoeSelector find, and which they let in; README.md says how to run it."""

import argparse
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import HERE, Report, now, with_fresh_kernels

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.datasets import make_sparse_probit

RULES = ("dss", "interval", "shrinkage")


class Case(NamedTuple):
    """n rows of p columns, the first k of which matter, with coefficients of one size and alternating signs."""

    n: int
    p: int
    k: int
    size: float = 0.0
    rho: float = 0.0  # correlation of every pair of columns

    def make(self, seed):
        rng = np.random.default_rng(seed)
        X = np.sqrt(1 - self.rho) * rng.standard_normal((self.n, self.p))
        X += np.sqrt(self.rho) * rng.standard_normal((self.n, 1))
        coef = np.zeros(self.p)
        coef[: self.k] = self.size * (-1.0) ** np.arange(self.k)
        return X, (X @ coef + rng.standard_normal(self.n) > 0).astype(int), coef

    def __str__(self):
        what = f"{self.k or 'none'} of {self.p}" + (f"; {self.size:g}" if self.k else "")
        return f"{self.n}; {what}" + (f", correlated by {self.rho:g}" if self.rho else "")


class Paper(NamedTuple):
    """Data made as by Terenin, Dong & Draper (2019)."""

    n: int
    p: int

    def make(self, seed):
        return make_sparse_probit(self.n, self.p, random_state=seed)

    def __str__(self):
        return f"{self.n}; 6 of {self.p}; the paper's"


JUDGED = Paper(2000, 100)
CASES = [
    JUDGED,
    Case(500, 50, 0),
    Case(500, 50, 3, 0.5),
    Case(500, 50, 3, 0.5, rho=0.5),
    Case(500, 50, 3, 0.5, rho=0.9),
    Case(500, 50, 3, 0.2),
    Case(200, 100, 3, 0.8),
    Case(500, 10, 3, 0.5),
    Case(500, 50, 25, 0.5),
]


def measure(report, case, n_seeds):
    """Rows for a case: over data sets, each with its own seed, what each rule finds and lets in."""
    counts = {rule: {"found": [], "let in": []} for rule in (*RULES, "mean")}
    begin = time.perf_counter()
    for seed in range(n_seeds):
        X, y, coef = case.make(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the default length, converged or not
            model = HorseshoeProbitClassifier(random_state=seed).fit(X, y)
            supports = {rule: HorseshoeSelector(model, rule=rule, prefit=True).fit(X).support_ for rule in RULES}
        size = abs(model.coef_[0])
        supports["mean"] = size >= size.mean()  # the default threshold of SelectFromModel
        for rule, support in supports.items():
            counts[rule]["found"].append(int((support & (coef != 0)).sum()))
            counts[rule]["let in"].append(int((support & (coef == 0)).sum()))
    report.figures[str(case)] = {**counts, "seconds a data set": (time.perf_counter() - begin) / n_seeds}

    k, judged = int((coef != 0).sum()), case == JUDGED
    for rule, count in counts.items():
        target = judged and rule in RULES
        if k:
            share = float(np.mean(count["found"])) / k
            report.add(f"{case}: {rule}, share found", share, at_least=1 if target else None)
        report.add(f"{case}: {rule}, noise let in, mean", float(np.mean(count["let in"])))
        report.add(f"{case}: {rule}, noise let in, most", max(count["let in"]), at_most=1 if target else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="data sets for each case")
    parser.add_argument("--output", type=Path, help="default: results/selection-<date>.json, if all 20 are run")
    options = parser.parse_args()

    started = now()
    report = Report()
    report.head()
    for case in CASES:
        measure(report, case, options.seeds)
    if options.output is None and options.seeds >= 20:
        options.output = HERE / "results" / f"selection-{started[:10]}.json"
    if options.output:
        report.write(options.output, started)


if __name__ == "__main__":
    with_fresh_kernels(main)
