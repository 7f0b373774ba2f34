"""The information of rows."""

import math

import numpy as np
from scipy.special import log_ndtr

_LOG_2PI = math.log(2 * math.pi)


def fisher_weight(eta):
    """phi(eta)^2 / (Phi(eta) Phi(-eta)): the information of a row about its linear predictor; an array of any shape."""
    return np.exp(-(eta**2) - _LOG_2PI - log_ndtr(eta) - log_ndtr(-eta))


def information_weights(X, coef, intercept):
    """The Fisher information of each row's linear predictor, averaged over the coefficients (m, p); (n,)."""
    return fisher_weight(X @ coef.T + intercept).mean(axis=1)
