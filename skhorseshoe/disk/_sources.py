"""Where rows come from, part by part: a part is a table, an array, or a pair of rows and their labels."""

import inspect
import re
import zlib
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ._rows import refuse_sparse

_PART = 2**22  # numbers read at a time
_BLOCK = 2**22  # bytes of a CSV file read at a time
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather", ".orc": "orc"}
_KINDS |= dict.fromkeys((".csv", ".csv.gz", ".csv.bz2", ".csv.zst"), "csv")


class Source(NamedTuple):
    """Rows, and what is known of them before they are read."""

    parts: object  # a function of the first row wanted, at which a part begins
    what: object = None  # of JSON types: is it the same source as before? None if that cannot be known
    rows: int | None = None


def open_source(source, labels, columns):
    """The ``Source`` for what a user gives. labels : an array of them, or None. columns : the ones needed, or None."""
    refuse_sparse(source)
    if hasattr(source, "shape") and hasattr(source, "dtype"):  # NumPy, zarr, HDF5, Dask
        return _of_array(source, labels)
    if labels is not None:
        raise ValueError(
            "y is an array, which goes with one array of rows. For tables give the name of its column, for an iterable "
            "of arrays let the items be pairs (rows, labels)."
        )
    paths = [source] if isinstance(source, str | Path) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | Path) for path in paths):
        return _of_files([Path(path).expanduser() for path in paths], columns)
    return Source(partial(_from_row, _items(source)))


def _from_row(parts, start):
    """The parts from this row on."""
    for part in parts:
        if start > 0:
            start -= len(part[0] if isinstance(part, tuple) else part)
        else:
            yield part


def _items(source):
    """The tables and arrays that a source yields."""
    if inspect.isgenerator(source) and inspect.getgeneratorstate(source) != inspect.GEN_CREATED:
        raise ValueError("source is a generator that has been read from already, and cannot be twice: make it anew.")
    for batches in ("to_batches", "collect_batches"):  # tables and data sets of pyarrow, lazy frames of polars
        if hasattr(source, batches):
            return getattr(source, batches)()
    if hasattr(source, "to_delayed"):  # frames of Dask
        return (part.compute() for part in source.to_delayed())
    if hasattr(source, "columns") and hasattr(source, "shape"):  # frames
        return [source]
    if not hasattr(source, "__iter__"):
        raise TypeError(f"source must be paths, or arrays or tables, one or several; got {type(source).__name__}.")
    return source


def _of_array(array, labels):
    n, p = array.shape if len(array.shape) == 2 else (np.nan, 0)
    if np.isnan(n) or (labels is not None and len(labels) != n):  # unknown, of some Dask arrays
        shapes = f"{tuple(array.shape)} and {'none' if labels is None else np.shape(labels)}"
        raise ValueError(f"An array of rows needs two dimensions of known size, and a label a row; got {shapes}.")
    if labels is not None:
        labels = np.asanyarray(labels, None if hasattr(labels, "dtype") else object)  # text would swallow NaN
    chunk = np.max((getattr(array, "chunks", None) or [1])[0])  # rows that are decoded together
    step = int(chunk * max(1, _PART // (chunk * max(1, p))))

    def parts(start):
        for i in range(start, n, step):
            yield np.asanyarray(array[i : i + step]), None if labels is None else labels[i : i + step]

    what = f"{n} rows, {p} columns, checksum {_checksum(parts(0)):08x}" if isinstance(array, np.ndarray) else None
    return Source(parts, what, n)


def _checksum(pairs):
    """Of arrays, whatever their order in memory."""
    total = 0
    for values in (np.asarray(values) for pair in pairs for values in pair):
        values = values.astype(str) if values.dtype.hasobject else values
        total = zlib.crc32(values.tobytes(), zlib.crc32(values.dtype.str.encode(), total))
    return total


def _of_files(paths, columns):
    """The files of these paths, one path after the other."""
    found = [file for path in paths for file in _below(path)]
    kinds = {file: kind for file in found for end, kind in _KINDS.items() if file.name.lower().endswith(end)}
    if len({*kinds.values()}) != 1:
        raise ValueError(
            f"source {[*map(str, paths[:3])]} must be files of one kind, of {', '.join(_KINDS)}; it has "
            f"{[file.name for file in found[:3]]}. Anything else can be given as an array, such as "
            "zarr.open_array(path), or as an iterable of tables."
        )
    files = [file for file in found if file in kinds]
    kind = kinds[files[0]]
    folders = [*(path for path in paths if path.is_dir()), *(file.parent for file in files)]
    if len({tuple(name for name in folder.parts if "=" in name) for folder in folders}) > 1:
        raise ValueError(
            f"source {str(paths[0])!r} has columns in the names of its folders. Give pyarrow.dataset.dataset(path, "
            "partitioning='hive') as the source, and columns=[...]."
        )

    stats = [(file.resolve(), file.stat()) for file in files]  # whichever way leads to them
    what = [f"{file} of {at.st_size} bytes, {np.datetime64(at.st_mtime_ns, 'ns')}" for file, at in stats]
    if kind == "csv":  # to count its rows is to read it
        batches = (batch for file in files for batch in _batches(file, kind, columns))
        return Source(partial(_from_row, batches), what)
    counts = [_count(file, kind) for file in files]

    def parts(start):
        for file, n in zip(files, counts, strict=True):
            if start < n:
                yield from _from_row(_batches(file, kind, columns), start)
            start = max(0, start - n)

    return Source(parts, what, sum(counts))


def _below(path):
    """A file, or those of a folder in the order of their names, part.2 before part.10."""
    if not path.exists():
        pattern = " For a pattern, give the list of its files: sorted(glob.glob(pattern))." if "*" in str(path) else ""
        raise FileNotFoundError(f"source {str(path)!r} does not exist.{pattern}")
    if path.is_file():
        return [path]
    hidden = re.compile(r"(^|[/\\])[._]")
    files = [file for file in path.rglob("*") if file.is_file() and not hidden.search(str(file.relative_to(path)))]
    return sorted(files, key=lambda f: [int(s) if s.isdecimal() else s for s in re.split(r"(\d+)", str(f))])


def _count(file, kind):
    with _opened(file, kind) as data:
        return data.count_rows()


def _batches(file, kind, columns):
    """The rows of a file in batches of Arrow's."""
    with _opened(file, kind) as data:
        names = [name for name in data.schema.names if columns is None or name in columns]
        size = max(1, _PART // max(1, len(names)))
        for batch in data.to_batches(columns=names, batch_size=size, batch_readahead=1, fragment_readahead=1):
            yield _typed(batch) if kind == "csv" else batch


@contextmanager
def _opened(file, kind):
    """A file as Arrow sees it, a CSV file as text: Arrow would judge types by the first rows alone."""
    try:
        import pyarrow as pa
        from pyarrow import csv, dataset, fs
    except ImportError as error:
        raise ImportError(
            f"Reading {str(file)!r} needs pyarrow: pip install pyarrow, or give an iterable of tables or arrays."
        ) from error
    lines = dataset.CsvFileFormat(
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
        read_options=csv.ReadOptions(block_size=_BLOCK),
    )
    is_csv, cure = kind == "csv", ""
    if is_csv:
        cure = (
            ". If it is text in another form, give pandas.read_csv(file, chunksize=100_000, ...) as the source, with "
            "encoding='latin-1', index_col=0 (for names of rows, as R writes them), or what else it needs."
        )
    opened = partial(dataset.dataset, str(file), format=lines if is_csv else kind, filesystem=fs.LocalFileSystem())
    try:
        data = opened()
        yield opened(pa.schema([(name, pa.string()) for name in data.schema.names])) if is_csv else data
    except Exception as error:  # Arrow has several
        if isinstance(error, MemoryError) or getattr(error, "errno", None):
            raise
        raise ValueError(f"The file {str(file)!r} cannot be read: {str(error).strip()}{cure}") from error


def _typed(batch):
    """A batch of text, each column of which becomes whole numbers, numbers or truth values if all of it can."""
    import pyarrow as pa

    columns = batch.columns
    for j, column in enumerate(columns):
        for dtype in (pa.int64(), pa.uint64(), pa.float64(), pa.bool_()):
            with suppress(pa.ArrowInvalid):
                column.slice(0, 9).cast(dtype)  # fails at once where the whole would, which takes long
                columns[j] = column.cast(dtype)
                break
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
