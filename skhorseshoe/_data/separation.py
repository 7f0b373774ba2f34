"""Whether a plane separates the classes, by linear programming: no chain can tell, nor can R-hat."""

from functools import cached_property

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import issparse

from .._utils.arrays import dense
from .._utils.memmap import ahead, cut, taken

NONE, QUASI, COMPLETE = "none", "quasi-complete", "complete"
_FEW = 100  # rows of each class that the first programme sees
_NUMBERS = 2**18  # that a programme may have: some seconds
_WIDE = 2**24  # numbers of X, at most, where it has as many columns as rows
_BLOCK = 2**18  # numbers of X looked at together
_ROUNDING = 1e-8  # of a side, in a solver whose planes have coefficients of at most 1
_TOLERANCE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def separation(X, y, fit_intercept, mean, sd):
    """``COMPLETE``: a plane has every row on the side of its class. ``QUASI``: a plane has no row on the other side,
    but some on itself. ``NONE``: there is no such plane. None: it would take too long to find out.

    Konis (2007, Linear programming algorithms for detecting separated data in binary logistic regression models, DPhil
    thesis, Oxford) maximises the sum of all rows' sides, none of which may be negative, over planes of bounded
    coefficients. Here a programme bounds the sides of some rows, and then of those that its plane has on the other
    side as well. Where the sum of all is zero for some rows' bounds, it is so for all.

    X : (n, p), on the host. fit_intercept : whether the plane need not go through zero. mean, sd : (p,) of the columns,
    in which the planes are computed; sd may be zero.
    """
    rows = _Rows(X, y, fit_intercept, mean, sd)
    if rows.are_independent():
        return COMPLETE
    try:
        plane = rows.plane(0.0)
        if plane is None:
            return NONE
        if (rows.sides(plane) > _ROUNDING).all():
            return COMPLETE
        return QUASI if rows.plane(1.0) is None else COMPLETE
    except _Undecided:
        return None


class _Undecided(Exception):
    """A programme would be too large, or its solver fails."""


class _Rows:
    """The rows times the sign of their class, in columns of mean 0 and variance 1, where there is an intercept."""

    def __init__(self, X, y, fit_intercept, mean, sd):
        self.X, self.sign, self.fit_intercept = X, 2.0 * y - 1.0, int(fit_intercept)
        self.columns = np.flatnonzero(sd > 0)
        self.q = len(self.columns) + fit_intercept
        # Numbers of the rows that a programme sees.
        self.seen = np.sort(np.concatenate([np.flatnonzero(y == c)[:: max(1, (y == c).sum() // _FEW)] for c in (0, 1)]))
        self.scale = 1.0 / sd[self.columns]
        self.centre = mean[self.columns] * self.scale * (fit_intercept and not issparse(X))

    def _signed(self, rows, which):
        rows = rows if len(self.columns) == self.X.shape[1] else rows[:, self.columns]
        rows = np.asarray(dense(rows), np.float64)
        rows = rows * self.scale - self.centre
        return self.sign[which, None] * np.hstack([rows, np.ones((len(rows), self.fit_intercept))])

    def _blocks(self):
        """All rows, a block at a time; what is read of a file leaves the process behind it."""
        n = len(self.sign)
        for block in ahead(self.X, cut(0, n, max(1, _BLOCK // max(1, self.X.shape[1]))), n):
            yield self._signed(self.X[block], block)

    def are_independent(self):
        """Whether the rows are linearly independent, so that a plane has them on any sides; False beyond ``_WIDE``."""
        n = len(self.sign)
        if n > self.q or n * self.q > _WIDE:
            return False
        X, products = self.X[:], np.full((n, n), float(self.fit_intercept))
        for some in cut(0, len(self.columns), max(1, _BLOCK // n)):
            block = np.asarray(dense(X[:, self.columns[some]]), np.float64) * self.scale[some] - self.centre[some]
            products += block @ block.T
        size = np.linalg.eigvalsh(products)  # which the signs leave as they are
        return bool(size[0] > _ROUNDING * size[-1])

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
        """With a margin of 0 the plane of the largest sum of all sides, none of which is negative; with a margin of 1
        that of the largest least side. None if that value is not positive."""
        n_sides = 1 if margin else len(self.sign)  # that the value is a sum of
        while len(self.seen) * (self.q + 1) <= _NUMBERS:
            rows = self._signed(taken(self.X, self.seen), self.seen)
            found = linprog(
                -np.append(np.zeros(self.q) if margin else self.total, margin),
                A_ub=np.hstack([-rows, np.full((len(rows), 1), margin)]),
                b_ub=np.zeros(len(rows)),
                bounds=(-1.0, 1.0),
                method="highs",
                options=_TOLERANCE,
            )
            if not found.success:
                break
            if -found.fun <= _ROUNDING * n_sides:
                return None
            plane, least = found.x[:-1], margin * found.x[-1]
            short = self.sides(plane) < least - _ROUNDING
            short[self.seen] = False
            if not short.any():
                return plane
            some = np.flatnonzero(short)
            self.seen = np.union1d(self.seen, some[:: -(-len(some) // len(self.seen))])
        raise _Undecided
