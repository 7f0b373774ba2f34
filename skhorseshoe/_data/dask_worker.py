"""Code that runs on the workers of a Dask cluster: it makes segments of rows, and answers questions about them."""

from typing import NamedTuple

import numpy as np

from .._backends import device as _device
from .._model import PROBIT
from .._utils.arrays import first_not_finite
from .._utils.threads import open_threads
from .input_table import not_numeric, table_of
from .labels import placed
from .row_blocks import ADD, Segment, block_bounds, collapse
from .validation import not_finite, refuse_merged


class Labels(NamedTuple):
    """The classes of all rows."""

    classes: np.ndarray  # sorted, (K,)
    places: np.ndarray  # of each in the order of the classes
    weights: np.ndarray | None  # of the classes by place, or None for none


def make_segment(X, y, weight, labels, names, shape, dtype, start, stop):
    """One segment, rows start to stop - 1 of all, checked and in the form that kernels take. Runs as a Dask task.

    weight, names : None for none. labels : ``Labels`` of all rows. shape, dtype : of all of X.
    """
    X = np.asarray(without_mask(X))
    if X.shape != (stop - start, shape[1]) or len(y) != len(X):
        raise ValueError(
            f"Rows {start} to {stop - 1} came in shapes {X.shape} and {np.shape(y)}, not ({stop - start}, {shape[1]}) "
            f"and ({stop - start},): the chunks of the collection are not what it says they are."
        )
    original, X = X, _as_numbers(X, dtype, names)  # a copy, so that Dask can free the results of other tasks
    if first := first_not_finite(X):
        raise not_finite(X[first], start + first[0], first[1], names, imputer="")
    refuse_merged(table_of(original), X)
    bounds = block_bounds(shape)[0]
    bounds = bounds[(bounds >= start) & (bounds <= stop)] - start
    y = _places(np.asarray(y), labels, start, stop)
    X.flags.writeable = False
    return Segment(X, y, _combined_weights(weight, labels.weights, y, start), bounds, start)


def _places(y, labels, start, stop):
    if len(labels.classes) > 2 and not np.isin(y, labels.classes).all():
        raise ValueError(
            f"Rows {start} to {stop - 1} have labels that were not there when the classes were counted: y gives others "
            "each time it is computed. Seed its random numbers, or persist() or save it first."
        )
    return placed(y, labels.classes, labels.places)


def _as_numbers(X, dtype, names):
    """X as a new array of numbers; a ValueError that names a column where it holds other things."""
    try:
        return np.array(X, dtype, order="C")
    except (ValueError, TypeError):
        for j in range(X.shape[1]):
            try:
                X[:, j].astype(dtype)
            except (ValueError, TypeError) as error:
                raise not_numeric(j if names is None else repr(names[j]), error) from error
        raise


def without_mask(values):
    """The values with NaN in place of masked ones, which NumPy would take for data."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    return values.astype(np.float64 if values.dtype.kind in "biuf" else object).filled(np.nan)


def _combined_weights(weight, class_weight, y, start):
    if weight is None and class_weight is None:
        return np.empty(0)
    weight = np.ones(len(y)) if weight is None else np.array(without_mask(weight), np.float64)
    bad = ~((weight > 0) & np.isfinite(weight))
    if bad.any():
        row = np.flatnonzero(bad)[0]
        raise ValueError(
            f"sample_weight is {weight[row]} in row {start + row}: rows of a Dask collection need weights above 0. "
            "Leave out those of weight 0."
        )
    return weight if class_weight is None else weight * np.asarray(class_weight)[y]


class Shard:
    """A Dask actor that holds some segments in the memory of its device.

    segments : list of ``Segment``. numbers : theirs, of n_segments. device : the first two arguments of
    ``device.resolve``.
    """

    def __init__(self, segments, numbers, n_segments, device, n_threads):
        self.n_segments, self.n_threads = n_segments, n_threads
        name, size = device
        self.ops, self.device, _ = _device.resolve(name, size)
        self.sums = {number: s.checksum(self.ops, None) for number, s in zip(numbers, segments, strict=True)}
        with self.ops.using(self.device):
            self.segments = {number: self._hold(s) for number, s in zip(numbers, segments, strict=True)}

    def _hold(self, segment):
        X, y, weight = self.ops.hold(segment.X, segment.y, segment.weight)
        return segment._replace(X=X, y=y, weight=weight)

    def checksums(self):
        return self.sums

    def partial_sums(self, question, *args, likelihood=PROBIT, **options):
        """Sums over the segments, as nodes of ``collapse``. question : of ``Segment``. likelihood : of rows."""
        nodes, ops = {}, self.ops
        quiet = np.errstate(over="ignore", invalid="ignore")
        with quiet, open_threads(self.n_threads) as threads, ops.using(self.device):
            for number, segment in self.segments.items():
                asked = segment._replace(likelihood=likelihood)
                nodes[0, number] = ops.to_host(question(asked, ops, threads, *args, **options))
                collapse(nodes, self.n_segments, ADD[question])
        return nodes
