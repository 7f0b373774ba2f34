"""The chains of data augmentation, from their start through burn-in; ``_adapt.py`` has those of "hmc".

All chains have ``advance()``, ``state``, ``tuning``, ``shrinkage()``, and ``arrays()`` to go on from later.
"""

from . import _gibbs
from ._iterative import IterativePrecision, is_needed


class GibbsChains:
    """Nothing is tuned. The second half of burn-in tells where the shrinkage is measured.

    problem : ``Problem``. start : ``_gibbs.State``. saved : what ``arrays`` gave, or None.
    """

    tuning: dict = {}  # noqa: RUF012 - there is none, for ever
    expand = False

    def __init__(self, problem, start, burn_in, saved=None):
        self.problem, self.burn_in = problem, burn_in
        rows = problem.rows
        if is_needed(rows.X):
            self.precision = IterativePrecision(rows, problem.fixed, problem.key)
        else:
            self.precision = rows.ops.Precision(problem.fixed.add_to(rows.gram()), rows.threads)
        self.information = None
        if saved is None:
            self.state = start
            self.total, self.count = start.beta.mean(axis=0), 1
        else:
            self.state = _gibbs.State(*(saved[name] for name in _gibbs.State._fields[:-1]), int(saved["sweep"]))
            self.total, self.count = saved["total"], int(saved["count"])

    def advance(self):
        """One sweep."""
        rows, _, tau_0, key = self.problem
        self.state = _gibbs.sweep(self.state, rows, self.precision, tau_0, rows.ops, key, self.expand)
        t = self.state.sweep
        if t > self.burn_in:
            return
        if t == self.burn_in // 2 + 1:
            self.total, self.count = 0.0, 0
        self.total, self.count = self.total + self.state.beta.mean(axis=0), self.count + 1

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        rows, fixed, _, _ = self.problem
        point = self.total / self.count
        if self.information is None and is_needed(rows.X):
            self.information = self.precision.information(point)
        elif self.information is None:
            H = fixed.add_to(rows.information(point[None], self.precision.work))
            self.information = rows.ops.Precision(H, rows.threads, memory_of=self.precision)
        return shrinkage(self.information, self.state, fixed, rows.ops)

    def arrays(self):
        return {**self.state._asdict(), "total": self.total, "count": self.count}


class PxdaChains(GibbsChains):
    """The same with a scale move in every sweep."""

    expand = True


def shrinkage(information, state, fixed, ops):
    """kappa_j = var(beta_j | y, scales) / var(beta_j | scales) = d_j [(H + D)^-1]_jj; (n_chains, n_shrunk).

    information : ``Precision`` of the Fisher information and the fixed prior. A slab is part of both variances.
    """
    p = state.lambda_sq_inv.shape[1]
    d = _gibbs.prior_precision(state, ops)
    return ((d + fixed.slab_precision) * information.inverse_diagonal(d, state.sweep))[:, :p]
