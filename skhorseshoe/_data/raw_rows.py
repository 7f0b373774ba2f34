"""Rows as a user has them, before any scaler, of which one column is changed."""

from functools import cached_property

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._backends import device
from .._utils.names import did_you_mean
from .validation import is_dask


class RawRows:
    """An array, a CSR matrix, or a frame of pandas made of any table.

    names : of the columns, x0, x1, ... of an array. shape : of X.
    """

    def __init__(self, X):
        if is_dask(X):
            raise TypeError("X is a Dask collection, and effects are computed in memory: give a sample of its rows.")
        X = device.to_host(device.checked(X)) if device.on_gpu(X) else X
        if hasattr(X, "columns"):
            names = list(getattr(X, "column_names", X.columns))  # the former of pyarrow, where the latter are arrays
            self.X = X if isinstance(X, pd.DataFrame) else pd.DataFrame({name: X[name].to_numpy() for name in names})
        else:
            self.X = X.tocsr() if issparse(X) else np.asarray(X)
            if self.X.ndim != 2:
                raise ValueError(f"X must have rows and columns, also for one row (X[[i]]); got shape {self.X.shape}.")
            names = [f"x{j}" for j in range(self.X.shape[1])]
        if not self.X.shape[0]:
            raise ValueError("X has no rows: give one at least.")
        self.names, self.shape = names, self.X.shape

    def part(self, rows):
        """Some rows as they are, numbers in arrays as float64."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[rows]
        part = self.X[rows]
        return part.astype(np.float64) if part.dtype.kind in "biuf" else part

    @cached_property
    def _by_column(self):
        return self.X.tocsc() if issparse(self.X) else self.X

    def values(self, j, part=None):
        """The numbers of a column, of all rows or of a part; (n,) float64."""
        X = self._by_column if part is None else part
        if issparse(X):
            return X[:, [j]].toarray().ravel().astype(np.float64)
        try:
            if isinstance(X, pd.DataFrame):
                return X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
            return X[:, j].astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"Column {self.names[j]!r} does not hold numbers: leave it out of features.") from error

    def changed(self, part, j, values):
        """A part with these values (n,) in column j."""
        if issparse(part):
            there = np.arange(part.shape[0]), np.full(part.shape[0], j)
            return part + type(part)((values - self.values(j, part), there), shape=part.shape)
        if not isinstance(part, pd.DataFrame):
            part = part.copy()
            part[:, j] = values
            return part
        part, dtype = part.copy(deep=False), part.dtypes.iloc[j]
        if isinstance(dtype, np.dtype) and dtype.kind in "biu" and (values.astype(dtype) == values).all():
            values = values.astype(dtype)  # as an encoder knows them
        part.isetitem(j, values)
        return part

    def columns(self, features):
        """The numbers of columns that are given by name or number, one or several; None is all that hold numbers."""
        if features is None:
            kinds = self.X.dtypes if isinstance(self.X, pd.DataFrame) else [np.float64] * self.shape[1]
            found = [j for j, kind in enumerate(kinds) if pd.api.types.is_numeric_dtype(kind)]
        else:
            places = {name: j for j, name in enumerate(self.names)}
            found = [self._place(one, places) for one in ([features] if np.ndim(features) == 0 else features)]
        if not found:
            raise ValueError("features is empty, or no column of X holds numbers: give one column at least.")
        return found

    def _place(self, feature, places):
        p = self.shape[1]
        if feature in places:
            return places[feature]
        if isinstance(feature, (int, np.integer)) and not isinstance(feature, bool) and -p <= feature < p:
            return int(feature) % p
        hint = did_you_mean(feature, self.names)
        raise ValueError(f"features has {feature!r}, which is no column of X: give names, or numbers below {p}.{hint}")
