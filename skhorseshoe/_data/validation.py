"""Checks of X and y for ``fit`` and ``predict``, beyond scikit-learn's own validation."""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from decimal import Decimal
from numbers import Integral

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.utils.validation import validate_data

from .._backends import device
from .._utils.arrays import first_not_finite, is_missing, kind_of
from .._utils.memmap import blocks
from .._utils.names import plain
from .._utils.sklearn_compat import _get_feature_names
from .input_table import GIVE, LEVEL_TYPES, TIMES_CURE, read_X, table_of
from .labels import check_labels

_CURE = "Encode it first, for example with ColumnTransformer and OneHotEncoder in a Pipeline, or drop it."
_BELONGING = " If rows of one value belong together, as those of a patient, give it as groups: fit(X, y, groups=...)."
_MANY_TEXTS = 20  # fewest different texts in a column that may be labels of groups
_SCALE = "Divide the column, take its logarithm, or drop it."
_NUMBER_TYPES = ("int", "uint", "float", "bool", "double", "half", "sparse")
_LARGEST_EXACT = 2**53  # float64 holds every whole number up to this one
_WHOLE_TYPES = ("int", "uint", "object", "decimal", "sparse[int", "sparse[uint")


def check_y(estimator, y):
    """Labels for a fit, checked. To be called before ``numbers``: it would remove the names of the columns."""
    y = None if y is None else check_labels(y)
    with config_context(array_api_dispatch=False):  # only NumPy computes here
        return validate_data(estimator, "no_validation", y=y)


def check_X(estimator, X, *, reset):
    """The ``numbers`` of X."""
    return numbers(read_X(X), estimator, reset=reset)


def numbers(table, estimator, *, reset):
    """A ``Table`` as floating-point numbers, C-contiguous or CSR with ascending indices, by ``validate_data``; errors
    name the column. A CuPy array stays on its device."""
    if table.is_on_gpu:  # only the number of columns is to be checked
        return validate_data(estimator, table.rows, reset=reset, skip_check_array=True)
    dtypes = table.dtypes
    X = _one_sparse_type(table.rows, dtypes[0]) if table.is_sparse else with_names(table.rows)
    try:
        is_ready, checked = _is_ready(X, dtypes), X
        if reset or not is_ready or not _is_as_in_fit(estimator, X):  # saves a third of the time that one row takes
            how = {"dtype": dtypes, "order": "C", "accept_sparse": "csr", "ensure_all_finite": False}
            with config_context(array_api_dispatch=False):
                how = {"skip_check_array": True} if is_ready else how
                checked = validate_data(estimator, X, reset=reset, **how)
        check_column_labels(estimator, X, reset)
        _refuse_infinite(checked, getattr(estimator, "feature_names_in_", None))
    except MemoryError:
        raise
    except Exception as error:  # the user's library may raise anything while it converts
        better = _with_cure(error, table)
        if better is error and isinstance(error, ValueError | TypeError):
            raise
        why = f"X, of type {type(X).__name__}, cannot be read as an array of float64: {error}. {GIVE}"
        raise (ValueError(why) if better is error else better) from error
    _refuse_levels(table)
    if reset:
        refuse_merged(table, checked)
    if issparse(checked):
        # A new object has no flags, which SciPy keeps where indices change in place.
        checked = type(checked)((checked.data, checked.indices, checked.indptr), shape=checked.shape)
        if not checked.has_canonical_format:
            checked = checked.copy()
            checked.sum_duplicates()
    return checked


def _is_ready(X, dtypes):
    """Whether X is an array with rows and columns that needs no conversion to one of these types."""
    return type(X) is np.ndarray and X.ndim == 2 and X.size > 0 and X.dtype in dtypes and X.flags.c_contiguous


def _is_as_in_fit(estimator, X):
    """Whether an array has as many columns as that of the fit, which had no names either."""
    return X.shape[1] == getattr(estimator, "n_features_in_", None) and not hasattr(estimator, "feature_names_in_")


def check_column_labels(estimator, table, reset):
    """Remember or compare the labels of a table's columns that are not text, for which scikit-learn does neither."""
    columns = getattr(table, "columns", None)
    labels = [plain(label) for label in columns] if isinstance(columns, pd.Index) else None
    is_text = labels is not None and all(isinstance(label, str) for label in columns)
    if reset:
        vars(estimator).pop("_column_labels", None)
        if labels is not None and not is_text:
            estimator._column_labels = labels
        return
    known = getattr(estimator, "_column_labels", labels)
    if labels is None or labels == known or (is_text and known == [*range(len(known))]):  # scikit-learn checks text
        return
    if len(labels) != len(known):  # as scikit-learn checks too, in ``transform`` later
        return
    j = next(j for j, pair in enumerate(zip(labels, known, strict=True)) if pair[0] != pair[1])
    raise ValueError(
        f"The columns of X are not those of fit, or are in another order: number {j} is {labels[j]!r}, and was "
        f"{known[j]!r} in fit. Select the columns of fit in their order."
    )


def _with_cure(error, table):
    """An error that names the column that is not numeric, or the cure; ``error`` itself if neither is known."""
    if "feature names" in str(error):  # the columns are not those of fit, which the error says
        in_order = "same order" in str(error)
        return ValueError(f"{error}That is X[model.feature_names_in_].") if in_order else error
    if problem := _of_no_numbers(X := table.rows):
        return type(error)(problem)
    X = np.asarray(X, object) if isinstance(X, list | tuple) else X
    types = zip(table.names, table.types, strict=True)
    not_numbers = [name for name, dtype in types if not dtype.startswith(_NUMBER_TYPES) or "interval" in dtype]
    columns = [(repr(name), X[name]) for name in not_numbers]
    if not table.types and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OSU":
        columns = enumerate(X.T)
    for name, values in columns:
        objects = np.asarray(values, object)
        missing = is_missing(objects)
        if kind_of(objects) == "times":
            return ValueError(f"Column {name} holds dates or durations, not numbers. {TIMES_CURE}")
        if objects.ndim > 1:
            return ValueError(f"Column {name} is not numeric: each of its entries holds several. {_CURE}")
        try:
            np.where(missing, np.nan, objects).astype(np.float64)
        except OverflowError as why:
            return ValueError(f"Column {name} holds a whole number that is too large for float64 ({why}). {_SCALE}")
        except (ValueError, TypeError) as why:
            cure = _CURE + (_BELONGING if _looks_like_a_label(objects) else "")
            return type(why)(f"Column {name} is not numeric: {str(why).rstrip('.')}. {cure}")
        # NumPy can convert neither pandas.NA nor a signaling NaN of Decimal.
        if missing.any() and (isinstance(error, TypeError) or "signaling NaN" in str(error)):
            return not_finite(np.nan, np.argmax(missing), name, None)
    return error


def _of_no_numbers(X):
    """In words what the rows of X are, and the cure, where a list or an array has other things than numbers or rows of
    them; "" for all else."""
    if fields := getattr(getattr(X, "dtype", None), "names", None):
        return f"X is an array of records with the fields {list(fields)!r:.60}. pandas.DataFrame(X) makes it a table."
    is_array = isinstance(X, np.ndarray) and X.dtype.kind in "OSU" and X.ndim == 1
    if not (is_array or isinstance(X, list | tuple)) or not len(X):
        return ""
    if isinstance(X[0], Mapping):
        return f"The rows of X are of type {type(X[0]).__name__}. pandas.DataFrame(list(X)) makes a table of them."
    if isinstance(X[0], str | bytes | Set) or not isinstance(X[0], Iterable):
        return f"The rows of X are of type {type(X[0]).__name__}, as {X[0]!r:.60}, and no sequences of numbers. {GIVE}"
    try:
        lengths = [len(row) for row in X]
    except TypeError:
        return ""
    other = next((i for i, length in enumerate(lengths) if length != lengths[0]), None)
    return "" if other is None else f"Row 0 of X has {lengths[0]} entries, and row {other} has {lengths[other]}. {GIVE}"


def _looks_like_a_label(values):
    """Whether a column of text has many values, each in several rows, like names of patients."""
    text = [value for value in values if isinstance(value, str)]
    return _MANY_TEXTS <= len(set(text)) <= len(text) // 2


def copied_bytes(original, X):
    """Bytes of X that the checks have copied from the original."""
    if device.on_gpu(X):
        return 0
    if issparse(X):
        is_copy = not issparse(original) or not np.may_share_memory(X.data, getattr(original, "data", X.data[:0]))
        return is_copy * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    names = table_of(original).names
    view = original if isinstance(original, np.ndarray) else X[:0]
    with suppress(Exception):  # NumPy lacks the column's type, so X is no view
        view = np.asarray(original[names[0]]) if names else view
    return 0 if np.may_share_memory(X, view) else X.nbytes


def _refuse_infinite(X, names):
    """Raise a ValueError at the first number that is not finite. names : of the columns, or None."""
    if get_config()["assume_finite"]:
        return
    if issparse(X):
        if first := first_not_finite(X.data):
            row = np.searchsorted(X.indptr, first[0], side="right") - 1
            raise not_finite(X.data[first], row, X.indices[first], names)
        return
    for rows in blocks(X):
        if first := first_not_finite(X[rows]):
            raise not_finite(X[rows][first], rows.start + first[0], first[1], names)


def not_finite(value, row, j, names, imputer=" (SimpleImputer in a Pipeline)"):
    """An error that names the first number that is NaN or infinite. names : of the columns, or None."""
    missing = np.isnan(value)
    kind = "NaN" if missing else f"infinity or a value too large for {value.dtype}"
    cure = f"Impute missing values{imputer}" if missing else "Clip such values"
    column = j if names is None else repr(names[j])
    return ValueError(f"Input X contains {kind}: the first is in row {row} of column {column}. {cure} or drop the row.")


def with_names(X):
    """A polars table as a pandas table if scikit-learn does not see its names. Before 1.9 it does not with polars 2,
    and would not notice columns in another order."""
    if type(X).__name__ == "RecordBatch":  # of pyarrow; its ``columns`` are no names
        import pyarrow as pa

        return pa.Table.from_batches([X])
    if not isinstance(getattr(X, "columns", None), list) or _get_feature_names(X) is not None:
        return X
    return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})


def _one_sparse_type(X, dtype):
    """A table of sparse columns with types that SciPy has and with 0 as the value that is left out.

    dtype : of columns that are not floats.
    """
    known = [pd.SparseDtype(dtype, 0) for dtype in (np.float32, np.float64)]
    is_number = all(dtype.kind in "biuf" for dtype in X.dtypes)
    if not is_number or all(dtype in known for dtype in X.dtypes):
        return X
    # In older versions of pandas, astype changes only the value that a column leaves out.
    arrays = (pd.arrays.SparseArray(np.asarray(X.iloc[:, j], dtype), fill_value=0.0) for j in range(X.shape[1]))
    return pd.DataFrame(dict(enumerate(arrays)), index=X.index).set_axis(X.columns, axis=1)


def _refuse_levels(table):
    """Raise a ValueError for categories and text that look like numbers: they may be names of levels, not amounts."""
    for name, dtype in zip(table.names, table.types, strict=True):
        is_text = dtype == "object" and any(isinstance(value, str | bytes) for value in table.rows[name])
        if is_text or dtype.startswith(LEVEL_TYPES):
            raise ValueError(
                f"Column {name!r} is not numeric (its dtype is {dtype}), although its values look like numbers. "
                f"{_CURE} If they are quantities, convert the column: astype(float)."
            )


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
    """Yields names and values of the columns that are not floats and have large numbers."""
    original, names, types = table.rows, table.names, table.types
    for j, (name, dtype) in enumerate(zip(names, types, strict=True)):
        if dtype.startswith(_WHOLE_TYPES) and _is_large(X[:, [j]]):
            column = original[name]
            yield name, np.array(column.to_list(), object) if "int128" in dtype else np.asarray(column)
    if types:
        return
    is_list = isinstance(original, list | tuple)
    original = original if issparse(original) else np.asarray(original, object if is_list else None)
    if original.dtype.kind in "iuO" and _is_large(X):
        original = original.tocsc() if issparse(original) else original
        for j in range(X.shape[1]):
            yield j, original[:, [j]].data if issparse(original) else original[:, j]


def _is_large(X):
    return X.shape[0] > 0 and max(X.max(), -X.min()) > _LARGEST_EXACT


def _large(values):
    """The numbers that are too large for float64 to hold every one."""
    if values.dtype.kind == "O":
        large = [value for value in values if isinstance(value, Integral | Decimal) and abs(value) > _LARGEST_EXACT]
        return np.array(large, dtype=object)
    return values[(values > _LARGEST_EXACT) | (values < -_LARGEST_EXACT)] if values.dtype.kind in "iu" else values[:0]
