"""What ``fit`` and ``predict`` accept, as far as scikit-learn's own validation leaves something to say."""

from collections import Counter
from numbers import Integral

import numpy as np
import pandas as pd
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from .._backends import device
from .._backends.sparse_structure import check as check_structure
from .._utils.arrays import first_not_finite, kind_of
from .._utils.memmap import ahead, cut
from .._utils.memory import check_copy
from .._utils.names import finder
from .._utils.sklearn_compat import _get_feature_names

_CHECKED = 2**20  # elements looked at together
_CURE = "Encode it first, for example with ColumnTransformer and OneHotEncoder in a Pipeline, or drop it."
_NUMBER = "Convert them to a meaningful number, such as days since an event, or drop them."
_SCALE = "Divide the column, take its logarithm, or drop it."
_NUMBERS = ("int", "uint", "float", "bool", "double", "half", "sparse")
_SHOWN = 10  # classes in an error
_ONE_VS_REST = """from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
model = OneVsRestClassifier(make_pipeline(StandardScaler(), HorseshoeProbitClassifier(slab_scale=2)))"""
_TIMES = ("date", "time", "duration", "period")  # NumPy would take them for numbers
# And these, if they look like numbers.
_LEVELS = ("categor", "dictionary", "enum", "str", "utf8", "large_", "binary", "fixed_")


def is_dask(*collections):
    """Whether one of them is a collection of Dask's; Dask is not imported for it."""
    return any(type(collection).__module__.split(".")[0] in ("dask", "dask_expr") for collection in collections)


def check_X_and_y(estimator, X, y):
    """Rows and labels for a fit, of which the estimator learns the columns."""
    y = None if y is None else check_labels(y)
    with config_context(array_api_dispatch=False):  # NumPy alone computes here
        y = validate_data(estimator, "no_validation", y=y)  # before X, whose names it would take away
    X = check_X(estimator, X, reset=True)
    check_consistent_length(X, y)
    return X, y


def check_X(estimator, X, *, reset):
    """``validate_data`` for X, C-contiguous or CSR with ascending indices, of floating-point numbers; errors name the
    column of a table. A CuPy array stays where it is."""
    refuse_masked(X, "X")
    if device.on_gpu(X):
        X = device.checked(X)
        validate_data(estimator, X, reset=reset, skip_check_array=True)  # the number of columns, and their names
        return X
    refuse_lazy(X)
    _check_names(X, _column_types(X))
    X = _well_formed(X) if issparse(X) else with_names(X)
    types = _column_types(X)
    _refuse_times(X, types)
    dtypes = [np.float64, np.float32] if issparse(X) else [np.float64, np.float32, np.float16]
    _check_room(X, dtypes, types)
    if _is_sparse_table(types):
        X = _one_sparse_type(X)
    how = {"dtype": dtypes, "order": "C", "accept_sparse": "csr", "ensure_all_finite": False}
    try:
        # NumPy's sums that tell what is not finite may overflow.
        with config_context(array_api_dispatch=False), np.errstate(over="ignore", invalid="ignore"):
            checked = validate_data(estimator, X, reset=reset, **how)
            _check_finite(checked, getattr(estimator, "feature_names_in_", None))
    except (ValueError, TypeError, OverflowError) as error:
        better = _with_cure(error, X, types)
        if better is error:
            raise
        raise better from error
    _refuse_levels(X, types)
    if issparse(checked) and not checked.has_canonical_format:
        checked = checked.copy()
        checked.sum_duplicates()
    return checked


def _with_cure(error, X, types):
    """An error that names the column of X that is not numeric, or the cure; ``error`` itself if there is none."""
    if "feature names" in str(error):  # other columns than those of fit: that is what to say
        in_order = "same order" in str(error)
        return ValueError(f"{error}That is X[model.feature_names_in_].") if in_order else error
    X = np.asarray(X, object) if isinstance(X, list | tuple) else X
    columns = [(repr(name), X[name]) for name, dtype in types if not dtype.startswith(_NUMBERS) or "interval" in dtype]
    if not types and isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OSU":
        columns = enumerate(X.T)
    for name, values in columns:
        objects = np.asarray(values, object)
        missing = pd.isna(objects)
        if kind_of(objects) == "times":
            return ValueError(f"Column {name} holds dates or durations, not numbers. {_NUMBER}")
        if objects.ndim > 1:
            return ValueError(f"Column {name} is not numeric: each of its entries holds several. {_CURE}")
        try:
            np.where(missing, np.nan, objects).astype(np.float64)
        except OverflowError as why:
            return ValueError(f"Column {name} holds a whole number that is too large for float64 ({why}). {_SCALE}")
        except (ValueError, TypeError) as why:
            return type(why)(f"Column {name} is not numeric: {str(why).rstrip('.')}. {_CURE}")
        if missing.any() and isinstance(error, TypeError):  # NumPy takes pandas.NA for no number
            return not_finite(np.nan, np.argmax(missing), name, None)
    return error


def _check_names(table, types):
    if not types and len(getattr(table, "columns", ["X"])) == 0:
        raise ValueError(f"X is a table without columns: 0 feature(s) (shape={table.shape}) while 1 is required.")
    name, n = Counter(name for name, _ in types).most_common(1)[0] if types else ("", 1)
    if n > 1:
        raise ValueError(f"X has {n} columns named {name!r}. Rename them, or leave all names out: X.to_numpy().")


def with_names(X):
    """A table of polars as one of pandas where scikit-learn does not see its names: before 1.9 it does not in polars 2,
    and would take columns in another order for the right ones."""
    if type(X).__name__ == "RecordBatch":  # of pyarrow, whose columns are no names
        import pyarrow as pa

        return pa.Table.from_batches([X])
    if not isinstance(getattr(X, "columns", None), list) or _get_feature_names(X) is not None:
        return X
    return pd.DataFrame({name: X[name].to_numpy() for name in X.columns})


def refuse_lazy(X):
    """Raise a TypeError for a LazyFrame of polars."""
    if type(X).__name__ == "LazyFrame":
        raise TypeError(
            "X is a LazyFrame, which has no rows yet: give X.collect(), or what skhorseshoe.disk.convert makes of it."
        )


def refuse_masked(values, name):
    """Raise a ValueError for values under a mask, which NumPy would take for data."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        row, *column = np.argwhere(np.ma.getmaskarray(values))[0].tolist()
        where = f"row {row}{f' of column {column[0]}' if column else ''}"
        cure = "impute them: X.filled(np.nan), then SimpleImputer in a Pipeline" if column else "leave such rows out"
        raise ValueError(f"{name} is a masked array, and the first value under its mask is in {where}: {cure}.")


def _check_room(X, dtypes, types):
    """Raise a MemoryError before a copy is made for which there is no room. types : of the columns of a table."""
    cure = " Pass it in this form, or as float32, or put it on disk (skhorseshoe.disk)."
    if isinstance(X, np.ndarray) and not (X.dtype in dtypes and X.flags.c_contiguous):
        dtype = X.dtype if X.dtype in dtypes else np.dtype(dtypes[0])
        check_copy(dtype.itemsize * X.size, f"Making X C-contiguous and of {dtype}", cure)
    elif types and not _is_sparse_table(types) and {dtype for _, dtype in types} not in ({"float32"}, {"float64"}):
        # One type may need none.
        check_copy(8 * len(X) * len(types), "Making one array of float64 of the columns of X", cure)
    elif issparse(X) and X.format != "csr":
        check_copy((X.dtype.itemsize + 8) * X.nnz, "Making X a CSR matrix", " Pass it in this form: X.tocsr().")


def _well_formed(X):
    """A sparse X whose arrays name only places that it has; CSR if its format has them in lists."""
    if X.ndim != 2:
        return X  # scikit-learn says so
    check_structure(X)
    if X.format in ("lil", "dok"):
        try:
            X = X.tocsr()
        except Exception as error:  # whatever was put into them
            what = f"X is a sparse matrix in {X.format!r} format whose parts do not fit together"
            raise ValueError(f"{what} ({error}): build it anew.") from error
        check_structure(X)
    if X.dtype.kind not in "biufc":  # SciPy itself cannot compute with these
        what = f"X is a sparse matrix whose stored values have dtype {X.dtype}"
        raise ValueError(f"{what}; numbers are needed: X.data = X.data.astype(np.float64).")
    if X.format in ("csr", "csc") and len(X.indices) + len(X.data) > 2 * X.nnz:  # what is spare, nothing is to read
        X = type(X)((X.data[: X.nnz], X.indices[: X.nnz], X.indptr), shape=X.shape)
    return X


def made_of(given, X):
    """Bytes of X, as it has become of what was given, that are its own."""
    if device.on_gpu(X):
        return 0
    if issparse(X):
        own = not issparse(given) or not np.may_share_memory(X.data, getattr(given, "data", X.data[:0]))
        return own * (X.data.nbytes + X.indices.nbytes + X.indptr.nbytes)
    types = _column_types(given)
    part = np.asarray(given[types[0][0]]) if types else given if isinstance(given, np.ndarray) else X[:0]
    return 0 if np.may_share_memory(X, part) else X.nbytes


def _check_finite(X, names):
    """By blocks of rows, since X may be on disk. names : of the columns, or None."""
    if get_config()["assume_finite"]:
        return
    if issparse(X):
        if first := first_not_finite(X.data):
            row = np.searchsorted(X.indptr, first[0], side="right") - 1
            raise not_finite(X.data[first], row, X.indices[first], names)
        return
    for rows in ahead(X, cut(0, len(X), max(1, _CHECKED // X.shape[1])), len(X)):
        if first := first_not_finite(X[rows]):
            raise not_finite(X[rows][first], rows.start + first[0], first[1], names)


def not_finite(value, row, j, names, imputer=" (SimpleImputer in a Pipeline)"):
    """An error that names the first number that is NaN or infinite. names : of the columns, or None."""
    missing = np.isnan(value)
    what = "NaN" if missing else f"infinity or a value too large for {value.dtype}"
    cure = f"Impute missing values{imputer}" if missing else "Clip such values"
    column = j if names is None else repr(names[j])
    return ValueError(f"Input X contains {what}: the first is in row {row} of column {column}. {cure} or drop the row.")


def check_labels(y):
    """Labels in one dimension, on the host, of which none is masked or missing."""
    refuse_masked(y, "y")
    if isinstance(y, (list, tuple)):
        refuse_missing(np.asarray(y, object))  # which an array of text would swallow
    if (dtype := nullable_type(y)) is not None:
        refuse_missing(y)
        y = y.to_numpy(dtype)
    y = column_or_1d(device.to_host(y), warn=True)
    refuse_missing(y)
    return y


def nullable_type(y):
    """NumPy's type for nullable labels of pandas, a column or a table of one, of which scikit-learn makes floats; None
    for other labels."""
    column = y.iloc[:, 0] if isinstance(y, pd.DataFrame) and y.shape[1] == 1 else y
    dtype = getattr(getattr(column, "dtype", None), "numpy_dtype", None)
    return dtype if dtype is not None and dtype.kind in "biu" else None


def encode_labels(y, without=""):
    """The two classes, and the labels as 0 and 1, uint8. without : in words, the rows that have been left out."""
    y = np.asarray(y)
    if y.dtype == object and type_of_target(y) == "unknown":  # which says nothing to scikit-learn
        kinds = sorted({type(label).__name__ for label in y.flat})
        one = next((kind for kind in ("bool", "int", "float") if kinds == [kind]), "str")
        raise ValueError(f"Unknown label type: y holds {' and '.join(kinds)} as objects. Convert it: astype({one}).")
    with np.errstate(invalid="ignore"):  # of numbers that are none of int64
        check_classification_targets(y)
    classes = np.unique(y)
    if len(classes) < 2:
        what = f"contains only one class{without}, {classes.tolist()[0]!r}" if len(classes) else f"has no rows{without}"
        raise ValueError(f"y {what}: a classifier needs rows of two classes.")
    if len(classes) > 2:
        some = ", ".join(map(repr, classes[:_SHOWN].tolist())) + " and others" * (len(classes) > _SHOWN)
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(classes)} classes, {some}. For one model of each class against the rest (user guide, "
            f'"Data"):\n\n{_ONE_VS_REST}'
        )
    return classes, (y == classes[1]).astype(np.uint8)


def refuse_missing(labels, start=0):
    """Raise a ValueError for a label that is missing. start : number of the first row."""
    missing = np.ravel(pd.isna(labels))
    if missing.any():
        raise ValueError(f"The label of row {start + np.argmax(missing)} is missing: leave such rows out.")


def is_second(y, X, classes):
    """Whether each label is the second class; (n,) bool."""
    y = check_labels(y)
    check_consistent_length(X, y)
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(f"y holds labels that fit has not seen: {unknown.tolist()}; classes_ is {classes.tolist()}.")
    return y == classes[1]


def column_mask(given, p, names):
    """The columns that ``given`` means, by names, indices or a mask of bool, as a mask; (p,) bool.

    names : of the columns, or None.
    """
    mask = np.zeros(p, bool)
    if given is None:
        return mask
    values = np.asarray(given, object)  # of which each stays a name or a number
    values = [one.item() if isinstance(one, np.generic) else one for one in values] if values.ndim == 1 else [None]
    kinds = {isinstance(one, bool) for one in values}
    if len(kinds) > 1 or not all(isinstance(one, (str, Integral)) for one in values):
        raise ValueError(f"unpenalized must be a list of names or indices, or a mask; got {given!r:.80}.")
    if kinds == {True}:
        if len(values) != p:
            raise ValueError(f"unpenalized is a mask of {len(values)} entries, but X has {p} columns.")
        mask[:] = values
    else:
        cure = f" Give names of a table, indices from {-p} to {p - 1}, or a mask."
        find = finder(range(p) if names is None else list(names), "columns of X", cure, numbered=True)
        found = [find(one, "unpenalized") for one in values]
        if len({*found}) < len(found):
            raise ValueError(f"unpenalized has a column more than once: {values[:9]}. Give a mask as booleans.")
        mask[found] = True
    if mask.all():
        raise ValueError(f"unpenalized has all {p} columns: the horseshoe prior needs one at least to shrink.")
    return mask


def _column_types(table):
    """Names and lower-case types of a table's columns; nothing for anything but a table."""
    if hasattr(table, "schema") and hasattr(table, "column_names"):  # pyarrow
        return list(zip(table.column_names, (str(t).lower() for t in table.schema.types), strict=True))
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        return list(zip(table.columns, (str(t).lower() for t in table.dtypes), strict=True))
    return []


def _is_sparse_table(types):
    """Whether all columns are sparse ones of pandas, which become a CSR matrix. types : of the columns."""
    return bool(types) and all(dtype.startswith("sparse[") for _, dtype in types)


def _one_sparse_type(X):
    """A table with sparse columns alone, of numbers that SciPy has and with what they leave out being 0."""
    known = [pd.SparseDtype(dtype, 0) for dtype in (np.float32, np.float64)]
    is_number = all(dtype.kind in "biuf" for dtype in X.dtypes)
    if not is_number or all(dtype in known for dtype in X.dtypes):
        return X
    # In older versions of pandas astype changes what a column leaves out, but not its values.
    arrays = (pd.arrays.SparseArray(np.asarray(X.iloc[:, j], np.float64), fill_value=0.0) for j in range(X.shape[1]))
    return pd.DataFrame(dict(enumerate(arrays)), index=X.index).set_axis(X.columns, axis=1)


def _refuse_times(table, types):
    if getattr(getattr(table, "dtype", None), "kind", None) in ("m", "M"):
        raise ValueError(f"X holds dates or durations (its dtype is {table.dtype}), not numbers. {_NUMBER}")
    for name, dtype in types:
        if dtype.startswith(_TIMES):
            raise ValueError(f"Column {name!r} holds dates or durations (its dtype is {dtype}), not numbers. {_NUMBER}")


def _refuse_levels(table, types):
    """Raise a ValueError for categories and text that look like numbers: those of a category are names, no amounts."""
    for name, dtype in types:
        is_text = dtype == "object" and any(isinstance(one, str | bytes) for one in table[name])
        if is_text or dtype.startswith(_LEVELS):
            raise ValueError(
                f"Column {name!r} is not numeric (its dtype is {dtype}), although its values look like numbers. "
                f"{_CURE} If they are quantities, convert the column: astype(float)."
            )
