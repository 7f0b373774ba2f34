"""What rough single columns do to rules that state rates of errors: fits with more columns than rows that stop when
predictions and groups have converged, beside fits of the same data that go on until every column has."""

import argparse
import time
import warnings
from contextlib import ExitStack, contextmanager
from copy import copy
from unittest import mock

import numpy as np
from _measure import run_sections
from joblib import Parallel, delayed
from selection_data import SLAB, Blocks, FromModel
from selection_errors import claims_of, judged, summed

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit import parameters
from skhorseshoe._fit.watched import Watched
from skhorseshoe._mcmc.draws import ROUGH_ESS_PER_CHAIN, ROUGH_RHAT, Draws
from skhorseshoe.diagnostics import convergence

Q = 0.1
CASE = FromModel(60, 150, pairs=20)
STOPS = {"two steps": None, "strict": 400}  # target_ess of four chains
ROUGHEST = "roughest"
RULES = ("fsr", "sets")


def shortened(model):
    """The model with its first draws alone, as few as let single columns pass, whatever all else does."""
    n_chains, n_draws, _ = model.coef_draws_.shape
    n = 50
    while True:
        checks = convergence(model.coef_draws_[:, :n])
        if n == n_draws or (
            checks.rhat.max() <= ROUGH_RHAT and checks.ess_bulk.min() >= ROUGH_ESS_PER_CHAIN * n_chains
        ):
            break
        n = min(n_draws, n * 9 // 8)
    short = copy(model)
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_", "acceptance_draws_"):
        setattr(short, name, getattr(model, name)[:, :n])
    short.rhat_, short.ess_, short.n_iter_ = checks.rhat, checks.ess_bulk, n
    return short


def outcome(seed, case):
    """For each way to stop: what each rule claims, judged, what it claims, and how long and how rough the fit is."""
    X, y, coef = case.make(seed, case.n)
    models, found, sd = {}, {}, X.std(axis=0)
    for stop, target in STOPS.items():
        models[stop] = HorseshoeProbitClassifier(target_ess=target, n_jobs=1, random_state=seed, **case.prior())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            begin = time.process_time()
            models[stop].fit(X, y)
            found[stop] = {"seconds": time.process_time() - begin}
    models[ROUGHEST], found[ROUGHEST] = shortened(models["strict"]), {}
    for stop, model in models.items():
        claims = {rule: claims_of(model, X, rule, Q) for rule in RULES}
        found[stop] |= {
            "counts": {rule: judged(claims[rule], coef, sd) for rule in RULES},
            "claims": {rule: {(*columns, weights[0] > 0) for columns, weights in claims[rule]} for rule in RULES},
            "sweeps": model.n_iter_,
            "R-hat of the worst column": float(model.rhat_.max()),
            "effective draws of the worst column": float(model.ess_.min()),
        }
    return found


def rates(report, options):
    n_sets = 2 if options.quick else options.sets
    every = Parallel(options.jobs)(delayed(outcome)(seed, CASE) for seed in range(n_sets))
    for stop in (*STOPS, ROUGHEST):
        these = [one[stop] for one in every]
        for name in sorted(these[0].keys() - {"counts", "claims"}):
            values = [one[name] for one in these]
            report.add(f"{stop}: {name}, median", float(np.median(values)))
            report.figures[f"{stop}: {name}"] = values
        rough = [
            one["R-hat of the worst column"] > 1.01 or one["effective draws of the worst column"] < 400 for one in these
        ]
        report.add(f"{stop}: fits with rough columns, of {n_sets}", sum(rough))
        for rule in RULES:
            figures = summed([one["counts"][rule] for one in these])
            report.figures[f"{stop}: {rule}, q = {Q}"] = figures
            most = Q + 2 * figures["false share, Monte Carlo error"]
            report.add(f"{stop}: {rule}, q = {Q}, share false", figures["false share"], at_most=most)
            report.add(f"{stop}: {rule}, q = {Q}, share of signals found", figures["signals found"])
            report.add(f"{stop}: {rule}, q = {Q}, claims", sum(one["counts"][rule]["claims"] for one in these))
            if stop != "strict":
                changed = sum(len(one[stop]["claims"][rule] ^ one["strict"]["claims"][rule]) for one in every)
                report.add(f"{stop}: {rule}, q = {Q}, claims that this fit or the strict one lacks", changed)


def cost(report, options):
    """What looking at probabilities and groups takes, of the processor time of a fit that looks until its end."""
    sizes = [(30, 60)] if options.quick else [(60, 160), (120, 3000), (300, 2000)]
    for n, p in sizes:
        X, y, _ = Blocks(n, p).make(0, n)
        model = HorseshoeProbitClassifier(slab_scale=SLAB, expected_nonzero=5, n_jobs=1, random_state=0)
        HorseshoeProbitClassifier(n_iter=2, burn_in=2, slab_scale=SLAB, n_jobs=1).fit(X, y)  # compiles
        with looking() as spent, warnings.catch_warnings(), most_sweeps(50 if options.quick else 500):
            warnings.simplefilter("ignore")
            begin = time.process_time()
            model.fit(X, y)
            seconds = time.process_time() - begin
        title = f"{n} x {p}, {model.sampler_}, {model.burn_in_} + {model.n_iter_} sweeps"
        report.add(f"{title}: a fit", seconds, "s")
        report.add(f"{title}: looks", sum(spent), "s")
        report.add(f"{title}: looks, of the fit", sum(spent) / seconds, at_most=0.02)


@contextmanager
def looking():
    """A list of the processor seconds that each part of looking takes."""
    methods = (Watched, "__init__"), (Watched, "draws"), (Watched, "worst"), (Draws, "_all_suffice")
    seconds, inside = [], []

    def timed(method):
        def call(*args):
            if inside or args[1] == "columns":  # which are looked at in any case
                return method(*args)
            inside.append(begin := time.process_time())
            try:
                return method(*args)
            finally:
                inside.clear()
                seconds.append(time.process_time() - begin)

        return call

    with ExitStack() as patches:
        for owner, name in methods:
            patches.enter_context(mock.patch.object(owner, name, timed(getattr(owner, name))))
        yield seconds


def most_sweeps(n):
    return mock.patch.object(parameters, "DEFAULT_SWEEPS", n)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=60, help="data sets from the model")
    parser.add_argument("--jobs", type=int, default=1, help="processes, each of which does one fit at a time")
    run_sections("stopping", {"rates": rates, "cost": cost}, parser)
