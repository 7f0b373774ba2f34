"""What changes do to the probabilities of rows that move alike: all of them from one pass over the rows."""

import numpy as np
from scipy.sparse import csr_array

from . import phi_series


class AlikeMoves:
    """``Move``s of groups of rows, under blocks of draws.

    weight : (n,) of the rows in sums. p : number of columns of the classifier.
    """

    def __init__(self, moves, weight, p):
        self._moves = [one for one in moves if one.groups is not None and one.values.size]
        self._weights, offsets = _of_groups(self._moves, weight)
        sizes = [len(one.values) for one in self._moves]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._move = np.repeat(np.arange(len(sizes)), sizes)  # of each shift, a group of rows in one state
        self._group = np.concatenate([offsets[one.change] + np.arange(len(one.values)) for one in self._moves] or [[]])
        self._shifts = _matrix(self._moves, p)

    def changes(self, eta, coef, ops):
        """Yields moves with what each does to the sum over rows of Phi(eta) under each of these draws, (m,) on the
        host; or with None, where it moves rows too far for a series.

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
        parts = phi_series.changes([ops.to_host(one) for one in sums], place[self._group], shifts)
        for k, total in enumerate(np.add.reduceat(parts, self._starts, axis=1).T):
            if is_near[k]:
                yield self._moves[k], total


def _of_groups(moves, weight):
    """The weights of rows (n, g) in each group, and the number of the first group of each change."""
    columns, offsets, whole = [], {}, None
    for one in moves:
        if one.change in offsets:
            continue
        number = len(one.values)
        if number > 1 or (one.groups < 0).any():
            offsets[one.change] = len(columns)
            columns += [np.where(one.groups == group, weight, 0.0) for group in range(number)]
        else:  # the same for all such changes
            if whole is None:
                whole = len(columns)
                columns.append(weight)
            offsets[one.change] = whole
    return np.ascontiguousarray(np.array(columns).T), offsets


def _matrix(moves, p):
    """What each shift is of the coefficients; (number of shifts, p)."""
    values = [one.values.ravel() for one in moves]
    columns = [np.tile(one.columns, len(one.values)) for one in moves]
    lengths = [len(one.columns) for one in moves for _ in one.values]
    parts = np.concatenate([*values, []]), np.concatenate([*columns, []]).astype(np.int64), np.cumsum([0, *lengths])
    return csr_array(parts, shape=(len(lengths), p))
