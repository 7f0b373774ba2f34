"""Effects of changes on the probabilities of rows that change alike, all from one pass over the rows."""

import numpy as np
from scipy.sparse import csr_array


class AlikeRows:
    """``ColumnChange``s of groups of rows, under blocks of draws.

    weight : (n,) of the rows in sums. p : number of columns of the classifier. likelihood : of the classifier.
    """

    def __init__(self, changes, weight, p, likelihood):
        self._likelihood = likelihood
        self._changes = [c for c in changes if c.groups is not None and c.values.size]
        self._weights, offsets = _weights_by_group(self._changes, weight)
        sizes = [len(c.values) for c in self._changes]
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._number = np.repeat(np.arange(len(sizes)), sizes)  # by shift, which is of a group of rows in one state
        firsts = [offsets[c.feature_change] for c in self._changes]
        self._group = np.concatenate([first + np.arange(m) for first, m in zip(firsts, sizes, strict=True)] or [[]])
        self._shifts = _matrix(self._changes, p)

    def effects(self, eta, coef, ops):
        """Yields each change with its effect on the sum over rows of P(y = 1) under each of these draws, (m,) on the
        host; or with None, if it is too large for a series.

        eta : (m, n) on the device of the back end ``ops``. coef : (m, p).
        """
        if not self._changes:
            return
        series, shifts = self._likelihood.series, (self._shifts @ coef.T).T
        furthest = np.abs(shifts).max(axis=0)
        is_near = np.maximum.reduceat(furthest, self._starts) <= (series.FURTHEST if series else -1.0)
        for k in np.flatnonzero(~is_near):
            yield self._changes[k], None
        if not is_near.any():
            return
        of_group = np.zeros(self._weights.shape[1])
        near = is_near[self._number]
        np.maximum.at(of_group, self._group[near], furthest[near])
        order = np.argsort(-of_group, kind="stable")
        place = np.argsort(order)
        weights = np.ascontiguousarray(self._weights[:, order])
        sums = series.term_sums(eta, ops.to_device(weights), series.n_terms(of_group[order]), ops)
        shift_effects = series.changes([ops.to_host(array) for array in sums], place[self._group], shifts)
        for k, total in enumerate(np.add.reduceat(shift_effects, self._starts, axis=1).T):
            if is_near[k]:
                yield self._changes[k], total


def _weights_by_group(changes, weight):
    """The weights of rows (n, g) in each group, and the place of the first group of each change."""
    columns, offsets, all_rows = [], {}, None
    for change in changes:
        if change.feature_change in offsets:
            continue
        number = len(change.values)
        if number > 1 or (change.groups < 0).any():
            offsets[change.feature_change] = len(columns)
            columns += [np.where(change.groups == group, weight, 0.0) for group in range(number)]
        else:  # the same for all such changes
            if all_rows is None:
                all_rows = len(columns)
                columns.append(weight)
            offsets[change.feature_change] = all_rows
    return np.ascontiguousarray(np.array(columns).T), offsets


def _matrix(changes, p):
    """The matrix (number of shifts, p) whose products with coefficients are the shifts."""
    values = [change.values.ravel() for change in changes]
    columns = [np.tile(change.columns, len(change.values)) for change in changes]
    lengths = [len(change.columns) for change in changes for _ in change.values]
    csr = np.concatenate([*values, []]), np.concatenate([*columns, []]).astype(np.int64), np.cumsum([0, *lengths])
    return csr_array(csr, shape=(len(lengths), p))
