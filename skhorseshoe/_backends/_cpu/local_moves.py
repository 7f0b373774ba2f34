"""Moves of some lambda_j with all coefficients integrated out of a Gaussian.

For one chain, M = H + D is the precision of beta, m its mean and P = M^-1. Without column j's own prior, of precision
d_j = tau^-2 lambda_j^-2, the law of beta_j alone is N(c, v), v = P_jj / (1 - d_j P_jj), c = m_j / (1 - d_j P_jj). So
lambda_j given the other scales has a density proportional to

    N(c; 0, v + lambda_j^2 tau^2) / (1 + lambda_j^2)

and with another d_j, P and m follow by the formula of Sherman & Morrison.
"""

import math

from numba import uint32

from .. import LOCAL_SLICE
from ..constants import LEAST_FREE, LOCAL_WIDTH
from .jit import device, kernel
from .philox import exponential_1, stream, unit_1


@kernel
def move_local_scales(P, m, x, tau_sq_inv, chain, sweep, k0, k1):
    """Slice steps in the log lambda_j of k columns, to the last and back to the first; x (k,) = lambda_j^-2 in place.

    P (k, k), m (k,) : of these columns; overwritten. There and back, the move is its own mirror image.
    """
    st = stream(chain, LOCAL_SLICE, 0)
    k = len(m)
    for step in range(2 * k):
        j = step if step < k else 2 * k - 1 - step
        d = tau_sq_inv * x[j]
        free = 1.0 - d * P[j, j]
        if not free > LEAST_FREE:
            continue
        v, c = P[j, j] / free, m[j] / free
        x[j] = math.exp(-2.0 * _slice(-0.5 * math.log(x[j]), v, c, tau_sq_inv, step, sweep, st, k0, k1))
        change = tau_sq_inv * x[j] - d
        factor = change / (1.0 + change * P[j, j])
        column, mean = P[:, j].copy(), m[j]
        for a in range(k):
            m[a] -= factor * mean * column[a]
            for b in range(k):
                P[a, b] -= factor * column[a] * column[b]


@device
def _slice(now, v, c, tau_sq_inv, step, sweep, st, k0, k1):
    """The next log lambda: slice sampling, stepping out and shrinking (Neal 2003)."""
    level = _log_density(now, v, c, tau_sq_inv) - exponential_1(0, uint32(sweep), step, st, k0, k1)
    if level == -math.inf:
        return now
    low = now - LOCAL_WIDTH * unit_1(1, uint32(sweep), step, st, k0, k1)
    high = low + LOCAL_WIDTH
    while _log_density(low, v, c, tau_sq_inv) > level:
        low -= LOCAL_WIDTH
    while _log_density(high, v, c, tau_sq_inv) > level:
        high += LOCAL_WIDTH
    for attempt in range(2, 200):
        proposed = low + (high - low) * unit_1(attempt, uint32(sweep), step, st, k0, k1)
        if _log_density(proposed, v, c, tau_sq_inv) >= level:
            return proposed
        if proposed < now:
            low = proposed
        else:
            high = proposed
    return now  # the slice has shrunk to the current point


@device
def _log_density(log_lambda, v, c, tau_sq_inv):
    """Of log lambda_j, up to a constant; it falls at both ends at least like exp(-|log lambda_j|)."""
    lambda_sq = math.exp(2.0 * log_lambda)
    variance = v + lambda_sq / tau_sq_inv
    if v > (1.0 - LEAST_FREE) * variance:
        return -math.inf
    return log_lambda - math.log1p(lambda_sq) - 0.5 * (math.log(variance) + c * c / variance)
