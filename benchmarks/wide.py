"""More columns than rows: effective draws a second of processor time, one thread, beside "collapsed".

    python benchmarks/wide.py            # a quarter of an hour on a free core
    python benchmarks/wide.py --quick    # does it run?

Of the worst of: the coefficients, tau, the probabilities of the rows, and the sums over groups of columns. Four chains,
burn-in included, compilation not; the two samplers in turns, in one process. The data are made here. "collapsed" reads
no sparse rows: it has them as an array. Where it is slow it makes fewer sweeps, so that its figure is a rough one.
"""

import argparse
import time
import warnings

import numpy as np
from _measure import figure, ratio, run_sections
from scipy import sparse
from scipy.special import ndtr

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.diagnostics import ess_bulk, rhat

SETTINGS = {"slab_scale": 2.0, "n_jobs": 1, "n_chains": 4, "target_ess": None}


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


def genotypes(rng, n, p):
    """0, 1 or 2, neighbours in blocks of ten alike."""
    common = rng.uniform(0.1, 0.5, p)
    shared = np.repeat(rng.uniform(size=(2, n, p // 10)), 10, axis=2)
    own = np.where(rng.uniform(size=(2, n, p)) < 0.7, shared, rng.uniform(size=(2, n, p)))
    return (own < common).sum(axis=0).astype(np.int8), signals(p, (p // 60) * np.array([0, 10, 20, 40, 50])) * 1.5


# Maker, rows, columns, kept sweeps of "hmc" and of "collapsed", and how many times as many there should be.
DATA = {
    "100 x 300, AR(.6)": (chain_of_columns, 100, 300, 1000, 1000, 8),
    "120 x 300, blocks": (blocks, 120, 300, 1000, 1000, 8),
    "120 x 3000, blocks": (blocks, 120, 3000, 700, 700, 6),
    "500 x 1000": (independent, 500, 1000, 500, 150, 40),
    "200 x 2765, sparse counts": (counts, 200, 2765, 500, 300, 0),
    "300 x 2000, genotypes": (genotypes, 300, 2000, 500, 200, 0),
}


def scaled(X):
    return (X - X.mean(axis=0)) / X.std(axis=0)


def signals(p, where):
    beta = np.zeros(p)
    beta[where] = [1.5, -1.5, 1.2, -1.2, 1.0]
    return beta


def data(name):
    make, n, p, *_ = DATA[name]
    rng = np.random.default_rng(1)
    X, beta = make(rng, n, p)
    eta = X @ beta
    return X, (eta - np.median(eta) + rng.standard_normal(n) > 0).astype(int)


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


def fitted(sampler, X, y, n_iter, burn_in, seed):
    """What is measured of a fit."""
    X = X.toarray() if sampler == "collapsed" and sparse.issparse(X) else X
    how = {**SETTINGS, "sampler": sampler, "expected_nonzero": 5, "random_state": seed}
    HorseshoeProbitClassifier(**how, n_iter=4, burn_in=4).fit(X, y)  # compiles
    begin = time.process_time()
    model = HorseshoeProbitClassifier(**how, n_iter=n_iter, burn_in=burn_in).fit(X, y)
    return measured(model, X, time.process_time() - begin)


def section(name):
    def run(report, options):
        *_, n_iter, n_collapsed, wanted = DATA[name]
        X, y = data(name)
        found = {"hmc": [], "collapsed": []}
        for seed in range(1 if options.quick else options.seeds):
            lengths = {"hmc": (n_iter, 300), "collapsed": (n_collapsed, min(300, n_collapsed))}
            for sampler, (kept, burn_in) in lengths.items():
                kept, burn_in = (8, 8) if options.quick else (kept, burn_in)
                found[sampler].append(fitted(sampler, X, y, kept, burn_in, seed))
                print(name, sampler, found[sampler][-1], flush=True)
        report.figures[name] = found
        rates = {sampler: figure([fit["worst a second"] for fit in fits]) for sampler, fits in found.items()}
        for sampler, rate in rates.items():
            report.add(f'{name}: effective draws a second of the worst, "{sampler}"', rate)
        report.add(f"{name}: times as many", ratio(rates["hmc"], rates["collapsed"]), at_least=wanted or None)

    return run


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=1, help="of the chains")
    run_sections("wide", {name: section(name) for name in DATA}, parser)
