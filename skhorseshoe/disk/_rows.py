"""From a part of a source, a table or an array, to rows of finite numbers and codes of labels."""

import numpy as np
import pandas as pd
from scipy.sparse import issparse

_WHOLE = 2**53  # up to where float64 tells one whole number from the next
_NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal", "boolean", "empty")  # as pandas says of objects


class ToRows:
    """Makes rows of parts, which must agree with one another.

    manifest : of the rows that are there. Its entry "what" has the parameters of ``convert``; to "names" and "classes"
    is added what the parts bring.
    """

    def __init__(self, manifest):
        self.known, what = manifest, manifest["what"]
        self.y, self.columns, self.dtype = what["y"], what["columns"], what["dtype"]

    def __call__(self, part, first):
        """Rows (m, p), float64 where float32 is not exact, and codes (m,) uint8. first : number of the first row."""
        rows, labels = part if isinstance(part, tuple) else (part, None)
        refuse_sparse(rows)
        frame = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
        if not hasattr(frame, "columns"):
            if np.ndim(frame) != 2 or np.shape(frame)[1] == 0:
                raise ValueError(f"Parts must have two dimensions, rows and columns; got shape {np.shape(frame)}.")
            frame = pd.DataFrame(frame)  # whose names are numbers
        self._check_columns(frame.columns, first)
        labels = labels if self.y is None else frame[self.y]
        return _floats(frame[self.known["names"]], self.dtype, first), self._codes(labels, len(frame), first)

    def _check_columns(self, columns, first):
        """Raise a ValueError unless rows with these columns go with those before."""
        if columns.has_duplicates:
            raise ValueError(f"Columns {columns[columns.duplicated()].tolist()} are there more than once: rename them.")
        if self.y is not None and self.y not in columns:
            raise ValueError(
                f"y={self.y!r} is no column of the source; it has {_some(columns)}. Beside an array, whose columns are "
                "numbered, labels are an array too, or parts are pairs (rows, labels)."
            )
        labels = () if self.y is None else (self.y,)  # a column's name may be None too
        names = self.known["names"] or self.columns or [name for name in columns if name not in labels]
        if not names:
            raise ValueError(f"The source has no column for X, only {_some(columns)}.")
        for name in names:
            if not isinstance(name, str | int | float) or name != name:
                raise ValueError(
                    f"Names of columns must be strings or numbers; got {name!r}: rename it, frame.columns = "
                    'frame.columns.map(str), or, for names of several levels, ["_".join(map(str, name)) for name in '
                    "frame.columns]."
                )
        missing, more = {*names} - {*columns}, {*columns} - {*names, *labels}
        if missing or (more and self.columns is None):
            raise ValueError(
                f"The part of the source from row {first} on does not have the columns that are wanted: missing are "
                f"{_some(missing)}, unknown are {_some(more)}. columns=[...] takes those that all parts have."
            )
        self.known["names"] = names

    def _codes(self, labels, m, first):
        """The codes (m,) uint8 of the labels, 0 where there are none; new labels join the classes."""
        classes = self.known["classes"]
        if (labels is None and classes) or (labels is not None and classes is None and first):
            has = "no labels, and those before have" if labels is None else "labels, and those before have none"
            raise ValueError(f"The part of the source from row {first} on has {has}.")
        if labels is None:
            return np.zeros(m, np.uint8)
        if np.shape(labels) != (m,):
            raise ValueError(f"{m} rows from row {first} on need as many labels; got the shape {np.shape(labels)}.")
        codes, found = pd.factorize(pd.Series(labels))
        if (codes < 0).any():
            raise ValueError(f"The label of row {first + np.argmin(codes)} is missing: leave the row out.")
        found = found.tolist()
        classes = self.known["classes"] = list(dict.fromkeys([*(classes or []), *found]))
        for k, value in enumerate(found):
            if not isinstance(value, str | int | float) or isinstance(value, str) != isinstance(classes[0], str):
                raise ValueError(
                    f"The label of row {first + np.argmax(codes == k)} is {value!r}, and others are like "
                    f"{classes[0]!r}: labels must be all text or all numbers, as by astype(str)."
                )
        if len(classes) > 256:
            raise ValueError(f"y has more than 256 different values, such as {found[:3]}: no classes to predict.")
        return np.array([classes.index(value) for value in found], np.uint8)[codes]


def refuse_sparse(rows):
    if issparse(rows):
        raise TypeError(
            "Sparse rows cannot be written to disk: fit reads them as they are, from memory. Or give parts of them as "
            "arrays, one after the other: (rows[i : i + 1000].toarray() for i in range(0, rows.shape[0], 1000))."
        )


def _floats(frame, dtype, first):
    """The numbers of a frame as floats of this dtype, or of the narrowest that is exact; an error unless all are."""

    def refuse(bad, why):
        if bad.any():
            row, j = np.argwhere(bad)[0]
            value = "a missing value" if np.isnan(values[row, j]) else frame.iat[row, j]
            raise ValueError(f"Column {frame.columns[j]!r} holds {value} in row {first + row}{why}")

    kinds = [kind.kind for kind in frame.dtypes]
    frame = frame.copy(deep=False)
    for j in (j for j, kind in enumerate(kinds) if kind not in "biuf"):
        frame.isetitem(j, _numbers(frame.iloc[:, j]))
    narrow = all(kind in ("float16", "float32") for kind in frame.dtypes)
    values = frame.to_numpy(np.float32 if narrow else np.float64, na_value=np.nan)
    refuse(~np.isfinite(values), ". Rows on disk must be finite numbers: fill them in, or leave the row or column out.")
    with np.errstate(over="ignore"):
        X = values.astype(dtype or np.float32, copy=False)
    if dtype is not None:
        refuse(~np.isfinite(X), f", which is too large for {dtype}.")
        return X
    cure = "If it is an identifier, leave it out (columns=[...]); dtype='float64' rounds it."
    refuse(np.isin(kinds, ["i", "u"]) & (abs(values) >= _WHOLE), f", which float64 cannot hold exactly. {cure}")
    return X if np.array_equal(X, values) else values


def _numbers(column):
    """The numbers of a column of objects; a ValueError if it has anything else."""
    values = column.to_numpy(object)
    named = isinstance(column.dtype, pd.CategoricalDtype)  # whose numbers are names, no amounts
    if not named and pd.api.types.infer_dtype(values, skipna=True) in _NUMBERS:
        return np.where(pd.isna(values), np.nan, values).astype(np.float64)
    other = column[column.notna() & pd.to_numeric(column, errors="coerce").isna()]
    some = "".join(f", such as {value!r}" for value in (other if len(other) else column)[:1].tolist())
    raise ValueError(
        f"Column {column.name!r} is not numeric (its dtype is {column.dtype}{some}). Leave it out, with columns=[...] "
        "for the ones to keep, or encode it (OneHotEncoder) and give the encoded frames as the source."
    )


def _some(names):
    names = sorted(map(str, names))
    return (", ".join(names[:10]) or "none") + (f" and {len(names) - 10} more" if len(names) > 10 else "")
