"""How well the samplers mix: effective draws per kept draw and per second; README.md says how to run it."""

import argparse
import statistics
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import numpy as np
from _data import blocks, breast_cancer, digits, separated, strong_effects
from _measure import Report
from _wide_gibbs import in_its_place

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._utils import progress
from skhorseshoe.datasets import make_correlated_probit, make_rare_events, make_sparse_probit
from skhorseshoe.diagnostics import ess_bulk, rhat

N_CHAINS = 4
BEST = "hmc"  # the sampler that is judged, and compared with Gibbs
SWEEPS = 1000  # kept, and of burn-in: the defaults


class Case(NamedTuple):
    """A data set, and what it must reach: per kept draw, or as a multiple of Gibbs where ``relative``."""

    what: str
    make: object  # () -> X, y
    fit_intercept: bool
    beta: float
    tau: float
    relative: bool = False
    per_second: float = 5.0  # times the min ESS a second of Gibbs
    sweeps: int = SWEEPS  # kept, and of burn-in, in the fit that is timed
    longer: int = 5000  # kept sweeps of the Gibbs fit that its ESS per draw is taken from
    wide: bool = False  # whether that fit draws the coefficients by matrices over the rows
    n_seeds: int = 3
    slab: float | None = None  # slab_scale
    burn_in: int | None = None  # sweeps; None: as many as are kept
    rhat: float = 1.01
    with_gibbs: bool = True
    gibbs_sweeps: int | None = None  # kept, and of burn-in, by Gibbs; None: as many as by the other
    note: str = ""


CASES = {
    "synthetic2k": Case(
        "synthetic, n=2000, p=50", lambda: make_sparse_probit(2000, 50, random_state=0)[:2], False, 0.42, 0.26
    ),
    "synthetic10k": Case(
        "synthetic, n=10,000, p=100", lambda: make_sparse_probit(10_000, 100, random_state=0)[:2], False, 0.37, 0.19
    ),
    "wide10k": Case(
        "synthetic, n=10,000, p=1000",
        lambda: make_sparse_probit(10_000, 1000, random_state=0)[:2],
        False,
        0.25,
        0.15,
        longer=2000,
        n_seeds=1,
        note="one seed, and 2000 sweeps of Gibbs for its ESS per draw, which is too high rather than too low",
    ),
    "rare": Case(
        "rare events, n=20,000, p=50, 0.5 %, AR(.5), intercept",
        lambda: make_rare_events(random_state=0)[:2],
        True,
        0.35,
        0.24,
        per_second=20,
    ),
    "breast": Case("breast cancer, n=569, p=30, intercept", breast_cancer, True, 0.15, 0.25),
    "digits": Case(
        "digits 3 v 8, n=357, p=54, separated", digits, False, 0.04, 0.15, sweeps=2000, burn_in=1000, with_gibbs=False
    ),
    "strong": Case(
        "strong effects, n=1000, p=100", strong_effects, False, 0.10, 0.10, sweeps=2000, burn_in=1000, with_gibbs=False
    ),
    "separated": Case(
        "n=40, p=60, separated, slab 2",
        separated,
        False,
        0.10,
        0.25,
        sweeps=2000,
        burn_in=1000,
        rhat=1.005,
        with_gibbs=False,
        slab=2.0,
    ),
    "blocks": Case(
        "n=100, p=2000, blocks of 20, correlation 0.7, separated, slab 2",
        blocks,
        False,
        0.0,
        0.0,
        sweeps=4000,
        burn_in=1000,
        rhat=1.05,
        with_gibbs=False,
        n_seeds=1,
        slab=2.0,
        note="one seed",
    ),
    "correlated300": Case(
        "n=100, p=300, AR(.6), slab 2",
        lambda: make_correlated_probit(random_state=0)[:2],
        False,
        0.15,
        0.15,
        slab=2.0,
    ),
    "correlated5000": Case(
        "n=100, p=5000, AR(.6), slab 2",
        lambda: make_correlated_probit(n_features=5000, random_state=0)[:2],
        False,
        0.05,
        0.10,
        wide=True,
        n_seeds=1,
        slab=2.0,
        gibbs_sweeps=15,
        note="one seed. Gibbs factorises a 5000 x 5000 matrix for each chain in each sweep: 15 + 15 are timed, and its "
        "ESS is from 5000 draws of the same chain by matrices over the rows, which is too high rather than too low",
    ),
}
QUICK = {
    "digits": lambda: tuple(part[:100] for part in digits()),
    "strong": lambda: tuple(part[:200] for part in strong_effects()),
    "separated": separated,
    "blocks": lambda: (blocks()[0][:30, :60], blocks()[1][:30]),
    "synthetic2k": lambda: make_sparse_probit(200, 8, random_state=0)[:2],
    "synthetic10k": lambda: make_sparse_probit(300, 10, random_state=0)[:2],
    "wide10k": lambda: make_sparse_probit(300, 20, random_state=0)[:2],
    "rare": lambda: make_rare_events(500, 5, event_rate=0.05, random_state=0)[:2],
    "breast": lambda: (breast_cancer()[0][:, :4], breast_cancer()[1]),
    "correlated300": lambda: make_correlated_probit(30, 40, random_state=0)[:2],
    "correlated5000": lambda: make_correlated_probit(30, 80, random_state=0)[:2],
}


def measure(report, name, case):
    """Fit with every sampler in turn, seed by seed; a row for each quantity, the median over the seeds."""
    X, y = case.make()
    samplers = ("gibbs", BEST) if case.with_gibbs else (BEST,)
    for sampler in samplers:  # what is compiled or loaded at the first fit is not of interest here
        fit(X, y, case, sampler, 0, n_iter=4, burn_in=20)
    found = {sampler: [] for sampler in samplers}
    for seed in range(case.n_seeds):
        for sampler in samplers:
            found[sampler].append(one(X, y, case, sampler, seed))
    report.figures[name] = {"what": case.what, "note": case.note, **found}

    middle = {sampler: medians(runs) for sampler, runs in found.items()}
    for sampler in samplers:
        m, judged = middle[sampler], sampler == BEST
        for what in ("beta", "tau"):
            target = getattr(case, what)
            row(
                report, f"{case.what}: {sampler}, min ESS a draw, {what}", m[what], judged and not case.relative, target
            )
        report.add(f"{case.what}: {sampler}, worst R-hat", m["rhat"], at_most=case.rhat if judged else None)
        report.add(f"{case.what}: {sampler}, sampling phase, a sweep", m["sweep"] * 1e3, "ms")
        report.add(f"{case.what}: {sampler}, whole fit", m["fit"], "s")
        report.add(f"{case.what}: {sampler}, min ESS a second of the fit", m["per second"])
    if not case.with_gibbs:
        return
    for what, target in (("beta", case.beta), ("tau", case.tau)):
        gain = middle[BEST][what] / middle["gibbs"][what]
        row(report, f"{case.what}: {BEST} / gibbs, min ESS a draw, {what}", gain, case.relative, target)
    gain = statistics.median(
        h["per second"] / g["per second"] for g, h in zip(found["gibbs"], found[BEST], strict=True)
    )
    report.add(f"{case.what}: {BEST} / gibbs, min ESS a second", gain, at_least=case.per_second)
    if case.note:
        print(f"  note: {case.note}")


def row(report, what, value, judged, target):
    report.add(what, value, at_least=target if judged else None)


def one(X, y, case, sampler, seed):
    """What one fit gives, and for Gibbs a longer one that its ESS per draw is taken from."""
    sweeps = case.gibbs_sweeps if sampler == "gibbs" and case.gibbs_sweeps else case.sweeps
    model, seconds, sweep = fit(X, y, case, sampler, seed, n_iter=sweeps, burn_in=case.burn_in or sweeps)
    result = {
        "fit": seconds,
        "sweep": sweep,
        "rhat": float(max(rhat(draws).max() for draws in parameters(model).values())),
        "tuning": {key: float(value) for key, value in model.tuning_.items()},
        "the timed fit": effective(model),
    }
    if sampler == "gibbs":
        with in_its_place() if case.wide else nullcontext():
            longer, _, _ = fit(X, y, case, sampler, seed, n_iter=case.longer, burn_in=case.sweeps)
        result |= effective(longer)
    else:
        result |= result["the timed fit"]
    result["per second"] = min(result["beta"], result["tau"]) * N_CHAINS * sweeps / seconds
    return result


def fit(X, y, case, sampler, seed, **sweeps):
    """The model, the seconds of the whole fit, and the seconds a sweep of the sampling phase."""
    times = {}
    reporter = progress.reporter
    progress.reporter = lambda *args: lambda t: times.__setitem__(t, time.perf_counter())
    params = {"global_scale": 1.0, "n_chains": N_CHAINS, "n_jobs": 2, "random_state": seed, **sweeps}
    params["slab_scale"] = case.slab
    model = HorseshoeProbitClassifier(sampler=sampler, fit_intercept=case.fit_intercept, **params)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that chains have not converged is what is measured
            begin = time.perf_counter()
            model.fit(X, y)
            seconds = time.perf_counter() - begin
    finally:
        progress.reporter = reporter
    first, last = sweeps["burn_in"] + 1, sweeps["burn_in"] + sweeps["n_iter"]
    return model, seconds, (times[last] - times[first]) / (last - first)


def parameters(model):
    """The draws of the coefficients and the intercept as one array, and of tau as another."""
    beta = [model.coef_draws_]
    if model.fit_intercept:
        beta.append(model.intercept_draws_[:, :, None])
    return {"beta": np.concatenate(beta, axis=2), "tau": model.global_scale_draws_[:, :, None]}


def effective(model):
    """Bulk ESS per kept draw: the least of the coefficients and the intercept, whose it is, the median, tau's."""
    draws = parameters(model)
    n = draws["beta"].shape[0] * draws["beta"].shape[1]
    beta, tau = (ess_bulk(draws[what]) / n for what in ("beta", "tau"))
    worst = int(beta.argmin())
    values = draws["beta"][:, :, worst]
    return {
        "beta": float(beta.min()),
        "tau": float(tau[0]),
        "median beta": float(np.median(beta)),
        "worst": {"index": worst, "mean": float(values.mean()), "sd": float(values.std())},
        "draws": n,
    }


def medians(runs):
    return {
        key: statistics.median(r[key] for r in runs) for key in ("beta", "tau", "rhat", "sweep", "fit", "per second")
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), help="data sets to run")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/mixing-<date>.json, if all is run at full size")
    options = parser.parse_args()

    report = Report()
    report.head()
    for name in options.only:
        case = CASES[name]
        if options.quick:
            case = case._replace(
                what=f"QUICK {name}",
                make=QUICK[name],
                sweeps=100,
                longer=200,
                gibbs_sweeps=None,
                n_seeds=2,
                note="",
            )
        measure(report, name, case)
    report.write("mixing", options.output, complete=not options.quick and set(options.only) == set(CASES))


if __name__ == "__main__":
    main()
