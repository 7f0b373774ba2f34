"""The law of tau for more columns than rows, beta and the length of z integrated out."""

import numpy as np

from . import log_half_cauchy
from .lines import HELD, LARGEST


class DensityOfTau:
    """Log-density of a shift of log tau for each chain; the columns that are held keep lambda_j tau. It is called with
    the shifts of all chains, and with those whose shift is another one than before, of which it makes the matrices.

    rows : ``Collapsed``, whose ``P`` is that of the w that are there. Without a slab the weights of all columns that
    are not held grow together, and V is ``P`` + growth ``moving``: the products of the columns are summed once.
    """

    def __init__(self, rows, z, lambda_sq_inv, tau_sq_inv, tau_0, chances):
        self.rows, self.z = rows, z
        self.lambda_sq_inv, self.tau_sq_inv, self.tau_0 = lambda_sq_inv, tau_sq_inv, tau_0
        variances = 1.0 / np.maximum(lambda_sq_inv * tau_sq_inv[:, None], 1.0 / LARGEST)
        odds = np.minimum(variances * rows.square[: rows.n_shrunk] / HELD, LARGEST)
        self.held = chances * (1.0 + odds) < odds
        # Of the others, which are free: those of their choice, and of the slab.
        self.odds, self.bound = (rows.xp.where(self.held, 0.0, x) for x in (odds, variances * rows.slab_precision))
        self.before = rows.w[:, : rows.n_shrunk].copy()
        self.now = self._value(0.0 * tau_sq_inv, rows.P)
        self.heaviest = None if rows.moving is None else self._part()

    def __call__(self, shift, chains):
        rows, growth = self.rows, np.exp(2.0 * shift)
        w = rows.variances(self.lambda_sq_inv, self.tau_sq_inv / growth)
        rows.w[:, : rows.n_shrunk] = rows.xp.where(self.held, self.before, w)
        if self.heaviest is None:
            rows.make(rows.spare, chains)
        else:
            self._add_parts(growth, chains)
        return self._value(shift, rows.spare)

    def _part(self):
        """``P`` of the columns that are held or not shrunk, ``moving`` of the others. Returns the heavy columns of each
        chain, which are in neither."""
        rows, heaviest, moves = self.rows, [None] * self.rows.n_chains, self.rows.xp.zeros(self.rows.w.shape, bool)
        moves[:, : rows.n_shrunk] = ~self.held

        def fill(first, last):
            mine = slice(first, last)
            heaviest[mine] = [rows.choose(c) for c in range(first, last)]
            kept, moving = (rows.xp.where(some, rows.light[mine], 0.0) for some in (~moves[mine], moves[mine]))
            rows.build([(rows.P[mine], kept), (rows.moving[mine], moving)], range(last - first))

        rows.threads.run(fill, rows.n_chains)
        return heaviest

    def _add_parts(self, growth, chains):
        """As ``Collapsed.make`` in ``spare``."""
        rows = self.rows

        def add(c):
            np.multiply(rows.moving[c], growth[c], out=rows.spare[c])
            rows.spare[c] += rows.P[c]

        def fill(first, last):
            for c in chains[first:last]:
                add(c)
                rows.finish(rows.spare, c, self.heaviest[c], lambda c=c: add(c))

        rows.threads.run(fill, len(chains))

    def _value(self, shift, P):
        rows, where = self.rows, self.rows.xp.where
        growth = np.exp(2.0 * shift)
        ratio = self.tau_sq_inv * self.tau_0**2 / growth  # tau_0^2 / tau^2
        prior = log_half_cauchy(ratio)  # of log tau
        by_chain = growth[:, None]
        of_held = log_half_cauchy(where(self.held, self.lambda_sq_inv, 1.0) * by_chain)  # log psi_j - log tau
        # The slab, beta integrated out; and the choice of which columns are held.
        of_free = -0.5 * np.log1p(self.bound * by_chain) - np.log1p(self.odds * by_chain)
        prior += where(self.held, of_held, of_free).sum(axis=1)
        return prior - 0.5 * rows.log_det - 0.5 * len(P[0]) * np.log(rows.quadratic_form(P, self.z))
