"""Other samplers of the same model, and other predictors, on ten data sets.

Each method on each data set is a process on a core of its own. A sampler runs with so many sweeps of burn-in and as
many kept, then anew with twice as many, and so on, until its chains have converged or another run would take more than
is left of the seconds; the last run counts. A run that does not end in time is ended by the system, in compiled code
too.
"""

import argparse
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import distributions
from pathlib import Path

import numpy as np
from _data import DATA
from _measure import HERE, ONE_THREAD, child_command, environment, in_child, resident, run, timed
from _samplers import PREDICTORS, SAMPLERS, scores
from scipy.special import expit, ndtr
from sklearn.model_selection import train_test_split

from skhorseshoe.diagnostics import MAX_RHAT, ess_bulk, rhat

# Of DATA: what the page calls it, rows that are fitted (None: 70 %), and the slab, if a plane may separate the classes.
SETS = {
    "breast cancer": ("breast cancer", None, np.inf),
    "wine": ("wine 0 v rest, slab 2", None, 2.0),
    "digits": ("digits 3 v 8, slab 2", None, 2.0),
    "iris 1 v 2": ("iris 1 v 2", None, np.inf),
    "fair": ("fair: affairs", None, np.inf),
    "anes96": ("anes96: vote", None, np.inf),
    "spector": ("spector: grade", None, np.inf),
    "4000 x 50": ("synthetic", 2000, np.inf),
    "rare events, 40,000": ("rare events, 0.5 %", 20_000, np.inf),
    "correlated, 1100": ("correlated, slab 2", 100, 2.0),
}
METHODS = [*SAMPLERS, *PREDICTORS]
COMPILATION = 120  # seconds beside the budget
ENOUGH = 400  # effective draws of the slowest coefficient, the intercept and tau
PACKAGES = {
    "skhorseshoe": ["-e", HERE.parent],
    "samplers": ["numpyro", "pymc", "nutpie", "statsmodels"],
    # The source of bayesbridge asks for no version of Cython, and only those before 3 compile it.
    "what bayesbridge is built with": ["cython<3", "setuptools<81", "wheel"],
    "bayesbridge": ["--no-build-isolation", "--no-deps", "bayesbridge"],
}
LISTED = "skhorseshoe", "numpyro", "jax", "pymc", "nutpie", "bayesbridge", "scikit-learn", "numpy", "statsmodels"

# In the environment of the peers --------------------------------------------------------------------------------------


def write_data(name, file, quick):
    """The rows that are fitted and those that are held out, by the mean and the standard deviation of the former."""
    _, train, slab = SETS[name]
    X, y = DATA[name].make()
    share = {"train_size": train or 0.7, "random_state": 0, "stratify": y}
    X, X_new, y, y_new = train_test_split(X.astype(float), y.astype(int), **share)
    if quick:
        few = train_test_split(np.arange(len(y)), train_size=min(60, len(y) // 2), random_state=0, stratify=y)[0]
        X, X_new, y = X[few, :4], X_new[:, :4], y[few]
    kept = X.std(axis=0) > 0
    mean, sd = X[:, kept].mean(axis=0), X[:, kept].std(axis=0)
    parts = {"X": (X[:, kept] - mean) / sd, "X_new": (X_new[:, kept] - mean) / sd}
    np.savez(file, y=y, y_new=y_new, slab=slab, **parts)
    return {"rows": len(X), "columns": int(kept.sum()), "ones": int(y.sum()), "new rows": len(y_new)}


def measure(method, data, out, budget, sweeps, core):
    """What one method finds, written to ``out`` after each run."""
    os.sched_setaffinity(0, {core})
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    data, out = np.load(data), Path(out)
    if method in SAMPLERS:
        draw(SAMPLERS[method], data, out, budget, sweeps)
        return
    signal.alarm(int(budget) + COMPILATION)
    model = PREDICTORS[method](min(5, int(np.bincount(data["y"]).min())))
    found = {"seconds": {"fit": timed(lambda: model.fit(data["X"], data["y"]))[0]}, "peak memory": resident("VmHWM")}
    out.write_text(json.dumps(found | scores(model.predict_proba(data["X_new"])[:, 1], data["y_new"])))


def draw(sampler, data, out, budget, sweeps):
    """Runs of a sampler, each twice as long as the one before."""
    X, y, slab, spent = data["X"], data["y"], float(data["slab"]), 0.0
    while True:
        signal.alarm(int(budget - spent) + COMPILATION)
        begin = time.perf_counter()
        run = sampler(X, y, slab, sweeps, sweeps, 1)
        signal.alarm(0)
        whole = time.perf_counter() - begin - run.compilation
        seconds = {"burn-in": run.burn_in, "sampling": run.sampling, "compilation": run.compilation}
        found = {"sweeps": sweeps, **convergence(run), "seconds": seconds, "peak memory": resident("VmHWM")}
        out.write_text(json.dumps(found | scores(probabilities(run, data["X_new"]), data["y_new"])))
        spent += whole
        if found["converged"] or spent + 2 * whole > budget:
            return
        sweeps *= 2


def convergence(run):
    """Bulk ESS of the slowest coefficient, the intercept included, and of tau; the worst R-hat of all of them."""
    draws = np.concatenate([run.coef, run.intercept[..., None], np.log(run.tau)[..., None]], axis=2)
    if not np.isfinite(draws).all():
        return {"finite": False, "converged": False}
    ess, worst = ess_bulk(draws), float(rhat(draws).max())
    found = {"ess": float(ess[:-1].min()), "ess of tau": float(ess[-1]), "rhat": worst, "divergent": run.divergent}
    per_second = {"ESS/s": found["ess"] / (run.burn_in + run.sampling), "ESS/s, sampling": found["ess"] / run.sampling}
    return found | per_second | {"converged": bool(worst <= MAX_RHAT and ess.min() >= ENOUGH)}


def probabilities(run, X):
    """The mean over at most 2000 draws of P(y = 1)."""
    coef = run.coef.reshape(-1, run.coef.shape[2])
    step = max(1, len(coef) // 2000)
    coef, intercept = coef[::step], run.intercept.reshape(-1)[::step]
    link = ndtr if run.link == "probit" else expit
    blocks = np.array_split(X, max(1, len(X) * len(coef) // 10**7))
    return np.concatenate([link(block @ coef.T + intercept).mean(axis=1) for block in blocks])


def versions():
    return {one.name: one.version for one in distributions() if one.name in LISTED}


# Here -----------------------------------------------------------------------------------------------------------------


class Bench:
    """Children in the peers' environment, each on a core of its own."""

    def __init__(self, options, folder):
        self.options, self.folder = options, folder
        self.env = {**ONE_THREAD, "JAX_PLATFORMS": "cpu", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
        # Chains one after another have the same program, which is compiled for each otherwise.
        self.env["JAX_COMPILATION_CACHE_DIR"] = str(folder / "jax")
        self.python = sys.executable
        if not options.here:
            self.python, _ = environment(options.environment, PACKAGES)
            self.env["NUMBA_CACHE_DIR"] = str(options.environment.absolute() / "numba")
        self.cores = queue.SimpleQueue()
        for core in sorted(os.sched_getaffinity(0))[: options.jobs]:
            self.cores.put(core)

    def asked(self, function, **given):
        return in_child(function, python=self.python, env=self.env, **given)

    def measured(self, method, name, data):
        """What the child found; where it has not ended a single run, why."""
        core, out = self.cores.get(), self.folder / f"{name}-{method}.json"
        sweeps = 20 if self.options.quick else self.options.sweeps
        given = {"method": method, "data": data, "out": out, "budget": self.options.budget}
        command = [self.python, *child_command(measure, given | {"sweeps": sweeps, "core": core})]
        env = {**os.environ, "PYTHONPATH": str(HERE.parent), **self.env}
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        self.cores.put(core)
        found = json.loads(out.read_text()) if out.exists() else {}
        if not found:
            found["failed"] = f"no run ended in {self.options.budget:g} s"
        if done.returncode > 0:  # an error; a signal, below 0, is the end of its time
            found["failed"] = (done.stderr.strip().splitlines() or ["?"])[-1]
        return found


def row(report, name, method, found):
    """The line of a pair, in the terminal."""
    what = f"{SETS[name][0]}: {method}"
    if "ESS/s" not in found:
        report.add(f"{what}, log loss", found.get("log loss", float("nan")), found.get("failed", ""))
        return
    state = "" if found["converged"] else f"NOT CONVERGED, R-hat {found['rhat']:.2f}"
    report.add(f"{what}, ESS a second", found["ESS/s"], f"log loss {found['log loss']:.4f} {state}")


def data_set(name):
    def compare(report, options):
        report.is_partial = options.methods != METHODS
        with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
            bench = Bench(options, Path(folder))
            data = Path(folder) / f"{name}.npz"
            shape = bench.asked(write_data, name=name, file=data, quick=options.quick)
            each = pool.map(lambda method: bench.measured(method, name, data), options.methods)
            found = dict(zip(options.methods, each, strict=True))
            report.figures[name] = {"what": SETS[name][0], "shape": shape, "methods": found}
            report.figures["settings"] |= {"budget": options.budget, "jobs": options.jobs}
            report.figures["settings"]["versions"] = bench.asked(versions)
        for method, one in found.items():
            row(report, name, method, one)

    return compare


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--budget", type=float, default=60, help="seconds of each method on each data set")
    parser.add_argument("--sweeps", type=int, default=500, help="of burn-in, and kept, in the first run of a sampler")
    parser.add_argument("--jobs", type=int, default=2, help="children at a time, each on a core of its own")
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".venv-peers", help="of the peers")
    parser.add_argument("--here", action="store_true", help="no such environment: what this interpreter has")
    run(__file__, __doc__, {name: data_set(name) for name in SETS}, parser)


if __name__ == "__main__":
    main()
