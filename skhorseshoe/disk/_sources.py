"""Where rows come from: an iterator over their parts that can begin at a given one.

A source is a function of a position. It yields pairs of a position and the part there, a table, an array, or a pair of
an array and its labels; called with that position, it yields this part first. None is the beginning.
"""

import inspect
import json
import re
import warnings
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.fixes import parse_version

_PART = 2**22  # numbers read at a time
# Every digit counts: newer versions always read numbers so.
_DIGITS = {"float_precision": "round_trip"} if parse_version(pd.__version__) < parse_version("3.1") else {}
_CSV = ".csv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst"
_PARQUET = ".parquet", ".pq"


class Source(NamedTuple):
    """Parts of rows, and what is known of them before they are read."""

    parts: object  # a function of a position
    what: object  # of JSON types: is it the same source as before? None if that cannot be known
    rows: int | None = None
    numbers: int = 0  # of a position, where it is a list


def open_source(source, labels, columns):
    """The ``Source`` for what a user gives. labels : an array of them, or None. columns : the ones needed, or None."""
    if isinstance(source, str | Path):
        return _open_path(Path(source).expanduser(), labels, columns)
    if isinstance(source, list | tuple) and source and all(isinstance(item, str | Path) for item in source):
        _refuse_labels(labels)
        return _open_files([Path(item).expanduser() for item in source], columns)
    if hasattr(source, "to_batches"):  # pyarrow tables and data sets
        source = source.to_batches()
    elif type(source).__name__ == "LazyFrame":
        if not hasattr(source, "collect_batches"):
            raise TypeError("This polars cannot read a LazyFrame by batches: update it, or give source.collect().")
        source = source.collect_batches()
    elif getattr(source, "__dask_graph__", lambda: None)() is not None:  # None for other libraries' own arrays
        source = _of_dask(source)
    elif hasattr(source, "columns") and hasattr(source, "dtypes"):  # frames
        source = [source]
    if hasattr(source, "shape") and hasattr(source, "dtype"):  # NumPy, zarr, HDF5
        return _array(source, labels, _contents(source) if isinstance(source, np.ndarray) else None)
    _refuse_labels(labels)
    if not hasattr(source, "__iter__"):
        raise TypeError(
            "source must be a path to parquet, CSV or zarr, a list of paths, an array, a table, or an iterable of "
            f"tables or arrays; got {type(source).__name__}."
        )
    return _iterable(source)


def _of_dask(source):
    if not hasattr(source, "columns"):
        raise TypeError(
            f"source is a Dask {type(source).__name__}. Give its blocks of rows one after the other, (block.compute() "
            "for block in source.to_delayed().ravel()), with labels as pairs (rows, labels); or leave them on a "
            "cluster, where fit reads them as they are."
        )
    return (part.compute() for part in source.to_delayed())


def _iterable(items):
    def parts(at):
        if inspect.isgenerator(items) and inspect.getgeneratorstate(items) != inspect.GEN_CREATED:
            raise ValueError(
                "source is a generator that has been read from already, by a call that ended with an error perhaps. It "
                "cannot be read twice: make it anew."
            )
        return enumerate(islice(items, at, None), at or 0)

    return Source(parts, None)


def _open_path(path, labels, columns):
    if any((path / name).exists() for name in (".zarray", "zarr.json", ".zgroup")):
        return _zarr(path, labels)
    _refuse_labels(labels)
    return _open_files([path], columns)


def _files(path):
    """A file, or those of a folder in the order of their names."""
    if not path.exists():
        pattern = " For a pattern, give the list of its files: sorted(glob.glob(pattern))." if "*" in str(path) else ""
        raise FileNotFoundError(f"source {str(path)!r} does not exist.{pattern}")
    return [path] if path.is_file() else sorted((p for p in path.rglob("*") if _visible(p, path)), key=_natural)


def _open_files(paths, columns):
    """The files of these paths, one path after the other."""
    found = [(path, file) for path in paths for file in _files(path)]
    files, source = [file for _, file in found], ", ".join(repr(str(path)) for path in paths[:3])
    csv, parquet = ([file for file in files if file.name.lower().endswith(kind)] for kind in (_CSV, _PARQUET))
    if bool(csv) == bool(parquet):
        raise ValueError(
            f"source {source} must be files of one kind, {', '.join(_PARQUET + _CSV)}, or a zarr array; it has "
            f"{[file.name for file in files[:3]]}. Other files can be given as an iterable of frames."
        )
    if csv:
        return _csv(csv)
    below = {part for path, file in found for part in file.relative_to(path).parts[:-1] if "=" in part}
    beside = {tuple(part for part in file.parts[:-1] if "=" in part) for file in files}
    if below or len(beside) > 1:
        raise ValueError(
            f"source {source} has columns in the names of its folders. Give pyarrow.dataset.dataset(path, "
            "partitioning='hive') as the source, and columns=[...]."
        )
    return _parquet(parquet, columns)


def _visible(file, folder):
    return file.is_file() and not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)


def _natural(file):
    """The order of part.2 and part.10 is that of their numbers."""
    return [int(word) if word.isdecimal() else word for word in re.split(r"(\d+)", str(file))]


def _stamps(files):
    """Whatever the folder that a process is in, and whichever way leads to them."""
    stats = [(file.resolve(), file.stat()) for file in files]
    return [f"{file} of {at.st_size} bytes, {np.datetime64(at.st_mtime_ns, 'ns')}" for file, at in stats]


@contextmanager
def _reading(file):
    """Errors of the libraries that read a file become ones that name it."""
    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The file {str(file)!r} is not in UTF-8 ({error}). Give pandas.read_csv(file, encoding='latin-1', "
            "chunksize=100_000) as the source, with the encoding that it has."
        ) from error
    except pd.errors.ParserWarning as error:
        raise ValueError(
            f"The file {str(file)!r} has lines of more fields than its header has names, as of a table that was "
            "written with the names of its rows. Write it without them (row.names=FALSE in R), or give "
            "pandas.read_csv(file, index_col=0, chunksize=100_000) as the source."
        ) from error
    except Exception as error:  # each library has its own
        if isinstance(error, ImportError | MemoryError) or getattr(error, "errno", None):
            raise
        raise ValueError(f"The file {str(file)!r} cannot be read: {str(error).strip()}") from error


def _refuse_labels(labels):
    if labels is not None:
        raise ValueError(
            "y is an array, which goes with one array of rows. For tables give the name of its column, for an iterable "
            "of arrays let the items be pairs (rows, labels)."
        )


def _contents(array):
    """The checksum of an array of NumPy's."""
    total, step = 0, max(1, _PART // max(1, array[:1].size))
    for start in range(0, len(array), step):
        part = np.asarray(array[start : start + step])
        part = part.astype(str) if part.dtype.hasobject else part
        total = zlib.crc32(part.tobytes(), total)
    return f"{list(array.shape)} of {array.dtype}, checksum {total:08x}"


def _array(array, labels, what):
    """what : is known of the array, or None; then the same array cannot be told from another."""
    if len(array.shape) != 2 or (labels is not None and len(labels) != array.shape[0]):
        raise ValueError(
            "An array of rows has two dimensions, and as many rows as there are labels; got the shapes "
            f"{tuple(array.shape)} and {'none' if labels is None else np.shape(labels)}."
        )
    if what is not None and labels is not None:
        what = [what, f"labels {_contents(np.asarray(labels))}"]
    if labels is not None and not hasattr(labels, "dtype"):
        labels = np.asarray(labels, object)  # text would swallow NaN
    labels = None if labels is None else np.asanyarray(labels)  # as they are if they are masked
    n, p = array.shape
    chunk = array.chunks[0] if getattr(array, "chunks", None) else 1
    step = chunk * max(1, _PART // (chunk * max(1, p)))

    def parts(at):
        for start in range(at or 0, n, step):
            rows = array[start : start + step]
            yield start, rows if labels is None else (rows, labels[start : start + step])

    return Source(parts, what, n)


def _zarr(path, labels):
    zarr = _need("zarr", path)
    array = zarr.open(str(path), mode="r")
    if not hasattr(array, "shape"):
        raise ValueError(f"source {str(path)!r} is a group of zarr: give the path of one array in it.")
    _refuse_code(path, array)
    stamps = json.dumps(_stamps(sorted(file for file in path.rglob("*") if file.is_file())))
    total = zlib.crc32(stamps.encode())
    return _array(array, labels, f"{path.resolve()}, checksum of names, sizes and times {total:08x}")


def _refuse_code(path, array):
    """Raise a ValueError where reading would unpickle, as the objects of zarr's second format are stored."""
    meta = array.metadata
    codecs = [*(getattr(meta, "filters", None) or ()), getattr(meta, "compressor", None)]
    unsafe = any(getattr(codec, "codec_id", None) == "pickle" for codec in codecs)
    if unsafe or array.dtype.kind not in "biuf":
        raise ValueError(
            f"source {str(path)!r} holds {'pickled objects' if unsafe else array.dtype}, not numbers: reading it could "
            "run code. Store the array anew with a numeric dtype."
        )


def _csv(files):
    def parts(at):
        first, row = at or (0, 0)
        for i, file in enumerate(files[first:], first):
            with _reading(file):
                for begin, frame in _frames(file):
                    if begin >= row:
                        yield [i, begin], frame
            row = 0

    return Source(parts, _stamps(files), numbers=2)


def _frames(file):
    """Pairs of a number of a row and a frame of the rows from there on, read from the start.

    All columns are read: if pandas is to leave some out, it does not see that a line has too many fields. Only its
    reader knows where a row begins, as there may be empty lines and quoted ends of lines.
    """
    size = max(1, _PART // max(1, len(pd.read_csv(file, nrows=0, index_col=False).columns)))
    begin = 0
    with pd.read_csv(file, chunksize=size, index_col=False, low_memory=False, **_DIGITS) as chunks:
        while (frame := _next(chunks)) is not None:
            yield begin, frame
            begin += len(frame)


def _next(chunks):
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        return next(chunks, None)


def _parquet(files, columns):
    pq = _need("pyarrow.parquet", files[0])

    def parts(at):
        first, group, row = at or (0, 0, 0)
        for i, name in enumerate(files[first:], first):
            with _reading(name), pq.ParquetFile(name) as file:
                names = file.schema_arrow.names
                wanted = None if columns is None else [name for name in names if name in columns]
                size = max(1, _PART // max(1, len(names)))
                for g in range(group, file.num_row_groups):
                    begin = 0
                    for batch in file.iter_batches(size, row_groups=[g], columns=wanted):
                        if begin >= row:
                            yield [i, g, begin], batch
                        begin += len(batch)
                    row = 0
                group = 0

    n_rows = 0
    for name in files:
        with _reading(name):
            n_rows += pq.read_metadata(name).num_rows
    return Source(parts, _stamps(files), n_rows, numbers=3)


def _need(module, path):
    """Import an optional library."""
    package = module.partition(".")[0]
    try:
        return __import__(module, fromlist=["_"])
    except ImportError as error:
        raise ImportError(
            f'Reading {str(path)!r} needs {package}, which is not installed: pip install "skhorseshoe[disk]". Or give '
            "an iterable of tables or arrays as the source."
        ) from error
