"""Sweeps and effective draws of the worst quantity, a second of processor time, beside another commit.

    python benchmarks/per_second.py --before CHECKOUT   # five minutes on a free core
    python benchmarks/per_second.py --only ordered --nuts PYTHON  # ordered classes, beside NumPyro; half an hour
    python benchmarks/per_second.py --only several --nuts PYTHON  # and several without an order
    python benchmarks/per_second.py --only levels --before CHECKOUT  # columns for all levels; four minutes
    python benchmarks/per_second.py --quick             # does it run?

Fits of 1000 + 1000 or 1000 + 2000 sweeps with three seeds, on one thread, burn-in and all answers of ``fit`` included;
the two commits in turns; compilation does not count. A default fit, and the sampler in NumPy, stand beside them.
"""

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from _data import DATA, alike_levels, hospitals, in_order, nearly_copies, of_utilities, two_levels, wards
from _measure import ONE_THREAD, figure, fit, in_child, ratio, run, timed
from _samplers import numpyro_nuts, reference_gibbs

from skhorseshoe.diagnostics import ess_bulk, mcse_mean, rhat

N_SEEDS = 3
SETS = {  # kept sweeps, intercept
    "532 x 7": (1000, True),
    "500 x 20": (1000, True),
    "breast cancer, scaled": (1000, True),
    "strong": (2000, False),
    "digits, scaled": (2000, False),
    "spam": (1000, True),
}
CLOCK = time.process_time
LEAST = 0.97  # times as many sweeps a second as before
DEFAULT = "500 x 20"  # of which the default fit is timed as well
# Rows, columns, classes; burn-in and draws of NUTS.
ORDERED = {(600, 20, 5): (300, 300), (2000, 50, 4): (150, 150)}
SEVERAL = {(300, 8, 4): (400, 400), (400, 20, 5): (300, 300), (1000, 50, 3): (150, 150)}
LEVELS = {"two levels": two_levels, "regions and hospitals": hospitals, "regions, hospitals and wards": wards}
LEVELS |= {"nearly copies": nearly_copies, "nearly copies, sparse": alike_levels}
LEVELS |= {"nearly copies, 252 columns": partial(nearly_copies, r=0.99, p=250)}
ESTIMATES = "means", "errors"  # by two samplers, which are compared
DRAWS, SWEEPS = "effective draws a second", "sweeps a second"


def per_second(seed, names, quick):
    """By data set, effective draws and sweeps a second, and seconds of the default fit of one."""
    out = {}
    for name in names:
        (n_iter, intercept), (X, y) = SETS[name], DATA[name].make()
        how = {"n_iter": 20, "burn_in": 100} if quick else {"n_iter": n_iter, "burn_in": 1000}
        how |= {"fit_intercept": intercept, "n_jobs": 1, "random_state": seed}
        fit(X[:100], y[:100], how)  # compiles
        seconds, model = timed(lambda X=X, y=y, how=how: fit(X, y, how), CLOCK)
        draws = np.dstack([model.coef_draws_, model.intercept_draws_, model.global_scale_draws_])
        least = np.nanmin(ess_bulk(draws if intercept else draws[..., [*range(X.shape[1]), -1]]))
        out[name] = {DRAWS: float(least) / seconds, SWEEPS: (model.n_iter + model.burn_in) / seconds}
        if name == DEFAULT and not quick:
            default = {"n_jobs": 1, "random_state": seed}
            out["a default fit"], _ = timed(lambda X=X, y=y, how=default: fit(X, y, how), CLOCK)
    return out


def of_reference(seed):
    """The same by the sampler in NumPy and SciPy, for the first data set."""
    X, y = DATA["532 x 7"].make()
    rng = np.random.default_rng(seed)
    seconds, draws = timed(lambda: reference_gibbs(X, y, 1000, 1000, 4, rng), CLOCK)
    return float(min(np.min(ess_bulk(values)) for values in draws) / seconds)


def pairs(report, options):
    names, found = [DEFAULT] if options.quick else list(SETS), {}
    folders = {"now": {}} | ({"before": {"folder": options.before}} if options.before else {})
    for seed in range(1 if options.quick else N_SEEDS):
        for commit, where in folders.items():
            one = in_child(per_second, env=ONE_THREAD, **where, seed=seed, names=names, quick=options.quick)
            found.setdefault(commit, []).append(one)
            print(commit, one, flush=True)
    report.figures |= found
    for name in names:
        for what, target in {DRAWS: {}, SWEEPS: {"at_least": LEAST}}.items():
            now = [one[name][what] for one in found["now"]]
            report.add(f"{name}: {what}", figure(now))
            if options.before:
                times = [a / b[name][what] for a, b in zip(now, found["before"], strict=True)]
                report.add(f"{name}: {what}, times as many as before", figure(times), **target)
    if options.quick:
        return
    if options.before:
        both = zip(found["now"], found["before"], strict=True)
        shares = figure([now["a default fit"] / before["a default fit"] for now, before in both])
        report.add(f"{DEFAULT}: a default fit, share of the time before", shares)
    times = [
        one["532 x 7"][DRAWS] / in_child(of_reference, env=ONE_THREAD, seed=k) for k, one in enumerate(found["now"])
    ]
    report.add("532 x 7: effective draws, times as many as by the sampler in NumPy", figure(times), at_least=12)


def of_levels(name, seed, quick):
    """The worst quantity of four chains of 1000 draws, and seconds."""
    X, y = LEVELS[name](seed)
    how = {"n_iter": 20, "burn_in": 100} if quick else {"n_iter": 1000, "burn_in": 400}
    seconds, model = timed(lambda: fit(X, y, how | {"n_jobs": 1, "random_state": seed}), CLOCK)
    draws = np.dstack([model.coef_draws_, model.intercept_draws_, model.global_scale_draws_])
    return {"least": float(ess_bulk(draws).min()), "rhat": float(rhat(draws).max()), "seconds": seconds}


def levels(report, options):
    """A column for each level of categories, of which some are parts of others; and columns that are nearly copies."""
    folders = {"now": {}} | ({"before": {"folder": options.before}} if options.before else {})
    for name in list(LEVELS)[:1] if options.quick else LEVELS:
        found = {}
        for seed in range(1 if options.quick else N_SEEDS):
            for commit, where in folders.items():
                one = in_child(of_levels, env=ONE_THREAD, **where, name=name, seed=seed, quick=options.quick)
                found.setdefault(commit, []).append(one)
                print(name, commit, one, flush=True)
        report.figures[name] = found
        for commit, runs in found.items():
            for what in runs[0]:
                report.add(f"{name}: {what}, {commit}", figure([one[what] for one in runs]))


def classes_nuts(seed, shape, burn_in, n_iter, has_order):
    """Of NumPyro's NUTS, without the seconds of compilation, which takes several threads."""
    X, y = (in_order if has_order else of_utilities)(seed, *shape)
    nuts = numpyro_nuts(X, y, np.inf, burn_in, n_iter, seed, ordered=has_order, several=not has_order)
    draws, seconds = np.dstack([nuts.coef, nuts.intercept]), nuts.burn_in + nuts.sampling
    return of_classes(draws, seconds) | {"divergent": nuts.divergent}


def classes_ours(seed, shape, burn_in, n_iter, has_order):
    X, y = (in_order if has_order else of_utilities)(seed, *shape)
    how = {"ordered": has_order, "slab_scale": None, "n_jobs": 1, "target_ess": None, "random_state": seed}
    fit(X, y, {**how, "n_iter": 20, "burn_in": 100})  # compiles
    seconds, model = timed(lambda: fit(X, y, {**how, "n_iter": n_iter, "burn_in": burn_in}), CLOCK)
    coef, others = model.coef_draws_, model.cut_points_draws_ if has_order else model.intercept_draws_
    return of_classes(np.dstack([coef.reshape(*coef.shape[:2], -1), others]), seconds)


def of_classes(draws, seconds):
    """Figures of draws of coefficients, and cut points or intercepts (n_chains, n_draws, k)."""
    ess = ess_bulk(draws)
    found = {"seconds": seconds, "least": float(ess.min() / seconds), "median": float(np.median(ess) / seconds)}
    found |= {"least ESS": float(ess.min()), "rhat": float(rhat(draws).max())}
    return found | {"means": draws.mean(axis=(0, 1)).tolist(), "errors": mcse_mean(draws).tolist()}


def classes(report, options, has_order):
    """More than two classes, four chains, burn-in included: the least and the median over coefficients, and cut points
    or intercepts. Without an order NUTS has logistic regression, whose means are others."""
    shapes = {(60, 5, 4): (5, 5)} if options.quick else ORDERED if has_order else SEVERAL
    ours, env = (20, 20) if options.quick else (300, 1000), ONE_THREAD | {"JAX_PLATFORMS": "cpu"}
    for shape, theirs in shapes.items():
        name, found = "{} x {}, {} classes".format(*shape), {}
        asked = {"ours": (classes_ours, sys.executable, ours)}
        asked |= {"NUTS": (classes_nuts, options.nuts, theirs)} if options.nuts else {}
        for seed in (1,) if options.quick else (1, 2):
            for of, (function, python, (burn_in, n_iter)) in asked.items():
                given = {"seed": seed, "shape": shape, "burn_in": burn_in, "n_iter": n_iter}
                given["has_order"] = has_order
                found.setdefault(of, []).append(in_child(function, python=python, env=env, **given))
                print(name, of, found[of][-1], flush=True)
        report.figures[name] = found
        for kind in ("least", "median"):
            rates = {of: figure([one[kind] for one in runs]) for of, runs in found.items()}
            for of, rate in rates.items():
                report.add(f"{name}: effective draws a second, {kind}, {of}", rate)
            if options.nuts:
                target = {"at_least": 20.0} if kind == "least" else {}
                report.add(f"{name}: times as many as NUTS, {kind}", ratio(*rates.values()), **target)
        if options.nuts and has_order:
            means, errors = (np.array([[one[what] for one in runs] for runs in found.values()]) for what in ESTIMATES)
            z = abs(means[0] - means[1]) / np.hypot(*errors)
            report.add(f"{name}: largest of {z.size} differences of means, in errors", float(z.max()), at_most=4.5)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--nuts", type=Path, metavar="PYTHON", help="an interpreter with NumPyro and our requirements")
    options.add_argument("--before", type=Path, help="folder of a checkout to compare with")
    parts = {"pairs": pairs, "levels": levels}
    parts |= {name: partial(classes, has_order=name == "ordered") for name in ("ordered", "several")}
    run(__file__, __doc__, parts, options, apart=["levels", "ordered", "several"])
