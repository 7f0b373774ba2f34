"""Weights of rows: a row of weight w counts as w rows."""

from numbers import Real
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight

from .._backends import device
from .._utils.arrays import dense, refuse_masked
from .._utils.memory import check_copy
from .._utils.sklearn_compat import _check_sample_weight
from .labels import encode_labels, in_order

_LEAST_SHARE = 1e-15  # smallest share of a class that floating-point numbers can tell from 0
_COUNTS = "A row of weight w counts as w rows: divide the weights by what makes them numbers of rows."
_COLUMNS_TO_A_ROW = 1.2  # columns to a row from which n x n matrices give more independent draws a second
_EQUAL = 1e-9  # relative difference of sums of equal weights, by rounding
_SORTED_SIZE = 2**16  # largest X, in numbers, whose rows are sorted


def weigh(y, sample_weight, class_weight, levels=None):
    """Rows without those of weight 0, for checked labels: which given rows are among them (n,) bool, or None for all;
    labels as places; weights, or None if all are 1; the classes; and the ``Excess``. levels : as in ``encode_labels``.
    """
    if sample_weight is None and class_weight is None:
        classes, codes = encode_labels(y, levels=levels)
        return None, codes, None, classes, Excess(len(codes))
    try:
        weight = check_weights(device.to_host(sample_weight), y, copy=True)
    except OverflowError as error:
        raise ValueError(f"sample_weight holds a whole number that is too large ({error}). {_COUNTS}") from error
    counts = weight > 0
    y, weight = y[counts], weight[counts]
    classes, codes = encode_labels(y, "" if counts.all() else " without the rows of weight 0", levels)
    n_classes = len(classes)
    sums, by_class = sums_by_class(codes, weight, n_classes), np.ones(n_classes)
    if class_weight is not None:
        by_class = of_classes(class_weight, classes, y, weight)
        if n_classes > 2 and levels is not None:
            by_class = by_class[np.searchsorted(classes, in_order(levels, classes))]
        weight *= by_class[codes]
    row = np.flatnonzero(counts)[weight.argmax()]
    check_totals(np.bincount(codes, weight, n_classes), f"; the largest, in row {row}, is {weight.max():.3g}")
    weight = None if (weight == 1).all() else weight
    return None if counts.all() else counts, codes, weight, classes, excess(sums, by_class)


def rows_that_count(counts, X, *others):
    """The rows with ``counts``, of ``weigh``, of X and of other arrays, or None."""
    if counts is None:
        return X, *others
    _check_copy(X, counts.sum(), "Dropping the rows of weight 0")
    return _take_rows(counts, (X, *others))


def check_weights(sample_weight, X, copy=False):
    """A user's weights of rows X, checked; (n,) float64."""
    refuse_masked(sample_weight, "sample_weight")
    try:
        array = np.asarray(sample_weight)
        if array.dtype.kind in "mM":  # NumPy would take them for numbers
            raise TypeError("they are dates or durations")
        if sample_weight is not None and array.ndim == 0:  # scikit-learn does not check a scalar for NaN
            sample_weight = np.full(X.shape[0], sample_weight, np.float64)
        return _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True, copy=copy)
    except (ValueError, TypeError) as error:
        if "weight" in str(error):
            raise
        problem = "sample_weight must be numbers, one for each row; those of classes are class_weight"
        raise type(error)(f"{problem}: {error}") from error


def check_some_weights(sample_weight, X):
    """``check_weights`` of rows to average over, of which one at least must count."""
    weight = check_weights(sample_weight, X)
    if not weight.sum() > 0:
        raise ValueError("sample_weight is 0 for all rows: there is nothing to average over.")
    return weight


def check_totals(totals, more=""):
    """Raise a ValueError if the weights of the classes (K,) are too large or too small to compute with."""
    if not (totals.min() >= _LEAST_SHARE * max(1.0, totals.sum()) and totals.sum() <= 1 / _LEAST_SHARE):
        numbers = " and ".join(f"{total:.3g}" for total in totals)
        raise ValueError(
            f"sample_weight and class_weight add up to {numbers} rows of the {'two ' * (len(totals) == 2)}classes"
            f"{more}. They must add up to at most {1 / _LEAST_SHARE:g}, and those of a class to no less than "
            f"{_LEAST_SHARE:g} of that, or of one row. {_COUNTS}"
        )


class Excess(NamedTuple):
    """What rows were observed, and what it does that a row of weight w counts as w rows."""

    observed: float  # number of rows; the sum of the weights that are counts of rows
    times: float = 1.0  # by how much the variance of the log odds of the classes is too small
    by_class: bool = False  # whether the weights are those of classes


def sums_by_class(codes, weight, n_classes=2):
    """Sums over the rows of each class of 1, the weights, their squares, whether they are 1, and whether not whole.

    Those of other rows can be added. weight : (n,) or None.
    """
    weight = np.ones(len(codes)) if weight is None else weight
    values = (np.ones_like, np.asarray, np.square, lambda w: w == 1, lambda w: w != np.rint(w))
    return np.stack([np.bincount(codes, f(weight), n_classes) for f in values])


def excess(sums, by_class):
    """``Excess``. sums : of ``sums_by_class``, of the weights without those of classes, by_class (K,).

    The variance is the sum of 1 / n_k (Woolf 1955, of two classes), where rows of different weights, each observed
    once, are worth (sum w)^2 / sum w^2 rows (Kish 1965). Whole weights are counts of rows if each class has rows of
    weight 1.
    """
    n, totals, squares, n_ones, n_broken = sums
    if n_ones.all() and not n_broken.any():
        n = worth = totals
    else:
        worth = totals**2 / squares
    are_alike = (worth > (1 - _EQUAL) * n).all()  # in each class
    of_classes_alone = are_alike and np.ptp(means := totals / n) > _EQUAL * means.max()
    times = (1 / worth).sum() / (1 / (totals * by_class)).sum()
    return Excess(float(n.sum()), float(times), bool((by_class != 1).any() or of_classes_alone))


def of_classes(class_weight, classes, y, weight):
    """The weights of the classes. y, weight : labels and weights of rows."""
    by_label = class_weight if isinstance(class_weight, dict) else {}
    if not all(isinstance(value, Real) and abs(value) < 1e300 for value in by_label.values()):
        raise ValueError(f"class_weight={class_weight} must be positive and finite numbers for each class.")
    unknown = [label for label in by_label if label not in classes]
    if unknown and len(by_label) - len(unknown) < len(classes):  # a class of y has no weight
        raise ValueError(f"class_weight has the class {unknown[0]!r}, but the classes of y are {classes.tolist()}.")
    if class_weight == "balanced":
        weights = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weight)
    else:  # of which scikit-learn would look for the number 1 where a label is the text "1"
        weights = np.array([by_label.get(label, 1) for label in classes.tolist()], np.float64)
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight={class_weight} must be positive and finite for each class.")
    return weights


def is_whole(weight):
    """Whether all weights are whole, so that rows can be repeated in their place."""
    return weight is None or bool((weight == np.rint(weight)).all())


def is_wide(X, weight):
    """Whether X has clearly more columns than rows, counted by weight."""
    return X.shape[1] > _COLUMNS_TO_A_ROW * (X.shape[0] if weight is None else weight.sum())


def arrange(X, y, weight, sampler, more=()):
    """The same data in the form that the sampler takes: "hmc" takes weights, the others take repeated rows.

    A small X is sorted, and for "hmc" its equal rows are merged. Then the draws depend neither on the order of the rows
    nor on whether a row is repeated or has a weight. more : other arrays with an entry for each row, or None; equal
    rows are equal in these too.
    """
    if X.shape[0] * X.shape[1] <= _SORTED_SIZE:
        keys = [key for values in more if values is not None for key in np.atleast_2d(values.T)]
        order = np.lexsort((*keys, y, *dense(device.to_host(X)).T[::-1]))
        X, y, weight, *more = _take_rows(order, (X, y, weight, *more))
        if sampler == "hmc":
            X, y, weight, *more = _merge_equal_rows(X, y, weight, more)
    if weight is None or sampler == "hmc":
        return X, y, weight, *more
    if not is_whole(weight):
        raise ValueError(
            f"sampler={sampler!r} draws a latent variable for each row, so weights (sample_weight, class_weight) must "
            "be integers. Use sampler='hmc' or 'auto', which accept any."
        )
    why = f"Repeating rows as often as their weights say, as sampler={sampler!r} needs it,"
    _check_copy(X, weight.sum(), why, " Use sampler='hmc', which honours weights as they are.")
    times = weight.astype(np.int64)
    X, y, *more = _take_rows(np.repeat(np.arange(len(y)), times), (X, y, *more))
    return X, y, None, *more


def _take_rows(rows, arrays):
    """Rows, by a mask or by numbers, of X and of other arrays or None."""
    X, *others = arrays
    with device.context_of(X):  # with a mask CuPy would need memory for every element of X
        X = X[np.flatnonzero(rows) if rows.dtype == bool else rows]
    return X, *(None if values is None else values[rows] for values in others)


def _check_copy(X, n_rows, what, cure=""):
    """Raise a MemoryError if the host has no room for a copy of so many rows; CuPy raises one by itself."""
    if isinstance(X, np.ndarray) or issparse(X):
        n_bytes = X.data.nbytes + X.indices.nbytes if issparse(X) else X.nbytes
        check_copy(float(n_rows) * n_bytes / X.shape[0], what, cure)


def _merge_equal_rows(X, y, weight, more):
    """Merge equal neighbours into one row, with the sum of their weights."""
    values = dense(device.to_host(X))
    differ = (values[1:] != values[:-1]).any(axis=1)
    for others in (y, *more):
        if others is not None:
            differ |= (others[1:] != others[:-1]).any(axis=tuple(range(1, others.ndim)))
    first = np.append(True, differ)
    if first.all():
        return X, y, weight, *more
    at = np.flatnonzero(first)
    X, y, *more = _take_rows(at, (X, y, *more))
    return X, y, np.add.reduceat(np.ones(len(first)) if weight is None else weight, at), *more
