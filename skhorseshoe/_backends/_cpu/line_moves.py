"""The moves of ``lines.py`` for rows that are near: one kernel, which keeps the linear predictor of a chain.

The same random numbers, and so the same draws, but for proposals that miss or reach the slice by rounding.
"""

import math

import numpy as np

from ..lines import EACH, HELD, LARGEST, ONE, PROPOSALS, SPLIT
from .jit import REORDER_SUMS, device, kernel
from .normal_tail import sum_log_cdf


@kernel
def move_near(
    X, y, row_weight, coef, columns, prior, widths, square, kinds, tau_0, uniform, chances, first, last, state
):
    """Of the chains first to last - 1 the state, beta (n_chains, q), lambda^-2 (n_chains, p) and tau^-2 (n_chains,), in
    place.

    coef : (n_chains, q) of X's own columns. columns : (2, q) the number of X's column for each coefficient, and what it
    is divided by; the last is of ones where there is an intercept. prior : (3, q) the means that go off the columns,
    the anchor and the diagonal of ``FixedPrior``. widths, square : as in ``Lines``. kinds, uniform, chances : of
    ``lines.kinds`` and ``lines.random_numbers``.
    """
    beta, lambda_sq_inv, tau_sq_inv = state
    n, q, p = X.shape[0], beta.shape[1], lambda_sq_inv.shape[1]
    eta, change, work = np.empty(n), np.empty(n), np.empty((3, n))
    along, own, terms, loglik = np.empty(q), np.empty(q), np.empty(p), np.empty(1)
    rows = eta, change, y, row_weight
    for c in range(first, last):
        _multiply(X, coef[c], eta)
        loglik[0] = _log_likelihood((eta, eta, y, row_weight), 0.0, work)
        n_splits = 0
        for move in range(kinds.shape[0]):
            u = uniform[c, move * EACH : (move + 1) * EACH]
            n_held, n_terms, j = 0, 0, -1
            if kinds[move] == ONE:
                j = min(int(u[2] * q), q - 1)
                for k in range(q):
                    along[k] = 0.0
                along[j] = beta[c, j] if j < p else 1.0
                _take(X, int(columns[0, j]), along[j] / columns[1, j], prior[0, j], change)
                jacobian, ratio = (1.0, 1.0 / lambda_sq_inv[c, j]) if j < p else (0.0, 0.0)
            else:
                with_others = u[2] < 0.5
                jacobian, ratio = 1.0 + (q - p) * with_others, 1.0 / (tau_sq_inv[c] * tau_0**2)
                for k in range(q):
                    along[k] = beta[c, k] if k < p or with_others else 0.0
                if kinds[move] == SPLIT:
                    chance = chances[c, n_splits * p : (n_splits + 1) * p]
                    n_held = _hold(chance, square, lambda_sq_inv[c], tau_sq_inv[c], along, terms)
                    n_terms, n_splits = p, n_splits + 1
                if n_held == 0 and (with_others or p == q):
                    for i in range(n):
                        change[i] = eta[i]
                else:
                    _of_own_columns(along, columns, prior, own)
                    _multiply(X, own, change)
            step = _slice(
                rows, beta[c], along, prior, jacobian, ratio, widths[1 + j], u, terms, n_terms, n_held, loglik, work
            )
            for i in range(n):
                eta[i] += step * change[i]
            _move_state(step, along, j, terms[:n_terms], beta[c], lambda_sq_inv[c], tau_sq_inv[c : c + 1])


@device
def _move_state(step, along, j, terms, beta, lambda_sq_inv, tau_sq_inv):
    """The coefficients and scales of a chain after a step. j : the coefficient that moves by itself, or -1."""
    growth = (1.0 + step) ** 2
    for k in range(beta.shape[0]):
        beta[k] += step * along[k]
    if j < 0:
        tau_sq_inv[0] /= growth
        for k in range(terms.shape[0]):
            if terms[k] < 0.0:
                lambda_sq_inv[k] *= growth
    elif j < lambda_sq_inv.shape[0]:
        lambda_sq_inv[j] /= growth


@device
def _hold(chance, square, lambda_sq_inv, tau_sq_inv, along, terms):
    """Choose the columns that are held, which ``along`` leaves; their number. terms : (p,) overwritten with h_j of the
    others and -lambda_j^2 of those that are held."""
    n_held = 0
    for k in range(terms.shape[0]):
        odds = min(square[k] / (tau_sq_inv * lambda_sq_inv[k] * HELD), LARGEST)
        terms[k] = odds
        if chance[k] * (1.0 + odds) < odds:
            terms[k] = -1.0 / lambda_sq_inv[k]
            along[k] = 0.0
            n_held += 1
    return n_held


@device
def _of_own_columns(along, columns, prior, own):
    """Coefficients of the sampler's columns as those of X's own, into ``own``."""
    shift = 0.0
    for k in range(along.shape[0]):
        at = int(columns[0, k])
        own[at] = along[k] / columns[1, k]
        shift += own[at] * prior[0, k]
    own[along.shape[0] - 1] -= shift  # 0 without an intercept, where no mean goes off


@kernel
def growth(r):
    """e^r - 1 (n, k), to the last bit as below."""
    out = np.empty_like(r)
    for i in range(r.shape[0]):
        for k in range(r.shape[1]):
            out[i, k] = math.expm1(r[i, k])
    return out


@device
def _slice(rows, beta, along, prior, jacobian, ratio, width, u, terms, n_terms, n_held, loglik, work):
    """The step of a slice step from 0.

    rows : eta, its change for a step of 1, y and the weights. jacobian : times r in the log-density; 0 where r is the
    step itself. loglik : (1,) the log-likelihood at step 0, overwritten with that at the step.
    """
    slope, curvature = _of_prior(beta, along, prior)
    level, step = 0.0, 0.0
    low, high = -width * u[1], width - width * u[1]
    for k in range(PROPOSALS + 1):
        r = low + (high - low) * u[2 + k] if k else 0.0
        step = math.expm1(r) if jacobian > 0.0 else r
        value = jacobian * r - math.log1p(math.exp(2.0 * r) * ratio) if jacobian > 0.0 else 0.0
        value -= step * (slope + step * curvature / 2.0) + n_held * r + _sum_log1p(terms, n_terms, math.exp(2.0 * r))
        at = _log_likelihood(rows, step, work) if k else loglik[0]
        if k == 0:
            level = value + at + math.log(u[0])
        elif value + at >= level:
            loglik[0] = at
            return step
        elif r < 0.0:
            low = r
        else:
            high = r
    return 0.0


@device
def _sum_log1p(terms, n_terms, growth):
    """sum log(1 + growth h_j) or, of those that are held, log(1 + lambda_j^2 / growth)."""
    total, product = 0.0, 1.0
    for k in range(n_terms):
        factor = 1.0 + (terms[k] * growth if terms[k] >= 0.0 else -terms[k] / growth)
        if factor > 1e100:
            total += math.log(factor)
        else:
            product *= factor
        if product > 1e200:  # one logarithm for many factors
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@device
def _log_likelihood(rows, step, work):
    eta, change, y, row_weight = rows
    for i in range(eta.shape[0]):
        value = eta[i] + step * change[i]
        work[0, i] = value if y[i] else -value
    return sum_log_cdf(work[0], row_weight, work[1], work[2])


@device
def _of_prior(beta, along, prior):
    """As ``FixedPrior.along``."""
    offset, pull, slope, curvature = 0.0, 0.0, 0.0, 0.0
    for j in range(beta.shape[0]):
        offset += prior[1, j] * beta[j]
        pull += prior[1, j] * along[j]
        slope += prior[2, j] * beta[j] * along[j]
        curvature += prior[2, j] * along[j] * along[j]
    return slope + offset * pull, curvature + pull * pull


@device(fastmath=REORDER_SUMS)
def _multiply(X, coef, out):
    """out = (X, 1) coef."""
    for i in range(out.shape[0]):
        total = coef[X.shape[1]] if coef.shape[0] > X.shape[1] else 0.0
        for j in range(X.shape[1]):
            total += X[i, j] * coef[j]
        out[i] = total


@device
def _take(X, column, by, centre, out):
    """out = by (x - centre), x being a column of (X, 1)."""
    for i in range(out.shape[0]):
        out[i] = by * (X[i, column] - centre) if column < X.shape[1] else 1.0
