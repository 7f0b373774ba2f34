"""Measurements that need a process of their own; prints one line of JSON. Called by the other benchmarks."""

import json
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")


def memory(n, p, dtype, n_draws, when, n_chains=4, stored=None):
    """Resident bytes: what a fit adds at its peak, what of it are libraries, the whole process. Linux only.

    when : "later fit", after a small one that has loaded all libraries, or "first fit". stored : numbers of
    sparse rows, which are dense without it.
    """
    from scipy.sparse import random_array

    from skhorseshoe import HorseshoeProbitClassifier

    rng = np.random.default_rng(0)
    n, p = int(n), int(p)
    if stored:
        X = random_array((n, p), density=int(stored) / (n * p), format="csr", rng=rng, dtype=dtype)
    else:
        X = rng.standard_normal((n, p), dtype=dtype)
    y = X[:, :1].sum(axis=1) + rng.standard_normal(n, dtype=dtype) > 0
    clf = HorseshoeProbitClassifier(n_iter=int(n_draws), burn_in=3, n_chains=int(n_chains), n_jobs=2, random_state=0)
    if when == "later fit":
        HorseshoeProbitClassifier(n_iter=10, burn_in=3, n_jobs=2).fit(X[:1000, :2].copy(), y[:1000])
    before, libraries = resident("VmRSS"), resident("RssFile")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    clf.fit(X, y)
    peak = resident("VmHWM")
    return {"growth": peak - before, "libraries": resident("RssFile") - libraries, "process": peak}


def memory_of_workers(n, p, n_workers):
    """Bytes of a fit of rows on a cluster: what the largest process of a worker adds at its peak; Linux only.

    The rows, float32, lie in the workers' memory before it.
    """
    import dask.array as da
    from distributed import Client, LocalCluster, wait

    from skhorseshoe import HorseshoeProbitClassifier

    n, p, n_workers = int(n), int(p), int(n_workers)
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50, "memory_limit": 0}
    clf = HorseshoeProbitClassifier(n_iter=10, burn_in=10, random_state=0)
    with LocalCluster(n_workers=n_workers, **options) as cluster, Client(cluster) as client:
        X = da.random.default_rng(0).standard_normal((n, p), chunks=(n // 16, -1), dtype=np.float32).persist()
        y = (X[:, 0] > 0).persist()
        wait([X, y])
        clf.fit(X[::100], y[::100])  # on every worker: what is compiled or loaded is there
        before = client.run(resident, "VmRSS")
        client.run(Path("/proc/self/clear_refs").write_text, "5")  # forget the peak so far
        clf.fit(X, y)
        peak = client.run(resident, "VmHWM")
    return {"growth": max(peak[worker] - before[worker] for worker in peak)}


def fit_on_disk(path, p, n_sweeps, allowed):
    """A fit of float32 rows in a file; the process's own memory may grow by ``allowed`` bytes. Linux only."""
    import resource

    from skhorseshoe import HorseshoeProbitClassifier
    from skhorseshoe._fit.plan import forecast

    p, n_sweeps, allowed = int(p), int(n_sweeps), int(allowed)
    n = Path(path).stat().st_size // (4 * p)
    X = np.memmap(path, np.float32, "r", shape=(n, p))
    y = X[:, 0] > np.random.default_rng(0).standard_normal(n, dtype=np.float32)
    clf = HorseshoeProbitClassifier(
        n_iter=n_sweeps // 2, burn_in=n_sweeps // 2, n_jobs=2, sampler="hmc", random_state=0
    )
    clf.fit(X[:30_000], y[:30_000])  # the same sweeps: compiling any of their kernels would take what is allowed
    _reserve_blas(2)
    X = np.memmap(path, np.float32, "r", shape=(n, p))  # anew: what making y has read of the old one is not counted
    data = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (data + allowed,) * 2)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    begin = time.perf_counter()
    clf.fit(X, y)
    seconds = time.perf_counter() - begin
    expected = sum(forecast(n, p, clf.n_chains, clf.n_iter, 2, "hmc")) + 2 * 16 * 2**20
    return {"growth": resident("VmHWM") - before, "forecast": expected, "allowed": allowed, "seconds": seconds}


def _reserve_blas(n_threads):
    """Have BLAS reserve what that many threads need at once; in a fit it is chance whether they ever meet there.

    OpenBLAS reserves 32 MiB for each and keeps them, and SciPy has an OpenBLAS of its own. It hardly fills them, but
    a limit counts what is reserved.
    """
    from skhorseshoe._backends._cpu.dense import add_products
    from skhorseshoe._utils.threads import open_threads

    A, total, together = np.zeros((1000, 1000)), np.zeros((n_threads, 1000, 1000)), threading.Barrier(n_threads)

    def multiply(first, last):
        together.wait()
        np.matmul(A, A, out=total[first])
        together.wait()
        add_products(A, *A.shape, total[first], True)

    with open_threads(n_threads) as threads:
        threads.run(multiply, n_threads)


def sparse_fit(n, p, density, dtype, sampler, sweeps):
    """Bytes and seconds of a fit on sparse rows, with as many sweeps of burn-in; Linux only."""
    from sparse_rows import data

    from skhorseshoe import HorseshoeProbitClassifier

    X, y = data(int(n), int(p), float(density), dtype)
    clf = HorseshoeProbitClassifier(
        sampler=sampler, n_iter=int(sweeps), burn_in=int(sweeps), expected_nonzero=10, slab_scale=2.0, random_state=0
    )
    if int(p) < 8000:
        clf.fit(X[:2000], y[:2000])  # what is compiled or loaded is there
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    begin = time.perf_counter()
    clf.fit(X, y)
    return {
        "arrays": X.data.nbytes + X.indices.nbytes + X.indptr.nbytes,
        "growth": resident("VmHWM") - before,
        "process": resident("VmHWM"),
        "seconds": time.perf_counter() - begin,
        "sweeps": 2 * int(sweeps),
    }


def import_time():
    """Seconds that importing the package adds to importing scikit-learn."""
    import sklearn  # noqa: F401

    begin = time.perf_counter()
    import skhorseshoe  # noqa: F401

    return time.perf_counter() - begin


def first_fits():
    """Seconds of fit and predict_proba, twice with float64, then twice with float32."""
    from skhorseshoe import HorseshoeProbitClassifier
    from skhorseshoe.datasets import make_sparse_probit

    seconds = {}
    for dtype in ("float64", "float32"):
        X, y, _ = make_sparse_probit(200, 5, dtype=dtype, random_state=0)
        for turn in ("first", "second"):
            begin = time.perf_counter()
            HorseshoeProbitClassifier(n_iter=20, burn_in=100, random_state=0).fit(X, y).predict_proba(X)
            seconds[f"{turn} {dtype}"] = time.perf_counter() - begin
    return seconds


def resident(name):
    """VmRSS, what is resident now, RssFile, what of it are files such as libraries, or VmHWM, the most there was."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status[name].split()[0]) * 1024


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
