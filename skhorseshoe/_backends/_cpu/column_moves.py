"""Moves of a coefficient with its local scale, see ``core/column_moves.hpp``, for rows in memory."""

import numpy as np
from scipy.sparse import csr_array

from .library import function, record
from .passes import or_none, rows_of

_move_columns = function("move_columns")
# Shares of the numbers of X, of an array and of sparse X, that are in columns that move in a sweep.
_SHARES_MOVED = 0.1, 0.4
_TOGETHER, _GOLDEN = 8, 0.6180339887498949  # neighbours that move in the same sweeps; golden ratio less 1
# Sweeps from one in which beta_j / lambda_j is held, which moves far in a tail that the data do not bound, to the next.
_SCALING_INTERVAL = 4


class ColumnMoves:
    """The moves for these rows, of the host and in memory, without groups.

    rows : ``Rows``. fixed : ``FixedPrior``.
    """

    def __init__(self, rows, fixed):
        self.rows, self.fixed, self.records = rows, fixed, ()
        X = rows.held[0]
        self._by_column = X
        if rows.is_sparse:
            by_column = X.tocsc()
            kind = X.indices.dtype
            indices, starts = (values.astype(kind, copy=False) for values in (by_column.indices, by_column.indptr))
            self._by_column = csr_array((by_column.data, indices, starts), shape=X.shape[::-1])
        p = rows.columns.n_shrunk
        sizes = np.diff(self._by_column.indptr)[rows.columns.order[:p]] if rows.is_sparse else np.full(p, rows.n)
        self.rates, self.phases = _rates(sizes, _SHARES_MOVED[rows.is_sparse]), np.arange(p) // _TOGETHER * _GOLDEN

    def set_reference(self, reference):
        """Take the precisions and means of columns from a ``DiagonalReference``."""
        rows, fixed, c = self.rows, self.fixed, self.rows.columns
        p = c.n_shrunk
        order, unit, centre = c.order[:p], c.unit[c.order][:p], c.centre[c.order][:p]
        _, y, weight = rows.held
        # A sparse column moves without the others' rows; a column of an array about the mean that the information has.
        moved = 0.0 if rows.is_sparse or not c.fit_intercept else centre + reference.centre[:p] * unit
        shift = np.where(np.isfinite(unit), moved, 0.0)
        lean = (centre - shift) / unit if c.fit_intercept else np.zeros(p)
        apart = reference.centre[:p] + lean  # of the mean from the shift
        h = reference.information[:p] + reference.size * apart**2
        score = reference.score[:p] + (apart * reference.score[-1] if c.fit_intercept else 0.0)
        pull = fixed.anchor[:p] + (lean * fixed.anchor[-1] if c.fit_intercept else 0.0)
        fields = {"y": y, "weight": or_none(weight), "offset": rows.offset, "q": len(fixed.anchor), "p": p}
        fields |= {"place": order.astype(np.int64), "unit": unit, "shift": shift, "lean": lean, "h": h}
        fields |= {"b": h * reference.point[:p] + score, "fixed": fixed.diagonal[:p].copy(), "pull": pull}
        laws = fields, fields | {"h": np.zeros(p), "b": np.zeros(p)}
        self.records = [record("ColumnMoves", {name: _in_order(value) for name, value in law.items()}) for law in laws]

    def due(self, t):
        """The columns that move in sweep t."""
        last, now = (np.floor(sweep * self.rates + self.phases) for sweep in (t, t + 1))
        return np.flatnonzero(now > last)

    def move(self, state, key):
        """beta and lambda^-2 after moves of the columns of a sweep."""
        rows, (n_chains, q) = self.rows, state.beta.shape
        beta, lambda_sq_inv = state.beta.copy(), state.lambda_sq_inv.copy()
        of_X, along = rows.columns.of_X(beta), beta @ self.fixed.anchor
        columns = self.due(state.sweep)
        law = self.records[state.sweep % _SCALING_INTERVAL == 0]
        outputs = beta, lambda_sq_inv, state.tau_sq_inv, along

        def move(first, last):
            coef = np.zeros((q, (last - first + 3) // 4 * 4))
            coef[:, : last - first] = of_X[first:last].T
            inputs = law, (coef, *coef.shape), columns, len(columns), first, last, state.sweep, key
            _move_columns(rows.likelihood.number, rows_of(rows.held[0]), rows_of(self._by_column), *inputs, *outputs)

        rows.threads.run(move, n_chains)
        return beta, lambda_sq_inv


def _rates(sizes, share):
    """How often a column moves in a sweep, at most once, and rarely if it has many rows, so that of all sizes (p,) this
    share is read."""
    budget, ordered = share * sizes.sum(), np.sort(sizes)
    # Columns up to some size move in each sweep, others as if they had that size.
    below, at_least = np.cumsum(ordered), np.arange(len(sizes), 0, -1)
    full = np.flatnonzero(below - ordered + at_least * ordered <= budget)
    most = (budget - (below[full[-1]] - ordered[full[-1]])) / at_least[full[-1]] if len(full) else budget / len(sizes)
    return np.minimum(1.0, most / np.maximum(sizes, 1))


def _in_order(value):
    return np.ascontiguousarray(value) if isinstance(value, np.ndarray) else value
