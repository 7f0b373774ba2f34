"""Probit in a sample that was drawn by the label, for answers about the population: by Bayes' theorem the odds of each
row there are those in the sample times one factor, whatever the row is."""

from math import log

import numpy as np
from scipy import special

from .probit import Probit


class Resampled(Probit):
    """P(y = 1) = factor Phi(eta) / (factor Phi(eta) + Phi(-eta)); only for answers, since fits are of the sample."""

    number = series = None  # type: ignore[assignment]
    averages_exactly = False
    log_density = None  # type: ignore[assignment]

    def __init__(self, factor):
        self.shift = log(factor)

    def probability(self, eta, ops=None, out=None):
        functions = special if ops is None else ops.special
        return functions.expit(self._log_odds(eta, functions), out=out)

    def averages(self, eta, functions, out):
        """Averages of P(y = 0) and P(y = 1) over the draws, eta (n, n_draws), in out (n, 2)."""
        odds = self._log_odds(eta, functions)
        out[:, 0], out[:, 1] = functions.expit(-odds).mean(axis=1), functions.expit(odds).mean(axis=1)
        return out

    def predictor(self, p):
        odds = special.logit(p) - self.shift
        return np.where(odds > 0, -1, 1) * special.ndtri(special.expit(-np.abs(odds)))

    def _log_odds(self, eta, functions):
        return functions.log_ndtr(eta) - functions.log_ndtr(-eta) + self.shift
