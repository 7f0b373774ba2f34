"""Groups of rows, such as the rows of one patient, and offsets."""

from datetime import date
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._backends import device
from .._utils.arrays import first_not_finite, refuse_masked
from .._utils.warn import warn
from .labels import check_labels
from .validation import is_dask

_KINDS = {"text": str, "bytes": bytes, "durations": np.timedelta64}  # a NumPy duration is a subtype of numbers
_KINDS |= {"numbers": (bool, int, float, np.bool_, np.number), "dates": (np.datetime64, date)}
_LARGEST_OFFSET = 1e6  # its square leaves enough digits for the likelihood
_HERE = (
    "{name} goes with rows in the memory of this process, or on its disk (skhorseshoe.disk), not with Dask "
    "collections: compute() them first."
)
REORDERED = "X and {name} have the same index labels in another order, and rows are matched by position, not by label."
MATCH_BY_LABEL = "{name}.loc[X.index] matches them by label."


class Groups(NamedTuple):
    """The groups of the sampler's rows."""

    codes: np.ndarray  # (n,) int32, from 0
    n: int  # number of groups
    scale: float  # scale of the half-Cauchy prior of s, the standard deviation of the groups' effects


def refuse_dask(X, **of_rows):
    """Raise a TypeError if groups or an offset are given and X or they are Dask collections."""
    for name, values in of_rows.items():
        if values is not None and is_dask(X, values):
            raise TypeError(_HERE.format(name=name))


def is_reordered(X, values):
    """Whether both are of pandas, with the same index labels in another order."""
    index, other = (getattr(table, "index", None) for table in (X, values))
    if not isinstance(index, pd.Index) or not isinstance(other, pd.Index) or len(index) != len(other):
        return False
    return bool(not index.equals(other) and index.isin(other).all() and other.isin(index).all())


def warn_if_reordered(X, **of_rows):
    """Warn of each argument that ``is_reordered``."""
    for name, values in of_rows.items():
        if is_reordered(X, values):
            warn(f"{REORDERED} {MATCH_BY_LABEL}".format(name=name))


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


def _check_shape(name, shape, n, entry):
    if shape != (n,):
        raise ValueError(f"{name} has the shape {shape}, and X has {n} rows: give one {entry} for each row.")


def encode_groups(labels):
    """The labels of the groups, sorted, and the code of each row's group, int32. labels : from ``check_groups``."""
    if labels.dtype.kind in "OU":  # for these, hashing is faster than sorting
        codes, groups = pd.factorize(labels.astype(object), sort=True)
        return np.asarray(groups, labels.dtype), codes.astype(np.int32)
    groups, codes = np.unique(labels, return_inverse=True)
    return groups, codes.ravel().astype(np.int32)


def check_sizes(codes, weight):
    """Raise a ValueError if no group has two rows. weight : of the rows, or None."""
    n = len(codes)
    if np.bincount(codes).max() > 1 or (weight is not None and np.bincount(codes, weight).max() > 1):
        return
    raise ValueError(
        f"groups has {n} labels for {n} rows: no two rows belong together, so the data do not tell what a group does. "
        "Leave groups out, or give labels that rows share, such as the numbers of patients."
    )


def known_codes(groups, labels):
    """The code of each row's group among the groups of a fit, -1 for other groups; int32."""
    of_fit, kind = (_kind_of(values) for values in (groups, labels))
    if len(labels) and of_fit != kind:
        raise ValueError(
            f"groups holds {kind}, and in fit it held {of_fit}: no label could be one of these. Convert it, for "
            "example by astype(str)."
        )
    return _index_of(groups).get_indexer(_index_of(labels)).astype(np.int32)


def _index_of(labels):
    """An index that finds equal labels whatever their types: True, 1 and 1.0 are the same."""
    if labels.dtype == object and len(labels) and issubclass(type(labels[0]), bool | np.bool_):
        labels = labels.astype(bool)
    wide = {"b": np.int64, "f": np.float64, "U": object}.get(labels.dtype.kind)
    return pd.Index(
        labels if wide is None else labels.astype(wide), dtype=object if labels.dtype.kind in "OU" else None
    )


def _kind_of(labels):
    """The kind of the labels in words."""
    kind = type(labels[0]) if labels.dtype == object and len(labels) else labels.dtype.type
    kinds = [words for words, types in _KINDS.items() if issubclass(kind, types)]
    return kinds[0] if kinds else f"labels of type {kind.__name__}"
