"""Passes over rows on disk beside the rates of the disk and of memory, and a fit; README.md says how to run it."""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from _measure import Report, child, combine, figure

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import open_threads

N_CHAINS, KEY = 4, np.array([1, 2], np.uint32)
READ = 2**23  # bytes that the plain reading asks for at a time
SHARE = 0.7


def write(path, n_bytes):
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        for _ in range(n_bytes // 2**24):
            rng.standard_normal(2**22, dtype=np.float32).tofile(file)
        os.fsync(file.fileno())


def forget(path):
    """Have the system forget the file, so that it is read from the disk; what a process has mapped would stay."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read(path):
    """One sequential reading, as plain as can be."""
    buffer = bytearray(READ)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def seconds(function):
    begin = time.perf_counter()
    function()
    return time.perf_counter() - begin


def passes(report, path, p, threads, repeats):
    """The two passes with the file forgotten before each, in turns with the plain reading and with rows in memory."""
    n_bytes = os.path.getsize(path)
    n = n_bytes // (4 * p)
    X = np.memmap(path, np.float32, "r", shape=(n, p))
    some = np.array(X[: n // 8])  # in memory
    y = (X[:, 0] > 0).astype(np.uint8)
    beta = np.random.default_rng(1).standard_normal((N_CHAINS, p + 1)) / np.sqrt(p)
    on_disk, in_memory = Rows(X, y, True, cpu, threads), Rows(some, y[: len(some)], True, cpu, threads)
    timed = {name: {"disk": [], "read": [], "memory": []} for name in ("latent", "score")}
    for _ in range(repeats + 1):
        for name, their in timed.items():
            args = (beta, 1, KEY) if name == "latent" else (beta,)
            forget(path)
            their["read"].append(seconds(lambda: read(path)))
            forget(path)
            their["disk"].append(seconds(lambda: getattr(on_disk, name)(*args)))  # noqa: B023 - called at once
            their["memory"].append(seconds(lambda: getattr(in_memory, name)(*args)))  # noqa: B023
    for name, their in timed.items():
        sizes = {"disk": n * p * 4, "read": n_bytes, "memory": some.nbytes}
        rates = {kind: figure([sizes[kind] / 1e9 / s for s in values[1:]]) for kind, values in their.items()}
        for rate in rates.values():
            rate["minimum"] = max(rate["all"])  # the best, as elsewhere
        report.figures[f"{name}, p={p}"] = rates
        share = combine(lambda pass_, disk, memory: pass_ / min(disk, memory), *(rates[k] for k in sizes))
        report.add(f"{name}, p={p}: the disk, read once, plainly", rates["read"], "GB/s")
        report.add(f"{name}, p={p}: the pass, rows in memory", rates["memory"], "GB/s")
        report.add(f"{name}, p={p}: the pass, rows on disk", rates["disk"], "GB/s")
        report.add(f"{name}, p={p}: of the lower of the two", share, at_least=SHARE)


def fit(report, path, p, n_sweeps):
    """A fit in a process of its own whose memory may grow by a quarter of the rows."""
    allowed = os.path.getsize(path) // 4
    forget(path)
    got = child("fit_on_disk", path, p, n_sweeps, allowed)
    report.figures["fit"] = got
    report.add(f"p={p}, hmc: resident memory that a fit adds, over that of the rows", got["growth"] / (4 * allowed))
    report.add(f"p={p}, hmc: over what it may take", got["growth"] / allowed, at_most=1.0)
    report.add(
        f"p={p}, hmc: over its forecast and 16 MiB of the file a thread", got["growth"] / got["forecast"], at_most=1.0
    )
    report.add(f"p={p}, hmc: seconds a sweep of {n_sweeps}", got["seconds"] / n_sweeps, "s")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--gib", type=float, default=2.0, help="size of the rows; default: 2")
    parser.add_argument(
        "--folder", default=None, help="on the disk to be measured; default: the one of temporary files"
    )
    parser.add_argument("--output", type=Path, help="default: results/disk-<date>.json, unless --quick")
    options = parser.parse_args()

    report = Report()
    report.head()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, open_threads(2) as threads:
        path = Path(folder) / "rows.bin"
        write(path, 3 * 2**27 if options.quick else int(options.gib * 2**30))
        report.figures["bytes"] = os.path.getsize(path)
        for p in (100,) if options.quick else (100, 1000):
            passes(report, path, p, threads, 1 if options.quick else 7)
        fit(report, path, 100, 4 if options.quick else 20)
    report.write("disk", options.output, complete=not options.quick)


if __name__ == "__main__":
    main()
