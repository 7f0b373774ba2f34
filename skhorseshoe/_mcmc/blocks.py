"""Blocks of unknowns beside the coefficients and their scales.

A block has its part of the state, its moves, and what is saved and kept of it. Chains of all kinds (``chains.py``),
runs and draws know blocks by this class alone.
"""


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
        raise NotImplementedError

    def judged(self):
        """The unknowns (n_chains, k) in which chains must agree before burn-in ends, but for those behind beta."""
        raise NotImplementedError

    def values(self, state):
        """The values of a draw, which ``draws_of`` takes; a tuple of arrays of the host. state : of the chains."""
        raise NotImplementedError

    def draws_of(self, n_chains, room):
        """What keeps the draws, as ``group_draws.GroupDraws``."""
        raise NotImplementedError

    def prior(self):
        """The prior as users read it in ``prior_``, by name."""
        raise NotImplementedError

    def arrays(self):
        """Everything that a later run needs to go on, by names that no other block has."""
        raise NotImplementedError

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
        """The first reference, after ``stay``, with the unknowns of the block free to follow. spare : as in
        ``Rows.gram``."""
        return reference

    def set_reference(self, point):
        """Let the unknowns follow about this point (q,)."""

    # Data augmentation ("gibbs"), and the shrinkage of chains without a reference.

    def precision(self, precision):
        """``Precision`` of the coefficients given z, with the unknowns of the block integrated out."""
        raise NotImplementedError

    def sweep_given_latents(self, state, rows, law, precision):
        """As ``sweep``. law : function of state and rows, as ``gibbs.sweep``. precision : from ``precision``."""
        raise NotImplementedError

    def mark(self, beta):
        """Keep the state of this moment, unless one is kept, as that at which the shrinkage is measured."""
