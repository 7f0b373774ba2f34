"""Exchanges: one coefficient is taken out, and another takes its place.

Out goes column j with a probability in proportion to a / (1 + a), a = ``precision``_j beta_j^2. In comes column k with
a value from N(m_k, 1 / h_k), with a probability in proportion to h_k^(-1/2) exp(h_k m_k^2 / 2) / (m_k^2 + 1 / h_k):
about what the likelihood and the prior say of it. m_k is the score without column j by h_k, and h_k the precision of
the slab and what the data tell: in the unit of the column, the mean square of that score, for most columns are noise.
Column j gets the coefficient that column k has had.
"""

import math

import numpy as np

from ..constants import LEAST_B
from .jit import device, kernel
from .scales import scaled_exponential_integral

_LARGEST = 600.0  # of the logarithm of a weight


@kernel
def take_out(first, last, beta, precision, uniform, out, log_chance, without):
    """Column j of each chain, the logarithm of its probability, and the coefficients without it.

    Of the chains first to last - 1, as all kernels here. precision : (p,). uniform : (n_chains,). out : (n_chains,)
    integer. without : like beta, overwritten.
    """
    for c in range(first, last):
        total, below, j = _sum_of_sizes(beta[c], precision), 0.0, -1
        while below <= uniform[c] * total and j < precision.shape[0] - 1:
            j += 1
            below += _size(beta[c, j], precision[j])
        out[c], log_chance[c] = j, _log_share(beta[c], precision, j, total)
        without[c] = beta[c]
        without[c, j] = 0.0


@kernel
def put_in(first, last, beta, out, score, square, diagonal, uniform, standard, column, log_density, new, without):
    """Column k and its value; ``new`` coefficients, those without column k, and the logarithm of the density of the
    proposal.

    score : (n_chains, q) without column j. square : (p,) of the spreads of the columns. diagonal : of the
    ``FixedPrior``, in which the slab is. standard : (n_chains,) normal.
    """
    weights = np.empty(square.shape[0])
    for c in range(first, last):
        information = _information(score[c], square)
        largest, total = _weigh(score[c], square, diagonal, information, out[c], weights)
        below, k = 0.0, -1
        while below <= uniform[c] * total and k < square.shape[0] - 1:
            k += 1
            below += math.exp(weights[k] - largest)
        precision = information * square[k] + diagonal[k]
        value = score[c, k] / precision + standard[c] / math.sqrt(precision)
        column[c] = k
        log_density[c] = weights[k] - largest - math.log(total) + _log_normal(standard[c], precision)
        new[c] = beta[c]
        new[c, out[c]] = beta[c, k]
        new[c, k] = value
        without[c] = new[c]
        without[c, k] = 0.0


@kernel
def weigh_exchange(first, last, old, new, out, column, score, precision, square, fixed, tau_sq_inv, logs, change):
    """Minus the logarithm of the Metropolis ratio of each chain.

    old, new : beta and log-likelihood. score : (n_chains, q) without column k. fixed : anchor and diagonal of the
    ``FixedPrior``. logs : what ``take_out`` and ``put_in`` gave.
    """
    weights, diagonal = np.empty(square.shape[0]), fixed[1]
    for c in range(first, last):
        j, k = out[c], column[c]
        before, after = old[0][c, j], new[0][c, k]
        information = _information(score[c], square)
        largest, total = _weigh(score[c], square, diagonal, information, k, weights)
        own = information * square[j] + diagonal[j]
        back = weights[j] - largest - math.log(total)
        back += _log_normal((before - score[c, j] / own) * math.sqrt(own), own)
        back += _log_share(new[0][c], precision, k, _sum_of_sizes(new[0][c], precision))
        gain = new[1][c] - old[1][c] + _fixed(new[0][c], fixed) - _fixed(old[0][c], fixed)
        gain += _log_prior(after, tau_sq_inv[c]) - _log_prior(before, tau_sq_inv[c])
        change[c] = logs[0][c] + logs[1][c] - gain - back


@device
def _size(beta, precision):
    a = precision * beta * beta
    return a / (1.0 + a)


@device
def _sum_of_sizes(beta, precision):
    total = 0.0
    for j in range(precision.shape[0]):
        total += _size(beta[j], precision[j])
    return total


@device
def _log_share(beta, precision, j, total):
    return math.log(_size(beta[j], precision[j]) / total)


@device
def _information(score, square):
    """The mean square of the score, in units of the columns."""
    total, n = 0.0, 0
    for j in range(square.shape[0]):
        if square[j] > 0.0:
            total += score[j] * score[j] / square[j]
            n += 1
    return total / n


@device
def _weigh(score, square, diagonal, information, excluded, weights):
    """The logarithms of the weights of columns, their largest, and the sum in units of it."""
    largest, total = -math.inf, 0.0
    for k in range(square.shape[0]):
        weights[k] = -math.inf
        if square[k] > 0.0 and k != excluded:
            precision = information * square[k] + diagonal[k]
            mean = score[k] / precision
            gain = min(0.5 * mean * score[k], _LARGEST)
            weights[k] = gain - math.log(math.sqrt(precision) * (mean * mean + 1.0 / precision))
            largest = max(largest, weights[k])
    for k in range(square.shape[0]):
        total += math.exp(weights[k] - largest)
    return largest, total


@device
def _log_normal(standard, precision):
    return 0.5 * (math.log(precision) - standard * standard)


@device
def _fixed(beta, fixed):
    """The logarithm of the fixed prior."""
    anchor, diagonal = fixed
    level, total = 0.0, 0.0
    for j in range(beta.shape[0]):
        level += anchor[j] * beta[j]
        total += diagonal[j] * beta[j] * beta[j]
    return -0.5 * (level * level + total)


@device
def _log_prior(beta, tau_sq_inv):
    """Of a coefficient given tau, up to a constant."""
    return math.log(scaled_exponential_integral(max(0.5 * beta * beta * tau_sq_inv, LEAST_B)))
