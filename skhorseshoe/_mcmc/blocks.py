"""Blocks of unknowns beside the coefficients and their scales.

A block has its part of the state, its moves, and what is saved and kept of it. Chains of all kinds (``chains.py``),
runs and draws know blocks by this class and ``BlockDraws`` alone.
"""

import numpy as np

from .draws import keep_every_second


class Block:
    """A block, with hooks that do nothing.

    n_chains is the leading axis of the state of the chains. A reference is that of ``hmc.py``, on the host.
    """

    rows: object  # ``rows`` as chains see them while the unknowns of the block are held

    def given(self, problem):
        """The ``Problem`` of the other unknowns."""
        return problem._replace(rows=self.rows)

    def start(self, beta):
        """beta (n_chains, q) with which chains start, and behind it unknowns of the block that move with it."""
        return beta

    def sweep(self, state, law):
        """The state after ``law``, a sweep of the coefficients and their scales, and then a move of the block."""
        return law(state)

    def judged(self):
        """Unknowns (n_chains, k) in which chains must agree before burn-in ends, but for those behind beta; or None."""

    def values(self, state):
        """The values of a draw, which ``draws_of`` takes; a tuple of arrays of the host. state : of the chains."""
        raise NotImplementedError

    def draws_of(self, n_chains, room):
        """``BlockDraws``. room : the most draws of a chain that ``Draws`` keeps."""
        raise NotImplementedError

    def prior(self):
        """The prior as users read it in ``prior_``, by name."""
        return {}

    def arrays(self):
        """Everything that a later run needs to go on, by names that no other block has."""
        return {}

    # Burn-in with phases.

    def end_phase(self):
        """End a phase."""

    def see(self, n_seen):
        """Add the state, the n_seen-th of the second half of a phase, to what the end of the phase learns from."""

    def learn(self):
        """Learn from the states of a phase that has ended, of chains without a reference."""

    # Chains with a reference ("hmc").

    def held(self, reference):
        """The reference for a sweep in which the unknowns of the block are held."""
        return reference

    def stay(self, beta):
        """Hold the unknowns as they are at beta (n_chains, q), whatever beta becomes."""

    def followed(self, reference, spare):
        """The first reference, after ``stay``, with the block free to follow. spare : as in ``Rows.gram``."""
        return reference

    def set_reference(self, point):
        """Let the unknowns follow about this point (q,)."""

    # Data augmentation ("gibbs"), and the shrinkage of chains without a reference.

    def precision(self, precision):
        """``Precision`` of the coefficients given z, with the unknowns of the block integrated out."""
        raise NotImplementedError

    def sweep_given_latents(self, state, problem, law, precision):
        """As ``sweep``. law : function of state and problem, as ``gibbs.sweep``. precision : from ``precision``."""
        raise NotImplementedError

    def mark(self, beta):
        """Keep the state of this moment, unless one is kept, as that at which the shrinkage is measured."""


class BlockDraws:
    """Draws of a block, part of ``Draws``: an array with an entry where ``Draws`` keeps a draw.

    name : of the saved array. shape : (n_chains, room, ...). Arguments of methods: n_offered, number of draws that
    ``add`` was called with; n, number of those that are kept. Subclasses have ``to_predict(n)`` and
    ``attributes(stride)``, the attributes of a fitted model by name: of n draws those that predictions for new rows
    need, or all. stride : of the draws of coefficients.
    """

    def __init__(self, name, shape):
        self.name, self.kept = name, np.empty(shape)

    def will_halve(self, n_offered):
        """Whether the next draw needs half of what a subclass keeps by itself to be given up."""
        return False

    def add(self, n_offered, at, values):
        """Take values (n_chains, ...). at : their index, or None if they are not kept."""
        if at is not None:
            self.kept[:, at] = values

    def halve(self, n, stride):
        """Give up every second draw of n. stride : of the draws before."""
        keep_every_second(self.kept, n)

    def judged(self, n, intercept):
        """What suffices before sampling ends beside coefficients, (n_chains, n, ...). intercept : its draws (n_chains,
        n), or None where it is not judged."""
        return self.kept[:, :n]

    def trim(self, n, n_offered):
        """Give up the room of draws that were not made."""
        self.kept = self.kept[:, :n].copy()

    def arrays(self, n, n_offered):
        """The argument of ``restore``."""
        return {self.name: self.kept[:, :n].copy()}

    def restore(self, arrays):
        """Return to the state in which ``arrays`` gave these."""
        self.kept[:, : arrays[self.name].shape[1]] = arrays[self.name]
