"""The moves of ``lines.py`` for rows that are near, by one call of the core (``core/lines.hpp``)."""

from weakref import WeakKeyDictionary

import numpy as np

from ..lines import kinds
from .library import function, record
from .passes import or_none

move_near, _growth = function("move_near"), function("growth_of")
_propose, _find_first = function("propose_along_lines"), function("find_first_inside")
_kept = WeakKeyDictionary()  # by the rows: what their last record was made of, and that


def near_lines(rows, lines, tau_0):
    """Rows and the moves along lines as the core takes them: they are the same in all sweeps after burn-in."""
    X, y, weight = rows.held
    before = _kept.get(rows)
    if before is None or before[0] is not lines or before[1] is not y or before[2] != tau_0:
        columns, prior = lines.near
        how = {
            "is_double": X.dtype == np.float64,
            "X": X,
            "n": len(X),
            "p_of_X": X.shape[1],
            "y": y,
            "offset": rows.offset,
        }
        how |= dict(zip(("number", "unit", "centre", "anchor", "diagonal"), (*columns, *prior), strict=True))
        how |= {"weight": or_none(weight), "widths": lines.widths, "square": lines.square, "tau_0": tau_0}
        moves = np.array(kinds(lines))
        how |= {"kinds": moves, "n_moves": len(moves), "n_splits": lines.n_splits}
        made = record("NearRows", **how, p=len(lines.square), q=columns.shape[1])
        _kept[rows] = before = lines, y, tau_0, made
    return before[3]


def proposals(uniform, width):
    """0 and the proposals; (n_chains, 1 + LINE_PROPOSALS). uniform : (n_chains, EACH). width : (1,) or (n_chains,)."""
    out = np.empty((len(uniform), uniform.shape[1] - 2))
    _propose(np.ascontiguousarray(uniform), width, len(width) > 1, *out.shape, out)
    return out


def first_inside(value, steps, uniform):
    """The first of the steps (n_chains, 1 + LINE_PROPOSALS) whose log-density ``value`` is not below the level, which
    is that of step 0 plus log ``uniform``; step 0 if none is."""
    out = np.empty(len(value))
    _find_first(value, steps, np.ascontiguousarray(uniform), *value.shape, out)
    return out


def growth(r):
    """e^r - 1, to the last bit as in the core."""
    out = np.empty(r.shape)
    _growth(np.ascontiguousarray(r), r.size, out)
    return out
