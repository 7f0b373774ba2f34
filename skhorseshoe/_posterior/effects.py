"""What columns do: to the average probability of rows, if one of them changes, and to the scores of single rows."""

from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api.extensions import ExtensionDtype
from pandas.api.types import is_numeric_dtype
from scipy.sparse import issparse

from .._backends import device
from .._data import validation
from .._data.weights import check_weights
from .._utils.arrays import dense, kind_of, refuse_masked
from .._utils.memory import check_matrices
from .._utils.names import finder, plain, printable
from ..diagnostics import ess_bulk
from . import predict
from .estimates import means
from .pipeline import names_of, prepared
from .summary import in_lines, moments, summary_frame
from .table import Summary

_ROUNDING = 1e-12  # of a column, beside its largest value
_NUMBERS, _ROWS = 2**19, 2**13  # of the rows that pass through the steps of a Pipeline together
_CHANGES = 64  # of these rows, that are held together


class Change(NamedTuple):
    """Of a column, by number: by a step, or from 0 to 1 where that is None. known : share of rows that have a value."""

    column: int
    words: str
    step: float | None
    known: float


def effects_frame(model, before, X, features, change, level, sample_weight, max_draws):
    """See ``inspection.marginal_effects``."""
    X = RawRows(X)
    weight = None
    if sample_weight is not None:
        weight = check_weights(sample_weight, X.X)
        if not weight.sum() > 0:
            raise ValueError("sample_weight is 0 for all rows: there is nothing to average over.")
        weight = weight / weight.sum()
    changes = [_change(X, j, change, weight) for j in X.columns(features)]
    draws = _average_changes(model, before, X, changes, weight, max_draws)
    frame = Summary(
        {"change": [one.words for one in changes], **moments(draws, level), "ess": ess_bulk(draws)},
        index=pd.Index([X.names[one.column] for one in changes], name="feature", tupleize_cols=False),
    )
    mean = "average" if weight is None else "weighted average"
    some = "" if min(one.known for one in changes) > 1 - _ROUNDING else " (of those that have a value)"
    frame.attrs["header"] = in_lines(
        f"Change of P(y = {printable(model.classes_[1])}), {mean} of {X.shape[0]} rows{some}, if one column changes"
        f"{' by one standard deviation' if change == 'sd' else ''}"
    )
    return frame


def _change(X, j, change, weight):
    """The ``Change`` of a column that is asked for."""
    values, name = X.values(j), repr(X.names[j])
    has = ~np.isnan(values) if weight is None else ~np.isnan(values) & (weight > 0)
    known, values = has.mean() if weight is None else weight[has].sum(), values[has]
    if not known > 0:
        raise ValueError(
            f"Column {name} has no value in any row{'' if weight is None else ' of positive weight'}: leave it out of "
            "features."
        )
    if change in ("auto", "binary"):
        other = values[~np.isin(values, (0, 1))]
        if not len(other):
            return Change(j, "0 to 1", None, known)
        if change == "binary":
            raise ValueError(
                f"change='binary' is from 0 to 1, and column {name} holds other values, such as {other[0]:g}: "
                "take change='unit' or 'sd', or leave it out of features."
            )
    if change in ("auto", "unit"):
        return Change(j, "+1", 1.0, known)
    if change == "sd":
        sd = np.sqrt(np.cov(values, ddof=0, aweights=None if weight is None else weight[has]))
        if not sd > _ROUNDING * np.abs(values).max():
            raise ValueError(
                f"change='sd' needs columns that vary, and {name} has the same value in all rows of X: take "
                "change='unit', or leave it out of features."
            )
        return Change(j, f"{sd:+.3g}", sd, known)
    if isinstance(change, bool) or not isinstance(change, Real) or not np.isfinite(change):
        raise ValueError(f"change must be 'auto', 'unit', 'sd', 'binary' or a finite number; got {change!r}.")
    return Change(j, f"{change:+g}", float(change), known)


def _average_changes(model, before, X, changes, weight, max_draws):
    """What the changes do to the average probability of the rows under each draw; (n_chains, m, number of changes)."""
    coef, intercept = predict.flat(model, max_draws)
    out = np.zeros((len(changes), len(coef)))
    size = min(_ROWS, max(1, _NUMBERS // max(X.shape[1], model.n_features_in_)))
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(X.shape[0], start + size))
        part = X.part(rows)
        base = _seen(model, before, part)
        share = (rows.stop - start) / X.shape[0] if weight is None else weight[rows]
        for first in range(0, len(changes), _CHANGES):
            moves = [_ends(model, before, X, part, base, one) for one in changes[first : first + _CHANGES]]
            out[first : first + _CHANGES] += _of_rows(model, dense(base), moves, share, coef, intercept)
    if not np.isfinite(out).all():
        raise ValueError(
            "X is too large to predict, or holds NaN, as it is or changed: are its columns on the scale of the fit?"
        )
    # Where a column has no value it does not change: such a row adds nothing, and is not to count either.
    out /= np.array([one.known for one in changes])[:, None]
    return out.T.reshape(len(model.coef_draws_), -1, len(changes))


def _ends(model, before, X, part, base, change):
    """What ``_move`` gives for the rows of a part after a change; and first before it, if it does not begin at the rows
    as they are. base : these, as ``_seen``."""
    column, _, step, _ = change
    old = X.values(column, part)
    ends = [old + step] if step is not None else [np.where(np.isnan(old), old, k) for k in (0, 1)]
    if before is None:  # the classifier has the column itself: no others are looked at
        return [(np.array([column]), (new - old)[:, None]) for new in ends]
    try:
        return [_move(_seen(model, before, X.changed(part, column, new)), base) for new in ends]
    except ValueError as error:
        raise ValueError(
            f"The model takes the rows as they are, but not with column {X.names[column]!r} changed: leave it out of "
            f"features, or take another change. ({error})"
        ) from error


def _seen(model, before, rows):
    """Rows as the classifier has them behind the steps before it, in float64."""
    return device.to_host(validation.check_X(model, prepared(before, rows), reset=False)).astype(np.float64, copy=False)


def _move(after, base):
    """The columns (k,) in which rows differ from others, and by how much (n, k)."""
    moved = after - base
    if issparse(moved):
        moved = moved.tocsc()
        moved.eliminate_zeros()
        columns = np.flatnonzero(np.diff(moved.indptr))
    else:
        columns = np.flatnonzero(moved.any(axis=0))
    return columns, dense(moved[:, columns])


def _of_rows(model, X, moves, share, coef, intercept):
    """Sums over rows X of the changes of their probabilities, under each draw; (number of moves, m).

    moves : as ``_ends`` gives them. share : of all rows that these are, or the share of each of them (n,).
    """
    out = np.empty((len(moves), len(coef)))

    def use(eta, draws, ops):
        def across(columns, values):
            some = coef[draws][:, columns].astype(np.float64)
            return ops.to_device(some) @ ops.to_device(np.ascontiguousarray(values.T))

        def average(eta):
            return share * ops.average_phi(eta)[:, 1] if np.ndim(share) == 0 else ops.ndtr(eta) @ ops.to_device(share)

        # Blocks of draws under all rows, not of rows under all draws: each sum over rows is then made in one place.
        eta += ops.to_device(intercept[draws])[:, None]
        own = average(eta)
        for k, ends in enumerate(moves):
            low, high = [own, *(average(eta + across(*end)) for end in ends)][-2:]
            out[k, draws] = ops.to_host(high - low)

    predict.each_block(model, coef, X, use)
    return out


def contributions_frame(model, before, X, reference, level):
    """See ``inspection.contributions``."""
    X, p = RawRows(X), model.n_features_in_
    check_matrices(8, (X.shape[0], p), "contributions(X)", "Ask for fewer rows.")
    rows = dense(_seen(model, before, X.part(slice(None))))
    origin = model._column_means
    if reference is not None:
        origin = dense(_seen(model, before, _one_row(reference, X)))[0]
    origin = np.where(np.abs(origin) > _ROUNDING * np.abs(rows).max(axis=0), origin, 0.0)
    moved = rows - origin
    coef = summary_frame(model, level, None).iloc[:p, :4]  # mean, sd, and the ends of the interval
    low, high = (moved * end for end in coef.iloc[:, 2:].to_numpy().T)
    mean, sd = moved * coef["mean"].to_numpy(), np.abs(moved) * coef["sd"].to_numpy()
    total = _of_scores(model, moved, level)
    columns = {
        "value": (rows, np.full(len(rows), np.nan)),
        "reference": (np.tile(origin, (len(rows), 1)), np.full(len(rows), np.nan)),
        "mean": (mean, mean.sum(axis=1)),
        "sd": (sd, total[:, 0]),
        coef.columns[2]: (np.minimum(low, high), total[:, 1]),
        coef.columns[3]: (np.maximum(low, high), total[:, 2]),
    }
    labels = X.X.index if isinstance(X.X, pd.DataFrame) else range(len(rows))
    index = pd.MultiIndex.from_product([labels, [*names_of(before, model), "(total)"]], names=["row", "feature"])
    frame = Summary({name: np.column_stack(parts).ravel() for name, parts in columns.items()}, index=index)
    weights, intercept = means(model)
    whose = "the average row" if reference is None else "the reference"
    frame.attrs["header"] = in_lines(
        f"Score of P(y = {printable(model.classes_[1])}): {whose} has {origin @ weights + intercept:.3g}, and each "
        "column moves a row away from that by its contribution"
    )
    return frame


def _one_row(reference, X):
    """A reference as a row of the same form as X."""
    is_table = hasattr(X.X, "columns")
    if isinstance(reference, pd.Series) and not is_table and len(reference) == len(X.names):
        reference = reference.to_numpy()
    if isinstance(reference, (Mapping, pd.Series)):
        missing = [name for name in X.names if name not in reference]
        if missing:
            raise ValueError(f"reference has no value of column {missing[0]!r}: give one for each column of X.")
        reference = [reference[name] for name in X.names]
    refuse_masked(reference, "reference")
    row = reference
    if np.ndim(reference) == 1:  # of text and numbers each stays what it is
        row = np.asarray(reference, object if is_table or X.X.dtype == object else None).reshape(1, -1)
    if len(np.shape(row)) != 2 or np.shape(row)[0] != 1:
        raise ValueError(f"reference must be one row, or None; got shape {np.shape(row)}.")
    if is_table and not hasattr(row, "columns") and np.shape(row)[1] == len(X.names):
        row = pd.DataFrame(np.asarray(row, dtype=object), columns=X.names).infer_objects()
        return type(X.X)(row.to_dict("list")) if _is_polars(X.X) else _of_types(row, X.X.dtypes)
    return RawRows(row).part(slice(None))


def _of_types(row, dtypes):
    """A row with the types of pandas's own that columns have: a missing value is what it is to them. A value that is
    none of a type, such as 2.5 of whole numbers, stays."""
    for j, dtype in enumerate(dtypes):
        if isinstance(dtype, ExtensionDtype) and not isinstance(dtype, pd.CategoricalDtype):
            with suppress(TypeError, ValueError):
                row.isetitem(j, row.iloc[:, j].astype(dtype))
    return row


def _of_scores(model, moved, level):
    """Standard deviation and ends of the interval of the score's difference, for each row; (n, 3)."""
    out, (coef, intercept) = np.empty((len(moved), 3)), predict.flat(model)

    def use(eta, rows, ops):
        out[rows, 0] = ops.to_host(eta).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[rows, 1:] = ops.to_host(ops.quantiles(eta, [(1 - level) / 2, (1 + level) / 2]))

    predict._each_predictor(model, moved, coef, np.zeros_like(intercept), use)
    return out


def _series(column):
    """A column of another table for one of pandas, which would make nan of None in text, no category of an encoder."""
    values = np.asarray(column)  # by to_numpy an array of pyarrow refuses to be copied
    return pd.Series(values, dtype=object) if values.dtype == object else values


def _is_polars(X):
    return type(X).__module__.partition(".")[0] == "polars"


def _column(X, j):
    """A column of an array or a table, as NumPy or pandas have it."""
    return X.iloc[:, j] if isinstance(X, pd.DataFrame) else _series(X[:, j])


class RawRows:
    """Rows as a user has them, before any scaler: an array, a CSR matrix, or a frame of polars, or of pandas made of
    any other table.

    names : of the columns, x0, x1, ... of an array. shape : of X.
    """

    def __init__(self, X):
        if validation.is_dask(X):
            raise TypeError("X is a Dask collection, and effects are computed in memory: give a sample of its rows.")
        refuse_masked(X, "X")
        validation.refuse_lazy(X)
        X = device.to_host(device.checked(X)) if device.on_gpu(X) else X
        if hasattr(X, "columns"):
            names = list(getattr(X, "column_names", X.columns))  # the former of pyarrow, where the latter are arrays
            is_kept = isinstance(X, pd.DataFrame) or _is_polars(X)  # steps may use its methods
            self.X = X if is_kept else pd.DataFrame({name: _series(X[name]) for name in names})
        else:
            self.X = X.tocsr() if issparse(X) else np.asarray(X)
            if self.X.dtype.kind == "U" and not hasattr(X, "dtype"):
                self.X = np.asarray(X, object)  # of a list: numbers beside text stay numbers
            if self.X.ndim != 2:
                raise ValueError(
                    f"X must have rows and columns, also for one row (X[[i]]); got shape {self.X.shape}. Where the "
                    "steps of a Pipeline make the columns, as of texts, give model[-1], model[:-1].transform(X)."
                )
            names = [f"x{j}" for j in range(self.X.shape[1])]
        if not self.X.shape[0]:
            raise ValueError("X has no rows: give one at least.")
        self.names, self.shape = names, self.X.shape

    def part(self, rows):
        """Some rows as they are, numbers in arrays as float64."""
        if isinstance(self.X, pd.DataFrame):
            return self.X.iloc[rows]
        part = self.X[rows]
        return part.astype(np.float64) if not _is_polars(part) and part.dtype.kind in "biuf" else part

    @cached_property
    def _by_column(self):
        return self.X.tocsc() if issparse(self.X) else self.X

    def values(self, j, part=None):
        """The numbers of a column, of all rows or of a part; (n,) float64."""
        X = self._by_column if part is None else part
        if issparse(X):
            return X[:, [j]].toarray().ravel().astype(np.float64)
        column = _column(X, j)
        # Text and dates would pass for numbers, but a step before the classifier knows them as they are.
        if not is_numeric_dtype(column.dtype) and kind_of(np.asarray(column, object)) != "numbers":
            raise ValueError(f"Column {self.names[j]!r} does not hold numbers: leave it out of features.")
        return pd.Series(column).to_numpy(dtype=np.float64, na_value=np.nan)

    def changed(self, part, j, values):
        """A part with these values (n,) in column j."""
        if issparse(part):
            there = np.arange(part.shape[0]), np.full(part.shape[0], j)
            return part + type(part)((values - self.values(j, part), there), shape=part.shape)
        if isinstance(part, np.ndarray):
            part = part.copy()
            part[:, j] = values
            return part
        dtype = _column(part, j).dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "biuO":
            cast = values.astype(dtype)
            values = cast if dtype.kind == "O" or (cast == values).all() else values  # as an encoder knows them
        if _is_polars(part):
            return part.with_columns(type(part[:, j])(self.names[j], values))
        part = part.copy(deep=False)
        part.isetitem(j, values)
        return part

    def columns(self, features):
        """The numbers of columns that are given by name or number, one or several; None is all that hold numbers."""
        if features is None:
            # Categories are none, be they numbers.
            found = [j for j in range(self.shape[1]) if issparse(self.X) or kind_of(_column(self.X, j)) == "numbers"]
            found = [j for j in found if not np.isnan(self.values(j)).all()]
        else:
            names, cure = [plain(name) for name in self.names], f" Give names, or numbers below {self.shape[1]}."
            find = finder(names, "columns of X", cure, numbered=True)
            is_one = np.ndim(features) == 0 or (isinstance(features, tuple) and plain(features) in names)
            found = [find(one, "features") for one in ([features] if is_one else features)]
        if not found:
            raise ValueError("features is empty, or no column of X holds numbers: give one column at least.")
        return found
