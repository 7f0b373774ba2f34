"""More columns than rows: effective draws a second of processor time, one thread, beside an earlier version.

    python benchmarks/wide.py                                  # an hour or so; wants two free cores
    python benchmarks/wide.py --beside CHECKOUT                # some more; of a version that has "collapsed"
    python benchmarks/wide.py --beside CHECKOUT --sampler auto # of any other
    python benchmarks/wide.py --nuts PYTHON                    # also NumPyro's NUTS, which that interpreter has
    python benchmarks/wide.py --quick                          # does it run?

Of the worst of: the coefficients, tau, the probabilities of the rows, and the sums over groups of columns. Four chains,
burn-in included, compilation not; each fit in a process of its own, those of the two versions in turns, of two data
sets each, which are made here. "collapsed" reads no sparse rows: it has them as an array. Where it is slow it makes
fewer sweeps, so that its figure is a rough one. NUTS has the same model, on the data of at most 300 columns. And the
wall time of default fits, and of a nested cross-validation.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from _measure import HERE, figure, ratio, run_sections
from scipy import sparse
from scipy.special import ndtr
from sklearn.model_selection import GridSearchCV, cross_val_score

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import ess_bulk, rhat

SETTINGS = {"slab_scale": 2.0, "n_jobs": 1, "n_chains": 4, "target_ess": None}
SETS = 1, 2  # seeds of the data
BURN_IN = 300


def blocks(rng, n, p):
    """Blocks of ten columns with correlation .7, five signals in blocks of their own."""
    shared = rng.standard_normal((n, p // 10, 1))
    X = (np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.standard_normal((n, p // 10, 10))).reshape(n, p)
    return scaled(X), signals(p, (p // 60) * np.array([0, 10, 20, 40, 50]))


def chain_of_columns(rng, n, p):
    """Neighbours have correlation .6."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = 0.6 * X[:, j - 1] + 0.8 * X[:, j]
    return X, signals(p, np.linspace(5, p - 5, 5).astype(int))


def independent(rng, n, p):
    return rng.standard_normal((n, p)), signals(p, np.arange(5))


def counts(rng, n, p):
    """Counts of words, of which 3 % are stored."""
    X = rng.poisson(rng.gamma(0.3, 0.1, p) * np.ones((n, 1))).astype(np.float32)
    order = np.argsort(-X.var(axis=0))[:50:10]
    beta = np.zeros(p)
    beta[order] = np.array([1.5, -1.5, 1.2, -1.2, 1.0]) / X.std(axis=0)[order]
    return sparse.csr_array(X), beta


def hashed(rng, n, p):
    """Texts of 100 words whose frequencies are as 1 / rank, hashed; five of the 50 most frequent words tell."""
    chance = 1 / np.arange(1, p + 1)
    words = rng.choice(p, size=(n, 100), p=chance / chance.sum())
    X = sparse.csr_array((np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, 100)), (n, p))
    X.sum_duplicates()
    beta = np.zeros(p)
    beta[np.arange(5, 55, 10)] = [1.5, -1.5, 1.2, -1.2, 1.0]
    return X, beta


def genotypes(rng, n, p):
    """0, 1 or 2, neighbours in blocks of ten alike."""
    common = rng.uniform(0.1, 0.5, p)
    shared = np.repeat(rng.uniform(size=(2, n, p // 10)), 10, axis=2)
    own = np.where(rng.uniform(size=(2, n, p)) < 0.7, shared, rng.uniform(size=(2, n, p)))
    return (own < common).sum(axis=0).astype(np.int8), signals(p, (p // 60) * np.array([0, 10, 20, 40, 50])) * 1.5


def sparse_genotypes(rng, n, p):
    X, beta = genotypes(rng, n, p)
    return sparse.csr_array(X), beta


# Maker, rows, columns, kept sweeps now and of the earlier version, and how many times as many draws there should be.
DATA = {
    "100 x 300, AR(.6)": (chain_of_columns, 100, 300, 1000, 1000, 8),
    "120 x 300, blocks": (blocks, 120, 300, 1000, 1000, 8),
    "120 x 3000, blocks": (blocks, 120, 3000, 700, 700, 6),
    "100 x 7000, blocks": (blocks, 100, 7000, 700, 700, 4),
    "500 x 1000": (independent, 500, 1000, 500, 150, 40),
    "1000 x 3000": (independent, 1000, 3000, 300, 40, 40),
    "200 x 2765, sparse counts": (counts, 200, 2765, 500, 300, 0),
    "300 x 2000, genotypes": (genotypes, 300, 2000, 500, 200, 0),
}
DEFAULT_ONLY = {
    "1000 x 2^18, hashed": (hashed, 1000, 2**18),
    "300 x 2000, genotypes in CSR": (sparse_genotypes, 300, 2000),
}
FEW_COLUMNS = 300  # that NUTS is asked about
TIMES_NUTS = 5


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def signals(p, where):
    beta = np.zeros(p)
    beta[where] = [1.5, -1.5, 1.2, -1.2, 1.0]
    return beta


# Seconds that a default fit may take, on two cores.
DEFAULT_FITS = {
    "120 x 3000, blocks": 60,
    "200 x 2765, sparse counts": 120,
    "1000 x 2^18, hashed": 900,
    "300 x 2000, genotypes": 60,
    "300 x 2000, genotypes in CSR": 60,
}


def data(name, which, quick):
    make, n, p, *_ = (DATA | DEFAULT_ONLY)[name]
    rng = np.random.default_rng(which)
    X, beta = make(rng, n // 5, p // 5) if quick else make(rng, n, p)
    eta = X @ beta
    return X, (eta - np.median(eta) + rng.standard_normal(len(eta)) > 0).astype(int)


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


def fitted(name, which, quick, sampler, n_iter, burn_in, seed):
    """What is measured of a fit by the version that this process has."""
    X, y = data(name, which, quick)
    X = X.toarray() if sampler == "collapsed" and sparse.issparse(X) else X
    how = {**SETTINGS, "sampler": sampler, "expected_nonzero": 5, "random_state": seed}
    HorseshoeProbitClassifier(**how, n_iter=4, burn_in=4).fit(X, y)  # compiles
    begin = time.process_time()
    model = HorseshoeProbitClassifier(**how, n_iter=n_iter, burn_in=burn_in).fit(X, y)
    return measured(model, X, time.process_time() - begin) | {"sampler": model.sampler_, "data": which}


def nuts(name, which, quick, n_iter, burn_in, seed):
    """The same of NumPyro's NUTS."""
    from _peer_samplers import numpyro_nuts

    X, y = data(name, which, quick)
    same = HorseshoeProbitClassifier(**SETTINGS, expected_nonzero=5, n_iter=4, burn_in=4).fit(X, y)
    how = SETTINGS["slab_scale"], burn_in, n_iter, seed
    run = numpyro_nuts(X, y, *how, tau_0=same.prior_["tau_0"])
    draws = {"coef_draws_": run.coef, "intercept_draws_": run.intercept, "global_scale_draws_": run.tau}
    found = measured(SimpleNamespace(**draws), X, run.burn_in + run.sampling)
    return found | {"sampler": "NUTS", "data": which, "divergent": run.divergent}


def child(python, folder, function, **given):
    """A function of this file by an interpreter and the library in that folder, in a process of its own."""
    command = [python, __file__, function, json.dumps(given)]
    env = {**os.environ, "PYTHONPATH": str(folder.absolute()), "OMP_NUM_THREADS": "1", "JAX_PLATFORMS": "cpu"}
    env["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return json.loads(subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True, check=True).stdout)


def section(name):
    def run(report, options):
        _, _, p, n_iter, n_before, wanted = DATA[name]
        ours = {"sampler": "hmc", "n_iter": n_iter, "burn_in": BURN_IN}
        versions = {"now": (sys.executable, HERE.parent, "fitted", ours)}
        if options.beside:
            then = {"sampler": options.sampler, "n_iter": n_before, "burn_in": min(BURN_IN, n_before)}
            versions["before"] = sys.executable, options.beside, "fitted", then
        if options.nuts and p <= FEW_COLUMNS:
            versions["NUTS"] = options.nuts, HERE.parent, "nuts", {"n_iter": n_iter, "burn_in": BURN_IN}
        found = {version: [] for version in versions}
        for which in SETS[:1] if options.quick else SETS:
            for seed in range(1 if options.quick else options.seeds):
                for version, (*how, given) in versions.items():
                    given = given | ({"n_iter": 8, "burn_in": 8} if options.quick else {})
                    found[version].append(child(*how, **given, name=name, which=which, quick=options.quick, seed=seed))
                    print(name, version, found[version][-1], flush=True)
        report.figures[name] = found
        rates = {version: figure([fit["worst a second"] for fit in fits]) for version, fits in found.items()}
        for version, rate in rates.items():
            report.add(
                f'{name}: effective draws a second of the worst, "{found[version][0]["sampler"]}", {version}', rate
            )
        for version, at_least in {"before": wanted or None, "NUTS": TIMES_NUTS}.items():
            if version in rates:
                report.add(
                    f"{name}: times as many as {version}", ratio(rates["now"], rates[version]), at_least=at_least
                )

    return run


def whole(name, limit):
    """Default fits on all threads: seconds of wall time, and whether there is a warning."""

    def run(report, options):
        found = []
        for which in SETS[:1] if options.quick else SETS:
            X, y = data(name, which, options.quick)
            how = {"standardize": not sparse.issparse(X), "expected_nonzero": 5, "random_state": which}
            how |= {"n_iter": 8, "burn_in": 8} if options.quick else {}
            HorseshoeProbitClassifier(**how | {"n_iter": 4, "burn_in": 4}).fit(X, y)  # compiles
            begin = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = HorseshoeProbitClassifier(**how).fit(X, y)
            said = [str(one.message) for one in caught]
            found.append({"seconds": time.perf_counter() - begin, "n_iter": model.n_iter_, "warnings": said})
            print(name, "default fit", found[-1], flush=True)
        report.figures[f"default fit of {name}"] = found
        report.add(f"{name}: seconds of a default fit", figure([fit["seconds"] for fit in found]), at_most=limit)
        report.add(f"{name}: default fits with a warning", sum(len(fit["warnings"]) > 0 for fit in found), at_most=0)

    return run


def nested(report, options):
    """Five outer and three inner folds, two guesses of ``expected_nonzero``, two processes."""
    X, y = data("120 x 3000, blocks", 1, options.quick)
    length = {"n_iter": 8, "burn_in": 8} if options.quick else {"n_iter": 300, "burn_in": 100}
    clf = HorseshoeProbitClassifier(standardize=True, n_jobs=1, random_state=0, **length)
    clf.fit(X, y)  # compiles
    search = GridSearchCV(clf, {"expected_nonzero": [2, 10]}, scoring="neg_log_loss", cv=3)
    begin = time.perf_counter()
    scores = cross_val_score(search, X, y, scoring="neg_log_loss", cv=5, n_jobs=2)
    minutes = (time.perf_counter() - begin) / 60
    report.figures["nested"] = {"minutes": minutes, "log loss": (-scores).tolist()}
    report.add("120 x 3000: minutes of a nested 5 x 3 cross-validation", minutes, at_most=15)
    report.add("120 x 3000: its log loss", figure((-scores).tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--beside", type=Path, help="folder of a checkout of an earlier version")
    parser.add_argument("--sampler", default="collapsed", help="of that version")
    parser.add_argument("--nuts", type=Path, metavar="PYTHON", help="an interpreter with NumPyro and our requirements")
    parser.add_argument("--seeds", type=int, default=1, help="of the chains, for each data set")
    sections = {name: section(name) for name in DATA}
    sections |= {f"default fit of {name}": whole(name, limit) for name, limit in DEFAULT_FITS.items()}
    run_sections("wide", sections | {"nested": nested}, parser)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    of_child = {"fitted": fitted, "nuts": nuts}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    if of_child:
        print(json.dumps(of_child(**json.loads(sys.argv[2]))))
    else:
        main()
