"""Rows as a user has them, before the steps of a Pipeline."""

from collections.abc import Mapping
from contextlib import suppress
from copy import copy

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import infer_dtype, is_bool_dtype, is_numeric_dtype
from scipy.sparse import issparse

from .._backends import device
from .._data import validation
from .._data.input_table import as_rows, refuse_lazy, table_of
from .._utils.arrays import dense, kind_of, refuse_masked
from .._utils.memmap import cut
from .._utils.threads import cached_property
from .pipeline import prepared

_MOVED, _ROUNDING = 1e-3, 1e-8  # changes of a number behind steps, relative and not, that are no fault of theirs
_NUMBERS_AT_A_TIME, _ROWS_AT_A_TIME = 2**19, 2**13  # that pass through the steps of a Pipeline


def _series(column):
    """A column of another library as a Series; text stays object, since pandas would make nan, no category, of None."""
    values = np.asarray(column)  # pyarrow's to_numpy would refuse to copy
    return pd.Series(values, dtype=object) if values.dtype == object else values


def _holds_booleans(column):
    return infer_dtype(column, skipna=True) == "boolean"


def is_polars(X):
    return type(X).__module__.partition(".")[0] == "polars"


def as_pandas(X):
    """A table as a pandas frame."""
    return X if isinstance(X, pd.DataFrame) else pd.DataFrame({name: _series(X[name]) for name in input_names(X)})


def _column(X, j):
    """A column of an array or a table, as an array or a Series."""
    return X.iloc[:, j] if isinstance(X, pd.DataFrame) else _series(X[:, j])


class InputRows:
    """Rows as a user has them: an array, a CSR matrix, a polars frame, or a pandas frame made of any other table.

    names : of the columns, x0, x1, ... for an array. shape : of X.
    """

    def __init__(self, X):
        refuse_masked(X, "X")
        refuse_lazy(X)
        X = device.to_host(device.checked(X)) if device.on_gpu(X) else X
        if hasattr(X, "columns"):
            names = input_names(X)
            self.X = X if is_polars(X) else as_pandas(X)  # its methods may be used by steps
        else:
            self.X = X.tocsr() if issparse(X) else np.asarray(as_rows(X))
            if self.X.dtype.kind == "U" and not hasattr(X, "dtype"):
                self.X = np.asarray(X, object)  # so that numbers in a list with text stay numbers
            if self.X.ndim != 2:
                raise ValueError(
                    f"X must have rows and columns, also for one row (X[[i]]); got shape {self.X.shape}. Where the "
                    "steps of a Pipeline make the columns, as of texts, give model[-1], model[:-1].transform(X)."
                )
            names = [f"x{j}" for j in range(self.X.shape[1])]
        if not self.X.shape[0]:
            raise ValueError("X has no rows: give one at least.")
        self.names, self.shape = names, self.X.shape

    @property
    def labels(self):
        """Labels of the rows, a pandas index."""
        return self.X.index if isinstance(self.X, pd.DataFrame) else pd.RangeIndex(self.shape[0])

    def block(self, rows):
        """A block of rows, unchanged except that numbers in arrays are float64."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[rows]
        block = self.X[rows]
        return block.astype(np.float64) if not is_polars(block) and block.dtype.kind in "biuf" else block

    @cached_property
    def _by_column(self):
        return self.X.tocsc() if issparse(self.X) else self.X

    def values(self, j, block=None):
        """The numbers of a column, of all rows or of a block; (n,) float64."""
        X = self._by_column if block is None else block
        if issparse(X):
            return X[:, [j]].toarray().ravel().astype(np.float64)
        column = _column(X, j)
        # Text and dates could be converted, but steps before the classifier need them as they are.
        if not is_numeric_dtype(column.dtype) and kind_of(np.asarray(column, object)) != "numbers":
            raise ValueError(f"Column {self.names[j]!r} does not hold numbers: leave it out of features.")
        return pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan)

    def objects(self, j):
        """The values of a column as Python objects; (n,)."""
        return self._series(j).astype(object).to_numpy()

    def _series(self, j):
        return pd.Series(self.values(j) if issparse(self.X) else _column(self.X, j))

    def are_booleans(self, j):
        return is_bool_dtype(self.X.dtype) if issparse(self.X) else _holds_booleans(_column(self.X, j))

    def levels(self, j):
        """The codes (n,) of a column's levels, and the levels, None for missing values; those of a pandas category in
        its order."""
        column = self._series(j)
        if isinstance(column.dtype, pd.CategoricalDtype):
            codes, labels = column.cat.codes.to_numpy(), column.cat.categories.tolist()
        else:
            codes, labels = pd.factorize(column)
            with suppress(TypeError):  # of objects without an order
                codes, labels = pd.factorize(column, sort=True)
            labels = labels.tolist()
        return (codes, labels) if (codes >= 0).all() else (np.where(codes < 0, len(labels), codes), [*labels, None])

    @staticmethod
    def copied(block):
        """A block whose columns ``changed`` and ``taken`` may replace."""
        return block.copy(deep=False) if hasattr(block, "isetitem") else copy(block)

    def changed(self, block, j, values):
        """A block with these values (n,) in column j, in place if its kind can be: copies of all columns for each of
        many would take their square."""
        if issparse(block):
            places = np.arange(block.shape[0]), np.full(block.shape[0], j)
            return block + type(block)((values - self.values(j, block), places), shape=block.shape)
        column, is_missing = _column(block, j), np.isnan(values)
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuO":  # encoders know this type
            cast = values.astype(bool if _holds_booleans(column) else column.dtype)
            values = cast if ((cast == values) | is_missing).all() else values
            values = np.where(is_missing, column, values) if column.dtype.kind == "O" else values
        if isinstance(block, np.ndarray):
            block[:, j] = values
            return block
        if is_polars(block):
            return block.with_columns(type(block[:, j])(self.names[j], values.tolist()))  # finds the type of objects
        block.isetitem(j, values)
        return block

    def taken(self, block, columns, places):
        """A block whose values in some columns are those of X at these places (n,), in place as ``changed``."""
        if isinstance(block, np.ndarray):
            block[:, columns] = self.X[np.ix_(places, columns)]
            return block
        if issparse(block):
            for j in columns:
                block = self.changed(block, j, self.values(j)[places])
            return block
        if is_polars(block):
            return block.with_columns([self.X[:, j].gather(places) for j in columns])
        for j in columns:
            block.isetitem(j, self.X.iloc[:, j].take(places).set_axis(block.index))  # an array of text would lose None
        return block

    def holds_numbers(self, j):
        """Whether a column holds numbers; a category does not, even if its levels are numbers."""
        return issparse(self.X) or kind_of(_column(self.X, j)) == "numbers"

    def holds_times(self, j):
        """Whether a column holds dates or durations; a category does not, even if its levels are dates."""
        return not issparse(self.X) and kind_of(_column(self.X, j)) == "times"


def input_names(X):
    """Names of the columns of a user's rows, or None."""
    return table_of(X).names or None


def classifier_rows(model, steps, rows):
    """Rows as the classifier sees them, behind the steps, in float64."""
    return device.to_host(validation.check_X(model, prepared(steps, rows), reset=False)).astype(np.float64, copy=False)


def blocks_behind(model, steps, X):
    """Yields the slice of each block of rows of X, ``InputRows``, the block, and the block as the classifier has it."""
    size = min(_ROWS_AT_A_TIME, max(1, _NUMBERS_AT_A_TIME // max(X.shape[1], model.n_features_in_)))
    for rows in cut(0, X.shape[0], size):
        block = X.block(rows)
        yield rows, block, classifier_rows(model, steps, block)


def check_steps_by_row(model, steps, X):
    """Raise a ValueError if the steps make other numbers of two rows of X, ``InputRows``, than of them among others."""
    places = np.unique(np.linspace(0, X.shape[0] - 1, 8).astype(int))
    if steps is None or len(places) < 3:
        return
    among, alone = (dense(classifier_rows(model, steps, X.block(rows))) for rows in (places, places[[0, -1]]))
    distance = abs(alone - among[[0, -1]])
    if (distance > _MOVED * (model._column_sd + abs(alone)) + _ROUNDING).any():
        raise ValueError(
            "The steps before the classifier make other numbers of two rows of X than of the same rows among others, "
            "and must treat each row by itself. What they take from the rows, such as a mean, they must learn in fit "
            "and keep, as StandardScaler does."
        )


def row_like(X, reference):
    """A reference as ``InputRows`` of one row, in the same form as X."""
    is_table = hasattr(X.X, "columns")
    if isinstance(reference, pd.Series) and not is_table and len(reference) == len(X.names):
        reference = reference.to_numpy()
    if isinstance(reference, (Mapping, pd.Series)):
        _check_complete(X.names, reference)
        reference = [reference[name] for name in X.names]
    refuse_masked(reference, "reference")
    row = reference
    if np.ndim(reference) == 1:  # text and numbers keep their types
        row = np.asarray(reference, object if is_table or X.X.dtype == object else None).reshape(1, -1)
    if len(np.shape(row)) != 2 or np.shape(row)[0] != 1:
        raise ValueError(f"reference must be one row, or None; got shape {np.shape(row)}.")
    if is_table and not hasattr(row, "columns") and np.shape(row)[1] == len(X.names):
        row = pd.DataFrame(np.asarray(row, dtype=object), columns=X.names).infer_objects()
        return InputRows(type(X.X)(row.to_dict("list")) if is_polars(X.X) else _row_of_types(row, X.X.dtypes))
    out = InputRows(row)
    if is_table and hasattr(row, "columns") and out.names != X.names:  # by their names, in the order of X
        _check_complete(X.names, out.names)
        out = InputRows(out.X[X.names])
    return out


def _check_complete(names, known):
    """Raise a ValueError if a reference lacks the value of a column."""
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"reference has no value of column {missing[0]!r}: give one for each column of X.")


def _row_of_types(row, dtypes):
    """A row with pandas's extension types, which have their own missing value; 2.5, say, is not made a whole number."""
    for j, dtype in enumerate(dtypes):
        if isinstance(dtype, ExtensionDtype) and not isinstance(dtype, pd.CategoricalDtype):
            with suppress(TypeError, ValueError):
                row.isetitem(j, row.iloc[:, j].astype(dtype))
    return row
