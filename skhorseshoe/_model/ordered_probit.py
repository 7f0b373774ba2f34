"""The ordered probit likelihood: P(y = k) = Phi(c_k+1 - eta) - Phi(c_k - eta), k from 0 to K - 1.

Its other half is ``core/likelihoods/ordered_probit.hpp``. The first cut point c_1 is 0, since the intercept is in eta;
c_0 and c_K are infinite. The others, c_2 to c_K-1, are its own parameters, (..., K - 2).
"""

from math import log, pi

import numpy as np
from scipy import special

from .probit import Probit

_LEAST_SHARE = 1e-6
_LEAST = 1e-300  # of a probability that divides
_NARROW = 1e-3  # width of an interval, about its middle, where the difference of two tails would lose digits


class OrderedProbit(Probit):
    """For K classes, of which there are more than two. With eta, P(y > 0) is that of ``Probit``. What divides eta so
    that probabilities are means (``shrunk_by``) divides own too."""

    name = "ordered probit"
    number = 1
    has_latents = False
    largest_information, typical_information = 1.0, 0.5
    series = None  # type: ignore[assignment]

    def __init__(self, n_classes):
        self.n_classes, self.n_own = n_classes, n_classes - 2

    def probabilities(self, eta, own):
        """P(y = k) (..., K). own : cut points that broadcast with eta (...)."""
        low, high = self._ends(eta, own)
        flipped = low > 0  # to the lower tail, where differences keep their digits
        return special.ndtr(np.where(flipped, -low, high)) - special.ndtr(np.where(flipped, -high, low))

    def log_density_of_class(self, eta, y, own):
        """log P(y), y (...) from 0 on."""
        low, high = (np.take_along_axis(ends, y[..., None], -1)[..., 0] for ends in self._ends(eta, own))
        flipped = low > 0
        a, b = special.log_ndtr(np.where(flipped, -high, low)), special.log_ndtr(np.where(flipped, -low, high))
        widths = np.diff(own, axis=-1, prepend=0.0)  # of the classes between two cut points
        infinite = np.full((*widths.shape[:-1], 1), np.inf)
        width = np.concatenate([infinite, widths, infinite], axis=-1)
        width = np.take_along_axis(np.broadcast_to(width, (*y.shape, self.n_classes)), y[..., None], -1)[..., 0]
        middle = (low + high) / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            wide = b + np.log1p(-np.exp(a - b))
            narrow = -(middle**2) / 2 - log(2 * pi) / 2 + np.log(width) + np.log1p((middle**2 - 1) * width**2 / 24)
        return np.where(width * np.maximum(1, abs(middle)) < _NARROW, narrow, wide)

    def _ends(self, eta, own):
        """c_k - eta and c_k+1 - eta of all classes; (..., K) each."""
        eta = np.asarray(eta, float)[..., None]
        shape = np.broadcast_shapes(eta.shape[:-1], own.shape[:-1])
        ends = np.full((*shape, 1), -np.inf), np.zeros((*shape, 1)), np.broadcast_to(own, (*shape, self.n_own))
        cuts = np.concatenate([*ends, np.full((*shape, 1), np.inf)], axis=-1) - eta
        return cuts[..., :-1], cuts[..., 1:]

    def slopes(self, eta, own):
        """P(y = k) (..., K) and its derivatives by (eta, own), (..., K, K - 1)."""
        low, high = self._ends(eta, own)
        at_low, at_high = self.density(low), self.density(high)
        out = np.zeros((*low.shape, 1 + self.n_own))
        out[..., 0] = at_low - at_high
        for k in range(1, self.n_own + 1):  # a cut point is the upper end of a class and the lower one of the next
            out[..., k, k], out[..., k + 1, k] = at_high[..., k], -at_high[..., k]
        return self.probabilities(eta, own), out

    def fisher_information(self, eta, own):
        """The Fisher information of rows about (eta, own): that of eta (...), of both (..., K - 2), and of own: the
        diagonal of a matrix (..., K - 2) and the entries beside it (..., K - 3)."""
        low, high = self._ends(eta, own)
        p = np.maximum(self.probabilities(eta, own), _LEAST)
        at_low, at_high = self.density(low), self.density(high)
        slope = at_low - at_high  # of P(y = k) by eta; by cut k it is at_high[k - 1] for k - 1, and minus that for k
        of_cut = at_high[..., 1:-1]  # densities at c_2 to c_K-1
        both = of_cut * (slope[..., 1:-1] / p[..., 1:-1] - slope[..., 2:] / p[..., 2:])
        diagonal = of_cut**2 * (1 / p[..., 1:-1] + 1 / p[..., 2:])
        beside = -of_cut[..., :-1] * of_cut[..., 1:] / p[..., 2:-1]
        return (slope**2 / p).sum(axis=-1), both, diagonal, beside

    def information_at(self, shares):
        """As in ``Probit``, of a row whose classes have these probabilities (K,)."""
        ends = special.ndtri(np.cumsum(shares)[:-1])
        slopes = np.diff(self.density(ends), prepend=0.0, append=0.0)
        return float((slopes**2 / shares).sum())

    def first_own(self, shares):
        """The cut points with which the classes have these shares (K,) where all eta are alike."""
        shares = np.maximum(shares, _LEAST_SHARE)
        places = special.ndtri(np.cumsum(shares / shares.sum())[:-1])
        return places[1:] - places[0]
