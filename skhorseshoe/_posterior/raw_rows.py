"""Rows as a user has them, before any scaler: whole, in part, or with a column changed."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_bool_dtype, is_numeric_dtype
from scipy.sparse import issparse

from .._backends import device
from .._data import validation
from .._utils.arrays import kind_of, refuse_masked
from .pipeline import prepared


def _series(column):
    """A column of another table for one of pandas, which would make nan of None in text, no category of an encoder."""
    values = np.asarray(column)  # by to_numpy an array of pyarrow refuses to be copied
    return pd.Series(values, dtype=object) if values.dtype == object else values


def is_polars(X):
    return type(X).__module__.partition(".")[0] == "polars"


def _column(X, j):
    """A column of an array or a table, as NumPy or pandas have it."""
    return X.iloc[:, j] if isinstance(X, pd.DataFrame) else _series(X[:, j])


class RawRows:
    """Rows as a user has them, before any scaler: an array, a CSR matrix, or a frame of polars, or of pandas made of
    any other table.

    names : of the columns, x0, x1, ... of an array. shape : of X.
    """

    def __init__(self, X):
        if validation.is_dask(X):
            raise TypeError("X is a Dask collection, and effects are computed in memory: give a sample of its rows.")
        refuse_masked(X, "X")
        validation.refuse_lazy(X)
        X = device.to_host(device.checked(X)) if device.on_gpu(X) else X
        if hasattr(X, "columns"):
            names = list(getattr(X, "column_names", X.columns))  # the former of pyarrow, where the latter are arrays
            is_kept = isinstance(X, pd.DataFrame) or is_polars(X)  # steps may use its methods
            self.X = X if is_kept else pd.DataFrame({name: _series(X[name]) for name in names})
        else:
            self.X = X.tocsr() if issparse(X) else np.asarray(X)
            if self.X.dtype.kind == "U" and not hasattr(X, "dtype"):
                self.X = np.asarray(X, object)  # of a list: numbers beside text stay numbers
            if self.X.ndim != 2:
                raise ValueError(
                    f"X must have rows and columns, also for one row (X[[i]]); got shape {self.X.shape}. Where the "
                    "steps of a Pipeline make the columns, as of texts, give model[-1], model[:-1].transform(X)."
                )
            names = [f"x{j}" for j in range(self.X.shape[1])]
        if not self.X.shape[0]:
            raise ValueError("X has no rows: give one at least.")
        self.names, self.shape, self._numeric = names, self.X.shape, {}

    @property
    def labels(self):
        """Those of the rows, as an index of pandas."""
        return self.X.index if isinstance(self.X, pd.DataFrame) else pd.RangeIndex(self.shape[0])

    def part(self, rows):
        """Some rows as they are, numbers in arrays as float64."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[rows]
        part = self.X[rows]
        return part.astype(np.float64) if not is_polars(part) and part.dtype.kind in "biuf" else part

    @cached_property
    def _by_column(self):
        return self.X.tocsc() if issparse(self.X) else self.X

    def values(self, j, part=None):
        """The numbers of a column, of all rows or of a part; (n,) float64."""
        X = self._by_column if part is None else part
        if issparse(X):
            return X[:, [j]].toarray().ravel().astype(np.float64)
        column = _column(X, j)
        # Text and dates would pass for numbers, but a step before the classifier knows them as they are.
        if not is_numeric_dtype(column.dtype) and kind_of(np.asarray(column, object)) != "numbers":
            raise ValueError(f"Column {self.names[j]!r} does not hold numbers: leave it out of features.")
        return pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan)

    def objects(self, j):
        """The values of a column as Python has them, or the user; (n,) object."""
        return self._series(j).astype(object).to_numpy()

    def _series(self, j):
        return pd.Series(self.values(j) if issparse(self.X) else _column(self.X, j))

    def are_booleans(self, j):
        return is_bool_dtype(self.X.dtype if issparse(self.X) else _column(self.X, j).dtype)

    def levels(self, j):
        """The number of its level for each row (n,), and the levels of a column, None for what is missing; those of a
        category of pandas in its order."""
        column = self._series(j)
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, labels = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        else:
            codes, labels = pd.factorize(column, sort=kind_of(np.asarray(column, object)) != "mixed")
            labels = labels.tolist()
        return (codes, labels) if (codes >= 0).all() else (np.where(codes < 0, len(labels), codes), [*labels, None])

    def changed(self, part, j, values):
        """A part with these values (n,) in column j."""
        if issparse(part):
            there = np.arange(part.shape[0]), np.full(part.shape[0], j)
            return part + type(part)((values - self.values(j, part), there), shape=part.shape)
        if isinstance(part, np.ndarray):
            part = part.copy()
            part[:, j] = values
            return part
        dtype = _column(part, j).dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "biuO":
            cast = values.astype(dtype)
            values = cast if dtype.kind == "O" or (cast == values).all() else values  # as an encoder knows them
        if is_polars(part):
            return part.with_columns(type(part[:, j])(self.names[j], values))
        part = part.copy(deep=False)
        part.isetitem(j, values)
        return part

    def taken(self, part, columns, places):
        """A part with what the rows at these places of X (n,) have in some columns."""
        if isinstance(part, np.ndarray):
            part = part.copy()
            part[:, columns] = self.X[np.ix_(places, columns)]
            return part
        if issparse(part):
            for j in columns:
                part = self.changed(part, j, self.values(j)[places])
            return part
        if is_polars(part):
            return part.with_columns([self.X[:, j].gather(places) for j in columns])
        part = part.copy(deep=False)
        for j in columns:
            part.isetitem(j, self.X.iloc[:, j].take(places).array)
        return part

    def holds_numbers(self, j):
        """Whether a column holds numbers, as a category does not, be its levels numbers."""
        if j not in self._numeric:
            self._numeric[j] = issparse(self.X) or kind_of(_column(self.X, j)) == "numbers"
        return self._numeric[j]


def input_names(X):
    """Names of the columns of rows as a user has them; None where they have none."""
    columns = getattr(X, "column_names", getattr(X, "columns", None))  # the former of pyarrow
    return None if columns is None else list(columns)


def seen(model, before, rows):
    """Rows as the classifier has them behind the steps before it, in float64."""
    return device.to_host(validation.check_X(model, prepared(before, rows), reset=False)).astype(np.float64, copy=False)


def row_like(X, reference):
    """A reference as ``RawRows`` of one row, of the same form as those of X."""
    is_table = hasattr(X.X, "columns")
    if isinstance(reference, pd.Series) and not is_table and len(reference) == len(X.names):
        reference = reference.to_numpy()
    if isinstance(reference, (Mapping, pd.Series)):
        missing = [name for name in X.names if name not in reference]
        if missing:
            raise ValueError(f"reference has no value of column {missing[0]!r}: give one for each column of X.")
        reference = [reference[name] for name in X.names]
    refuse_masked(reference, "reference")
    row = reference
    if np.ndim(reference) == 1:  # of text and numbers each stays what it is
        row = np.asarray(reference, object if is_table or X.X.dtype == object else None).reshape(1, -1)
    if len(np.shape(row)) != 2 or np.shape(row)[0] != 1:
        raise ValueError(f"reference must be one row, or None; got shape {np.shape(row)}.")
    if is_table and not hasattr(row, "columns") and np.shape(row)[1] == len(X.names):
        row = pd.DataFrame(np.asarray(row, dtype=object), columns=X.names).infer_objects()
        return RawRows(type(X.X)(row.to_dict("list")) if is_polars(X.X) else _of_types(row, X.X.dtypes))
    return RawRows(row)


def _of_types(row, dtypes):
    """A row with the types of pandas's own that columns have: a missing value is what it is to them. A value that is
    none of a type, such as 2.5 of whole numbers, stays."""
    for j, dtype in enumerate(dtypes):
        if isinstance(dtype, ExtensionDtype) and not isinstance(dtype, pd.CategoricalDtype):
            with suppress(TypeError, ValueError):
                row.isetitem(j, row.iloc[:, j].astype(dtype))
    return row
