"""Whole numbers: small ones, which float32 has room for, and those of which float64 makes one of two."""

import re
from decimal import Decimal
from numbers import Integral

import numpy as np
from scipy.sparse import issparse

from .column_names import column_types

_EXACT = 2**53  # up to where float64 has every whole number
_SMALL = re.compile(r"(sparse\[)?(u?int(8|16)|bool(ean)?)\b")  # every one of which float32 has
_TYPES = ("int", "uint", "object", "decimal", "sparse[int", "sparse[uint")


def are_small(X, types):
    """Whether X holds nothing but booleans and whole numbers of at most 16 bits. types : of the columns of a table."""
    names = [dtype for _, dtype in types] or [str(getattr(X, "dtype", ""))]
    return all(map(_SMALL.match, names))


def refuse_merged(given, X):
    """Raise a ValueError that names a column of whole numbers of which float64 makes one of two.

    given : the rows as a user has them. X : their numbers (n, p), dense or CSR.
    """
    for name, values in _columns(given, X):
        distinct = np.unique(_large(values))
        merged = np.flatnonzero(distinct[1:].astype(np.float64) == distinct[:-1].astype(np.float64))
        if len(merged):
            one, other = distinct[merged[0] : merged[0] + 2]
            raise ValueError(
                f"Column {name!r} holds whole numbers that float64 cannot tell apart, such as {one} and {other}. Leave "
                "an identifier out; of an amount subtract the least value."
            )


def _columns(given, X):
    """Names and values of the columns that are not floats and have large numbers."""
    if types := column_types(given):
        some = (types[j] for j in range(len(types)) if types[j][1].startswith(_TYPES) and _is_large(X[:, [j]]))
        return ((name, _values(given[name], dtype)) for name, dtype in some)
    is_list = isinstance(given, list | tuple)
    given = given if issparse(given) else np.asarray(given, object if is_list else None)
    if given.dtype.kind not in "iuO" or not _is_large(X):
        return ()
    given = given.tocsc() if issparse(given) else given
    return ((j, given[:, [j]].data if issparse(given) else given[:, j]) for j in range(X.shape[1]))


def _values(column, dtype):
    return np.array(column.to_list(), object) if "int128" in dtype else np.asarray(column)


def _is_large(X):
    return X.shape[0] > 0 and max(X.max(), -X.min()) > _EXACT


def _large(values):
    """Those of the numbers that float64 need not have."""
    if values.dtype.kind == "O":
        whole = [value for value in values if isinstance(value, Integral | Decimal) and abs(value) > _EXACT]
        return np.array(whole, dtype=object)
    return values[(values > _EXACT) | (values < -_EXACT)] if values.dtype.kind in "iu" else values[:0]
