"""Marginal effects: how the average probability of rows changes if one column changes."""

import numpy as np
import pandas as pd

from .._data.weights import check_weights
from .._utils.arrays import dense
from .._utils.names import printable
from ..diagnostics import ess_bulk
from . import predict
from .column_changes import ColumnChanger
from .effects_of_alike_rows import AlikeRows
from .feature_changes import Number, changes_of, check_change
from .grouped_prediction import given_rows, offset_factors, on_average
from .input_rows import InputRows, blocks_behind
from .summary import in_lines, moments
from .table import Summary

_ROUNDING = 1e-12
_ZERO = 1e-16  # effects below this are set to 0, since rounding determines their sign
_NUMBERS_HELD = 2**21  # numbers of column changes of these rows to hold at a time


def effects_frame(model, steps, X, features, change, reference, level, of_rows, max_draws):
    """See ``inspection.marginal_effects``. model : as ``population`` returns it. of_rows : sample_weight and offset."""
    check_change(change)
    X = InputRows(X)
    sample_weight, weight = of_rows["sample_weight"], None
    offset = given_rows(model, X, None, of_rows["offset"]).offset
    if sample_weight is not None:
        weight = check_weights(sample_weight, X.X)
        if not weight.sum() > 0:
            raise ValueError("sample_weight is 0 for all rows: there is nothing to average over.")
        weight = weight / weight.sum()
    changes, left_out = changes_of(model, steps, X, features, change, reference, weight)
    contrasts = [contrast for item in changes for contrast in item.contrasts]
    draws = _average_changes(model, steps, X, changes, weight, offset, max_draws)
    frame = Summary(
        {"change": [item.words for item in contrasts], **moments(draws, level), "ess": ess_bulk(draws)},
        index=pd.Index([item.label for item in contrasts], name="feature", tupleize_cols=False),
    )
    mean = "average" if weight is None else "weighted average"
    known = "" if min(item.known for item in changes) > 1 - _ROUNDING else " (of those that have a value)"
    by_sd = " by one standard deviation" if change == "sd" and any(isinstance(item, Number) for item in changes) else ""
    text = f"Change of P(y = {printable(model.classes_[1])}), {mean} of {X.shape[0]} rows{known}, if one column changes"
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    out = f"; left out: {', '.join(map(printable, left_out[:3]))}{more}" if left_out else ""
    frame.attrs["header"] = in_lines(f"{text}{by_sd}{out}{on_average(model)}")
    whose = {str(contrast.label): str(item.name) for item in changes for contrast in item.contrasts}
    frame.attrs |= {"features": whose, "classes": model.classes_.tolist()}
    return frame


def _average_changes(model, steps, X, changes, weight, offset, max_draws):
    """The effect of each contrast on the average probability of the rows, by draw; (n_chains, m, contrasts)."""
    coef, intercept = predict.flat_draws(model, max_draws)
    scale = offset_factors(model, max_draws)
    changer = ColumnChanger(model, steps, X, changes, np.abs(coef).max(axis=0).astype(np.float64))
    first = np.cumsum([0, *(len(item.states) for item in changes)])
    states = np.zeros((first[-1], len(coef)))  # each relative to the unchanged rows
    for rows, block, base in blocks_behind(model, steps, X):

        def fixed(draws, rows=rows):
            shift = 0.0 if offset is None else scale[draws, None] * offset[rows]
            return intercept[draws, None] + shift

        share = base.shape[0] / X.shape[0] if weight is None else weight[rows]
        held, numbers = [], 0
        for column_change in changer.column_changes(rows, block, base):
            held.append(column_change)
            groups, values = column_change.groups, column_change.values
            numbers += values.size + (0 if groups is None or len(values) == 1 else len(groups))
            if numbers > _NUMBERS_HELD:
                _add(model, dense(base), held, first, share, coef, fixed, states)
                held, numbers = [], 0
        _add(model, dense(base), held, first, share, coef, fixed, states)
    if not np.isfinite(states).all():
        raise ValueError(
            "X is too large to predict, or holds NaN, as it is or changed: are its columns on the scale of the fit?"
        )
    out = []
    for i, item in enumerate(changes):
        for contrast in item.contrasts:
            effect = states[first[i] + contrast.high] - (0 if contrast.low is None else states[first[i] + contrast.low])
            effect[np.abs(effect) < _ZERO] = 0.0
            # Rows without a value do not change: they add nothing to the sum, and do not count in the mean.
            out.append(effect / item.known)
    return np.stack(out, axis=1).reshape(len(model.coef_draws_), -1, len(out))


def _add(model, X, column_changes, first, share, coef, fixed, states):
    """Add to the states the effects of column changes on the sum of probabilities over the rows X, under each draw.

    first : number of the first state of each change. share : of these rows among all, or (n,) of each of them. fixed :
    function of the draws that returns intercept plus offset, (k, n) or (k, 1).
    """
    alike = AlikeRows(column_changes, share / len(X) * np.ones(len(X)) if np.ndim(share) == 0 else share, coef.shape[1])
    one_by_one = [column_change for column_change in column_changes if column_change.groups is None]

    def use(eta, draws, ops):
        def average(eta):
            return share * ops.average_phi(eta)[:, 1] if np.ndim(share) == 0 else ops.ndtr(eta) @ ops.to_device(share)

        # Blocks of draws with all rows, not of rows with all draws, so that each sum over rows is made in one place.
        eta += ops.to_device(fixed(draws))
        block_coef, remaining = coef[draws].astype(np.float64), [*one_by_one]
        for column_change, total in alike.effects(eta, block_coef, ops):
            if total is None:
                remaining.append(column_change)
            else:
                states[first[column_change.feature_change] + column_change.state, draws] += total
        unchanged = average(eta) if remaining else None
        for column_change in remaining:
            by_column = np.ascontiguousarray(column_change.by_row().T)
            shift = ops.to_device(block_coef[:, column_change.columns]) @ ops.to_device(by_column)
            state = first[column_change.feature_change] + column_change.state
            states[state, draws] += ops.to_host(average(eta + shift) - unchanged)

    if column_changes:
        predict.each_block(model, coef, X, use)
