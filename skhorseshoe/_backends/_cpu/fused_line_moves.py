"""The moves of ``line_moves.py`` in one call of the core (``exports/fused_line_moves.cpp``)."""

from weakref import WeakKeyDictionary

import numpy as np

from ..line_moves import kinds
from .library import function, record
from .passes import or_none, pass_rows, rows_of

fused_line_moves = function("fused_line_moves")
_records = WeakKeyDictionary()  # by ``Rows``: lines, y and tau_0 of the last record, and the record


def fused_line_rows(rows, lines, tau_0):
    """The record ``FusedLineRows`` of rows and lines, the same in all sweeps after burn-in."""
    X, y, weight = rows.held
    last = _records.get(rows)
    if last is None or last[0] is not lines or last[1] is not y or last[2] != tau_0:
        columns, prior = lines.for_fused
        of_pass = pass_rows(y, or_none(weight), rows.bounds, likelihood=rows.likelihood)
        fields = {"X": rows_of(X), "of_pass": of_pass, "offset": rows.offset}
        fields |= dict(zip(("number", "unit", "centre", "anchor", "diagonal"), (*columns, *prior), strict=True))
        fields |= {"widths": lines.widths, "square": lines.square, "tau_0": tau_0}
        moves = np.array(kinds(lines))
        fields |= {"kinds": moves, "n_moves": len(moves), "n_splits": lines.n_splits}
        fields |= {"p": len(lines.square), "q": columns.shape[1]}
        _records[rows] = last = lines, y, tau_0, record("FusedLineRows", fields)
    return last[3]
