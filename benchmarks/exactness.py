"""Whether the draws have the law that they should have.

calibration  ranks of the truth among the draws, over data sets from the model (Talts et al. 2018)
agreement    means beside those of long runs of NUTS (tests/data)
geweke       the joint tests of tests/mcmc, slow ones included, for their figures
gold         only if asked for, in an environment with NumPyro: makes the references with 150 rows of tests/data anew

A prior or a likelihood that is added or changed draws its ranks here: write ``simulate`` and a ``Case``.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from _measure import HERE, fit, run
from scipy import sparse, stats
from scipy.special import expit, ndtr

from skhorseshoe.diagnostics import ess_bulk, mcse_mean, rhat

# Ranks of the truth ---------------------------------------------------------------------------------------------------
#
# The model is fitted to two classes only, so data sets with one are passed over, as are those that a rule of the case
# refuses. That is a condition on the data: the law of the truth given them stays that of the posterior.

N_CHAINS, N_DRAWS = 11, 9  # of each chain, so that a rank is one of 100; many chains depend less on how they mix
N_BINS = 10
TAU_0 = 0.5
FREE = 100.0  # standard deviation of a coefficient that is not shrunk, of a column of unit size
SLAB = 1.0
TRIALS = 3
WIDE_SHAPE = 10, 14  # more columns than rows: "hmc" is in the coordinates of the prior
RANKED = 4  # coefficients at most


class Case(NamedTuple):
    """A sampler with an option, sweeps for each draw that is kept, and how many data sets."""

    sampler: str
    simulate: object  # rng -> X, y, weights or None, the true coefficients (p,), intercept and tau
    settings: dict = {}  # noqa: RUF012
    thin: int = 30
    n_sets: int = 100
    intercept: bool = False
    kind: object = None  # a classifier with another likelihood


def prior(rng, p=3, slab=np.inf):
    """beta (p,) and tau; with a slab, by rejection: it multiplies the horseshoe by exp(-beta^2 / 2 slab^2)."""
    while True:
        tau = TAU_0 * abs(rng.standard_cauchy())
        beta = rng.standard_normal(p) * abs(rng.standard_cauchy(p)) * tau
        if rng.random() < np.exp(-(beta**2).sum() / (2 * slab**2)):
            return beta, tau


def response(rng, eta):
    return eta + rng.standard_normal(len(eta)) > 0


def plain(rng, slab=np.inf, shape=(40, 3), dtype=np.float64):
    beta, tau = prior(rng, shape[1], slab)
    X = rng.standard_normal(shape, dtype=dtype)
    return X, response(rng, X @ beta), None, beta, 0.0, tau


def with_intercept(rng, slab=np.inf, shape=(40, 3)):
    beta, tau = prior(rng, shape[1], slab)
    X = rng.standard_normal(shape) + 0.3
    intercept = FREE * rng.standard_normal() - X.mean(axis=0) @ beta
    return X, response(rng, X @ beta + intercept), None, beta, intercept, tau


def unpenalised(rng):
    """The first column is not shrunk; data sets that it separates alone are passed over."""
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3))
    beta[0] = FREE / np.sqrt((X[:, 0] ** 2).mean()) * rng.standard_normal()
    y = response(rng, X @ beta)
    separated = (y == (X[:, 0] > 0)).mean() in (0.0, 1.0)
    return X, np.zeros(40, bool) if separated else y, None, beta, 0.0, tau


def standardised(rng):
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3)) * [1.0, 100.0, 0.01]
    beta /= X.std(axis=0)
    return X, response(rng, X @ beta), None, beta, 0.0, tau


def weighted(rng):
    """Each of 15 rows was seen three times; it is given once for each class, weighted by how often."""
    beta, tau = prior(rng)
    X = rng.standard_normal((15, 3))
    ones = response(rng, np.repeat(X @ beta, TRIALS)).reshape(15, TRIALS).sum(axis=1)
    weight = np.concatenate([ones, TRIALS - ones]).astype(float)
    y = np.repeat([True, False], 15)
    seen = weight > 0
    return np.concatenate([X, X])[seen], y[seen], weight[seen], beta, 0.0, tau


def sparse_rows(rng):
    beta, tau = prior(rng)
    X = rng.standard_normal((40, 3)) * (rng.random((40, 3)) < 0.6)
    return sparse.csr_array(X), response(rng, X @ beta), None, beta, 0.0, tau


WIDE = partial(with_intercept, slab=SLAB, shape=WIDE_SHAPE)
CASES = {
    "hmc": Case("hmc", plain, n_sets=200),
    "hmc, intercept": Case("hmc", with_intercept, {"fit_intercept": True}, intercept=True),
    "hmc, slab": Case("hmc", partial(plain, slab=SLAB), {"slab_scale": SLAB}),
    "hmc, weights": Case("hmc", weighted),
    "hmc, unpenalised": Case("hmc", unpenalised, {"unpenalized": [0]}),
    "hmc, standardised": Case("hmc", standardised, {"standardize": True}),
    "hmc, sparse": Case("hmc", sparse_rows),
    "hmc, float32": Case("hmc", partial(plain, dtype=np.float32)),
    "hmc, wide": Case("hmc", partial(plain, slab=SLAB, shape=WIDE_SHAPE), {"slab_scale": SLAB}),
    "hmc, wide, intercept": Case("hmc", WIDE, {"slab_scale": SLAB, "fit_intercept": True}, intercept=True),
    "pxda": Case("pxda", plain, thin=100),
    "gibbs": Case("gibbs", plain, thin=1000),
}


def ranks(name, seed):
    """Ranks, 0 to 99, of the first coefficients, tau, and the intercept if there is one."""
    case, rng = CASES[name], np.random.default_rng([seed, 12])
    while True:
        X, y, weight, beta, intercept, tau = case.simulate(rng)
        if y.any() and not y.all():
            break
    lengths = {"n_iter": N_DRAWS * case.thin, "thin": case.thin, "burn_in": 300, "n_chains": N_CHAINS}
    settings = {"fit_intercept": False, "global_scale": TAU_0, "n_jobs": 1, "random_state": seed, **case.settings}
    model = fit(X, y, {"sampler": case.sampler, **lengths, **settings}, case.kind, sample_weight=weight)
    draws = [*model.coef_draws_.reshape(-1, len(beta)).T[:RANKED], model.global_scale_draws_.ravel()]
    truth = [*beta[:RANKED], tau]
    if case.intercept:
        draws.append(model.intercept_draws_.ravel())
        truth.append(intercept)
    return [int((one < value).sum()) for one, value in zip(draws, truth, strict=True)]


def calibration(report, options):
    """Rank histograms: counts in ten bins of the rank of each coefficient, the intercept and tau, over data sets."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the processes that follow
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


# Other programs -------------------------------------------------------------------------------------------------------

DATA = HERE.parent / "tests" / "data"
PLAIN, WITH_SLAB = "gold_synthetic_300x20.npz", "gold_slab_150x8.npz"  # the second with unpenalised columns too
LOGISTIC = "gold_logistic_150x8.npz"  # as the second
FACTORS = "gold_factors_400x4.npz"  # classes in schools, and a factor that is crossed with these
UNITS = np.array([3.0, 0.01, 1.0, 50.0, 0.2, 7.0, 1.0, 100.0])  # of its columns
LENGTHS = {"hmc": (10_000, 2), "pxda": (20_000, 5), "gibbs": (40_000, 10)}  # sweeps, a draw is kept every
FITS = [  # a sampler and, by their names, forms of the data
    *("hmc", "hmc, float32", "hmc, sparse", "hmc, each row as two of weights 0.3 and 0.7"),
    *("pxda", "pxda, float32", "pxda, sparse", "gibbs"),
    *(f"{sampler}, slab, unpenalised" for sampler in LENGTHS),
    *(f"{sampler}, slab, unpenalised, standardised" for sampler in LENGTHS),
    "hmc, slab, unpenalised, standardised, sparse",
    "pxda, slab, unpenalised, standardised, float32",
]


def agreement(report, options):
    """Against long runs of NUTS, of other packages: means, whose differences are in their own standard errors.

    The first data have a plain Gibbs sampler's word too. The columns of the second have unit variance, so that a
    standardised fit to columns in other units has the same law. About standard normal, where a chain has mixed.
    """
    for name in FITS:
        with np.load(DATA / (WITH_SLAB if "slab" in name else PLAIN)) as opened:
            gold = dict(opened)
        sampler = name.split(",")[0]
        n_iter, thin, burn_in = (200, 1, 120) if options.quick else (*LENGTHS[sampler], 1000)
        settings = {"fit_intercept": False}
        if "slab" in name:
            settings = {key: gold[key].tolist() for key in ("unpenalized", "slab_scale", "global_scale")}
        settings |= {"standardize": "standardised" in name, "n_iter": n_iter, "thin": thin, "burn_in": burn_in}
        units = UNITS if "standardised" in name else 1.0
        X, y, weight = as_given(name, gold["X"] * units, gold["y"])
        settings |= {"sampler": sampler, "n_jobs": options.jobs, "random_state": 1}
        model = fit(X, y, settings, sample_weight=weight)
        z, worst = [], 0.0
        found = {"beta": model.coef_draws_ * units, "logtau": np.log(model.global_scale_draws_)[..., None]}
        if model.fit_intercept:
            found["intercept"] = model.intercept_draws_[..., None]
        for what, draws in found.items():
            error = np.hypot(mcse_mean(draws), gold[f"{what}_mcse_mean"])
            z.extend(np.atleast_1d((draws.mean(axis=(0, 1)) - gold[f"{what}_mean"]) / error))
            worst = max(worst, float(rhat(draws).max()))
        z = np.array(z)
        entry = {"n": len(z), "largest": float(abs(z).max()), "rms": float(np.sqrt((z**2).mean())), "rhat": worst}
        report.figures.setdefault("agreement", {})[name] = entry | {"sweeps": n_iter}
        report.add(f"agreement with NUTS: {name}, largest of {len(z)} differences of means", entry["largest"], "errors")


def as_given(name, X, y):
    """X, y and the weights in the form that the name of a fit says."""
    if "float32" in name:
        X = X.astype(np.float32)
    if "sparse" in name:
        return sparse.csr_array(X), y, None
    if "weights" in name:  # of rows that are not quite equal: those that are would be put together again
        return np.concatenate([X, X * (1 + 1e-12)]), np.tile(y, 2), np.repeat([0.3, 0.7], len(y))
    return X, y, None


def gold(report, options):
    """Long runs of NUTS with a slab and two unpenalised columns, on 150 rows and 8 columns of the other reference,
    moved, for probit and for the likelihood of tests/likelihoods. The shrunk columns have unit variance, so
    that scaling changes nothing; the last, not shrunk, is small.
    """
    from _samplers import numpyro_nuts

    gold_of_factors(report, options, numpyro_nuts)
    free, slab, tau_0 = [5, 7], 0.3, 0.5
    with np.load(DATA / PLAIN) as other:
        X = other["X"][:150, :8]
    X = X / X.std(axis=0) * [1, 1, 1, 1, 1, 1, 1, 0.01] + [0, 1, -2, 0, 0, 1, 0, 0.02]
    lengths = (20, 20) if options.quick else (2000, 20_000)
    levels = np.array([0.05, 0.25, 0.5, 0.75, 0.95])
    for file, noise, cdf in ((WITH_SLAB, "standard_normal", ndtr), (LOGISTIC, "logistic", expit)):
        errors = getattr(np.random.default_rng(2), noise)(size=len(X))
        y = (X @ [1.0, -0.7, 0.4, 0, 0, 0.5, 0, 80.0] - 1.5 + errors > 0).astype(np.int8)
        law = {"tau_0": tau_0, "free": free, "accept": 0.99, "logistic": file == LOGISTIC}
        nuts, of = numpyro_nuts(X, y, slab, *lengths, 1, **law), file.removesuffix(".npz")
        found = {"X": X, "y": y, "unpenalized": free, "slab_scale": slab, "global_scale": tau_0}
        found |= described(report, of, nuts, levels)
        pairs = zip(*nuts[:2], strict=True)
        found["prob_mean"] = np.mean([cdf(c @ X.T + b[:, None]).mean(axis=0) for c, b in pairs], axis=0)
        if not options.quick and all(row["met"] for row in report.rows if row["target"]):
            np.savez_compressed(DATA / file, **found)


def described(report, of, nuts, levels):
    """Means, standard deviations, errors and quantiles of the draws of NUTS, by name; ``report`` gets ESS and R-hat."""
    draws = {"beta": nuts.coef, "intercept": nuts.intercept[..., None], "logtau": np.log(nuts.tau)[..., None]}
    draws |= {} if nuts.group_scale is None else {"logs": np.log(nuts.group_scale)}
    found = {"quantile_levels": levels}
    for name, x in draws.items():
        sd, ess = x.std(axis=(0, 1)), ess_bulk(x)
        report.add(f"{of}, {name}: least ESS", float(ess.min()), at_least=2000)
        report.add(f"{of}, {name}: worst R-hat", float(rhat(x).max()), at_most=1.01)
        found |= {f"{name}_mean": x.mean(axis=(0, 1)), f"{name}_sd": sd, f"{name}_mcse_mean": sd / np.sqrt(ess)}
        found[f"{name}_q"] = np.quantile(x, levels, axis=(0, 1))
    return found


def gold_of_factors(report, options, numpyro_nuts):
    """NUTS for pupils in classes in schools, each with answers to some of eight questions. One column is of schools."""
    rng, slab, tau_0, free = np.random.default_rng(4), 1.0, 0.5, [1]
    school, item = np.repeat(np.arange(10), 40), rng.integers(0, 8, 400)
    levels = np.stack([school, np.repeat(np.arange(40), 10), item], axis=1)
    X = rng.standard_normal((400, 4))
    X[:, 0] = rng.standard_normal(10)[school]
    u = sum(s * rng.standard_normal(40)[codes] for s, codes in zip((0.6, 0.4, 0.8), levels.T, strict=True))
    y = (X @ [0.5, 0.3, 0.0, 0.0] - 0.4 + u + rng.standard_normal(400) > 0).astype(np.int8)
    lengths = (20, 20) if options.quick else (1500, 8000)
    law = {"tau_0": tau_0, "free": free, "accept": 0.95, "groups": levels}
    nuts = numpyro_nuts(X, y, slab, *lengths, 1, **law)
    found = {"X": X, "y": y, "levels": levels, "unpenalized": free, "slab_scale": slab, "global_scale": tau_0}
    found |= described(report, FACTORS.removesuffix(".npz"), nuts, np.array([0.05, 0.25, 0.5, 0.75, 0.95]))
    if not options.quick and all(row["met"] for row in report.rows if row["target"]):
        np.savez_compressed(DATA / FACTORS, **found)


# Joint tests ----------------------------------------------------------------------------------------------------------


def geweke(report, options):
    """The joint tests of tests/mcmc, sweeps as they are and with planted errors: the largest change in errors."""
    which = "geweke and (False or noise)" if options.quick else "geweke"
    laws = HERE.parent / "tests" / "mcmc"
    files = [laws / "test_gibbs_law.py"] if options.quick else sorted(laws.glob("test_*_law.py"))
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        xml = Path(folder) / "out.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", options.jobs, "-m", "slow or not slow", "-k", which]
        command += [f"--junit-xml={xml}", "-o", "junit_logging=all", *files]
        subprocess.run(list(map(str, command)), cwd=HERE.parent, stdout=subprocess.DEVNULL, check=False)
        for case in ElementTree.parse(xml).iter("testcase"):
            z = re.findall(r"z = ([\d.]+)", "".join(case.itertext()))
            file, test = case.get("classname").removeprefix("tests.mcmc."), case.get("name")
            entry = {"planted": "catches" in test, "passed": case.find("failure") is None}
            if z:
                found[f"{file}.{test}"] = {"z": float(z[-1]), **entry}
    report.figures["geweke"] = found
    right, wrong = ([one["z"] for one in found.values() if one["planted"] is planted] for planted in (False, True))
    if right:
        report.add(f"Geweke's joint test, {len(right)} sweeps as they are: largest change", max(right), at_most=4)
    if wrong:
        report.add(f"Geweke's joint test, {len(wrong)} planted errors: least change", min(wrong), at_least=6)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--jobs", type=int, default=2, help="processes")
    sections = {"calibration": calibration, "agreement": agreement, "geweke": geweke, "gold": gold}
    run(__file__, __doc__, sections, options, apart=["gold"])
