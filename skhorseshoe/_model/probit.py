"""The probit likelihood: P(y = 1) = Phi(eta). Its other half is ``core/likelihoods/probit.hpp``."""

from math import log, pi

import numpy as np
from scipy import special

from . import phi_series


class Probit:
    """What a likelihood has, and no other file knows.

    In each signature eta is the linear predictor, t that with the sign of the label. out : an array for the answer.
    """

    name = "probit"
    number = 0  # in ``exports/on_likelihood.hpp``
    n_classes, n_predictors = 2, 1  # classes, and linear predictors of a row
    n_own = 0  # parameters of its own, in ``cut_points.py``
    has_latents = True  # whether there are latents z for data augmentation
    averages_exactly = True  # whether ``shrunk_by`` is exact, as groups of rows need it
    largest_information = 2 / pi  # of a row about its linear predictor; and what rows typically have
    typical_information = 0.25
    series = phi_series  # sums of changes of P(y = 1) over rows, or None

    def probability(self, eta, ops=None, out=None):
        """P(y = 1); ops : the back end of whose device eta is, or None for the host."""
        return (special if ops is None else ops.special).ndtr(eta, out=out)

    def log_density(self, t, out=None):
        """The logarithm of the probability of the label."""
        return special.log_ndtr(t, out=out)

    def predictor(self, p):
        """The linear predictor with which P(y = 1) is p."""
        return special.ndtri(p)

    def density(self, eta):
        """The derivative of P(y = 1)."""
        return np.exp(-0.5 * eta**2) / np.sqrt(2 * pi)

    def information(self, eta):
        """phi(eta)^2 / (Phi(eta) Phi(-eta)): the Fisher information of a row about its linear predictor."""
        return np.exp(-(eta**2) - log(2 * pi) - special.log_ndtr(eta) - special.log_ndtr(-eta))

    def information_at(self, p):
        """The same of a row of which P(y = 1) is p."""
        return np.exp(-(special.ndtri(p) ** 2)) / (2 * pi * p * (1 - p))

    def shrunk_by(self, variance):
        """By which eta is divided so that P(y = 1) is its mean over eta + u, u ~ N(0, variance), at least roughly."""
        return np.sqrt(1 + variance)

    def probability_given(self, p, u, variance):
        """P(y = 1) given u, which is p on average over u ~ N(0, variance)."""
        return special.ndtr(special.ndtri(p) * self.shrunk_by(variance) + u)


PROBIT = Probit()
