"""Weights of rows: a row of weight w counts as w rows."""

from numbers import Real

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight

from .._backends import device
from .._utils.arrays import dense, refuse_masked
from .._utils.memory import check_copy
from .._utils.sklearn_compat import _check_sample_weight
from .labels import encode_labels

_LEAST_SHARE = 1e-15  # smallest share of a class that floating-point numbers can tell from 0
_COUNTS = "A row of weight w counts as w rows: divide the weights by what makes them numbers of rows."
_COLUMNS_TO_A_ROW = 1.2  # columns to a row from which n x n matrices give more independent draws a second
_SORTED_SIZE = 2**16  # largest X, in numbers, whose rows are sorted


def rows_that_count(X, y, sample_weight, class_weight, more=(), order=None):
    """X, the labels as 0 and 1, the weights, the two classes and ``more``, without the rows of weight 0.

    The weights are float64, or None if all are 1. more : arrays with an entry for each row, or None. order : of labels,
    from ``order_of``.
    """
    if sample_weight is None and class_weight is None:
        classes, codes = encode_labels(y, order=order)
        return X, codes, None, classes, *more
    try:
        weight = check_weights(device.to_host(sample_weight), y, copy=True)
    except OverflowError as error:
        raise ValueError(f"sample_weight holds a whole number that is too large ({error}). {_COUNTS}") from error
    counts = weight > 0
    if not counts.all():
        _check_copy(X, counts.sum(), "Dropping the rows of weight 0")
        X, y, weight, *more = _of_rows(counts, (X, y, weight, *more))
    classes, codes = encode_labels(y, "" if counts.all() else " without the rows of weight 0", order)
    if class_weight is not None:
        weight *= of_classes(class_weight, classes, y, weight)[codes]
    row = np.flatnonzero(counts)[weight.argmax()]
    check_totals(np.bincount(codes, weight, 2), f"; the largest, in row {row}, is {weight.max():.3g}")
    return X, codes, None if (weight == 1).all() else weight, classes, *more


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


def check_totals(totals, more=""):
    """Raise a ValueError if the weights of the two classes (2,) are too large or too small to compute with."""
    if not (totals.min() >= _LEAST_SHARE * max(1.0, totals.sum()) and totals.sum() <= 1 / _LEAST_SHARE):
        raise ValueError(
            f"sample_weight and class_weight add up to {totals[0]:.3g} and {totals[1]:.3g} rows of the two classes"
            f"{more}. They must add up to at most {1 / _LEAST_SHARE:g}, and those of a class to no less than "
            f"{_LEAST_SHARE:g} of that, or of one row. {_COUNTS}"
        )


def of_classes(class_weight, classes, y, weight):
    """The weights of the two classes. y, weight : labels and weights of rows."""
    by_label = class_weight if isinstance(class_weight, dict) else {}
    if not all(isinstance(value, Real) and abs(value) < 1e300 for value in by_label.values()):
        raise ValueError(f"class_weight={class_weight} must be positive and finite numbers for both classes.")
    unknown = [label for label in by_label if label not in classes]
    if unknown and len(by_label) - len(unknown) < len(classes):  # a class of y has no weight
        raise ValueError(f"class_weight has the class {unknown[0]!r}, but the classes of y are {classes.tolist()}.")
    weights = compute_class_weight(class_weight, classes=classes, y=y, sample_weight=weight)
    if not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError(f"class_weight={class_weight} must be positive and finite for both classes.")
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
        keys = [values for values in more if values is not None]
        order = np.lexsort((*keys, y, *dense(device.to_host(X)).T[::-1]))
        X, y, weight, *more = _of_rows(order, (X, y, weight, *more))
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
    X, y, *more = _of_rows(np.repeat(np.arange(len(y)), times), (X, y, *more))
    return X, y, None, *more


def _of_rows(rows, arrays):
    """Rows, by a mask or by numbers, of X and of other arrays or None."""
    X, *others = arrays
    with device.context_of(X):  # with a mask CuPy would need memory for every element of X
        X = X[np.flatnonzero(rows) if rows.dtype == bool else rows]
    return X, *(None if values is None else values[rows] for values in others)


def _check_copy(X, n_rows, what, cure=""):
    """Raise a MemoryError if the host has no room for a copy of so many rows; CuPy raises one by itself."""
    if not device.on_gpu(X):
        n_bytes = X.data.nbytes + X.indices.nbytes if issparse(X) else X.nbytes
        check_copy(float(n_rows) * n_bytes / X.shape[0], what, cure)


def _merge_equal_rows(X, y, weight, more):
    """Merge equal neighbours into one row, with the sum of their weights."""
    values = dense(device.to_host(X))
    differ = (values[1:] != values[:-1]).any(axis=1)
    for others in (y, *more):
        if others is not None:
            differ |= others[1:] != others[:-1]
    first = np.append(True, differ)
    if first.all():
        return X, y, weight, *more
    at = np.flatnonzero(first)
    X, y, *more = _of_rows(at, (X, y, *more))
    return X, y, np.add.reduceat(np.ones(len(first)) if weight is None else weight, at), *more
