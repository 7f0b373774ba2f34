"""The claims of speed on a GPU, measured on one; README.md says how to run it."""

import argparse
import importlib
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from _measure import Report, figure, per_sweep, ratio

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import device as _device
from skhorseshoe._backends import limits
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.chains import GibbsChains
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem, initial_state
from skhorseshoe._utils.threads import open_threads
from skhorseshoe.datasets import make_rare_events
from skhorseshoe.diagnostics import convergence

KEY = np.array([1, 2], dtype=np.uint32)
SWEEPS = 10_000
# Rows, columns; seconds of 10,000 sweeps of "gibbs" in float32 with 1 and with 4 chains.
TARGETS = {
    (10_000, 1000): (9, 12),
    (1_000_000, 1000): (20, 22),
    (1_300_000, 141): (5, 6),
    (100_000, 10_000): (150, None),
}
GRADIENT_SECONDS = 60  # of the last, by conjugate gradients in place of a factor for each chain
FLOORS = (7, 17, 4, 121)  # of the first, modelled for an H200 (docs/developer/gpu.rst), not measured
SHARE_OF_COPY = 0.8  # of the bandwidth of a copy that a pass over 1e6 x 1e3 is to reach
# Sampler and kind of rows; their number and that of the columns.
SAMPLERS = {
    ("gibbs", "few columns"): (2000, 50),
    ("hmc", "few columns"): (2000, 50),
    ("hmc", "many rows"): (1_000_000, 141),
    ("hmc", "more columns than rows"): (200, 5000),
}
QUICK_SAMPLERS = {key: (8, 12) if n < p else (60, 4) for key, (n, p) in SAMPLERS.items()}
RARE = (1_295_848, 141)
RARE_SECONDS = 6.0


def seconds(function, repeats):
    """Seconds of each call but the first; function returns an array of the device, which is waited for."""
    ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
    ops.to_host(function())
    out = []
    for _ in range(repeats):
        begin = time.perf_counter()
        ops.to_host(function())
        out.append(time.perf_counter() - begin)
    return out


def bandwidth(report, quick):
    """Bytes a second of a copy, and of each pass; both read and write are counted for the copy."""
    ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
    size = 2**16 if quick else 2**28
    source = ops.to_device(np.zeros(size))
    target = source.copy()

    def copy():
        target[...] = source
        return target[:1]

    copied = figure([16 * size / s for s in seconds(copy, 2 if quick else 20)])
    report.add("copy", copied, "B/s")
    shapes = [(100, 5)] if quick else [(1_000_000, 1000), (1_300_000, 141)]
    for n, p in shapes:
        for dtype in (np.float32, np.float16):
            X, y = data(n, p, dtype)
            held = ops.hold(X, y, np.empty(0))
            for n_chains in (4,) if quick else (1, 4, 16):
                beta = ops.to_device(np.full((n_chains, p), 0.01))
                passes = {
                    "latent": lambda h=held, b=beta: ops.latent(*h[:2], b, None, 1, KEY, None)[1],
                    "score": lambda h=held, b=beta: ops.score(*h, b, None, None)[0],
                }
                for name, one in passes.items():
                    speed = figure([X.nbytes / s for s in seconds(one, 1 if quick else 10)])
                    what = f"{name} pass, {n} x {p}, {dtype.__name__}, {n_chains} chains"
                    report.figures[what] = speed
                    target = {"at_least": SHARE_OF_COPY} if (n, p, dtype) == (1_000_000, 1000, np.float32) else {}
                    report.add(f"{what}, share of copy", speed["median"] / copied["median"], **target)


def sweeps(report, quick):
    """Seconds of 10,000 sweeps, from fewer."""
    shapes = {(100, 5): (9, 12)} if quick else TARGETS
    for (n, p), targets in shapes.items():
        X, y = data(n, p, np.float32)
        for n_chains, target in zip((1, 4), targets, strict=True):
            measured = figure([SWEEPS * s for s in gibbs(X, y, n_chains, 1 if quick else 100)])
            limit = {} if target is None else {"at_most": target}
            report.add(f"{SWEEPS} sweeps of gibbs, {n} x {p}, {n_chains} chains", measured, "s", **limit)
            if limits.needs_conjugate_gradients(p):
                by_gradients = figure([SWEEPS * s for s in gibbs(X, y, n_chains, 100, by_factors=False)])
                report.add("the same by conjugate gradients", by_gradients, "s", at_most=GRADIENT_SECONDS)


def gibbs(X, y, n_chains, n_sweeps, by_factors=True):
    """Seconds a sweep, three times. by_factors : whether Q is factorised, whatever the number of columns."""
    ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
    default = limits.MOST_CHOLESKY_COLUMNS
    limits.MOST_CHOLESKY_COLUMNS = X.shape[1] if by_factors else default
    try:
        return _gibbs(X, y, n_chains, n_sweeps, ops)
    finally:
        limits.MOST_CHOLESKY_COLUMNS = default


def _gibbs(X, y, n_chains, n_sweeps, ops):
    with open_threads(1) as threads:
        rows = Rows(X, y, True, ops, threads)
        problem = Problem(rows, FixedPrior(rows.columns, None), 1.0, KEY)
        start = initial_state(n_chains, rows.columns, rows.base_rate(), 1.0, KEY)
        chains = GibbsChains(problem, ops.to_device(start), 0)

        def some():
            for _ in range(n_sweeps):
                chains.advance()
            return chains.state.beta

        return [s / n_sweeps for s in seconds(some, 3)]


def samplers(report, quick):
    """Seconds a sweep after burn-in, in whole fits: on the card and on the CPU."""
    for (sampler, kind), (n, p) in (QUICK_SAMPLERS if quick else SAMPLERS).items():
        X, y = data(n, p, np.float32)
        slab = 2.0 if p > n else None

        def sweeps(n_iter, device="cuda", sampler=sampler, X=X, y=y, slab=slab):
            how = {"n_iter": n_iter, "burn_in": 1 if quick else 30, "slab_scale": slab}
            HorseshoeProbitClassifier(sampler=sampler, device=device, random_state=0, **how).fit(X, y)

        runs = {"card": sweeps, "CPU": partial(sweeps, device="cpu")}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measured = per_sweep(runs, *((1, 2, 1) if quick else (2, 200, 3)))
        what = f"{sampler}, {n} x {p}, {kind}, 4 chains"
        report.add(f"a sweep of {what}", measured["card"], "s")
        for other in list(runs)[1:]:
            report.add(f"the same, {other} / card", ratio(measured[other], measured["card"]))


def whole_fit(report, quick):
    """From arrays of the host to an effective sample size of 400 and R-hat of 1.01 of everything."""
    n, p = (200, 3) if quick else RARE
    X, y, *_ = make_rare_events(n, p, event_rate=0.3 if quick else 0.005, dtype=np.float32, random_state=0)
    model = HorseshoeProbitClassifier(target_ess=400, device="cuda", random_state=0)
    if quick:
        model.set_params(n_iter=10, burn_in=10, target_ess=None)
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    report.add(f"fit of rare events, {n} x {p}", time.perf_counter() - begin, "s", at_most=RARE_SECONDS)
    report.add("its least bulk ESS", float(np.nanmin(model.ess_)), at_least=400)
    report.add("its largest R-hat", float(np.nanmax(model.rhat_)), at_most=1.01)
    tau = convergence(np.log(model.global_scale_draws_)[..., None])
    report.add("its ESS of tau", float(tau.ess_bulk[0]), at_least=400)
    report.figures["fit"] = {"n_iter": model.n_iter_, "tuning": {k: float(v) for k, v in model.tuning_.items()}}


def data(n, p, dtype):
    rng = np.random.default_rng(0)
    X = np.empty((n, p), dtype)
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.standard_normal((len(X[start : start + 10_000]), p), dtype=np.float32)
    eta = 0.5 * X[:, 0].astype(np.float32) + rng.standard_normal(n, dtype=np.float32)
    return X, (eta > 0).astype(np.uint8)


def card():
    """What was measured on."""
    import cupy

    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    return {
        "name": properties["name"].decode(),
        "multiprocessors": properties["multiProcessorCount"],
        "memory": runtime.memGetInfo()[1],
        "driver": runtime.driverGetVersion(),
        "runtime": runtime.runtimeGetVersion(),
        "cupy": cupy.__version__,
    }


def print_model():
    """What is known without a card."""
    print(f"Seconds of {SWEEPS} sweeps of gibbs in float32 on an H200:")
    for ((n, p), (one, four)), floor in zip(TARGETS.items(), FLOORS, strict=True):
        print(f"{n} x {p}: target {one} with 1 chain, {four} with 4; modelled floor {floor}; not measured")


SECTIONS = {"bandwidth": bandwidth, "sweeps": sweeps, "samplers": samplers, "fit": whole_fit}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--output", type=Path, help="JSON file")
    options = parser.parse_args(arguments)
    works, why = _device.gpu_status()
    if not works:
        print_model()
        raise SystemExit(f"Nothing to measure: {why}")
    report = Report()
    report.figures["card"] = card()
    print(report.figures["card"], "\n")
    report.head()
    ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
    for name in options.only:
        with ops.using("cuda:0"):
            SECTIONS[name](report, options.quick)
    report.write("gpu", options.output, complete=options.only == list(SECTIONS) and not options.quick)


if __name__ == "__main__":
    main()
