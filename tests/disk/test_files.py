"""Files as sources: what a CSV file may look like, and errors that name the file."""

import gzip
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables import write_parquet

from skhorseshoe import disk
from skhorseshoe.disk import _store

LINES = ["dose,age,ill"] + [f"{i},{i % 7},{'no' if i % 3 else 'yes'}" for i in range(400)]


def at(places, text, lines=LINES):
    """The lines, with a text before some of them."""
    return "\n".join(text + line if i in places else line for i, line in enumerate(lines)) + "\n"


CSV = {
    "empty lines": at((0, 1, 90, 91, 300), "\n"),
    "lines of blanks": at((50, 200), "  \n"),
    "the line ends of Windows": at((90,), "\n").replace("\n", "\r\n"),
    "a byte order mark": at((0,), "\ufeff"),
    "commas at the ends": "\n".join([LINES[0], *(line + "," for line in LINES[1:])]),
    "line ends in quotes": "\n".join(["x," + LINES[0], *('"a\n\nb",' + line for line in LINES[1:])]),
}


@pytest.mark.parametrize("what", CSV)
def test_csv_files_are_read_and_go_on_as_they_are(what, tmp_path, monkeypatch):
    (tmp_path / "1.csv").write_bytes(CSV[what].encode())
    given = {"source": tmp_path / "1.csv", "y": "ill", "columns": ["dose", "age"]}
    for k in (2, 5):
        calls, append = [], _store.Store.append

        def failing(store, X, *args, calls=calls, k=k, append=append):
            calls.append(len(X))
            if len(calls) == k:
                raise OSError("No space left on device")
            append(store, X, *args)

        with monkeypatch.context() as patch:
            patch.setattr(_store.Store, "append", failing)
            with pytest.raises(OSError, match="No space"):
                disk.convert(**given, folder=tmp_path / f"{k}")
        X, y = disk.convert(**given, folder=tmp_path / f"{k}")
        np.testing.assert_array_equal(X, [[i, i % 7] for i in range(400)])
        np.testing.assert_array_equal(y, ["no" if i % 3 else "yes" for i in range(400)])


R = '"a","b"\n' + "\n".join(f'"{i}",{i},{i * i}' for i in range(200))  # as write.table has it


@pytest.mark.parametrize("columns", [None, ["a"]])
def test_more_fields_than_names_are_refused(columns, tmp_path):
    (tmp_path / "1.csv").write_text(R)
    with pytest.raises(ValueError, match=r"1.csv' has lines of more fields .*row\.names=FALSE.*index_col=0"):
        disk.convert(tmp_path / "1.csv", tmp_path / "rows", columns=columns)
    X, _ = disk.convert(pd.read_csv(tmp_path / "1.csv", index_col=0, chunksize=50), tmp_path / "rows", columns=columns)
    np.testing.assert_array_equal(X["a"], np.arange(200))
    (tmp_path / "2.csv").write_text(at((2,), "9,", ["a,b", "1,2", "3,4", "5,6"]))
    with pytest.raises(ValueError, match=r"2.csv' cannot be read: .*Expected 2 fields in line 3, saw 3"):
        disk.convert(tmp_path / "2.csv", tmp_path / "more", columns=columns)


UNREADABLE = {
    "empty.csv": (b"", "No columns to parse"),
    "latin.csv": ("a,b\n1,é\n".encode("latin-1"), r"not in UTF-8 .*encoding='latin-1'"),
    "header.csv": ("a,é\n1,2\n".encode("latin-1"), r"not in UTF-8 .*encoding='latin-1'"),
    "cut.csv.gz": (gzip.compress("\n".join(LINES).encode())[:-50], "ended before the end-of-stream marker"),
    "not.csv.gz": (b"a,b\n1,2\n", "Not a gzipped file"),
    "not.parquet": (b"a,b\n1,2\n", "cannot be read: Parquet"),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_is_named(name, tmp_path):
    data, message = UNREADABLE[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=rf"The file '\S+{name}' .*{message}"):
        disk.convert(tmp_path / name, tmp_path / "rows", y="ill" if "cut" in name else None)


def test_a_damaged_parquet_file_of_many_is_named(frame, tmp_path):
    source = write_parquet(frame, tmp_path / "source")
    data = (source / "part.7.parquet").read_bytes()
    (source / "part.7.parquet").write_bytes(data[:4] + bytes(300) + data[304:])  # its end is sound
    with pytest.raises(ValueError, match=r"The file '\S+part.7.parquet' cannot be read"):
        disk.convert(source, tmp_path / "rows", y="ill")


def test_digits_of_any_kind_in_the_names_of_files(tmp_path):
    (tmp_path / "source").mkdir()
    for i, name in enumerate(["1²3", "2", "10"]):
        (tmp_path / "source" / f"{name}.csv").write_text(f"a\n{i}\n")
    X, _ = disk.convert(tmp_path / "source", tmp_path / "rows")
    assert X["a"].tolist() == [0, 1, 2]


@pytest.mark.parametrize("where", ["filters", "compressor"])
@pytest.mark.parametrize("dtype", ["|O", "<f8"])
def test_no_zarr_array_can_run_code(dtype, where, tmp_path):
    """In its second format zarr has a codec that unpickles what it reads; newer versions do not know it."""
    pytest.importorskip("zarr", reason="reads zarr arrays, an optional library", exc_type=ImportError)
    codec, marker = {"id": "pickle", "protocol": 5}, tmp_path / "was here"
    codecs = {"filters": None, "compressor": None, where: [codec] if where == "filters" else codec}
    meta = {
        "zarr_format": 2,
        "shape": [2, 1],
        "chunks": [2, 1],
        "dtype": dtype,
        "fill_value": 0,
        "order": "C",
        **codecs,
    }
    (tmp_path / "hostile").mkdir()
    (tmp_path / "hostile" / ".zarray").write_text(json.dumps(meta))
    (tmp_path / "hostile" / "0.0").write_bytes(pickle.dumps(Touching(marker)))
    with pytest.raises(ValueError, match="pickle"):
        disk.convert(tmp_path / "hostile", tmp_path / "rows")
    assert not marker.exists()
    pickle.loads((tmp_path / "hostile" / "0.0").read_bytes())
    assert marker.exists()  # the file is one that would have


class Touching:
    """Leaves a file behind where it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_conversion_whose_files_cannot_be_closed_gives_its_lock_back(tmp_path, monkeypatch):
    """As where the disk is full: what is left in a buffer is written when a file is closed."""
    X = np.random.default_rng(0).standard_normal((50, 2), dtype=np.float32)

    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def close(self):
            self.file.close()
            raise OSError(28, "No space left on device")

    plain = _store.Store._open

    def opened(store, name):
        return plain(store, name) if name == _store.CODES else Full(plain(store, name))

    with monkeypatch.context() as patched:
        patched.setattr(_store.Store, "_open", opened)
        with pytest.raises(OSError, match="No space left") as kept:  # with its traceback, as in a notebook
            disk.convert(X, tmp_path / "rows")
    assert kept.value.errno == 28
    assert not list((tmp_path / "rows").glob("*.lock"))
