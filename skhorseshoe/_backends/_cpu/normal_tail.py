"""The tail of the normal distribution (``core/normal_tail.hpp``), and the information of rows."""

import math

import numpy as np
from scipy.special import log_ndtr

from .library import function
from .passes import or_none

_LOG_2PI = math.log(2 * math.pi)
_upper_tails, _log_cdf_and_ratio, _sum_log_cdfs = map(function, ("upper_tails", "log_cdf_and_ratio", "sum_log_cdfs"))


def fisher_weight(eta):
    """phi(eta)^2 / (Phi(eta) Phi(-eta)): the information of a row about its linear predictor; an array of any shape."""
    return np.exp(-(eta**2) - _LOG_2PI - log_ndtr(eta) - log_ndtr(-eta))


def information_weights(X, coef, intercept):
    """The Fisher information of each row's linear predictor, averaged over the coefficients (m, p); (n,)."""
    return fisher_weight(X @ coef.T + intercept).mean(axis=1)


def upper_tail(t):
    """P(N > |t|), never 0; t float64 of any shape."""
    out = np.empty_like(t)
    _upper_tails(t, out, t.size)
    return out


def log_cdf_and_ratio(t):
    """log Phi(t) and phi(t) / Phi(t); t float64 of any shape."""
    log_cdf, ratio = np.empty((2, *t.shape))
    _log_cdf_and_ratio(t, log_cdf, ratio, t.size)
    return log_cdf, ratio


def sum_log_cdf(t, weight):
    """sum w log Phi(t), float64; weight : w, or (0,) where each is 1."""
    out = np.empty(1)
    _sum_log_cdfs(t.copy(), or_none(weight), len(t), out)
    return out[0]
