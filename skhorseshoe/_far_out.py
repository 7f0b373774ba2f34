"""Columns whose spread is that of a few values far out."""

import numpy as np
from scipy.sparse import issparse

from . import _device

_ROWS, _NUMBERS, _FEW_ROWS = 1000, 2**20, 64  # of X in a sample, at most, but rows at least
_CENTRAL = 0.05, 0.95  # quantiles between which the usual values lie
_TIMES = 20  # their range is the standard deviation at which a column is named; of a lognormal with sigma 2 it is 2


def step_of(n, p):
    """Every how many rows one is in the sample."""
    return -(-n // max(_FEW_ROWS, min(_ROWS, _NUMBERS // p)))


def sample(X, start, step):
    """The rows of X, wherever it is, whose numbers are multiples of ``step``; (m, p) float64.

    start : number of the first row of X.
    """
    first = -start % step
    which = np.arange(first, X.shape[0], step) if _device.is_sparse(X) else slice(first, None, step)
    with _device.of(X):
        rows = _device.to_host(X[which])
    return np.asarray(rows.toarray() if issparse(rows) else rows, np.float64)


def far_out(rows, spread):
    """Numbers of the columns named, and the range of their usual values.

    A column most of whose values are the same has none, so that a rare level of a category is not named.

    rows : as ``sample`` gives them. spread : (p,) standard deviations over all rows.
    """
    low, high = np.quantile(rows, _CENTRAL, axis=0, method="nearest")  # of few rows, not on the way to the last
    usual = high - low
    (which,) = ((usual > 0) & (spread > _TIMES * usual) & np.isfinite(spread)).nonzero()  # what overflows is refused
    return which, usual[which]
