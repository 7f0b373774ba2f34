"""Which columns the rules of HorseshoeSelector and credible sets find, and which they let in; README.md says how to run
it."""

import argparse
import time
from pathlib import Path

import numpy as np
from _measure import Report
from selection_data import Blocks, Case, FromModel, Paper, Twins
from selection_errors import DEFAULT, QUICK, SHORT, WIDE, blocks, compared, fit, noise, rates, sizes, speed, twins
from selection_peers import Environment
from sklearn.metrics import log_loss

from skhorseshoe import HorseshoeSelector

RULES = ("dss", "interval", "shrinkage", "fsr")
NEW_ROWS = 2000  # that a model of the selected columns is scored on
PEER_SETS = 200  # data sets from the model that other packages are given too
ERRORS = ("speed", "rates", "wrong", "sizes", "sets", "peers")
NOISE = Case(500, 50, 0), Case(200, 20, 0, rho=0.7)
TRUE = FromModel(200, 50, pairs=10)
WRONG = [
    TRUE._replace(noise="logistic"),
    TRUE._replace(noise="t3"),
    TRUE._replace(columns="t3"),
    TRUE._replace(omitted=10),
    TRUE._replace(nonzero=5),
]

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
        model = fit(X, y, seed, (1000, n_iter))
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
    return log_loss(y_new, fit(X[:, support], y, seed, (1000, n_iter)).predict_proba(X_new[:, support]))


def errors(report, parts, n_seeds, n_rates, n_wrong, environment, quick):
    """Rates of false signs and sets, of data from the model and of others, twins, blocks, noise, time and memory."""
    short, default = (QUICK, QUICK) if quick else (SHORT, DEFAULT)
    if "speed" in parts:
        for p, n_draws, at_most in ((100, 4000, 0.2), (1000 if quick else 20_000, 4000, 10)):
            speed(report, p, n_draws, at_most)
    if "rates" in parts or "peers" in parts:
        n_peers = min(n_rates, PEER_SETS)
        counts = rates(report, TRUE, n_rates if "rates" in parts else n_peers, short, exact=True)
        if "peers" in parts:
            compared(report, TRUE, counts, n_peers, environment)
    if "wrong" in parts:
        for case in WRONG:
            rates(report, case, n_wrong, short, exact=False)
    if "sizes" in parts:
        for case in NOISE:
            sizes(report, case, n_seeds, short)
    if "sets" in parts:
        twins(report, Twins(100, 20, r=0.99), n_seeds, default)
        for case in NOISE:
            noise(report, case, n_seeds, default)
    if "sets" in parts or "peers" in parts:
        long, p = (QUICK, 60) if quick else (WIDE, 2000)
        blocks(report, Blocks(100, p), n_seeds, long, environment if "peers" in parts else None)
    if "peers" in parts:
        report.figures["other packages"] = environment.found


def parsed():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="data sets for each case")
    parser.add_argument("--longer", action="store_true", help="the paper's data alone, with four times the draws")
    parser.add_argument("--rates", type=int, default=500, help="data sets from the model")
    parser.add_argument("--wrong", type=int, default=200, help="data sets of each kind for which the model is wrong")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=("rules", "errors", *ERRORS),
        help="rules: which columns; errors: rates of false ones, or parts of it",
    )
    parser.add_argument(
        "--peers", type=Path, default=Path(".venv-selection-peers"), help="where other packages are, or are to be put"
    )
    parser.add_argument("--quick", action="store_true", help="the errors alone, of few and small data sets")
    parser.add_argument("--output", type=Path, help="default: results/selection-<date>.json, if all is run")
    return parser.parse_args()


def main():
    options = parsed()
    n_seeds, n_rates, n_wrong = options.seeds, options.rates, options.wrong
    only = set(options.only or (["errors"] if options.quick else ["rules", "errors"]))
    only |= set(ERRORS) if "errors" in only else set()
    if options.quick:
        n_seeds, n_rates, n_wrong = 1, min(n_rates, 2), 1

    report = Report()
    report.head()
    if options.longer or "rules" in only:
        for case in JUDGED if options.longer else CASES:
            measure(report, case, n_seeds, 4000 if options.longer else 1000)
    if not options.longer:
        environment = Environment(None if options.quick else options.peers) if "peers" in only else None
        errors(report, only, n_seeds, n_rates, n_wrong, environment, options.quick)
    enough = n_seeds >= 20 and (options.longer or (n_rates >= 500 and n_wrong >= 200 and only >= set(ERRORS)))
    name = "selection-longer" if options.longer else "selection" if "rules" in only else "selection-errors"
    report.write(name, options.output, enough)


if __name__ == "__main__":
    main()
