"""Which columns the rules of HorseshoeSelector and credible sets find, and which they let in; README.md says how to run
it."""

import argparse
import time
import tracemalloc
import warnings
from copy import copy
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _measure import Report
from sklearn.metrics import log_loss

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.groups import credible_sets

RULES = ("dss", "interval", "shrinkage", "fsr")
NEW_ROWS = 2000  # that a model of the selected columns is scored on
EFFECT = 0.1  # the least that counts, in all rates of false signs and sets
SHARES = (0.05, 0.1, 0.2)  # of false ones, that are asked for
SLAB = 2.0


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
    r: float = 0.99875  # of the copy with the first

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.p))
        X[:, 2] = X[:, 0] + np.sqrt(1 / self.r**2 - 1) * rng.standard_normal(n)
        coef = np.zeros(self.p)
        coef[:2] = 1.0, -0.7
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        return f"{self.n}; 2 of {self.p}; 1 and -0.7, one with a twin"


class FromModel(NamedTuple):
    """Coefficients from the prior of the fit itself: the horseshoe with tau ~ C+(0, tau_0), times the slab.

    Columns have unit variance. The first 2 * pairs of them are pairs with a correlation of 0.9.
    """

    n: int
    p: int
    pairs: int = 0
    tau_0: float = 0.05

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((n, self.p))
        X[:, 1 : 2 * self.pairs : 2] = 0.9 * X[:, : 2 * self.pairs : 2] + np.sqrt(0.19) * X[:, 1 : 2 * self.pairs : 2]
        while True:
            tau = self.tau_0 * abs(rng.standard_cauchy())
            coef = tau * abs(rng.standard_cauchy(self.p)) * rng.standard_normal(self.p)
            if np.log(rng.random()) < -0.5 * np.sum((coef / SLAB) ** 2):  # the slab, by rejection
                return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def prior(self):
        return {"global_scale": self.tau_0, "slab_scale": SLAB, "fit_intercept": False}

    def __str__(self):
        return f"{self.n} x {self.p} from the model, tau_0 = {self.tau_0:g}, slab {SLAB:g}, {self.pairs} pairs"


class Blocks(NamedTuple):
    """Blocks of 20 columns with correlations of 0.7; one column matters in each of the first three blocks."""

    n: int
    p: int
    size: float = 1.5

    def make(self, seed, n):
        rng = np.random.default_rng(seed)
        common = np.repeat(rng.standard_normal((n, self.p // 20)), 20, axis=1)
        X = np.sqrt(0.7) * common + np.sqrt(0.3) * rng.standard_normal((n, self.p))
        coef = np.zeros(self.p)
        coef[[3, 27, 51]] = self.size * np.array([1, -1, 1])
        return X, (X @ coef + rng.standard_normal(n) > 0).astype(int), coef

    def __str__(self):
        return f"{self.n}; 3 of {self.p}; {self.size:g}, in blocks of 20 with r = 0.7"


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
        judged = case in JUDGED and rule in RULES[:3]
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


def fit(X, y, seed, n_iter, **prior):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the length that is asked for, converged or not
        return HorseshoeProbitClassifier(n_iter=n_iter, random_state=seed, **prior).fit(X, y)


def realised(case, seed, n_iter):
    """What is claimed of one data set from the model, by rule and q, and which share of it is false.

    Sets have a level of 1/2 here, so that it is q which limits them.
    """
    X, y, coef = case.make(seed, case.n)
    model, truth = fit(X, y, seed, n_iter, **case.prior()), coef * X.std(axis=0)
    sized = model.coef_draws_ * X.std(axis=0)
    side = np.where((sized > EFFECT).mean(axis=(0, 1)) >= (sized < -EFFECT).mean(axis=(0, 1)), 1, -1)
    signals, counts = abs(truth) > EFFECT, {}
    for q in SHARES:
        kept = HorseshoeSelector(model, rule="fsr", q=q, effect=EFFECT, prefit=True).fit(X).support_
        right = side * truth > EFFECT
        counts["fsr", q] = _counted(
            kept.sum(), (kept & ~right).sum(), kept.sum(), (kept & signals).sum(), signals.sum()
        )
        sets, members = credible_sets(model, X, level=0.5, effect=EFFECT, q=q)
        effects = [_members(members, title) for title in sets.index]
        true_sums = np.array([coef[columns] @ weights for columns, weights in effects])
        false = int((np.sign(sets["mean"]) * true_sums <= EFFECT).sum())
        covered = np.zeros(len(coef), bool)
        for columns, _ in effects:
            covered[columns] = True
        counts["sets", q] = _counted(len(sets), false, covered.sum(), (covered & signals).sum(), signals.sum())
    return counts


def _counted(claims, false, columns, found, signals):
    share = false / claims if claims else 0.0
    return {
        "claims": int(claims),
        "false share": float(share),
        "columns": int(columns),
        "found": int(found),
        "signals": int(signals),
    }


def _members(members, title):
    """Numbers and weights of the columns of a set."""
    rows = members.loc[title]
    return [int(name.removeprefix("x")) for name in rows.index], rows["weight"].to_numpy()


def rates(report, case, n_seeds, n_iter):
    """Rows for data from the model: the mean share of false claims at each q, at most q but for chance."""
    counts = [realised(case, seed, n_iter) for seed in range(n_seeds)]
    for rule, q in counts[0]:
        every = [count[rule, q] for count in counts]
        false = np.array([one["false share"] for one in every])
        error = false.std() / np.sqrt(len(false))
        what = f"{case}: {rule}, q = {q:g}"
        report.add(f"{what}, share of false claims", float(false.mean()), at_most=q + 2 * float(error))
        total = {name: sum(one[name] for one in every) for name in every[0]}
        report.add(f"{what}, share of signals found", total["found"] / max(1, total["signals"]))
        report.add(f"{what}, columns per claim", total["columns"] / max(1, total["claims"]))
        report.figures[f"{what}"] = every


def twins(report, case, n_seeds, n_iter):
    """Rows for twins: in how many data sets the pair is a set, and in how many one of the two, or the wrong one, is."""
    pairs = alone = wrong = 0
    for seed in range(n_seeds):
        X, y, _ = case.make(seed, case.n)
        found = _found(credible_sets(fit(X, y, seed, n_iter), X, effect=EFFECT))
        pairs += {0, 2} in found
        alone += {0} in found or {2} in found
        wrong += {2} in found
    report.add(f"{case}, r = {case.r:g}: sets that are the pair, of {n_seeds}", pairs, at_least=n_seeds)
    report.add(f"{case}, r = {case.r:g}: data sets with one of the two alone", alone, at_most=0)
    report.add(f"{case}, r = {case.r:g}: data sets with the wrong one alone", wrong, at_most=0)


def blocks(report, case, n_seeds, n_iter):
    """Rows for blocks: how many of the three are found, and how many others, by each rule and by sets."""
    right, wrong, sizes = {}, {}, []
    for seed in range(n_seeds):
        X, y, coef = case.make(seed, case.n)
        # The columns separate the classes: without a slab nothing limits the coefficients, those of noise either.
        model = fit(X, y, seed, n_iter, slab_scale=SLAB, expected_nonzero=3)
        true = set(np.flatnonzero(coef) // 20)
        claims = {
            rule: HorseshoeSelector(model, rule=rule, prefit=True).fit(X).get_support(indices=True) // 20
            for rule in RULES
        }
        found = _found(credible_sets(model, X, effect=EFFECT))
        sizes += [len(one) for one in found]
        claims["sets"] = [min(one) // 20 if len({j // 20 for j in one}) == 1 else -1 for one in found]
        for rule, named in claims.items():
            right[rule] = right.get(rule, 0) + len(true & set(named))
            wrong[rule] = wrong.get(rule, 0) + len(set(named) - true)
    best = max(right[rule] for rule in RULES) / (3 * n_seeds)
    for rule in right:
        goal = best if rule == "sets" else None
        report.add(f"{case}: {rule}, share of blocks found", right[rule] / (3 * n_seeds), at_least=goal)
        report.add(f"{case}: {rule}, wrong blocks, mean", wrong[rule] / n_seeds)
    report.add(f"{case}: columns in a set, mean", float(np.mean(sizes)) if sizes else 0.0)
    report.figures[f"{case}: sizes of sets"] = sizes


def _found(found):
    return [set(_members(found.members, title)[0]) for title in found.sets.index]


def noise(report, case, n_seeds, n_iter):
    """A row for noise: in how many data sets there is a set."""
    some = 0
    for seed in range(n_seeds):
        X, y, _ = case.make(seed, case.n)
        some += len(credible_sets(fit(X, y, seed, n_iter), X, effect=EFFECT).sets) > 0
    report.add(f"{case}: data sets with any set, of {n_seeds}", some, at_most=n_seeds // 20)


def speed(report, p, n_draws, at_most):
    """Rows for the time and memory of sets of made-up draws, columns in blocks of 20 with r = 0.7."""
    X, _, _ = Blocks(200, p).make(0, 200)
    rng = np.random.default_rng(0)
    draws = 0.02 * rng.standard_normal((4, n_draws // 4, p))
    draws[..., 0] += 1
    first = rng.random((4, n_draws // 4)) < 0.5
    draws[..., 20] += first
    draws[..., 21] += ~first
    model = copy(fit(X[:, :3], np.arange(200) % 2, 0, 20))
    model.coef_draws_, model.global_scale_draws_ = draws, np.ones(draws.shape[:2])
    model.shrinkage_ = model.inclusion_score_ = np.full(p, 0.5)
    model.ess_, model._column_sd, model.n_features_in_ = np.full(p, float(n_draws)), X.std(axis=0), p
    credible_sets(model, X)
    begin = time.perf_counter()
    credible_sets(model, X)
    report.add(f"sets of {p} columns, {n_draws} draws", time.perf_counter() - begin, "s", at_most=at_most)
    tracemalloc.start()
    credible_sets(model, X)
    report.add(
        f"sets of {p} columns, memory beside the draws", tracemalloc.get_traced_memory()[1] / 2**30, "GiB", at_most=1
    )
    tracemalloc.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="data sets for each case")
    parser.add_argument("--longer", action="store_true", help="the paper's data alone, with four times the draws")
    parser.add_argument("--rates", type=int, default=500, help="data sets from the model")
    parser.add_argument("--only", choices=("rules", "errors"), help="rules: which columns; errors: rates of false ones")
    parser.add_argument("--quick", action="store_true", help="the errors alone, of few and small data sets")
    parser.add_argument("--output", type=Path, help="default: results/selection-<date>.json, if all 20 are run")
    options = parser.parse_args()

    report = Report()
    report.head()
    if options.only != "errors" and not options.quick:
        for case in JUDGED if options.longer else CASES:
            measure(report, case, options.seeds, 4000 if options.longer else 1000)
    if options.only != "rules" and not options.longer:
        errors(report, options.seeds, options.rates, options.quick)
    name = "selection-longer" if options.longer else "selection"
    complete = options.seeds >= 20 and options.rates >= 500 and not (options.only or options.quick)
    report.write(name, options.output, complete or (options.longer and options.seeds >= 20))


def errors(report, n_seeds, n_rates, quick):
    """Rates of false signs and sets, twins, blocks, noise, time and memory."""
    if quick:
        n_seeds, n_rates = min(n_seeds, 5), min(n_rates, 20)
    n_iter = 300 if quick else 1000
    for p, n_draws, at_most in ((100, 4000, 0.2), (1000 if quick else 20_000, 4000, 10)):
        speed(report, p, n_draws, at_most)
    rates(report, FromModel(200, 50, pairs=10), n_rates, n_iter)
    twins(report, Twins(100, 20, r=0.99), n_seeds, n_iter)
    for case in (Case(500, 50, 0), Case(200, 20, 0, rho=0.7)):
        noise(report, case, n_seeds, n_iter)
    blocks(report, Blocks(100, 200 if quick else 2000), n_seeds, n_iter)


if __name__ == "__main__":
    main()
