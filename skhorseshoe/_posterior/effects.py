"""What columns do to the average probability of rows, if one of them changes."""

import numpy as np
import pandas as pd

from .._data.weights import check_weights
from .._utils.arrays import dense
from .._utils.names import printable
from ..diagnostics import ess_bulk
from . import predict
from .alike_moves import AlikeMoves
from .changes import Number, changes_of, check_change
from .grouped import by_draw, given_rows, on_average
from .moves import Mover
from .raw_rows import RawRows, seen
from .summary import in_lines, moments
from .table import Summary

_ROUNDING = 1e-12
_ZERO = 1e-16  # of an effect, below which rounding decides about its sign
_NUMBERS, _ROWS = 2**19, 2**13  # of the rows that pass through the steps of a Pipeline together
_HELD = 2**21  # numbers of the moves of these rows that are held together


def effects_frame(model, before, X, features, change, reference, level, of_rows, max_draws):
    """See ``inspection.marginal_effects``. model : as ``population`` makes it. of_rows : sample_weight and offset."""
    check_change(change)
    X = RawRows(X)
    sample_weight, weight = of_rows["sample_weight"], None
    offset = given_rows(model, X, None, of_rows["offset"]).offset
    if sample_weight is not None:
        weight = check_weights(sample_weight, X.X)
        if not weight.sum() > 0:
            raise ValueError("sample_weight is 0 for all rows: there is nothing to average over.")
        weight = weight / weight.sum()
    changes, left_out = changes_of(model, before, X, features, change, reference, weight)
    contrasts = [contrast for one in changes for contrast in one.contrasts]
    draws = _average_changes(model, before, X, changes, weight, offset, max_draws)
    frame = Summary(
        {"change": [one.words for one in contrasts], **moments(draws, level), "ess": ess_bulk(draws)},
        index=pd.Index([one.label for one in contrasts], name="feature", tupleize_cols=False),
    )
    mean = "average" if weight is None else "weighted average"
    some = "" if min(one.known for one in changes) > 1 - _ROUNDING else " (of those that have a value)"
    by_sd = " by one standard deviation" if change == "sd" and any(isinstance(one, Number) for one in changes) else ""
    text = f"Change of P(y = {printable(model.classes_[1])}), {mean} of {X.shape[0]} rows{some}, if one column changes"
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    out = f"; left out: {', '.join(map(printable, left_out[:3]))}{more}" if left_out else ""
    frame.attrs["header"] = in_lines(f"{text}{by_sd}{out}{on_average(model)}")
    whose = {str(contrast.label): str(one.name) for one in changes for contrast in one.contrasts}
    frame.attrs |= {"features": whose, "classes": model.classes_.tolist()}
    return frame


def _average_changes(model, before, X, changes, weight, offset, max_draws):
    """What the contrasts do to the average probability of the rows under each draw; (n_chains, m, contrasts)."""
    coef, intercept = predict.flat(model, max_draws)
    scale = by_draw(model, max_draws)
    mover = Mover(model, before, X, changes, np.abs(coef).max(axis=0).astype(np.float64))
    first = np.cumsum([0, *(len(one.states) for one in changes)])
    states = np.zeros((first[-1], len(coef)))  # each beside the rows as they are
    size = min(_ROWS, max(1, _NUMBERS // max(X.shape[1], model.n_features_in_)))
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(X.shape[0], start + size))
        part = X.part(rows)
        base = seen(model, before, part)

        def fixed(draws, some=rows):
            own = 0.0 if offset is None else scale[draws, None] * offset[some]
            return intercept[draws, None] + own

        share = (rows.stop - start) / X.shape[0] if weight is None else weight[rows]
        held, numbers = [], 0
        for move in mover.moves(rows, part, base):
            held.append(move)
            numbers += move.values.size + (0 if move.groups is None or len(move.values) == 1 else len(move.groups))
            if numbers > _HELD:
                _add(model, dense(base), held, first, share, coef, fixed, states)
                held, numbers = [], 0
        _add(model, dense(base), held, first, share, coef, fixed, states)
    if not np.isfinite(states).all():
        raise ValueError(
            "X is too large to predict, or holds NaN, as it is or changed: are its columns on the scale of the fit?"
        )
    out = []
    for i, one in enumerate(changes):
        for contrast in one.contrasts:
            effect = states[first[i] + contrast.high] - (0 if contrast.low is None else states[first[i] + contrast.low])
            effect[np.abs(effect) < _ZERO] = 0.0
            # Where a column has no value it does not change: such a row adds nothing, and is not to count either.
            out.append(effect / one.known)
    return np.stack(out, axis=1).reshape(len(model.coef_draws_), -1, len(out))


def _add(model, X, moves, first, share, coef, fixed, states):
    """Add to the states what the moves do to the sums over rows X of their probabilities, under each draw.

    first : number of the first state of each change. share : of all rows that these are, or the share of each of them.
    fixed : intercept and offset, (k, n) or (k, 1), as a function of the draws.
    """
    alike = AlikeMoves(moves, share / len(X) * np.ones(len(X)) if np.ndim(share) == 0 else share, coef.shape[1])
    apart = [one for one in moves if one.groups is None]

    def use(eta, draws, ops):
        def average(eta):
            return share * ops.average_phi(eta)[:, 1] if np.ndim(share) == 0 else ops.ndtr(eta) @ ops.to_device(share)

        # Blocks of draws under all rows, not of rows under all draws: each sum over rows is then made in one place.
        eta += ops.to_device(fixed(draws))
        some, left = coef[draws].astype(np.float64), [*apart]
        for one, total in alike.changes(eta, some, ops):
            if total is None:
                left.append(one)
            else:
                states[first[one.change] + one.state, draws] += total
        own = average(eta) if left else None
        for one in left:
            shift = ops.to_device(some[:, one.columns]) @ ops.to_device(np.ascontiguousarray(one.by_row().T))
            states[first[one.change] + one.state, draws] += ops.to_host(average(eta + shift) - own)

    if moves:
        predict.each_block(model, coef, X, use)
