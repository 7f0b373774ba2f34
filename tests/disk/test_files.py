"""Files as sources: which of them are read, what a CSV file may look like, and errors that name the file."""

import gzip
import shutil
import sys

import numpy as np
import pandas as pd
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


def test_paths_that_lead_to_no_rows(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        disk.convert(tmp_path / "none", tmp_path / "rows")
    with pytest.raises(FileNotFoundError, match=r"sorted\(glob\.glob\(pattern\)\)"):
        disk.convert(str(tmp_path / "*.parquet"), tmp_path / "rows")
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
        with pytest.raises(ValueError, match=r"Give pyarrow\.dataset"):
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


def test_names_of_rows_in_csv_are_refused_with_a_cure(tmp_path):
    lines = ['"a","b"', *(f'"{i}",{i},{i * i}' for i in range(200))]  # as write.table has it
    (tmp_path / "1.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"1.csv' cannot be read: .*Expected 2 columns, got 3.*index_col=0"):
        disk.convert(tmp_path / "1.csv", tmp_path / "rows", columns=["a"])
    X, _ = disk.convert(pd.read_csv(tmp_path / "1.csv", index_col=0, chunksize=50), tmp_path / "rows", columns=["a"])
    np.testing.assert_array_equal(X["a"], np.arange(200))


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
    cure = "encoding='latin-1'" if "csv" in name else ""
    with pytest.raises(ValueError, match=rf"The file '\S+{name}' cannot be read: .*{cure}"):
        disk.convert(tmp_path / name, tmp_path / "rows")


def test_a_damaged_parquet_file_of_many_is_named(frame, tmp_path):
    source = write_parquet(frame, tmp_path / "source")
    data = (source / "part.7.parquet").read_bytes()
    (source / "part.7.parquet").write_bytes(data[:4] + bytes(300) + data[304:])  # its end is sound
    with pytest.raises(ValueError, match=r"The file '\S+part.7.parquet' cannot be read"):
        disk.convert(source, tmp_path / "rows", y="ill")
