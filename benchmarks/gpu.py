"""The claims of speed on a GPU, measured on the first NVIDIA GPU.

bandwidth  bytes a second of each pass beside those of a copy
sweeps     10,000 sweeps of "gibbs", from fewer, for four shapes
samplers   a sweep of every sampler, beside the same on the CPU
fit        a whole fit of 1.3 million rows with rare events
"""

import importlib
from functools import partial, wraps

import numpy as np
from _data import plain
from _measure import figure, fit, per_sweep, ratio, run, timed

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


def seconds(ops, function, repeats):
    """Seconds of each call but the first; function returns an array of the device, which is waited for."""
    return [timed(lambda: ops.to_host(function()))[0] for _ in range(repeats + 1)][1:]


def bandwidth(report, options, ops):
    """Bytes a second of a copy, and of each pass; both read and write are counted for the copy."""
    size = 2**16 if options.quick else 2**28
    source = ops.to_device(np.zeros(size))
    target = source.copy()

    def copy():
        target[...] = source
        return target[:1]

    copied = figure([16 * size / s for s in seconds(ops, copy, 2 if options.quick else 20)])
    report.add("copy", copied, "B/s")
    for n, p in [(100, 5)] if options.quick else [(1_000_000, 1000), (1_300_000, 141)]:
        for dtype in (np.float32, np.float16):
            X, y = plain(n, p, dtype)
            held = ops.hold(X, y, np.empty(0))
            for n_chains in (4,) if options.quick else (1, 4, 16):
                beta = ops.to_device(np.full((n_chains, p), 0.01))
                passes = {
                    "latent": lambda h=held, b=beta: ops.latent(*h[:2], b, None, 1, KEY, None)[1],
                    "score": lambda h=held, b=beta: ops.score(*h, b, None, None)[0],
                }
                for name, one in passes.items():
                    speed = figure([X.nbytes / s for s in seconds(ops, one, 1 if options.quick else 10)])
                    what = f"{name} pass, {n} x {p}, {dtype.__name__}, {n_chains} chains"
                    report.figures[what] = speed
                    target = {"at_least": SHARE_OF_COPY} if (n, p, dtype) == (1_000_000, 1000, np.float32) else {}
                    report.add(f"{what}, share of copy", speed["median"] / copied["median"], **target)


def sweeps(report, options, ops):
    """Seconds of 10,000 sweeps, from fewer."""
    for (n, p), targets in ({(100, 5): (9, 12)} if options.quick else TARGETS).items():
        X, y = plain(n, p)
        for n_chains, target in zip((1, 4), targets, strict=True):
            measured = figure([SWEEPS * s for s in gibbs(ops, X, y, n_chains, 1 if options.quick else 100, p)])
            report.add(f"{SWEEPS} sweeps of gibbs, {n} x {p}, {n_chains} chains", measured, "s", at_most=target)
            if limits.needs_conjugate_gradients(p):
                default = limits.MOST_CHOLESKY_COLUMNS
                by_gradients = figure([SWEEPS * s for s in gibbs(ops, X, y, n_chains, 100, default)])
                report.add("the same by conjugate gradients", by_gradients, "s", at_most=GRADIENT_SECONDS)


def gibbs(ops, X, y, n_chains, n_sweeps, most_columns):
    """Seconds a sweep, three times. most_columns : that Q is factorised with."""
    default, limits.MOST_CHOLESKY_COLUMNS = limits.MOST_CHOLESKY_COLUMNS, most_columns
    try:
        with open_threads(1) as threads:
            rows = Rows(X, y, True, ops, threads)
            problem = Problem(rows, FixedPrior(rows.columns, None), 1.0, KEY)
            start = initial_state(n_chains, rows.columns, rows.base_rate(), 1.0, KEY)
            chains = GibbsChains(problem, ops.to_device(start), 0)

            def some():
                for _ in range(n_sweeps):
                    chains.advance()
                return chains.state.beta

            return [s / n_sweeps for s in seconds(ops, some, 3)]
    finally:
        limits.MOST_CHOLESKY_COLUMNS = default


def samplers(report, options, ops):
    """Seconds a sweep after burn-in, in whole fits: on the card and on the CPU."""
    for (sampler, kind), (n, p) in (QUICK_SAMPLERS if options.quick else SAMPLERS).items():
        X, y = plain(n, p)
        how = {"sampler": sampler, "burn_in": 1 if options.quick else 30, "slab_scale": 2.0 if p > n else None}

        def sweeps(n_iter, device, X=X, y=y, how=how):
            fit(X, y, {"n_iter": n_iter, "device": device, "random_state": 0, **how})

        runs = {"card": partial(sweeps, device="cuda"), "CPU": partial(sweeps, device="cpu")}
        measured = per_sweep(runs, *((1, 2, 1) if options.quick else (2, 200, 3)))
        report.add(f"a sweep of {sampler}, {n} x {p}, {kind}, 4 chains", measured["card"], "s")
        report.add("the same, CPU / card", ratio(measured["CPU"], measured["card"]))


def whole_fit(report, options, ops):
    """From arrays of the host to an effective sample size of 400 and R-hat of 1.01 of everything."""
    n, p = (200, 3) if options.quick else RARE
    rate = 0.3 if options.quick else 0.005
    X, y, *_ = make_rare_events(n, p, event_rate=rate, dtype=np.float32, random_state=0)
    length = {"n_iter": 10, "burn_in": 10} if options.quick else {"target_ess": 400}
    took, model = timed(lambda: fit(X, y, {"device": "cuda", "random_state": 0, **length}))
    report.add(f"fit of rare events, {n} x {p}", took, "s", at_most=RARE_SECONDS)
    report.add("its least bulk ESS", float(np.nanmin(model.ess_)), at_least=400)
    report.add("its largest R-hat", float(np.nanmax(model.rhat_)), at_most=1.01)
    tau = convergence(np.log(model.global_scale_draws_)[..., None])
    report.add("its ESS of tau", float(tau.ess_bulk[0]), at_least=400)
    report.figures["fit"] = {"n_iter": model.n_iter_, "tuning": {k: float(v) for k, v in model.tuning_.items()}}


def on_card(section):
    """The section with the card's operations; where there is no card, what is known without one, and why."""

    @wraps(section)
    def measure(report, options):
        works, why = _device.gpu_status()
        if not works:
            print(f"Seconds of {SWEEPS} sweeps of gibbs in float32 on an H200:")
            for ((n, p), (one, four)), floor in zip(TARGETS.items(), FLOORS, strict=True):
                print(f"{n} x {p}: target {one} with 1 chain, {four} with 4; modelled floor {floor}; not measured")
            raise SystemExit(f"Nothing to measure: {why}")
        ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
        if "card" not in report.figures:
            report.figures["card"] = card()
            print(report.figures["card"], "\n")
        with ops.using("cuda:0"):
            section(report, options, ops)

    return measure


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


def main(arguments=None):
    on_cards = {"bandwidth": bandwidth, "sweeps": sweeps, "samplers": samplers, "fit": whole_fit}
    run(__file__, __doc__, {name: on_card(one) for name, one in on_cards.items()}, arguments=arguments)


if __name__ == "__main__":
    main()
