"""Columns that alone tell some rows of a class apart, so that the data place no limit on their coefficient."""

import numpy as np
from scipy.sparse import issparse

from . import _device
from ._ops._reading import ahead, cut

_BLOCK = 2**20  # elements of X looked at together


def one_sided(low, high):
    """Numbers of the columns that have no value in one class above any value in the other, and are not constant; and
    the ranges of their values.

    Then the likelihood rises for ever as the coefficient grows (quasi-complete separation; Albert & Anderson 1984).

    low, high : as ``extremes`` gives them.

    References
    ----------
    Albert, A. & Anderson, J. A. (1984). On the existence of maximum likelihood estimates in logistic regression models.
    Biometrika 71, 1-10.
    """
    span = np.asarray(high, np.float64).max(axis=0) - np.asarray(low, np.float64).min(axis=0)
    found = np.flatnonzero(_apart(low, high) & (span > 0))
    return found, span[found]


def _apart(low, high):
    return (high[0] <= low[1]) | (high[1] <= low[0])


def extremes(X, y, fit_intercept):
    """The least and the largest value of each column in each class; two arrays (2, p).

    Without an intercept zero counts as a value of both classes. A column is read until its classes overlap, which for
    most takes few rows, and whatever other rows hold.

    X : (n, p), where it is. y : (n,) of 0 and 1, on the host.
    """
    n, p = X.shape
    low = np.full((2, p), np.inf if fit_intercept else 0.0)
    high, left = -low, np.arange(p)
    for rows in ahead(X, cut(0, n, max(1, _BLOCK * n // max(1, X.size))), n):
        block, classes = _block(X, rows, left), y[rows]
        for c in np.unique(classes):
            some = block[classes == c]
            low[c, left] = np.minimum(low[c, left], _values(some.min(axis=0)))
            high[c, left] = np.maximum(high[c, left], _values(some.max(axis=0)))
        left = np.flatnonzero(_apart(low, high))
        if not len(left):
            break
    return low, high


def widest(a, b):
    """The extremes of two groups of rows as those of both."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _block(X, rows, columns):
    """Some rows of these columns, on the host."""
    some, sparse = len(columns) < X.shape[1], _device.is_sparse(X)
    with _device.of(X):
        block = X[rows][:, columns] if some and not sparse else X[rows]
        block = _device.to_host(block)
    return block[:, columns] if some and sparse else block


def _values(extremes):
    """A row as an array (p,)."""
    return extremes.toarray().ravel() if issparse(extremes) else extremes
