"""The moves of ``lines.py`` for rows that are near: one kernel, which keeps the linear predictor of a chain.

The same random numbers, and so the same draws, but for proposals that miss or reach the slice by rounding.

Most proposals are decided without their log-likelihood. Along a line it is f(s) = sum w log Phi(t + s d), of which
three derivatives at 0 are computed; the fourth lies between two multiples of sum w d^4, for that of log Phi has a least
and a largest value. So f(s) - f(0) lies between two polynomials of order four. f is concave: beyond the point where the
upper one falls the fastest, its tangent there is a bound too. Where the level of the slice lies between the bounds,
they are made narrower, by what the fourth derivative of each row can be between t and t + s d. Where it still lies
between them, f is computed. Where classes are separated most rows are certain, and f takes less than its bounds.
"""

import math

import numpy as np

from ..lines import EACH, HELD, LARGEST, ONE, PROPOSALS, SPLIT
from .arithmetic import dot, multiply_in
from .jit import REORDER_SUMS, device, kernel
from .normal_tail_numba import cdf_parts, log_likelihood, mills_ratio, mostly_certain

# The fourth derivative of log Phi is at least -0.18897 and at most 0.11484. Its sign changes at 1.0023.
_LEAST_FOURTH, _LARGEST_FOURTH, _TURN = -0.19, 0.1152, (1.0, 1.003)
_LEAST = -100.0  # t, below which rounding leaves too little of the derivatives
_ROUNDING = 1e-6  # of the terms of a bound
_PATIENCE = 2  # log-likelihoods more than moves, from which on a chain does without bounds in this sweep


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
    eta, change, work, derivatives = np.empty(n), np.empty(n), np.empty((4, n)), np.empty((3, n))
    along, own, terms, loglik, bounds = np.empty(q), np.empty(q), np.empty(p), np.empty(1), np.empty(5)
    line = eta, change, y, row_weight
    for c in range(first, last):
        _multiply(X, coef[c], eta)
        loglik[0] = np.nan  # not known
        offset = dot(prior[1], beta[c])  # of the anchor; it follows the moves
        n_splits, n_evaluations = 0, 0
        for move in range(kinds.shape[0]):
            u = uniform[c, move * EACH : (move + 1) * EACH]
            n_held, n_terms, j = 0, 0, -1
            if kinds[move] == ONE:
                j = min(int(u[2] * q), q - 1)
                by = beta[c, j] if j < p else 1.0
                _take(X, int(columns[0, j]), by / columns[1, j], prior[0, j], change)
                jacobian, ratio = (1.0, 1.0 / lambda_sq_inv[c, j]) if j < p else (0.0, 0.0)
                pull, slope, curvature = prior[1, j] * by, prior[2, j] * by * beta[c, j], prior[2, j] * by * by
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
                    change[:] = eta
                else:
                    _of_own_columns(along, columns, prior, own)
                    _multiply(X, own, change)
                pull, slope, curvature = _of_prior(beta[c], along, prior)
            if n_evaluations > move + _PATIENCE or not _derive(eta, y, row_weight, work, derivatives):
                bounds[:3], bounds[3], bounds[4] = 0.0, -np.inf, np.inf
            else:
                _sum_terms(change, derivatives, row_weight, bounds)
            density = slope + offset * pull, curvature + pull * pull, jacobian, ratio, terms[:n_terms], n_held
            step, n_more = _slice(line, density, bounds, widths[1 + j], u, loglik, work)
            n_evaluations += n_more
            for i in range(n):
                eta[i] += step * change[i]
            offset += step * pull
            if j < 0:
                _move_all(step, along, terms[:n_terms], beta[c], lambda_sq_inv[c], tau_sq_inv[c : c + 1])
            else:
                beta[c, j] += step * by
                if j < p:
                    lambda_sq_inv[c, j] /= (1.0 + step) ** 2


@device
def _move_all(step, along, terms, beta, lambda_sq_inv, tau_sq_inv):
    """The coefficients and scales of a chain after a step of many of them."""
    growth = (1.0 + step) ** 2
    for k in range(beta.shape[0]):
        beta[k] += step * along[k]
    tau_sq_inv[0] /= growth
    for k in range(terms.shape[0]):
        if terms[k] < 0.0:
            lambda_sq_inv[k] *= growth


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
    """e^r - 1, to the last bit as below."""
    return np.expm1(r)


@device
def _slice(line, density, bounds, width, u, loglik, work):
    """The step of a slice step from 0, and how many log-likelihoods it took.

    line : as in ``log_likelihood``. density : slope and curvature of the fixed prior, what r is multiplied by in the
    log-density (0 where r is the step itself), the scale's precision, and of a split move its terms and the number of
    columns that are held. bounds : of ``_sum_terms``. loglik : (1,) the log-likelihood at step 0 if it is known,
    overwritten with that at the step.
    """
    jacobian, n_evaluations = density[2], 0
    level = _log_prior(density, 0.0, 0.0) + math.log(u[0])  # less the log-likelihood at step 0
    low, high = -width * u[1], width - width * u[1]
    for k in range(1, PROPOSALS + 1):
        r = low + (high - low) * u[2 + k]
        step = math.expm1(r) if jacobian > 0.0 else r
        value = _log_prior(density, r, step)
        least, most = _bound(step, bounds)
        if value + least < level <= value + most and bounds[4] < np.inf:
            least, most = _bound(step, _narrower(line, step, bounds))
        inside, at = value + least >= level, np.nan
        if not inside and not value + most < level:
            if math.isnan(loglik[0]):
                loglik[0] = log_likelihood(line, 0.0, work)
                n_evaluations += 1
            at = log_likelihood(line, step, work)
            n_evaluations += 1
            inside = value + at - loglik[0] >= level
        if inside:
            loglik[0] = at
            return step, n_evaluations
        if r < 0.0:
            low = r
        else:
            high = r
    return 0.0, n_evaluations


@device
def _log_prior(density, r, step):
    """The log-density of r without the log-likelihood."""
    slope, curvature, jacobian, ratio, terms, n_held = density
    value = jacobian * r - math.log1p(math.exp(2.0 * r) * ratio) if jacobian > 0.0 else 0.0
    return value - step * (slope + step * curvature / 2.0) - n_held * r - _sum_log1p(terms, math.exp(2.0 * r))


@device
def _derive(eta, y, row_weight, work, derivatives):
    """The first three derivatives of w log Phi(s eta) by eta, (3, n); whether they are worth it: not where rounding
    leaves too little of them, nor where most rows are certain, so that log-likelihoods take no longer."""
    n, n_far = eta.shape[0], 0
    t, ratio = work[0], derivatives[0]
    for i in range(n):
        t[i] = eta[i] if y[i] else -eta[i]
        n_far += not t[i] > _LEAST
    if n_far or mostly_certain(t, row_weight):
        return False
    cdf_parts(t, work[1], work[2], work[3])
    mills_ratio(t, work[2], work[3], ratio)
    for i in range(n):
        sum_of_both = t[i] + ratio[i]
        derivatives[1, i] = -ratio[i] * sum_of_both
        third = ratio[i] * (sum_of_both * (sum_of_both + ratio[i]) - 1.0)
        derivatives[2, i] = third if y[i] else -third
        ratio[i] = ratio[i] if y[i] else -ratio[i]
    if row_weight.shape[0]:
        for k in range(3):
            for i in range(n):
                derivatives[k, i] *= row_weight[i]
    return True


@device(fastmath=REORDER_SUMS)
def _sum_terms(change, derivatives, row_weight, bounds):
    """The coefficients of s, s^2, s^3 in f, and the least and the largest of that of s^4; into ``bounds`` (5,)."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    for i in range(change.shape[0]):
        square = change[i] * change[i]
        first += derivatives[0, i] * change[i]
        second += derivatives[1, i] * square
        third += derivatives[2, i] * square * change[i]
        fourth += (row_weight[i] if row_weight.shape[0] else 1.0) * square * square
    bounds[0], bounds[1], bounds[2] = first, second / 2.0, third / 6.0
    bounds[3], bounds[4] = _LEAST_FOURTH * fourth / 24.0, _LARGEST_FOURTH * fourth / 24.0


@device(fastmath=REORDER_SUMS)
def _narrower(line, step, bounds):
    """``bounds`` for steps from 0 to this one. Both multiples of w d^4 are largest where t is small, and fall on one
    side: that of the least value like (1 - (t - 2.3) / 3.4)^3, that of the largest one like 1 / (1 + 0.4 t^2)."""
    eta, change, y, row_weight = line
    below, above = 0.0, 0.0
    for i in range(eta.shape[0]):
        side = 1.0 if y[i] else -1.0
        t, end = side * eta[i], side * (eta[i] + step * change[i])
        low, high = min(t, end), max(t, end)
        fourth = (row_weight[i] if row_weight.shape[0] else 1.0) * (change[i] * change[i]) * (change[i] * change[i])
        rest, negative = min(max(1.0 - (low - 2.3) / 3.4, 0.0), 1.0), min(high, 0.0)
        below += fourth * (rest * rest * rest + 1e-4) * (high > _TURN[0])
        above += fourth / (1.0 + 0.4 * negative * negative) * (low < _TURN[1])
    return bounds[0], bounds[1], bounds[2], _LEAST_FOURTH * below / 24.0, _LARGEST_FOURTH * above / 24.0


@device
def _bound(step, bounds):
    """The least and the largest that f(s) - f(0) can be."""
    size, sign = abs(step), math.copysign(1.0, step)
    first, second, third, least_fourth, fourth = bounds[0] * sign, bounds[1], bounds[2] * sign, bounds[3], bounds[4]
    linear, cubic, quartic = size * first + size**2 * second, size**3 * third, size**4 * fourth
    rounding = _ROUNDING * (size * abs(first) - size**2 * second + abs(cubic)) + 1e-9
    least = linear + cubic + size**4 * least_fourth - rounding
    # Where the slope of the upper bound is the least, second + 3 third s + 6 fourth s^2 is 0.
    if 6.0 * fourth * size**2 + 3.0 * third * size + second < 0.0 or second >= 0.0:
        return least, linear + cubic + quartic + rounding
    root = 3.0 * abs(third) + math.sqrt(9.0 * third**2 - 24.0 * fourth * second)
    at = -2.0 * second / root if third > 0.0 else root / (12.0 * fourth)
    slope = first + at * (2.0 * second + at * (3.0 * third + at * 4.0 * fourth))
    value = at * (first + at * (second + at * (third + at * fourth)))
    return least, value + (size - at) * slope + rounding


@device
def _sum_log1p(terms, growth):
    """sum log(1 + growth h_j) or, of those that are held, log(1 + lambda_j^2 / growth)."""
    total, product = 0.0, 1.0
    for k in range(terms.shape[0]):
        factor = 1.0 + (terms[k] * growth if terms[k] >= 0.0 else -terms[k] / growth)
        total, product = multiply_in(total, product, factor)
    return total + math.log(product)


@device
def _of_prior(beta, along, prior):
    """What the anchor, and the slope and the curvature without it, gain along a line; as ``FixedPrior.along``."""
    pull, slope, curvature = 0.0, 0.0, 0.0
    for j in range(beta.shape[0]):
        pull += prior[1, j] * along[j]
        slope += prior[2, j] * beta[j] * along[j]
        curvature += prior[2, j] * along[j] * along[j]
    return pull, slope, curvature


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
