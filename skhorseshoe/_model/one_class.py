"""The probability of one class of more, for answers about it and the rest; fits are of all classes.

Such a class has several linear predictors: eta (n, m q) of n rows, the q of a draw one after the other.
"""

import numpy as np
from scipy import special

from . import phi_series
from .multinomial_probit import MultinomialProbit
from .probit import Probit


class OneClass(Probit):
    """What such likelihoods have in common."""

    number = None  # type: ignore[assignment]
    averages_exactly = False
    log_density = None  # type: ignore[assignment]


class BetweenCuts(OneClass):
    """P(y = k) = Phi(eta_k) - Phi(eta_k+1) of ordered classes, with P(y >= k) = Phi(eta_k), 1 of the lowest."""

    name = "ordered probit"
    n_predictors = 2
    series = phi_series  # of each Phi

    def __init__(self, is_lowest):
        self._is_lowest = is_lowest

    def probability(self, eta, ops=None, out=None):
        """P(y is this class) (n, m)."""
        low, high = self._ends(eta)
        flipped = low + high > 0  # to the lower tail, where differences keep their digits
        sign = np.where(flipped, -1.0, 1.0)
        return sign * (special.ndtr(sign * low) - special.ndtr(sign * high))

    def averages(self, eta, ops=None):
        """Averages over the draws of P(y is another class) and P(y is this one); (n, 2)."""
        low, high = self._ends(eta)
        others = special.ndtr(-low) + special.ndtr(high)
        return np.stack([others, self.probability(eta)], axis=-1).mean(axis=1)

    def of_each(self, changes):
        """Changes of P(y is this class) (m,) from those of Phi of its linear predictors (2 m,)."""
        low, high = changes[::2], changes[1::2]
        return -high if self._is_lowest else low - high

    def _ends(self, eta):
        return np.full_like(eta[:, ::2], np.inf) if self._is_lowest else eta[:, ::2], eta[:, 1::2]


class OneUtility(OneClass):
    """P(y = k) of classes without an order, with eta their utilities."""

    name = "multinomial probit"
    series = None  # type: ignore[assignment]

    def __init__(self, place, n_classes):
        self._place, self.n_predictors, self._of_all = place, n_classes, MultinomialProbit(n_classes)

    def probability(self, eta, ops, out=None):
        """P(y is this class) (n, m)."""
        return ops.class_probabilities(self._of_all.of_utilities(eta), self._of_all)[:, self._place]

    def averages(self, eta, ops):
        """Averages over the draws of P(y is another class) and P(y is this one); (n, 2)."""
        p = ops.average_class_probabilities(self._of_all.of_utilities(eta), self._of_all)
        return np.stack([np.delete(p, self._place, axis=1).sum(axis=1), p[:, self._place]], axis=1)


def one_class(place, n_predictors):
    """The likelihood of a class. place : among those without an order; of ordered ones "lowest" or "between"."""
    return BetweenCuts(place == "lowest") if isinstance(place, str) else OneUtility(place, n_predictors)
