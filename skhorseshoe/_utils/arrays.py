"""Arrays, dense and sparse."""

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


def first_not_finite(values):
    """Indices of the first number of an array (of floats) that is not finite, a tuple; None if there is none."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.promote_types(values.dtype, np.float32))
    if np.isfinite(total):  # as nearly always, and no mask is made
        return None
    wrong = np.argwhere(~np.isfinite(values))
    return tuple(wrong[0].tolist()) if len(wrong) else None
