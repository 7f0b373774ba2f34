"""Whether a plane separates the classes, by linear programming; neither chains nor R-hat can tell."""

from functools import cached_property

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import hstack, issparse

from .._utils.arrays import dense
from .._utils.memmap import blocks, cut, taken

NONE, QUASI, COMPLETE, WITHIN = "none", "quasi-complete", "complete", "within-group"
_FIRST_ROWS = 100  # rows of each class in the first programme
_PROGRAMME_NUMBERS = 2**18  # most numbers in a programme, which takes some seconds
_NUMBERS_TESTED = 2**24  # largest X, in numbers, whose rows are tested for independence
_NUMBERS_AT_A_TIME = 2**18  # numbers of X to read at a time
_ROUNDING = 1e-8  # rounding error of a side; the planes of the solver have coefficients of at most 1
_TOLERANCE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def separation(X, y, fit_intercept, mean, sd):
    """``COMPLETE``: a plane has every row on the side of its class. ``QUASI``: a plane has no row on the wrong side,
    but some rows lie on it. ``NONE``: there is no such plane. None: it would take too long to find out.

    Konis (2007, Linear programming algorithms for detecting separated data in binary logistic regression models, DPhil
    thesis, Oxford) maximises the sum of all rows' sides, subject to no side being negative, over planes of bounded
    coefficients. Here a first programme has this constraint for some rows. The next adds rows that its plane has on the
    wrong side, and so on. If the maximum is zero with the constraints of some rows, it is zero with those of all.

    Several classes are in order, and parallel planes have to separate each from the next: if one separates the first
    from all others, the rest is asked too.

    X : (n, p), on the host. y : (n,) from 0 on. fit_intercept : whether the plane need not go through zero. mean, sd :
    (p,) of the columns, which standardise them for the solver; columns with sd 0 are left out.
    """
    rows = _RowsToSeparate(X, y > 0, fit_intercept, mean, sd)
    if rows.are_independent():
        return COMPLETE
    found, further = _by_plane(rows), int(y.max()) - 1
    if not further or found in (NONE, None):
        return found
    if X.shape[0] * X.shape[1] > _NUMBERS_TESTED:
        return None
    ends = np.append(mean, np.zeros(further)), np.append(sd, np.ones(further))
    return _by_plane(_RowsToSeparate(*_at_each_cut(X, y), fit_intercept, *ends))


def _at_each_cut(X, y):
    """The rows on both sides of each cut point as rows of two classes, with a column that moves it unless it is the
    first: parallel planes separate the classes where one plane separates these."""
    last = y.max()
    at = np.repeat(np.arange(len(y)), (y > 0).astype(int) + (y < last))
    is_above = np.diff(at, append=len(y)).astype(bool) & (y[at] > 0)
    moves = (y[at, None] + ~is_above[:, None] == np.arange(2, last + 1)).astype(np.float64)
    rows = taken(X, at)
    return (hstack([rows, moves], "csr") if issparse(X) else np.hstack([rows, moves])), is_above


def _by_plane(rows):
    """As ``separation``, of rows of two classes."""
    try:
        plane = rows.plane(0.0)
        if plane is None:
            return NONE
        if (rows.sides(plane) > _ROUNDING).all():
            return COMPLETE
        return QUASI if rows.plane(1.0) is None else COMPLETE
    except _Undecided:
        return None


def separates_within(X, y, codes, mean, sd):
    """Whether one plane, moved from group to group, has every row of each group with both classes on the side of its
    class; False if it would take too long to find out.

    The likelihood then rises as coefficients and effects of groups grow together. A plane that some of these groups
    have rows on does no harm: the effects of such groups have to follow it closely, so the prior of the effects bounds
    it. As for all rows, a programme has the constraints of some pairs of rows, and the next also those of pairs that
    its plane has on the wrong side. codes : (n,) of the groups. The others are as for ``separation``.
    """
    rows = _RowsToSeparate(X, y, True, mean, sd)
    events, sizes = np.bincount(codes, y), np.bincount(codes)
    mixed = np.flatnonzero(((events > 0) & (events < sizes))[codes])
    if not len(mixed):
        return False
    runs = 2 * codes[mixed].astype(np.int64) + y[mixed]

    def nearest(sides):
        """Of each group with both classes, the row of each that is the nearest to the plane, (k, 2)."""
        order = np.lexsort((sides[mixed], runs))
        return mixed[order[np.diff(runs[order], prepend=-1) != 0]].reshape(-1, 2)

    pairs = nearest(np.zeros(len(y)))
    pairs = pairs[:: max(1, len(pairs) // _FIRST_ROWS)]
    while pairs.shape[0] * (rows.q + 1) <= _PROGRAMME_NUMBERS:
        solution = _programme(sum(rows._signed(taken(X, at), at) for at in pairs.T), 1.0)
        if not solution.success or -solution.fun <= _ROUNDING:
            return False
        sides = rows.sides(solution.x[:-1])
        near = nearest(sides)
        wrong = near[sides[near].sum(axis=1) <= _ROUNDING]
        if not len(wrong):
            return True
        pairs = np.unique(np.vstack([pairs, wrong[:: -(-len(wrong) // len(pairs))]]), axis=0)
    return False


def _programme(rows, margin, total=0.0):
    """The solution for the plane with no side negative that maximises ``total`` @ plane, or, with margin 1, the
    smallest side. rows : (m, q), signed."""
    return linprog(
        -np.append(np.zeros(rows.shape[1]) + total, margin),
        A_ub=np.hstack([-rows, np.full((len(rows), 1), margin)]),
        b_ub=np.zeros(len(rows)),
        bounds=(-1.0, 1.0),
        method="highs",
        options=_TOLERANCE,
    )


class _Undecided(Exception):
    """A programme would be too large, or its solver failed."""


class _RowsToSeparate:
    """The rows times the sign of their class, in columns of variance 1 and, with an intercept and dense X, mean 0."""

    def __init__(self, X, y, fit_intercept, mean, sd):
        self.X, self.sign, self.fit_intercept = X, 2.0 * y - 1.0, int(fit_intercept)
        self.columns = np.flatnonzero(sd > 0)
        self.q = len(self.columns) + fit_intercept
        # Numbers of the rows in the programme.
        evenly = [np.flatnonzero(y == c)[:: max(1, (y == c).sum() // _FIRST_ROWS)] for c in (0, 1)]
        self.seen = np.sort(np.concatenate(evenly))
        self.scale = 1.0 / sd[self.columns]
        self.centre = mean[self.columns] * self.scale * (fit_intercept and not issparse(X))

    def _signed(self, rows, numbers):
        rows = rows if len(self.columns) == self.X.shape[1] else rows[:, self.columns]
        rows = np.asarray(dense(rows), np.float64)
        rows = rows * self.scale - self.centre
        return self.sign[numbers, None] * np.hstack([rows, np.ones((len(rows), self.fit_intercept))])

    def _blocks(self):
        """All rows, a block at a time; rows of a file leave the process after it."""
        for block in blocks(self.X, _NUMBERS_AT_A_TIME):
            yield self._signed(self.X[block], block)

    def are_independent(self):
        """Whether the rows are linearly independent, so that a plane separates any classes; False if X is large."""
        n = len(self.sign)
        if n > self.q or n * self.q > _NUMBERS_TESTED:
            return False
        X, products = self.X[:], np.full((n, n), float(self.fit_intercept))
        for cols in cut(0, len(self.columns), max(1, _NUMBERS_AT_A_TIME // n)):
            block = np.asarray(dense(X[:, self.columns[cols]]), np.float64) * self.scale[cols] - self.centre[cols]
            products += block @ block.T
        eigenvalues = np.linalg.eigvalsh(products)  # the signs of the rows do not change them
        return bool(eigenvalues[0] > _ROUNDING * eigenvalues[-1])

    @cached_property
    def total(self):
        """The sum of all rows, (q,)."""
        if issparse(self.X):
            ones = self.sign.sum(keepdims=True)[: self.fit_intercept]
            return np.append((self.X.T @ self.sign)[self.columns] * self.scale, ones)
        return sum(block.sum(axis=0) for block in self._blocks())

    def sides(self, plane):
        """How far each row is on the side of its class, (n,)."""
        if issparse(self.X):
            k, weights = len(self.columns), np.zeros(self.X.shape[1])
            weights[self.columns] = plane[:k] * self.scale
            return self.sign * (self.X @ weights + plane[k:].sum())
        return np.concatenate([block @ plane for block in self._blocks()])

    def plane(self, margin):
        """The plane with no side negative that maximises the sum of all sides (margin 0) or the smallest side (margin
        1). None if the maximum is not positive."""
        n_sides = 1 if margin else len(self.sign)  # in the maximum, which is a sum
        while len(self.seen) * (self.q + 1) <= _PROGRAMME_NUMBERS:
            rows = self._signed(taken(self.X, self.seen), self.seen)
            solution = _programme(rows, margin, 0.0 if margin else self.total)
            if not solution.success:
                break
            if -solution.fun <= _ROUNDING * n_sides:
                return None
            plane, least = solution.x[:-1], margin * solution.x[-1]
            short = self.sides(plane) < least - _ROUNDING
            short[self.seen] = False
            if not short.any():
                return plane
            rows_to_add = np.flatnonzero(short)
            self.seen = np.union1d(self.seen, rows_to_add[:: -(-len(rows_to_add) // len(self.seen))])
        raise _Undecided
