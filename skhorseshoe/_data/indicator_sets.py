"""Sets of columns that are indicators of the levels of a category, so that every row has exactly one of them. They are
found, not made: users encode categories before.

These columns have the same sum in every row, so the data cannot tell a shift of all their coefficients from the
intercept. The sign of no single coefficient is known, while differences between them may be known exactly.
"""

from typing import NamedTuple

import numpy as np

from .._backends import device
from .._utils.arrays import dense
from .._utils.memmap import blocks, cut

_ROUNDING = 1e-5  # rounding error of a column of two values that was scaled in float32
_SHARE_ERROR = 1e-8  # largest distance from 1 of the sum of all levels' shares
_MOST_APART = 500  # most columns among which to look for levels that are not adjacent
_COLUMNS_AT_A_TIME = 2**14  # columns to read at a time


class IndicatorSet(NamedTuple):
    """The columns of a category's levels."""

    columns: np.ndarray  # their numbers (k,)
    base: np.ndarray  # value of each in rows of other levels
    step: np.ndarray  # its value in rows of its level, minus the base
    share: np.ndarray  # weighted share of the rows of its level

    def centred(self, coef):
        """Draws of what each level adds to eta, relative to the mean over rows; from draws of coefficients (..., p)."""
        added = coef[..., self.columns].astype(np.float64) * self.step
        return added - (added @ self.share)[..., None]

    def effects(self, coef):
        """The same relative to the mean over rows of other levels, for one standard deviation of the level's column."""
        return self.centred(coef) * np.sqrt(self.share / (1 - self.share))


def find_indicator_sets(rows, mean, variance):
    """``IndicatorSet``s according to a sample of the rows (m, p). mean, variance : (p,) over all rows."""
    p = len(mean)
    base, step, share, is_level = np.empty(p), np.empty(p), np.empty(p), np.empty((rows.shape[0], p), bool)
    for block in cut(0, p, _COLUMNS_AT_A_TIME):
        values = np.asarray(dense(rows[:, block]), np.float64)
        base[block] = values.min(axis=0)
        distance = mean[block] - base[block]  # with two values, mean and variance determine the step
        with np.errstate(all="ignore"):
            step[block] = (distance**2 + variance[block]) / distance
            share[block] = distance / step[block]
            at = (values - base[block]) / step[block]
        is_level[:, block] = at > 0.5
        has_two = (np.minimum(abs(at), abs(at - 1)) < _ROUNDING).all(axis=0) & (variance[block] > 0)
        share[block][~(has_two & (share[block] < 1))] = 0.0
    columns = np.flatnonzero(share > 0)
    sets = [columns[places] for places in _exclusive_columns(is_level[:, columns], share[columns])]
    return [IndicatorSet(each, base[each], step[each], share[each]) for each in sets]


def _exclusive_columns(is_level, share):
    """Places of columns of which every row (m, k) has exactly one: adjacent columns first, then others."""
    sets, free = [], np.ones(len(share), bool)
    totals = np.append(0.0, np.cumsum(share))
    stops = np.minimum(np.searchsorted(totals, totals[:-1] + 1 - _SHARE_ERROR), len(share))
    firsts = np.flatnonzero((abs(totals[stops] - totals[:-1] - 1) < _SHARE_ERROR) & (stops > np.arange(len(share)) + 1))
    for row in is_level:
        if not len(firsts):  # as after few rows
            break
        counts = np.append(0, np.cumsum(row))
        firsts = firsts[counts[stops[firsts]] - counts[firsts] == 1]
    for first in firsts:
        if free[first]:
            sets.append(np.arange(first, stops[first]))
            free[sets[-1]] = False
    free_places = np.flatnonzero(free)
    if len(free_places) <= _MOST_APART:
        sets += [free_places[places] for places in _sets_apart(is_level[:, free_places], share[free_places])]
    return sets


def _sets_apart(is_level, share):
    """The same for columns in any order: the commonest is joined by columns that exclude it, the commonest first."""
    meets = is_level.T.astype(np.float32) @ is_level > 0
    sets, free = [], np.argsort(-share, kind="stable").tolist()
    while free:
        members = free[:1]
        for j in free[1:]:
            if not meets[j, members].any() and share[[*members, j]].sum() < 1 + _SHARE_ERROR:
                members.append(j)
        is_whole = abs(share[members].sum() - 1) < _SHARE_ERROR and (is_level[:, members].sum(axis=1) == 1).all()
        if is_whole and len(members) > 1:
            sets.append(np.sort(members))
        else:
            del members[1:]
        free = [j for j in free if j not in members]
    return sets


def joined(sets):
    """The columns of all sets, their bases and their steps."""
    return [np.concatenate([getattr(each, name) for each in sets]) for name in ("columns", "base", "step")]


def level_sums(X, sets):
    """The smallest and the largest sum over the levels in a row, for each set; two arrays.

    X : (n, p), on its device. sets : list of ``IndicatorSet``.
    """
    low, high = np.full(len(sets), np.inf), np.full(len(sets), -np.inf)
    if not sets:
        return low, high
    columns, base, step = joined(sets)
    first = np.cumsum([0, *(len(indicators.columns) for indicators in sets[:-1])])
    for rows in blocks(X):
        with device.context_of(X):
            block = device.to_host(X[rows])
        sums = np.add.reduceat((np.asarray(dense(block[:, columns]), np.float64) - base) / step, first, axis=1)
        low, high = np.minimum(low, sums.min(axis=0)), np.maximum(high, sums.max(axis=0))
    return low, high


def confirmed(sets, low, high):
    """The sets whose sum is 1 in every row or, for columns without shares, the same in every row."""
    near = abs(high - low) < 20 * _ROUNDING
    is_one = [near[i] and (abs(low[i] - 1) < 10 * _ROUNDING or not f.share.any()) for i, f in enumerate(sets)]
    return [indicators for indicators, is_so in zip(sets, is_one, strict=True) if is_so]
