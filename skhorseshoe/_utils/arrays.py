"""Arrays, dense and sparse."""

from decimal import Decimal

import numpy as np
import pandas as pd
from scipy.sparse import issparse

_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")  # as pandas says of objects


def dense(X):
    """A sparse array as one of NumPy; anything else as it is."""
    return X.toarray() if issparse(X) else X


def kind_of(objects):
    """What objects are, those that are missing aside: "numbers", "times" (dates and durations too) or "others"."""
    kind = pd.api.types.infer_dtype(objects)
    return "numbers" if kind in _NUMBERS else "times" if kind.startswith(("date", "time", "period")) else "others"


def is_missing(values):
    """``pandas.isna``, also of the signaling NaN of a Decimal, for which it raises an error or, before pandas 2.2, is
    wrong."""
    objects = np.ravel(values)
    if objects.dtype != object:
        return pd.isna(values)
    is_nan = np.fromiter((isinstance(one, Decimal) and one.is_nan() for one in objects), bool)
    return pd.isna(np.where(is_nan, np.nan, objects)).reshape(np.shape(values))


def first_not_finite(values):
    """Indices of the first number of an array (of floats) that is not finite, a tuple; None if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.promote_types(values.dtype, np.float32))
    if np.isfinite(total):  # as nearly always, and no mask is made
        return None
    wrong = np.argwhere(~np.isfinite(values))
    return tuple(wrong[0].tolist()) if len(wrong) else None


def refuse_masked(values, name):
    """Raise a ValueError for values under a mask, which NumPy would take for data, in an array or a list of arrays."""
    for i, part in enumerate(values if isinstance(values, list | tuple) else [values]):
        if isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part):
            within = np.argwhere(np.ma.getmaskarray(part))[0].tolist()
            row, *column = within if part is values else [i, *within]
            where = f"row {row}{f' of column {column[0]}' if column else ''}"
            cure = "leave such rows out"
            if column:
                cure = "impute them: X.filled(np.nan), then SimpleImputer in a Pipeline"
            raise ValueError(f"{name} is a masked array, and the first value under its mask is in {where}: {cure}.")
