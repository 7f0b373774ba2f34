"""How seconds and bytes grow with the work: log-log slopes beside the expected; README.md says how."""

import argparse
import statistics
import warnings

import numpy as np
from _measure import child, run_sections, sweep_times
from scipy import sparse

from skhorseshoe import HorseshoeProbitClassifier

WHOLE = {  # what grows: values, slope expected of a sweep
    "rows": ([8000, 32_000, 128_000, 512_000], "1: one pass"),
    "columns": ([64, 128, 256, 512, 1024], "from 1, the pass, to 3, the factors"),
    "chains": ([1, 2, 4, 8, 16], "below 1: they share the pass"),
    "stored numbers": ([200_000, 800_000, 3_200_000, 12_800_000], "to 1, the pass: each row has its work beside it"),
    "threads": ([1, 2], "-1, less what is not shared"),
}
TINY = {"rows": [500, 2000], "columns": [8, 32], "chains": [1, 4], "stored numbers": [2000, 8000], "threads": [1, 2]}
BYTES = {  # arguments of `_child.memory`: rows, columns, type, draws of each chain, chains, stored numbers
    "rows": (lambda n: (n, 100, "float32", 50, 4), [50_000, 200_000, 800_000], "below 1: X is not copied"),
    "columns": (lambda p: (4000, p, "float64", 3, 4), [500, 1000, 2000], "to 2, matrices of columns x columns"),
    "draws": (lambda k: (2000, 100, "float64", k, 4), [4000, 16_000, 64_000], "1"),
    "chains": (lambda k: (2000, 100, "float64", 8000, k), [4, 8, 16], "1: each has its draws"),
    "stored numbers": (
        lambda k: (100_000, 500, "float64", 50, 4, k),
        [800_000, 3_200_000, 12_800_000],
        "below 1: X is not copied",
    ),
}
WORKERS = [1, 2, 4]  # of a cluster on this machine


def problem(what, value, quick=False):
    """X, y and settings of a fit in which one thing has that size."""
    n, p, settings = 1000 if quick else 100_000, 50, {"n_jobs": 1}
    if what == "rows":
        n = value
    elif what == "columns":
        n, p = min(n, 10_000), value
    elif what == "chains":
        settings["n_chains"] = value
    elif what == "threads":
        settings["n_jobs"] = value
    rng = np.random.default_rng(0)
    if what == "stored numbers":
        n, p = n // 2, 500
        X = sparse.random_array((n, p), density=value / (n * p), format="csr", rng=rng, dtype=np.float64)
        X.data[:] = 1.0
        eta = X[:, :3].sum(axis=1)
    else:
        X = rng.standard_normal((n, p), dtype=np.float32)
        eta = X[:, :3].sum(axis=1)
    return X, eta + rng.standard_normal(n) > 0, settings


def seconds(report, options):
    """Of a sweep after burn-in: the median over fits."""
    for what, (values, expected) in WHOLE.items():
        for sampler in ("hmc", "gibbs"):
            at = []
            for value in TINY[what] if options.quick else values:
                X, y, settings = problem(what, value, options.quick)
                n_iter = 20 if options.quick else sweeps_for(X, settings)
                repeats = 1 if options.quick else options.repeats
                fits = [sweep(X, y, sampler, settings, n_iter) for _ in range(repeats + 1)]
                at.append((value, statistics.median(fits[1:])))  # the first one may have compiled something
            line(report, f'a sweep of "{sampler}"', what, "seconds", at, expected)


def sweep(X, y, sampler, settings, n_iter):
    """Seconds a sweep."""
    burn_in = 100 if sampler == "hmc" else 10
    model = HorseshoeProbitClassifier(sampler=sampler, burn_in=burn_in, n_iter=n_iter, random_state=0, **settings)
    with warnings.catch_warnings(), sweep_times() as times:
        warnings.simplefilter("ignore")  # short chains do not converge
        model.fit(X, y)
    return (times[burn_in + n_iter] - times[burn_in + 1]) / (n_iter - 1)  # what is computed once is in the first


def sweeps_for(X, settings):
    """So many that they take some tenths of a second."""
    size = X.nnz if sparse.issparse(X) else X.size
    return int(np.clip(4e8 / (size * settings.get("n_chains", 4) ** 0.5), 10, 1000))


def memory(report, options):
    """What a fit adds to what is resident, at its peak, in a process of its own; Linux only."""
    for what, (arguments, values, expected) in BYTES.items():
        values = values[:2] if options.quick else values
        at = []
        for value in values:
            size = list(arguments(value))
            if options.quick:
                size[0], size[3] = min(size[0], 10_000), min(size[3], 10 if what != "draws" else 2000)
            at.append((value, child("memory", *size[:4], "later fit", *size[4:])["growth"]))
        line(report, "a fit adds", what, "bytes", at, expected)
    n = 16_000 if options.quick else 3_200_000
    at = [(k, child("memory_of_workers", n, 50, k)["growth"]) for k in WORKERS[: 2 if options.quick else None]]
    line(report, "a fit adds, to a worker", "workers", "bytes", at, "from -1, its share of X, to 0, what each has")


def line(report, what, x, y, at, expected):
    """A straight line through the logarithms."""
    slope = float(np.polyfit(*np.log(np.array(at)).T, 1)[0])
    entry = {"what": what, "x": x, "y": y, "at": tuple(at), "slope": slope, "expected": expected}
    report.figures.setdefault("lines", {})[f"{what}, {x}"] = entry
    report.add(f"{what}, {y} over {x}: slope, expected {expected}", slope)


SECTIONS = {"seconds": seconds, "memory": memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="of each pair of fits; the median counts")
    run_sections("scaling", SECTIONS, parser)


if __name__ == "__main__":
    main()
