"""Files as sources: which of them are read, what a CSV file may look like, and errors that name the file."""

import gzip
import os
import re
import shutil
import sys
from pathlib import PurePath

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.orc
import pyarrow.parquet
import pytest
from tables import NAMES, write_parquet

from skhorseshoe import disk

LINES = ["dose,age,ill"] + [f"{i},{i % 7},{'no' if i % 3 else 'yes'}" for i in range(400)]


def test_files_of_a_list_are_read_in_its_order(frame, tmp_path):
    """Also one that is there twice."""
    folder = write_parquet(frame, tmp_path / "source")
    files = [folder / f"part.{i}.parquet" for i in (3, 10, 3)]
    X, _ = disk.convert(files, tmp_path / "rows", y="ill")
    want = pd.concat([frame[NAMES][i * 50 : (i + 1) * 50] for i in (3, 10, 3)])
    np.testing.assert_array_equal(X, want.astype(np.float32))


def test_digits_of_any_kind_in_the_names_of_files(tmp_path):
    (tmp_path / "source").mkdir()
    for i, name in enumerate(["1²3", "2", "10"]):
        (tmp_path / "source" / f"{name}.csv").write_text(f"a\n{i}\n")
    X, _ = disk.convert(tmp_path / "source", tmp_path / "rows")
    assert X["a"].tolist() == [0, 1, 2]


def test_paths_may_be_of_any_kind(frame, tmp_path):
    folder = write_parquet(frame, tmp_path / "source")
    expected = disk.convert(folder, tmp_path / "rows", y="ill")[0]
    with os.scandir(folder) as entries:
        files = sorted(entries, key=lambda entry: int(entry.name.split(".")[1]))
    for k, source in enumerate([PurePath(folder), files]):
        assert disk.convert(source, tmp_path / f"{k}", y="ill")[0].equals(expected)
    with pytest.raises(TypeError, match="got bytes"):
        disk.convert(os.fsencode(folder), tmp_path / "bytes")


def test_paths_that_lead_to_no_rows(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match="none"):
        disk.convert(tmp_path / "none", tmp_path / "rows")
    mixed = write_parquet(frame, tmp_path / "mixed")
    (mixed / "more.csv").write_text("a,b")
    with pytest.raises(ValueError, match="files of one kind"):
        disk.convert(mixed, tmp_path / "rows")
    (tmp_path / "X.zarr").mkdir()
    (tmp_path / "X.zarr" / "zarr.json").write_text("{}")
    with pytest.raises(ValueError, match=r"zarr\.open_array\(path\)"):
        disk.convert(tmp_path / "X.zarr", tmp_path / "rows")


def test_columns_in_the_names_of_folders_are_not_lost(frame, tmp_path):
    hive = tmp_path / "run=3" / "hive"
    (hive / "year=2020").mkdir(parents=True)
    frame.to_parquet(hive / "year=2020" / "1.parquet")
    X, _ = disk.convert(hive / "year=2020", tmp_path / "rows", y="ill")
    assert list(X.columns) == NAMES
    shutil.copytree(hive / "year=2020", hive / "year=2021")
    for source in (hive, sorted(hive.rglob("*.parquet"))):
        with pytest.raises(ValueError, match=r"pyarrow\.dataset\.dataset\(path, partitioning='hive'\)"):
            disk.convert(source, tmp_path / "more")


def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch):
    (tmp_path / "x.parquet").write_text("")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install"):
        disk.convert(tmp_path / "x.parquet", tmp_path / "rows")


def at(places, text):
    """The lines, with a text before some of them."""
    return "\n".join(text + line if i in places else line for i, line in enumerate(LINES)) + "\n"


CSV = {
    "empty lines": at((0, 1, 90, 91, 300), "\n"),
    "the line ends of Windows": at((90,), "\n").replace("\n", "\r\n"),
    "a byte order mark": at((0,), "\ufeff"),
    "line ends in quotes": "\n".join(["x," + LINES[0], *('"a\n\nb",' + line for line in LINES[1:])]),
    "fractions from row 300 on": at((), "").replace("\n300,", "\n300.0,"),
}


@pytest.mark.parametrize("what", CSV)
def test_csv_files_are_read_and_go_on_as_they_are(what, tmp_path, full_disk):
    (tmp_path / "1.csv").write_bytes(CSV[what].encode())
    given = {"source": tmp_path / "1.csv", "y": "ill", "columns": ["dose", "age"], "folder": tmp_path / "rows"}
    full_disk(4)
    with pytest.raises(OSError, match="No space"):
        disk.convert(**given)
    X, y = disk.convert(**given)
    np.testing.assert_array_equal(X, [[i, i % 7] for i in range(400)])
    np.testing.assert_array_equal(y, ["no" if i % 3 else "yes" for i in range(400)])


def test_types_in_csv_are_those_of_whole_columns(tmp_path):
    (tmp_path / "1.csv").write_text("a,b,y\n1,True,1\n0.1,False,0\n")
    X, y = disk.convert(tmp_path / "1.csv", tmp_path / "rows", y="y")
    np.testing.assert_array_equal(X, [[1, 1], [0.1, 0]])
    assert y.tolist() == [1, 0]
    for value, message in (("NA", "missing value in row 1"), ("x", "not numeric"), (2**53 + 1, "identifier")):
        (tmp_path / "2.csv").write_text(f"a,y\n1,2\n{value},3\n")
        with pytest.raises(ValueError, match=f"'a' .*{message}"):
            disk.convert(tmp_path / "2.csv", tmp_path / "more", y="y")


def test_a_column_of_text_in_csv_is_text_from_its_start(tmp_path, sizes):
    """As far as a part goes, however pandas reads it."""
    sizes(numbers_of_a_part=2**22)
    labels = ["1"] * 600_000 + ["x"]
    (tmp_path / "1.csv").write_text("\n".join(["a,y", *(f"0,{label}" for label in labels)]))
    _, y = disk.convert(tmp_path / "1.csv", tmp_path / "rows", y="y")
    assert y.tolist() == labels


def test_names_of_rows_in_csv_are_refused_with_a_cure(tmp_path):
    lines = ['"a","b"', *(f'"{i}",{i},{i * i}' for i in range(200))]  # as write.table has it
    (tmp_path / "1.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"1.csv' cannot be read: .*Expected 2 fields in line 2, saw 3.*index_col="):
        disk.convert(tmp_path / "1.csv", tmp_path / "rows", columns=["a"])
    X, _ = disk.convert(pd.read_csv(tmp_path / "1.csv", index_col=0, chunksize=50), tmp_path / "rows", columns=["a"])
    np.testing.assert_array_equal(X["a"], np.arange(200))


def test_a_column_without_a_heading_is_taken_if_it_is_named(frame, tmp_path):
    frame.to_csv(tmp_path / "1.csv")  # with its index
    with pytest.raises(ValueError, match=r"'Unnamed: 0' has no heading.*index=False.*columns="):
        disk.convert(tmp_path / "1.csv", tmp_path / "rows", y="ill")
    for columns in (["age"], ["age", "Unnamed: 0"]):
        X, _ = disk.convert(tmp_path / "1.csv", tmp_path / f"{len(columns)}", y="ill", columns=columns)
        assert list(X.columns) == columns


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_columns_that_were_found_are_shown_where_others_are_missing(kind, frame, tmp_path):
    file = tmp_path / f"1.{kind}"
    frame.to_csv(file, index=False) if kind == "csv" else frame.to_parquet(file)
    found = "['dose', 'ill', 'age', 'smokes']"
    with pytest.raises(ValueError, match=re.escape(f"row 0 on has the columns {found}, with y='sick': missing are")):
        disk.convert(file, tmp_path / "rows", y="sick", columns=["age"])


@pytest.mark.parametrize(("sep", "decimal"), [(";", "."), (";", ","), ("\t", "."), ("\t", ","), ("|", ".")])
def test_another_separator_in_csv_is_named_with_the_call_that_reads_it(sep, decimal, frame, tmp_path):
    frame.to_csv(tmp_path / "1.csv.gz", sep=sep, decimal=decimal, index=False)
    with pytest.raises(ValueError, match=re.escape(f"1.csv.gz' are separated by {sep!r}, not by commas")) as told:
        disk.convert(tmp_path / "1.csv.gz", tmp_path / "rows", y="ill")
    call = re.search(r"pandas\.read_csv\(.*\)", str(told.value)).group()
    X, y = disk.convert(eval(call, {"pandas": pd}), tmp_path / "rows", y="ill")
    np.testing.assert_allclose(X, frame[NAMES].astype(float))
    assert y.tolist() == frame["ill"].tolist()


@pytest.mark.parametrize("name", ["p(a|b)", "a;b", "a\tb"])
def test_one_column_with_a_separator_in_its_name_is_one_column(name, tmp_path):
    (tmp_path / "1.csv").write_text(f"{name}\n0.5\n1.5\n")
    X, _ = disk.convert(tmp_path / "1.csv", tmp_path / "rows")
    assert X[name].tolist() == [0.5, 1.5]


@pytest.mark.parametrize("columns", [None, ["b"]])
@pytest.mark.parametrize("kind", ["csv", "parquet", "feather", "orc", "data set"])
def test_two_columns_of_one_name_are_refused(kind, columns, tmp_path):
    """pandas would call the second one of CSV a.1, and pyarrow does not say which name it is."""
    table, file = pa.table([[1, 2], [3, 4], [5, 6]], names=["a", "a", "b"]), tmp_path / f"1.{kind}"
    if kind == "csv":
        file.write_text("a,a,b\n1,3,5\n2,4,6\n")
    elif kind == "feather":
        with pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    elif kind != "data set":
        {"parquet": pyarrow.parquet, "orc": pyarrow.orc}[kind].write_table(table, file)
    source = pyarrow.dataset.dataset(table) if kind == "data set" else file
    with pytest.raises(ValueError, match=r"(1\.\w+'|X) has 2 columns named 'a'\. Rename them"):
        disk.convert(source, tmp_path / "rows", columns=columns)


def test_headings_that_differ_in_csv_are_those_of_the_columns(tmp_path):
    """Also those that pandas would give to a second one."""
    (tmp_path / "1.csv").write_text("a,a.1,NA,1,1.0\n1,2,3,4,5\n")
    X, _ = disk.convert(tmp_path / "1.csv", tmp_path / "rows")
    assert list(X.columns) == ["a", "a.1", "NA", "1", "1.0"]


@pytest.mark.parametrize("path", ["a\0b", "~nosuchuser/x", "a" * 5000], ids=["null", "user", "long"])
def test_a_path_that_the_system_cannot_use_is_named(path, tmp_path):
    for use in (disk.load, lambda path: disk.convert(np.eye(3), path), lambda path: disk.convert(path, tmp_path)):
        with pytest.raises(ValueError, match=r"^(folder|source)='.* is no path that can be used: .*Give another"):
            use(path)


@pytest.mark.parametrize("path", [3, None, b"rows"], ids=repr)
def test_a_folder_that_is_no_path_is_refused(path):
    for use in (disk.load, lambda path: disk.convert(np.eye(3), path)):
        with pytest.raises(TypeError, match=r"folder must be a path, a str or a pathlib\.Path; got"):
            use(path)


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "rows").write_text("mine")
    for folder in (tmp_path / "rows", tmp_path / "rows" / "below"):
        with pytest.raises(ValueError, match=r"^folder=.* cannot be made a folder"):
            disk.convert(np.eye(3), folder)
        with pytest.raises(ValueError, match="holds no rows"):
            disk.load(folder)


@pytest.mark.parametrize("k", [1, 2, 300])
def test_lines_in_csv_that_are_too_long_shift_no_column(k, tmp_path):
    lines = ["a,b,c", *["1,2,3"] * 400]
    lines[k] = "0,1,2,3"
    (tmp_path / "1.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=rf"1.csv' cannot be read: .*Expected 3 fields in line {k + 1}, saw 4"):
        disk.convert(tmp_path / "1.csv", tmp_path / "rows", columns=["c"])


def test_numbers_in_csv_are_the_nearest_floats(seed, tmp_path):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(2000) * 10.0 ** rng.integers(-300, 300, 2000)
    (tmp_path / "1.csv").write_text("\n".join(["a", *map(repr, values.tolist())]))
    X, _ = disk.convert(tmp_path / "1.csv", tmp_path / "rows")
    np.testing.assert_array_equal(X["a"], values)


UNREADABLE = {
    "empty.csv": b"",
    "latin.csv": "a,b\n1,é\n".encode("latin-1"),
    "header.csv": "a,é\n1,2\n".encode("latin-1"),
    "cut.csv.gz": gzip.compress("\n".join(LINES).encode())[:-50],
    "not.csv.gz": b"a,b\n1,2\n",
    "not.parquet": b"a,b\n1,2\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    (tmp_path / name).write_bytes(UNREADABLE[name])
    said = rf"The file '\S+{name}' cannot be read: .*encoding=" if "csv" in name else f"{name}'.*magic bytes not found"
    with pytest.raises(ValueError, match=said):
        disk.convert(tmp_path / name, tmp_path / "rows")


def test_a_damaged_parquet_file_of_many_is_named(frame, tmp_path):
    source = write_parquet(frame, tmp_path / "source")
    data = (source / "part.7.parquet").read_bytes()
    (source / "part.7.parquet").write_bytes(data[:4] + bytes(300) + data[304:])  # its end is sound
    with pytest.raises(ValueError, match=r"The file '\S+part.7.parquet' cannot be read"):
        disk.convert(source, tmp_path / "rows", y="ill")
