"""``core/normal_tail.hpp`` for the kernels that Numba still compiles.

P(N > t) = exp(-t^2/2) erfcx(t / sqrt 2) / 2, and (1 + 2x) erfcx(x) is a smooth function of (x - 3.75) / (x + 3.75) on
the whole half-line (Shepherd & Laframboise 1981, "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in
0 <= x < inf"). The coefficients are those of a Chebyshev expansion to 1.3e-16, rewritten in powers.
"""

import math

import numpy as np
from numba import int64

from ..constants import CERTAIN, DENSITY_AT_0, ERFCX, EXP, FAR, TAIL_END
from .jit import CONTRACT, REORDER_SUMS, device, polynomial

_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 0.6931471803691238, 1.9082149292705877e-10
_ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it rounds to an integer, which then is in the low bits
_LANES = 32  # products side by side
_erfcx = polynomial(ERFCX)  # (1 + 2x) erfcx(x) at (x - 3.75) / (x + 3.75)
_exp = polynomial(EXP)


@device
def upper_tail(t, scratch, out):
    """out[i] = P(N > |t[i]|), float64, relative error below 1e-13 for |t| up to 37.3; scratch : as long as t."""
    _exp_half_square(t, scratch, out)
    for i in range(t.shape[0]):
        x = min(abs(t[i]), TAIL_END) * 0.7071067811865476
        out[i] *= 0.5 * _erfcx((x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x)


@device(fastmath=CONTRACT)
def cdf_parts(t, squares, e, v):
    """v and squares such that log Phi(t) is log v - squares, and e = exp(-t^2/2); float64, all as long as t.

    With g = erfcx(|t| / sqrt 2) / 2, Phi(t) is e g for t < 0 and 1 - e g for t >= 0: v is g or 1 - e g, in (0, 1], and
    t^2/2 stands apart, so that nothing underflows. Relative errors are below 1e-13.
    """
    _exp_half_square(t, squares, e)
    for i in range(t.shape[0]):
        x = min(abs(t[i]), FAR) * 0.7071067811865476
        inverse = 1.0 / ((x + 3.75) * (1.0 + 2.0 * x))
        g = 0.5 * _erfcx((x - 3.75) * (1.0 + 2.0 * x) * inverse) * (x + 3.75) * inverse
        v[i] = g if t[i] < 0.0 else 1.0 - e[i] * g
        below = max(min(t[i], 0.0), -FAR)
        squares[i] = 0.5 * below * below


@device(fastmath=CONTRACT)
def mills_ratio(t, e, v, ratio):
    """phi(t) / Phi(t), from what ``cdf_parts`` gives; relative error below 1e-12 up to 37.3, and finite beyond."""
    for i in range(t.shape[0]):
        ratio[i] = DENSITY_AT_0 * (1.0 if t[i] < 0.0 else e[i]) / v[i]


@device
def mostly_certain(t, weight):
    """Whether half of the t or more are at least ``CERTAIN``, where Phi is 1 to rounding; False where rows have
    weights, which would have to move with them."""
    if weight.shape[0]:
        return False
    n = 0
    for i in range(t.shape[0]):
        n += t[i] >= CERTAIN
    return 2 * n >= t.shape[0]


@device
def leave_out_certain(t, weight):
    """Move the t that matter to the front; how many do. Where most rows are certain, as separated classes make them,
    these are the others, else all."""
    if not mostly_certain(t, weight):
        return t.shape[0]
    left = 0
    for i in range(t.shape[0]):
        t[left] = t[i]
        left += not t[i] >= CERTAIN
    return left


@device
def log_likelihood(line, step, work):
    """sum w log Phi(s (eta + step change)). line : eta, its change, y and w, of which y has as many as there are rows.
    work : (4, at least as many) float64."""
    eta, change, y, row_weight = line
    rows = y.shape[0]
    t = work[0, :rows]
    for r in range(rows):
        value = eta[r] + step * change[r]
        t[r] = value if y[r] else -value
    return sum_log_cdf(t, row_weight, work[1, :rows], work[2, :rows], work[3, :rows])


@device
def sum_log_cdf(t, weight, squares, e, v):
    """sum w log Phi(t), float64, with an error that is small beside 1e-15 for each number. weight : w, or (0,) where
    each is 1. The others are as long as t, and all but the weights are overwritten."""
    n = leave_out_certain(t, weight)
    cdf_parts(t[:n], squares[:n], e[:n], v[:n])
    return sum_logs(weight, squares[:n], v[:n])


@device(fastmath=REORDER_SUMS)
def sum_logs(weight, squares, v):
    """sum w (log v - squares); v is overwritten.

    Without weights, logarithms are taken of products of up to 16 numbers, none of which is below 1e-19 for t above
    -1e18.
    """
    n, total = v.shape[0], 0.0
    if weight.shape[0]:
        for i in range(n):
            total += weight[i] * (math.log(v[i]) - squares[i])
        return total
    for i in range(n):
        total -= squares[i]
    for start in range(0, n, 16 * _LANES):
        stop = min(n, start + 16 * _LANES)
        for first in range(start + _LANES, stop, _LANES):
            for i in range(min(_LANES, stop - first)):
                v[start + i] *= v[first + i]
        for i in range(min(_LANES, stop - start)):
            total += math.log(v[start + i])
    return total


@device(fastmath=CONTRACT)
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
