"""The scales given the coefficients: tau with every lambda_j integrated out, then lambda_j given tau, both exact.

With b_j = beta_j^2 / (2 tau^2), the horseshoe's marginal law of a coefficient (Carvalho, Polson & Scott 2010) is
p(beta_j | tau) = (2 pi^3)^(-1/2) tau^-1 e^b E1(b), E1 being the exponential integral, and x = lambda_j^-2 given beta_j
and tau has a density proportional to e^(-b x) / (1 + x). Drawing (tau, lambda) together leaves no memory of the old
scales beside beta: it is what repeating the one-at-a-time updates for ever would give.
"""

import math

from numba import uint32

from .. import GLOBAL, LOCAL
from .jit import device, kernel
from .philox import exponential_1, philox, stream, unit, unit_1

_LEAST_B = 1e-290  # e^b E1(b) grows like -log(b): far below it nothing changes but the exponent's range
_WIDTH = 1.0  # of the slice in log tau
_FARTHEST = 300.0  # in log tau: coefficients that are all exactly zero have no law of tau, but an end there must be


@kernel
def draw_global_scale(beta, tau_sq_inv, tau_0, sweep, k0, k1, out):
    """tau^-2 given beta (n_chains, p), from the current value; tau ~ C+(0, tau_0). Slice sampling (Neal 2003) in
    log tau, stepping out and shrinking, which leaves the law of tau given beta exactly as it is."""
    for c in range(beta.shape[0]):
        st = stream(c, GLOBAL, 0)
        now = -0.5 * math.log(tau_sq_inv[c])
        level = _log_density(beta[c], now, tau_0) - exponential_1(uint32(0), uint32(sweep), uint32(0), st, k0, k1)
        low = now - _WIDTH * unit_1(uint32(0), uint32(sweep), uint32(1), st, k0, k1)
        high = low + _WIDTH
        while low > -_FARTHEST and _log_density(beta[c], low, tau_0) > level:
            low -= _WIDTH
        while high < _FARTHEST and _log_density(beta[c], high, tau_0) > level:
            high += _WIDTH
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
        product *= scaled_exponential_integral(max(beta[j] * beta[j] * half_tau_sq_inv, _LEAST_B))
        if not 1e-200 < product < 1e200:  # one logarithm for many factors
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@kernel
def draw_local_scales(beta, tau_sq_inv, sweep, k0, k1, out):
    """x_j = lambda_j^-2 given beta and tau; (n_chains, p). Rejection, on y = 1 + x, whose density is e^(-b y) / y
    above 1: from e^(-b y) where b > 1; else from 1 / y below 1 / b and from b e^(-b y) above."""
    for c in range(beta.shape[0]):
        st = stream(c, LOCAL, 0)
        for j in range(beta.shape[1]):
            b = max(0.5 * beta[c, j] * beta[c, j] * tau_sq_inv[c], _LEAST_B)
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
        y = -8.677337204770125e-18
        y = y * b + 1.6537983849091297e-16
        y = y * b - 2.9871733327421158e-15
        y = y * b + 5.0981091545465446e-14
        y = y * b - 8.193389712664089e-13
        y = y * b + 1.2353110643708935e-11
        y = y * b - 1.7397297489890083e-10
        y = y * b + 2.27746439867652e-09
        y = y * b - 2.755731922398589e-08
        y = y * b + 3.0619243582206544e-07
        y = y * b - 3.1001984126984127e-06
        y = y * b + 2.834467120181406e-05
        y = y * b - 0.0002314814814814815
        y = y * b + 0.0016666666666666668
        y = y * b - 0.010416666666666666
        y = y * b + 0.05555555555555555
        y = y * b - 0.25
        y = y * b + 1.0
        return math.exp(b) * (y * b - math.log(b) - 0.5772156649015329)
    u = (b - 4.0) / (b + 2.0)
    y = 1.0473598476601479e-08
    y = y * u + 4.989906789127274e-08
    y = y * u - 4.9849271023022794e-08
    y = y * u - 8.298884504413557e-08
    y = y * u + 2.357845506908514e-08
    y = y * u + 3.6743326389511316e-07
    y = y * u - 3.3879138835855337e-07
    y = y * u + 7.594392140287119e-07
    y = y * u - 1.4843791276152463e-06
    y = y * u + 4.838800514027977e-06
    y = y * u - 8.736382938717849e-06
    y = y * u + 2.6510454413261257e-05
    y = y * u - 5.2190644965630525e-05
    y = y * u + 0.00016177252736568137
    y = y * u - 0.0003379862490006253
    y = y * u + 0.001128955491913729
    y = y * u - 0.00250785254295449
    y = y * u + 0.010133650750139046
    y = y * u - 0.024300313655040845
    y = y * u + 0.1903694970313361
    y = y * u + 0.8253825996042264
    return y / b
