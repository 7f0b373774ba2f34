"""Sources of rows as iterables of items: tables, arrays, data sets, or pairs of rows and their labels."""

import inspect
import re
from itertools import chain
from os import PathLike

import joblib
import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._utils.atomic_files import path_of
from .._utils.names import check_different

_NUMBERS_AT_A_TIME = 2**22  # numbers to read at a time
_KINDS = {".parquet": "parquet", ".pq": "parquet", ".feather": "feather", ".arrow": "feather", ".orc": "orc"}
_KINDS |= dict.fromkeys((".csv", ".csv.gz", ".csv.bz2", ".csv.zst"), "csv")
_OTHER_TEXT = ". Give text in another form as pandas.read_csv(file, chunksize=100_000, encoding=..., index_col=...)."
_EXACTLY = {"float_precision": "round_trip"} if float(pd.__version__[:3]) < 3.1 else {}  # newer pandas is always exact


def open_source(source, labels, groups=None):
    """The items of a source, and a text that identifies it, or None. labels, groups : arrays, or None."""
    if hasattr(source, "shape") and (hasattr(source, "columns") or issparse(source)):
        return [source if labels is None and groups is None else (source, labels, groups)], None
    if hasattr(source, "shape"):
        return _source_of_array(source, labels, groups)
    if labels is not None:
        raise ValueError("y is an array, which goes with one table or array. Items may be pairs (rows, labels).")
    if groups is not None:
        raise ValueError("groups is an array, which goes with one table or array. Of items it is the name of a column.")
    paths = [source] if isinstance(source, str | PathLike) else source
    if isinstance(paths, list | tuple) and paths and all(isinstance(path, str | PathLike) for path in paths):
        return _source_of_files([file for path in paths for file in _below(path)])
    if inspect.isgenerator(source) and inspect.getgeneratorstate(source) != inspect.GEN_CREATED:
        raise ValueError("source is a generator that has been read from already, and cannot be twice: make it anew.")
    if hasattr(source, "collect_batches"):  # a polars LazyFrame
        return source.collect_batches(), None
    if isinstance(source, bytes) or not (hasattr(source, "get_fragments") or hasattr(source, "__iter__")):
        raise TypeError(f"source must be paths, or tables or arrays, one or several; got {type(source).__name__}.")
    return [source] if hasattr(source, "get_fragments") else source, None


def frames(items, start, columns):
    """Yields frames of rows from row ``start`` on, with their labels and groups or None. Of a data set before it only
    the length is read."""
    for item in items:
        if hasattr(item, "get_fragments"):
            check_different(item.schema.names, "X")
            if (n := item.count_rows()) > start:
                names = [*columns] if columns and columns <= {*item.schema.names} else item.schema.names
                size = max(1, _NUMBERS_AT_A_TIME // max(1, len(names)))
                batches = item.to_batches(columns=names, batch_size=size, batch_readahead=1, fragment_readahead=1)
                yield from frames(_naming(", ".join(getattr(item, "files", ())[:3]), batches), start, columns)
        else:
            rows, labels, groups = (*item, None)[:3] if isinstance(item, tuple) else (item, None, None)
            if (n := len(frame := _frame(rows))) > start:
                yield frame, labels, groups
        start = max(0, start - n)


def _frame(rows):
    """A table or an array as a pandas frame; columns without names are numbered."""
    frame = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    if isinstance(frame, pd.DataFrame):
        return frame
    if hasattr(frame, "columns") or np.ndim(array := np.asanyarray(frame)) != 2 or array.shape[1] == 0:
        raise ValueError(
            "Rows must be in tables of pandas, polars or pyarrow, or in arrays of two dimensions; got "
            f"{type(rows).__name__} of shape {np.shape(rows)}. Give its parts: (part.compute() for part in "
            "frame.partitions) of Dask, (X[i : i + 1000].toarray() for i in range(0, X.shape[0], 1000)) of a sparse X."
        )
    return pd.DataFrame(array)


def _source_of_array(array, labels, groups):
    """The same for an array of NumPy, or of a library whose slices can become NumPy arrays."""
    n, p = len(array), array.shape[-1]
    labels, groups = _row_values(labels, n, "labels"), _row_values(groups, n, "groups")
    step = max(1, _NUMBERS_AT_A_TIME // max(1, p))
    cuts = [slice(i, i + step) for i in range(0, n, step)]
    labels_and_groups = [labels] if groups is None else [labels, groups]
    items = ((np.asanyarray(array[cut]), *(None if v is None else v[cut] for v in labels_and_groups)) for cut in cuts)
    if not isinstance(array, np.ndarray):
        return items, None
    items = [*items]  # nothing is copied
    sums = [joblib.hash(np.asarray(values).ravel()) for item in items for values in item]
    return items, f"{n} rows, {p} columns, checksum {joblib.hash(sums)}"


def _row_values(values, n, name):
    """Values of n rows as an array; None stays."""
    if values is None:
        return None
    values = np.asanyarray(values, None if hasattr(values, "dtype") else object)  # NaN would become text
    if values.shape != (n,):
        raise ValueError(f"An array of {n} rows needs as many {name}; got the shape {values.shape}.")
    return values


def _below(path):
    """A file, or the files of a folder in the order of their names, part.2 before part.10."""
    path = path_of(path, "source").resolve(strict=True)  # an error if there is nothing
    if path.is_file():
        return [path]
    files = [f for f in path.rglob("*") if f.is_file() and not re.search(r"[/\\][._]", f"/{f.relative_to(path)}")]
    return sorted(files, key=lambda f: [int(s) if s.isdecimal() else s for s in re.split(r"(\d+)", str(f))])


def _source_of_files(paths):
    kinds = {file: kind for file in paths for end, kind in _KINDS.items() if file.name.lower().endswith(end)}
    files = [file for file in paths if file in kinds]
    in_folders = {tuple(name for name in file.parts if "=" in name) for file in files}
    if len({*kinds.values()}) != 1 or len(in_folders) > 1:
        raise ValueError(
            f"source must be files of one kind, of {', '.join(_KINDS)}; it has {[*map(str, paths[:3])]}. Others can be "
            "given as an array, such as zarr.open_array(path), or as an iterable of tables, and those with columns in "
            "the names of their folders, such as year=2020, as pyarrow.dataset.dataset(path, partitioning='hive')."
        )
    stats = [(str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in files]
    identity = f"{len(files)} files of {sum(size for _, size, _ in stats)} bytes, checksum {joblib.hash(stats)}"
    if "csv" in kinds.values():
        return chain.from_iterable(map(_csv, files)), identity
    try:
        import pyarrow.dataset
    except ImportError as error:
        raise ImportError(f"To read {str(files[0])!r} takes pyarrow: pip install pyarrow.") from error
    return [_data_set(pyarrow, file, kinds[file]) for file in files], identity


def _data_set(pyarrow, file, kind):
    try:
        return pyarrow.dataset.dataset(str(file), format=kind)
    except ValueError:  # of a name that occurs twice, without the name
        (raw,) = pyarrow.dataset.dataset(str(file), format=kind, schema=pyarrow.schema([])).get_fragments()
        check_different(raw.physical_schema.names, f"The file {str(file)!r}")
        raise


def _csv(file):
    """The rows of a CSV file, after a look at its heading."""
    (lines,) = _naming(file, _first_lines(file, ","), _OTHER_TEXT)
    for sep in ";\t|" if lines.shape[1] == 1 else "":
        (fields,) = _naming(file, _first_lines(file, sep))
        if (fields.iloc[1:, 1:] != "").any(axis=None):
            has_commas = fields[1:].map(re.compile(r"[-+]?\d+,\d+").fullmatch).notna().any(axis=None)
            decimal = ", decimal=','" if has_commas else ""
            raise ValueError(
                f"The columns of {str(file)!r} are separated by {sep!r}, not by commas. Give this as the source: "
                f"pandas.read_csv({str(file)!r}, sep={sep!r}{decimal}, chunksize=100_000)."
            )
    check_different([name for name in lines.iloc[0] if name], f"The file {str(file)!r}")  # pandas would rename them
    yield from _naming(file, _csv_parts(file), _OTHER_TEXT)


def _first_lines(file, sep):
    """The first lines of a text file as text, in one frame."""
    yield pd.read_csv(file, sep=sep, header=None, nrows=9, dtype=str, keep_default_na=False, on_bad_lines="skip")


def _csv_parts(file):
    """Tables, each with its own types, since fractions may come after whole numbers."""
    n_columns = pd.read_csv(file, header=None, nrows=2).shape[1]  # an error if the heading is shorter
    size = max(1, _NUMBERS_AT_A_TIME // n_columns)
    with pd.read_csv(file, chunksize=size, low_memory=False, **_EXACTLY) as tables:
        yield from tables


def _naming(file, items, cure=""):
    """The items of a file; any error names the file."""
    try:
        yield from items
    except Exception as error:  # pandas and Arrow raise several types
        if isinstance(error, MemoryError | ImportError) or getattr(error, "errno", None):
            raise
        raise ValueError(f"The file {str(file)!r} cannot be read: {str(error).strip()}{cure}") from error
