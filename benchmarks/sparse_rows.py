"""Sparse rows against the same rows in full, and columns too many for a matrix; README.md says how to run it."""

import argparse
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from _measure import Report, child, combine, in_turns, per_sweep, ratio
from cpu import KEY, _fit

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import open_threads


def data(n, p, density, dtype=np.float32):
    """Rows with as many stored numbers each, of which the first three columns explain y."""
    rng = np.random.default_rng(0)
    per_row = max(1, round(p * density))
    indices = np.sort(rng.integers(0, p // per_row, (n, per_row), dtype=np.int32) * per_row + np.arange(per_row))
    values = rng.standard_normal((n, per_row), dtype=np.float32).astype(dtype)
    starts = np.arange(0, n * per_row + 1, per_row, dtype=np.int32)
    X = sp.csr_array((values.ravel(), indices.ravel().astype(np.int32), starts), shape=(n, p))
    y = 3 * X[:, [0, 1, 2]].sum(axis=1) + rng.standard_normal(n) > 0
    return X, y.astype(np.uint8)


def passes(report, quick):
    """Both passes, and sweeps inside fit, at 1 % dense; the rows in full are a tenth of them, times ten."""
    n, p, share, repeats = (2000, 100, 1, 2) if quick else (1_000_000, 1000, 10, 5)
    for dtype in (np.float32, np.float64):
        X, y = data(n, p, 0.01, dtype)
        few, seconds = slice(0, n // share), {}
        with open_threads(2) as threads:
            for n_chains in (1, 4):
                beta = 0.1 * np.random.default_rng(0).standard_normal((n_chains, p + 1))
                for kind, rows in (
                    ("sparse", Rows(X, y, True, sparse, threads)),
                    ("full", Rows(X[few].toarray(), y[few], True, cpu, threads)),
                ):
                    seconds["latent", n_chains, kind] = lambda r=rows, b=beta: r.latent(b, 1, KEY)
                    seconds["score", n_chains, kind] = lambda r=rows, b=beta: r.score(b)
            seconds = in_turns(seconds, repeats)
        size = f"n={n:,}, p={p}, 1 % dense, {np.dtype(dtype)}"
        report.figures[size] = {" ".join(map(str, name)): values for name, values in seconds.items()}
        for name, n_chains in (("latent", 1), ("latent", 4), ("score", 1), ("score", 4)):
            ours, full = seconds[name, n_chains, "sparse"], seconds[name, n_chains, "full"]
            what = f"{size}, {n_chains} chains: pass {name}"
            report.add(f"{what}, sparse", combine(lambda s: 1e3 * s, ours), "ms")
            in_full = combine(lambda s: share * s, full)
            report.add(f"{what}, in full ({share} x a part) / sparse", ratio(in_full, ours))
        for sampler, name in (("pxda", "latent"), ("hmc", "score")):
            sweeps(report, f"{size}, 4 chains", X, y, sampler, seconds, name, share, quick)


def sweeps(report, size, X, y, sampler, seconds, name, share, quick):
    """Of the rows in full, a sweep is one of the sparse rows with the longer pass: all but the passes is the same."""
    settings = {"sampler": sampler, "burn_in": 100 if quick else 30}
    few_draws, many = (2, 6) if quick else (3, 13)
    one = per_sweep({"sparse": lambda k: _fit(X, y, n_iter=k, thin=k, **settings)}, few_draws, many, 1 if quick else 2)
    # The fewest passes in a sweep are one.
    more = share * seconds[name, 4, "full"]["minimum"] - seconds[name, 4, "sparse"]["minimum"]
    report.add(f"{size}: sweep of {sampler}, sparse", combine(lambda s: 1e3 * s, one["sparse"]), "ms")
    in_full = combine(lambda s: (s + more) / s, one["sparse"])
    report.add(f"{size}: sweep of {sampler}, in full / sparse", in_full, at_least=20)


def memory(report, quick):
    """What a fit takes at its peak, the arrays of X included, over these arrays."""
    for dtype in ("float32", "float64")[: 1 if quick else 2]:
        for sampler in ("pxda", "hmc"):
            n, p = (20_000, 100) if quick else (1_000_000, 1000)
            found = child("sparse_fit", n, p, 0.01, dtype, sampler, 3)
            share = (found["arrays"] + found["growth"]) / found["arrays"]
            report.add(f"n={n:,}, p={p}, 1 % dense, {dtype}, {sampler}: peak / arrays of X", share, at_most=1.5)


def many_columns(report, quick):
    """Conjugate gradients where a matrix would take 20 GB."""
    n, p, n_sweeps = (500, 9000, 3) if quick else (20_000, 50_000, 20)
    found = child("sparse_fit", n, p, 0.001, "float64", "auto", n_sweeps)
    size = f"n={n:,}, p={p:,}, 0.1 % dense:"
    report.add(f"{size} process", found["process"] / 1e9, "GB", at_most=4)
    report.add(f"{size} sweeps a second, start included", found["sweeps"] / found["seconds"])


SECTIONS = {"passes": passes, "memory": memory, "many_columns": many_columns}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="sections to run")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--output", type=Path, help="a JSON file; results/ for a complete run")
    options = parser.parse_args()
    report = Report()
    report.head()
    for name in options.only:
        SECTIONS[name](report, options.quick)
    report.write("sparse-rows", options.output, not options.quick and set(options.only) == set(SECTIONS))


if __name__ == "__main__":
    main()
