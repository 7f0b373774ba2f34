"""Rows on disk: tables and arrays of any size, converted once to the form that ``fit`` reads fastest."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

from .._utils import progress as _progress
from .._utils.atomic_files import damaged
from ._bar import bar, check_rich
from ._folder import CURE, DTYPES, MANIFEST, open_rows
from ._parts import Parts, check_dense
from ._sources import open_source
from ._store import Store

__all__ = ["convert", "load"]


def convert(source, folder, *, y=None, columns=None, dtype=None, verbose=0, progress=False):
    """Write rows to a folder, row after row in binary, so that a fit can read them from the disk.

    The rows are read and checked part by part, whatever their number. A call that was killed, or ended with an error,
    goes on where it has stopped when it is made again. A call that has ended returns what it wrote, if its source is
    the same: files are known by name, size and time, arrays of NumPy's by a checksum. Of other sources that cannot be
    known: open what they became with ``load``. The folder is of no use before the end: ``load`` refuses it.

    Parameters
    ----------
    source : path-like, list of path-like, array, table, or iterable of tables or arrays
        A path leads to a parquet or CSV file, to a folder of either, or to a zarr array; the files of a folder are read
        in the order of their names, part.2 before part.10, those of a list in its order. Arrays are NumPy's, zarr's or
        HDF5's, of shape (n_samples, n_features). Tables are those of pandas, polars or pyarrow; a pyarrow data set and
        a lazy frame of polars are iterables of them, as is a Dask frame of its partitions. An item of an iterable may
        also be a pair of rows and their labels. To go on, an iterable must yield the same items again; a generator must
        be made anew, since it cannot be read twice.
    folder : path-like
        Where to write; made if there is none. Something else in it at the start is an error.
    y : str, array-like of shape (n_samples,) or None, default=None
        Name of the column that holds the labels; for an array, the labels. None where there are none, or where they are
        in the items of ``source``. At most 256 different ones.
    columns : list of str or None, default=None
        Names of the columns to take, in this order. None takes all but ``y``.
    dtype : {"float16", "float32", "float64"} or None, default=None
        Of X. None is the narrower of float32 and float64 that holds every number exactly. Another one rounds them:
        float32 to 7 digits, float16 to 3.
    verbose : int, default=0
        If positive, log the progress to the logger "skhorseshoe", a line every five seconds.
    progress : bool, default=False
        If True, draw a progress bar in the terminal or notebook. It needs rich.

    Returns
    -------
    X : pandas.DataFrame or numpy.memmap of shape (n_samples, n_features)
        As ``load`` returns it.
    y : ndarray of shape (n_samples,) or None
        The labels.

    Raises
    ------
    ValueError
        If a column is not numeric, a number is missing or infinite, parts have different columns, or the folder holds
        other rows, or rows of a source that cannot be known again, or a file cannot be read; the message says where,
        and what to do.
    RuntimeError
        If another conversion to the folder is under way. One that was killed does not count.
    FileNotFoundError
        If ``source`` is a path, and nothing is there.
    ImportError
        If ``source`` needs pyarrow or zarr, or ``progress=True`` rich, and it is not installed.
    TypeError
        If ``source`` is something else, such as a sparse matrix or a Dask array.

    See Also
    --------
    load : Open a folder that has been written.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> from skhorseshoe import disk
    >>> days = (pd.DataFrame({"dose": [0.5, k], "age": [40, 50], "ill": ["no", "yes"]}) for k in range(3))
    >>> with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # X is open while it is read
    ...     X, y = disk.convert(days, folder, y="ill")
    ...     X.shape, X["dose"].dtype, y[:2].tolist()
    ((6, 2), dtype('float32'), ['no', 'yes'])
    """
    if dtype not in (None, *DTYPES):
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, or None; got {dtype!r}.")
    if progress:
        check_rich()
    name, labels = (y, None) if y is None or isinstance(y, str) else (None, y)
    columns = None if columns is None else _check_columns(list(columns), name)
    needed = None if columns is None else [*columns, *([] if name is None else [name])]
    check_dense(source)
    folder = Path(folder).expanduser()
    parts, what, n_rows, numbers = open_source(source, labels, needed)
    store = Store(folder, {"source": what, "y": name, "columns": columns, "dtype": dtype}, dtype or "float32")
    if not store.manifest["complete"]:
        _check_position(store, numbers)
        with _progress.visible(verbose), store, bar(store.n, n_rows) if progress else nullcontext() as move:
            reports = [_progress.reporter(verbose, n_rows, partial(_line, n_rows)), *([move] if progress else [])]
            _write(parts, Parts(name, columns, dtype, store.manifest), store, reports)
    elif what is None:
        raise ValueError(f"{str(folder)!r} holds rows already: open them with load, or give another folder.")
    return load(folder)


def load(folder, *, check=False):
    """Open rows that ``convert`` has written.

    Parameters
    ----------
    folder : path-like
        The folder.
    check : bool, default=False
        If True, compare every byte with its checksum, which reads the files once. Otherwise it is their sizes and
        headings, which tell if a file was cut short or replaced.

    Returns
    -------
    X : pandas.DataFrame or numpy.memmap of shape (n_samples, n_features)
        On disk, read-only: what is used of it is read then. A frame if the columns have names.
    y : ndarray of shape (n_samples,) or None
        The labels, in memory.

    Raises
    ------
    ValueError
        If the folder holds no rows, those of a conversion that has not ended, or a file that is damaged.
    """
    manifest, X, codes = open_rows(Path(folder).expanduser(), check)
    names, classes = manifest["names"], manifest["classes"]
    if None not in names:
        X = pd.DataFrame(X, columns=names, copy=False)
    return X, None if classes is None else np.array(classes)[codes]


def _check_columns(columns, y):
    """The names of columns that a user gives; a ValueError unless they can be those of X."""
    if not columns:
        raise ValueError("columns=[] takes no column: name one at least, or give None for all of them but y.")
    twice = sorted({str(name) for name in columns if columns.count(name) > 1})
    if twice:
        raise ValueError(f"columns names {', '.join(twice)} more than once: name every column once.")
    if y is not None and y in columns:
        raise ValueError(f"columns names {y!r}, which is y: the labels cannot be a column of X too. Leave it out.")
    return columns


def _check_position(store, numbers):
    """Raise a ValueError where the position that the manifest has cannot be one of this source."""
    last = store.manifest["position"]
    if last is not None and np.size(last["at"]) != max(1, numbers):
        raise damaged(store.folder / MANIFEST, "its position is not one of this source", CURE)


def _write(parts, read, store, reports):
    """Append all parts of the source that the folder does not have."""
    last = store.manifest["position"]
    parts = iter(parts(last and last["at"]))
    if last is not None:
        position, part = next(parts, (None, None))
        if position != last["at"]:
            raise ValueError(
                f"The source has ended before row {store.n}, where the last call stopped, or comes in other parts now. "
                f"Give the same one anew (a generator cannot be read twice), or remove {str(store.folder)!r} to start "
                "anew."
            )
        store.check_same(*read(part, last["row"]))
    for position, part in parts:
        X, codes = read(part, store.n)
        if len(X):
            store.append(X, codes, position, read.names, read.classes)
            for report in reports:
                report(store.n)
    if store.n == 0:
        raise ValueError("The source has no rows.")
    store.finish()


def _line(n_rows, n, left):
    """What is logged after n rows have been written."""
    of = "" if n_rows is None else f" of {n_rows}"
    return f"{n}{of} rows written{f', about {left:.0f} s left' if left else ''}"
