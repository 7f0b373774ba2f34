"""Draws of the cut points of ordered classes."""

import numpy as np

from .draws import keep_every_second

_NAME = "own_draws"  # of the saved array


class CutPointDraws:
    """Draws of the cut points but the first, part of ``Draws``; methods are those of ``GroupDraws``."""

    def __init__(self, n_chains, room, k):
        self.own = np.empty((n_chains, room, k))

    def will_halve(self, n_offered):
        """Nothing of its own is given up."""
        return False

    def add(self, n_offered, at, own):
        """Take the cut points (n_chains, k), where ``at`` is not None."""
        if at is not None:
            self.own[:, at] = own

    def halve(self, n, stride):
        """Give up every second draw of n."""
        keep_every_second(self.own, n)

    def judged(self, n, intercept):
        """As of ``GroupDraws``: the cut points themselves, unless the intercept is not judged."""
        return self.own[:, :n] - (0.0 if intercept is None else intercept[..., None])

    def to_predict(self, n):
        """As of ``GroupDraws``."""
        return {"_own_draws": self.own[:, :n]}

    def attributes(self, stride):
        """As of ``GroupDraws``."""
        return {"_own_draws": self.own}

    def trim(self, n, n_offered):
        """Give up the room of draws that were not made."""
        self.own = self.own[:, :n].copy()

    def arrays(self, n, n_offered):
        """The argument of ``restore``."""
        return {_NAME: self.own[:, :n].copy()}

    def restore(self, arrays):
        """Return to the state in which ``arrays`` gave these."""
        self.own[:, : arrays[_NAME].shape[1]] = arrays[_NAME]
