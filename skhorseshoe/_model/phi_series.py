"""Sums over rows of Phi(eta + d) - Phi(eta), for many shifts d from one pass over the rows.

Phi(eta + d) - Phi(eta) = phi(eta) sum_{k >= 1} (-1)^(k - 1) He_{k - 1}(eta) d^k / k! is Taylor's series, with He the
Hermite polynomials of probability theory. By Cramér's bound, |He_k(x)| exp(-x^2 / 4) < 1.09 sqrt(k!), the remainder
after K terms is less than 0.44 |d|^(K + 1) sqrt(K!) / (K + 1)!, for any eta.
"""

import numpy as np
from scipy.special import gammaln

_ERROR = 1e-13  # largest error of a sum whose weights sum to 1
_MOST_TERMS = 32  # largest number of terms
_K = np.arange(1, _MOST_TERMS + 1)
_REACH = np.exp((np.log(_ERROR / 0.44) + gammaln(_K + 2) - gammaln(_K + 1) / 2) / (_K + 1))  # largest shift for k terms
FURTHEST = _REACH[-1]  # largest shift, 1.6


def n_terms(furthest):
    """The number of terms for shifts up to these, (g,)."""
    return np.searchsorted(_REACH, furthest) + 1


def term_sums(eta, weights, numbers, ops):
    """Weighted sums of He_{k - 1}(eta) phi(eta) over rows, for k = 1, 2, ...; (m, g_k) for the groups with k terms.

    eta : (m, n), m draws of the linear predictors of n rows. weights : (n, g), of groups of rows. Both are on the
    device of the back end ``ops``. numbers : (g,) of terms of each group, descending.
    """
    (m, n), sums = eta.shape, [0.0] * numbers[0]
    step = max(1, ops.PREDICTORS_AT_ONCE // m)
    for start in range(0, n, step):
        e, w = eta[:, start : start + step].copy(), weights[start : start + step]
        term, previous = ops.exp(-0.5 * e * e) / np.sqrt(2 * np.pi), 0.0 * e
        for k in range(numbers[0]):
            sums[k] = sums[k] + term @ w[:, : np.count_nonzero(numbers > k)]
            ops.next_hermite(e, term, previous, k)
            previous, term = term, previous
    return sums


def changes(sums, groups, shifts):
    """Sums of Phi(eta + d) - Phi(eta) over the rows of a group, for each shift d; (m, s).

    sums : from ``term_sums``. groups : (s,) of the shifts. shifts : (m, s).
    """
    out = np.zeros_like(shifts)
    for k in range(len(sums), 0, -1):  # Horner's rule, for sum_k (-1)^(k - 1) sums_k d^k / k!
        has_term = groups < sums[k - 1].shape[1]
        out[:, has_term] = (sums[k - 1][:, groups[has_term]] - out[:, has_term]) * (shifts[:, has_term] / k)
    return out
