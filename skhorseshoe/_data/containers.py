"""What X is given as: whether it holds rows, and the cure if it does not."""

from collections.abc import Iterable, Mapping, Set
from os import PathLike

import numpy as np
from scipy.sparse import issparse

from .column_names import column_types

GIVE = "Give an array, a table or a sparse matrix of shape (n_samples, n_features)."


def as_rows(X):
    """X, or an array of it if only NumPy can read it; a TypeError if it holds no rows.

    NumPy alone would search other objects that have a length for numbers, to a depth of 64 or without end.
    """
    is_array = any(hasattr(X, name) for name in ("__array__", "__array_interface__", "__array_struct__"))
    is_rows = isinstance(X, list | tuple) or issparse(X) or (is_array and hasattr(X, "shape"))
    if not isinstance(X, type) and (is_rows or column_types(X)):
        return X
    if not isinstance(X, type) and (is_array or isinstance(X, memoryview)):
        try:
            return np.asarray(X)
        except Exception as error:  # foreign code may raise anything
            raise ValueError(f"X, of type {_kind(X)}, cannot be read as an array: {error}. {_allowed(X)}") from error
    raise TypeError(f"X holds no rows: it is {' '.join(repr(X).split()):.80}, of type {_kind(X)}. {_allowed(X)}")


def of_no_numbers(X):
    """In words what the rows of X are, and the cure, where a list or an array has other things than numbers or rows of
    them; "" for all else."""
    if fields := getattr(getattr(X, "dtype", None), "names", None):
        return f"X is an array of records with the fields {list(fields)!r:.60}. pandas.DataFrame(X) makes it a table."
    is_array = isinstance(X, np.ndarray) and X.dtype.kind in "OSU" and X.ndim == 1
    if not (is_array or isinstance(X, list | tuple)) or not len(X):
        return ""
    if isinstance(X[0], Mapping):
        return f"The rows of X are of type {_kind(X[0])}. pandas.DataFrame(list(X)) makes a table of them."
    if isinstance(X[0], str | bytes | Set) or not isinstance(X[0], Iterable):
        return f"The rows of X are of type {_kind(X[0])}, as {X[0]!r:.60}, and no sequences of numbers. {GIVE}"
    try:
        lengths = [len(row) for row in X]
    except TypeError:
        return ""
    other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    return "" if other is None else f"Row 0 of X has {lengths[0]} entries, and row {other} has {lengths[other]}. {GIVE}"


def _kind(X):
    return type(X).__name__


def _allowed(X):
    """What is allowed, and what to do with some containers that are none of it."""
    cure = ""
    if hasattr(X, "mod") and hasattr(X, "obs"):  # of mudata
        cure = f" It holds several tables: give one, such as X[{next(iter(X.mod), 'rna')!r}].to_df()."
    elif all(hasattr(X, name) for name in ("X", "obs", "var")):  # of anndata
        cure = " Its numbers, of cells by genes, are X.X, or with the names of the genes X.to_df()."
    elif "GroupBy" in _kind(X):
        cure = " The table itself is one; labels of what rows belong to are given as fit(X, y, groups=...)."
    elif hasattr(X, "to_dataframe"):  # of xarray
        cure = " X.to_dataframe() is a table."
    elif isinstance(X, Mapping):
        cure = " pandas.DataFrame(X) makes a table of a dict of columns."
    elif isinstance(X, str | PathLike) or hasattr(X, "read"):
        cure = " Read a file first, for example with pandas.read_csv or skhorseshoe.disk.convert."
    elif isinstance(X, Iterable) and not isinstance(X, Set | type):
        cure = " If its entries are rows, list(X) is one."
    return GIVE + cure
