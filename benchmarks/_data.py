"""Data sets of ``mixing.py`` and ``per_second.py``; nothing private of the library is imported."""

import numpy as np
from scipy.special import ndtr
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale


def clinical():
    """532 x 7 with moderate effects."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((532, 7))
    return X, X @ [0.25, 0.65, -0.05, 0.05, 0.4, 0.3, 0.2] - 0.5 + rng.standard_normal(532) > 0


def digits():
    X, y = load_digits(return_X_y=True)
    rows = np.isin(y, (3, 8))
    X = X[rows]
    return scale(X[:, X.std(axis=0) > 0]), y[rows] == 8


def strong_effects():
    """1000 x 100, six columns that nearly tell the classes apart."""
    rng = np.random.default_rng(7)
    X, beta = rng.standard_normal((1000, 100)), np.zeros(100)
    beta[:6] = 1.3, 4, -1, 1.6, 5, -2
    return X, rng.random(1000) < ndtr(X @ beta)


def separated():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 60))
    return X, X @ np.append([2.0, 1.0, -1.0], np.zeros(57)) + 0.5 * rng.standard_normal(40) > 0


def blocks():
    """100 x 2000, blocks of 20 columns with correlations of 0.7; five columns matter, each in a block of its own."""
    rng = np.random.default_rng(3)
    X = np.sqrt(0.7) * np.repeat(rng.standard_normal((100, 100)), 20, axis=1)
    X += np.sqrt(0.3) * rng.standard_normal((100, 2000))
    return X, X[:, 5:405:80] @ [3.0, -3.0, 2.0, -2.0, 2.0] + rng.standard_normal(100) > 0


def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y
