"""Other samplers of the same model, and other predictors, on ten data sets; README.md says how to run it."""

import argparse
import ast
import json
import os
import queue
import subprocess
import sys
import tempfile
import venv
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from _measure import HERE, Report
from _peer_data import DATA
from _peer_samplers import SAMPLERS

PREDICTORS = ("logistic regression, L1", "logistic regression, L2", "gradient boosting")
PACKAGES = ("numpyro", "pymc", "nutpie", "statsmodels")
LISTED = ("skhorseshoe", "numpyro", "jax", "pymc", "nutpie", "bayesbridge", "scikit-learn", "numpy", "statsmodels")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMBA", "VECLIB_MAXIMUM")}


def environment(folder):
    """The interpreter of the peers' environment, which is made if it is not there; minutes, and 2 GB."""
    python = folder / "bin" / "python"
    if (folder / "complete").exists():
        return python
    print(f"installing the peers into {folder}", flush=True)
    venv.create(folder, with_pip=True, clear=True)

    def install(*what):
        subprocess.run([python, "-m", "pip", "install", "-q", *what], check=True)

    install("-e", HERE.parent, *PACKAGES)
    # The source of bayesbridge asks for no version of Cython, and only those before 3 compile it.
    install("cython<3", "setuptools<81", "wheel")
    install("--no-build-isolation", "--no-deps", "bayesbridge")
    (folder / "complete").touch()
    return python


class Bench:
    """Children in the peers' environment, each on a core of its own."""

    def __init__(self, python, options, folder):
        self.python, self.options, self.folder = python, options, folder
        cache = {} if options.here else {"NUMBA_CACHE_DIR": str(options.environment.absolute() / "numba")}
        self.env = {**os.environ, **ONE_THREAD, **cache, "JAX_PLATFORMS": "cpu"}
        # Chains one after another have the same program, which is compiled for each otherwise.
        self.env |= {
            "JAX_COMPILATION_CACHE_DIR": str(folder / "jax"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        self.cores = queue.SimpleQueue()
        for core in sorted(os.sched_getaffinity(0))[: options.jobs]:
            self.cores.put(core)

    def data(self, name):
        file = self.folder / f"{name}.npz"
        self._child("_peer_data.py", name, file, *["quick"] * self.options.quick)
        return file

    def measure(self, method, name, data):
        """What the child found; where it has not ended a single run, why."""
        core, out = self.cores.get(), self.folder / f"{name}-{method}.json"
        sweeps = 20 if self.options.quick else self.options.sweeps
        done = self._child("_peer.py", method, data, out, self.options.budget, sweeps, core, check=False)
        self.cores.put(core)
        found = json.loads(out.read_text()) if out.exists() else {}
        if not found:
            found["failed"] = f"no run ended in {self.options.budget:g} s"
        if done.returncode > 0:  # an error; a signal, below 0, is the end of its time
            found["failed"] = (done.stderr.strip().splitlines() or ["?"])[-1]
        return found

    def shape(self, data):
        with np.load(data) as parts:
            X, y = parts["X"], parts["y"]
            return {"rows": len(X), "columns": X.shape[1], "ones": int(y.sum()), "new rows": len(parts["y_new"])}

    def _child(self, *command, check=True):
        command = [self.python, HERE / command[0], *command[1:]]
        return subprocess.run(list(map(str, command)), env=self.env, capture_output=True, text=True, check=check)

    def versions(self):
        code = "import sys; from importlib.metadata import version; print([version(name) for name in sys.argv[1:]])"
        done = subprocess.run([self.python, "-c", code, *LISTED], capture_output=True, text=True, check=True)
        return dict(zip(LISTED, ast.literal_eval(done.stdout), strict=True))


def row(report, name, method, found):
    """The line of a pair, in the terminal."""
    what = f"{DATA[name].what}: {method}"
    if "ESS/s" not in found:
        report.add(f"{what}, log loss", found.get("log loss", float("nan")), found.get("failed", ""))
        return
    state = "" if found["converged"] else f"NOT CONVERGED, R-hat {found['rhat']:.2f}"
    report.add(f"{what}, ESS a second", found["ESS/s"], f"log loss {found['log loss']:.4f} {state}")


def main():
    methods = [*SAMPLERS, *PREDICTORS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=DATA, default=list(DATA), help="data sets")
    parser.add_argument("--methods", nargs="+", choices=methods, default=methods)
    parser.add_argument("--budget", type=float, default=60, help="seconds of each method on each data set")
    parser.add_argument("--sweeps", type=int, default=500, help="of burn-in, and kept, in the first run of a sampler")
    parser.add_argument("--jobs", type=int, default=2, help="children at a time, each on a core of its own")
    parser.add_argument("--environment", type=Path, default=HERE.parent / ".venv-peers", help="of the peers")
    parser.add_argument("--here", action="store_true", help="no such environment: what this interpreter has")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run? The figures mean nothing")
    parser.add_argument("--output", type=Path, help="default: results/peers-<date>.json, if all is run at full size")
    options = parser.parse_args()

    report = Report()
    report.head()
    python = Path(sys.executable) if options.here else environment(options.environment.absolute())
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        bench = Bench(python, options, Path(folder))
        for name in options.only:
            data = bench.data(name)
            each = pool.map(lambda method, n=name, d=data: bench.measure(method, n, d), options.methods)
            found = dict(zip(options.methods, each, strict=True))
            report.figures[name] = {"what": DATA[name].what, "shape": bench.shape(data), "methods": found}
            for method, one in found.items():
                row(report, name, method, one)
        settings = {"budget": options.budget, "jobs": options.jobs, "quick": options.quick}
        report.figures["settings"] = settings if options.here else settings | {"versions": bench.versions()}
    complete = not options.quick and set(options.only) == set(DATA) and options.methods == methods
    report.write("peers", options.output, complete)


if __name__ == "__main__":
    main()
