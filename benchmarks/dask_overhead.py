"""What a cluster adds to a sweep, and what that means for a large one; README.md says how to run it.

Worker processes of this machine hold a few rows each, so that what a question takes is nearly all overhead: sending the
coefficients of 4 chains of 1000 columns to every worker, and adding what comes back. A sweep of "gibbs" asks once, one
of "hmc" as many times as it has turns, 1 to 7. More processes than free cores measure the cores.

Then a table on paper, of a sweep of "gibbs" over 1e9 rows of 1000 columns. It is checked by 64 workers whose pass is as
long a sleep. They are threads of one process, connected by TCP, so that one core does the work of all of them.
"""

import argparse
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from _measure import Report, combine, figure
from dask import delayed
from distributed import Client, LocalCluster

from skhorseshoe._backends import device
from skhorseshoe._data import dask_rows
from skhorseshoe._data.row_blocks import Segment
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import Threads, open_threads

P, CHAINS, FEW = 1000, 4, 64  # columns, chains, and rows that a worker holds
KEY = np.array([1, 2], dtype=np.uint32)
COEF = np.zeros((CHAINS, P + 1))
TARGETS = {2: 2.0, 4: 5.0, 8: 10.0}  # milliseconds, by the number of workers
N = 1e9  # rows, on paper, float32
GPUS, CPUS, THREADS = 64, 100, 16
GPU_RATE = 3e12  # bytes of X a second: assumed, not measured


def sleep(X, y, coef, bounds, sweep, key, threads, microseconds):
    """In place of a pass over rows, of which the first has this number."""
    time.sleep(1e-6 * microseconds)
    return coef, coef[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds, two workers: does it run?")
    parser.add_argument("--output", type=Path, help="default: results/dask-overhead-<date>.json, unless --quick")
    options = parser.parse_args()
    rounds = 5 if options.quick else 300
    report = Report()
    report.head()
    element, small = a_pass(20_000), a_pass(FEW)
    least = {}
    for k in [2] if options.quick else TARGETS:
        asked = combine(lambda s: 1e3 * (s - small * FEW * P), a_question(k, rounds, some_segment))
        least[k] = asked["tenth"] = float(np.quantile(asked["all"], 0.1))
        report.add(f"{k} workers: a question beside its pass", asked, "ms", at_most=TARGETS[k])
        report.add(f"{k} workers: the tenth percentile", least[k], "ms")
    slope, own = sum(least.values()) / sum(least), 1e3 * a_draw()
    print(f"\nOn paper, {N:.0e} x {P}, float32; {1e9 * element:.3f} ns for an element and core, as measured here,")
    print(
        f"{1e-12 * GPU_RATE:.0f} TB/s for a GPU, as assumed; {slope:.2f} ms for a worker, from the tenth percentiles."
    )
    passes = {GPUS: 1e3 * 4 * N * P / GPUS / GPU_RATE, CPUS: 1e3 * element * N * P / CPUS / THREADS}
    for name, k in ((f"{GPUS} GPUs", GPUS), (f"{CPUS} x {THREADS} cores", CPUS)):
        parts = {"pass": passes[k], "overhead": slope * k, "coefficients": own}
        for part, took in (*parts.items(), ("sweep", sum(parts.values()))):
            report.add(f"on paper, {name}: {part}", took, "ms")
    for length in passes.values():
        with patch.object(device.resolve("cpu").ops, "latent", sleep):
            asked = a_question(GPUS, max(5, rounds // 10), lambda i, t=length: pretended(t), processes=False)
        size = f"{GPUS} simulated workers, pass of {length:.0f} ms:"
        report.add(f"{size} a question", combine(lambda s: 1e3 * s, asked), "ms")
        report.add(f"{size} on paper", length + slope * GPUS, "ms")
    report.write("dask-overhead", options.output, not options.quick)


def a_pass(n):
    """Seconds for an element of X when one core reads n rows."""
    rows = Rows(*some_rows(np.random.default_rng(0), n), True, device.resolve("cpu").ops, Threads(1))
    rows.latent(COEF, 0, KEY)
    return min(seconds(lambda: rows.latent(COEF, 0, KEY)) for _ in range(7)) / n / P


def a_draw():
    """Seconds that one core takes to draw the coefficients of all chains."""
    with open_threads(1) as threads:
        precision = device.resolve("cpu").ops.Precision(1e3 * np.eye(P + 1), threads)
        return min(seconds(lambda: precision.draw(COEF, 1 + COEF, COEF)) for _ in range(7))


def some_rows(rng, n):
    return rng.standard_normal((n, P), dtype=np.float32), rng.integers(0, 2, n).astype(np.uint8)


def some_segment(i):
    X, y = some_rows(np.random.default_rng(i), FEW)
    X.flags.writeable = False
    return Segment(X, y, np.empty(0), np.array([0, FEW]), i * FEW)


def pretended(milliseconds):
    nothing = np.zeros((1, 1), np.float32)
    return Segment(nothing, np.zeros(1, np.uint8), np.empty(0), np.array([0, 1]), round(1e3 * milliseconds))


def a_question(n_workers, rounds, segment, processes=True):
    """Seconds until all workers have answered; each holds one small segment."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    options |= {"processes": processes, "protocol": "tcp", "memory_limit": 0}
    with LocalCluster(**options) as cluster, Client(cluster, direct_to_workers=True) as client:
        pack = delayed(segment, pure=False)
        with dask_rows.Shards(client, pack, [FEW * P * 4] * n_workers, FEW * P * 4, P, ("cpu", 0)) as shards:
            shards.ask(Segment.latent, COEF, 0, KEY)  # loads the core
            return figure([seconds(lambda t=t: shards.ask(Segment.latent, COEF, t, KEY)) for t in range(rounds)])


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
