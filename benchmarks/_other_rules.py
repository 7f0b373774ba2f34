"""What other packages claim, in an environment of their own: knockoffs, pyblip, SuSiE, and stability selection.

They claim no sign and no sum of columns: what they report is true if one of its columns has an effect that counts. What
cannot be imported is left out, and named. This file needs NumPy alone until a rule is asked.
"""

import sys
import time
import warnings
from importlib.metadata import PackageNotFoundError, version

import numpy as np

SHARES = (0.05, 0.1, 0.2)  # of false claims, that those are asked for which can be
PACKAGES = {"scikit-learn": "1.9.1", "hidimstat": "0.4.0", "pyblip": "0.4.2", "pysusie": "0.1.0"}
HALVES, THRESHOLD = 50, 0.75  # of stability selection: half-samples, and the share of them that must have a column
ANY = ""  # in place of a share: what is claimed whatever it is


def stability(X, y, seed):
    """Columns that the L1 logistic regression has in 75 % of 50 half-samples (Meinshausen & Buehlmann 2010).

    The penalty is such that all rows have about sqrt(p / 2) columns: at most one false column is then expected.
    """
    from sklearn.linear_model import LogisticRegression

    rng, Z = np.random.default_rng(seed), (X - X.mean(axis=0)) / X.std(axis=0)

    def has(rows, C):
        model = LogisticRegression(C=C / len(rows), l1_ratio=1, solver="liblinear", tol=1e-3, random_state=seed)
        return model.fit(Z[rows], y[rows]).coef_[0] != 0

    low, high, every = 1.0, 1000.0, np.arange(len(y))  # of C, times the rows
    for _ in range(8):
        C = np.sqrt(low * high)
        low, high = (low, C) if has(every, C).sum() > np.sqrt(X.shape[1] / 2) else (C, high)
    counts = np.zeros(X.shape[1])
    for _ in range(HALVES):
        while len(np.unique(y[rows := rng.choice(len(y), len(y) // 2, replace=False)])) < 2:
            pass
        counts += has(rows, C)
    return {ANY: [[j] for j in np.flatnonzero(counts >= THRESHOLD * HALVES)]}


def knockoffs(X, y, seed):
    """Model-X knockoffs of Gaussian columns (Candes et al. 2018), with the lasso of y, by hidimstat."""
    from hidimstat.knockoffs import ModelXKnockoff
    from sklearn.linear_model import LassoCV

    lasso = LassoCV(cv=5, alphas=30, tol=1e-3)
    model = ModelXKnockoff(lasso, preconfigure_lasso_path=False, random_state=seed)  # the path down to 0 takes minutes
    model.fit_importance(X, y.astype(float))
    return {q: [[j] for j in np.flatnonzero(model.fdr_selection(q))] for q in SHARES}


def pyblip(X, y, seed):
    """Bayesian linear programming (Spector & Janson 2024) on draws of a probit model with spike and slab, by pyblip."""
    from pyblip.blip import BLiP
    from pyblip.create_groups import all_cand_groups
    from pyblip.probit import ProbitSpikeSlab

    np.random.seed(seed)  # noqa: NPY002 - the only way to seed it
    model = ProbitSpikeSlab(X=X, y=y)
    model.sample(N=250, burn=150, chains=4)
    groups = {q: all_cand_groups(model.betas, X=X, q=q) for q in SHARES}
    how = {"verbose": False, "solver": "CLARABEL"}
    return {q: [sorted(found.group) for found in BLiP(cand_groups=groups[q], q=q, **how)] for q in SHARES}


def susie(X, y, seed):
    """95 % credible sets of the sum of ten single effects on y, as if it were normal (Wang et al. 2020), by pysusie."""
    from pysusie import susie as fit

    return {ANY: fit(X, y.astype(float), L=10)["sets"]["cs"] or []}


RULES = {
    "L1, stability": (stability, "scikit-learn"),
    "knockoffs": (knockoffs, "hidimstat"),
    "pyblip": (pyblip, "pyblip"),
    "SuSiE": (susie, "pysusie"),
}


def claims(data, n_jobs):
    """Of each (X, y) in the file ``data``: "claims", {rule: {share asked for: for each the lists of columns, None where
    the rule failed}}; "seconds" of the processor for a data set; "versions"."""
    from joblib import Parallel, delayed

    with np.load(data) as given:
        X, y = given["X"], given["y"]
    answer = {"claims": {}, "seconds": {}, "versions": {}}
    for rule, (_, package) in RULES.items():
        try:
            answer["versions"][package] = version(package)
        except PackageNotFoundError:
            answer["versions"][package] = "not installed"
            continue
        workers = Parallel(n_jobs, max_nbytes=None)  # pyblip cannot use arrays that are read-only
        done = workers(delayed(one)(rule, X[k], y[k], k) for k in range(len(X)))
        shares = next((found for found, _ in done if found is not None), {})
        lists = {q: [found and [list(map(int, own)) for own in found[q]] for found, _ in done] for q in shares}
        answer["claims"][rule] = lists
        answer["seconds"][rule] = sum(seconds for _, seconds in done) / len(done)
    return answer


def one(rule, X, y, seed):
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = RULES[rule][0](X, y, seed)
        except Exception as error:  # of whatever kind: the other data sets are judged
            print(f"{rule}, data set {seed}: {error!r}"[:300], file=sys.stderr)
            found = None
    return found, time.process_time() - begin
