"""The claims of speed and memory on a CPU, measured; README.md says how to run it."""

import argparse
import warnings
from pathlib import Path

import numpy as np
from _measure import Report, child, combine, figure, in_turns, per_sweep, ratio
from reference_gibbs import reference_gibbs
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.gibbs import sweep
from skhorseshoe._mcmc.run import initial_state
from skhorseshoe._utils.threads import open_threads
from skhorseshoe.diagnostics import convergence

KEY = np.array([1, 2], dtype=np.uint32)


def passes(report, quick):
    """A pass of each kind against reading X once, and four chains against one."""
    shapes = [(2000, 100), (500, 1000)] if quick else [(1_000_000, 100), (100_000, 1000)]
    for n, p in shapes:
        X, y = _data(n, p, np.float32)
        with open_threads(2) as threads:
            rows = Rows(X, y, True, cpu, threads)
            precision = cpu.Precision(rows.gram(), threads)
            variants = {"read": lambda rows=rows: read(rows)}
            for n_chains in (1, 4):
                state = _state(n_chains, rows, precision)
                variants[f"score, {n_chains}"] = lambda rows=rows, s=state: rows.score(s.beta)
                variants[f"latent, {n_chains}"] = lambda rows=rows, s=state: rows.latent(s.beta, s.sweep, KEY)
                variants[f"sweep, {n_chains}"] = lambda rows=rows, s=state, q=precision: sweep(
                    s, rows, q, 1.0, cpu, KEY
                )
            seconds = in_turns(variants, 2 if quick else 15)
        report.figures[f"pass {n} x {p}"] = seconds
        size = f"n={n:,}, p={p}:"
        report.add(f"{size} reading X", _rate(seconds["read"], X.nbytes / 1e9), "GB/s")
        for what in ("score", "latent", "sweep"):
            one, four = seconds[f"{what}, 1"], seconds[f"{what}, 4"]
            report.add(f"{size} {what}, 1 chain / read", ratio(one, seconds["read"]))
            report.add(f"{size} {what}, 4 chains / 1 chain", ratio(four, one))


def reference(report, quick):
    """Sweeps against the NumPy implementation, at the same dtype."""
    n, p, few, many = (2000, 20, 2, 12) if quick else (100_000, 100, 5, 45)
    for dtype in (np.float32, np.float64):
        X, y = _data(n, p, dtype)
        runs = {
            "NumPy": lambda k, X=X, y=y: reference_gibbs(X, y, k, 0, 4, np.random.default_rng(0)),
            "ours": lambda k, X=X, y=y: _fit(X, y, n_iter=k, thin=k, burn_in=0),
        }
        seconds = per_sweep(runs, few, many, 2 if quick else 7)
        report.figures[f"reference {np.dtype(dtype)}"] = seconds
        size = f"n={n:,}, p={p}, {np.dtype(dtype)}:"
        for name, one in seconds.items():
            report.add(f"{size} chain-sweeps a second, {name}", _rate(one, 4))
        report.add(f"{size} ours / NumPy", ratio(seconds["NumPy"], seconds["ours"]), at_least=3)


def small(report, quick):
    """Sweeps a second where Python is what could slow them."""
    X, y = load_breast_cancer(return_X_y=True)
    X = scale(X)
    few, many = (100, 600) if quick else (1000, 11_000)
    repeats = 2 if quick else 7
    # The number of draws is the same in both, so that the difference is sweeps and nothing else.
    run = {"fit": lambda k: _fit(X, y, n_iter=k, thin=k // few, burn_in=0)}
    one = per_sweep(run, few, many, repeats)["fit"]
    whole = in_turns({"default": lambda: _fit(X, y, n_iter=few, burn_in=few)}, repeats)["default"]
    report.figures["small"] = {"sweep": one, f"fit of {few} + {few} sweeps": whole}
    size = "breast cancer, n=569, p=30, 4 chains:"
    report.add(f"{size} sweeps a second inside fit", _rate(one, 1), at_least=5000)
    report.add(f"{size} sweeps a second, whole fit {few} + {few}", _rate(whole, 2 * few))


def memory(report, quick):
    """What a fit adds to X at its peak, against draws + 8 p^2 x chains + 100 MB."""
    cases = [(10_000, 100, "float32", 1000)]
    if not quick:
        cases = [
            (100_000, 100, "float32", 50),
            (100_000, 100, "float64", 50),
            (2000, 100, "float64", 40_000),
            (100_000, 1000, "float32", 20),
            (4000, 3000, "float32", 3),
            (1_000_000, 1000, "float32", 3),
        ]
    for n, p, dtype, n_draws in cases:
        promised = 8 * 4 * n_draws * p + 8 * p**2 * 4 + 100e6
        size = f"n={n:,}, p={p}, {dtype}, {n_draws} draws:"
        for when in ("later fit", "first fit"):  # the first one of a process loads libraries
            found = child("memory", n, p, dtype, n_draws, when)
            report.figures[f"memory {size} {when}"] = {**found, "promised": promised}
            report.add(f"{size} growth, {when}", found["growth"] / 1e6, "MB", at_most=promised / 1e6)
        report.add(f"{size} of which pages of libraries", found["libraries"] / 1e6, "MB")
    if not quick:
        report.add(f"{size} process", found["process"] / 1e9, "GB", at_most=8)


def startup(report, quick):
    """Import, and what the first fit of a process takes more than the second."""
    repeats = 1 if quick else 5
    child("import_time")
    imports = figure([child("import_time") for _ in range(repeats)])
    runs = [child("first_fits") for _ in range(repeats)]
    report.figures["startup"] = {"import": imports, "fits": runs}
    report.add("import skhorseshoe after import sklearn", imports, "s", at_most=0.7)
    for dtype in ("float64", "float32"):
        lost = figure([run[f"first {dtype}"] - run[f"second {dtype}"] for run in runs])
        report.add(f"first {dtype} fit and predict_proba - second", lost, "s", at_most=0.3)


def diagnostics(report, quick):
    """All diagnostics of 1000 coefficients x 4 chains x 1000 draws."""
    draws = np.random.default_rng(0).standard_normal((4, 100, 10) if quick else (4, 1000, 1000))
    seconds = in_turns({"convergence": lambda: convergence(draws)}, 2 if quick else 7)
    report.figures["diagnostics"] = seconds
    report.add("convergence of 4 x 1000 draws of 1000 coefficients", seconds["convergence"], "s", at_most=0.3)


def read(rows):
    """The sum of X, by the same blocks and threads as a pass."""
    sums = np.empty(len(rows.bounds) - 1)

    def some(first, last):
        for block in range(first, last):
            sums[block] = rows.X[rows.bounds[block] : rows.bounds[block + 1]].sum()

    rows.threads.run(some, len(sums))
    return sums.sum()


def _data(n, p, dtype):
    """As ``make_sparse_probit``, but without a second copy of X on the way."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p), dtype=dtype)
    y = X[:, :3].sum(axis=1) + rng.standard_normal(n, dtype=dtype) > 0
    return X, y.astype(np.uint8)


def _state(n_chains, rows, precision):
    """A state some sweeps after the start."""
    state = initial_state(n_chains, rows.columns, rows.base_rate(), 1.0, KEY)
    for _ in range(20):
        state = sweep(state, rows, precision, 1.0, cpu, KEY)
    return state


def _fit(X, y, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short chains do not converge
        return HorseshoeProbitClassifier(n_jobs=2, random_state=0, **parameters).fit(X, y)


def _rate(seconds, count):
    return combine(lambda s: count / s, seconds)


SECTIONS = {
    "pass": passes,
    "reference": reference,
    "small": small,
    "memory": memory,
    "startup": startup,
    "diagnostics": diagnostics,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/cpu-<date>.json, if all is run at full size")
    options = parser.parse_args()

    report = Report()
    report.head()
    for name in options.only:
        SECTIONS[name](report, options.quick)
    report.write("cpu", options.output, complete=not options.quick and set(options.only) == set(SECTIONS))


if __name__ == "__main__":
    main()
