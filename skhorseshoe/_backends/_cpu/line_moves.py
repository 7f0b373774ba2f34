"""The moves of ``lines.py`` for rows that are near, by one call of the core (``core/lines.hpp``)."""

import numpy as np

from .library import function, record

_move_near, _growth = function("move_near"), function("growth_of")


def move_near(
    X, y, row_weight, coef, columns, prior, widths, square, kinds, tau_0, uniform, chances, first, last, state
):
    """Of the chains first to last - 1 the state, beta (n_chains, q), lambda^-2 (n_chains, p) and tau^-2 (n_chains,), in
    place.

    coef : (n_chains, q) of X's own columns. columns : (2, q) the number of X's column for each coefficient, and what it
    is divided by; the last is of ones where there is an intercept. prior : (3, q) the means that go off the columns,
    the anchor and the diagonal of ``FixedPrior``. widths, square : as in ``Lines``. kinds, uniform, chances : of
    ``lines.kinds`` and ``lines.random_numbers``.
    """
    (n, p_of_X), (_, q), p = X.shape, state[0].shape, state[1].shape[1]
    how = {"X": X, "letter": ord(X.dtype.kind), "bytes": X.itemsize, "n": n, "p_of_X": p_of_X, "y": y, "offset": None}
    how |= {"weight": row_weight if len(row_weight) else None, "widths": widths, "square": square, "tau_0": tau_0}
    how |= dict(zip(("number", "unit", "centre", "anchor", "diagonal"), (*columns, *prior), strict=True))
    how |= {"kinds": kinds, "n_moves": len(kinds), "n_splits": chances.shape[1] // p if p else 0, "p": p, "q": q}
    near = record("NearRows", **how)
    _move_near(near, np.ascontiguousarray(coef), uniform, chances, first, last, *state)


def growth(r):
    """e^r - 1, to the last bit as in the core."""
    out = np.empty(r.shape)
    _growth(np.ascontiguousarray(r), r.size, out)
    return out
