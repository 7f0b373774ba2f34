"""The chains of "gibbs" and "pxda", from start through burn-in; ``hmc_burn_in.py`` has those of "hmc".

All chains have ``advance()``, ``state``, ``tuning``, ``shrinkage()``, and ``arrays()`` to go on from later.
"""

from functools import partial

import numpy as np

from .._backends import limits
from .._backends.lines import every, line_widths
from . import conjugate_gradients, gibbs
from .adaptation_window import some_points
from .burn_in import BurnIn, of_no_tuning

_INFORMATION = 0.25  # of a row about its linear predictor; at most it is 2 / pi


class PlainChains:
    """Nothing is tuned here. The second half of burn-in tells where the shrinkage is measured.

    problem : ``Problem``. start : the state to begin with. burn_in : sweeps, or "auto". saved : what ``arrays`` gave,
    or None.
    """

    tuning: dict = {}  # noqa: RUF012 - there is none, for ever
    schedule = staticmethod(of_no_tuning)

    def __init__(self, problem, start, burn_in, saved):
        self.problem, self.burn_in = problem, BurnIn(burn_in, self.schedule, saved, problem.rows.ops)
        self.information = None  # the Fisher information, once the shrinkage has been asked for
        if saved is None:
            self.state, points = start, start.beta
        else:
            *names, _ = start._fields
            state = type(start)(*(saved[name] for name in names), int(saved["sweep"]))
            self.state, points = map(problem.rows.ops.to_device, (state, saved["points"]))
        self.points = (points,)  # coefficients (some, q) each: of the second half of burn-in, or the start before it

    def advance(self):
        """One sweep."""
        self.state = self._sweep(self.state)
        beta, sweep, end = self.state.beta, self.state.sweep, self.burn_in.end
        seen = sweep - 1 - end // 2
        if seen >= 0 and sweep <= end:
            new = some_points(beta, seen, (end - end // 2) * len(beta))
            self.points = (*(self.points if seen else ()), *(some.copy() for some in new))
        self.burn_in.see(sweep, beta, self.problem.rows.ops)

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        if self.information is None:
            self.information = self._information(self._points())
        return self._shrinkage()

    def arrays(self):
        """All that a later run needs to go on."""
        burn_in = self.burn_in.arrays(self.problem.rows.ops)
        return {**self.state._asdict(), "points": self._points(), **burn_in}

    def _points(self):
        """States of burn-in, of all chains; (m, q)."""
        return self.problem.rows.ops.concatenate(self.points)

    def _lines(self):
        """``Lines`` whose widths come from what rows tell before anything is sampled."""
        rows, fixed, _, _ = self.problem
        columns, n = rows.columns, rows.size()
        square = np.append(n * (columns.mean**2 + columns.sd**2), n)[: len(fixed.anchor)]  # x_j'x_j
        return rows.lines(fixed, line_widths(columns.n_shrunk, fixed, _INFORMATION * square))


class GibbsChains(PlainChains):
    """Data augmentation. start : ``gibbs.State``."""

    def __init__(self, problem, start, burn_in, saved=None):
        super().__init__(problem, start, burn_in, saved)
        rows = problem.rows
        self.precision = self._precision()
        law = {"rows": rows, "precision": self.precision, "tau_0": problem.tau_0, "key": problem.key}
        self.every = every(rows)  # sweeps, of which one has moves along lines
        self.sweeps = [partial(gibbs.sweep, ops=rows.ops, **law, **more) for more in self._kinds()]

    def _kinds(self):
        """What is asked of a sweep beyond the law: of most, and of those that come after ``every`` others."""
        return {}, {}

    def _precision(self):
        rows, fixed, _, key = self.problem
        if limits.is_without_factor(rows.shape[1]):
            return conjugate_gradients.precision(rows, fixed, key)
        return rows.ops.Precision(fixed.add_to(rows.gram()), rows.threads)

    def _sweep(self, state):
        return self.sweeps[state.sweep % self.every == 0](state)

    def _information(self, beta):
        rows, fixed, _, _ = self.problem
        if limits.is_without_factor(rows.shape[1]):
            return self.precision.information(beta)
        H = fixed.add_to(rows.information(beta, self.precision.work))
        return rows.ops.Precision(H, rows.threads, memory_of=self.precision)

    def _shrinkage(self):
        return shrinkage(self.information, self.state, self.problem.fixed, self.problem.rows.ops)


class PxdaChains(GibbsChains):
    """The same with a scale move in every sweep, and moves along lines."""

    def _kinds(self):
        return {"expand": True}, {"expand": True, "lines": self._lines()}


def shrinkage(information, state, fixed, ops):
    """kappa_j = var(beta_j | y, scales) / var(beta_j | scales) = d_j [(H + D)^-1]_jj; (n_chains, n_shrunk).

    On the host. information : ``Precision`` of the Fisher information and the fixed prior. A slab is part of both
    variances.
    """
    p = state.lambda_sq_inv.shape[1]
    d = gibbs.prior_precision(state, ops)
    precision, variance = (ops.to_host(x)[:, :p] for x in (d, information.inverse_diagonal(d, state.sweep)))
    return (precision + fixed.slab_precision) * variance
