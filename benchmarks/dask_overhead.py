"""What a cluster adds to a sweep, and what that means for a large one.

    python benchmarks/dask_overhead.py [--quick]

Worker processes of this machine hold a few rows each, so that what a question takes is nearly all overhead: sending the
coefficients of 4 chains of 1000 columns to every worker, and adding what comes back. A sweep of "gibbs" asks once, one
of "hmc" as many times as it has turns, 1 to 7. More processes than free cores measure the cores. Then a table on paper:
a pass over 1e9 rows of 1000 columns from the rate of one core here, the overhead in proportion to the workers.
"""

import argparse
import time

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from skhorseshoe import _dask_rows, _device
from skhorseshoe._design import Rows
from skhorseshoe._segments import Segment
from skhorseshoe._threads import Threads

P, CHAINS, FEW = 1000, 4, 64  # columns, chains, and rows that a worker holds
KEY = np.array([1, 2], dtype=np.uint32)
COEF = np.zeros((CHAINS, P + 1))
TARGETS = {2: 2.0, 4: 5.0, 8: 10.0}  # milliseconds, by the number of workers
PAPER = 1e9, {64: 8, 100: 16}  # rows; threads of a worker, by the number of workers


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run?")
    rounds = 5 if parser.parse_args().quick else 300
    ops, _ = _device.resolve("cpu")
    element, small = a_pass(ops, 20_000), a_pass(ops, FEW)
    overhead = {k: 1e3 * (a_question(k, rounds) - small * FEW * P) for k in TARGETS}
    print("workers   overhead of a question, ms: median   tenth   at most")
    for k, (median, tenth) in overhead.items():
        print(f"{k:7d}   {median:34.2f}   {tenth:5.2f}   {TARGETS[k]:7.0f}")
    n, clusters = PAPER
    slope = sum(median for median, _ in overhead.values()) / sum(overhead)
    print(f"\nOn paper, {n:.0e} rows, float32, {1e9 * element:.2f} ns for an element and core as measured here:")
    print("workers x threads   pass, ms   overhead, ms")
    for k, threads in clusters.items():
        print(f"{k:7d} x {threads:7d}   {1e3 * element * n * P / k / threads:8.0f}   {slope * k:12.1f}")


def a_pass(ops, n):
    """Seconds for an element of X when one core reads n rows."""
    rng = np.random.default_rng(0)
    rows = Rows(*some_rows(rng, n), True, ops, Threads(1))
    rows.latent(COEF, 0, KEY)
    return min(seconds(lambda: rows.latent(COEF, 0, KEY)) for _ in range(7)) / n / P


def some_rows(rng, n):
    return rng.standard_normal((n, P), dtype=np.float32), rng.integers(0, 2, n).astype(np.uint8)


def a_question(n_workers, rounds):
    """Seconds until all workers have answered, the median and the tenth percentile; each holds one small segment."""

    def segment(i):
        X, y = some_rows(np.random.default_rng(i), FEW)
        X.flags.writeable = False
        return Segment(X, y, np.empty(0), np.array([0, FEW]), i * FEW)

    options = {
        "n_workers": n_workers,
        "threads_per_worker": 1,
        "processes": True,
        "dashboard_address": ":0",
        "silence_logs": 50,
    }
    with LocalCluster(**options) as cluster, Client(cluster, direct_to_workers=True) as client:
        pack = delayed(segment, pure=False)
        with _dask_rows.Shards(client, pack, [FEW * P * 4] * n_workers, P, "cpu") as shards:
            shards.ask("latent", COEF, 0, KEY)  # loads the kernels
            asked = [seconds(lambda t=t: shards.ask("latent", COEF, t, KEY)) for t in range(rounds)]
            return np.quantile(asked, [0.5, 0.1])


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
