"""Whole numbers so large that float64 cannot tell them apart."""

from decimal import Decimal
from numbers import Integral

import numpy as np
from scipy.sparse import issparse

_LARGEST_EXACT = 2**53  # float64 holds every whole number up to this one
_TYPES = ("int", "uint", "object", "decimal", "sparse[int", "sparse[uint")


def refuse_merged(table, X):
    """Raise a ValueError that names a column with different whole numbers that are equal in float64. X : the numbers
    (n, p) of a ``Table``, dense or CSR."""
    for name, values in _large_columns(table, X):
        distinct = np.unique(_large(values))
        merged = np.flatnonzero(distinct[1:].astype(np.float64) == distinct[:-1].astype(np.float64))
        if len(merged):
            a, b = distinct[merged[0] : merged[0] + 2]
            raise ValueError(
                f"Column {name!r} holds whole numbers that float64 cannot tell apart, such as {a} and {b}. Leave "
                "an identifier out; of an amount subtract the least value."
            )


def _large_columns(table, X):
    """Names and values of the columns that are not floats and have large numbers."""
    original, names, types = table.rows, table.names, table.types
    if types:
        large = (j for j in range(len(types)) if types[j].startswith(_TYPES) and _is_large(X[:, [j]]))
        return ((names[j], _values(original[names[j]], types[j])) for j in large)
    is_list = isinstance(original, list | tuple)
    original = original if issparse(original) else np.asarray(original, object if is_list else None)
    if original.dtype.kind not in "iuO" or not _is_large(X):
        return ()
    original = original.tocsc() if issparse(original) else original
    return ((j, original[:, [j]].data if issparse(original) else original[:, j]) for j in range(X.shape[1]))


def _values(column, dtype):
    return np.array(column.to_list(), object) if "int128" in dtype else np.asarray(column)


def _is_large(X):
    return X.shape[0] > 0 and max(X.max(), -X.min()) > _LARGEST_EXACT


def _large(values):
    """The numbers that are too large for float64 to hold every one."""
    if values.dtype.kind == "O":
        large = [value for value in values if isinstance(value, Integral | Decimal) and abs(value) > _LARGEST_EXACT]
        return np.array(large, dtype=object)
    return values[(values > _LARGEST_EXACT) | (values < -_LARGEST_EXACT)] if values.dtype.kind in "iu" else values[:0]
