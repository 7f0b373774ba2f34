"""Rows on disk: tables and arrays of any size, converted once to the form that ``fit`` reads fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

import numpy as np
import pandas as pd

from .._utils import progress as _progress
from .._utils.atomic_files import path_of
from .._utils.errstate import guarded
from ._folder import DTYPES, begun, open_rows, write
from ._sources import open_source

if TYPE_CHECKING:
    from .._types import NDArray, Sequence
    from .._types import Path as _Path

    _DType: TypeAlias = Literal["float16", "float32", "float64"]
    _X: TypeAlias = pd.DataFrame | np.memmap[Any, Any]
    _Labels: TypeAlias = NDArray[Any]

    class _Options(TypedDict, total=False):
        y: Any
        columns: Sequence[str] | None
        dtype: _DType | None
        verbose: int


__all__ = ["convert", "load"]


@overload
def convert(
    source: Any, folder: _Path, *, groups: None = None, **more: Unpack[_Options]
) -> tuple[_X, _Labels | None]: ...
@overload
def convert(
    source: Any, folder: _Path, *, groups: Any, **more: Unpack[_Options]
) -> tuple[_X, _Labels | None, _Labels]: ...
@guarded
def convert(
    source: Any,
    folder: _Path,
    *,
    y: Any = None,
    groups: Any = None,
    columns: Sequence[str] | None = None,
    dtype: _DType | None = None,
    verbose: int = 0,
) -> tuple[Any, ...]:
    """Write rows to a folder, row after row in binary, so that a fit can read them from the disk.

    A call that was killed or failed goes on where it stopped if it is made again. One that has ended returns its rows
    if the source is the same: files are known by name, size and time, NumPy's arrays by a checksum. ``load`` opens all.

    Parameters
    ----------
    source : path-like, list of path-like, array, table, or iterable of tables or arrays
        A path leads to a parquet, CSV, Arrow or ORC file, or to a folder of one kind, read in the order of their names,
        part.2 before part.10. Arrays have the shape (n_samples, n_features), tables are of pandas, polars or pyarrow,
        its data sets too. An iterable may yield pairs of rows and labels. To go on, give it anew, with the same items.
    folder : path-like
        Where to write; made if there is none. Something else in it at the start is an error.
    y : str, array-like of shape (n_samples,) or None, default=None
        Name of the column that holds the labels; for an array or one table also the labels. None where there are none,
        or where they are in the items of ``source``. At most 256 different ones (``fit`` takes 255), of at
        most 1000 letters.
    groups : str, array-like of shape (n_samples,) or None, default=None
        Name of the column that holds the labels of groups of rows, as ``fit`` takes them; for an array or one table
        also the labels. Text or numbers, in any order of rows.
    columns : list of str or None, default=None
        Names of the columns to take, in this order. None takes all but ``y`` and ``groups``.
    dtype : {"float16", "float32", "float64"}, the same of NumPy's, or None, default=None
        Of X. None is the narrower of float32 and float64 that holds every number exactly. Others round: float32 to 7
        digits, float16 to 3 or, below 0.00006, to a multiple of 0.00000006.
    verbose : int, default=0
        If positive, log the progress to the logger "skhorseshoe", a line every five seconds.

    Returns
    -------
    X : pandas.DataFrame or numpy.memmap of shape (n_samples, n_features)
        As ``load`` returns it.
    y : ndarray of shape (n_samples,) or None
        The labels.
    groups : ndarray of shape (n_samples,)
        With ``groups`` alone: their labels.

    Raises
    ------
    ValueError
        If rows are no finite numbers, two columns have one name, parts do not agree, the folder holds something else or
        is no path, or a file cannot be read.
    OSError
        If the disk is full, or the folder is moved or replaced meanwhile. The same call goes on.
    RuntimeError
        If another conversion to the folder is under way. One that was killed does not count.

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
    dtype = getattr(dtype, "__name__" if isinstance(dtype, type) else "name", dtype)  # name of a NumPy dtype
    if dtype not in (None, *DTYPES):
        raise ValueError(f"dtype must be one of {', '.join(DTYPES)}, or None; got {dtype!r}.")
    name, labels = (y, None) if y is None or isinstance(y, str) else (None, y)
    by, group_labels = (groups, None) if groups is None or isinstance(groups, str) else (None, groups)
    columns = columns if columns is None or isinstance(columns, str) else pd.Index(list(columns)).tolist()  # for JSON
    are_apart = isinstance(columns, list) and len({*columns, name, by}) == len(columns) + len({name, by})
    if columns is not None and not (columns and are_apart):
        and_groups = "" if by is None else f" and groups={by!r}"
        raise ValueError(
            f"columns must be a list of columns other than y={name!r}{and_groups}, each once; got {columns!r}."
        )
    items, known = open_source(source, labels, group_labels)
    conversion = {"source": known, "y": name, "columns": columns, "dtype": dtype}
    conversion |= {} if groups is None else {"groups": True if by is None else by}
    path = path_of(folder, "folder")
    if not begun(path, conversion)["complete"]:
        needed = columns and {*columns, name, by} - {None}
        with _progress.visible(verbose):
            report = _progress.reporter(verbose, None, lambda n, seconds_per_row: f"{n} rows written")
            write(path, conversion, items, needed, report)
    return open_rows(path, False, groups is not None)


@overload
def load(folder: _Path, *, check: bool = False, groups: Literal[False] = False) -> tuple[_X, _Labels | None]: ...
@overload
def load(folder: _Path, *, check: bool = False, groups: Literal[True]) -> tuple[_X, _Labels | None, _Labels]: ...
def load(folder: _Path, *, check: bool = False, groups: bool = False) -> tuple[Any, ...]:
    """Open rows that ``convert`` has written.

    Parameters
    ----------
    folder : path-like
        The folder.
    check : bool, default=False
        If True, compare every byte with its checksum; otherwise sizes alone, which tell if a file was cut short.
    groups : bool, default=False
        Whether to return the labels of the groups too, of rows that were converted with ``groups``.

    Returns
    -------
    X : pandas.DataFrame or numpy.memmap of shape (n_samples, n_features)
        On disk, read-only: what is used of it is read then. A frame if the columns have names.
    y : ndarray of shape (n_samples,) or None
        The labels, in memory.
    groups : ndarray of shape (n_samples,)
        With ``groups=True`` alone: their labels, in memory.

    Raises
    ------
    ValueError
        If the folder holds no rows, those of a conversion that has not ended, no groups where they are asked for, or a
        file that is damaged.
    MemoryError
        If the labels have no room in memory.
    """
    return open_rows(path_of(folder, "folder"), check, groups)
