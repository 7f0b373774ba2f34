"""Rows as fused calls of the core read them: for scores, and for the moves of ``line_moves.py`` in one call."""

from weakref import WeakKeyDictionary

import numpy as np

from ..line_moves import kinds
from .library import function, record
from .passes import Shift, or_none, pass_rows, rows_of

fused_line_moves = function("fused_line_moves")
_of_scores = WeakKeyDictionary()  # by ``Rows``, their ``FusedScoreRows``
_of_lines = WeakKeyDictionary()  # by ``Rows``: their ``FusedLineRows``, and what these are of


def fused_score_rows(rows):
    """The record ``FusedScoreRows`` of rows; of rows with groups that of the last ``give_effects``."""
    made = _of_scores.get(rows)
    if made is None:
        made = _of_scores[rows] = record("FusedScoreRows", _fields(rows))
    return made


def give_effects(given, rows, effects, X, level, pull, curvature):
    """Let fused calls with ``given`` read ``rows`` and effects of groups (n_groups, n_points). X : the array to read in
    the sampler's coefficients, or None for that of the rows. The others are fields of ``FusedScoreRows``."""
    shift = Shift(rows.offset, rows.groups.codes, effects).record(slice(None))
    effects = {"level": level, "pull": pull, "curvature": curvature, "n_followed": pull.shape[1]}
    fields = _fields(rows, shift) | effects
    if X is not None:  # which has columns for parameters of the likelihood's own, too
        fields |= {"X": rows_of(X), "q": X.shape[1], "size": X.shape[1], "fit_intercept": False, "translated": False}
    _of_scores[given] = record("FusedScoreRows", fields)


def _fields(rows, shift=None):
    X, y, weight = rows.held
    columns, quick = rows.columns.of_one, rows.quick.likelihood.number
    order, place, unit, centre = columns.q_order, columns.q_place, columns.q_unit, columns.q_centre
    of_pass = pass_rows(y, or_none(weight), rows.bounds, shift, likelihood=rows.likelihood)
    fields = {"X": rows_of(X), "of_pass": of_pass, "quick": quick, "q": len(order)}
    fields |= {"n_contrasts": (d := rows.columns.n_contrasts), "n_own": rows.n_own, "size": len(order) * d + rows.n_own}
    fields["at_mean"], fields["precision"] = rows.prior_of_own or (None, 0.0)
    fields |= {"fit_intercept": columns.fit_intercept, "translated": columns.translated}
    fields |= {"order": order, "place": place, "unit": unit, "centre": centre}
    return fields | {"level": None, "pull": None, "curvature": None, "n_followed": 0}


def fused_line_rows(rows, lines, tau_0, beta):
    """The record ``FusedLineRows`` of rows and lines, the same in all sweeps after burn-in, and beta (n_chains, q) as
    coefficients of the columns that it reads."""
    has_groups = rows.groups is not None
    source = fused_score_rows(rows) if has_groups else rows.held[1]
    made, is_own, *last = _of_lines.get(rows, (None, False, None, None, None))
    if last[0] is not lines or last[1] is not source or last[2] != tau_0:
        shift = None if has_groups or rows.offset is None else Shift(rows.offset).record(slice(None))
        given = source if has_groups else record("FusedScoreRows", _fields(rows, shift))
        (number, unit), (centre, anchor, diagonal) = lines.for_fused
        is_own, q = has_groups and not given.given["translated"], len(unit)
        if is_own:  # an array by the sampler's coefficients
            number, unit, centre = np.arange(float(q)), np.ones(q), np.zeros(q)
        moves = np.array(kinds(lines))
        fields = {"source": given, "number": number, "unit": unit, "centre": centre, "anchor": anchor}
        fields |= {"diagonal": diagonal, "widths": lines.widths, "square": lines.square, "kinds": moves}
        fields |= {"n_moves": len(moves), "n_splits": lines.n_splits, "p": len(lines.square), "q": q, "tau_0": tau_0}
        made = record("FusedLineRows", fields)
        _of_lines[rows] = made, is_own, lines, source, tau_0
    return made, np.ascontiguousarray(beta if is_own else rows.columns.of_X(beta))
