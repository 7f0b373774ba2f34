"""The scales given the coefficients: tau with every lambda_j integrated out, then lambda_j given tau, both exact.

With b_j = beta_j^2 / (2 tau^2), the horseshoe's marginal law of a coefficient (Carvalho, Polson & Scott 2010) is
p(beta_j | tau) = (2 pi^3)^(-1/2) tau^-1 e^b E1(b), E1 being the exponential integral, and x = lambda_j^-2 given beta_j
and tau has a density proportional to e^(-b x) / (1 + x). Drawing (tau, lambda) together leaves no memory of the old
scales beside beta: it is what repeating the one-at-a-time updates for ever would give.
"""

import math

from numba import uint32

from .. import GLOBAL, LOCAL
from ..constants import E1_FAR, E1_NEAR, EULER, FARTHEST, LEAST_B, TAU_WIDTH
from .arithmetic import multiply_in
from .jit import device, kernel, polynomial
from .philox import exponential_1, philox, stream, unit, unit_1

_e1_near, _e1_far = polynomial(E1_NEAR), polynomial(E1_FAR)


@kernel
def draw_global_scale(beta, tau_sq_inv, tau_0, sweep, k0, k1, out):
    """tau^-2 given beta (n_chains, p), from the current value; tau ~ C+(0, tau_0). Slice sampling (Neal 2003) in
    log tau, stepping out and shrinking, which leaves the law of tau given beta exactly as it is."""
    for c in range(beta.shape[0]):
        st = stream(c, GLOBAL, 0)
        now = -0.5 * math.log(tau_sq_inv[c])
        level = _log_density(beta[c], now, tau_0) - exponential_1(uint32(0), uint32(sweep), uint32(0), st, k0, k1)
        low = now - TAU_WIDTH * unit_1(uint32(0), uint32(sweep), uint32(1), st, k0, k1)
        high = low + TAU_WIDTH
        while low > -FARTHEST and _log_density(beta[c], low, tau_0) > level:
            low -= TAU_WIDTH
        while high < FARTHEST and _log_density(beta[c], high, tau_0) > level:
            high += TAU_WIDTH
        attempt = 0
        while True:
            proposed = low + (high - low) * unit_1(uint32(attempt), uint32(sweep), uint32(2), st, k0, k1)
            if _log_density(beta[c], proposed, tau_0) >= level:
                break
            if proposed < now:
                low = proposed
            else:
                high = proposed
            attempt += 1
            if attempt == 200:  # the slice has shrunk to the current point
                proposed = now
                break
        out[c] = math.exp(-2.0 * proposed)


@device
def _log_density(beta, log_tau, tau_0):
    """log p(log tau | beta) up to a constant: the half-Cauchy prior, the Jacobian, and sum_j log p(beta_j | tau)."""
    half_tau_sq_inv = 0.5 * math.exp(-2.0 * log_tau)
    ratio = math.exp(log_tau) / tau_0
    total = log_tau - math.log1p(ratio * ratio) - beta.shape[0] * log_tau
    product = 1.0
    for j in range(beta.shape[0]):
        factor = scaled_exponential_integral(max(beta[j] * beta[j] * half_tau_sq_inv, LEAST_B))
        total, product = multiply_in(total, product, factor)
    return total + math.log(product)


@kernel
def draw_local_scales(beta, tau_sq_inv, sweep, k0, k1, out):
    """x_j = lambda_j^-2 given beta and tau; (n_chains, p). Rejection, on y = 1 + x, whose density is e^(-b y) / y
    above 1: from e^(-b y) where b > 1; else from 1 / y below 1 / b and from b e^(-b y) above."""
    for c in range(beta.shape[0]):
        st = stream(c, LOCAL, 0)
        for j in range(beta.shape[1]):
            b = max(0.5 * beta[c, j] * beta[c, j] * tau_sq_inv[c], LEAST_B)
            out[c, j] = _local_precision(b, sweep, j, st, k0, k1)


@device
def _local_precision(b, sweep, j, st, k0, k1):
    x = 0.0
    log_range = -math.log(b)  # of y below 1 / b
    below = log_range * math.exp(-b)
    for attempt in range(500):  # each accepts with probability > 0.4
        e = exponential_1(uint32(2 * attempt), uint32(sweep), uint32(j), st, k0, k1)
        w0, w1, w2, w3 = philox(uint32(2 * attempt + 1), uint32(sweep), uint32(j), st, k0, k1)
        u, v = unit(w0, w1), unit(w2, w3)
        if b > 1.0:
            x = e / b
            if v * (1.0 + x) < 1.0:
                break
        else:
            share = below / (below + 0.36787944117144233)
            if u < share:
                x = math.expm1(u / share * log_range)
                if v < math.exp(-b * x):
                    break
            else:
                x = (1.0 + e) / b - 1.0
                if v * (1.0 + e) < 1.0:
                    break
    return x


@device
def scaled_exponential_integral(b):
    """e^b E1(b) for b > 0, relative error below 1e-13: the power series below 1, above it an expansion in
    (b - 4) / (b + 2)."""
    if b < 1.0:
        return math.exp(b) * (_e1_near(b) * b - math.log(b) - EULER)
    return _e1_far((b - 4.0) / (b + 2.0)) / b
