"""The forms in which a table comes, for the tests of conversions to disk."""

import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
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


def write_csv(frame, folder):
    folder.mkdir()
    frame[:300].to_csv(folder / "1.csv", index=False)
    frame[300:].to_csv(folder / "2.csv.gz", index=False)
    return folder


def write_feather(frame, folder):
    folder.mkdir()
    pyarrow.feather.write_feather(frame, folder / "table.feather")
    return [str(folder / "table.feather")]


SOURCES = {
    "parquet": write_parquet,
    "CSV": write_csv,
    "feather": write_feather,
    "data set": lambda frame, folder: pyarrow.dataset.dataset(write_feather(frame, folder), format="feather"),
    "pandas": lambda frame, folder: frame,
    "frames": lambda frame, folder: in_parts(frame),
    "polars": lambda frame, folder: in_parts(pl.from_pandas(frame)),
    "pyarrow": lambda frame, folder: pa.Table.from_pandas(frame, preserve_index=False),
}
if hasattr(pl.LazyFrame, "collect_batches"):  # newer versions of polars
    SOURCES["polars, lazy"] = lambda frame, folder: pl.from_pandas(frame).lazy()


def stopped(frame, folder):
    """A conversion that stops in the middle, after 250 rows."""

    def parts():
        yield from in_parts(frame)[:5]
        raise RuntimeError("the network is gone")

    with pytest.raises(RuntimeError, match="network"):
        disk.convert(parts(), folder, y="ill")
