"""Paths of the coefficients in the coordinates of the prior, for some of the chains in one call without the GIL.

A coefficient that is shrunk is tau g(v), with g of ``horseshoe_quantile.py`` and v a standard normal variable. Its
coordinate is w = v + tau g(v) / d. Near zero that is v. Far from zero the coefficient moves by d while w moves by 1:
some standard deviations of what the data know. The logarithm of the density of w is -v^2/2 - log(1 + tau g'(v) / d).
The other coordinates are the coefficients that are not shrunk, and log tau. All have a centre and a size: u = (w -
centre) / size.
"""

import math

import numpy as np
from numba import int32, uint32, uint64

from .. import MOMENTUM
from ..horseshoe_quantile import COARSE, EDGE, END, FINE, FIRST_COARSE, LEAST_LOG, STARTS
from .jit import REORDER_SUMS, device, kernel
from .philox import normal_and_unit, stream

_LAST = int(END * COARSE) - 1  # of v COARSE, as a whole number
_SMOOTH = 0.1  # of v, below which the second derivative of g, which has a pole at zero, is taken down to zero
_FAR = 0.5  # of tau g(v) / d, above which logarithms are the better way to v
_ENOUGH = 1e-4  # of a step, relative, that a series takes
_ROUGH, _CLOSE = 1e-3, 1e-5  # steps of Newton's, the second relative, after which a few digits, and ten, are right
_MOST = 30  # of those
_LEAST = 1e-300  # of v, by which something is divided

_TILE, _PARTS = 128, 15  # columns that are placed together, and numbers of each in between
_W, _RATIO, _V, _G, _G1, _G2, _STEP, _R, _A, _A1, _A2, _A3, _GROWTH, _BETA, _SLOPE = range(0, _PARTS * _TILE, _TILE)
_CARRIED, _PULL = _A, _A1  # where cubics have been


@kernel
def begin_prior_path(fixed, coordinates, state, sweep, k0, k1, first, last, path, made):
    """u of a state, v ~ N(0, I), the force there and the energy.

    fixed : anchor and diagonal of the ``FixedPrior``. coordinates : centre and size (q + 1,), d (p,), tau_0, the table.
    state : beta, tau^-2, log-likelihood and score. path : a ``Path``. made : see ``place_prior_path``.
    """
    beta, tau_sq_inv, loglik, score = state
    centre, size, distance, _, table = coordinates
    again, tau_again = np.empty_like(beta), np.empty_like(tau_sq_inv)
    p, q = distance.shape[0], beta.shape[1]
    for c in range(first, last):
        log_tau, tau_inverse = -0.5 * math.log(tau_sq_inv[c]), math.sqrt(tau_sq_inv[c])
        for j in range(p):
            w = _coordinate(beta[c, j], tau_inverse, distance[j], table)
            path[0][c, j] = (w - centre[j]) / size[j]
        for j in range(p, q):
            path[0][c, j] = (beta[c, j] - centre[j]) / size[j]
        path[0][c, q] = (log_tau - centre[q]) / size[q]
        st = stream(c, MOMENTUM, 0)
        for j in range(q + 1):
            path[1][c, j], _ = normal_and_unit(0, uint32(sweep), j, st, k0, k1)
        _place(c, coordinates, path[0], again, tau_again, made)
        _kick(c, 0.0, fixed, size, beta, loglik, score, path, made)


@kernel
def place_prior_path(coordinates, u, first, last, beta, tau_sq_inv, made):
    """beta and tau^-2 at u; and ``made``, what the force needs beside the score: the derivatives of beta_j by w_j and
    by log tau, those of the logarithm of the prior by w_j, (n_chains, p) each; and that by log tau and minus the
    logarithm itself, (n_chains,)."""
    for c in range(first, last):
        _place(c, coordinates, u, beta, tau_sq_inv, made)


@kernel
def kick_prior_path(angle, fixed, coordinates, beta, loglik, score, first, last, path, made):
    """The force at beta, a half-kick of v, and the energy."""
    for c in range(first, last):
        _kick(c, angle, fixed, coordinates[1], beta, loglik, score, path, made)


@kernel
def prior_coordinates(coordinates, beta, tau_sq_inv, out):
    """The w of coefficients, the other coefficients, and log tau; (n_chains, q + 1)."""
    _, _, distance, _, table = coordinates
    p, q = distance.shape[0], beta.shape[1]
    for c in range(beta.shape[0]):
        out[c, q], tau_inverse = -0.5 * math.log(tau_sq_inv[c]), math.sqrt(tau_sq_inv[c])
        for j in range(p):
            out[c, j] = _coordinate(beta[c, j], tau_inverse, distance[j], table)
        out[c, p:q] = beta[c, p:]


@device
def _place(c, coordinates, u, beta, tau_sq_inv, made):
    """One chain. Columns go by as many as fit beside one another into the fastest memory, in loops that vectorise: the
    arrays that these see are parts of one, so that none can be taken for another."""
    centre, size, distance, tau_0, table = coordinates
    _, _, _, pull_of_tau, energy = made
    p, q = distance.shape[0], beta.shape[1]
    log_tau = centre[q] + size[q] * u[c, q]
    tau, tau_sq_inv[c] = math.exp(log_tau), math.exp(-2.0 * log_tau)
    work, places = np.empty(_PARTS * _TILE), np.empty(_TILE, np.uint32)
    squares, of_tau, log_total, product = 0.0, 0.0, 0.0, 1.0
    for first in range(0, p, _TILE):
        m = min(_TILE, p - first)
        for k in range(m):
            work[_W + k] = centre[first + k] + size[first + k] * u[c, first + k]
        for k in range(m):
            work[_RATIO + k] = tau / distance[first + k]
        _solve_tile(work, places, m, table[0].reshape(-1))
        for k in range(m):
            if work[_STEP + k] > _ENOUGH:
                solved = _solve(abs(work[_W + k]), work[_RATIO + k], table[0])
                work[_V + k], work[_G + k], work[_G1 + k], work[_G2 + k] = solved
        more, of_tile = _derive_tile(work, m, tau)
        squares, of_tau = squares + more, of_tau + of_tile
        for k in range(m):
            product *= work[_GROWTH + k]
            if product > 1e100:
                log_total, product = log_total + math.log(product), 1.0
        _write_tile(c, first, work, m, beta, made)
    beta[c, p:] = centre[p:q] + size[p:q] * u[c, p:q]
    odds = (tau / tau_0) ** 2
    energy[c] = 0.5 * squares + log_total + math.log(product) - log_tau + math.log1p(odds)
    pull_of_tau[c] = of_tau + (1.0 - odds) / (1.0 + odds)


@device(fastmath=REORDER_SUMS)
def _solve_tile(work, places, m, cubics):
    """v with v + ratio g(v) = abs(w), and g, g', g'' there, as ``_solve`` has them where two of its steps are enough;
    and how far the last step was, relative to v, infinite where the way there is another one."""
    for k in range(m):
        work[_V + k] = abs(work[_W + k])
    _quantile_tile(work, places, m, cubics)
    for k in range(m):
        ratio, v = work[_RATIO + k], work[_V + k]
        inverse = 1.0 / (1.0 + ratio * work[_G1 + k])
        by = ratio * work[_G + k]
        step = by * inverse
        work[_STEP + k] = math.inf if by > _FAR else 0.0
        work[_V + k] = max(v - step * (1.0 + 0.5 * step * ratio * work[_G2 + k] * inverse), 0.0)
    _quantile_tile(work, places, m, cubics)
    for k in range(m):
        ratio, v, g, g1, g2 = work[_RATIO + k], work[_V + k], work[_G + k], work[_G1 + k], work[_G2 + k]
        step = (v + ratio * g - abs(work[_W + k])) / (1.0 + ratio * g1)
        work[_STEP + k] += abs(step) / max(v, _LEAST)
        work[_V + k] = v - step
        work[_G + k] = g - step * (g1 - 0.5 * step * g2)
        work[_G1 + k] = g1 - step * g2


@device(fastmath=REORDER_SUMS)
def _quantile_tile(work, places, m, cubics):
    """g, g' and g'' at the v of a tile, as ``_quantile``."""
    for k in range(m):
        v = work[_V + k]
        at = v * FINE if v < EDGE else v * COARSE
        last = EDGE * FINE if v < EDGE else float(_LAST)
        i = int32(at if at < last else last)  # the last of a path that has diverged to NaN, too
        work[_R + k] = at - i
        places[k] = uint32(i + (0 if v < EDGE else FIRST_COARSE))
    for k in range(m):
        i = uint64(places[k]) * uint64(4)
        work[_A + k], work[_A1 + k] = cubics[i], cubics[i + uint64(1)]
        work[_A2 + k], work[_A3 + k] = cubics[i + uint64(2)], cubics[i + uint64(3)]
    for k in range(m):
        v, r, a1, a2, a3 = work[_V + k], work[_R + k], work[_A1 + k], work[_A2 + k], work[_A3 + k]
        scale = FINE if v < EDGE else COARSE
        work[_G + k] = work[_A + k] + r * (a1 + r * (a2 + r * a3))
        work[_G1 + k] = (a1 + r * (2.0 * a2 + r * 3.0 * a3)) * scale
        work[_G2 + k] = (2.0 * a2 + 6.0 * a3 * r) * scale * scale * min(1.0, v * (1.0 / _SMOOTH))


@device(fastmath=REORDER_SUMS)
def _derive_tile(work, m, tau):
    """beta and its derivatives, in the places of what they come from; the sum of v^2, and that of the derivatives of
    the logarithm of the prior by log tau."""
    squares, of_tau = 0.0, 0.0
    for k in range(m):
        ratio, v, g, g1, g2 = work[_RATIO + k], work[_V + k], work[_G + k], work[_G1 + k], work[_G2 + k]
        side = math.copysign(1.0, work[_W + k])
        growth = 1.0 + ratio * g1  # of w with v
        shrink = 1.0 / growth
        by_tau = -ratio * g * shrink  # of v
        of_tau -= v * by_tau + ratio * (g1 + g2 * by_tau) * shrink
        squares += v * v
        work[_GROWTH + k] = growth
        work[_BETA + k] = side * tau * g
        work[_SLOPE + k] = tau * g1 * shrink
        work[_CARRIED + k] = side * tau * g * shrink
        work[_PULL + k] = -side * shrink * (v + ratio * g2 * shrink)
    return squares, of_tau


@device
def _write_tile(c, first, work, m, beta, made):
    slope, carried, pull, _, _ = made
    for k in range(m):
        beta[c, first + k] = work[_BETA + k]
    for k in range(m):
        slope[c, first + k] = work[_SLOPE + k]
    for k in range(m):
        carried[c, first + k] = work[_CARRIED + k]
    for k in range(m):
        pull[c, first + k] = work[_PULL + k]


@device(fastmath=REORDER_SUMS)
def _kick(c, angle, fixed, size, beta, loglik, score, path, made):
    """One chain, in loops that have few arrays each, so that they vectorise."""
    anchor, diagonal = fixed
    u, v, force, total = path
    slope, carried, pull, pull_of_tau, energy = made
    p, q = slope.shape[1], beta.shape[1]
    level, squares, of_tau, kinetic = 0.0, 0.0, pull_of_tau[c], 0.0
    for j in range(q):
        level += anchor[j] * beta[c, j]
    for j in range(q):
        squares += diagonal[j] * beta[c, j] * beta[c, j]
    for j in range(q):  # of the logarithm of the likelihood and the fixed prior
        force[c, j] = score[c, j] - level * anchor[j] - diagonal[j] * beta[c, j]
    for j in range(p):
        of_tau += carried[c, j] * force[c, j]
    for j in range(p):
        force[c, j] = -size[j] * (pull[c, j] + slope[c, j] * force[c, j]) - u[c, j]
    for j in range(p, q):
        force[c, j] = -size[j] * force[c, j] - u[c, j]
    force[c, q] = -size[q] * of_tau - u[c, q]
    for j in range(q + 1):
        v[c, j] -= 0.5 * angle * force[c, j]
        kinetic += v[c, j] * v[c, j]
    total[c] = 0.5 * (kinetic + level * level + squares) - loglik[c] + energy[c]


@device(inline="always")
def _quantile(v, cubics):
    """g, g' and g'' at v >= 0, of which the last is smoothed: as a part of a force it need not be exact."""
    scale = FINE if v < EDGE else COARSE
    at = v * scale
    i = int(at) if at < _LAST else _LAST
    r = at - i
    i += 0 if v < EDGE else FIRST_COARSE
    a0, a1, a2, a3 = cubics[i, 0], cubics[i, 1], cubics[i, 2], cubics[i, 3]
    g = a0 + r * (a1 + r * (a2 + r * a3))
    g1 = (a1 + r * (2.0 * a2 + r * 3.0 * a3)) * scale
    g2 = (2.0 * a2 + 6.0 * a3 * r) * scale * scale
    return g, g1, g2 * min(1.0, v / _SMOOTH)


@device(inline="always")
def _solve(w, ratio, cubics):
    """v with v + ratio g(v) = w >= 0; and g, g', g'' there, the first two by a series about a point that is near."""
    v = w
    g, g1, g2 = _quantile(v, cubics)
    if ratio * g > _FAR:
        v = _solve_far(w, ratio, cubics)
        g, g1, g2 = _quantile(v, cubics)
    step = (v + ratio * g - w) / (1.0 + ratio * g1)
    for _ in range(_MOST):
        if abs(step) <= _ENOUGH * v:
            break
        v -= step * (1.0 + 0.5 * step * ratio * g2 / (1.0 + ratio * g1))
        g, g1, g2 = _quantile(v, cubics)
        step = (v + ratio * g - w) / (1.0 + ratio * g1)
    return v - step, g - step * (g1 - 0.5 * step * g2), g1 - step * g2, g2


@device
def _solve_far(w, ratio, cubics):
    """The same, roughly, where the second term rules: Newton's method for the logarithms."""
    v = min(w, math.sqrt(2.0 * math.log(1.0 + 2.0 * w / ratio)))
    for _ in range(_MOST):
        v = min(v, 0.9999 * w)
        g, g1, _ = _quantile(v, cubics)
        step = math.log(ratio * g / (w - v)) / (g1 / g + 1.0 / (w - v))
        v = max(v - step, 1e-3 * v)
        if abs(step) < _ROUGH:
            break
    return min(v, 0.9999 * w)


@device
def _coordinate(beta, tau_inverse, distance, table):
    """w of a coefficient: v = g^-1(abs(beta) / tau), by a table and Newton's method."""
    cubics, starts = table
    x = abs(beta) * tau_inverse
    if x <= cubics[0, 1]:  # the end of the first interval
        v = x / (cubics[0, 1] * FINE)
    else:
        at = (math.log(x) - LEAST_LOG) * STARTS
        i = int(at) if at < starts.shape[0] - 2 else starts.shape[0] - 2
        v = starts[i] + (at - i) * (starts[i + 1] - starts[i])
        for _ in range(_MOST):
            g, g1, _ = _quantile(v, cubics)
            step = math.log(x / g) * g / g1 if abs(x - g) > 0.01 * x else (x - g) / g1
            v += step
            if abs(step) < _CLOSE * v:
                break
    w = v + abs(beta) / distance
    return w if beta > 0.0 else -w
