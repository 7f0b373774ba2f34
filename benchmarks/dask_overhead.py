"""What a cluster adds to a sweep, and what that means for a large one.

    python benchmarks/dask_overhead.py [--quick]

Worker processes of this machine hold a few rows each, so that what a question takes is nearly all overhead: sending the
coefficients of 4 chains of 1000 columns to every worker, and adding what comes back. A sweep of "gibbs" asks once, one
of "hmc" as many times as it has turns, 1 to 7. More processes than free cores measure the cores.

Then a table on paper, of a sweep of "gibbs" over 1e9 rows of 1000 columns. It is checked by 64 workers whose pass is as
long a sleep. They are threads of one process, connected by TCP, so that one core does the work of all of them.
"""

import argparse
import time

import numpy as np
from dask import delayed
from distributed import Client, LocalCluster

from skhorseshoe import _dask_rows, _device
from skhorseshoe._design import Rows
from skhorseshoe._segments import Segment
from skhorseshoe._threads import Threads, open_threads

P, CHAINS, FEW = 1000, 4, 64  # columns, chains, and rows that a worker holds
KEY = np.array([1, 2], dtype=np.uint32)
COEF = np.zeros((CHAINS, P + 1))
TARGETS = {2: 2.0, 4: 5.0, 8: 10.0}  # milliseconds, by the number of workers
N = 1e9  # rows, on paper, float32
GPUS, CPUS, THREADS = 64, 100, 16
GPU_RATE = 3e12  # bytes of X a second: assumed, not measured


class Pretender(Segment):
    """A segment whose pass is a sleep; ``start`` is its length in microseconds."""

    def latent(self, ops, threads, coef, sweep, key):
        time.sleep(1e-6 * self.start)
        return coef, coef[:, 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rounds: does it run?")
    rounds = 5 if parser.parse_args().quick else 300
    element, small = a_pass(20_000), a_pass(FEW)
    overhead = {k: 1e3 * (a_question(k, rounds, some_segment) - small * FEW * P) for k in TARGETS}
    print("workers   overhead of a question, ms: median   tenth   at most")
    for k, (median, tenth) in overhead.items():
        print(f"{k:7d}   {median:34.2f}   {tenth:5.2f}   {TARGETS[k]:7.0f}")
    slope = sum(tenth for _, tenth in overhead.values()) / sum(overhead)
    own = 1e3 * a_draw()
    passes = {GPUS: 1e3 * 4 * N * P / GPUS / GPU_RATE, CPUS: 1e3 * element * N * P / CPUS / THREADS}
    print(f"\nOn paper, {N:.0e} x {P}, float32, ms; {1e9 * element:.3f} ns for an element and core, as measured here,")
    print(f"{1e-12 * GPU_RATE:.0f} TB/s for a GPU, as assumed; {slope:.2f} ms for a worker, the least of those above.")
    print("                     pass   overhead   sampler   sweep")
    for name, k in ((f"{GPUS} GPUs", GPUS), (f"{CPUS} x {THREADS} cores", CPUS)):
        parts = passes[k], slope * k, own
        print(f"{name:16s} {parts[0]:8.0f}   {parts[1]:8.1f}   {own:7.1f}   {sum(parts):5.0f}")
    print(f"\n{GPUS} simulated workers, ms")
    for length in passes.values():
        median, tenth = 1e3 * a_question(GPUS, max(5, rounds // 10), lambda i, t=length: pretended(t), processes=False)
        print(f"pass of {length:4.0f}: median {median:5.0f}, tenth {tenth:5.0f}; on paper {length + slope * GPUS:5.0f}")


def a_pass(n):
    """Seconds for an element of X when one core reads n rows."""
    rows = Rows(*some_rows(np.random.default_rng(0), n), True, _device.resolve("cpu").ops, Threads(1))
    rows.latent(COEF, 0, KEY)
    return min(seconds(lambda: rows.latent(COEF, 0, KEY)) for _ in range(7)) / n / P


def a_draw():
    """Seconds that one core takes to draw the coefficients of all chains."""
    with open_threads(1) as threads:
        precision = _device.resolve("cpu").ops.Precision(1e3 * np.eye(P + 1), threads)
        return min(seconds(lambda: precision.draw(COEF, 1 + COEF, COEF)) for _ in range(7))


def some_rows(rng, n):
    return rng.standard_normal((n, P), dtype=np.float32), rng.integers(0, 2, n).astype(np.uint8)


def some_segment(i):
    X, y = some_rows(np.random.default_rng(i), FEW)
    X.flags.writeable = False
    return Segment(X, y, np.empty(0), np.array([0, FEW]), i * FEW)


def pretended(milliseconds):
    nothing = np.zeros((1, 1), np.float32)
    return Pretender(nothing, np.zeros(1, np.uint8), np.empty(0), np.array([0, 1]), round(1e3 * milliseconds))


def a_question(n_workers, rounds, segment, processes=True):
    """Seconds until all workers have answered, the median and the tenth percentile; each holds one small segment."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    options |= {"processes": processes, "protocol": "tcp", "memory_limit": 0}
    with LocalCluster(**options) as cluster, Client(cluster, direct_to_workers=True) as client:
        pack = delayed(segment, pure=False)
        with _dask_rows.Shards(client, pack, [FEW * P * 4] * n_workers, FEW * P * 4, P, ("cpu",)) as shards:
            shards.ask("latent", COEF, 0, KEY)  # loads the kernels
            asked = [seconds(lambda t=t: shards.ask("latent", COEF, t, KEY)) for t in range(rounds)]
            return np.quantile(asked, [0.5, 0.1])


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
