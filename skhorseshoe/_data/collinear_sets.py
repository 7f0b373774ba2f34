"""Sets of columns whose coefficients the rows do not tell alone: of a weighted sum that is the same in every row, or
nearly."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse.csgraph import connected_components

from .._utils.arrays import dense
from .._utils.memmap import cut
from .indicator_sets import IndicatorSet, find_indicator_sets, joined

_MOST_APART, _FEWEST_ROWS = 1000, 4  # most columns among which to look for sums, and for each rows of an array
_FEWEST_STORED = 10  # numbers in a sparse column from which on its sums are no chance
_NO_VARIANCE = 1e-10  # share of a column's variance below which the others determine it
_LEAST_WEIGHT = 1e-3  # smallest weight of a column in a sum of standardised columns
_NEAR, _MOST_VARIANCE = 200.0, 0.05  # most variance of a sum that hardly varies: times the rows, and in itself
_MOST_NEAR, _LEAST_NEAR_WEIGHT = 4, 0.02  # its most columns, and their smallest weight
_MOST_NUMBERS, _MOST_PAIRS = 2**22, 2**24  # to read, and of levels in the same row, to find which meet
_ONES_IN_A_ROW, _MOST_PRODUCTS = 64, 2**25  # that are expected of sparse rows; of two numbers in a row, to find sums


class CollinearSets(NamedTuple):
    """``IndicatorSet``s of columns that go together; without shares but for the levels."""

    levels: tuple = ()  # of a category, a column for each
    dependent: tuple = ()  # other shrunk columns of which a weighted sum is the same in every row
    near: tuple = ()  # others, with a sum that varies so little that the rows hardly tell it


def collinear_sets(rows, n_given):
    """``CollinearSets`` of ``Rows``; none without an intercept. n_given : number of rows that the user gave."""
    c = rows.columns
    if not c.fit_intercept:
        return CollinearSets()
    sample, spread = rows.sampled(), np.where(c.unpenalized, 0.0, rows.spread)
    levels = rows.confirmed(find_indicator_sets(sample, c.mean_of_X, rows.spread**2))
    shared, shrunk = [], [each for each in levels if not c.unpenalized[each.columns].any()]
    if len(shrunk) > 1:
        most = _most_rows(len(shrunk), _ONES_IN_A_ROW if sparse.issparse(sample) else rows.shape[1])
        shared = rows.confirmed(_find_shared_sets(rows.sampled(most), shrunk))
    if sparse.issparse(sample):
        sample = rows.sampled(max(1, _MOST_PRODUCTS // (1 + sample.nnz // sample.shape[0]) ** 2))
    elif sample.shape[0] < _FEWEST_ROWS * sample.shape[1] <= _FEWEST_ROWS * _MOST_APART:
        sample = rows.sampled(_FEWEST_ROWS * sample.shape[1])
    n = rows.stood_for(sample, n_given)
    if sample.shape[1] > n:
        return CollinearSets(levels, shared)
    spread[[each.columns[-1] for each in levels + shared]] = 0.0  # the others of its set determine it
    columns = _columns_to_sum(sample, spread, n // 2)
    mean, spread = c.mean_of_X[columns], spread[columns]
    products = _products(sample[:, columns], mean, spread)
    dependent = rows.confirmed(_weighted_sums(columns, products, mean, spread, _NO_VARIANCE, _LEAST_WEIGHT))
    left = ~np.isin(columns, [each.columns[-1] for each in dependent])
    columns, products, mean, spread = columns[left], products[np.ix_(left, left)], mean[left], spread[left]
    most = min(_NEAR / n_given, _MOST_VARIANCE)
    near = _weighted_sums(columns, products, mean, spread, most, _LEAST_NEAR_WEIGHT)
    near = [each for each in near if 1 < len(each.columns) <= _MOST_NEAR]
    return CollinearSets(levels, shared + dependent, near)


def _most_rows(n_sets, p):
    """Rows of a sample that is to show which levels of ``n_sets`` categories meet. p : columns, or the most in a row
    that are not 0."""
    return max(1, min(_MOST_NUMBERS // p, _MOST_PAIRS // n_sets**2))


def _find_shared_sets(rows, sets):
    """Levels of two categories that the same rows have, such as a region and its hospitals, according to a sample of
    the rows (m, p): ``IndicatorSet``s without shares. sets : the categories.

    The last level of each is a weighted sum of the others and of the levels of other such sets.
    """
    columns, base, step = joined(sets)
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


def _columns_to_sum(rows, spread, most):
    """Numbers of the columns of a sample (m, p) among which to look for sums; of sparse rows those that vary most.
    None if a sample of this size does not tell. most : columns of which it tells."""
    if sparse.issparse(rows):
        often = np.bincount(rows.indices, minlength=rows.shape[1]) >= _FEWEST_STORED
        columns = np.flatnonzero((spread > 0) & often)
        columns = np.sort(columns[np.argsort(-spread[columns], kind="stable")[:_MOST_APART]])
    else:
        columns, most = np.flatnonzero((spread > 0) & (np.ptp(rows, axis=0) > 0)), min(most, _MOST_APART)
    return columns if len(columns) <= most else columns[:0]


def _products(rows, mean, spread):
    """The average products of the standardised columns of a sample of the rows (m, k); (k, k)."""
    if not sparse.issparse(rows):
        Z = (np.asarray(rows, np.float64) - mean) / spread
        return Z.T @ Z / len(Z)
    rows = rows.astype(np.float64)
    away = np.outer(rows.mean(axis=0) - mean / 2, mean)
    return ((rows.T @ rows).toarray() / rows.shape[0] - away - away.T) / np.outer(spread, spread)


def _weighted_sums(columns, products, mean, spread, variance, least_weight):
    """Sets of columns (``IndicatorSet``s without shares) with a sum of at most this variance, in units of the
    standardised column that has weight -1. Others have ``least_weight`` or more.

    columns, mean, spread : (k,). products : of these, (k, k).
    """
    if len(columns) < 2:
        return []
    R, order, rank, _ = dpstrf(products, tol=variance)
    # Each column beyond the rank is a weighted sum of columns before it, and of what is left of it.
    weights = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    sets = []
    for k, sums in enumerate(weights.T):
        inside = np.flatnonzero(abs(sums) > least_weight)
        members, weight = np.append(order[inside], order[rank + k]) - 1, np.append(sums[inside], -1.0)
        at = np.argsort(members)
        members, weight = members[at], weight[at]
        sets.append(IndicatorSet(columns[members], mean[members], spread[members] / weight, np.zeros(len(members))))
    return sets
