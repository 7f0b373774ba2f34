"""Figure 1 of Terenin, Dong & Draper (2019) and its real data, in size, on this machine.

    python benchmarks/paper.py          # about eight minutes, 12 GB of free memory for all sizes
    python benchmarks/paper.py --real   # and the size of its real data, in memory and on disk; 20 minutes
    python benchmarks/paper.py --wide   # 1000, 10,000 and 100,000 rows of 10,000 columns; more than two hours

Sweeps are timed as they end. Where 10,000 would take longer than ``--seconds``, they are extrapolated from fewer, and
marked. The paper's own seconds, and what an H200 can do at most, computed and not measured, stand beside them.
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from _data import as_in_the_paper
from _measure import fit, run, sweep_times, timed

from skhorseshoe.datasets import make_rare_events

ROWS, COLUMNS, SWEEPS = (1000, 10_000, 100_000, 1_000_000), (10, 100, 1000), 10_000
WIDE, REAL = ((1000, 10_000, 100_000), (10_000,)), (1_295_848, 141)
# Seconds of 10,000 sweeps of one chain on a Titan X that the paper states, for these shapes.
PAPER = {(10_000, 1000): 41.0, (1_000_000, 1000): 120.0, REAL: 176.0}
# The least that an H200 can take for them: bandwidth and arithmetic on paper, four chains; nothing was measured.
MODELLED = {(10_000, 1000): 7.0, (100_000, 1000): 8.0, (1_000_000, 1000): 17.5, REAL: 4.0}


def figure_1(report, options):
    """Seconds of 10,000 sweeps of one chain, from fewer where 10,000 would take longer than is allowed."""
    shapes = WIDE if options.wide else (tuple(options.rows), tuple(options.columns))
    report.is_partial, report.suffix = shapes not in (WIDE, (ROWS, COLUMNS)), "-wide" * options.wide
    beside = {"paper": entries(PAPER, "the paper, Titan X"), "modelled": entries(MODELLED, "H200, modelled")}
    report.figures |= {"sweeps": [], "beside": beside}
    rows, columns = ((500, 1000), (5, 10)) if options.quick else shapes
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for n in rows:
        for p in columns:
            if 8 * n * p > free / 2:
                print(f"  {n:,} x {p:,} in float32 is left out: X and making it take more than half of the memory")
                continue
            X, y = as_in_the_paper(n, p)
            for asked in ("gibbs", "auto"):
                if asked == "auto" and n * p > 5e8 and p <= max(COLUMNS) and not options.real:
                    continue  # the burn-in of "hmc" alone takes minutes
                if asked == "gibbs" and n < p > max(COLUMNS):
                    continue  # conjugate gradients do not end there, and a factor in each sweep takes most of a minute
                for threads in sorted({1, options.threads}):
                    allowed = 0.05 if options.quick else options.seconds
                    seconds, swept, sampler = ten_thousand(X, y, asked, threads, allowed)
                    entry = {"n": n, "p": p, "sampler": sampler, "threads": threads, "seconds": seconds, "swept": swept}
                    report.figures["sweeps"].append(entry)
                    how = "" if swept == SWEEPS else f"extrapolated from {swept}"
                    report.add(f"{n:,} x {p:,}: 10,000 sweeps of {sampler}, {threads} threads", seconds, f"s {how}")


def ten_thousand(X, y, sampler, threads, allowed):
    """Seconds of 10,000 sweeps after burn-in, how many were made, and by which sampler: more and more, until they take
    long enough."""
    few_chains(X[:50, :20], y[:50], sampler, threads, 4)  # what is compiled is loaded
    swept, few = 8, {}
    while True:
        if X.shape[1] > max(COLUMNS) and len(X) >= X.shape[1]:  # conjugate gradients, whose first sweeps take longest
            few = {"burn_in": 20, "thin": swept}  # the shrinkage once, as it takes longer than a sweep
        with sweep_times() as times:
            model = few_chains(X, y, sampler, threads, swept, **few)
        end = max(times)
        begin = end - swept
        took = times[end] - times[begin]
        if swept == SWEEPS or took > allowed / 4:
            first, last = begin + 1, end - bool(few)  # what is computed once is in the first, or in the last
            each = (times[last] - times[first]) / (last - first)
            return took + each * (SWEEPS - swept), swept, model.sampler_
        swept = int(min(SWEEPS, swept * np.clip(allowed / (2 * took), 2, 100)))


def few_chains(X, y, sampler, threads, n_iter, **settings):
    # One chain, as in the paper. Samplers that tune themselves do so in burn-in, and "auto" is "hmc" from 100 sweeps of
    # it; "gibbs" has nothing to tune.
    settings = {"n_chains": 1, "burn_in": 10 if sampler == "gibbs" else 100, "random_state": 0, **settings}
    settings.setdefault("thin", max(1, n_iter // 1000))
    return fit(X, y, {"sampler": sampler, "n_jobs": threads, "n_iter": n_iter, **settings})


def real_data(report, options):
    """Rare events of the size of the paper's real data: the time until every coefficient and tau have an ESS of 400."""
    if not (options.real or options.quick):
        return
    n, p = (2000, 8) if options.quick else REAL
    X, y, *_ = make_rare_events(n, p, event_rate=0.05 if options.quick else 0.005, dtype=np.float32, random_state=0)
    how = {"n_chains": 4, "burn_in": 200 if options.quick else 500, "thin": 1, "target_ess": 400}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        on_disk = np.memmap(Path(folder) / "rows", np.float32, "w+", shape=X.shape)
        on_disk[:] = X
        on_disk.flush()
        for where, rows in (("in memory", X), ("on disk", np.memmap(on_disk.filename, np.float32, "r", shape=X.shape))):
            call = (rows, y, "hmc", options.threads, 4000)
            seconds, model = timed(lambda call=call: few_chains(*call, **how))
            ess, rhat = (float(worst) for worst in model.summary()[["ess", "rhat"]].agg({"ess": "min", "rhat": "max"}))
            entry = {
                "size": f"{n:,} x {p}",
                "rows": where,
                "sampler": "hmc",
                "seconds": seconds,
                "ess": ess,
                "rhat": rhat,
            }
            report.figures.setdefault("real", []).append(entry)
            report.add(f"{n:,} x {p}, rows {where}: {model.n_iter_} sweeps, least ESS {ess:.0f}", seconds, "s")


def entries(table, what):
    return [{"n": n, "p": p, "seconds": seconds, "what": what} for (n, p), seconds in table.items()]


def main():
    parser, threads = argparse.ArgumentParser(), len(os.sched_getaffinity(0))
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--columns", type=int, nargs="+", default=COLUMNS)
    parser.add_argument("--seconds", type=float, default=6, help="of sweeps that are timed")
    parser.add_argument("--threads", type=int, default=threads, help="beside one")
    parser.add_argument("--real", action="store_true", help='the real data, and "hmc" for the largest; long')
    parser.add_argument("--wide", action="store_true", help="10,000 columns alone, which a few sweeps stand for")
    parser.add_argument("--folder", type=Path, help="where its file of 0.7 GB goes; default: that of temporary files")
    run(__file__, __doc__, {"figure": figure_1, "real": real_data}, parser)


if __name__ == "__main__":
    main()
