"""Columns that a fit refuses or warns of: too large or small, one-sided, or with values far out."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.arrays import dense
from .._utils.memmap import cut, read_ahead, taken

_NUMBERS_AT_A_TIME = 2**20  # elements of X to read at a time


class OneSidedColumns(NamedTuple):
    """One-sided columns, and columns that vary by rounding only."""

    columns: np.ndarray  # numbers of those in which no value of one class is above any of the other
    evidence: np.ndarray  # nats, a lower bound of minus the log probability that they are so by chance
    rounded: np.ndarray  # numbers of the columns that vary by so little that they count as constant


def find_one_sided(low, high):
    """Numbers of the columns in which no value of a class is above any value of the next one, or none is below.
    Constant columns are left out.

    The likelihood then rises without end as the coefficient grows (quasi-complete separation; Albert & Anderson 1984,
    Biometrika 71, 1-10). low, high : as ``extremes`` returns them.
    """
    span = np.asarray(high, np.float64).max(axis=0) - np.asarray(low, np.float64).min(axis=0)
    return np.flatnonzero(_apart(low, high) & (span > 0))


def evidence(low, high, mean, shares):
    """Evidence that one-sided columns are no noise, in nats a row: a lower bound of minus the log probability that all
    rows without the commonest value are of one class by chance. Infinite if two classes vary.

    low, high : (K, k) of these columns, as ``extremes`` returns them. mean : (k,). shares : of the classes (K,).
    """
    least, most = low.min(axis=0), high.max(axis=0)
    out = np.full(len(mean), np.inf)
    for end, others in ((-1, slice(-1)), (0, slice(1, None))):  # the others have one value; other ones are at this end
        at_least, at_most = low[others].min(axis=0), high[others].max(axis=0)
        distance = np.where(at_most == least, mean - least, np.where(at_least == most, most - mean, np.inf))
        out = np.minimum(out, -np.log(shares[end]) * distance / (most - least))
    return out


def _apart(low, high):
    return (high[:-1] <= low[1:]).all(axis=0) | (high[1:] <= low[:-1]).all(axis=0)


def extremes(X, y, fit_intercept, n_classes=2):
    """The smallest and the largest value of each column in each class; two arrays (K, p).

    Without an intercept, zero counts as a value of all classes. A column is read only until its classes overlap, which
    takes few rows for most columns.

    X : (n, p), on its device. y : (n,) from 0 on, on the host.
    """
    n, p = X.shape
    low = np.full((n_classes, p), np.inf if fit_intercept else 0.0)
    high, remaining = -low, np.arange(p)
    for rows in read_ahead(X, cut(0, n, max(1, _NUMBERS_AT_A_TIME * n // max(1, X.size))), n):
        block, classes = _block(X, rows, remaining), y[rows]
        for c in np.unique(classes):
            in_class = block[classes == c]
            low[c, remaining] = np.minimum(low[c, remaining], dense(in_class.min(axis=0)).ravel())
            high[c, remaining] = np.maximum(high[c, remaining], dense(in_class.max(axis=0)).ravel())
        remaining = np.flatnonzero(_apart(low, high))
        if not len(remaining):
            break
    return low, high


def widest(a, b):
    """The extremes of two groups of rows taken together."""
    return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])


def _block(X, rows, columns):
    """The rows of these columns, on the host."""
    is_subset, sparse = len(columns) < X.shape[1], issparse(X)
    with device.context_of(X):
        block = X[rows][:, columns] if is_subset and not sparse else X[rows]
        block = device.to_host(block)
    return block[:, columns] if is_subset and sparse else block


_MOST_ROWS, _MOST_NUMBERS, _FEWEST_ROWS = 1000, 2**20, 64  # of a sample: most rows and numbers, fewest rows
_COLUMNS_AT_A_TIME = 2**14  # columns to read at a time
_SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: its multiples look random
_CENTRAL = 0.05, 0.25, 0.75, 0.95  # quantiles: the usual values, and the middle half of all, lie between them
_FAR_OUT = 20  # most ranges of usual values in a standard deviation; 2 for a lognormal with sigma 2
_TIMES_FARTHER, _MOST_TOGETHER = 3, 3  # of codes from the other values; most codes together
# -1, and 7, 8 and 9 repeated, with both signs, or a last digit of 7 or 8 after nines.
_CODE_SET = {-1.0} | {
    sign * float(text)
    for n in range(1, 6)
    for text in (*(digit * n for digit in "789"), *("9" * (n - 1) + digit for digit in "78"))
    for sign in (1, -1)
}
_CODES = sorted(_CODE_SET)


def step_of(shape):
    """The number of rows from which one is in the sample. shape : (n, p) of X."""
    n, p = shape
    return -(-n // max(_FEWEST_ROWS, min(_MOST_ROWS, _MOST_NUMBERS // p)))


def sample(X, start, step):
    """One of every ``step`` rows of X; (m, p), sparse if X is, on the host.

    Which one depends only on the rows' numbers, and not periodically. start : number of the first row of X.
    """
    strides = np.arange(start // step, (start + X.shape[0] - 1) // step + 1, dtype=np.uint64)
    at = strides * np.uint64(step) + (strides * _SCRAMBLE >> np.uint64(33)) % np.uint64(step)
    numbers = at.astype(np.int64) - start
    with device.context_of(X):
        return device.to_host(taken(X, numbers[(numbers >= 0) & (numbers < X.shape[0])]))


def far_out(rows, spread, weight=None):
    """Numbers of the columns with values far out, and the ranges of their usual values.

    A column is left out if the middle half of its values are equal, such as that of a rare level of a category: what
    lies between the outer quantiles is then chance.

    rows : as ``sample`` returns them. spread : (p,) standard deviations over all rows. weight : of ``rows``, or None.
    """
    blocks = (rows[:, columns] for columns in cut(0, len(spread), _COLUMNS_AT_A_TIME))
    usual = np.concatenate([_usual(block, weight) for block in blocks])
    (far,) = ((usual > 0) & (spread > _FAR_OUT * usual) & np.isfinite(spread)).nonzero()
    return far, usual[far]


def usual_values(rows):
    """The value that the middle half of each column has, or NaN; (k,). rows : as ``sample`` returns them."""
    low, high = np.quantile(np.asarray(dense(rows), np.float64), (_CENTRAL[1], _CENTRAL[2]), axis=0, method="nearest")
    return np.where(low == high, low, np.nan)


def missing_codes(rows):
    """Values that look like codes for "missing", as pairs of the number of a column and a list of them.

    Such a value is a number that is used as one (``_CODES``) and occurs twice or more; the other values of its column
    are whole numbers too, two different ones at least; and from the nearest of these it is more than three times as far
    as any neighbours among them are from one another. So it is far from all others, while the last of many counts,
    ages or prices, which are ever farther apart, is not. Up to three codes may stand together, as 97, 98 and 99 do.

    rows : as ``sample`` returns them.
    """
    found = []
    for columns in cut(0, rows.shape[1], _COLUMNS_AT_A_TIME):
        block = dense(rows[:, columns])
        ends = np.isin(block.min(axis=0), _CODES) | np.isin(block.max(axis=0), _CODES)
        for j in np.flatnonzero(ends):
            values, times = np.unique(block[:, j], return_counts=True)
            if (values == np.rint(values)).all() and (codes := _apart_from_all(values.tolist(), times.tolist())):
                found.append((columns.start + int(j), codes))
    return found


def _apart_from_all(values, times):
    """The codes among different whole numbers, ascending, that occur so many times."""
    codes, ends = [], [(k, side) for k in range(1, _MOST_TOGETHER + 1) for side in (1, -1)]
    while True:
        for k, side in ends:
            outer, rest = (values[:k], values[k:]) if side > 0 else (values[-k:], values[:-k])
            if len(rest) < 2 or min(times[:k] if side > 0 else times[-k:]) < 2 or not {*outer} <= _CODE_SET:
                continue
            distance = rest[0] - outer[-1] if side > 0 else outer[0] - rest[-1]
            if distance > _TIMES_FARTHER * max(np.diff(rest)):
                codes, values, times = codes + outer, rest, times[k:] if side > 0 else times[:-k]
                break
        else:
            return [int(code) for code in codes]


def two_valued(rows):
    """Which columns hold at most two values; (k,) bool. rows : as ``sample`` returns them."""
    rows = dense(rows)
    return ((rows == rows.min(axis=0)) | (rows == rows.max(axis=0))).all(axis=0)


def _usual(rows, weight):
    """The range of the central values of each column, or 0 if the middle half are equal. It is not interpolated, which
    in few rows would reach for outliers."""
    rows = np.asarray(dense(rows), np.float64)
    if weight is None:
        least, low, high, most = np.quantile(rows, _CENTRAL, axis=0, method="nearest")
    else:
        order = np.argsort(rows, axis=0)
        middle = (np.cumsum(weight[order], axis=0) - weight[order] / 2) / weight.sum()
        at = np.array([(middle < quantile).sum(axis=0) - (quantile > 0.5) for quantile in _CENTRAL])
        least, low, high, most = np.take_along_axis(rows, np.take_along_axis(order, at, axis=0), axis=0)
    return np.where(high > low, most - least, 0.0)


# Limits of a column's root mean square within which sums over rows, squares and coefficients stay finite.
_LARGEST_SIZE = {"float16": 1e30, "float32": 1e30, "float64": 1e150}
_LEAST_SIZE = {"float16": 0.0, "float32": 1e-30, "float64": 1e-150}


def check_size(columns, dtype, names):
    """Raise a ValueError if the numbers of a column are too large or too small to compute with."""
    largest, least = _LARGEST_SIZE[dtype.name], _LEAST_SIZE[dtype.name]
    _refuse_size(columns.size, largest, least, names, f"{dtype}", "")
    if columns.has_own_scale.any():
        limits = _LARGEST_SIZE["float64"], _LEAST_SIZE["float64"]
        _refuse_size(columns.size / columns.scale, *limits, names, "its prior_scale", " times that")


def _refuse_size(size, largest, least, names, what, times):
    """As ``check_size``. size : (p,). what, times : words, for what they are too large or small, and of what."""
    if not (size <= largest).all():
        worst, word = np.argmax(np.where(np.isnan(size), np.inf, size)), "large"
        limit = f"{largest:.0g} is the largest that can be summed. Scale the columns first (StandardScaler)"
    elif ((size > 0) & (size < least)).any():
        worst, word = np.argmin(np.where(size > 0, size, np.inf)), "small"
        limit = f"{least:.0g} is the least that can be squared. Take its logarithm first, or multiply the column"
    else:
        return
    or_nan = ", or holds NaN" if np.isnan(size[worst]) else ""  # possible with assume_finite
    raise ValueError(
        f"Column {names[worst]!r} of X is too {word} for {what}{or_nan}: its root mean square{times} is "
        f"{size[worst]:.1g}, and {limit}."
    )
