"""Ten data sets for `peers.py`: python _peer_data.py NAME FILE [quick] writes one, in two parts of rows."""

import sys
from typing import NamedTuple

import numpy as np
from sklearn import datasets
from sklearn.model_selection import train_test_split

from skhorseshoe.datasets import make_correlated_probit, make_rare_events, make_sparse_probit


class Data(NamedTuple):
    """Where rows come from, how many are fitted (None: 70 %), and the slab, if a plane may separate the classes."""

    what: str
    make: object  # () -> X, y
    train: int | None = None
    slab: float | None = None


def _of_scikit_learn(name, classes=None, positive=0):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if classes is not None:
        X, y = X[np.isin(y, classes)], y[np.isin(y, classes)]
    return X, y == positive


def _of_statsmodels(name, target, positive, without=()):
    from statsmodels import datasets as others  # only in the environment of the peers

    table = getattr(others, name).load_pandas().data
    return table.drop(columns=[target, *without]).to_numpy(), positive(table[target].to_numpy())


DATA = {
    "breast": Data("breast cancer", lambda: _of_scikit_learn("breast_cancer", positive=1)),
    "wine": Data("wine 0 v rest, slab 2", lambda: _of_scikit_learn("wine"), slab=2.0),
    "digits": Data("digits 3 v 8, slab 2", lambda: _of_scikit_learn("digits", (3, 8), 8), slab=2.0),
    "iris": Data("iris 1 v 2", lambda: _of_scikit_learn("iris", (1, 2), 2)),
    "fair": Data("fair: affairs", lambda: _of_statsmodels("fair", "affairs", lambda y: y > 0)),
    "anes": Data("anes96: vote", lambda: _of_statsmodels("anes96", "vote", lambda y: y == 1)),
    "spector": Data("spector: grade", lambda: _of_statsmodels("spector", "GRADE", lambda y: y == 1)),
    "synthetic": Data("synthetic", lambda: make_sparse_probit(4000, 50, random_state=0)[:2], 2000),
    "rare": Data("rare events, 0.5 %", lambda: make_rare_events(40_000, 50, random_state=0)[:2], 20_000),
    "wide": Data("correlated, slab 2", lambda: make_correlated_probit(1100, 300, random_state=0)[:2], 100, 2.0),
}


def main(name, file, quick=""):
    data = DATA[name]
    X, y = data.make()
    share = {"train_size": data.train or 0.7, "random_state": 0, "stratify": y}
    X, X_new, y, y_new = train_test_split(X.astype(float), y.astype(int), **share)
    if quick:
        few = train_test_split(np.arange(len(y)), train_size=min(60, len(y) // 2), random_state=0, stratify=y)[0]
        X, X_new, y = X[few, :4], X_new[:, :4], y[few]
    kept = X.std(axis=0) > 0
    mean, sd = X[:, kept].mean(axis=0), X[:, kept].std(axis=0)
    parts = {"X": (X[:, kept] - mean) / sd, "X_new": (X_new[:, kept] - mean) / sd}
    np.savez(file, y=y, y_new=y_new, slab=data.slab or np.inf, **parts)


if __name__ == "__main__":
    main(*sys.argv[1:])
