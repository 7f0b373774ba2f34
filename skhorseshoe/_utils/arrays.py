"""Arrays, dense and sparse."""

from decimal import Decimal

import numpy as np
import pandas as pd
from scipy.sparse import issparse

_NUMBER_KINDS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")  # answers of infer_dtype


def dense(X):
    """A sparse array as a NumPy array; anything else unchanged."""
    return X.toarray() if issparse(X) else X


def kind_of(objects):
    """The kind of the objects that are not missing: "numbers", "times" (dates and durations too) or "others"."""
    kind = pd.api.types.infer_dtype(objects)
    return "numbers" if kind in _NUMBER_KINDS else "times" if kind.startswith(("date", "time", "period")) else "others"


def is_missing(values):
    """``pandas.isna``, also for a signaling NaN of Decimal, where pandas raises an error or, before 2.2, is wrong."""
    objects = np.ravel(values)
    if objects.dtype != object:
        return pd.isna(values)
    is_nan = np.fromiter((isinstance(value, Decimal) and value.is_nan() for value in objects), bool)
    return pd.isna(np.where(is_nan, np.nan, objects)).reshape(np.shape(values))


def first_not_finite(values):
    """The indices of the first number of a float array that is not finite, a tuple; None if all are."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.promote_types(values.dtype, np.float32))
    if np.isfinite(total):  # nearly always: no mask is needed
        return None
    wrong = np.argwhere(~np.isfinite(values))
    return tuple(wrong[0].tolist()) if len(wrong) else None


def first_whole_rounded(values):
    """The first number of a float array (n,) so large that its type may have made it of another whole number; None if
    there is none, and for other arrays."""
    if values.dtype.kind != "f":
        return None
    large = np.abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)
    return values[large.argmax()].item() if large.any() else None


def refuse_masked(values, name):
    """Raise a ValueError if an array, or one in a list, has masked values, which NumPy would take for data."""
    for i, array in enumerate(values if isinstance(values, list | tuple) else [values]):
        if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
            within = np.argwhere(np.ma.getmaskarray(array))[0].tolist()
            row, *column = within if array is values else [i, *within]
            where = f"row {row}{f' of column {column[0]}' if column else ''}"
            cure = "leave such rows out"
            if column:
                cure = "impute them: X.filled(np.nan), then SimpleImputer in a Pipeline"
            raise ValueError(f"{name} is a masked array, and the first value under its mask is in {where}: {cure}.")
