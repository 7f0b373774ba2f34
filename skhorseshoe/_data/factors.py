"""Columns that are the levels of a category, of which every row has one.

They sum to one constant in every row, so the data cannot tell a shift of all their coefficients from the intercept: the
sign of no single coefficient is known, while their differences may be known exactly.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from .._backends import device
from .._utils.arrays import dense
from .._utils.memmap import ahead, cut

_ROUNDING = 1e-5  # of a column of two values, that a scaler in float32 leaves
_SHARES = 1e-8  # by which the shares of all levels may miss 1
_APART = 500  # columns, at most, among which levels are looked for that do not stand side by side
_NOTHING = 1e-10  # of a column's variance, that is left where others determine it
_LEAST = 1e-3  # weight of a column in a sum of columns, in units of their standard deviations
_TOGETHER = 2**14  # columns looked at together
_BLOCK = 2**20  # elements of X looked at together


class Factor(NamedTuple):
    """The columns of a category's levels."""

    columns: np.ndarray  # their numbers (k,)
    base: np.ndarray  # value of each in rows of other levels
    step: np.ndarray  # what is added to it in rows of its level
    share: np.ndarray  # of the rows that are of its level, by weight

    def centred(self, coef):
        """Draws of coefficients (..., p) as those of what each level adds to the score beside the mean over rows."""
        added = coef[..., self.columns].astype(np.float64) * self.step
        return added - (added @ self.share)[..., None]

    def effects(self, coef):
        """The same beside the mean of the rows of other levels, by one standard deviation of the level's column."""
        return self.centred(coef) * np.sqrt(self.share / (1 - self.share))


def candidates(rows, mean, variance):
    """``Factor``s as far as a sample of the rows (m, p) can tell. mean, variance : (p,) over all rows."""
    p = len(mean)
    base, step, share, is_level = np.empty(p), np.empty(p), np.empty(p), np.empty((rows.shape[0], p), bool)
    for part in cut(0, p, _TOGETHER):
        values = np.asarray(dense(rows[:, part]), np.float64)
        base[part] = values.min(axis=0)
        off = mean[part] - base[part]  # of two values, base and base + step, mean and variance tell the step
        with np.errstate(all="ignore"):
            step[part] = (off**2 + variance[part]) / off
            share[part] = off / step[part]
            at = (values - base[part]) / step[part]
        is_level[:, part] = at > 0.5
        has_two = (np.minimum(abs(at), abs(at - 1)) < _ROUNDING).all(axis=0) & (variance[part] > 0)
        share[part][~(has_two & (share[part] < 1))] = 0.0
    columns = np.flatnonzero(share > 0)
    found = [columns[group] for group in _groups(is_level[:, columns], share[columns])]
    return [Factor(group, base[group], step[group], share[group]) for group in found]


def _groups(is_level, share):
    """Places of columns of which every row (m, k) has one: those side by side, then others."""
    found, left = [], np.ones(len(share), bool)
    totals = np.append(0.0, np.cumsum(share))
    stops = np.minimum(np.searchsorted(totals, totals[:-1] + 1 - _SHARES), len(share))
    firsts = np.flatnonzero((abs(totals[stops] - totals[:-1] - 1) < _SHARES) & (stops > np.arange(len(share)) + 1))
    for row in is_level:  # after few rows few are left
        counts = np.append(0, np.cumsum(row))
        firsts = firsts[counts[stops[firsts]] - counts[firsts] == 1]
    for first in firsts:
        if left[first]:
            found.append(np.arange(first, stops[first]))
            left[found[-1]] = False
    others = np.flatnonzero(left)
    if len(others) <= _APART:
        found += [others[group] for group in _groups_apart(is_level[:, others], share[others])]
    return found


def _groups_apart(is_level, share):
    """The same for any order: the commonest is joined by those that it never meets, the commonest of these first."""
    meets = is_level.T.astype(np.float32) @ is_level > 0
    found, left = [], np.argsort(-share, kind="stable").tolist()
    while left:
        group = left[:1]
        for j in left[1:]:
            if not meets[j, group].any() and share[[*group, j]].sum() < 1 + _SHARES:
                group.append(j)
        is_whole = abs(share[group].sum() - 1) < _SHARES and (is_level[:, group].sum(axis=1) == 1).all()
        if is_whole and len(group) > 1:
            found.append(np.sort(group))
        else:
            del group[1:]
        left = [j for j in left if j not in group]
    return found


def dependent(rows, mean, spread):
    """Sets of columns (``Factor``s, without shares) of which a weighted sum is the same in all rows of a sample (m, p).

    mean, spread : (p,) over all rows; a spread of 0 leaves a column out. Empty where the columns are too many to tell.
    """
    columns = np.flatnonzero((spread > 0) & (np.ptp(rows, axis=0) > 0))
    if not 1 < len(columns) <= min(_APART, len(rows) // 2):
        return []
    Z = (np.asarray(rows[:, columns], np.float64) - mean[columns]) / spread[columns]
    R, order, rank, _ = dpstrf(Z.T @ Z, tol=_NOTHING * len(Z))
    # Each column beyond the rank is a sum of some before it: these and it.
    weights = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    found = []
    for k, sums in enumerate(weights.T):
        inside = np.flatnonzero(abs(sums) > _LEAST)
        members, factors = np.append(order[inside], order[rank + k]) - 1, np.append(sums[inside], -1.0)
        at = np.argsort(members)
        members, factors = columns[members[at]], factors[at]
        found.append(Factor(members, mean[members], spread[members] / factors, np.zeros(len(members))))
    return found


def level_sums(X, factors):
    """The least and the largest sum of the levels of a row, of each of the factors; two arrays.

    X : (n, p), where it is. factors : list of ``Factor``.
    """
    low, high = np.full(len(factors), np.inf), np.full(len(factors), -np.inf)
    if not factors:
        return low, high
    columns = np.concatenate([factor.columns for factor in factors])
    base, step = (np.concatenate([getattr(factor, name) for factor in factors]) for name in ("base", "step"))
    first = np.cumsum([0, *(len(factor.columns) for factor in factors[:-1])])
    n = X.shape[0]
    for rows in ahead(X, cut(0, n, max(1, _BLOCK // X.shape[1])), n):
        with device.of(X):
            block = device.to_host(X[rows])
        sums = np.add.reduceat((np.asarray(dense(block[:, columns]), np.float64) - base) / step, first, axis=1)
        low, high = np.minimum(low, sums.min(axis=0)), np.maximum(high, sums.max(axis=0))
    return low, high


def are_whole(factors, low, high):
    """Those of the sums that are one in every row; or, of columns without shares, the same."""
    near = abs(high - low) < 20 * _ROUNDING
    is_one = [near[i] and (abs(low[i] - 1) < 10 * _ROUNDING or not f.share.any()) for i, f in enumerate(factors)]
    return [factor for factor, is_so in zip(factors, is_one, strict=True) if is_so]
