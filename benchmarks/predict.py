"""Seconds and memory of predictions, for a single row and for many; README.md says how to run it."""

import argparse
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
from _measure import Report, in_turns

from skhorseshoe import HorseshoeProbitClassifier

N_CHAINS, N_DRAWS = 4, 1000
METHODS = ("predict_proba", "predict_interval", "predict_proba_samples")
LIMIT = 5.0  # milliseconds, of a single row


def model_of(p, rng):
    """A model with the draws of a default fit; what they are does not matter for speed."""
    model = HorseshoeProbitClassifier(n_iter=4, burn_in=0, sampler="gibbs", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(rng.standard_normal((50, p)), np.arange(50) % 2)
    model.coef_draws_ = rng.standard_normal((N_CHAINS, N_DRAWS, p)) / np.sqrt(p)
    model.intercept_draws_ = rng.standard_normal((N_CHAINS, N_DRAWS))
    return model


def measure(report, p, n_rows, repeats):
    rng = np.random.default_rng(0)
    model, X = model_of(p, rng), rng.standard_normal((n_rows, p))
    for name in METHODS:
        method = getattr(model, name)
        seconds = in_turns({"one": lambda m=method: m(X[:1]), "many": lambda m=method: m(X)}, repeats)
        report.figures[f"{name}, p={p}"] = seconds
        scaled = {
            what: {key: np.multiply(value, 1e3 / n).tolist() for key, value in seconds[what].items()}
            for what, n in (("one", 1), ("many", n_rows))
        }
        report.add(f"{name}, p={p}, a single row", scaled["one"], "ms", at_most=LIMIT)
        report.add(f"{name}, p={p}, a row of {n_rows}", scaled["many"], "ms")
        tracemalloc.start()
        result = method(X)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        report.add(f"{name}, p={p}, memory beside X and the result", (peak - result.nbytes) / 2**20, "MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/predict-<date>.json, unless --quick")
    options = parser.parse_args()

    report = Report()
    report.head()
    for p in (5,) if options.quick else (30, 100, 300, 1000):
        measure(report, p, 100 if options.quick else 2000, 1 if options.quick else 15)
    report.write("predict", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
