"""Dask collections: their checks for ``fit``, and lazy predictions."""

import functools
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from itertools import repeat

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import column_or_1d

from .._utils.arrays import refuse_masked
from . import weights
from .input_table import example, is_dask, table_of
from .labels import check_labels, encode_labels, levels_of, nullable_type, order_of, refuse_missing
from .row_blocks import block_bounds
from .validation import refuse_merged

_LABELS = 2**20  # labels in a chunk, if y is in memory
# The X of the current fit, and the lengths of its chunks.
_counted = ContextVar("_counted", default=(None, None))

try:
    import dask.array as da
    import distributed
    from dask import compute, delayed

    from .dask_rows import DaskRows, Shards, survey, wait_for
    from .dask_worker import Labels, make_segment, without_mask
except ImportError as error:
    raise ImportError(
        f"Rows of Dask collections need dask and distributed: pip install 'dask[array,dataframe]' distributed ({error})"
    ) from error


@contextmanager
def _seceded():
    """A context in which the thread of a Dask task is free for the tasks that it waits for."""
    with ExitStack() as at_the_end:
        with suppress(ValueError, KeyError, AttributeError):  # not in a task, or the task has seceded already
            distributed.secede()
            at_the_end.callback(distributed.rejoin)
        yield


@_seceded()
def prepare(params, X, y, sample_weight, dtype):
    """The facts of ``Data``: the shape of X, the classes, the ``Excess`` of the weights, and a function that opens
    ``DaskRows``; and the classes in their order, of ``levels_of``.

    params : has those of the classifier, and the names of the columns. dtype : of X, if it were in memory.
    """
    client, original, given_y = _client(), X, y
    dtype_of_y = nullable_type(getattr(y, "_meta", y))
    X, lengths, y, weight = _aligned(client, X, y, sample_weight, dtype)
    shape, dtype = X.shape, np.dtype(np.float32 if dtype == np.float32 else np.float64)
    bounds, edges = block_bounds(shape)
    ends = bounds[edges].tolist()
    chunks = {0: tuple(np.diff(ends).tolist())}
    arrays = (array if array is None else array.rechunk(chunks, method="tasks") for array in (X, y, weight))
    blocks = (repeat(None) if array is None else np.ravel(array.to_delayed()) for array in arrays)
    partitions = list(zip(*blocks, strict=False))
    levels, labels, excess = _classes(client, partitions, ends, params, given_y)
    names, weighted = getattr(params, "feature_names_in_", None), weight is not None or labels.weights is not None

    def task_of(i):
        make = delayed(make_segment, pure=False)
        return make(*partitions[i], labels, names, shape, dtype, ends[i], ends[i + 1])

    row = shape[1] * dtype.itemsize
    sizes, chunk = np.diff(ends) * (row + 1 + 8 * weighted), max(lengths) * row

    @contextmanager
    def open_rows(likelihood, *of_rows):
        has_two = likelihood.n_classes == 2  # others are for the CPU alone
        device = params.device if has_two else "cpu", shape[0] * shape[1]  # so that all workers choose the same
        n_matrices = likelihood.n_predictors * (likelihood.n_predictors + 1) // 2  # of an information
        weights_of_rows = 0 if has_two else 32 * (n_matrices + likelihood.n_own) * int(np.diff(ends).max())
        working_set = 32 * n_matrices * (shape[1] + 1) ** 2 + weights_of_rows
        with _seceded(), Shards(client, task_of, sizes.tolist(), chunk, working_set, device) as shards:
            token = _counted.set((original, lengths))  # gives predictions for this X, by callbacks, known lengths
            try:
                yield DaskRows(shards, shape, dtype, likelihood, *of_rows)
            finally:
                _counted.reset(token)

    classes = labels.classes if dtype_of_y is None else labels.classes.astype(dtype_of_y)
    return {"shape": shape, "classes": classes, "excess": excess, "open_on_cluster": open_rows}, levels


def _classes(client, blocks, ends, params, given_y):
    """The classes in their order, of ``levels_of``, the ``Labels``, and the ``Excess`` of the weights."""
    tallies = _gather(client, [delayed(_tally)(y, w, start) for (_, y, w), start in zip(blocks, ends, strict=False)])
    labels, class_weight = np.unique(np.concatenate([labels for labels, _ in tallies])), params.class_weight
    levels = levels_of(params.ordered, _with_order(given_y, params.ordered), labels)
    classes, places = encode_labels(labels, levels=levels)
    sums = np.stack([sum(sums[:, labels == c].sum(axis=1) for labels, sums in tallies) for c in classes], axis=1)
    totals, by_class = sums[1], np.ones(len(classes))
    if class_weight is not None:
        by_class = weights.of_classes(class_weight, classes, classes, totals)
    if (totals > 0).all() and np.isfinite(totals).all():  # otherwise a worker raises an error that names the row
        weights.check_totals(totals * by_class)
    by_place = None if class_weight is None else by_class[np.argsort(places)]
    return levels, Labels(classes, places, by_place), weights.excess(sums, by_class)


def _with_order(y, ordered):
    """What tells the order of labels, as they were given; a ValueError for an order that no process knows yet."""
    if ordered is True and not getattr(getattr(y, "cat", None), "known", True) and order_of(y._meta):
        raise ValueError(
            "y is ordered, and Dask does not know its categories, of which cat.as_known() may lose the order: give the "
            "list of the classes from lowest to highest, such as ordered=['low', 'high']."
        )
    return getattr(y, "_meta", y)


def _client():
    try:
        client = distributed.get_client()
    except ValueError as error:
        raise ValueError(
            "Rows in Dask collections are held by the workers of a cluster, and there is no active client. Create one "
            "before fit, client = distributed.Client(...), or fit on X.compute() if the rows fit into memory."
        ) from error
    if client.asynchronous:
        raise ValueError("fit waits for the cluster: it needs a client without asynchronous=True.")
    return client


def _aligned(client, X, y, sample_weight, dtype):
    """X, the lengths of its chunks, y and the weights (or None); Dask arrays of known and equal length."""
    X, lengths = _known(client, X, functools.partial(_partition_numbers, dtype=dtype))
    n = X.shape[0]
    if n == 0:
        raise ValueError("X has 0 rows in all its partitions: there is nothing to fit.")
    weight = None if sample_weight is None else _dask_column(client, "sample_weight", sample_weight, n, np.float64)
    return X, lengths, _dask_column(client, "y", y if is_dask(y) else check_labels(y), n), weight


def _dask_column(client, name, values, n, dtype=None):
    if is_dask(values):
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[values.columns[0]] if hasattr(values, "columns") else values[:, 0]
        values, _ = _known(client, values, functools.partial(column_or_1d, dtype=dtype))
    else:
        refuse_masked(values, name)
        # Dask does not know the size of objects, so it cannot choose chunks for them.
        values = da.from_array(column_or_1d(values, dtype=dtype), chunks=_LABELS)
    if values.shape != (n,):
        raise ValueError(f"{name} has shape {values.shape}, but X has {n} rows: give one value for each.")
    return values if dtype is None else values.astype(dtype)


def _partition_numbers(rows, dtype):
    """A partition as an array, with NaN for missing values of nullable columns."""
    if not hasattr(rows, "columns"):
        return np.asarray(rows)
    X = rows.to_numpy(dtype, na_value=np.nan)
    refuse_merged(table_of(rows), X)
    return X


def _known(client, collection, to_array):
    """A collection as an array of known length, each chunk with all columns; and the lengths of the original chunks."""
    if hasattr(collection, "chunks") and collection.ndim == 2:
        collection = collection.rechunk({1: -1}, method="tasks")
    if hasattr(collection, "chunks") and not np.isnan(collection.chunks[0]).any():
        return collection, collection.chunks[0]
    # Only once: when Dask optimises the same collection for another purpose, it gives other tasks the same names.
    partitions = np.ravel(collection.to_delayed())
    lengths = _gather(client, [delayed(len)(partition) for partition in partitions])
    dtype, array_of = to_array(collection._meta).dtype, delayed(to_array)
    blocks = [
        da.from_delayed(array_of(partition), (n, *collection.shape[1:]), dtype)
        for partition, n in zip(partitions, lengths, strict=True)
        if n
    ]
    array = da.concatenate(blocks) if blocks else da.empty((0, *collection.shape[1:]), dtype=dtype)
    return array, lengths


def _gather(client, tasks):
    futures = client.compute(tasks)

    def check():
        if not survey(client):
            raise RuntimeError(f"{client} has no workers: start some, or see in their logs why they have ended.")

    try:
        wait_for(client, futures, futures, check)
        return client.gather(futures)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"The workers lack {error.name!r}: install skhorseshoe with its extra 'dask' there, in the same version."
        ) from error
    finally:
        for future in futures:
            future.release()


def _tally(y, weight, start):
    """The labels, and their ``weights.sums_by_class``. start : number of the first row."""
    refuse_missing(without_mask(y), start)
    labels, codes = np.unique(np.asarray(y), return_inverse=True)
    return labels, weights.sums_by_class(codes, weight, len(labels))


def map_rows(method, X, args, kwargs):
    """A Dask array of the answers of ``method`` for the rows of X."""
    empty = method(example(X), *args, **kwargs)[:0]
    ask = delayed(functools.partial(_answer, method, empty, args, kwargs), pure=True)
    counted, lengths = _counted.get()
    if X is not counted:
        lengths = [np.nan] * X.npartitions if hasattr(X, "columns") else X.chunks[0]
    if not hasattr(X, "columns"):
        X = X.rechunk({1: -1})
    partitions = zip(np.ravel(X.to_delayed()), lengths, strict=True)
    blocks = [da.from_delayed(ask(partition), (n, *empty.shape[1:]), empty.dtype) for partition, n in partitions]
    return da.concatenate(blocks, allow_unknown_chunksizes=True)


def _answer(method, empty, args, kwargs, rows):
    return method(rows, *args, **kwargs) if rows.shape[0] else empty


def accuracy(model, X, y, sample_weight):
    """The accuracy; fetches predictions and labels, but not X."""
    # One by one, since Dask warns if arrays and frames are mixed. A list is not searched for collections.
    y, predicted, weight = (compute(data, traverse=False)[0] for data in (y, model.predict(X), sample_weight))
    return accuracy_score(y, predicted, sample_weight=weight)
