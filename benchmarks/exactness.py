"""Whether the draws have the law that they should have; README.md says how to run it."""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes that follow

import numpy as np
from _calibration import CASES, N_CHAINS, N_DRAWS, ranks
from _measure import HERE, run_sections
from scipy import sparse, stats

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import mcse_mean, rhat

TESTS = HERE.parent / "tests"
N_BINS = 10
GOLD, SLAB = "gold_synthetic_300x20.npz", "gold_slab_150x8.npz"  # the second with unpenalised columns too
UNITS = np.array([3.0, 0.01, 1.0, 50.0, 0.2, 7.0, 1.0, 100.0])  # of its columns
FITS = {  # data, sampler, sweeps, a draw is kept every
    "hmc": (GOLD, "hmc", 10_000, 2),
    "hmc, float32": (GOLD, "hmc", 10_000, 2),
    "hmc, sparse": (GOLD, "hmc", 10_000, 2),
    "hmc, each row as two of weights 0.3 and 0.7": (GOLD, "hmc", 10_000, 2),
    "pxda": (GOLD, "pxda", 20_000, 5),
    "pxda, float32": (GOLD, "pxda", 20_000, 5),
    "pxda, sparse": (GOLD, "pxda", 20_000, 5),
    "gibbs": (GOLD, "gibbs", 40_000, 10),
    "hmc, slab, unpenalised": (SLAB, "hmc", 10_000, 2),
    "pxda, slab, unpenalised": (SLAB, "pxda", 20_000, 5),
    "gibbs, slab, unpenalised": (SLAB, "gibbs", 40_000, 10),
    "hmc, slab, unpenalised, standardised": (SLAB, "hmc", 10_000, 2),
    "pxda, slab, unpenalised, standardised": (SLAB, "pxda", 20_000, 5),
    "gibbs, slab, unpenalised, standardised": (SLAB, "gibbs", 40_000, 10),
    "hmc, slab, unpenalised, standardised, sparse": (SLAB, "hmc", 10_000, 2),
    "pxda, slab, unpenalised, standardised, float32": (SLAB, "pxda", 20_000, 5),
}


def calibration(report, options):
    """Rank histograms: counts in ten bins of the rank of each coefficient, the intercept and tau, over data sets."""
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, case in CASES.items():
            n_sets = 3 if options.quick else case.n_sets
            found = np.array(list(pool.map(partial(ranks, name), range(n_sets))))
            bins = found * N_BINS // (N_CHAINS * N_DRAWS + 1)
            counts = np.array([np.bincount(column, minlength=N_BINS) for column in bins.T])
            p_values = stats.chisquare(counts, axis=1).pvalue
            p = counts.shape[0] - 1 - case.intercept
            names = [f"x{j}" for j in range(p)] + ["tau"] + ["intercept"] * case.intercept
            report.figures.setdefault("calibration", {})[name] = {
                "data sets": n_sets,
                "counts": dict(zip(names, map(tuple, counts.tolist()), strict=True)),
                "p": dict(zip(names, p_values.tolist(), strict=True)),
            }
            report.add(f"calibration: {name}, {n_sets} data sets, least of {len(names)} p values", p_values.min())


def as_given(name, X, y):
    """X, y and the weights in the form that the name of a fit says."""
    if "float32" in name:
        X = X.astype(np.float32)
    if "sparse" in name:
        return sparse.csr_array(X), y, None
    if "weights" in name:  # of rows that are not quite equal: those that are would be put together again
        return np.concatenate([X, X * (1 + 1e-12)]), np.tile(y, 2), np.repeat([0.3, 0.7], len(y))
    return X, y, None


def agreement(report, options):
    """Against long runs of NUTS, of other packages: means, whose differences are in their own standard errors.

    The first data have a plain Gibbs sampler's word too. The columns of the second have unit variance, so that a
    standardised fit to columns in other units has the same law. About standard normal, where a chain has mixed.
    """
    for name, (file, sampler, n_iter, thin) in FITS.items():
        with np.load(TESTS / "data" / file) as opened:
            gold = dict(opened)
        burn_in = 1000
        if options.quick:
            n_iter, thin, burn_in = 200, 1, 120
        settings = {"fit_intercept": False}
        if file == SLAB:
            settings = {key: gold[key].tolist() for key in ("unpenalized", "slab_scale", "global_scale")}
        units = UNITS if "standardised" in name else 1.0
        X, y, weight = as_given(name, gold["X"] * units, gold["y"])
        settings["standardize"] = "standardised" in name
        model = HorseshoeProbitClassifier(sampler=sampler, n_iter=n_iter, thin=thin, burn_in=burn_in, **settings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # R-hat is in the table
            model.set_params(n_jobs=options.jobs, random_state=1).fit(X, y, sample_weight=weight)
        z, worst = [], 0.0
        found = {"beta": model.coef_draws_ * units, "logtau": np.log(model.global_scale_draws_)[..., None]}
        if model.fit_intercept:
            found["intercept"] = model.intercept_draws_[..., None]
        for what, draws in found.items():
            mean = draws.mean(axis=(0, 1)) - gold[f"{what}_mean"]
            z.append(mean / np.hypot(mcse_mean(draws), gold[f"{what}_mcse_mean"]))
            worst = max(worst, float(rhat(draws).max()))
        z = np.concatenate(list(map(np.atleast_1d, z)))
        entry = {"n": len(z), "largest": float(abs(z).max()), "rms": float(np.sqrt((z**2).mean())), "rhat": worst}
        report.figures.setdefault("agreement", {})[name] = entry | {"sweeps": n_iter}
        report.add(f"agreement with NUTS: {name}, largest of {len(z)} differences of means", entry["largest"], "errors")


def geweke(report, options):
    """The joint tests of tests/mcmc, sweeps as they are and with planted errors: the largest change in errors."""
    which = "geweke and (False or noise)" if options.quick else "geweke"
    files = [TESTS / "mcmc" / "test_gibbs_law.py"] if options.quick else sorted((TESTS / "mcmc").glob("test_*_law.py"))
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "out.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", options.jobs, "-m", "slow or not slow", "-k", which]
        command += [f"--junit-xml={xml}", "-o", "junit_logging=all", *files]
        subprocess.run(list(map(str, command)), cwd=HERE.parent, stdout=subprocess.DEVNULL, check=False)
        cases = ElementTree.parse(xml).iter("testcase")
        for case in cases:
            z = re.findall(r"z = ([\d.]+)", "".join(case.itertext()))
            if not z:
                continue
            file, test = case.get("classname").removeprefix("tests.mcmc."), case.get("name")
            planted, passed = "catches" in test, case.find("failure") is None
            entry = {"z": float(z[-1]), "planted": planted, "passed": passed}
            report.figures.setdefault("geweke", {})[f"{file}.{test}"] = entry
    found = report.figures.get("geweke", {}).values()
    right, wrong = ([one["z"] for one in found if one["planted"] is planted] for planted in (False, True))
    if right:
        report.add(f"Geweke's joint test, {len(right)} sweeps as they are: largest change", max(right), at_most=4)
    if wrong:
        report.add(f"Geweke's joint test, {len(wrong)} planted errors: least change", min(wrong), at_least=6)


SECTIONS = {"calibration": calibration, "agreement": agreement, "geweke": geweke}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    run_sections("exactness", SECTIONS, parser)


if __name__ == "__main__":
    main()
