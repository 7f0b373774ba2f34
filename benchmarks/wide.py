"""Many columns, most often more than rows: effective draws a second of processor time, beside another commit.

    python benchmarks/wide.py                    # an hour or so; wants two free cores
    python benchmarks/wide.py --beside CHECKOUT  # some more
    python benchmarks/wide.py --nuts PYTHON      # also NumPyro's NUTS, which that interpreter has
    python benchmarks/wide.py --only rare --bayesbridge PYTHON  # a default fit of 10,000 x 1000 sparse rows beside it;
        # rare-5000: of 20,000 x 5000. That interpreter has NumPy < 2, SciPy < 1.14, scikit-learn, pandas, threadpoolctl
        # and filelock too
    python benchmarks/wide.py --quick            # does it run?

Of the worst of: the coefficients, tau, the probabilities of the rows, and the sums over sets of columns. Four chains,
one thread, burn-in included, compilation not; each fit in a process of its own, those of the two versions in turns, of
two data sets each. NUTS has the same model, on the data of at most 300 columns. And the wall time of default fits, and
of a nested cross-validation.
"""

import argparse
import sys
import time
import warnings
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from _measure import HERE, ONE_THREAD, figure, fit, in_child, ratio, run, timed
from _samplers import bayesbridge, numpyro_nuts
from _wide_data import WIDE, rare_columns, wide
from scipy import sparse
from scipy.special import ndtr
from sklearn.model_selection import GridSearchCV, cross_val_score

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import ess_bulk, rhat

SETTINGS = {"slab_scale": 2.0, "n_jobs": 1, "n_chains": 4, "target_ess": None, "expected_nonzero": 5}
SETS = 1, 2  # seeds of the data
BURN_IN = 300
SWEEPS = {  # that are kept
    "100 x 300, AR(.6)": 1000,
    "120 x 300, blocks": 1000,
    "120 x 3000, blocks": 700,
    "100 x 7000, blocks": 700,
    "500 x 1000": 500,
    "1000 x 3000": 300,
    "200 x 2765, sparse counts": 500,
    "300 x 2000, genotypes": 500,
}
# Seconds that a default fit may take, on two cores.
DEFAULT_FITS = {
    "120 x 3000, blocks": 60,
    "200 x 2765, sparse counts": 120,
    "1000 x 2^18, hashed": 900,
    "5000 x 2^16, hashed": 600,
    "300 x 2000, genotypes": 60,
    "300 x 2000, genotypes in CSR": 60,
    "14,300 x 129, one-hot": 10,
    "167,000 x 556, one-hot": 180,
}
RARE = {"rare": (10_000, 1000), "rare-5000": (20_000, 5000)}  # rows and columns
FEW_COLUMNS = 300  # that NUTS is asked about
LONG = 300, 2000  # sweeps of bayesbridge in burn-in and after it, in one chain; of 600 the least ESS is too small
LEAST = {"before": 0.97, "NUTS": 5, "bayesbridge": 10}  # times as many draws as that


def measured(model, X, seconds):
    """Effective draws a second, by what they are of, and the largest R-hat."""
    coef, p = model.coef_draws_, model.coef_draws_.shape[2]
    rows = X.toarray() if sparse.issparse(X) else np.asarray(X, float)
    quantities = {
        "coefficients": coef,
        "tau": np.log(model.global_scale_draws_)[..., None],
        "probabilities": ndtr(coef @ rows.T + model.intercept_draws_[..., None]),
        "sums": coef[..., : p // 10 * 10].reshape(*coef.shape[:2], -1, 10).sum(axis=-1),
    }
    ess = {of: float(np.nanmin(ess_bulk(draws))) for of, draws in quantities.items()}
    worst = max(float(np.nanmax(rhat(draws))) for draws in quantities.values())
    return {"ess": ess, "worst a second": min(ess.values()) / seconds, "seconds": seconds, "rhat": worst}


def one_fit(name, which, part, sampler, n_iter, burn_in, seed):
    """What is measured of a fit by the version that this process has."""
    X, y = wide(name, which, part)
    how = {**SETTINGS, "sampler": sampler, "random_state": seed}
    fit(X, y, {**how, "n_iter": 4, "burn_in": 4})  # compiles
    seconds, model = timed(lambda: fit(X, y, {**how, "n_iter": n_iter, "burn_in": burn_in}), time.process_time)
    return measured(model, X, seconds) | {"sampler": model.sampler_, "data": which}


def nuts(name, which, part, n_iter, burn_in, seed):
    """The same of NumPyro's NUTS."""
    X, y = wide(name, which, part)
    tau_0 = fit(X, y, {**SETTINGS, "n_iter": 4, "burn_in": 4}).prior_["tau_0"]
    done = numpyro_nuts(X, y, SETTINGS["slab_scale"], burn_in, n_iter, seed, tau_0=tau_0)
    draws = {"coef_draws_": done.coef, "intercept_draws_": done.intercept, "global_scale_draws_": done.tau}
    found = measured(SimpleNamespace(**draws), X, done.burn_in + done.sampling)
    return found | {"sampler": "NUTS", "data": which, "divergent": done.divergent}


def beside(report, options, name):
    """Effective draws a second, in turns with another version and with NUTS."""
    length = {"n_iter": 8, "burn_in": 8} if options.quick else {"n_iter": SWEEPS[name], "burn_in": BURN_IN}
    versions = {"now": (one_fit, sys.executable, HERE.parent, length | {"sampler": "hmc"})}
    if options.beside:
        versions["before"] = one_fit, sys.executable, options.beside, length | {"sampler": options.sampler}
    if options.nuts and WIDE[name][2] <= FEW_COLUMNS:
        versions["NUTS"] = nuts, options.nuts, HERE.parent, length
    compare(report, options, name, versions, SETS)


def one_fit_of_rare(name, which, part, seed, other=False):
    """Of columns that tell and of 200 drawn at random, by the default fit or bayesbridge."""
    X, y, told = rare_columns(which, part, *RARE[name])
    if other:
        seconds, done = timed(lambda: bayesbridge(X, y, 1.0, *LONG, seed, 1, "cg"), time.process_time)
        draws = done.coef
    else:
        how = {"slab_scale": 1.0, "n_jobs": 1, "random_state": seed}
        seconds, model = timed(lambda: fit(X, y, how), time.process_time)
        draws = model.coef_draws_
    seen = draws[..., np.append(told, np.random.default_rng(0).choice(X.shape[1], 200 // part, replace=False))]
    ess, about = ess_bulk(seen) / seconds, {"shape": draws.shape, "rhat": float(np.nanmax(rhat(seen)))}
    rates = {"worst a second": float(np.nanmin(ess)), "median a second": float(np.nanmedian(ess))}
    return rates | about | {"seconds": seconds, "sampler": "bayesbridge" if other else model.sampler_, "data": which}


def rare(report, options, name):
    """The default fit of sparse rows, in turns with bayesbridge."""
    versions = {"now": (one_fit_of_rare, sys.executable, HERE.parent, {})}
    if options.bayesbridge:
        versions["bayesbridge"] = one_fit_of_rare, options.bayesbridge, HERE.parent, {"other": True}
    compare(report, options, name, versions, (3, 4, 5))


def compare(report, options, name, versions, sets):
    """Fits of each version in turns. versions : by name a function, an interpreter, a checkout and arguments."""
    found, env = {version: [] for version in versions}, ONE_THREAD | {"JAX_PLATFORMS": "cpu"}
    for which in sets[:1] if options.quick else sets:
        for seed in range(1 if options.quick else options.seeds):
            for version, (function, python, folder, given) in versions.items():
                given = given | {"name": name, "which": which, "part": 5 if options.quick else 1, "seed": seed}
                found[version].append(in_child(function, python=python, folder=folder, env=env, **given))
                print(name, version, found[version][-1], flush=True)
    report.figures[name] = found
    rates = {version: figure([one["worst a second"] for one in fits]) for version, fits in found.items()}
    for version, rate in rates.items():
        sampler = found[version][0]["sampler"]
        report.add(f'{name}: effective draws a second of the worst, "{sampler}", {version}', rate)
    for version, at_least in LEAST.items():
        if version in rates:
            times = ratio(rates["now"], rates[version])
            report.add(f"{name}: times as many as {version}", times, at_least=at_least)


def whole(report, options, name):
    """Default fits on all threads: seconds of wall time, and whether there is a warning."""
    found = []
    for which in SETS[:1] if options.quick else SETS:
        X, y = wide(name, which, 5 if options.quick else 1)
        how = {"standardize": not sparse.issparse(X), "expected_nonzero": 5, "random_state": which}
        how |= {"n_iter": 8, "burn_in": 8} if options.quick else {}
        model = HorseshoeProbitClassifier(**how)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            seconds, _ = timed(lambda model=model, X=X, y=y: model.fit(X, y))
        said = [str(one.message) for one in caught]
        found.append({"seconds": seconds, "n_iter": model.n_iter_, "warnings": said})
        print(name, "default fit", found[-1], flush=True)
    report.figures[f"default fit of {name}"] = found
    seconds, limit = figure([one["seconds"] for one in found]), DEFAULT_FITS[name]
    report.add(f"{name}: seconds of a default fit", seconds, at_most=limit)
    report.add(f"{name}: default fits with a warning", sum(len(one["warnings"]) > 0 for one in found), at_most=0)


def nested(report, options):
    """Five outer and three inner folds, two guesses of ``expected_nonzero``, two processes."""
    X, y = wide("120 x 3000, blocks", 1, 5 if options.quick else 1)
    length = {"n_iter": 8, "burn_in": 8} if options.quick else {"n_iter": 300, "burn_in": 100}
    clf = HorseshoeProbitClassifier(standardize=True, n_jobs=1, random_state=0, **length)
    search = GridSearchCV(clf, {"expected_nonzero": [2, 10]}, scoring="neg_log_loss", cv=3)
    seconds, scores = timed(lambda: cross_val_score(search, X, y, scoring="neg_log_loss", cv=5, n_jobs=2))
    report.figures["nested"] = {"minutes": seconds / 60, "log loss": (-scores).tolist()}
    report.add("120 x 3000: minutes of a nested 5 x 3 cross-validation", seconds / 60, at_most=15)
    report.add("120 x 3000: its log loss", figure((-scores).tolist()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--beside", type=Path, help="folder of a checkout of another version")
    parser.add_argument("--sampler", default="auto", help="of that version")
    parser.add_argument("--nuts", type=Path, metavar="PYTHON", help="an interpreter with NumPyro and our requirements")
    parser.add_argument("--bayesbridge", type=Path, metavar="PYTHON", help="an interpreter with it and scikit-learn")
    parser.add_argument("--seeds", type=int, default=1, help="of the chains, for each data set")
    sections = {name: partial(beside, name=name) for name in SWEEPS}
    sections |= {f"default fit of {name}": partial(whole, name=name) for name in DEFAULT_FITS}
    sections |= {"nested": nested} | {name: partial(rare, name=name) for name in RARE}
    run(__file__, __doc__, sections, parser, apart=RARE)


if __name__ == "__main__":
    main()
