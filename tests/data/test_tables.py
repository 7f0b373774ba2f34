"""Tables of pandas, polars and pyarrow: which columns are numbers, and whether they are those of the fit."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data import input_table

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2
TABLES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


def columns(**changed):
    """Columns a, b and c of X by name, as every kind of table takes them."""
    return {**dict(zip("abc", X.T, strict=True)), **changed}


@pytest.fixture(scope="module")
def model(short_fit):
    """Fitted on a table of pandas."""
    return short_fit(pd.DataFrame(columns()), Y)


def refused(model, table, says):
    """In fit and in predictions."""
    for use in (lambda: clone(model).fit(table, Y), lambda: model.predict_proba(table)):
        with pytest.raises(ValueError, match=says) as raised:
            use()
    return str(raised.value)


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("values", [
    ["red", "blue"] * 15,
    list(pd.date_range("2020-01-01", periods=30).to_pydatetime()),
    list(pd.to_timedelta(np.arange(30), unit="D").to_pytimedelta()),
], ids=["text", "date", "duration"])  # fmt: skip
def test_a_column_that_is_not_numbers_is_named(table, values, model):
    refused(model, table(columns(b=values)), r"'b'.*not num(eric|bers)")


TIMES = {
    "dates": [datetime.date(2020, 1, 1), None] * 15,
    "durations": np.array([datetime.timedelta(1)] * 30, object),
    "periods": pd.period_range("2020", periods=30),
}


@pytest.mark.parametrize("values", TIMES.values(), ids=TIMES)
def test_objects_that_are_dates_or_durations_are_called_so(values, model):
    refused(model, pd.DataFrame(columns(b=values)), "'b' holds dates or durations.*not numbers.*days since")
    with pytest.raises(ValueError, match="Column 0 holds dates or durations"):
        clone(model).fit(np.array([values], object).T, Y)


def test_a_column_of_intervals_is_named(model):
    intervals = pd.IntervalIndex.from_breaks(np.arange(31))  # whose type begins with "int"
    with pytest.raises(TypeError, match=r"Column 'b' is not numeric: .*Interval.*OneHotEncoder"):
        model.fit(pd.DataFrame(columns(b=intervals)), Y)


@pytest.mark.parametrize(
    "values", [[[1.0, 2.0]] * 30, np.ones((30, 2)), [{"x": 1.0}] * 30], ids=["lists", "arrays", "structs"]
)
def test_a_column_of_several_numbers_is_named(values, model):
    refused(model, pl.DataFrame(columns(b=values)), r"Column 'b' is not numeric.*[^.]\. Encode it first")


def test_missing_objects_are_called_missing(model):
    values = np.array([0.5, pd.NA, 1] * 10, object)
    refused(model, pd.DataFrame(columns(b=values)), "^Input X contains NaN: the first is in row 1 of column 'b'")
    nothing = pd.array([None] * 30, dtype=pd.ArrowDtype(pa.null()))
    refused(model, pd.DataFrame(columns(b=nothing)), "^Input X contains NaN: the first is in row 0 of column 'b'")


LEVELS = {
    "pandas category": lambda b: pd.DataFrame(columns(b=pd.Categorical(b))),
    "pandas text": lambda b: pd.DataFrame(columns(b=[str(one) for one in b])),
    "pandas objects": lambda b: pd.DataFrame(columns(b=np.array([*b[:-1], "7"], object))),
    "polars text": lambda b: pl.DataFrame(columns(b=[str(one) for one in b])),
    "polars category": lambda b: pl.DataFrame(columns(b=pl.Series([str(one) for one in b], dtype=pl.Categorical))),
    "pyarrow text": lambda b: pa.table(columns(b=[str(one) for one in b])),
    "pyarrow dictionary": lambda b: pa.table(columns(b=pa.array(b).dictionary_encode())),
    "bytes": lambda b: pa.table(columns(b=[str(one).encode() for one in b])),
    "objects of bytes": lambda b: pd.DataFrame(columns(b=[str(one).encode() for one in b])),
    "arrow text": lambda b: pd.DataFrame(columns(b=pd.array([str(one) for one in b], dtype="string[pyarrow]"))),
}


@pytest.mark.parametrize("table", LEVELS.values(), ids=LEVELS)
def test_levels_that_look_like_numbers_are_no_amounts(table, model):
    refused(model, table(list(range(1, 6)) * 6), "Column 'b' is not numeric .*OneHotEncoder.* If they are quantities")


def test_numbers_of_unusual_types_are_taken(short_fit):
    usual = short_fit(np.column_stack([X[:, 0], Y, X[:, 2]]), Y).coef_draws_
    for b in (Y.astype(bool), pd.array(Y, dtype="Int8"), Y.astype(object), pd.array(Y, dtype="Float32")):
        assert np.array_equal(short_fit(pd.DataFrame(columns(b=b)), Y).coef_draws_, usual)
    assert np.array_equal(short_fit(pa.table(columns(b=Y)).to_batches()[0], Y).coef_draws_, usual)
    unmasked = np.ma.masked_less(np.column_stack([X[:, 0], Y, X[:, 2]]), -1e9)
    assert np.array_equal(short_fit(unmasked, Y).coef_draws_, usual)


def test_a_lazy_frame_must_be_collected():
    with pytest.raises(TypeError, match=r"give X\.collect\(\)"):
        HorseshoeProbitClassifier(n_iter=10, burn_in=5).fit(pl.LazyFrame(columns()), Y)


@pytest.mark.parametrize("dtype", ["Int64", "boolean", "Float64", pd.ArrowDtype(pa.decimal128(5, 2))])
def test_a_missing_value_is_not_taken_for_a_wrong_type(dtype, model):
    text = refused(model, pd.DataFrame(columns(b=pd.array([1, None, 0] * 10, dtype=dtype))), "contains NaN.*column 'b'")
    assert "not numeric" not in text


@pytest.mark.parametrize(("names", "says"), [
    ("bac", r"same order(.|\n)*X\[model\.feature_names_in_\]"), ("ab", "now missing:\n- c"),
    ("abz", "unseen at fit time:\n- z"),
])  # fmt: skip
@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_changed_columns_are_refused_at_predict(table, names, says, model):
    """Before what is in the columns."""
    given = columns(a=["text"] * 30, z=X[:, 0])
    with pytest.raises(ValueError, match=says) as raised:
        model.predict(table({name: given[name] for name in names}))
    assert "not numeric" not in str(raised.value)


SPARSE = {
    "truth values": [pd.SparseDtype(bool, False)] * 3,
    "and counts": [pd.SparseDtype(bool, False), pd.SparseDtype(np.int8, 0), pd.SparseDtype(float, 0)],
    "float16": [pd.SparseDtype(np.float16, 0)] * 3,
    "nan is left out": ["Sparse[float]"] * 3,
    "ones are left out": [pd.SparseDtype(bool, True)] * 3,
}


@pytest.mark.parametrize("dtypes", SPARSE.values(), ids=SPARSE)
def test_sparse_columns_are_a_sparse_matrix_whatever_their_types(dtypes, short_fit, monkeypatch):
    """It has no dense copy, for which there may be no room."""
    numbers = (X > 0.5).astype(float)
    table = pd.DataFrame(numbers, columns=list("abc")).astype(dict(zip("abc", dtypes, strict=True)))
    monkeypatch.setattr(input_table, "check_copy", lambda n_bytes, *words: pytest.fail(words[0]))
    are_bool = {getattr(dtype, "subtype", None) for dtype in dtypes} == {np.dtype(bool)}
    rows = csr_array(numbers.astype(bool) if are_bool else numbers)
    model, expected = short_fit(table, Y), short_fit(rows, Y)
    np.testing.assert_array_equal(model.coef_draws_, expected.coef_draws_)
    np.testing.assert_array_equal(model.predict_proba(table), expected.predict_proba(rows))
    assert model.feature_names_in_.tolist() == list("abc")


@pytest.mark.parametrize("table", [*TABLES.values(), lambda data: pa.RecordBatch.from_pydict(data)])
def test_names_and_types_of_columns_are_read_alike_from_every_library(table):
    """Whole numbers of at most 16 bits have no need of float64; others do."""
    small = {"a": np.arange(30, dtype=np.int8), "b": np.arange(30, dtype=np.uint16)}
    for columns, dtype in ((small, np.float32), ({**small, "c": np.arange(30)}, np.float64)):
        read = input_table.read_X(table(columns))
        assert (read.names, read.dtypes[0]) == ([*columns], dtype)
        assert [text.removeprefix("u") for text in read.types] == ["int8", "int16", "int64"][: len(columns)]
        assert not read.is_sparse
