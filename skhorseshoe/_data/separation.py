"""Whether a plane separates the classes, by linear programming; neither chains nor R-hat can tell."""

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import issparse

from .._utils.arrays import dense
from .._utils.memmap import blocks, cut, taken
from .._utils.threads import cached_property

NONE, QUASI, COMPLETE, WITHIN = "none", "quasi-complete", "complete", "within-group"
_FIRST_ROWS = 100  # rows of each class in the first programme
_PROGRAMME_NUMBERS = 2**18  # most numbers in a programme, which takes some seconds
_NUMBERS_TESTED = 2**24  # largest X, in numbers, whose rows are tested for independence
_NUMBERS_AT_A_TIME = 2**18  # numbers of X to read at a time
_ROUNDING = 1e-8  # rounding error of a side; the planes of the solver have coefficients of at most 1
_TOLERANCE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


def separation(X, y, fit_intercept, mean, sd, is_ordered=True):
    """``COMPLETE``: a plane has every row on the side of its class. ``QUASI``: a plane has no row on the wrong side,
    but some rows lie on it. ``NONE``: there is no such plane. None: it would take too long to find out.

    Konis (2007, Linear programming algorithms for detecting separated data in binary logistic regression models, DPhil
    thesis, Oxford) maximises the sum of all rows' sides, subject to no side being negative, over planes of bounded
    coefficients. Here a first programme has this constraint for some rows. The next adds rows that its plane has on the
    wrong side, and so on. If the maximum is zero with the constraints of some rows, it is zero with those of all.

    More than two classes, y from 0 on, have parallel planes in their order, and a row between two has two sides. Where
    they have no order each has a utility, and a row has a side for each of the other classes (Albert & Anderson 1984).

    X : (n, p), on the host. fit_intercept : whether the plane need not go through zero. mean, sd : (p,) of the columns,
    which standardise them for the solver; columns with sd 0 are left out.
    """
    rows = (_RowsToSeparate if is_ordered else _RowsOfSeveral)(X, y, fit_intercept, mean, sd)
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
    """The plane with no side negative that maximises ``total`` @ plane or, with margin 1, the least side of rows."""
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
    """The sides of rows: rows times the sign of their class, in columns of variance 1 and, with an intercept and dense
    X, mean 0. Columns that follow are 1 for the second and further planes. Two classes have one side for each row."""

    def __init__(self, X, y, fit_intercept, mean, sd):
        self.X, self.fit_intercept, self.n, self.columns = X, int(fit_intercept), len(y), np.flatnonzero(sd > 0)
        self.width = len(self.columns) + self.fit_intercept
        self.scale = 1.0 / sd[self.columns]
        self.centre = mean[self.columns] * self.scale * (fit_intercept and not issparse(X))
        self._number_sides(y)

    def _number_sides(self, y):
        self.n_more = max(int(y.max()) - 1, 0)
        above, below = np.flatnonzero(y > 0), np.flatnonzero(y <= self.n_more)  # rows above and below some plane
        order = np.argsort(np.concatenate([above, below]), kind="stable")
        self.row = np.concatenate([above, below])[order]
        self.sign = np.repeat([1.0, -1.0], [len(above), len(below)])[order]
        self.further = np.concatenate([y[above].astype(int) - 1, y[below]])[order]  # number of the plane
        self.q = self.width + self.n_more
        self._begin_with(2 * self.further + (self.sign > 0), _FIRST_ROWS)

    def _begin_with(self, kinds, each):
        """Have about ``each`` sides of each kind in the first programme, evenly spaced. kinds : of the sides."""
        order, sizes = np.argsort(kinds, kind="stable"), np.bincount(kinds)
        ends = np.cumsum(sizes)
        some = (order[end - n : end : max(1, n // each)] for end, n in zip(ends.tolist(), sizes.tolist(), strict=True))
        self.seen = np.sort(np.concatenate([*some]))

    def _standard(self, rows):
        """Rows of X in standard columns, and ones; (m, width)."""
        rows = rows if len(self.columns) == self.X.shape[1] else rows[:, self.columns]
        rows = np.asarray(dense(rows), np.float64)
        return np.hstack([rows * self.scale - self.centre, np.ones((rows.shape[0], self.fit_intercept))])

    def _signed(self, rows, numbers):
        """The sides of these numbers (m, q). rows : of X, one for each side."""
        planes = self.further[numbers, None] == np.arange(1, self.n_more + 1)
        return self.sign[numbers, None] * np.hstack([self._standard(rows), planes])

    def _blocks(self):
        """All sides, a block of rows at a time; rows of a file leave the process after it."""
        for block in blocks(self.X, _NUMBERS_AT_A_TIME):
            numbers = slice(*np.searchsorted(self.row, [block.start, block.stop]))
            yield self._signed(self.X[block][self.row[numbers] - block.start], numbers)

    def are_independent(self):
        """Whether the rows are linearly independent, so that a plane separates any classes; False if X is large."""
        n = self.n
        if n > self.width or n * self.width > _NUMBERS_TESTED:
            return False
        X, products = self.X[:], np.full((n, n), float(self.fit_intercept))
        for cols in cut(0, len(self.columns), max(1, _NUMBERS_AT_A_TIME // n)):
            block = np.asarray(dense(X[:, self.columns[cols]]), np.float64) * self.scale[cols] - self.centre[cols]
            products += block @ block.T
        eigenvalues = np.linalg.eigvalsh(products)  # the signs of the rows do not change them
        return bool(eigenvalues[0] > _ROUNDING * eigenvalues[-1])

    @cached_property
    def total(self):
        """The sum of all sides, (q,)."""
        if issparse(self.X):
            ones = self.sign.sum(keepdims=True)[: self.fit_intercept]
            of_rows, of_planes = np.bincount(self.row, self.sign, self.n), np.bincount(self.further, self.sign)[1:]
            return np.concatenate([(self.X.T @ of_rows)[self.columns] * self.scale, ones, of_planes])
        return sum(block.sum(axis=0) for block in self._blocks())

    def sides(self, plane):
        """How far rows are on their sides, (n,) for two classes."""
        if issparse(self.X):
            k, weights = len(self.columns), np.zeros(self.X.shape[1])
            weights[self.columns] = plane[:k] * self.scale
            end = k + self.fit_intercept
            at = np.append(0.0, plane[end:])[self.further] + plane[k:end].sum()
            return self.sign * ((self.X @ weights)[self.row] + at)
        return np.concatenate([block @ plane for block in self._blocks()])

    def plane(self, margin):
        """The plane with no side negative that maximises the sum of all sides (margin 0) or the smallest side (margin
        1). None if the maximum is not positive."""
        n_sides = 1 if margin else len(self.row)  # in the maximum, which is a sum
        while len(self.seen) * (self.q + 1) <= _PROGRAMME_NUMBERS:
            rows = self._signed(taken(self.X, self.row[self.seen]), self.seen)
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


class _RowsOfSeveral(_RowsToSeparate):
    """As above, of K classes without an order: how far the utility of the class of a row is above each of the others.
    The plane has the coefficients of all classes but the first, whose utility is 0."""

    def _number_sides(self, y):
        self.y, self.classes = y, np.arange(int(y.max()) + 1)
        self.n_others = len(self.classes) - 1
        self.q = self.width * self.n_others
        self.row = np.repeat(np.arange(self.n), self.n_others)
        self.own, self.further = y[self.row], np.nonzero(self.classes != y[:, None])[1]
        kinds = len(self.classes) * self.own.astype(np.int64) + self.further
        self._begin_with(kinds, max(1, _FIRST_ROWS // self.n_others))

    def _signed(self, rows, numbers):
        base = self._standard(rows)
        out, at = np.zeros((len(base), len(self.classes), self.width)), np.arange(len(base))
        out[at, self.own[numbers]] = base
        out[at, self.further[numbers]] = -base
        return out[:, 1:].reshape(len(base), -1)

    @cached_property
    def total(self):
        gains = np.where(self.classes == self.y[:, None], float(self.n_others), -1.0)
        if issparse(self.X):
            of_columns = (self.X.T @ gains)[self.columns] * self.scale[:, None]
            by_class = np.vstack([of_columns, gains.sum(axis=0, keepdims=True)[: self.fit_intercept]])
        else:
            cuts = blocks(self.X, _NUMBERS_AT_A_TIME)
            by_class = sum(self._standard(self.X[block]).T @ gains[block] for block in cuts)
        return by_class[:, 1:].T.ravel()

    def sides(self, plane):
        """How far utilities of rows are above those of other classes, (n (K - 1),)."""
        of_classes = np.vstack([np.zeros(self.width), plane.reshape(self.n_others, -1)])
        if issparse(self.X):
            k, weights = len(self.columns), np.zeros((self.X.shape[1], len(of_classes)))
            weights[self.columns] = (of_classes[:, :k] * self.scale).T
            utilities = self.X @ weights + of_classes[:, k:].sum(axis=1)
        else:
            cuts = blocks(self.X, _NUMBERS_AT_A_TIME)
            utilities = np.concatenate([self._standard(self.X[block]) @ of_classes.T for block in cuts])
        return utilities[self.row, self.own] - utilities[self.row, self.further]
