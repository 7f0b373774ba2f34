"""The moves of ``lines.py`` for near rows, in one call of the core (``core/lines.hpp``)."""

from weakref import WeakKeyDictionary

import numpy as np

from ..lines import kinds
from .library import function, record
from .passes import or_none

move_near, _growth = function("move_near"), function("growth_of")
_propose, _find_first = function("propose_along_lines"), function("find_first_inside")
_records = WeakKeyDictionary()  # by ``Rows``: lines, y and tau_0 of the last record, and the record


def near_lines(rows, lines, tau_0):
    """The record ``NearRows`` of rows and lines, the same in all sweeps after burn-in."""
    X, y, weight = rows.held
    last = _records.get(rows)
    if last is None or last[0] is not lines or last[1] is not y or last[2] != tau_0:
        columns, prior = lines.near
        fields = {"is_double": X.dtype == np.float64, "X": X, "n": len(X), "p_of_X": X.shape[1], "y": y}
        fields |= dict(zip(("number", "unit", "centre", "anchor", "diagonal"), (*columns, *prior), strict=True))
        fields |= {"offset": rows.offset, "weight": or_none(weight)}
        fields |= {"widths": lines.widths, "square": lines.square, "tau_0": tau_0}
        moves = np.array(kinds(lines))
        fields |= {"kinds": moves, "n_moves": len(moves), "n_splits": lines.n_splits}
        fields |= {"p": len(lines.square), "q": columns.shape[1]}
        _records[rows] = last = lines, y, tau_0, record("NearRows", **fields)
    return last[3]


def proposals(uniform, width):
    """0 and the proposals; (n_chains, k). uniform : (n_chains, N_UNIFORMS). width : (1,) or (n_chains,)."""
    out = np.empty((len(uniform), uniform.shape[1] - 2))
    _propose(np.ascontiguousarray(uniform), width, len(width) > 1, *out.shape, out)
    return out


def first_inside(value, steps, uniform):
    """The first of the steps (n_chains, k) whose log-density ``value`` is not below the level, value[0] + log(uniform);
    0 if there is none."""
    out = np.empty(len(value))
    _find_first(value, steps, np.ascontiguousarray(uniform), *value.shape, out)
    return out


def growth(r):
    """e^r - 1, with the bits of the core."""
    out = np.empty(r.shape)
    _growth(np.ascontiguousarray(r), r.size, out)
    return out
