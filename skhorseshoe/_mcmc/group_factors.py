"""Factors by which rows belong together: each has effects, a standard deviation of these, and moves of its own.

Where there are several, the moves of a factor hold the effects of the others. Two sums of effects that the rows do not
tell apart move together (``Shift``): a constant that all patients gain and all doctors lose, or, where classes are
nested in schools, one that a school gains and its classes lose. With v and w the effects of two factors, deviations s_v
and s_w, and sets I and J of levels that are connected by rows and to no other level, d is drawn in v + d, w - d:

    d ~ N((sum_J w / s_w^2 - sum_I v / s_v^2) / h, 1 / h),  h = |I| / s_v^2 + |J| / s_w^2

Where each set has one v, a *parent* with its n children, s_v moves before that with d integrated out: with T the sum of
v + w over the children of a parent, a slice step on log s_v with the log-density

    log s_v - log(1 + s_v^2 / scale^2) + sum (s_v^2 T^2 / (s_w^2 (s_w^2 + n s_v^2)) - log(s_w^2 + n s_v^2)) / 2
"""

from itertools import combinations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtr

from .._backends import EFFECT_PURPOSE, GROUP_LINE_PURPOSE, NO_SWEEP
from .._backends.constants import LINE_PROPOSALS
from .._backends.line_moves import N_UNIFORMS
from .._model.horseshoe import log_half_cauchy
from .._utils.arrays import dense
from . import group_moves
from .group_map import GroupMap, as_saved
from .group_slopes import SlopesOfFactor

_FIRST_SHARES = 0.05, 0.95  # shares of the prior of s between which chains start
_WIDTH_IN_DEVIATIONS = 8.0  # width of slices in log s, as ``tuned_widths`` takes it
_PARENT_WIDTH = 8.0  # width of a slice in log s of parents
_KEYS = 0x9E3779B9  # times the number of a factor or a shift, of which its key is another than that of the run


class Factor:
    """One factor, or one of the effects of a factor with slopes (``group_slopes.py``); its effects are ``part`` of all.

    rows : ``Rows``. k : number of the factor. given : of ``Groups.factors``. first : number of its first effect.
    """

    def __init__(self, rows, k, given, first, key):
        self.codes, self.n, self.prior_scale, column = given
        self.number, self.part, self.key = k, slice(first, first + self.n), key_of(key, k)
        X, y, weight = rows.held
        self.dtype = dtype = np.promote_types(rows.dtype, np.float32)
        self.slope, self.sd, self.family = None, 1.0, None  # by which rows multiply effects, (n,); the unit of that
        if column is not None:
            columns, x = rows.columns, dense(X[:, [column]])[:, 0].astype(np.float64)
            self.sd = columns.sd_of_X[column]
            self.slope = (x - columns.mean_of_X[column]) / self.sd
            self.prior_scale = self.prior_scale * (1.0 if columns.standardize else self.sd)

        def make_row_groups(slope, codes, n):
            more = rows.bounds, rows.threads, rows.likelihood, slope
            return rows.ops.RowGroups(y, weight, rows.offset, codes, n, dtype, *more)

        self.make_row_groups, self.row_groups = make_row_groups, make_row_groups(self.slope, self.codes, self.n)
        self.ops, self.map, self._lines = rows.ops, GroupMap.none(self.n), (None, None)
        self.scale = self.widths = self.steps = None  # s (n_chains,); of slices in log s; sums of their squares
        self.response = None  # how the effects follow those of other factors (n, n_effects), sparse, once known

    def times_slope(self, values):
        """Values of rows (n_rows, ...) times what a row multiplies effects by."""
        return values if self.slope is None else (values.T * self.slope).T

    def at_levels(self, effects, levels):
        """What effects (n, m) add where levels (rows, n_factors) of all factors occur."""
        return self.times_slope(effects[levels[:, self.number]])

    def rooted(self, averages):
        """s of ``MapAverages`` times what a row multiplies effects by; (n_rows, 1)."""
        return averages.scale(self.number)[0] * self.times_slope(np.ones((len(self.codes), 1)))

    @property
    def lines(self):
        if self._lines[0] is not self.map:
            lines = self.ops.ScaleLines(self.row_groups, self.map.laws, len(self.scale), 1 + LINE_PROPOSALS)
            self._lines = self.map, lines
        return self._lines[1]

    def start(self, n_chains, ops):
        """Effects (n, n_chains) with which chains start."""
        # Each chain starts in its own part of the prior of s, so that R-hat sees what the chains have not left.
        standard = ops.normal((n_chains, 1 + self.n), self.key, NO_SWEEP, EFFECT_PURPOSE)
        least, most = _FIRST_SHARES
        place = np.roll(np.arange(n_chains), self.number)
        share = least + (most - least) * (place + ndtr(standard[:, 0])) / n_chains
        self.scale = self.prior_scale * np.tan(share * np.pi / 2)
        self.widths, self.steps = group_moves.first_widths(2, self.n), np.zeros(3)
        return (standard[:, 1:] * self.scale[:, None]).T.copy()

    def tune(self):
        """Tune the widths of slices in log s to the steps since the last call."""
        self.widths = group_moves.tuned_widths(self.widths, self.steps[0], self.steps[1:], _WIDTH_IN_DEVIATIONS)
        self.steps = np.zeros(3)

    def move(self, block, given, beta, tau_sq_inv, t):
        return group_moves.move_factor(block, self, given, beta, tau_sq_inv, t)

    def grow(self, c):
        self.scale = self.scale * c

    def log_density_grown(self, c_sq):
        """Terms of the log-density that change with the scale and effects times c, as c^2 (..., n_chains)."""
        return np.log(c_sq) / 2 + log_half_cauchy(c_sq * (self.scale / self.prior_scale) ** 2)

    def arrays(self):
        """Everything that a later run needs to go on, but for the effects."""
        out = {"scale": self.scale, "widths": self.widths, "steps": self.steps}
        if self.map.along is not None:
            out |= {f"map_{name}": value for name, value in self.map._asdict().items()}
        return {f"group_{self.number}_{name}": value for name, value in out.items()}

    def restore(self, saved):
        """Return to the state in which ``arrays`` gave these."""
        prefix = f"group_{self.number}_"
        self.scale, self.widths, self.steps = (saved[prefix + name].copy() for name in ("scale", "widths", "steps"))
        if f"{prefix}map_along" in saved:
            self.map = GroupMap._make(as_saved(saved[f"{prefix}map_{name}"]) for name in GroupMap._fields)


def key_of(key, k):
    """The key of random numbers of the k-th factor or shift; that of the run for the first."""
    return np.array([key[0] ^ np.uint32(k * _KEYS % 2**32), key[1]], np.uint32) if k else key


def factors_of(rows, key):
    factors, first = [], 0
    for k, given in enumerate(rows.groups.factors()):
        factors.append(Factor(rows, k, given, first, key))
        first += factors[-1].n
    return factors


def families_of(factors, rows, n_chains, key):
    """The ``SlopesOfFactor`` of each factor with slopes. factors : of ``factors_of``."""
    numbers = rows.groups.families()
    first = len(factors) * (len(factors) + 1)  # behind the numbers of factors and shifts
    return [
        SlopesOfFactor([factors[k] for k in own], rows, n_chains, key_of(key, first + j))
        for j, own in enumerate(numbers)
    ]


class Shift:
    """Constants that sets of levels of one factor gain and those of another lose. levels : (n, 2) that occur."""

    def __init__(self, factors, levels, key):
        self.factors, self.key = factors, key
        a, b = factors
        both = coo_array((np.ones(len(levels)), levels.T), shape=(a.n, b.n))
        edges = both.row, both.col + a.n
        graph = coo_array((both.data, edges), shape=(a.n + b.n, a.n + b.n))
        self.n, labels = connected_components(graph, directed=False)
        self.of_levels = labels[: a.n], labels[a.n :]  # the set of each level
        self.sums = [
            csr_array((np.ones(len(one)), (one, np.arange(len(one)))), (self.n, len(one))) for one in self.of_levels
        ]
        self.sizes = [np.bincount(one, minlength=self.n)[:, None] for one in self.of_levels]
        self.parent = next((k for k in (0, 1) if self.n > 1 and (self.sizes[k] == 1).all()), None)

    def move(self, effects, ops, t, across=None):
        """Shift effects of all factors (n_effects, n_chains), in place, and move the scale of parents. across : what
        slopes add to the product of their prior precision and effects, as in ``GroupEffects.across``, or None."""
        if self.parent is not None and all(factor.family is None for factor in self.factors):
            self._move_scale(effects, ops, t)
        ours, theirs = (effects[factor.part] for factor in self.factors)
        for_ours, for_theirs = (factor.scale**-2.0 for factor in self.factors)
        precision = self.sizes[0] * for_ours + self.sizes[1] * for_theirs
        mean = ((self.sums[1] @ theirs) * for_theirs - (self.sums[0] @ ours) * for_ours) / precision
        if across is not None:
            own, other = (sums @ across[factor.part] for sums, factor in zip(self.sums, self.factors, strict=True))
            mean += (other - own) / precision
        noise = ops.normal(precision.T.shape, self.key, t, EFFECT_PURPOSE).T
        step = mean + noise / np.sqrt(precision)
        ours += step[self.of_levels[0]]
        theirs -= step[self.of_levels[1]]

    def _move_scale(self, effects, ops, t):
        """Move s_v of the parents with the shifts integrated out; the shifts must be drawn next."""
        parents, children = self.factors[self.parent], self.factors[1 - self.parent]
        n, of_parents = self.sizes[1 - self.parent], self.sums[self.parent] @ effects[parents.part]
        total_sq = (n * of_parents + self.sums[1 - self.parent] @ effects[children.part]) ** 2
        uniform = ops.uniform((len(parents.scale), N_UNIFORMS), self.key, t, GROUP_LINE_PURPOSE)
        r, _ = ops.proposals(uniform, np.full(1, _PARENT_WIDTH))
        s_sq, own_sq = (np.exp(r) * parents.scale[:, None]) ** 2, children.scale[:, None] ** 2
        marginal = own_sq + n[:, None] * s_sq  # (n_parents, n_chains, k), n times the variance of a mean of v + w
        terms = s_sq * total_sq[:, :, None] / (own_sq * marginal) - np.log(marginal)
        value = terms.sum(axis=0) / 2 + r + log_half_cauchy(s_sq / parents.prior_scale**2)
        parents.scale = parents.scale * np.exp(ops.first_inside(value, r, uniform))


def shifts_of(factors, levels, key):
    """The ``Shift``s of all pairs of factors. levels : as in ``Groups``."""
    pairs = combinations([k for k, factor in enumerate(factors) if factor.slope is None], 2)
    return [
        Shift((factors[i], factors[j]), np.unique(levels[:, [i, j]], axis=0), key_of(key, len(factors) + k))
        for k, (i, j) in enumerate(pairs)
    ]
