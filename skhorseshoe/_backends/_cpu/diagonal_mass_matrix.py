"""A diagonal mass matrix, on the host, see ``exports/diagonal_mass_matrix.hpp``."""

import numpy as np

from .library import record
from .mass_matrix import Dynamics

_SOFTNESS = 0.3  # c of unbounded columns


class DiagonalMassMatrix(Dynamics):
    """As ``MassMatrix``, with M = diag(H + D).

    reference : ``DiagonalReference``. fixed : ``FixedPrior``. p : number of shrunk coefficients. unbounded : (q,) 1 for
    shrunk columns that the data do not bound, 0 for others; None for none. With them scales do not move.
    """

    def __init__(self, reference, fixed, n_chains, p, threads, unbounded=None):
        self.q = q = len(reference.point)
        super().__init__(threads, (n_chains, q))
        fields = {"point": reference.point, "score": reference.score, "centre": reference.centre, "p": p, "q": q}
        fields |= {"anchor": fixed.anchor, "fixed": fixed.diagonal, "whole": reference.information, "soft": None}
        fields |= {"softness": None if unbounded is None else _SOFTNESS * unbounded}
        of_chains = ("inverse_root", "mean") if unbounded is None else ("inverse_root", "mean", "soft")
        fields |= {name: np.empty(self.shape) for name in of_chains}
        self.own = record("DiagonalGaussians", fields)
        self.record = record("Dynamics", (None, None, self.own, None))

    def begin(self, reference, state, key, same_scales=False):
        """A ``Trajectory`` from a state, with fresh v."""
        return self._begin(state[:5], state.sweep, key)
