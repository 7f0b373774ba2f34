"""Rows that are converted once and stay on disk: what comes back is what was given, and what the user sees."""

import decimal
import shutil
import sys

import numpy as np
import pandas as pd
import pyarrow.dataset
import pyarrow.parquet
import pytest
import rich.progress
import scipy.sparse
from tables import NAMES, SOURCES, in_parts, stopped, write_parquet

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


@pytest.mark.parametrize("pairs", [False, True], ids=["array and labels", "pairs"])
def test_arrays_have_no_names_and_their_labels_beside_them(pairs, frame, tmp_path):
    X, y = frame[NAMES].to_numpy(np.float64), frame["ill"].to_numpy()
    given = {"source": list(zip(in_parts(X), in_parts(y), strict=True))} if pairs else {"source": X, "y": y}
    got, labels = disk.convert(**given, folder=tmp_path / "rows")
    assert type(got) is np.memmap
    assert got.dtype == np.float32  # which holds all of these numbers
    np.testing.assert_array_equal(got, X)
    np.testing.assert_array_equal(labels, y)


def test_zarr(frame, tmp_path):
    zarr = pytest.importorskip("zarr", reason="reads zarr arrays, an optional library", exc_type=ImportError)
    X = frame[NAMES].to_numpy(np.float64)
    array = zarr.create_array(str(tmp_path / "X.zarr"), shape=X.shape, dtype=X.dtype, chunks=(70, 2))
    array[:] = X
    for kind, source in (("array", array), ("path", tmp_path / "X.zarr")):
        got, labels = disk.convert(source, tmp_path / kind, y=frame["ill"].to_numpy())
        np.testing.assert_array_equal(got, X)
        np.testing.assert_array_equal(labels, frame["ill"])


def test_columns_are_taken_in_the_order_asked_for(frame, tmp_path):
    parts = [frame[:300], frame[300:][["smokes", "age", "ill", "dose"]]]  # parts may have them in another order
    X, y = disk.convert(parts, tmp_path / "rows", columns=["age", "dose"])
    assert list(X.columns) == ["age", "dose"]
    np.testing.assert_array_equal(X, frame[["age", "dose"]])
    assert y is None


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


def test_dask(frame, tmp_path):
    """A frame is read by its partitions; of an array the error names the way, which is gone here."""
    dask = pytest.importorskip("dask.dataframe", reason="reads Dask frames, an optional library", exc_type=ImportError)
    X, y = disk.convert(dask.from_pandas(frame, npartitions=5), tmp_path / "rows", y="ill")
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))
    assert y.tolist() == frame["ill"].tolist()
    source = dask.from_pandas(frame[NAMES].astype(np.float32), npartitions=5).to_dask_array(lengths=True)
    with pytest.raises(TypeError, match=r"\(block\.compute\(\) for block in source\.to_delayed\(\)\.ravel\(\)\)"):
        disk.convert(source, tmp_path / "more")
    X, _ = disk.convert((block.compute() for block in source.to_delayed().ravel()), tmp_path / "more")
    np.testing.assert_array_equal(X, frame[NAMES].astype(np.float32))


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
    "text": (column(["x", "y"]), {}, r"Column 'b' is not numeric .*'x'.*OneHotEncoder"),
    "numbers in text": (column(["1", "2"]), {}, r"Column 'b' is not numeric .*'1'"),
    "a sign among numbers in text": (column(["7", "?"]), {}, r"Column 'b' is not numeric .*such as '\?'"),
    "dates": (column(pd.to_datetime(["2020-01-01"] * 2)), {}, r"Column 'b' is not numeric .*datetime64"),
    "a category": (column(pd.Categorical(["x", "y"])), {}, r"Column 'b' is not numeric"),
    "a category of numbers": (column(pd.Categorical([1, 2])), {}, r"Column 'b' is not numeric .*category"),
    "missing": (column([1, np.nan]), {}, r"Column 'b' holds a missing value in row 51"),
    "nullable": (column(pd.array([1, None], "Int64")), {}, r"Column 'b' holds a missing value in row 51"),
    "infinite": (column([-np.inf, 1]), {}, r"Column 'b' holds -inf in row 50"),
    "float16": (column([1, 1e5]), {"dtype": "float16"}, r"Column 'b' holds 100000.0 in row 51.*too large for float16"),
    "an identifier": (column([1, 2**53 + 1]), {}, r"Column 'b' holds 9007199254740993, which float64 cannot"),
    "new": ([*column([1, 2]), pd.DataFrame({"a": [1], "b": [1], "c": [1]})], {}, r"row 52 on .*unknown are c"),
    "gone": ([*column([1, 2]), pd.DataFrame({"a": [1]})], {}, r"row 52 on .*missing are b"),
    "not there": (column([1, 2]), {"columns": ["a", "z"]}, r"row 0 on .*missing are z"),
    "no such label": (column([1, 2]), {"y": "z"}, r"y='z' is no column of the source; it has a, b"),
    "twice": (pd.DataFrame(np.ones((2, 2)), columns=["a", "a"]), {}, r"\['a'\] are there more than once"),
    "unlabelled": (column(["x", None]), {"y": "b"}, r"The label of row 51 is missing"),
    "no classes": (pd.DataFrame({"a": np.ones(300), "b": np.arange(300)}), {"y": "b"}, r"more than 256 different"),
    "no rows": ([pd.DataFrame({"a": []})], {}, r"no rows"),
    "nothing": ([], {}, r"no rows"),
    "one dimension": ([np.ones(3)], {}, r"two dimensions.*\(3,\)"),
    "fewer columns": ([np.ones((3, 2)), np.ones((3, 1))], {}, r"row 3 on has 1 columns, others 2"),
    "NaN in an array": (np.array([[1, 2], [3, np.nan]]), {}, r"Column 1 holds a missing value in row 1"),
    "names of an array": (np.ones((3, 2)), {"y": "b"}, r"an array has no names"),
    "labels of frames": (column([1, 2]), {"y": np.ones(3)}, r"y is an array, which goes with one array"),
    "too few labels": (np.ones((3, 2)), {"y": np.ones(2)}, r"\(3, 2\) and \(2,\)"),
    "text among numbers": (
        column([1, "1"]),
        {"y": "b"},
        r"The label of row 51 is '1', and others are like 1.0: .*all text",
    ),
    "text, then numbers": (
        [pd.DataFrame({"a": [1], "b": [k]}) for k in ("1", 1)],
        {"y": "b"},
        r"The label of row 1 is 1, and others are like '1'",
    ),
    "a hidden number": (np.ma.masked_equal([[1, 2], [3, 4]], 4), {}, r"Column 1 holds a missing value in row 1"),
    "a hidden number in a pair": (
        [(np.ma.masked_less([[2.0], [1]], 2), [0, 1])],
        {},
        r"Column 0 .* missing value in row 1",
    ),
    "a hidden label": (np.ones((2, 2)), {"y": np.ma.masked_equal([1, 2], 2)}, r"The label of row 1 is missing"),
    "names of two levels": (named(("a", "x"), ("a", "y")), {}, r"\('a', 'x'\): flatten them, .*\"_\"\.join"),
    "names that are dates": (
        named(*pd.to_datetime(["2020-01-01", "2020-01-02"])),
        {},
        r"strings or numbers; got Timestamp",
    ),
    "no name": (named("a", None), {}, r"strings or numbers; got (nan|None): rename it"),
    "a column twice": (column([1, 2]), {"columns": ["a", "b", "a"]}, r"columns names a more than once"),
    "the labels in X": (column([1, 2]), {"columns": ["a", "b"], "y": "b"}, r"columns names 'b', which is y"),
    "columns of none": (column([1, 2]), {"columns": []}, r"columns=\[\] takes no column"),
    "labels only": (pd.DataFrame({"b": [1, 2]}), {"y": "b"}, r"no column for X, only b"),
    "no columns": (np.ones((3, 0)), {}, r"no columns: its shape is \(3, 0\)"),
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


def test_sources_that_are_none(frame, tmp_path):
    with pytest.raises(TypeError, match="got int"):
        disk.convert(3, tmp_path / "rows")
    rows = scipy.sparse.coo_array(np.eye(3))
    for sparse in (rows, [rows]):
        with pytest.raises(TypeError, match=r"fit reads them as they are.*\.toarray\(\)"):
            disk.convert(sparse, tmp_path / "rows")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        disk.convert(tmp_path / "none", tmp_path / "rows")
    with pytest.raises(FileNotFoundError, match=r"sorted\(glob\.glob\(pattern\)\)"):
        disk.convert(str(tmp_path / "*.parquet"), tmp_path / "rows")
    mixed = write_parquet(frame, tmp_path / "mixed")
    (mixed / "more.csv").write_text("a,b")
    with pytest.raises(ValueError, match="files of one kind"):
        disk.convert(mixed, tmp_path / "rows")
    (tmp_path / "hive" / "year=2020").mkdir(parents=True)
    frame.to_parquet(tmp_path / "hive" / "year=2020" / "1.parquet")
    shutil.copytree(tmp_path / "hive" / "year=2020", tmp_path / "hive" / "year=2021")
    for source in (tmp_path / "hive", sorted((tmp_path / "hive").rglob("*.parquet"))):
        with pytest.raises(ValueError, match=r"Give pyarrow\.dataset"):
            disk.convert(source, tmp_path / "rows")


def test_files_of_a_list_are_read_in_its_order(frame, tmp_path):
    """Also one that is there twice."""
    folder = write_parquet(frame, tmp_path / "source")
    files = [folder / f"part.{i}.parquet" for i in (3, 10, 3)]
    X, _ = disk.convert(files, tmp_path / "rows", y="ill")
    want = pd.concat([frame[NAMES][i * 50 : (i + 1) * 50] for i in (3, 10, 3)])
    np.testing.assert_array_equal(X, want.astype(np.float32))


@pytest.mark.parametrize(("module", "file"), [("pyarrow.parquet", "x.parquet"), ("zarr", "x.zarr/zarr.json")])
def test_a_library_that_is_not_there_is_named(module, file, tmp_path, monkeypatch):
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text("")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match="pip install"):
        disk.convert(tmp_path / file.partition("/")[0], tmp_path / "rows")


# For the user ---------------------------------------------------------------------------------------------------------


def test_progress_is_logged(frame, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("skhorseshoe._utils.progress._SECONDS", 0.0)
    caplog.set_level("INFO", "skhorseshoe")
    disk.convert(write_parquet(frame, tmp_path / "source"), tmp_path / "rows", y="ill", verbose=1)
    assert "20 of 600 rows written" in caplog.text
    assert " s left" in caplog.text
    caplog.clear()
    disk.convert(in_parts(frame), tmp_path / "more", y="ill")
    assert not caplog.text


def test_a_progress_bar_is_drawn_where_it_is_asked_for(frame, tmp_path, capsys):
    source = write_parquet(frame, tmp_path / "source")
    disk.convert(source, tmp_path / "silent", y="ill")
    assert capsys.readouterr() == ("", "")
    disk.convert(source, tmp_path / "rows", y="ill", progress=True)
    shown = capsys.readouterr().out
    assert "600 of 600 rows written" in shown
    assert "100%" in shown
    disk.convert(in_parts(frame), tmp_path / "more", y="ill", progress=True)  # of unknown length
    shown = capsys.readouterr().out
    assert "600 rows written" in shown
    assert "100%" in shown


def test_a_progress_bar_goes_on_where_the_conversion_stopped(frame, tmp_path, monkeypatch):
    stopped(frame, tmp_path / "rows")
    moves = []

    class Progress(rich.progress.Progress):
        def add_task(self, *args, completed, **kwargs):
            moves.append(completed)
            return super().add_task(*args, completed=completed, **kwargs)

        def update(self, *args, **kwargs):
            moves.append(kwargs.get("completed", moves[-1]))
            super().update(*args, **kwargs)

    monkeypatch.setattr(rich.progress, "Progress", Progress)
    disk.convert(in_parts(frame), tmp_path / "rows", y="ill", progress=True)
    assert moves == [250, 300, 350, 400, 450, 500, 550, 600, 600]


def test_a_progress_bar_without_rich_says_what_to_install(frame, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    with pytest.raises(ImportError, match=r"progress=True needs rich: pip install 'skhorseshoe\[disk\]'"):
        disk.convert(frame, tmp_path / "rows", y="ill", progress=True)
    assert not (tmp_path / "rows").exists()


def test_a_fit_sees_the_names_and_gives_the_draws_of_the_frame(frame, short_fit, tmp_path):
    X, y = disk.convert(in_parts(frame), tmp_path / "rows", y="ill")
    on_disk, in_memory = short_fit(X, y), short_fit(frame[NAMES].astype(np.float32), frame["ill"])
    assert list(on_disk.feature_names_in_) == NAMES
    np.testing.assert_array_equal(on_disk.coef_draws_, in_memory.coef_draws_)
    np.testing.assert_array_equal(on_disk.predict_proba(X), in_memory.predict_proba(frame[NAMES]))
