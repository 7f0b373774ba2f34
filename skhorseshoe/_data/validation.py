"""Checks of X and y for ``fit`` and ``predict``, beyond scikit-learn's own validation."""

from contextlib import suppress
from copy import copy

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.utils.validation import check_consistent_length, validate_data

from .._backends import device
from .._backends.sparse_structure import check as check_structure
from .._utils.arrays import first_not_finite, is_missing, kind_of, refuse_masked
from .._utils.memmap import check_whole, cut, read_ahead
from .._utils.memory import check_copy
from .column_names import check_column_labels, check_names, column_types, with_names
from .containers import GIVE, as_rows, of_no_numbers
from .labels import check_labels
from .whole_numbers import are_small, refuse_merged

_NUMBERS_AT_A_TIME = 2**20  # elements to check at a time
_CURE = "Encode it first, for example with ColumnTransformer and OneHotEncoder in a Pipeline, or drop it."
_BELONGING = (
    " If the rows of one value belong together, as those of a patient, give it as groups: fit(X, y, groups=...)."
)
_MANY_TEXTS = 20  # fewest different texts in a column that may be labels of groups
_NUMBER = "Convert them to a meaningful number, such as days since an event, or drop them."
_SCALE = "Divide the column, take its logarithm, or drop it."
_NUMBER_TYPES = ("int", "uint", "float", "bool", "double", "half", "sparse")
_TIME_TYPES = ("date", "time", "duration", "period")  # NumPy would take their values for numbers
# NumPy would take values of these types for numbers if they look like numbers.
LEVEL_TYPES = ("categor", "dictionary", "enum", "str", "utf8", "large_", "binary", "fixed_")


def is_dask(*collections):
    """Whether one of the arguments is a Dask collection; does not import Dask."""
    return any(type(collection).__module__.split(".")[0] in ("dask", "dask_expr") for collection in collections)


def check_X_and_y(estimator, X, y):
    """Rows and labels for a fit, checked; the estimator learns the columns."""
    y = None if y is None else check_labels(y)
    with config_context(array_api_dispatch=False):  # only NumPy computes here
        y = validate_data(estimator, "no_validation", y=y)  # before X: it would remove the names of the columns
    X = check_X(estimator, X, reset=True)
    check_consistent_length(X, y)
    return X, y


def check_X(estimator, X, *, reset):
    """X as floating-point numbers, C-contiguous or CSR with ascending indices, by ``validate_data``; errors name the
    column of a table. A CuPy array stays on its device."""
    refuse_masked(X, "X")
    if device.on_gpu(X):
        X = device.checked(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # the number of columns, and their names
        return X
    refuse_lazy(X)
    X = as_rows(X)
    check_whole(X)
    check_names(X, column_types(X))
    X = _well_formed(X) if issparse(X) else with_names(X)
    original, types = X, column_types(X)
    _refuse_times(X, types)
    dtypes = [np.float64, np.float32] if issparse(X) else [np.float64, np.float32, np.float16]
    if are_small(X, types):  # float32 holds all of them in half the memory
        dtypes = [np.float32]
    _check_room(X, dtypes, types)
    if _is_sparse_table(types):
        X = _one_sparse_type(X, dtypes[0])
    try:
        with config_context(array_api_dispatch=False):
            checked = validate_data(
                estimator, X, reset=reset, dtype=dtypes, order="C", accept_sparse="csr", ensure_all_finite=False
            )
            check_column_labels(estimator, X, reset)
            _refuse_infinite(checked, getattr(estimator, "feature_names_in_", None))
    except MemoryError:
        raise
    except Exception as error:  # the user's library may raise anything while it converts
        better = _with_cure(error, X, types)
        if better is error and isinstance(error, ValueError | TypeError):
            raise
        why = f"X, of type {type(X).__name__}, cannot be read as an array of float64: {error}. {GIVE}"
        raise (ValueError(why) if better is error else better) from error
    _refuse_levels(X, types)
    if reset:
        refuse_merged(original, checked)
    if issparse(checked) and not checked.has_canonical_format:
        checked = checked.copy()
        checked.sum_duplicates()
    return checked


def _with_cure(error, X, types):
    """An error that names the column of X that is not numeric, or the cure; ``error`` itself if neither is known."""
    if "feature names" in str(error):  # the columns are not those of fit, which the error says
        in_order = "same order" in str(error)
        return ValueError(f"{error}That is X[model.feature_names_in_].") if in_order else error
    if problem := of_no_numbers(X):
        return type(error)(problem)
    X = np.asarray(X, object) if isinstance(X, list | tuple) else X
    not_numbers = [name for name, dtype in types if not dtype.startswith(_NUMBER_TYPES) or "interval" in dtype]
    columns = [(repr(name), X[name]) for name in not_numbers]
    if not types and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OSU":
        columns = enumerate(X.T)
    for name, values in columns:
        objects = np.asarray(values, object)
        missing = is_missing(objects)
        if kind_of(objects) == "times":
            return ValueError(f"Column {name} holds dates or durations, not numbers. {_NUMBER}")
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


def _looks_like_a_label(values):
    """Whether a column of text has many values, each in several rows, like names of patients."""
    text = [value for value in values if isinstance(value, str)]
    return _MANY_TEXTS <= len(set(text)) <= len(text) // 2


def refuse_lazy(X):
    """Raise a TypeError for a Dask collection or a polars LazyFrame."""
    if is_dask(X):
        raise TypeError("X is a Dask collection, and this is computed in memory: give a sample of its rows.")
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a LazyFrame, which has no rows yet: give X.collect(), or what skhorseshoe.disk.convert makes of it."
        )


def _check_room(X, dtypes, types):
    """Raise a MemoryError if the copy to come has no room. types : of the columns of a table."""
    cure = " Pass it in this form, or as float32, or put it on disk (skhorseshoe.disk)."
    if isinstance(X, np.ndarray) and not (X.dtype in dtypes and X.flags.c_contiguous):
        dtype = X.dtype if X.dtype in dtypes else np.dtype(dtypes[0])
        check_copy(dtype.itemsize * X.size, f"Making X C-contiguous and of {dtype}", cure)
    elif types and not _is_sparse_table(types) and {dtype for _, dtype in types} not in ({"float32"}, {"float64"}):
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


def copied_bytes(original, X):
    """Bytes of X that the checks have copied from the original."""
    if device.on_gpu(X):
        return 0
    if issparse(X):
        is_copy = not issparse(original) or not np.may_share_memory(X.data, getattr(original, "data", X.data[:0]))
        return is_copy * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    types = column_types(original)
    view = original if isinstance(original, np.ndarray) else X[:0]
    with suppress(Exception):  # NumPy lacks the column's type, so X is no view
        view = np.asarray(original[types[0][0]]) if types else view
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
    for rows in read_ahead(X, cut(0, len(X), max(1, _NUMBERS_AT_A_TIME // X.shape[1])), len(X)):
        if first := first_not_finite(X[rows]):
            raise not_finite(X[rows][first], rows.start + first[0], first[1], names)


def not_finite(value, row, j, names, imputer=" (SimpleImputer in a Pipeline)"):
    """An error that names the first number that is NaN or infinite. names : of the columns, or None."""
    missing = np.isnan(value)
    kind = "NaN" if missing else f"infinity or a value too large for {value.dtype}"
    cure = f"Impute missing values{imputer}" if missing else "Clip such values"
    column = j if names is None else repr(names[j])
    return ValueError(f"Input X contains {kind}: the first is in row {row} of column {column}. {cure} or drop the row.")


def _is_sparse_table(types):
    """Whether all columns are sparse pandas columns, which become a CSR matrix. types : of the columns."""
    return bool(types) and all(dtype.startswith("sparse[") for _, dtype in types)


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


def _refuse_times(table, types):
    if getattr(getattr(table, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(f"X holds dates or durations (its dtype is {table.dtype}), not numbers. {_NUMBER}")
    for name, dtype in types:
        if dtype.startswith(_TIME_TYPES):
            raise ValueError(f"Column {name!r} holds dates or durations (its dtype is {dtype}), not numbers. {_NUMBER}")


def _refuse_levels(table, types):
    """Raise a ValueError for categories and text that look like numbers: they may be names of levels, not amounts."""
    for name, dtype in types:
        is_text = dtype == "object" and any(isinstance(value, str | bytes) for value in table[name])
        if is_text or dtype.startswith(LEVEL_TYPES):
            raise ValueError(
                f"Column {name!r} is not numeric (its dtype is {dtype}), although its values look like numbers. "
                f"{_CURE} If they are quantities, convert the column: astype(float)."
            )
