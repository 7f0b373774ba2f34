"""Columns that a fit refuses or warns of: too large or small, separating, or with values far out."""

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.arrays import dense
from .._utils.memmap import ahead, cut, taken

_BLOCK = 2**20  # elements of X looked at together


def one_sided(low, high):
    """Numbers of the columns that have no value in one class above any value in the other, and are not constant; and
    the ranges of their values.

    Then the likelihood rises for ever as the coefficient grows (quasi-complete separation; Albert & Anderson 1984,
    Biometrika 71, 1-10). low, high : as ``extremes`` gives them.
    """
    span = np.asarray(high, np.float64).max(axis=0) - np.asarray(low, np.float64).min(axis=0)
    found = np.flatnonzero(_apart(low, high) & (span > 0))
    return found, span[found]


def evidence(low, high, mean, share):
    """How improbable one-sided columns are if they say nothing of the class: minus the logarithm of the probability
    that all rows beside the commonest value are of one class, a row; at least that. Infinite where both classes vary.

    low, high : (2, k) of these columns, as ``extremes`` gives them. mean : (k,). share : of the second class.
    """
    least, most, of_other = low.min(axis=0), high.max(axis=0), -np.log([share, 1 - share])
    out = np.full(len(mean), np.inf)
    for c, other in enumerate(of_other):  # a class that has one value alone, which all other rows are beside
        beside = np.where(high[c] == least, mean - least, np.where(low[c] == most, most - mean, np.inf))
        out = np.minimum(out, other * beside / (most - least))
    return out


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
            low[c, left] = np.minimum(low[c, left], dense(some.min(axis=0)).ravel())
            high[c, left] = np.maximum(high[c, left], dense(some.max(axis=0)).ravel())
        left = np.flatnonzero(_apart(low, high))
        if not len(left):
            break
    return low, high


def widest(a, b):
    """The extremes of two groups of rows as those of both."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _block(X, rows, columns):
    """Some rows of these columns, on the host."""
    some, sparse = len(columns) < X.shape[1], issparse(X)
    with device.of(X):
        block = X[rows][:, columns] if some and not sparse else X[rows]
        block = device.to_host(block)
    return block[:, columns] if some and sparse else block


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
    with device.of(X):
        return device.to_host(taken(X, which[(which >= 0) & (which < X.shape[0])]))


def far_out(rows, spread, weight=None):
    """Numbers of the columns named, and the range of their usual values.

    A column most of whose values are the same has none, so that a rare level of a category is not named.

    rows : as ``sample`` gives them. spread : (p,) standard deviations over all rows. weight : of ``rows``, or None.
    """
    blocks = (rows[:, columns] for columns in cut(0, len(spread), _TOGETHER))
    usual = np.concatenate([_usual(block, weight) for block in blocks])
    (which,) = ((usual > 0) & (spread > _TIMES * usual) & np.isfinite(spread)).nonzero()  # what overflows is refused
    return which, usual[which]


def two_valued(rows):
    """Which columns hold two values, or one; (k,) bool. rows : as ``sample`` gives them."""
    rows = dense(rows)
    return ((rows == rows.min(axis=0)) | (rows == rows.max(axis=0))).all(axis=0)


def _usual(rows, weight):
    """The range of the central values of each column; of few rows, not on the way to the last."""
    rows = np.asarray(dense(rows), np.float64)
    if weight is None:
        low, high = np.quantile(rows, _CENTRAL, axis=0, method="nearest")
        return high - low
    order = np.argsort(rows, axis=0)
    middle = (np.cumsum(weight[order], axis=0) - weight[order] / 2) / weight.sum()
    at = np.array([(middle < _CENTRAL[0]).sum(axis=0), (middle < _CENTRAL[1]).sum(axis=0) - 1])
    low, high = np.take_along_axis(rows, np.take_along_axis(order, at, axis=0), axis=0)
    return high - low


# Root mean squares of a column whose sums over rows stay finite, and whose squares and coefficients do.
_LARGEST = {"float16": 1e30, "float32": 1e30, "float64": 1e150}
_LEAST = {"float16": 0.0, "float32": 1e-30, "float64": 1e-150}


def check_size(columns, dtype, names):
    """Raise a ValueError where the numbers of a column are too large or too small to compute with."""
    size, largest, least = columns.size, _LARGEST[dtype.name], _LEAST[dtype.name]
    if not (size <= largest).all():
        worst, what = np.argmax(np.where(np.isnan(size), np.inf, size)), "large"
        limit = f"{largest:.0g} is the largest that can be summed. Scale the columns first (StandardScaler)"
    elif ((size > 0) & (size < least)).any():
        worst, what = np.argmin(np.where(size > 0, size, np.inf)), "small"
        limit = f"{least:.0g} is the least that can be squared. Take its logarithm first, or multiply the column"
    else:
        return
    or_nan = ", or holds NaN" if np.isnan(size[worst]) else ""  # which scikit-learn can be told not to look for
    raise ValueError(
        f"Column {names[worst]!r} of X is too {what} for {dtype}{or_nan}: its root mean square is {size[worst]:.1g}, "
        f"and {limit}."
    )
