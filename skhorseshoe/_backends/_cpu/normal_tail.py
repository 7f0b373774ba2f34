"""The tail of the normal distribution, in loops that vectorise.

P(N > t) = exp(-t^2/2) erfcx(t / sqrt 2) / 2, and (1 + 2x) erfcx(x) is a smooth function of (x - 3.75) / (x + 3.75) on
the whole half-line (Shepherd & Laframboise 1981, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
0 <= x < inf"). The coefficients are those of a Chebyshev expansion to 1.3e-16, rewritten in powers.
"""

import math

import numpy as np
from numba import int64
from scipy.special import log_ndtr

from ..constants import DENSITY_AT_0, ERFCX, FAR, TAIL_END
from .jit import REORDER_SUMS, device, polynomial

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which then is in the low bits
_LOG_2PI = math.log(2 * math.pi)
_LANES = 32  # products side by side
_erfcx = polynomial(ERFCX)  # (1 + 2x) erfcx(x) at (x - 3.75) / (x + 3.75)
_atanh = polynomial([1 / k for k in range(21, 0, -2)])  # atanh(s) / s at s^2, for |s| <= 0.172
_exp = polynomial([1 / math.factorial(k) for k in range(13, -1, -1)])  # at |r| <= log(2) / 2, to 1e-17 beside rounding


def fisher_weight(eta):
    """phi(eta)^2 / (Phi(eta) Phi(-eta)): the information of a row about its linear predictor; an array of any shape."""
    return np.exp(-(eta**2) - _LOG_2PI - log_ndtr(eta) - log_ndtr(-eta))


def information_weights(X, coef, intercept):
    """The Fisher information of each row's linear predictor, averaged over the coefficients (m, p); (n,)."""
    return fisher_weight(X @ coef.T + intercept).mean(axis=1)


@device
def upper_tail(t, scratch, out):
    """out[i] = P(N > |t[i]|), float64, relative error below 1e-13 for |t| up to 37.3; scratch : as long as t."""
    _exp_half_square(t, scratch, out)
    for i in range(t.shape[0]):
        x = min(abs(t[i]), TAIL_END) * 0.7071067811865476
        out[i] *= 0.5 * _erfcx((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


@device
def log_cdf(t, scratch, log_phi, ratio):
    """log Phi(t) and phi(t) / Phi(t), float64, relative error below 1e-12 for t from -40 to 37.3.

    For larger t both stay at what they are there, -1e-304 and 1e-303; for smaller t they are finite down to -1e150.

    All arguments are of the length of t, which is not changed. With g = erfcx(|t| / sqrt 2) / 2 and e = exp(-t^2/2),
    Phi(t) is e g for t < 0 and 1 - e g for t >= 0; the logarithm of e g is -t^2/2 + log g, so that nothing underflows.
    """
    n = t.shape[0]
    bits = scratch.view(np.int64)
    _exp_half_square(t, scratch, ratio)
    for i in range(n):
        e = ratio[i]
        x = min(abs(t[i]), FAR) * 0.7071067811865476
        g = 0.5 * _erfcx((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)
        negative = t[i] < 0.0
        v = g if negative else 1.0 - e * g  # what the logarithm is taken of, in (0, 1]
        ratio[i] = DENSITY_AT_0 / g if negative else DENSITY_AT_0 * e / v
        scratch[i] = v
        log_phi[i] = -0.5 * e * g if negative else -e * g  # v - 1 to full accuracy, where it is wanted
    for i in range(n):
        exponent = float(bits[i] >> int64(52)) - 1022.0
        near = scratch[i] > 0.7071067811865476
        bits[i] = (bits[i] & int64(0xFFFFFFFFFFFFF)) | int64(0x3FE0000000000000)  # v 2^-exponent, in [1/2, 1)
        low = scratch[i] < 0.7071067811865476
        m = 2.0 * scratch[i] if low else scratch[i]
        exponent = exponent - 1.0 if low else exponent
        minus_one = log_phi[i] if near and t[i] >= 0.0 else m - 1.0
        s = minus_one / (2.0 + minus_one)
        exponent = 0.0 if near else exponent
        far = min(abs(t[i]), FAR)
        square = 0.5 * far * far if t[i] < 0.0 else 0.0
        log_phi[i] = (2.0 * s * _atanh(s * s) + exponent * 0.6931471805599453) - square


@device(fastmath=REORDER_SUMS)
def sum_log_cdf(t, weight, scratch, e):
    """sum w log Phi(t), float64, with an error that is small beside 1e-15 for each number; fewer operations than
    ``log_cdf`` takes. weight : w, or (0,) where each is 1. scratch, e : as long as t.

    Without weights, logarithms are taken of products of up to 16 numbers, none of which is below 1e-19 for t above
    -1e18.
    """
    n, total = t.shape[0], 0.0
    _exp_half_square(t, scratch, e)
    for i in range(n):
        x = min(abs(t[i]), FAR) * 0.7071067811865476
        inverse = 1.0 / ((x + 3.75) * (1.0 + 2.0 * x))
        g = 0.5 * _erfcx((x - 3.75) * (1.0 + 2.0 * x) * inverse) * (x + 3.75) * inverse
        e[i] = g if t[i] < 0.0 else 1.0 - e[i] * g
        below = max(min(t[i], 0.0), -FAR)
        scratch[i] = 0.5 * below * below
    if weight.shape[0]:
        for i in range(n):
            total += weight[i] * (math.log(e[i]) - scratch[i])
        return total
    for i in range(n):
        total -= scratch[i]
    for start in range(0, n, 16 * _LANES):
        stop = min(n, start + 16 * _LANES)
        for first in range(start + _LANES, stop, _LANES):
            for i in range(min(_LANES, stop - first)):
                e[start + i] *= e[first + i]
        for i in range(min(_LANES, stop - start)):
            total += math.log(e[start + i])
    return total


@device
def _exp_half_square(t, scratch, out):
    """out[i] = exp(-t[i]^2 / 2), |t| held at TAIL_END; scratch : as long as t."""
    bits = scratch.view(np.int64)
    for i in range(t.shape[0]):
        size = min(abs(t[i]), TAIL_END)
        scratch[i] = _ROUND - 0.5 * size * size * _LOG2_E
    for i in range(t.shape[0]):
        size = min(abs(t[i]), TAIL_END)
        k = scratch[i] - _ROUND
        out[i] = _exp((-0.5 * size * size - k * _LN2_HIGH) - k * _LN2_LOW)
    for i in range(t.shape[0]):
        bits[i] = (bits[i] << int64(52)) + (int64(1023) << int64(52))
    for i in range(t.shape[0]):
        out[i] *= scratch[i]
