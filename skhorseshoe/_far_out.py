"""Columns whose spread is that of a few values far out."""

import numpy as np
from scipy.sparse import issparse

from . import _device
from ._ops._reading import taken

_ROWS, _NUMBERS, _FEW_ROWS = 1000, 2**20, 64  # of X in a sample, at most, but rows at least
_TOGETHER = 2**14  # columns looked at together
_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: its multiples are all over the place
_CENTRAL = 0.05, 0.95  # quantiles between which the usual values lie
_TIMES = 20  # their range is the standard deviation at which a column is named; of a lognormal with sigma 2 it is 2


def step_of(n, p):
    """Of how many rows one is in the sample."""
    return -(-n // max(_FEW_ROWS, min(_ROWS, _NUMBERS // p)))


def sample(X, start, step):
    """One of every ``step`` rows of X, wherever it is; (m, p), sparse if X is, on the host.

    Which one depends on the rows' numbers alone, and follows no period that the rows may have. start : number of the
    first row of X.
    """
    strides = np.arange(start // step, (start + X.shape[0] - 1) // step + 1, dtype=np.uint64)
    at = strides * np.uint64(step) + (strides * _SCRAMBLE >> np.uint64(33)) % np.uint64(step)
    which = at.astype(np.int64) - start
    with _device.of(X):
        return _device.to_host(taken(X, which[(which >= 0) & (which < X.shape[0])]))


def far_out(rows, spread):
    """Numbers of the columns named, and the range of their usual values.

    A column most of whose values are the same has none, so that a rare level of a category is not named.

    rows : as ``sample`` gives them. spread : (p,) standard deviations over all rows.
    """
    usual = np.concatenate([_usual(rows[:, first : first + _TOGETHER]) for first in range(0, len(spread), _TOGETHER)])
    (which,) = ((usual > 0) & (spread > _TIMES * usual) & np.isfinite(spread)).nonzero()  # what overflows is refused
    return which, usual[which]


def _usual(rows):
    """The range of the central values of each column; of few rows, not on the way to the last."""
    rows = rows.toarray() if issparse(rows) else rows
    low, high = np.quantile(np.asarray(rows, np.float64), _CENTRAL, axis=0, method="nearest")
    return high - low
