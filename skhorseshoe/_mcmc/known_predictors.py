"""x beta of all rows, as passes have left it: where effects of groups have moved, and beta has grown by a factor at
most, the next pass has no need to compute it again."""

import numpy as np

_ARRAYS, _SAVED = ("beta", "factor", "grown"), "group_known_"


class KnownPredictors:
    """Of the chains of a run. saved : what ``arrays`` gave, or None; a run that goes on has no values at first."""

    def __init__(self, saved=None):
        self.beta = self.values = None  # where passes were (n_chains, q), and what they have left (n, n_chains)
        self.factor = self.grown = None  # (n_chains,), and beta times it, where the chains are
        self.last = None  # beta and values of the last pass of this sweep
        if saved is not None and f"{_SAVED}beta" in saved:
            self.beta, self.factor, self.grown = (saved[_SAVED + name].copy() for name in _ARRAYS)

    def are_of(self, beta):
        """Whether they are those of beta (n_chains, q), with which a sweep begins."""
        self.last = None
        return self.grown is not None and bool((self.grown == beta).all())

    def begin(self, beta, values):
        """Those of all chains, as a pass has left them."""
        self.beta, self.factor, self.grown, self.values = beta.copy(), np.ones(len(beta)), beta, values

    def see(self, beta, values):
        """Those of a pass on the way of this sweep."""
        self.last = beta.copy(), values

    def end(self, beta):
        """Take those of beta (n_chains, q), where a sweep has led, of each chain; whether they are all known."""
        if self.values is None:
            return False
        stays, goes = (self.grown == beta).all(axis=1), False
        if self.last is not None:
            last, values = self.last
            goes = ~stays & (last == beta).all(axis=1)
            self.beta[goes], self.factor[goes] = beta[goes], 1.0
            if goes.all():
                self.values = values
            else:
                self.values[:, goes] = values[:, goes]
        return bool((stays | goes).all())

    def grow(self, c, beta):
        """beta, to which the chains have come, is c (n_chains,) times that of the end of the sweep."""
        self.factor, self.grown, self.last = self.factor * c, beta, None

    def arrays(self):
        """All that a later run needs to have the same bits."""
        return {} if self.beta is None else {_SAVED + name: getattr(self, name) for name in _ARRAYS}
