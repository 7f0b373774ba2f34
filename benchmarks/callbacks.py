"""What scikit-learn's progress bar costs a fit; README.md says how to run it."""

import argparse
import os
import threading
import time
import warnings
from functools import wraps
from pathlib import Path

import rich
from _measure import Report, figure
from rich.live import _RefreshThread
from sklearn.callback import ProgressBar
from sklearn.callback._progressbar import RichProgressMonitor

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit import callbacks
from skhorseshoe.datasets import make_sparse_probit

LIMIT = 2.0  # per cent of a fit with a sweep of about a millisecond
SIZES = {"2000 x 50": (2000, 50), "5000 x 100": (5000, 100), "20000 x 100": (20_000, 100)}
SPENT = {"drawing": (_RefreshThread, ["run"]), "counting": (RichProgressMonitor, ["run"])}
SPENT["telling"] = callbacks.Tasks, ["__init__", "_tell", "close"]


def account(seconds):
    """Add to ``seconds`` the processor time of all that a bar adds, from now on: two threads, and calls in the fit."""

    def timed(function, name):
        @wraps(function)
        def run(*args, **kwargs):
            begin = time.thread_time()
            try:
                return function(*args, **kwargs)
            finally:
                seconds[name] += time.thread_time() - begin

        return run

    for name, (owner, methods) in SPENT.items():
        for method in methods:
            setattr(owner, method, timed(getattr(owner, method), name))


def measure(report, size, n_iter, repeats, seconds):
    """The bar is drawn as on a terminal, ten times a second, and thrown away."""
    X, y, _ = make_sparse_probit(*SIZES[size], random_state=0)
    sweeps, costs = [], {name: [] for name in [*SPENT, "all"]}
    for turn in range(repeats + 1):
        model = HorseshoeProbitClassifier(n_iter=n_iter, burn_in=n_iter, random_state=0)
        seconds.update(dict.fromkeys(SPENT, 0.0))
        begin = time.perf_counter()
        model.set_callbacks(ProgressBar()).fit(X, y)
        clock = time.perf_counter() - begin
        for thread in threading.enumerate():
            if isinstance(thread, _RefreshThread):  # which nobody waits for
                thread.join()
        if turn:
            sweeps.append(1e3 * clock / (2 * n_iter))
            for name in SPENT:
                costs[name].append(100 * seconds[name] / clock)
            costs["all"].append(100 * sum(seconds.values()) / clock)
    report.add(f"{size}: a sweep, bar included", figure(sweeps), "ms")
    for name, cost in costs.items():
        report.add(f"{size}: the bar, {name}", figure(cost), "%", at_most=LIMIT if name == "all" else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few sweeps: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/callbacks-<date>.json, unless --quick")
    options = parser.parse_args()

    warnings.simplefilter("ignore")
    seconds = {}
    report = Report()
    report.head()
    account(seconds)
    with open(os.devnull, "w") as nowhere:
        rich.reconfigure(file=nowhere, force_terminal=True, width=120)
        for size in SIZES:
            measure(report, size, *((50, 1) if options.quick else (1000, 7)), seconds)
    report.write("callbacks", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
