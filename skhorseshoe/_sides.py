"""Columns that alone tell some rows of a class apart, so that the data set no bound to their coefficient."""

import numpy as np
from scipy.sparse import issparse

from . import _device
from ._ops._reading import ahead, cut

_BLOCK = 2**20  # elements of X looked at together


def one_sided(X, y, fit_intercept):
    """Numbers of the columns that have no value in one class above any value in the other, and are not constant.

    Then the likelihood rises for ever as the coefficient grows (quasi-complete separation; Albert & Anderson 1984).
    Without an intercept zero must lie between the two. A column is read as long as it may be one: most are few rows.

    X : (n, p), where it is. y : (n,) of 0 and 1, on the host.

    References
    ----------
    Albert, A. & Anderson, J. A. (1984). On the existence of maximum likelihood estimates in logistic regression models.
    Biometrika 71, 1-10.
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
        apart = (high[0] <= low[1]) | (high[1] <= low[0])
        left = np.flatnonzero(apart)
        if not len(left):
            break
    return left[(low.min(axis=0) < high.max(axis=0))[left]]


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
