"""What rough single columns do to rules that state rates of errors: fits with more columns than rows that stop when
predictions and groups have converged, beside fits of the same data that go on until every column has."""

import argparse
import time
import warnings

import numpy as np
from _measure import run_sections
from joblib import Parallel, delayed
from selection_data import FromModel
from selection_errors import claims_of, judged, summed

from skhorseshoe import HorseshoeProbitClassifier

Q = 0.1
CASE = FromModel(60, 150, pairs=20, tau_0=0.02)
STOPS = {"two steps": None, "strict": 400}  # target_ess of four chains
RULES = ("fsr", "sets")


def outcome(seed, case):
    """For each way to stop: what each rule claims, judged, what it claims, and how long and how rough the fit is."""
    X, y, coef = case.make(seed, case.n)
    found, sd = {}, X.std(axis=0)
    for stop, target in STOPS.items():
        model = HorseshoeProbitClassifier(target_ess=target, n_jobs=1, random_state=seed, **case.prior())
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            begin = time.process_time()
            model.fit(X, y)
        claims = {rule: claims_of(model, X, rule, Q) for rule in RULES}
        found[stop] = {
            "counts": {rule: judged(claims[rule], coef, sd) for rule in RULES},
            "claims": {rule: {(*columns, weights[0] > 0) for columns, weights in claims[rule]} for rule in RULES},
            "seconds": time.process_time() - begin,
            "sweeps": model.n_iter_,
            "rhat": float(model.rhat_.max()),
            "ess": float(model.ess_.min()),
            "rough": "single columns are rough" in " ".join(model.summary().attrs["header"].split()),
            "warned": any("have not converged" in str(one.message) for one in caught),
        }
    return found


def rates(report, options):
    n_sets = 2 if options.quick else options.sets
    every = Parallel(options.jobs)(delayed(outcome)(seed, CASE) for seed in range(n_sets))
    for stop in STOPS:
        these = [one[stop] for one in every]
        for name in ("sweeps", "rhat", "ess", "seconds"):
            values = [one[name] for one in these]
            report.add(f"{stop}: {name}, median", float(np.median(values)))
            report.figures[f"{stop}: {name}"] = values
        report.add(f"{stop}: fits with rough columns, of {n_sets}", sum(one["rough"] for one in these))
        report.add(f"{stop}: fits with a warning that chains have not converged", sum(one["warned"] for one in these))
        for rule in RULES:
            figures = summed([one["counts"][rule] for one in these])
            report.figures[f"{stop}: {rule}, q = {Q}"] = figures
            most = Q + 2 * figures["false share, Monte Carlo error"]
            report.add(f"{stop}: {rule}, q = {Q}, share false", figures["false share"], at_most=most)
            report.add(f"{stop}: {rule}, q = {Q}, share of signals found", figures["signals found"])
    for rule in RULES:
        sets = [[one[stop]["claims"][rule] for stop in STOPS] for one in every]
        changed = sum(len(a ^ b) for a, b in sets) / max(1, sum(len(a | b) for a, b in sets))
        report.add(f"{rule}, q = {Q}: share of claims that one of the two fits lacks", changed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=60, help="data sets from the model")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each of which does one fit at a time")
    run_sections("stopping", {"rates": rates}, parser)
