"""Sweeps, and effective draws of the worst quantity, a second of processor time, one thread, beside another commit.

    python benchmarks/per_second.py --before CHECKOUT   # five minutes
    python benchmarks/per_second.py --quick             # does it run?

Fits of 1000 + 1000 or 1000 + 2000 sweeps with three seeds, the two commits in turns; the compilation does not count.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from _data import breast_cancer, clinical, digits, strong_effects
from _measure import Report, figure
from follow_recipes import spam
from reference_gibbs import reference_gibbs

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit
from skhorseshoe.diagnostics import ess_bulk

N_SEEDS = 3


# Data, kept sweeps, and how many times as many sweeps a second there should be as with Numba (commit 3f0c082).
DATA = {
    "532 x 7": (clinical, 1000, 1.6),
    "500 x 20": (lambda: make_sparse_probit(500, 20, random_state=0)[:2], 1000, 1.6),
    "breast cancer": (breast_cancer, 1000, 1.3),
    "strong": (strong_effects, 2000, 0.97),
    "digits": (digits, 2000, 0.97),
    "spam": (lambda: spam(np.random.default_rng(0)), 1000, 0.97),
}
WITHOUT_INTERCEPT = "strong", "digits"
DEFAULT = "500 x 20"  # of which the default fit is timed as well
DRAWS, SWEEPS = "effective draws a second", "sweeps a second"


def seconds_of(function):
    begin = time.process_time()
    result = function()
    return time.process_time() - begin, result


def per_second(seed, names, quick):
    """By data set, effective draws and sweeps a second, and seconds of the default fit of one."""
    out = {}
    for name in names:
        make, n_iter, _ = DATA[name]
        X, y = make()
        model = HorseshoeProbitClassifier(
            n_iter=20 if quick else n_iter,
            burn_in=100 if quick else 1000,
            fit_intercept=name not in WITHOUT_INTERCEPT,
            n_jobs=1,
            random_state=seed,
        )
        model.fit(X[:100], y[:100])  # compiles
        seconds, _ = seconds_of(lambda model=model, X=X, y=y: model.fit(X, y))
        draws = np.dstack([model.coef_draws_, model.intercept_draws_, model.global_scale_draws_])
        least = np.nanmin(ess_bulk(draws if model.fit_intercept else draws[..., [*range(X.shape[1]), -1]]))
        out[name] = {DRAWS: float(least) / seconds, SWEEPS: (model.n_iter + model.burn_in) / seconds}
        if name == DEFAULT and not quick:
            default = HorseshoeProbitClassifier(n_jobs=1, random_state=seed)
            out["a default fit"], _ = seconds_of(lambda fit=default.fit, X=X, y=y: fit(X, y))
    return out


def of_checkout(folder, seed, options):
    """``per_second`` of the library in that folder, in a process of its own."""
    command = [sys.executable, __file__, "--seed", str(seed), *(["--quick"] if options.quick else [])]
    env = {**os.environ, "PYTHONPATH": str(folder.absolute()), "OMP_NUM_THREADS": "1"}
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)


def of_reference(seed):
    """The same by the sampler in NumPy and SciPy, for the first data set."""
    X, y = clinical()
    seconds, draws = seconds_of(lambda: reference_gibbs(X, y, 1000, 1000, 4, np.random.default_rng(seed)))
    return float(min(np.min(ess_bulk(values)) for values in draws) / seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--before", type=Path, help="folder of a checkout to compare with")
    parser.add_argument("--seed", type=int, help="only print the figures of this seed, as JSON")
    parser.add_argument("--output", type=Path, help="default: results/per-second-<date>.json")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    names = [DEFAULT] if options.quick else list(DATA)
    if options.seed is not None:
        print(json.dumps(per_second(options.seed, names, options.quick)))
        return
    report, here, found = Report(), Path(__file__).parents[1], {}
    for seed in range(1 if options.quick else N_SEEDS):
        for commit, folder in {"now": here, **({"before": options.before} if options.before else {})}.items():
            found.setdefault(commit, []).append(of_checkout(folder, seed, options))
            print(commit, found[commit][-1], flush=True)
    report.figures = found
    report.head()
    for name in names:
        for what, target in {DRAWS: {}, SWEEPS: {"at_least": DATA[name][2]}}.items():
            now = [one[name][what] for one in found["now"]]
            report.add(f"{name}: {what}", figure(now))
            if options.before:
                times = [a / b[name][what] for a, b in zip(now, found["before"], strict=True)]
                report.add(f"{name}: {what}, times as many as before", figure(times), **target)
    if not options.quick:
        if options.before:
            pairs = zip(found["now"], found["before"], strict=True)
            shares = figure([now["a default fit"] / before["a default fit"] for now, before in pairs])
            report.add(f"{DEFAULT}: a default fit, share of the time before", shares)
        times = [one["532 x 7"][DRAWS] / of_reference(seed) for seed, one in enumerate(found["now"])]
        report.add("532 x 7: effective draws, times as many as by the sampler in NumPy", figure(times), at_least=12)
    report.write("per-second", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
