"""The chains of "gibbs" and "pxda", from start through burn-in; ``hmc_burn_in.py`` has those of "hmc".

All chains have ``advance()``, ``state``, ``tuning_report``, ``shrinkage()``, and ``arrays()`` to go on from later.
"""

from functools import partial

import numpy as np

from .._backends import limits
from .._backends.line_moves import line_interval, line_widths
from .._utils.threads import cached_property
from . import conjugate_gradients, gibbs
from .adaptation_window import chosen_points
from .burn_in import BurnIn, untuned_phases
from .class_contrasts import PrecisionOfContrasts
from .flat_directions import FlatDirections


class Chains:
    """What chains of all kinds share.

    problem : ``Problem``, with rows given the blocks. start : ``gibbs.State`` to begin with. burn_in : sweeps, or
    "auto". saved : what ``arrays`` gave, or None. blocks : each a ``Block`` of unknowns beside beta and its scales.
    """

    blocks: tuple = ()
    flat: FlatDirections | tuple = ()  # whose moves follow those of each sweep of "hmc"

    def _swept(self, law):
        """The state after a sweep of all unknowns, of which ``law`` moves beta and its scales."""
        law = partial(self.flat.sweep, law=law, problem=self.problem) if self.flat else law
        for block in self.blocks:
            law = partial(block.sweep, law=law)
        return law(self.state)

    def _judged(self):
        """The unknowns (n_chains, k) in which chains must agree before burn-in ends."""
        more = [values for block in self.blocks if (values := block.judged()) is not None]
        return np.column_stack([self.state.beta, *more]) if more else self.state.beta

    def arrays(self):
        """Everything that a later run needs to go on."""
        more = [block.arrays().items() for block in self.blocks]
        return {**self._own_arrays(), **{name: value for items in more for name, value in items}}


class PlainChains(Chains):
    """Chains without tuning. The shrinkage is measured at states of the second half of burn-in."""

    tuning_report: dict = {}  # noqa: RUF012 - never changed
    schedule = staticmethod(untuned_phases)

    def __init__(self, problem, start, burn_in, saved=None, blocks=()):
        self.problem, self.blocks = problem, blocks
        self.burn_in = BurnIn(burn_in, self.schedule, saved, problem.rows.ops)
        self.information = None  # the Fisher information, once ``shrinkage`` has been called
        if saved is None:
            self.state, points = start, start.beta
        else:
            state = start._make(saved[name] for name in start._fields)._replace(sweep=int(saved["sweep"]))
            self.state, points = map(problem.rows.ops.to_device, (state, saved["points"]))
        self.points = (points,)  # arrays (m, q) of coefficients from the second half of burn-in; before it, the start

    def advance(self):
        self.state = self._sweep(self.state)
        beta, sweep, end = self.state.beta, self.state.sweep, self.burn_in.end
        n_seen = sweep - 1 - end // 2
        if n_seen >= 0 and sweep <= end:
            points = chosen_points(beta, n_seen, (end - end // 2) * len(beta))
            self.points = (*(self.points if n_seen else ()), *(point.copy() for point in points))
        self.burn_in.add(sweep, self._judged, self.problem.rows.ops)

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        if self.information is None:
            for block in self.blocks:  # of which burn-in keeps no points
                block.mark(self.state.beta)
            self.information = self._information(self._points())
        return self._shrinkage()

    def _own_arrays(self):
        """As ``arrays``, without those of blocks."""
        burn_in = self.burn_in.arrays(self.problem.rows.ops)
        return {**self.state._asdict(), "points": self._points(), **burn_in}

    def _points(self):
        """Coefficients at states of burn-in, of all chains; (m, q)."""
        return self.problem.rows.ops.concatenate(self.points)


class GibbsChains(PlainChains):
    """Data augmentation. start : ``gibbs.State``."""

    expand, lines = False, None  # as in ``gibbs.sweep``

    @cached_property
    def precision(self):
        """Of the coefficients given z."""
        rows, fixed, _, key = self.problem
        if limits.needs_conjugate_gradients(rows.shape[1]):
            return conjugate_gradients.precision(rows, fixed, key)
        precision = rows.ops.Precision(fixed.add_to(rows.gram()), rows.threads)
        if (d := rows.columns.n_contrasts) > 1:
            return PrecisionOfContrasts(precision, d, rows.ops)
        for block in self.blocks:
            precision = block.precision(precision)
        return precision

    def _sweep(self, state):
        rows = self.problem.rows
        if rows.columns.n_contrasts > 1:
            return gibbs.sweep_of_contrasts(state, self.problem, self.precision)
        lines = self.lines if state.sweep % line_interval(rows) == 0 else None
        sweep = partial(gibbs.sweep, precision=self.precision, expand=self.expand, lines=lines)
        for block in self.blocks:
            sweep = partial(block.sweep_given_latents, law=sweep, precision=self.precision)
        return sweep(state, self.problem)

    def _information(self, beta):
        rows, fixed, _, _ = self.problem
        if limits.needs_conjugate_gradients(rows.shape[1]):
            return self.precision.information(beta)
        H = fixed.add_to(rows.information(beta, self.precision.work))
        return rows.ops.Precision(H, rows.threads, memory_from=self.precision)

    def _shrinkage(self):
        return shrinkage(self.information, self.state, self.problem.fixed, self.problem.rows.ops)


class PxdaChains(GibbsChains):
    """Data augmentation with a scale move of z in every sweep, and line moves."""

    expand = True

    @cached_property
    def lines(self):
        """As in ``gibbs.sweep``."""
        rows, fixed, _, _ = self.problem
        columns, n = rows.columns, rows.size()
        square = np.append(n * (columns.mean**2 + columns.sd**2), n)[: len(fixed.anchor)]  # x_j'x_j
        # Widths are from the rows alone, before anything is sampled.
        information = rows.likelihood.typical_information * square
        return rows.lines(fixed, line_widths(columns.n_shrunk, fixed, information))


def shrinkage(information, state, fixed, ops):
    """kappa_j = var(beta_j | y, scales) / var(beta_j | scales) = d_j [(H + D)^-1]_jj; (n_chains, n_shrunk).

    On the host. information : ``Precision`` of the Fisher information and the fixed prior. Both variances include a
    slab.
    """
    p = state.lambda_sq_inv.shape[1]
    d = gibbs.prior_precision(state, ops)
    precision, variance = (ops.to_host(x)[:, :p] for x in (d, information.inverse_diagonal(d, state.sweep)))
    return (precision + fixed.slab_precision) * variance
