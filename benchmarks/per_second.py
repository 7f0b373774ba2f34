"""Sweeps and effective draws of the worst quantity, a second of processor time, beside another commit.

    python benchmarks/per_second.py --before CHECKOUT   # five minutes on a free core
    python benchmarks/per_second.py --quick             # does it run?

Fits of 1000 + 1000 or 1000 + 2000 sweeps with three seeds, on one thread, burn-in and all answers of ``fit`` included;
the two commits in turns; compilation does not count. A default fit, and the sampler in NumPy, stand beside them.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from _data import DATA
from _measure import ONE_THREAD, figure, fit, in_child, run, timed
from _samplers import reference_gibbs

from skhorseshoe.diagnostics import ess_bulk

N_SEEDS = 3
SETS = {  # kept sweeps, intercept
    "532 x 7": (1000, True),
    "500 x 20": (1000, True),
    "breast cancer, scaled": (1000, True),
    "strong": (2000, False),
    "digits, scaled": (2000, False),
    "spam": (1000, True),
}
LEAST = 0.97  # times as many sweeps a second as before
DEFAULT = "500 x 20"  # of which the default fit is timed as well
DRAWS, SWEEPS = "effective draws a second", "sweeps a second"


def per_second(seed, names, quick):
    """By data set, effective draws and sweeps a second, and seconds of the default fit of one."""
    out, clock = {}, time.process_time
    for name in names:
        (n_iter, intercept), (X, y) = SETS[name], DATA[name].make()
        how = {"n_iter": 20, "burn_in": 100} if quick else {"n_iter": n_iter, "burn_in": 1000}
        how |= {"fit_intercept": intercept, "n_jobs": 1, "random_state": seed}
        fit(X[:100], y[:100], how)  # compiles
        seconds, model = timed(lambda X=X, y=y, how=how: fit(X, y, how), clock)
        draws = np.dstack([model.coef_draws_, model.intercept_draws_, model.global_scale_draws_])
        least = np.nanmin(ess_bulk(draws if intercept else draws[..., [*range(X.shape[1]), -1]]))
        out[name] = {DRAWS: float(least) / seconds, SWEEPS: (model.n_iter + model.burn_in) / seconds}
        if name == DEFAULT and not quick:
            default = {"n_jobs": 1, "random_state": seed}
            out["a default fit"], _ = timed(lambda X=X, y=y, how=default: fit(X, y, how), clock)
    return out


def of_reference(seed):
    """The same by the sampler in NumPy and SciPy, for the first data set."""
    X, y = DATA["532 x 7"].make()
    rng = np.random.default_rng(seed)
    seconds, draws = timed(lambda: reference_gibbs(X, y, 1000, 1000, 4, rng), time.process_time)
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


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--before", type=Path, help="folder of a checkout to compare with")
    run(__file__, __doc__, {"pairs": pairs}, options)
