"""Moments of draws that come one by one and are not kept."""

import numpy as np

_NAMES = "n_draws", "mean", "squares", "positive"


class Moments:
    """Of all draws of each chain: the mean, the sum of squared deviations from it, and how many are above zero, draws
    that are zero (of constant columns) counted by half.

    The updates are those of Welford (1962), which do not cancel digits. shape : (n_chains, q) of a draw.
    """

    def __init__(self, shape):
        self.n_draws = 0
        self.mean, self.squares, self.positive = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, draw):
        """Take one draw of each chain, (n_chains, q); as a whole or, where an interrupt comes, not at all."""
        n = self.n_draws + 1
        off = draw - self.mean
        mean = self.mean + off / n
        squares = self.squares + off * (draw - mean)
        positive = self.positive + np.heaviside(draw, 0.5)
        self.n_draws, self.mean, self.squares, self.positive = n, mean, squares, positive

    def pooled(self):
        """Over all chains, by name: ``n_draws`` of a chain; ``mean``, ``sd`` and ``prob_positive``, each (q,)."""
        mean, n_all = self.mean.mean(axis=0), len(self.mean) * self.n_draws
        squares = self.squares.sum(axis=0) + self.n_draws * ((self.mean - mean) ** 2).sum(axis=0)
        return {
            "n_draws": self.n_draws,
            "mean": mean,
            "sd": np.sqrt(squares / (n_all - 1)),
            "prob_positive": self.positive.sum(axis=0) / n_all,
        }

    def arrays(self):
        """What ``restored`` takes."""
        return {f"all_{name}": getattr(self, name) for name in _NAMES}

    @classmethod
    def restored(cls, arrays):
        """As it was when ``arrays`` gave these; None if there are none among them."""
        if "all_mean" not in arrays:
            return None
        moments = cls.__new__(cls)
        for name in _NAMES:
            setattr(moments, name, np.array(arrays[f"all_{name}"]))
        moments.n_draws = int(moments.n_draws)
        return moments
