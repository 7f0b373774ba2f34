"""The Gaussian of split Hamiltonian Monte Carlo, for some of the chains in one call without the GIL.

N(m, M^-1), M = H + diag(d) = L L', m = M^-1 b, with d = tau^-2 lambda^-2 for the shrunk coefficients and 0 for the
others. L is the lower triangle of a row-major matrix. The chains are ``first`` to ``last - 1``; arrays of them are
float64 and overwritten. What cannot be factorised is told by the number of a minor, 0 where all went well.
"""

import math

import numpy as np
from numba import uint32

from .. import ACCEPT, HELD, LOCAL_SLICE, MOMENTUM, SWAP, SWAP_ACCEPT, log_half_cauchy
from ..constants import HALF_HELD, LEAST_FREE, LOCAL_WIDTH
from ..lines import LARGEST
from .arithmetic import add_square, dot, multiply_in, solve, solve_transposed, transposed_product
from .jit import device, kernel
from .lapack import UPPER, add_products, factorise, solve_all
from .philox import exponential_1, fill_units, normal_and_unit, stream, unit_1

_log_half_cauchy = device(log_half_cauchy)


@kernel
def begin_path(H, b, reference, state, sweep, k0, k1, same_scales, routines, first, last, gaussian, path):
    """L, m and the normalising constant; u = L'(beta - m), v ~ N(0, I), L^-1 grad U and U + (u'u + v'v) / 2.

    reference : the point, the slope (q,) and the information (q, q) of the quadratic. state : beta, lambda^-2, tau^-2,
    the log-likelihood and its gradient. gaussian : L, m and log_norm, which are there already if ``same_scales``.
    path : a ``Path``.
    """
    beta, lambda_sq_inv, tau_sq_inv, loglik, score = state
    factors, mean, log_norm = gaussian
    u, v, force, total = path
    offset = np.empty(b.shape[0])
    for c in range(first, last):
        if not same_scales:
            minor, log_norm[c] = _set(H, b, lambda_sq_inv[c], tau_sq_inv[c], routines, factors[c], mean[c])
            if minor:
                return minor
        st = stream(c, MOMENTUM, 0)
        for j in range(b.shape[0]):
            v[c, j], _ = normal_and_unit(0, uint32(sweep), j, st, k0, k1)
            offset[j] = beta[c, j] - mean[c, j]
        transposed_product(factors[c], offset, u[c])
        total[c] = _remainder(reference, beta[c], loglik[c], score[c], offset, force[c])
        solve(factors[c], force[c], force[c])
        total[c] += 0.5 * (dot(u[c], u[c]) + dot(v[c], v[c]))
    return 0


@kernel
def turn_path(angle, u, v, force):
    """A half-kick of v and a turn of (u, v) by an angle."""
    cos, sin = math.cos(angle), math.sin(angle)
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            kicked = v[c, j] - 0.5 * angle * force[c, j]
            v[c, j] = kicked * cos - u[c, j] * sin
            u[c, j] = u[c, j] * cos + kicked * sin


@kernel
def place_path(factors, mean, first, last, u, beta):
    """beta = m + L^-T u."""
    for c in range(first, last):
        solve_transposed(factors[c], u[c], beta[c])
        for j in range(u.shape[1]):
            beta[c, j] += mean[c, j]


@kernel
def kick_path(angle, reference, factors, beta, loglik, score, first, last, path):
    """L^-1 grad U at beta, a half-kick of v, and U + (u'u + v'v) / 2."""
    u, v, force, total = path
    offset = np.empty(u.shape[1])
    for c in range(first, last):
        total[c] = _remainder(reference, beta[c], loglik[c], score[c], offset, force[c])
        solve(factors[c], force[c], force[c])
        for j in range(u.shape[1]):
            v[c, j] -= 0.5 * angle * force[c, j]
        total[c] += 0.5 * (dot(u[c], u[c]) + dot(v[c], v[c]))


@kernel
def move_scales(H, b, tau_0, tau_step, n_moves, slow, sweep, k0, k1, routines, first, last, spare, gaussian, scales):
    """Moves of tau, of the lambda_j in ``slow`` and of tau again, u held, under the Gaussian alone.

    Metropolis steps in log tau leave |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau) p(log lambda) invariant. Some
    columns are held in each, see ``_hold``; for moves of lambda_j see ``_move_local_scales``. n_moves : of tau, an even
    number. tau_step : their standard deviation. spare : (q, q) scratch. scales : lambda^-2 and tau^-2, which move, and
    the share of the moves of tau accepted.
    """
    factors, mean, log_norm = gaussian
    lambda_sq_inv, tau_sq_inv, accepted = scales
    x, chance = np.empty((2, lambda_sq_inv.shape[1]))
    for c in range(first, last):
        accepted[c] = 0.0
        of_step, of_level = stream(c, SWAP, 0), stream(c, SWAP_ACCEPT, 0)
        for k in range(n_moves):
            if k == n_moves // 2 and slow.shape[0] > 0:
                own, tau = lambda_sq_inv[c], tau_sq_inv[c]
                minor = _move_slow(H, b, slow, sweep, k0, k1, routines, c, factors[c], mean[c], log_norm, own, tau)
                if minor:
                    return minor
            step, _ = normal_and_unit(0, uint32(sweep), k, of_step, k0, k1)
            proposed = tau_sq_inv[c] * math.exp(-2.0 * tau_step * step)
            level = log_norm[c] - exponential_1(uint32(0), uint32(sweep), uint32(k), of_level, k0, k1)
            level += _log_half_cauchy(tau_sq_inv[c] * tau_0**2) - _log_half_cauchy(proposed * tau_0**2)
            x[:] = lambda_sq_inv[c]
            level -= _hold(H, x, tau_sq_inv[c], tau_sq_inv[c] / proposed, k, chance, c, sweep, k0, k1)
            minor = _move_tau(H, b, x, proposed, level, routines, c, spare, factors[c], mean[c], log_norm)
            if minor < 0:
                tau_sq_inv[c] = proposed
                lambda_sq_inv[c] = x
                accepted[c] += 1.0 / n_moves
            elif minor:
                return minor
    return 0


@kernel
def accept_paths(change, new, old, sweep, k0, k1, chance):
    """Put the chains whose change of energy a Metropolis test rejects back to ``old``, from ``new``: tuples of arrays
    of a state. chance : (n_chains,) overwritten with the probabilities of acceptance."""
    beta, lambda_sq_inv, tau_sq_inv, loglik, score = new
    for c in range(change.shape[0]):
        threshold = exponential_1(uint32(0), uint32(sweep), uint32(0), stream(c, ACCEPT, 0), k0, k1)
        chance[c] = math.exp(-max(change[c], 0.0)) if change[c] == change[c] else 0.0
        if change[c] < threshold:  # which is False where the change is not a number
            continue
        tau_sq_inv[c], loglik[c] = old[2][c], old[3][c]
        beta[c], lambda_sq_inv[c], score[c] = old[0][c], old[1][c], old[4][c]


@device
def _hold(H, x, tau_sq_inv, growth, move, chance, chain, sweep, k0, k1):
    """Choose columns that are held while tau^2 grows by a factor: lambda_j tau stays, and x_j = lambda_j^-2 grows, in
    place. What that adds to the log-density.

    A column is held with probability h / (1 + h), h = lambda_j^2 tau^2 H_jj / ``HALF_HELD``. The choice is an unknown
    of its own: where it is not to hold, its probability is part of the law of tau.
    """
    p, n_held, gain, product = x.shape[0], 0, 0.0, 1.0
    fill_units(chance, uint32(sweep), move * p, stream(chain, HELD, 0), k0, k1)
    for j in range(p):
        size = min(H[j, j] / (tau_sq_inv * x[j] * HALF_HELD), LARGEST)
        if chance[j] * (1.0 + size) < size:
            n_held, size = n_held + 1, x[j]
            x[j] *= growth
        gain, product = multiply_in(gain, product, (1.0 + size) / (1.0 + growth * size))
    return gain + math.log(product) + 0.5 * n_held * math.log(growth)


@device
def _move_tau(H, b, lambda_sq_inv, proposed, level, routines, c, spare, L, mean, log_norm):
    """The Gaussian with tau^-2 as proposed, where its constant is above a level; -1 if so."""
    half = np.empty(b.shape[0])
    minor, norm = _factorise(H, b, lambda_sq_inv, proposed, routines, spare, half)
    if minor or not norm > level:
        return minor
    log_norm[c] = norm
    L[:] = spare
    solve_transposed(L, half, mean)
    return -1


@device
def _move_slow(H, b, slow, sweep, k0, k1, routines, c, L, mean, log_norm, lambda_sq_inv, tau_sq_inv):
    """Slice steps of the lambda_j in ``slow``."""
    q, k = b.shape[0], slow.shape[0]
    units, P, m, x = np.zeros((q, k)), np.zeros((k, k)), np.empty(k), np.empty(k)
    for i in range(k):
        units[slow[i], i] = 1.0
        m[i], x[i] = mean[slow[i]], lambda_sq_inv[slow[i]]
    solve_all(L, units, routines)
    add_products(units, P, True, routines)
    for a in range(k):
        for e in range(a):
            P[e, a] = P[a, e]
    _move_local_scales(P, m, x, tau_sq_inv, c, sweep, k0, k1)
    for i in range(k):
        lambda_sq_inv[slow[i]] = x[i]
    minor, log_norm[c] = _set(H, b, lambda_sq_inv, tau_sq_inv, routines, L, mean)
    return minor


@device
def _move_local_scales(P, m, x, tau_sq_inv, chain, sweep, k0, k1):
    """Slice steps in the log lambda_j of k columns, to the last and back to the first; x (k,) = lambda_j^-2 in place.

    P (k, k), m (k,) : of these columns, P = M^-1; overwritten. There and back, the move is its own mirror image.
    Without column j's own prior, of precision d_j = tau^-2 lambda_j^-2, the law of beta_j alone is N(c, v), v = P_jj /
    (1 - d_j P_jj), c = m_j / (1 - d_j P_jj). So lambda_j given the other scales has a density proportional to

        N(c; 0, v + lambda_j^2 tau^2) / (1 + lambda_j^2)

    and with another d_j, P and m follow by the formula of Sherman & Morrison.
    """
    st = stream(chain, LOCAL_SLICE, 0)
    k, column = len(m), np.empty(len(m))
    for step in range(2 * k):
        j = step if step < k else 2 * k - 1 - step
        d = tau_sq_inv * x[j]
        free = 1.0 - d * P[j, j]
        if not free > LEAST_FREE:
            continue
        v, c = P[j, j] / free, m[j] / free
        x[j] = math.exp(-2.0 * _slice(-0.5 * math.log(x[j]), v, c, tau_sq_inv, step, sweep, st, k0, k1))
        change = tau_sq_inv * x[j] - d
        factor, mean = -change / (1.0 + change * P[j, j]), m[j]
        column[:] = P[j]
        for a in range(k):
            m[a] += factor * mean * column[a]
        add_square(P, factor, column)


@device
def _slice(now, v, c, tau_sq_inv, step, sweep, st, k0, k1):
    """The next log lambda: slice sampling in an interval around the current one, which shrinks (Neal 2003)."""
    level = _log_density(now, v, c, tau_sq_inv) - exponential_1(uint32(0), uint32(sweep), uint32(step), st, k0, k1)
    if level == -math.inf:
        return now
    low = now - LOCAL_WIDTH * unit_1(uint32(1), uint32(sweep), uint32(step), st, k0, k1)
    high = low + LOCAL_WIDTH
    for attempt in range(2, 200):
        proposed = low + (high - low) * unit_1(uint32(attempt), uint32(sweep), uint32(step), st, k0, k1)
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
    odds = 1.0 + lambda_sq
    return log_lambda - 0.5 * (math.log(odds * odds * variance) + c * c / variance)


@device
def _set(H, b, lambda_sq_inv, tau_sq_inv, routines, L, mean):
    """L and m given the scales; a minor, and the logarithm of |D|^(1/2) |M|^(-1/2) exp(m' M m / 2)."""
    half = np.empty(b.shape[0])
    minor, norm = _factorise(H, b, lambda_sq_inv, tau_sq_inv, routines, L, half)
    solve_transposed(L, half, mean)
    return minor, norm


@device
def _factorise(H, b, lambda_sq_inv, tau_sq_inv, routines, L, half):
    """The same with L^-1 b in place of m."""
    d = np.zeros(b.shape[0])
    for j in range(lambda_sq_inv.shape[0]):
        d[j] = tau_sq_inv * lambda_sq_inv[j]
    minor = factorise(H, d, UPPER, routines, L)
    if minor:
        return minor, math.nan
    solve(L, b, half)
    norm, product = dot(half, half), 1.0
    for j in range(b.shape[0]):
        norm, product = multiply_in(norm, product, (d[j] if j < lambda_sq_inv.shape[0] else 1.0) / (L[j, j] * L[j, j]))
    return minor, 0.5 * (norm + math.log(product))


@device
def _remainder(reference, beta, loglik, score, offset, gradient):
    """U, and its gradient: that of the quadratic less the log-likelihood. offset : scratch."""
    point, slope, information = reference
    total = -loglik
    for j in range(beta.shape[0]):
        offset[j] = beta[j] - point[j]
    for j in range(beta.shape[0]):
        pull = dot(information[j], offset)
        total += offset[j] * (slope[j] - 0.5 * pull)
        gradient[j] = slope[j] - pull - score[j]
    return total
