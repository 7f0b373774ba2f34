"""Effects of changes on the probabilities of rows that move alike, all from one pass over the rows."""

import numpy as np
from scipy.sparse import csr_array

from . import phi_series


class AlikeMoves:
    """``Move``s of groups of rows, under blocks of draws.

    weight : (n,) of the rows in sums. p : number of columns of the classifier.
    """

    def __init__(self, moves, weight, p):
        self._moves = [m for m in moves if m.groups is not None and m.values.size]
        self._weights, offsets = _of_groups(self._moves, weight)
        sizes = [len(m.values) for m in self._moves]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._move = np.repeat(np.arange(len(sizes)), sizes)  # by shift, which is of a group of rows in one state
        self._group = np.concatenate([offsets[m.change] + np.arange(len(m.values)) for m in self._moves] or [[]])
        self._shifts = _matrix(self._moves, p)

    def changes(self, eta, coef, ops):
        """Yields each move with its effect on the sum over rows of Phi(eta) under each of these draws, (m,) on the
        host; or with None, if it moves rows too far for a series.

        eta : (m, n) on the device of the back end ``ops``. coef : (m, p).
        """
        if not self._moves:
            return
        shifts = (self._shifts @ coef.T).T
        furthest = np.abs(shifts).max(axis=0)
        is_near = np.maximum.reduceat(furthest, self._starts) <= phi_series.FURTHEST
        for k in np.flatnonzero(~is_near):
            yield self._moves[k], None
        if not is_near.any():
            return
        of_group = np.zeros(self._weights.shape[1])
        near = is_near[self._move]
        np.maximum.at(of_group, self._group[near], furthest[near])
        order = np.argsort(-of_group, kind="stable")
        place = np.argsort(order)
        weights = np.ascontiguousarray(self._weights[:, order])
        sums = phi_series.term_sums(eta, ops.to_device(weights), phi_series.n_terms(of_group[order]), ops)
        shift_effects = phi_series.changes([ops.to_host(array) for array in sums], place[self._group], shifts)
        for k, total in enumerate(np.add.reduceat(shift_effects, self._starts, axis=1).T):
            if is_near[k]:
                yield self._moves[k], total


def _of_groups(moves, weight):
    """The weights of rows (n, g) in each group, and the place of the first group of each change."""
    columns, offsets, all_rows = [], {}, None
    for move in moves:
        if move.change in offsets:
            continue
        number = len(move.values)
        if number > 1 or (move.groups < 0).any():
            offsets[move.change] = len(columns)
            columns += [np.where(move.groups == group, weight, 0.0) for group in range(number)]
        else:  # the same for all such changes
            if all_rows is None:
                all_rows = len(columns)
                columns.append(weight)
            offsets[move.change] = all_rows
    return np.ascontiguousarray(np.array(columns).T), offsets


def _matrix(moves, p):
    """The matrix (number of shifts, p) whose products with coefficients are the shifts."""
    values = [move.values.ravel() for move in moves]
    columns = [np.tile(move.columns, len(move.values)) for move in moves]
    lengths = [len(move.columns) for move in moves for _ in move.values]
    csr = np.concatenate([*values, []]), np.concatenate([*columns, []]).astype(np.int64), np.cumsum([0, *lengths])
    return csr_array(csr, shape=(len(lengths), p))
