"""The forms in which a table comes, for the tests of conversions to disk."""

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

from skhorseshoe import disk

NAMES = ["dose", "age", "smokes"]


def in_parts(table, size=50):
    return [table[start : start + size] for start in range(0, len(table), size)]


def write_parquet(frame, folder):
    folder.mkdir()
    for i in range(12):  # part.10 is after part.9
        part = frame[i * 50 : (i + 1) * 50]
        part.to_parquet(folder / f"part.{i}.parquet", index=False, row_group_size=20)
    return folder


def write_parquet_files(frame, folder):
    write_parquet(frame, folder)
    return [str(folder / f"part.{i}.parquet") for i in range(12)]


def write_one_parquet(frame, folder):
    frame.to_parquet(folder.with_suffix(".parquet"), index=False, row_group_size=170)
    return folder.with_suffix(".parquet")


def write_csv(frame, folder):
    folder.mkdir()
    frame[:300].to_csv(folder / "1.csv", index=False)
    frame[300:].to_csv(folder / "2.csv.gz", index=False)
    return folder


def as_data_set(frame, folder):
    files = write_parquet(frame, folder).iterdir()
    return pyarrow.dataset.dataset(sorted(files, key=lambda file: int(file.name.split(".")[1])))


SOURCES = {
    "parquet folder": write_parquet,
    "parquet file": write_one_parquet,
    "list of paths": write_parquet_files,
    "CSV": write_csv,
    "data set": as_data_set,
    "pandas": lambda frame, folder: frame,
    "frames": lambda frame, folder: in_parts(frame),
    "a generator": lambda frame, folder: (part for part in in_parts(frame)),
    "polars": lambda frame, folder: in_parts(pl.DataFrame({name: frame[name].to_numpy() for name in frame})),
    "pyarrow": lambda frame, folder: in_parts(pa.Table.from_pandas(frame, preserve_index=False)),
}
if hasattr(pl.LazyFrame, "collect_batches"):  # newer versions of polars
    SOURCES["polars, lazy"] = lambda frame, folder: pl.from_pandas(frame).lazy()


def stopped(frame, folder):
    """A conversion that stops in the middle."""

    def parts():
        yield from in_parts(frame)[:5]
        raise RuntimeError("the network is gone")

    with pytest.raises(RuntimeError, match="network"):
        disk.convert(parts(), folder, y="ill")
