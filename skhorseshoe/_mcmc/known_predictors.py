"""x beta of all rows from earlier passes. Moves of effects of groups change beta by a factor at most, so that the next
pass need not compute x beta again."""

from typing import NamedTuple

import numpy as np

_ARRAYS, _SAVED = ("beta", "factor", "grown"), "group_known_"


class Given(NamedTuple):
    """Predictors of rows, values (n, n_chains) times factor (n_chains,), and own parameters (n_chains, k) or None."""

    values: object
    factor: object
    own: object = None

    def times(self, c):
        """The same with coefficients and parameters of the likelihood's own multiplied by c (n_chains,)."""
        return self._replace(factor=c * self.factor, own=None if self.own is None else c[:, None] * self.own)


class KnownPredictors:
    """The predictors of the chains. saved : what ``arrays`` gave, or None; its values are computed again."""

    def __init__(self, saved=None):
        self.beta = self.values = None  # beta of passes (n_chains, q), and x beta from them (n, n_chains)
        self.factor = self.grown = None  # (n_chains,), and beta times it: the coefficients of the chains
        self.last = None  # beta and x beta of the last pass of this sweep
        if saved is not None and f"{_SAVED}beta" in saved:
            self.beta, self.factor, self.grown = (saved[_SAVED + name].copy() for name in _ARRAYS)

    def are_of(self, beta):
        """Whether the predictors are those of beta (n_chains, q), with which a sweep begins."""
        self.last = None
        return self.grown is not None and bool((self.grown == beta).all())

    def begin(self, beta, values):
        """Take the predictors of all chains from a pass."""
        self.beta, self.factor, self.grown, self.values = beta.copy(), np.ones(len(beta)), beta, values

    def add_pass(self, beta, values):
        """Keep the predictors of a pass within a trajectory, whose end may be rejected."""
        self.last = beta.copy(), values

    def end(self, beta):
        """Take the predictors of beta (n_chains, q) at the end of a sweep; whether those of all chains are known."""
        if self.values is None:
            return False
        stays, moves = (self.grown == beta).all(axis=1), False
        if self.last is not None:
            last, values = self.last
            moves = ~stays & (last == beta).all(axis=1)
            self.beta[moves], self.factor[moves] = beta[moves], 1.0
            if moves.all():
                self.values = values
            else:
                self.values[:, moves] = values[:, moves]
        if not (stays | moves).all():
            return False
        self.grown = beta
        return True

    def grow(self, c, beta):
        """Multiply the coefficients by c (n_chains,), which gives beta."""
        self.factor, self.grown, self.last = self.factor * c, beta, None

    def arrays(self):
        return {} if self.beta is None else {_SAVED + name: getattr(self, name) for name in _ARRAYS}
