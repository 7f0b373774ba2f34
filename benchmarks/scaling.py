"""What work costs on a CPU, and how it grows: ratios within one run, log-log slopes, limits.

Wants two free cores and 8 GB.

pass         one pass over X against reading X once with the same threads; four chains against one
seconds      of a sweep, over rows, columns, chains, stored numbers, threads
memory       what a fit adds to the memory of a process; Linux only
predictions  seconds of a single row, beside the limit of 5 ms, and of a row of 2000
workers      only if asked for, needs Dask: what a question to all workers of a cluster takes beside the pass; worker
             processes of this machine hold a few rows each, so that it is nearly all overhead: sending the coefficients
             of 4 chains of 1000 columns, and adding what comes back. More processes than free cores measure the cores
"""

import argparse
import operator
import statistics
from functools import partial

import numpy as np
from _data import plain
from _measure import combine, figure, fit, forget_peak, in_child, in_turns, ratio, resident, run, sweep_times, timed
from sklearn.linear_model import LogisticRegression

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.row_blocks import Segment
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import Threads, open_threads

WHOLE = {  # what grows: values, slope expected of a sweep
    "rows": ([8000, 32_000, 128_000, 512_000], "1: one pass"),
    "columns": ([64, 128, 256, 512, 1024], "from 1, the pass, to 3, the factors"),
    "chains": ([1, 2, 4, 8, 16], "below 1: they share the pass"),
    "stored numbers": ([200_000, 800_000, 3_200_000, 12_800_000], "to 1, the pass: each row has its work beside it"),
    "threads": ([1, 2], "-1, less what is not shared"),
}
TINY = {"rows": [500, 2000], "columns": [8, 32], "chains": [1, 4], "stored numbers": [2000, 8000], "threads": [1, 2]}
BYTES = {  # arguments of `fit_memory`: rows, columns, type, draws of each chain, chains, stored numbers
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
QUESTIONS = {2: 2.0, 4: 5.0, 8: 10.0}  # workers, and milliseconds that a question to them may take
METHODS = "predict_proba", "predict_interval", "predict_proba_samples"
KEY = np.array([1, 2], dtype=np.uint32)


def passes(report, options):
    """A pass of each kind against reading X once, and four chains against one."""
    for n, p in [(2000, 100), (500, 1000)] if options.quick else [(1_000_000, 100), (100_000, 1000)]:
        X, y = plain(n, p)
        with open_threads(2) as threads:
            rows = Rows(X, y, True, cpu, threads)
            variants = {"read": lambda rows=rows: read(rows)}
            for n_chains in (1, 4):
                beta = 0.1 * np.random.default_rng(0).standard_normal((n_chains, p + 1))
                variants[f"score, {n_chains}"] = lambda rows=rows, beta=beta: rows.score(beta)
                variants[f"latent, {n_chains}"] = lambda rows=rows, beta=beta: rows.latent(beta, 1, KEY)
            seconds = in_turns(variants, 2 if options.quick else 15)
        report.figures[f"pass {n} x {p}"] = seconds
        size = f"n={n:,}, p={p}:"
        report.add(f"{size} reading X", combine(lambda s, size=X.nbytes / 1e9: size / s, seconds["read"]), "GB/s")
        for what in ("score", "latent"):
            one, four = seconds[f"{what}, 1"], seconds[f"{what}, 4"]
            report.add(f"{size} {what}, 1 chain / read", ratio(one, seconds["read"]))
            report.add(f"{size} {what}, 4 chains / 1 chain", ratio(four, one))


def read(rows):
    """The sum of X, by the same blocks and threads as a pass."""
    sums = np.empty(len(rows.bounds) - 1)

    def some(first, last):
        for block in range(first, last):
            sums[block] = rows.X[rows.bounds[block] : rows.bounds[block + 1]].sum()

    rows.threads.run(some, len(sums))
    return sums.sum()


def seconds(report, options):
    """Of a sweep after burn-in: the median over fits."""
    for what, (values, expected) in WHOLE.items():
        for sampler in ("hmc", "gibbs"):
            at = []
            for value in TINY[what] if options.quick else values:
                X, y, settings = problem(what, value, options.quick)
                repeats = 1 if options.quick else options.repeats
                n_iter = 20 if options.quick else sweeps_for(X, settings)
                fits = [sweep(X, y, sampler, settings, n_iter) for _ in range(repeats + 1)]
                at.append((value, statistics.median(fits[1:])))  # the first one may have compiled something
            line(report, f'a sweep of "{sampler}"', what, "seconds", at, expected)


def problem(what, value, is_quick):
    """X, y and settings of a fit in which one thing has that size."""
    n, p, stored, settings = 1000 if is_quick else 100_000, 50, None, {"n_jobs": 1}
    if what == "rows":
        n = value
    elif what == "columns":
        n, p = min(n, 10_000), value
    elif what == "stored numbers":
        n, p, stored = n // 2, 500, value
    else:
        settings[{"chains": "n_chains", "threads": "n_jobs"}[what]] = value
    return *plain(n, p, np.float64 if stored else np.float32, stored), settings


def sweep(X, y, sampler, settings, n_iter):
    """Seconds a sweep."""
    burn_in = 100 if sampler == "hmc" else 10
    with sweep_times() as times:
        fit(X, y, {"sampler": sampler, "burn_in": burn_in, "n_iter": n_iter, "random_state": 0, **settings})
    return (times[burn_in + n_iter] - times[burn_in + 1]) / (n_iter - 1)  # what is computed once is in the first


def sweeps_for(X, settings):
    """So many that they take some tenths of a second."""
    size = X.nnz if hasattr(X, "nnz") else X.size
    return int(np.clip(4e8 / (size * settings.get("n_chains", 4) ** 0.5), 10, 1000))


def memory(report, options):
    """At its peak, in a process of its own, against draws + 8 p^2 x chains + 100 MB."""
    for what, (arguments, values, expected) in BYTES.items():
        at = []
        for value in values[:2] if options.quick else values:
            size = dict(zip(("n", "p", "dtype", "n_draws", "n_chains", "stored"), arguments(value), strict=False))
            if options.quick:
                size["n"], size["n_draws"] = (
                    min(size["n"], 10_000),
                    min(size["n_draws"], 10 if what != "draws" else 2000),
                )
            at.append((value, growth := in_child(fit_memory, **size)))
            promised = 8 * size["n_chains"] * (size["n_draws"] * size["p"] + size["p"] ** 2) + 100e6
            report.add(f"a fit adds, {value:,} {what}", growth / 1e6, "MB", at_most=promised / 1e6)
        line(report, "a fit adds", what, "bytes", at, expected)


def fit_memory(n, p, dtype, n_draws, n_chains=4, stored=None):
    """Resident bytes that a fit adds at its peak, after a small one that has loaded all libraries. Linux only."""
    X, y = plain(n, p, dtype, stored)
    fit(X[:1000, :2].copy(), y[:1000], {"n_iter": 10, "burn_in": 3, "n_jobs": 2})
    before = forget_peak()
    fit(X, y, {"n_iter": n_draws, "burn_in": 3, "n_chains": n_chains, "n_jobs": 2, "random_state": 0})
    return resident("VmHWM") - before


def workers(report, options):
    """Of a question, without the pass that one core makes over the same rows."""
    alone, at = lone_pass(64), []
    for k in [2] if options.quick else QUESTIONS:
        asked = combine(lambda s: 1e3 * (s - alone), question(k, 5 if options.quick else 300))
        report.add(f"{k} workers: a question beside its pass", asked, "ms", at_most=QUESTIONS[k])
        report.add(f"{k} workers: the tenth percentile", float(np.quantile(asked["all"], 0.1)), "ms")
        at.append((k, 1e-3 * asked["median"]))
    if len(at) > 1:
        line(report, "a question", "workers", "seconds", at, "1: each worker is asked and answers")


def question(n_workers, n_rounds, n=64, p=1000):
    """Seconds until all workers have answered; each holds one small segment of rows."""
    from dask import delayed
    from distributed import Client, LocalCluster

    from skhorseshoe._data import dask_rows

    coef = np.zeros((4, p + 1))
    how = {"threads_per_worker": 1, "protocol": "tcp", "dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    with LocalCluster(n_workers=n_workers, **how) as cluster, Client(cluster, direct_to_workers=True) as client:
        pack = delayed(partial(segment, n, p), pure=False)
        with dask_rows.Shards(client, pack, [n * p * 4] * n_workers, n * p * 4, p, ("cpu", 0)) as shards:
            ask = partial(shards.ask, Segment.latent, coef)
            ask(0, KEY)  # loads the core
            return figure([timed(lambda t=t: ask(t, KEY))[0] for t in range(n_rounds)])


def segment(n, p, i):
    X, y = plain(n, p)
    X.flags.writeable = False
    return Segment(X, y, np.empty(0), np.array([0, n]), i * n)


def lone_pass(n, p=1000):
    """Seconds in which one core reads n rows: a share of many more, which do not stay in its cache."""
    rows, coef = Rows(*plain(20_000, p), True, cpu, Threads(1)), np.zeros((4, p + 1))
    return min(timed(lambda: rows.latent(coef, 0, KEY))[0] for _ in range(8)) * n / 20_000


def predictions(report, options):
    """With the draws of a default fit; what they are does not matter for speed."""
    rng = np.random.default_rng(0)
    for p in (5,) if options.quick else (30, 100, 300, 1000):
        model = fit(rng.standard_normal((50, p)), np.arange(50) % 2, {"n_iter": 4, "burn_in": 0, "sampler": "gibbs"})
        model.coef_draws_ = rng.standard_normal((4, 1000, p)) / np.sqrt(p)
        model.intercept_draws_ = rng.standard_normal((4, 1000))
        X = rng.standard_normal((100 if options.quick else 2000, p))
        logistic = LogisticRegression().fit(X, np.arange(len(X)) % 2)
        one = {"ours": lambda model=model, X=X: model.predict_proba(X[:1])}
        one |= {"logistic": lambda logistic=logistic, X=X: logistic.predict_proba(X[:1])}
        seconds = in_turns(one, 9 if options.quick else 150)
        beside = ratio(seconds["ours"], seconds["logistic"])
        limit = 2 if p <= 100 else None  # with more, the time is that of reading the draws
        report.add(f"predict_proba, p={p}, a single row / LogisticRegression", beside, at_most=limit)
        for name in METHODS:
            asked = getattr(model, name)
            calls = {"one": lambda asked=asked, X=X: asked(X[:1]), "many": lambda asked=asked, X=X: asked(X)}
            seconds = in_turns(calls, 1 if options.quick else 15)
            single = combine(partial(operator.mul, 1e3), seconds["one"])
            report.add(f"{name}, p={p}, a single row", single, "ms", at_most=5)
            many = combine(partial(operator.mul, 1e3 / len(X)), seconds["many"])
            report.add(f"{name}, p={p}, a row of {len(X)}", many, "ms")


def line(report, what, x, y, at, expected):
    """A straight line through the logarithms."""
    slope = float(np.polyfit(*np.log(np.array(at)).T, 1)[0])
    entry = {"what": what, "x": x, "y": y, "at": tuple(at), "slope": slope, "expected": expected}
    report.figures.setdefault("lines", {})[f"{what}, {x}"] = entry
    report.add(f"{what}, {y} over {x}: slope, expected {expected}", slope)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--repeats", type=int, default=3, help="of each pair of fits; the median counts")
    sections = {"pass": passes, "seconds": seconds, "memory": memory, "predictions": predictions, "workers": workers}
    run(__file__, __doc__, sections, options, apart=["workers"])
