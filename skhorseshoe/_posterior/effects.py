"""What columns do to the average probability of rows, if one of them changes."""

from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import issparse

from .._data.weights import check_weights
from .._utils.arrays import dense
from .._utils.names import printable
from ..diagnostics import ess_bulk
from . import predict
from .raw_rows import RawRows, seen
from .summary import in_lines, moments
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
        base = seen(model, before, part)
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
        return [_move(seen(model, before, X.changed(part, column, new)), base) for new in ends]
    except ValueError as error:
        raise ValueError(
            f"The model takes the rows as they are, but not with column {X.names[column]!r} changed: leave it out of "
            f"features, or take another change. ({error})"
        ) from error


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
