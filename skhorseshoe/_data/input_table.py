"""X as a user gives it, read once: its rows, and the names and the types of the columns of a table."""

import re
from collections.abc import Iterable, Mapping, Set
from copy import copy
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._backends import device
from .._backends.sparse_structure import check as check_structure
from .._utils.arrays import refuse_masked
from .._utils.memmap import check_whole
from .._utils.memory import check_copy
from .._utils.names import RESERVED, check_different
from .._utils.warn import warn

GIVE = "Give an array, a table or a sparse matrix of shape (n_samples, n_features)."
TIMES_CURE = "Convert them to a meaningful number, such as days since an event, or drop them."
_TIME_TYPES = ("date", "time", "duration", "period")  # NumPy would take their values for numbers
# NumPy would take values of these types for numbers if they look like numbers.
LEVEL_TYPES = ("categor", "dictionary", "enum", "str", "utf8", "large_", "binary", "fixed_")
_HERE = (
    "{name} goes with rows in the memory of this process, or on its disk (skhorseshoe.disk), not with Dask "
    "collections: compute() them first."
)
REORDERED = "X and {name} have the same index labels in another order, and rows are matched by position, not by label."
MATCH_BY_LABEL = "{name}.loc[X.index] matches them by label."
_SMALL = re.compile(r"(sparse\[)?(u?int(8|16)|bool(ean)?)\b")  # types all of whose values float32 holds
_SMALL_TYPES = {*map(np.dtype, ("int8", "int16", "uint8", "uint16", "bool"))}  # of an array


class Table(NamedTuple):
    """Rows with what is known of their columns; the names and the types are empty for anything but a table."""

    rows: Any  # an array, a list, a sparse matrix or a table
    names: list
    types: list  # texts in lower case
    is_on_gpu: bool = False

    @property
    def is_sparse(self):
        """Whether it is a table of sparse pandas columns alone, which become a CSR matrix."""
        return bool(self.types) and all(dtype.startswith("sparse[") for dtype in self.types)

    @property
    def dtypes(self):
        """Types that its numbers may have; the first is for those of all other types."""
        own = getattr(self.rows, "dtype", None)
        if all(map(_SMALL.match, self.types)) if self.types else isinstance(own, np.dtype) and own in _SMALL_TYPES:
            return [np.float32]
        return [np.float64, np.float32] if issparse(self.rows) else [np.float64, np.float32, np.float16]


def read_X(X):
    """``Table`` of X, whose rows scikit-learn can take; an error that says what is wrong with what holds them."""
    if device.on_gpu(X):
        return Table(device.checked(X), [], [], is_on_gpu=True)
    refuse_lazy(X)
    rows = as_rows(X)
    if len(getattr(rows, "columns", ["X"])) == 0:
        raise ValueError(f"X is a table without columns: 0 feature(s) (shape={rows.shape}) while 1 is required.")
    table = table_of(_well_formed(rows) if issparse(rows) else rows)
    _refuse_times(table)
    _check_room(table)
    check_whole(rows)
    refuse_masked(rows, "X")
    check_different(table.names, "X", "Rename them, or leave all names out: X.to_numpy().")
    if taken := [name for name in table.names if name in RESERVED]:
        raise ValueError(f"X has a column named {taken[0]!r}, as a row of summary() is: rename it, or leave it out.")
    return table


def table_of(rows):
    """``Table`` of rows that are not checked."""
    names, types = [], []
    if hasattr(rows, "schema") and hasattr(rows, "column_names"):  # pyarrow
        names, types = rows.column_names, rows.schema.types
    elif hasattr(rows, "columns") and hasattr(rows, "dtypes"):
        names, types = rows.columns, rows.dtypes
    return Table(rows, list(names), [str(dtype).lower() for dtype in types])


def is_dask(*collections):
    """Whether one of the arguments is a Dask collection; does not import Dask."""
    return any(type(collection).__module__.split(".")[0] in ("dask", "dask_expr") for collection in collections)


def refuse_lazy(X):
    """Raise a TypeError for a Dask collection or a polars LazyFrame."""
    if is_dask(X):
        raise TypeError("X is a Dask collection, and this is computed in memory: give a sample of its rows.")
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a LazyFrame, which has no rows yet: give X.collect(), or what skhorseshoe.disk.convert makes of it."
        )


def refuse_dask(X, **by_row):
    """Raise a TypeError if groups or an offset are given and X or they are Dask collections."""
    for name, values in by_row.items():
        if values is not None and is_dask(X, values):
            raise TypeError(_HERE.format(name=name))


def reordered(X, by_row):
    """The names of the arguments of ``by_row`` that have the index labels of X in another order; of a dict its own."""
    for name, values in by_row.items():
        parts = {name: values}
        if isinstance(values, Mapping):
            parts = {f"{name}[{key!r}]": part for key, part in values.items()}
        yield from (part for part, labelled in parts.items() if _is_reordered(X, labelled))


def _is_reordered(X, values):
    """Whether both are of pandas, with the same index labels in another order."""
    index, other = (getattr(table, "index", None) for table in (X, values))
    if not isinstance(index, pd.Index) or not isinstance(other, pd.Index) or len(index) != len(other):
        return False
    return bool(not index.equals(other) and index.isin(other).all() and other.isin(index).all())


def warn_if_reordered(X, **by_row):
    for name in reordered(X, by_row):
        warn(f"{REORDERED} {MATCH_BY_LABEL}".format(name=name))


def example_for_fit(X):
    """The ``example`` of a Dask collection; an error if X is none of rows that a fit can take."""
    if not is_dask(X):
        raise ValueError(
            "y or sample_weight is a Dask collection, but X is not: give X as one, or compute() the others. "
            "Transformers of scikit-learn before the classifier, such as StandardScaler in a Pipeline, bring X into "
            "memory: leave them out; standardize=True scales the columns on the cluster."
        )
    if X.ndim != 2 or not (hasattr(X, "columns") or isinstance(X._meta, np.ndarray)):
        raise ValueError(
            f"X must have two dimensions and chunks of NumPy arrays; it has {X.ndim}, of {type(X._meta).__name__}. "
            "Make such chunks with map_blocks: X.map_blocks(lambda block: block.toarray(), dtype=X.dtype, "
            "meta=numpy.empty((0, 0))) where they are sparse, X.map_blocks(cupy.asnumpy) where they are CuPy's."
        )
    return example(X)


def example(X):
    """Two rows in memory like those of a Dask collection, for checks of the columns."""
    if hasattr(X, "columns"):
        for name, dtype in X.dtypes.items():  # Dask would make up a text, which the error would name
            if str(dtype).lower().startswith(("object", *LEVEL_TYPES)):
                raise not_numeric(repr(name), f"its dtype is {dtype}")
        return X._meta_nonempty.iloc[[0, 0]]  # the second row that Dask makes up has missing values
    if np.isnan(X.shape[1]):
        raise ValueError(
            "X does not know how many columns it has. Give the number where it is made, as in dask.array.from_delayed("
            "part, (numpy.nan, 12), dtype), or have it counted: X.compute_chunk_sizes()."
        )
    if X.dtype.kind in "SU":
        raise not_numeric(0, f"its dtype is {X.dtype}")
    return np.zeros((2, X.shape[1]), X.dtype)


def not_numeric(column, why):
    """The error about a column of a Dask collection, by name or number."""
    return ValueError(
        f"Column {column} is not numeric: {why}. Convert it with astype(float) if it holds numbers. Of text and "
        "categories make columns of 0 and 1: X = dask.dataframe.get_dummies(X.categorize(), dtype=float); or drop it."
    )


def as_rows(X):
    """X, or an array of it if only NumPy can read it; a TypeError if it holds no rows.

    NumPy alone would search other objects that have a length for numbers, to a depth of 64 or without end.
    """
    is_array = any(hasattr(X, name) for name in ("__array__", "__array_interface__", "__array_struct__"))
    is_rows = isinstance(X, list | tuple) or issparse(X) or (is_array and hasattr(X, "shape"))
    if not isinstance(X, type) and (is_rows or table_of(X).types):
        return X
    if not isinstance(X, type) and (is_array or isinstance(X, memoryview)):
        try:
            return np.asarray(X)
        except Exception as error:  # foreign code may raise anything
            raise ValueError(f"X, of type {_kind(X)}, cannot be read as an array: {error}. {_allowed(X)}") from error
    raise TypeError(f"X holds no rows: it is {' '.join(repr(X).split()):.80}, of type {_kind(X)}. {_allowed(X)}")


def _refuse_times(table):
    dtype = getattr(table.rows, "dtype", None)
    found = [("X", dtype)] if getattr(dtype, "kind", None) in ("m", "M") else []
    columns = zip(table.names, table.types, strict=True)
    found += [(f"Column {name!r}", dtype) for name, dtype in columns if dtype.startswith(_TIME_TYPES)]
    if found:
        what, dtype = found[0]
        raise ValueError(f"{what} holds dates or durations (its dtype is {dtype}), not numbers. {TIMES_CURE}")


def _check_room(table):
    """Raise a MemoryError if the copy to come has no room."""
    cure = " Pass it in this form, or as float32, or put it on disk (skhorseshoe.disk)."
    X, types, dtypes = table.rows, table.types, table.dtypes
    if isinstance(X, np.ndarray) and not (X.dtype in dtypes and X.flags.c_contiguous):
        dtype = X.dtype if X.dtype in dtypes else np.dtype(dtypes[0])
        check_copy(dtype.itemsize * X.size, f"Making X C-contiguous and of {dtype}", cure)
    elif types and not table.is_sparse and {*types} not in ({"float32"}, {"float64"}):
        # A table of one float type may need no copy.
        dtype = np.dtype(dtypes[0])
        check_copy(dtype.itemsize * len(X) * len(types), f"Making one array of {dtype} of the columns of X", cure)
    elif issparse(X) and X.format != "csr":
        check_copy((X.dtype.itemsize + 8) * X.nnz, "Making X a CSR matrix", " Pass it in this form: X.tocsr().")


def _native(X):
    """A sparse X whose index arrays have the native byte order, which kernels need; a file may have another."""
    places = {name: getattr(X, name) for name in ("indices", "indptr", "row", "col", "offsets") if hasattr(X, name)}
    if all(array.dtype.isnative for array in places.values()):
        return X
    native = {name: array.astype(array.dtype.newbyteorder("=")) for name, array in places.items()}
    if X.format == "coo":  # its setters keep the byte order
        return type(X)((X.data, (native["row"], native["col"])), shape=X.shape)
    X = copy(X)
    vars(X).update(native)
    return X


def _well_formed(X):
    """A sparse X whose index arrays are checked; CSR in place of formats of lists or dicts."""
    if X.ndim != 2:
        return X  # scikit-learn raises the error
    X = _native(X)
    check_structure(X)
    if X.format in ("lil", "dok"):
        try:
            X = X.tocsr()
        except Exception as error:  # they may hold any object
            problem = f"X is a sparse matrix in {X.format!r} format whose parts do not fit together"
            raise ValueError(f"{problem} ({error}): build it anew.") from error
        check_structure(X)
    if X.dtype.kind not in "biufc":  # SciPy cannot compute with these
        problem = f"X is a sparse matrix whose stored values have dtype {X.dtype}"
        raise ValueError(f"{problem}; numbers are needed: X.data = X.data.astype(np.float64).")
    if X.format in ("csr", "csc") and len(X.indices) + len(X.data) > 2 * X.nnz:  # cut off spare room
        X = type(X)((X.data[: X.nnz], X.indices[: X.nnz], X.indptr), shape=X.shape)
    return X


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
