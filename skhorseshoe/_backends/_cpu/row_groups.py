"""Groups of rows: sums over their rows, and their effects (``exports/row_groups.cpp``)."""

import numpy as np

from ..._model import PROBIT
from .library import function, record
from .passes import or_none, pieces_of_X, rows_of

_sum_by_group, _move_effects = function("sum_by_group"), function("move_group_effects")
_effects_in_rows = function("effects_in_rows")
_curvature, _logliks_on_grid = function("curvature_of_rows"), function("group_logliks_on_grid")
_scaled_logliks, _add_rows_by_group = function("scaled_logliks"), function("add_rows_by_group")
_GROUPS_AT_A_TIME = 2**9  # number of groups that a thread takes at a time


def given_of_chains(given):
    """``GivenPredictors`` of the core."""
    n_own = 0 if given.own is None else given.own.shape[1]
    return record("GivenPredictors", (given.values, given.factor, given.own, n_own, len(given.factor)))


class RowGroups:
    """Rows (y, weights, offset or None) in groups; codes (n,) int32 from 0 to n_groups - 1.

    dtype : of arrays by row (n, n_chains). slope : (n,) by which the effect of its group is multiplied in a row, or
    None where each is 1; (q, n) for q effects of each group, in ``in_rows`` and ``logliks``. Arguments: given,
    as ``known_predictors.Given``; effects (n_groups, n_chains).
    """

    def __init__(self, y, weight, offset, codes, n_groups, dtype, bounds, threads, likelihood=PROBIT, slope=None):
        order = np.argsort(codes, kind="stable")
        starts = np.append(0, np.cumsum(np.bincount(codes, minlength=n_groups)))
        self.codes, self.n, self.bounds, self.threads = codes, n_groups, bounds, threads
        fields = {"is_double": dtype == np.float64, "order": order, "starts": starts}
        fields |= {"codes": codes, "y": y, "weight": or_none(weight), "offset": offset, "likelihood": likelihood.number}
        q = 1 if slope is None else slope.size // len(codes)
        fields |= {"slope": slope, "n": len(codes), "n_groups": n_groups, "q": q}
        self.record = record("RowGroups", fields)

    def sums(self, values):
        """Sums of values by row (n, n_chains), times slopes, over each group; (n_groups, n_chains) float64."""
        out = np.empty((self.n, values.shape[1]))
        self._share(lambda first, last: _sum_by_group(self.record, values, out.shape[1], first, last, out))
        return out

    def in_rows(self, effects):
        """What effects (n_groups, m) or (q, n_groups, m) add to the predictors of rows, without offsets; (n, m)."""
        out = np.empty((len(self.codes), effects.shape[-1]))
        _effects_in_rows(self.record, effects, out.shape[1], out)
        return out

    def curvature(self, given, effects):
        """Minus the second derivative of the log-likelihood of each row by its linear predictor (n,), and sums of the
        derivatives by the effect of each group (n_groups,), averaged over chains."""
        curvature, slopes = np.empty(len(self.codes)), np.empty(self.n)
        inputs = self.record, given_of_chains(given), effects
        self._share(lambda first, last: _curvature(*inputs, first, last, curvature, slopes))
        return curvature, slopes

    def move_effects(self, effects, given, precision, information, sweep, key, mean=None):
        """A slice step for each effect, in place. precision : (n_chains,) s^-2, or with a mean of the prior (n_groups,
        n_chains) of this shape too. information : (n_groups,) approximate information of the rows of a group about its
        effect."""
        inputs = self.record, given_of_chains(given), (precision, information, mean), sweep, key
        self._share(lambda first, last: _move_effects(*inputs, first, last, effects))

    def logliks(self, given, effects, asked):
        """The log-likelihoods (n_chains,) of the chains ``asked`` (n_chains,) bool, 0 for others."""
        out, of_chains = np.zeros((len(self.bounds) - 1, len(asked))), given_of_chains(given)

        def add_blocks(first, last):
            edges = self.bounds[first : last + 1]
            _scaled_logliks(self.record, of_chains, effects, asked, edges, last - first, out[first:last])

        self.threads.run(add_blocks, len(out))
        return out.sum(axis=0)

    def logliks_on_grid(self, given, u, first):
        """The log-likelihoods of m groups from ``first`` on, with k effects of each, u (m, k), in one chain; (m, k)."""
        out, of_chain = np.empty_like(u), given_of_chains(given)

        def compute(start, stop):
            grid = u[start:stop]
            _logliks_on_grid(self.record, of_chain, grid, u.shape[1], first + start, first + stop, out[start:stop])

        self.threads.run(compute, len(u))
        return out

    def _share(self, task):
        n = -(-self.n // _GROUPS_AT_A_TIME)
        self.threads.run(lambda first, last: task(first * _GROUPS_AT_A_TIME, min(self.n, last * _GROUPS_AT_A_TIME)), n)


def sums_by_group(X, codes, n_groups, weight):
    """Sums of weight_i (x_i, 1) over the rows of each group; (n_groups, p + 1) float64. codes : (n,) int32."""
    out = np.zeros((n_groups, X.shape[1] + 1))
    for x, rows, *_ in pieces_of_X(X, np.array([0, X.shape[0]]), 0, 1):
        _add_rows_by_group(rows_of(x), codes[rows], weight[rows], out)
    return out
