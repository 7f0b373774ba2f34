"""Rows that are converted once and stay on disk: what comes back is what was given, and what is refused."""

import datetime
import decimal
from itertools import count

import numpy as np
import pandas as pd
import pyarrow.parquet
import pytest
import scipy.sparse
from tables import NAMES, SOURCES, in_parts, write_parquet

from skhorseshoe import disk


@pytest.mark.parametrize("kind", SOURCES)
def test_what_comes_back_is_what_was_given(kind, frame, tmp_path):
    X, y = disk.convert(SOURCES[kind](frame, tmp_path / "source"), tmp_path / "rows", y="ill")
    want = frame[NAMES].astype(np.float32)
    if kind == "CSV":  # the decimal digits that tell one float32 from another are another float64
        np.testing.assert_array_equal(X["dose"], [float(str(value)) for value in frame["dose"].to_numpy()])
        X = X.astype(np.float32)
    pd.testing.assert_frame_equal(X, want, check_column_type=False)
    assert y.tolist() == frame["ill"].tolist()


def test_an_index_that_pandas_saved_is_no_column(frame, tmp_path):
    frame[frame["age"] > 30].to_parquet(tmp_path / "old.parquet")
    assert "__index_level_0__" in pyarrow.parquet.read_schema(tmp_path / "old.parquet").names
    X, _ = disk.convert(tmp_path / "old.parquet", tmp_path / "rows", y="ill")
    assert list(X.columns) == NAMES


class Other:
    """An array of another library, whose parts can become NumPy's."""

    def __init__(self, array):
        self.array, self.shape = array, array.shape

    def __len__(self):
        return len(self.array)

    def __getitem__(self, rows):
        return memoryview(np.ascontiguousarray(self.array[rows]))


@pytest.mark.parametrize("kind", ["array", "other", "pairs"])
def test_arrays_have_no_names_and_their_labels_beside_them(kind, frame, tmp_path):
    X, y = frame[NAMES].to_numpy(np.float64), frame["ill"].to_numpy(object)
    given = {"source": X if kind == "array" else Other(X), "y": y}
    if kind == "pairs":
        given = {"source": zip(in_parts(X), in_parts(y), strict=True)}
    got, labels = disk.convert(**given, folder=tmp_path / "rows")
    assert type(got) is np.memmap
    assert got.dtype == np.float32  # which holds all of these numbers
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(labels, y)


def test_columns_are_taken_in_the_order_asked_for(frame, tmp_path):
    parts = [frame[:300], frame[300:][["smokes", "age", "ill", "dose"]]]  # parts may have them in another order
    X, y = disk.convert(parts, tmp_path / "rows", columns=["age", "dose"])
    assert list(X.columns) == ["age", "dose"]
    np.testing.assert_array_equal(X, frame[["age", "dose"]])
    assert y is None


def test_columns_and_types_may_be_numpys(tmp_path):
    X = np.arange(12.0).reshape(4, 3)
    for dtype in (np.float64, np.dtype("float32")):
        got, _ = disk.convert(X, tmp_path / np.dtype(dtype).name, columns=np.flatnonzero([1, 0, 1]), dtype=dtype)
        assert got.dtypes.tolist() == [dtype] * 2
        np.testing.assert_array_equal(got, X[:, [0, 2]])


LABELS = {
    "bool": [True, False, True],
    "int": [3, -1, 3],
    "float": [0.5, 2.0, 0.5],
    "str": ["a", "b", "a"],
    "category": pd.Categorical(["a", "b", "a"]),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_keep_their_kind(kind, tmp_path):
    _, y = disk.convert(pd.DataFrame({"x": [1.0, 2, 3], "y": LABELS[kind]}), tmp_path, y="y")
    assert y.tolist() == list(LABELS[kind])
    assert y.dtype.kind == {"bool": "b", "int": "i", "float": "f"}.get(kind, "U")


def test_labels_may_lie_beside_a_table(frame, tmp_path):
    X, y = disk.convert(frame[NAMES], tmp_path / "rows", y=frame["ill"])
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))
    assert y.tolist() == frame["ill"].tolist()


def test_dask(frame, tmp_path):
    dask = pytest.importorskip("dask.dataframe", reason="reads Dask frames, an optional library", exc_type=ImportError)
    source = dask.from_pandas(frame, npartitions=5)
    with pytest.raises(
        ValueError, match=r"got DataFrame of shape .*\(part\.compute\(\) for part in frame\.partitions\)"
    ):
        disk.convert(source, tmp_path / "rows", y="ill")
    X, y = disk.convert((part.compute() for part in source.partitions), tmp_path / "rows", y="ill")
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))
    assert y.tolist() == frame["ill"].tolist()
    source = source[NAMES].astype(np.float32)
    X, _ = disk.convert(source.to_dask_array(lengths=True), tmp_path / "more")
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        disk.convert(source.to_dask_array(), tmp_path / "unknown")


# Narrow, but exact ----------------------------------------------------------------------------------------------------

NARROWEST = {
    "float32": [[0.5, 2.0**24], [np.float32(0.1), -(2.0**100)]],
    "float64": [[1.0, 2.0], [0.1, 3.0]],
    "float64, large": [[1, 2], [2**24 + 1, 3]],
    "float64, huge": [[1.0, 2.0], [1e300, 3.0]],
}


@pytest.mark.parametrize("want", NARROWEST)
def test_the_dtype_is_the_narrowest_that_is_exact(want, tmp_path):
    source = [pd.DataFrame({"x": part, "i": np.array([3, 4], np.int16)}) for part in NARROWEST[want]]
    X, _ = disk.convert(source, tmp_path / "rows")
    assert set(X.dtypes) == {np.dtype(want.partition(",")[0])}
    assert X["x"].tolist() == [value for part in NARROWEST[want] for value in part]
    assert X["i"].tolist() == [3, 4, 3, 4]
    disk.load(tmp_path / "rows", check=True)  # the checksums are those of the wider rows


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_another_dtype_rounds(dtype, tmp_path):
    values = np.array([0.1, 1 / 3, 1e-3])
    X, _ = disk.convert(pd.DataFrame({"x": values}), tmp_path / "rows", dtype=dtype)
    np.testing.assert_array_equal(X["x"], values.astype(dtype))
    assert X["x"].dtype == dtype


def test_small_numbers_beside_large_ones_of_their_column_are_rounded(seed, tmp_path):
    """As a few of any normal numbers are below 6e-5, the least that float16 holds to three digits."""
    values = np.random.default_rng(seed).standard_normal((51, 4))
    values[-1] = 1e-9  # a part of one row
    X, _ = disk.convert(values, tmp_path / "rows", dtype="float16")
    np.testing.assert_array_equal(X, values.astype(np.float16))
    least = np.full((3, 2), 6e-8, np.float16)  # which is exact
    np.testing.assert_array_equal(disk.convert(least, tmp_path / "least", dtype="float16")[0], least)


def test_numbers_of_other_kinds(tmp_path):
    table = pd.DataFrame(
        {
            "nullable": pd.array([1, 2], "Int64"),
            "decimal": [decimal.Decimal("0.5"), decimal.Decimal("1.25")],
            "objects": np.array([1, 2.5], object),
        }
    )
    X, _ = disk.convert(table, tmp_path / "rows")
    np.testing.assert_array_equal(X, [[1, 0.5, 1], [2, 1.25, 2.5]])


# What is refused ------------------------------------------------------------------------------------------------------


def column(values):
    return [pd.DataFrame({"a": np.ones(50), "b": np.ones(50)}), pd.DataFrame({"a": np.ones(2), "b": values})]


def named(*names):
    return pd.DataFrame(np.ones((2, 2)), columns=list(names))


REFUSED = {
    "text": (column(["x", "y"]), {}, r"'b' is not numeric: .*'x'.*OneHotEncoder"),
    "a sign among numbers in text": (column(["7", "?"]), {}, r"'b' is not numeric: .*such as '\?' in row 51\."),
    "dates": (column(pd.to_datetime(["2020-01-01"] * 2)), {}, r"'b' is not numeric: .*datetime64.*or convert it.*days"),
    "objects of dates": (column([datetime.date(2020, 1, 1)] * 2), {}, r"'b' is not numeric: .*or convert it.*days"),
    "a category of numbers": (column(pd.Categorical([1, 2])), {}, r"'b' is not numeric: .*category"),
    "missing": (column([1, np.nan]), {}, r"'b' holds a missing value in row 51"),
    "nullable": (column(pd.array([1, None], "Int64")), {}, r"'b' holds a missing value in row 51"),
    "infinite": (column([-np.inf, 1]), {}, r"'b' holds -inf in row 50"),
    "float16": (column([1, 1e5]), {"dtype": "float16"}, r"'b' holds 100000.0 in row 51.*finite numbers of float16"),
    "too small": ([named("a", "b") * [1, 1e-9]], {"dtype": "float16"}, r"'b' holds 1e-09 in row 0.*small for float16"),
    "subnormal": ([named("a", "b") * [1, 3.3e-5]], {"dtype": "float16"}, r"'b' holds 3.3e-05 in row 0"),
    "too small for float32": ([named("a", "b") * [1, 1e-45]], {"dtype": "float32"}, r"'b' holds 1e-45 in row 0"),
    "an identifier": (column([1, 2**53 + 1]), {}, r"'b' holds 9007199254740993 in row 51.*identifier"),
    "a long identifier": (column([1, 10**20]), {}, r"'b' holds 1e\+20 in row 51.*identifier"),
    "new": ([*column([1, 2]), pd.DataFrame({"a": [1], "b": [1], "c": [1]})], {}, r"row 52 on .*unknown are \['c'\]"),
    "gone": ([*column([1, 2]), pd.DataFrame({"a": [1]})], {}, r"row 52 on .*missing are \['b'\]"),
    "not there": (column([1, 2]), {"columns": ["a", "z"]}, r"row 0 on .*missing are \['z'\]\. "),
    "no such label": (column([1, 2]), {"y": "z"}, r"row 0 on .*y='z': missing are \['z'\]"),
    "twice": (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), {}, r"X has 2 columns named 'a'\. Rename them"),
    "unlabelled": (column(["x", None]), {"y": "b"}, r"label of row 51 is missing"),
    "a pair unlabelled": ([(np.ones((2, 2)), ["x", np.nan])], {}, r"label of row 1 is missing"),
    "no classes": (np.ones((300, 2)), {"y": np.arange(300)}, r"label of row 256 is 256, .*256 at most"),
    "labels of another kind": (
        column(pd.to_datetime(["2020-01-01"] * 2))[1:],
        {"y": "b"},
        r"label of row 0 is Timestamp\('[^,]*: labels on disk must be all text or numbers",
    ),
    "no rows": ([pd.DataFrame({"a": []})], {}, r"no rows"),
    "one dimension": ([np.ones(3)], {}, r"two dimensions.*\(3,\)"),
    "fewer columns": ([np.ones((3, 2)), np.ones((3, 1))], {}, r"row 3 on .*missing are \[1\]"),
    "fewer labels": ([(np.ones((3, 2)), [0, 1])], {}, r"3 rows from row 0 on need as many labels"),
    "NaN in an array": (np.array([[1, 2], [3, np.nan]]), {}, r"Column 1 holds a missing value in row 1"),
    "text in an array": (np.array([[1, 2], [3, "x"]], object), {}, r"Column 1 is not numeric"),
    "names of an array": (np.ones((3, 2)), {"y": "b"}, r"missing are \['b'\].*labels of arrays are arrays"),
    "labels of frames": (column([1, 2]), {"y": np.ones(3)}, r"y is an array, which goes with one table or array"),
    "too few labels for a table": (column([1, 2])[0], {"y": np.ones(3)}, r"50 rows from row 0 on need as many labels"),
    "too few labels": (np.ones((3, 2)), {"y": np.ones(2)}, r"3 rows needs as many labels; got the shape \(2,\)"),
    "the number of a column": (np.ones((3, 2)), {"y": 1}, r"3 rows needs as many labels; got the shape \(\)"),
    "a long label": (column(["no", "x" * 1001]), {"y": "b"}, r"label 'x+…x+' has 1001 letters, of 1000 at most"),
    "text among numbers": (column([1, "1"]), {"y": "b"}, r"label of row 51 is '1', the first is 1.0: .*text or"),
    "labels at times": ([(np.ones((3, 2)), [0, 1, 1]), np.ones((3, 2))], {}, r"row 3 on the source has no labels"),
    "labels from some row on": ([np.ones((3, 2)), (np.ones((3, 2)), [0, 1, 1])], {}, r"row 3 on the source has labels"),
    "a hidden number": (np.ma.masked_equal([[1, 2], [3, 4]], 4), {}, r"Column 1 holds a missing value in row 1"),
    "a hidden label": (np.ones((2, 2)), {"y": np.ma.masked_equal([1, 2], 2)}, r"label of row 1 is missing"),
    "names of two levels": (named(("a", "x"), ("a", "y")), {}, r"rename .*\('a', 'x'\).*\.map\(str\)"),
    "no name": (named("a", None), {}, r"names, strings or numbers: rename \[(nan|None)\]"),
    "a column twice": (column([1, 2]), {"columns": ["a", "b", "a"]}, r"columns must .*each once"),
    "the labels in X": (column([1, 2]), {"columns": ["a", "b"], "y": "b"}, r"columns must .*other than y='b'"),
    "columns of none": (column([1, 2]), {"columns": []}, r"columns must .*got \[\]"),
    "columns in text": (column([1, 2]), {"columns": "a"}, r"columns must be a list of .*got 'a'"),
    "labels only": (pd.DataFrame({"b": [1, 2]}), {"y": "b"}, r"the columns \['b'\], with y='b': none is for X"),
    "no columns": (np.ones((3, 0)), {}, r"two dimensions.*\(3, 0\)"),
    "dtype": (column([1, 2]), {"dtype": "int8"}, r"float16, float32, float64, or None; got 'int8'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_the_place_and_the_cure(what, tmp_path):
    source, given, message = REFUSED[what]
    with pytest.raises(ValueError, match=message):
        disk.convert(source, tmp_path / "rows", **given)
    with pytest.raises(ValueError, match=r"has stopped after|holds no rows"):
        disk.load(tmp_path / "rows")


def test_names_that_are_numbers_come_back(tmp_path):
    for i, names in enumerate(([3, 4], [0.5, 1.5], ["a", 1])):
        X, _ = disk.convert(named(*names), tmp_path / f"{i}")
        assert list(X.columns) == names


def test_a_call_put_right_starts_anew_where_nothing_was_written(frame, tmp_path):
    with pytest.raises(ValueError, match="'ill' is not numeric"):
        disk.convert(frame, tmp_path / "rows")
    disk.convert(frame, tmp_path / "rows", y="ill")


def test_sources_that_are_none(tmp_path):
    with pytest.raises(TypeError, match=r"paths, or tables or arrays.*got int"):
        disk.convert(3, tmp_path / "rows")
    for sparse in (scipy.sparse.coo_array(np.eye(3)), [scipy.sparse.coo_array(np.eye(3))]):
        with pytest.raises(ValueError, match=r"got coo_array of shape \(3, 3\).*\.toarray\(\)"):
            disk.convert(sparse, tmp_path / "rows")


# For the user ---------------------------------------------------------------------------------------------------------


def test_progress_is_logged(frame, tmp_path, caplog, clock):
    clock("_utils.progress", count(step=5).__next__)
    caplog.set_level("INFO", "skhorseshoe")
    disk.convert(write_parquet(frame, tmp_path / "source"), tmp_path / "rows", y="ill", verbose=1)
    assert "20 rows written" in caplog.text
    caplog.clear()
    disk.convert(in_parts(frame), tmp_path / "more", y="ill")
    assert not caplog.text
