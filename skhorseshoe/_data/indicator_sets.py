"""Sets of columns that are indicators of the levels of a category, so that every row has exactly one of them. They are
found, not made: users encode categories before.

These columns have the same sum in every row, so the data cannot tell a shift of all their coefficients from the
intercept. The sign of no single coefficient is known, while differences between them may be known exactly.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.csgraph import connected_components

from .._backends import device
from .._utils.arrays import dense
from .._utils.memmap import blocks, cut

_ROUNDING = 1e-5  # rounding error of a column of two values that was scaled in float32
_SHARE_ERROR = 1e-8  # largest distance from 1 of the sum of all levels' shares
_MOST_APART = 500  # most columns among which to look for levels that are not adjacent
_NO_VARIANCE = 1e-10  # share of a column's variance below which the others determine it
_LEAST_WEIGHT = 1e-3  # smallest weight of a column in a sum of standardised columns
_MOST_NUMBERS, _MOST_PAIRS = 2**22, 2**24  # to read, and of levels in the same row, to find which meet
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
    for row in is_level:  # few sets remain after few rows
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


def most_rows(n_sets, p):
    """Rows of a sample that is to show which levels of ``n_sets`` categories meet. p : columns, or the most in a row
    that are not 0."""
    return max(1, min(_MOST_NUMBERS // p, _MOST_PAIRS // n_sets**2))


def find_shared_sets(rows, sets):
    """Levels of two categories that the same rows have, such as a region and its hospitals, according to a sample of
    the rows (m, p): ``IndicatorSet``s without shares. sets : the categories.

    The last level of each is a weighted sum of the others and of the levels of other such sets.
    """
    columns, base, step = (
        np.concatenate([getattr(each, name) for each in sets]) for name in ("columns", "base", "step")
    )
    levels = _levels(rows, columns, base, step)
    sizes = np.array([len(each.columns) for each in sets])
    category, meet = np.repeat(np.arange(len(sets)), sizes), (levels.T @ levels).tocsr()
    of_category = sparse.csr_array((np.ones(len(columns)), (category, np.arange(len(columns)))))
    n_met = (of_category @ (meet > 0) @ of_category.T).toarray()
    found = []
    # Where each level of one meets each of the other, all of them are one set, and it tells nothing new.
    for first, second in np.argwhere(np.triu(n_met < np.outer(sizes, sizes), 1)):
        of_two = np.flatnonzero((category == first) | (category == second))
        n_sets, part = connected_components(meet[of_two][:, of_two], directed=False)
        for k in range(n_sets) if n_sets > 1 else ():
            at = of_two[part == k]
            sign = np.where(category[at] == first, 1, -1)
            if sign[0] != sign[-1]:  # a level that the sample lacks is alone
                found.append(IndicatorSet(columns[at], base[at], step[at] * sign, np.zeros(len(at))))
    return found


def _levels(rows, columns, base, step):
    """Which rows (m, p) have which levels; (m, k), sparse. columns, base, step : of the levels (k,)."""
    parts = cut(0, len(columns), max(1, _MOST_NUMBERS // rows.shape[0]))
    has = []
    for part in parts:
        at = (np.asarray(dense(rows[:, columns[part]]), np.float64) - base[part]) / step[part]
        has.append(sparse.csr_array(at > 0.5, dtype=np.int32))
    return sparse.hstack(has, format="csr")


def find_dependent_sets(rows, mean, spread, n):
    """Sets of columns (``IndicatorSet``s without shares) with a weighted sum that is the same in all rows (m, p) of a
    sample.

    mean, spread : (p,) over all rows; a column of spread 0 is left out. n : number of the user's rows that the sample
    stands for. Empty if these are too few, or the columns too many, to tell.
    """
    columns = np.flatnonzero((spread > 0) & (np.ptp(rows, axis=0) > 0))
    if not 1 < len(columns) <= min(_MOST_APART, n // 2):
        return []
    Z = (np.asarray(rows[:, columns], np.float64) - mean[columns]) / spread[columns]
    R, order, rank, _ = dpstrf(Z.T @ Z, tol=_NO_VARIANCE * len(Z))
    # Each column beyond the rank is a weighted sum of columns before it.
    weights = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    sets = []
    for k, sums in enumerate(weights.T):
        inside = np.flatnonzero(abs(sums) > _LEAST_WEIGHT)
        members, weight = np.append(order[inside], order[rank + k]) - 1, np.append(sums[inside], -1.0)
        at = np.argsort(members)
        members, weight = columns[members[at]], weight[at]
        sets.append(IndicatorSet(members, mean[members], spread[members] / weight, np.zeros(len(members))))
    return sets


def level_sums(X, sets):
    """The smallest and the largest sum over the levels in a row, for each set; two arrays.

    X : (n, p), on its device. sets : list of ``IndicatorSet``.
    """
    low, high = np.full(len(sets), np.inf), np.full(len(sets), -np.inf)
    if not sets:
        return low, high
    columns = np.concatenate([indicators.columns for indicators in sets])
    base, step = (np.concatenate([getattr(indicators, name) for indicators in sets]) for name in ("base", "step"))
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
