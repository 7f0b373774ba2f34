"""Chains of ``hmc_diagonal.py``, and their burn-in, which finds the step size and the reference.

The first reference is at the mode of the coefficients with a Gaussian prior as wide as the start. Each phase of burn-in
but the last ends with a reference at the medians of beta over its second half.
"""

import numpy as np
from scipy.optimize import minimize

from .._backends import NO_SWEEP
from .._utils.threads import cached_property
from . import gibbs, hmc, hmc_diagonal
from .adaptation_window import mean_of_chains
from .hmc_diagonal import DiagonalReference
from .shrinkage_by_products import ShrinkageByProducts
from .tuned_chains import TunedChains

_MOST_LEAPFROG_STEPS = 100
_TAU_MOVES = 8, 0.3  # number of moves of tau in a sweep, and their standard deviation, in log tau
_MOST_MODE_STEPS = 100  # of the search for the first reference, which need not be exact
_REFERENCE = DiagonalReference._fields
_SWEEPS_BETWEEN_POINTS, _MOST_POINTS = 5, 32  # from one state at which the information is computed to the next; states


class DiagonalChains(TunedChains):
    """Chains of ``hmc_diagonal``."""

    MEAN_ANGLE = 2.0
    SEEN = "n", "points"  # number of sweeps, and points among their states

    def __init__(self, problem, start, burn_in, saved=None, blocks=()):
        none, (loglik, score) = np.zeros(len(start.beta)), problem.rows.score(start.beta)
        state = hmc.HmcState(start.beta, start.lambda_sq_inv, start.tau_sq_inv, loglik, score, NO_SWEEP, none, none)
        # The scales begin as beta tells: a large tau would take long to come down.
        state = hmc.draw_scales(state, problem)._replace(sweep=0)
        super().__init__(problem, state, burn_in, saved, blocks)
        self.moves = problem.rows.ops.ColumnMoves(problem.rows, problem.fixed)
        if saved is None:
            self._set_reference(*self._mode())
        else:
            self._restore(saved)

    def _law(self, state):
        tuning = hmc.Tuning(self.step, self._n_steps_in(state.sweep, _MOST_LEAPFROG_STEPS), *_TAU_MOVES)
        return hmc_diagonal.sweep(state, self.problem, self.references, tuning, self.moves)

    def _judged(self):
        """As for all chains, without what the data do not bound: sampling does not wait for it either."""
        judged = super()._judged()
        return judged if self._unbounded is None else judged[:, self._unbounded == 0.0]

    def _add(self):
        """Add some states to the points from which the next reference comes."""
        n, points = self.seen or (0, self.state.beta[:0])
        if n % _SWEEPS_BETWEEN_POINTS == 0 and len(points) < _MOST_POINTS:
            points = np.concatenate([points, self.state.beta])
        self.seen = [n + 1, points]

    def _learn(self, n, points):
        """Take the reference at the medians of the points: means would be far out in heavy tails."""
        self._set_reference(np.median(points, axis=0), points)

    def _set_reference(self, beta, points):
        """Take a reference at beta (q,), and with the information averaged over points (m, q)."""
        rows, fixed, _, _ = self.problem
        information, centre, size = rows.information_diagonal(points)
        point = beta.copy()
        point[-1] += centre @ beta
        total = rows.score(beta[None])[1][0] - fixed.force(beta[None])[0]
        total = total - total[-1] * centre
        diagonal = fixed.diagonal + (fixed.anchor - fixed.anchor[-1] * centre) ** 2
        self._take(DiagonalReference(point, total, information + diagonal, centre, size))

    def _take(self, reference):
        self.reference = reference
        rows, fixed, _, _ = self.problem
        given = fixed, len(self.state.beta), rows.columns.n_shrunk, rows.threads
        whole = soft = rows.ops.DiagonalMassMatrix(reference, *given)
        if self._unbounded is not None:
            soft = rows.ops.DiagonalMassMatrix(reference, *given, self._unbounded)
        self.references = [hmc.Reference(None, None, None, mass_matrix) for mass_matrix in (soft, whole)]
        self.moves.set_reference(reference)

    @cached_property
    def _unbounded(self):
        """As ``DiagonalMassMatrix`` takes it."""
        rows, out = self.problem.rows, np.zeros(self.state.beta.shape[1])
        out[rows.columns.place[rows.one_sided_columns.columns]] = 1.0
        out[rows.columns.n_shrunk :] = 0.0
        return out if out.any() else None

    def _mode(self):
        """The mode of beta with a prior as wide as the start, or near it; and that as the only point."""
        rows, fixed, _, _ = self.problem
        sd, p = rows.columns.sd, rows.columns.n_shrunk
        d = np.append(np.where(sd > 0, sd, 1.0) ** 2, np.ones(len(fixed.anchor) - len(sd))) / 4
        d[:p], d[p:] = d[:p] * max(1, (sd[:p] > 0).sum()), 0.0
        # In units of standard deviations by the information, of rows as they typically are.
        square = np.append(sd**2, np.ones(len(d) - len(sd))) * rows.likelihood.typical_information * rows.size()
        unit = (square + d + fixed.diagonal + fixed.anchor**2) ** -0.5
        last = {}

        def evaluate(scaled):
            beta = scaled * unit
            (loglik,), (score,) = rows.score(beta[None])
            last[beta.tobytes()] = score
            force = d * beta + fixed.force(beta[None])[0]
            return force @ beta / 2 - loglik, (force - score) * unit

        start = mean_of_chains(self.state.beta)
        options = {"maxiter": _MOST_MODE_STEPS}
        beta = unit * minimize(evaluate, start / unit, jac=True, method="L-BFGS-B", options=options).x
        return beta, beta[None]

    def _information(self, beta):
        rows, fixed, _, key = self.problem
        return ShrinkageByProducts(rows, fixed, beta, key)

    def _shrinkage(self):
        return self.information(gibbs.prior_precision(self.state, self.problem.rows.ops), self.state.sweep)

    def _own_arrays(self):
        reference = {f"reference_{name}": value for name, value in self.reference._asdict().items()}
        return {**super()._own_arrays(), **reference}

    def _restore(self, saved):
        super()._restore(saved)
        self._take(DiagonalReference._make(saved[f"reference_{name}"] for name in _REFERENCE))
