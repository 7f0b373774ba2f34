"""From a part of a source, a table or an array, to rows of finite numbers and codes of labels."""

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._utils.finite import first_not_finite

_EXACT = {"float32": 2**24, "float64": 2**53}  # up to where a float has every whole number
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")
_CURE = (
    "Leave it out, with columns=[...] for the ones to keep, or encode it (OneHotEncoder) and give the encoded frames, "
    "one after the other, as the source."
)


class Parts:
    """What all parts share.

    y : name of the column of labels, or None. columns : names of the columns of X, in their order, or None for those of
    the first part. dtype : of X, or None for the narrowest that is exact. known : "names" and "classes" of the parts
    that are converted already, or None each.
    """

    def __init__(self, y, columns, dtype, known):
        self.y, self.dtype = y, dtype
        self.names = known["names"] or columns
        self.classes = known["classes"]
        self.all = columns is None  # whether every column of a part belongs to X or is y
        self.seen = None  # the columns of a part that were found right

    def __call__(self, part, first):
        """Rows (m, p), float64 where float32 is not exact, and codes (m,) uint8. first : number of the first row."""
        labels = None
        if isinstance(part, tuple):
            part, labels = part
        check_dense(part)
        columns = _columns(part)
        if columns is None:
            X = self._of_array(part, first)
        else:
            self._see_names(columns, first)
            _refuse_levels(part, self.names)
            X = self._of_columns([_values(part, name) for name in self.names], self.names, first)
            labels = _values(part, self.y) if self.y is not None else labels
        return X, self._codes(labels, len(X), first)

    def _see_names(self, columns, first):
        if columns == self.seen:
            return
        if len(set(columns)) < len(columns):
            twice = sorted({str(name) for name in columns if columns.count(name) > 1})
            raise ValueError(f"Columns {twice} are there more than once: rename them.")
        _check_names(self.names or columns)
        if self.y is not None and self.y not in columns:
            raise ValueError(f"y={self.y!r} is no column of the source; it has {_some(columns)}.")
        if self.names is None:
            self.names = [name for name in columns if name != self.y]
        if not self.names:
            raise ValueError(f"The source has no column for X, only {_some(columns) or 'none at all'}.")
        missing = _some(name for name in self.names if name not in set(columns))
        more = _some(set(columns) - {*self.names, self.y}) if self.all else ""
        if missing or more:
            raise ValueError(
                f"The part of the source from row {first} on does not have the columns that are wanted: missing are "
                f"{missing or 'none'}, unknown are {more or 'none'}. All parts must have the same; columns=[...] takes "
                "some of them."
            )
        self.seen = columns

    def _of_array(self, given, first):
        array = np.asarray(given)
        if array.ndim != 2:
            raise ValueError(f"Parts must have two dimensions, rows and columns; got an array of shape {array.shape}.")
        if self.y is not None or not self.all:
            raise ValueError(
                "y and columns name columns of a table, and an array has no names: give the labels as an array of "
                "their own, or parts that are pairs (rows, labels)."
            )
        if self.names is None:
            self.names = [None] * array.shape[1]
        if array.shape[1] != len(self.names):
            raise ValueError(
                f"The part of the source from row {first} on has {array.shape[1]} columns, others {len(self.names)}."
            )
        if not self.names:
            raise ValueError(f"The source has no columns: its shape is {array.shape}.")
        if np.ma.isMaskedArray(given) and given.mask.any():
            row, j = np.argwhere(given.mask)[0]
            raise ValueError(_not_finite(_named(self.names, j), "a missing value", first + row))
        if array.dtype.kind in "biuf":
            return self._checked(array, self.names, first)
        return self._of_columns(list(array.T), self.names, first)

    def _of_columns(self, columns, names, first):
        numbers = [_numbers(values, _named(names, j)) for j, values in enumerate(columns)]
        numbers = [self._checked(values, names[j : j + 1], first, j) for j, values in enumerate(numbers)]
        X = np.empty((len(numbers[0]), len(numbers)), np.result_type(*numbers))
        for j, values in enumerate(numbers):
            X[:, j] = values
        return X

    def _checked(self, given, names, first, j=0):
        """The numbers as floats; a ValueError unless they are all finite."""
        dtype = self.dtype or _narrowest(given, names, j)
        with np.errstate(over="ignore"):
            out = given.astype(dtype, copy=False)
        at = first_not_finite(out)
        if at is not None:
            value, name = given[at], _named(names, at[1] if len(at) > 1 else 0, j)
            if np.isfinite(value):
                raise ValueError(f"{name} holds {value} in row {first + at[0]}, which is too large for {dtype}.")
            raise ValueError(_not_finite(name, "a missing value" if np.isnan(value) else value, first + at[0]))
        return out

    def _codes(self, labels, m, first):
        if labels is None:
            if self.classes:
                raise ValueError(f"The part of the source from row {first} on has no labels, and those before have.")
            return np.zeros(m, np.uint8)
        masked = np.ma.getmaskarray(labels) if np.ma.isMaskedArray(labels) else False
        labels = np.asarray(labels, None if hasattr(labels, "dtype") else object)  # of a list text would swallow NaN
        if labels.shape != (m,):
            raise ValueError(f"{m} rows from row {first} on need as many labels; got an array of shape {labels.shape}.")
        if self.classes is None:
            if first:
                raise ValueError(f"The part of the source from row {first} on has labels, and those before have none.")
            self.classes = []
        codes, found = pd.factorize(labels)
        missing = (codes < 0) | masked
        if missing.any():
            raise ValueError(f"The label of row {first + int(np.argmax(missing))} is missing: leave the row out.")
        found = [value.item() if hasattr(value, "item") else value for value in found]
        for k, value in enumerate(found):
            if not isinstance(value, str | int | float):
                raise ValueError(f"Labels must be strings, numbers or booleans; got {value!r}.")
            if self.classes and isinstance(value, str) != isinstance(self.classes[0], str):
                raise ValueError(
                    f"The label of row {first + int(np.argmax(codes == k))} is {value!r}, and others are like "
                    f"{self.classes[0]!r}: labels must be all text or all numbers. Make them one, by astype(str) for "
                    "example, and give the tables one after the other as the source."
                )
            if value not in self.classes:
                self.classes.append(value)
        if len(self.classes) > 256:
            raise ValueError(
                f"y has more than 256 different values, such as {self.classes[:3]}: no classes to predict."
            )
        return np.array([self.classes.index(value) for value in found], np.uint8)[codes]


def check_dense(rows):
    """A TypeError for sparse rows."""
    if issparse(rows):
        raise TypeError(
            "Sparse rows cannot be written to disk: fit reads them as they are, from memory. Or give parts of them as "
            "arrays, one after the other: (rows[i : i + 1000].toarray() for i in range(0, rows.shape[0], 1000))."
        )


def _check_names(names):
    """A ValueError for names of columns that a frame would not get back from JSON."""
    for name in names:
        if isinstance(name, tuple):
            raise ValueError(
                f"Columns have names of several levels, such as {name!r}: flatten them, frame.columns = "
                '["_".join(map(str, name)) for name in frame.columns].'
            )
        if not isinstance(name, str | int | float) or name != name:
            raise ValueError(
                f"Names of columns must be strings or numbers; got {name!r}: rename it, or all of them, "
                "frame.columns = frame.columns.map(str)."
            )


def _columns(part):
    """Names of the columns of a table, or None for anything else. An index that pandas has saved is none of them."""
    if _is_arrow(part):
        index = (part.schema.pandas_metadata or {}).get("index_columns", [])
        return [name for name in part.schema.names if name not in index]
    if not hasattr(part, "columns"):
        return None
    return [name.item() if isinstance(name, np.generic) else name for name in part.columns]


def _values(table, name):
    return np.asarray(table.column(name) if _is_arrow(table) else table[name])


def _refuse_levels(table, names):
    """Raise a ValueError for categories, whose numbers are names, no amounts."""
    for name in names:
        dtype = str(table.schema.field(name).type if _is_arrow(table) else table[name].dtype)
        if dtype.startswith(("category", "dictionary")):
            raise ValueError(f"Column {name!r} is not numeric (its dtype is {dtype}). {_CURE}")


def _is_arrow(part):
    return hasattr(part, "schema") and not hasattr(part, "dtypes")


def _numbers(values, name):
    """A column as an array of numbers; a ValueError that names it if it holds anything else."""
    if values.dtype.kind in "biuf":
        return values
    if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:
        return np.where(pd.isna(values), np.nan, values).astype(np.float64)
    given = pd.Series(values.ravel())
    other = given[given.notna() & pd.to_numeric(given, errors="coerce").isna()]
    some = (other if len(other) else given).head(1).tolist()
    first = f", such as {some[0]!r}" if some else ""
    raise ValueError(f"{name} is not numeric (its dtype is {values.dtype}{first}). {_CURE}")


def _not_finite(name, what, row):
    return (
        f"{name} holds {what} in row {row}. Rows on disk must be finite numbers: fill them in, or leave the row or the "
        "column out."
    )


def _narrowest(given, names, j):
    """float32 if it holds all of the numbers exactly, else float64; a ValueError if that does not either."""
    if given.dtype.kind in "biu":
        if given.dtype.itemsize <= 2 or not given.size:
            return "float32"
        largest = max(abs(int(given.min())), abs(int(given.max())))
        if largest > _EXACT["float64"]:
            at = tuple(np.argwhere((given > _EXACT["float64"]) | (given < -_EXACT["float64"]))[0])
            name = _named(names, at[1] if len(at) > 1 else 0, j)
            raise ValueError(
                f"{name} holds {given[at]}, which float64 cannot hold exactly. If it is an identifier, leave it out "
                "(columns=[...]); dtype='float64' rounds it."
            )
        return "float32" if largest <= _EXACT["float32"] else "float64"
    if given.dtype.itemsize <= 4:
        return "float32"
    with np.errstate(over="ignore"):
        same = given.astype(np.float32) == given
    return "float32" if (same | ~np.isfinite(given)).all() else "float64"


def _named(names, k, j=0):
    return f"Column {k + j}" if names[k] is None else f"Column {names[k]!r}"


def _some(names):
    names = list(map(str, names))
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
