"""Terms: how often what is claimed of factors, a spline and single columns is false, and how much is found.

Data are simulated from the model: three factors of two to eight levels, all in the table, a spline of six columns and
ten single columns, with coefficients from the prior of the fit. Beside the rules stand the same model with a level of
each factor dropped by hand, its columns judged one by one, and a group lasso with stability selection.
"""

import argparse
import warnings
from typing import NamedTuple

import numpy as np
from _measure import run_sections
from joblib import Parallel, delayed
from scipy.stats import norm
from selection_errors import EFFECT, N_JOBS, SHORT, fit
from selection_peers import HALVES, SHARES, THRESHOLD
from sklearn.preprocessing import OneHotEncoder, SplineTransformer

from skhorseshoe import HorseshoeSelector
from skhorseshoe.groups import credible_sets

TAU_0, SLAB, N_FACTORS, N_SINGLES = 0.1, 2.0, 3, 10
PRIOR = {"global_scale": TAU_0, "slab_scale": SLAB, "n_jobs": 1}


class Data(NamedTuple):
    """A table, the numbers of the columns of its terms, and the true size of the effect of each."""

    X: np.ndarray
    y: np.ndarray
    terms: dict[str, np.ndarray]
    sizes: dict[str, float]


def make(seed, n):
    rng, parts = np.random.default_rng(seed), {}
    for k in range(N_FACTORS):
        levels = rng.integers(2, 9)
        shares = 0.3 / levels + 0.7 * rng.dirichlet(np.full(levels, 2.0))
        parts[f"factor {k}"] = OneHotEncoder(sparse_output=False).fit_transform(rng.choice(levels, (n, 1), p=shares))
    parts["spline"] = SplineTransformer(n_knots=4).fit_transform(rng.normal(60, 15, (n, 1)))
    parts |= {f"single {j}": rng.standard_normal((n, 1)) for j in range(N_SINGLES)}
    starts = np.cumsum([0, *(part.shape[1] for part in parts.values())])
    terms = {name: np.arange(*starts[k : k + 2]) for k, name in enumerate(parts)}
    X = np.hstack(list(parts.values()))
    coef = _coefficients(rng, X.shape[1])
    score = X @ coef
    y = (score - np.median(score) + rng.standard_normal(n) > 0).astype(int)
    return Data(X, y, terms, {name: float((X[:, own] @ coef[own]).std()) for name, own in terms.items()})


def _coefficients(rng, p):
    while True:
        coef = TAU_0 * abs(rng.standard_cauchy()) * abs(rng.standard_cauchy(p)) * rng.standard_normal(p)
        if np.log(rng.random()) < -0.5 * np.sum((coef / SLAB) ** 2):  # the slab, by rejection
            return coef


def rules(data, seed):
    """The names of the terms that each rule claims: {(rule, q): names}."""
    terms, found = {name: own.tolist() for name, own in data.terms.items()}, {}
    model = fit(data.X, data.y, seed, SHORT, **PRIOR)

    def kept(rule, **limits):
        selector = HorseshoeSelector(model, rule=rule, prefit=True, terms=terms, **limits).fit(data.X, data.y)
        return _touched(data.terms, selector.get_support(indices=True))

    for q in SHARES:
        found["fsr", q] = kept("fsr", q=q, effect=EFFECT)
        sets = credible_sets(model, data.X, level=0.5, q=q, effect=EFFECT, terms=terms)
        places = [[int(name[1:]) for name in sets.members.loc[title].index] for title in sets.sets.index]
        found["sets", q] = [name for place in places for name in _touched(data.terms, place)]
    return found | {(rule, None): kept(rule) for rule in ("interval", "dss", "shrinkage")}


def by_hand(data, seed):
    """The terms with a column that "fsr" keeps, where the first column of each term of several is dropped."""
    kept = np.concatenate([own[len(own) > 1 :] for own in data.terms.values()])
    model, found = fit(data.X[:, kept], data.y, seed, SHORT, **PRIOR), {}
    for q in SHARES:
        selector = HorseshoeSelector(model, rule="fsr", q=q, effect=EFFECT, prefit=True).fit(data.X[:, kept])
        found["a level dropped, columns by fsr", q] = _touched(data.terms, kept[selector.get_support()])
    return found


def group_lasso(data, seed):
    """Terms that the logistic group lasso has in 75 % of 50 half-samples, with a penalty by which all rows have about
    sqrt(m / 2) of m terms: at most one false one is then expected (Meinshausen & Buehlmann 2010)."""
    rng = np.random.default_rng(seed)
    parts = [_orthonormal(data.X[:, own]) for own in data.terms.values()]  # as in Yuan & Lin (2006)
    Z, sizes, n = np.hstack(parts), [part.shape[1] for part in parts], len(data.y)
    low, high = 1e-4, 1.0
    for _ in range(8):
        alpha = np.sqrt(low * high)
        found = _lasso(Z, data.y, sizes, alpha)
        low, high = (alpha, high) if found.sum() > np.sqrt(len(sizes) / 2) else (low, alpha)
    halves = [rng.choice(n, n // 2, replace=False) for _ in range(HALVES)]
    share = np.mean([_lasso(Z[rows], data.y[rows], sizes, high) for rows in halves], axis=0)
    return {("group lasso, stability", None): [n for n, s in zip(data.terms, share, strict=True) if s >= THRESHOLD]}


def _lasso(Z, y, sizes, alpha, n_steps=300):
    """Which groups the logistic lasso has, by accelerated proximal gradients; the solvers of skglm 0.5 fail on some of
    these half-samples."""
    A, groups = np.column_stack([Z, np.ones(len(Z))]), np.repeat(np.arange(len(sizes)), sizes)
    rate, limit = 4 * len(A) / np.linalg.norm(A, 2) ** 2, alpha * np.sqrt(sizes)
    w = ahead = np.zeros(A.shape[1])
    for k in range(n_steps):
        new = ahead - rate * A.T @ (0.5 + 0.5 * np.tanh(A @ ahead / 2) - y) / len(A)
        norms = np.sqrt(np.bincount(groups, new[:-1] ** 2))
        new[:-1] *= np.repeat(np.maximum(0, 1 - rate * limit / np.maximum(norms, 1e-300)), sizes)
        ahead, w = new + k / (k + 3) * (new - w), new
    return np.bincount(groups, w[:-1] != 0) > 0


def _orthonormal(X):
    U, values, _ = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)
    return np.sqrt(len(X)) * U[:, values > 1e-8 * values[0]]


def _touched(terms, columns):
    return [name for name, own in terms.items() if np.isin(own, columns).any()]


def judged(seed, n):
    """For each rule the share of false claims, their number, and the signals found, all and of several columns."""
    data, counts = make(seed, n), {}
    signals = {name for name, size in data.sizes.items() if size > EFFECT}
    several = {name for name in signals if len(data.terms[name]) > 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what the data do not tell or bound, and of few sweeps
        claims = rules(data, seed) | by_hand(data, seed) | group_lasso(data, seed)
    for rule, names in claims.items():
        right = [name in signals for name in names]
        found = {*names} & signals
        counts[rule] = [
            len(names) - sum(right),
            len(names),
            len(found),
            len(signals),
            len(found & several),
            len(several),
        ]
    return counts


def errors(report, options):
    n_sets, n = (4, 200) if options.quick else (options.sets, 500)
    every = Parallel(N_JOBS)(delayed(judged)(seed, n) for seed in range(n_sets))
    for rule, q in every[0]:
        false, claims, found, signals, grouped, several = np.array([one[rule, q] for one in every]).T
        share = false / np.maximum(claims, 1)
        error = float(share.std() / np.sqrt(n_sets))
        title = rule + (f", q = {q}" if q else "")
        report.figures[title] = {
            "data sets": n_sets,
            "false share": float(share.mean()),
            "false share, Monte Carlo error": error,
            "false of all claims": float(false.sum() / max(1, claims.sum())),
            "claims": int(claims.sum()),
            "signals": int(signals.sum()),
        }
        is_stated = q and rule in ("fsr", "sets")
        report.add(f"{title}: share false", float(share.mean()), at_most=q + 2 * error if is_stated else None)
        report.add(f"{title}: signals found", float(found.sum() / max(1, signals.sum())))
        report.add(f"{title}: signals found, of terms of several columns", float(grouped.sum() / max(1, several.sum())))


def noise(report, options):
    """How often a factor of five levels without any effect is claimed, of 40 data sets with one column that matters."""
    n_sets = 2 if options.quick else 40
    every = Parallel(N_JOBS)(delayed(_noise)(seed) for seed in range(n_sets))
    for rule in every[0]:
        at_most = float(norm.isf(0.025) * np.sqrt(n_sets * 0.1) + n_sets * 0.1)
        report.add(
            f"a factor of noise claimed by {rule}, of {n_sets}", sum(one[rule] for one in every), at_most=at_most
        )


def _noise(seed, n=1000):
    rng = np.random.default_rng(10_000 + seed)
    levels = OneHotEncoder(sparse_output=False).fit_transform(rng.integers(0, 5, (n, 1)))
    a = rng.standard_normal((n, 1))
    X, y = np.hstack([levels, a]), (0.7 * a[:, 0] + rng.standard_normal(n) > 0).astype(int)
    model = fit(X, y, seed, SHORT, n_jobs=1)
    found = {}
    for rule in ("fsr", "interval", "dss"):
        selector = HorseshoeSelector(model, rule=rule, prefit=True, terms="auto").fit(X, y)
        found[rule] = bool(selector.get_support()[:5].any())
    members = credible_sets(model, X).members.index.get_level_values("feature")
    return found | {"sets": bool(members.isin([f"x{j}" for j in range(5)]).any())}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=300, help="data sets from the model")
    run_sections("terms", {"errors": errors, "noise": noise}, parser)
