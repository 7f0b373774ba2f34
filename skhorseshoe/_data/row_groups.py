"""What rows bring along beside their columns: the group that each belongs to, such as a patient, and an offset."""

from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._backends import device
from .._utils.arrays import first_not_finite, refuse_masked
from .labels import check_labels
from .validation import is_dask

_KINDS = {"text": str, "bytes": bytes, "durations": np.timedelta64}  # NumPy takes a duration for a number
_KINDS |= {"numbers": (bool, int, float, np.bool_, np.number), "dates": (np.datetime64, date)}
_LARGEST_OFFSET = 1e6  # whose square leaves enough digits to the likelihood
_HERE = (
    "{name} goes with rows in the memory of this process, or on its disk (skhorseshoe.disk), not with Dask "
    "collections: compute() them first."
)


class Groups(NamedTuple):
    """To which group each of the rows belongs, as the sampler has them."""

    codes: np.ndarray  # (n,) int32, from 0
    n: int  # number of groups
    scale: float  # of the half-Cauchy prior of s, the standard deviation of the groups' effects


def refuse_dask(X, **of_rows):
    """Raise a TypeError where something that is given of the rows cannot be had of Dask's."""
    for name, values in of_rows.items():
        if values is not None and is_dask(X, values):
            raise TypeError(_HERE.format(name=name))


def check_rows(groups, offset, n):
    """The labels of the groups of n rows and their offsets, checked; each (n,), or None."""
    return (
        None if groups is None else check_groups(groups, n),
        None if offset is None else check_offset(offset, n),
    )


def check_groups(groups, n):
    """The labels of the groups of n rows, checked; (n,)."""
    shape = np.shape(groups)
    _check_shape("groups", shape[:1] if shape[1:] == (1,) else shape, n, "label")
    return check_labels(groups, "groups")


def check_offset(offset, n):
    """The offsets of n rows, checked; (n,) float64."""
    refuse_masked(offset, "offset")
    array = np.asarray(device.to_host(offset))
    if array.dtype.kind not in "biufO":
        raise ValueError(f"offset must be numbers, one for each row; got {array.dtype}.")
    try:
        array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"offset must be finite numbers, one for each row: {error}.") from error
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    _check_shape("offset", array.shape, n, "number")
    if first := first_not_finite(array):
        raise ValueError(f"offset must be finite numbers; that of row {first[0]} is {array[first]}.")
    if abs(array).max(initial=0.0) > _LARGEST_OFFSET:
        raise ValueError(
            f"The offset of row {abs(array).argmax()} is {array[abs(array).argmax()]:.3g}, and no score is beyond "
            f"{_LARGEST_OFFSET:g}: is it on the probit scale, as norm.ppf(p) of a probability p?"
        )
    return array


def _check_shape(name, shape, n, what):
    if shape != (n,):
        raise ValueError(f"{name} has the shape {shape}, and X has {n} rows: give one {what} for each row.")


def encode_groups(labels):
    """The groups, sorted, and the number of that of each row, int32. labels : as ``check_groups`` gives them."""
    if labels.dtype.kind in "OU":  # which are found sooner than they are sorted
        codes, groups = pd.factorize(labels.astype(object), sort=True)
        return np.asarray(groups, labels.dtype), codes.astype(np.int32)
    groups, codes = np.unique(labels, return_inverse=True)
    return groups, codes.ravel().astype(np.int32)


def check_sizes(codes, weight):
    """Raise a ValueError where no group has two rows. weight : of the rows, or None."""
    n = len(codes)
    if np.bincount(codes).max() > 1 or (weight is not None and np.bincount(codes, weight).max() > 1):
        return
    raise ValueError(
        f"groups has {n} labels for {n} rows: no two rows belong together, so the data do not tell what a group does. "
        "Leave groups out, or give labels that rows share, such as the numbers of patients."
    )


def known_codes(groups, labels):
    """The number of the group of each row among those of a fit, -1 for others; int32."""
    of_fit, given = (_kind_of(values) for values in (groups, labels))
    if len(labels) and of_fit != given:
        raise ValueError(
            f"groups holds {given}, and in fit it held {of_fit}: no label could be one of these. Convert it, for "
            "example by astype(str)."
        )
    return _index_of(groups).get_indexer(_index_of(labels)).astype(np.int32)


def _index_of(labels):
    """An index in which labels are found that are equal, whatever their types: True is 1, and 1.0 too."""
    if labels.dtype == object and len(labels) and issubclass(type(labels[0]), bool | np.bool_):
        labels = labels.astype(bool)
    wide = {"b": np.int64, "f": np.float64, "U": object}.get(labels.dtype.kind)
    return pd.Index(
        labels if wide is None else labels.astype(wide), dtype=object if labels.dtype.kind in "OU" else None
    )


def _kind_of(labels):
    """In words."""
    kind = type(labels[0]) if labels.dtype == object and len(labels) else labels.dtype.type
    found = [words for words, types in _KINDS.items() if issubclass(kind, types)]
    return found[0] if found else f"labels of type {kind.__name__}"
