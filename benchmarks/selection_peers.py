"""What other packages claim, in an environment of their own: knockoffs, pyblip, SuSiE, and stability selection.

As a command, in that environment: ``python selection_peers.py data.npz claims.json``. It needs scikit-learn alone, and
leaves out what cannot be imported.
"""

import json
import subprocess
import sys
import tempfile
import time
import warnings
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

SHARES = (0.05, 0.1, 0.2)  # of false claims, that those are asked for which can be
PACKAGES = {"hidimstat": "0.4.0", "pyblip": "0.4.2", "pysusie": "0.1.0"}
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
    return {
        q: [sorted(found.group) for found in BLiP(cand_groups=groups[q], q=q, verbose=False, solver="CLARABEL")]
        for q in SHARES
    }


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


class Environment:
    """A virtual environment with the packages of other rules, made on first use; None: this interpreter, as it is."""

    def __init__(self, path):
        self.found, self.python = {}, sys.executable
        if path is None:
            return
        self.python = path / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        if not self.python.exists():
            print(f"installing {', '.join(PACKAGES)} into {path}", flush=True)
            subprocess.run([sys.executable, "-m", "venv", path], check=True)
        for name, number in {"scikit-learn": "1.9.1", **PACKAGES}.items():
            command = [self.python, "-m", "pip", "install", "--quiet", f"{name}=={number}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                self.found[name] = "not installed: " + (done.stderr.strip().splitlines() or ["?"])[-1][:200]

    def claims(self, sets, n_jobs):
        """{rule: {share asked for: for each (X, y) of sets the lists of columns of its claims, None where it failed}},
        and {rule: processor seconds a data set}; both are empty where the environment cannot be used."""
        with tempfile.TemporaryDirectory() as folder:
            data, out = Path(folder) / "data.npz", Path(folder) / "claims.json"
            np.savez(data, X=[X for X, _ in sets], y=[y for _, y in sets], n_jobs=n_jobs)
            done = subprocess.run([self.python, __file__, data, out], check=False, stdout=subprocess.DEVNULL)
            if done.returncode:
                self.found["failed"] = f"{self.python} {Path(__file__).name} ended with {done.returncode}"
                return {}, {}
            answer = json.loads(out.read_text())
        self.found = answer["versions"] | self.found
        return answer["claims"], answer["seconds"]


def _one(rule, X, y, seed):
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = RULES[rule][0](X, y, seed)
        except Exception as error:  # of whatever kind: the other data sets are judged
            print(f"{rule}, data set {seed}: {error!r}"[:300], file=sys.stderr)
            found = None
    return found, time.process_time() - begin


def _main(data, out):
    from joblib import Parallel, delayed

    given = np.load(data)
    X, y = given["X"], given["y"]
    answer = {"claims": {}, "seconds": {}, "versions": {}}
    for rule, (_, package) in RULES.items():
        try:
            answer["versions"][package] = version(package)
        except PackageNotFoundError:
            answer["versions"][package] = "not installed"
            continue
        workers = Parallel(int(given["n_jobs"]), max_nbytes=None)  # pyblip cannot use arrays that are read-only
        done = workers(delayed(_one)(rule, X[k], y[k], k) for k in range(len(X)))
        shares = next((found for found, _ in done if found is not None), {})
        answer["claims"][rule] = {q: [found and _lists(found[q]) for found, _ in done] for q in shares}
        answer["seconds"][rule] = sum(seconds for _, seconds in done) / len(done)
    Path(out).write_text(json.dumps(answer))


def _lists(claims):
    return [[int(j) for j in columns] for columns in claims]


if __name__ == "__main__":
    _main(*sys.argv[1:])
