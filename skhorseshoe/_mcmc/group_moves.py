"""The effects u of groups and their standard deviation s, given beta; s ~ C+(0, scale).

    each u_g        a slice step (``_backends/core/group_effects.hpp``)
    s               given u: s^-2 | xi ~ Gamma((G + 1) / 2, xi^-1 + u'u / 2),  xi^-1 ~ Exp(scale^-2 + s^-2)
    e^r u, e^r s    a slice step on r with the log-density l + r - log(1 + e^2r s^2 / scale^2)
    e^r s, e^r u, c beta, c tau    the same with c^2 = (1 + e^2r s^2) / (1 + s^2), so that what holds for groups yet to
                                   be seen stays as it is: Phi(x beta / sqrt(1 + s^2))

In the last, beta_j / (lambda_j tau) stays, so that the horseshoe's Gaussian and the Jacobian leave a factor c for each
coefficient that is not shrunk, and one for tau. Its log-density is l + r - log(1 + e^2r s^2 / scale^2) + (1 + q - p)
log c - log(1 + c^2 tau^2 / tau_0^2) and the logarithm of the fixed prior.
"""

import numpy as np

from .._backends import GROUP_LINE, GROUP_SCALE, GROUP_SCALE_AUX
from .._backends.constants import LINE_PROPOSALS
from .._backends.lines import EACH, proposals

_DEVIATIONS = 14.0  # in a slice, of log s given a likelihood that all groups tell about
_WIDEST = 4.0


def sweep(state, inner, rows, fixed, tau_0):
    """A sweep ``inner`` of beta and the scales with delta held, then of u and s. state : of any sampler that asks rows
    for the score."""
    t = state.sweep
    loglik, score = rows.hold(state.beta)
    state = inner(state._replace(loglik=loglik, score=score))
    beta, tau_sq_inv = move(rows, state.beta, state.tau_sq_inv, fixed, tau_0, t)
    return state._replace(beta=beta, tau_sq_inv=tau_sq_inv)


def move(rows, beta, tau_sq_inv, fixed, tau_0, t):
    """beta and tau^-2 after the moves of u and s, which stay with ``rows``."""
    ops, key, predictors = rows.ops, rows.key, rows.predictors(beta)
    effects, groups = rows.at(beta), rows.of_groups
    groups.move(effects, predictors, rows.scale**-2.0, rows.information_of_groups, t, key)

    xi_inv = ops.exponential(rows.prior_scale**-2 + rows.scale**-2.0, key, t, GROUP_SCALE_AUX)
    rate = xi_inv + (effects**2).sum(axis=0) / 2
    scale = ops.gamma((rows.n_groups + 1) / 2, rate, key, t, GROUP_SCALE) ** -0.5

    uniform = ops.uniform((len(beta), 2 * EACH), key, t, GROUP_LINE)
    one = np.ones(len(beta))
    width = min(_WIDEST, _DEVIATIONS / np.sqrt(rows.n_groups))

    def of_scale(r):
        return r - np.log1p((np.exp(r) * scale / rows.prior_scale) ** 2)

    def together(r, asked):
        return groups.logliks(predictors, effects, one, np.exp(r), asked) + of_scale(r)

    r = _slice(together, width, uniform[:, :EACH])
    effects, scale = effects * np.exp(r), scale * np.exp(r)

    energy = (fixed.force(beta) * beta).sum(axis=1) / 2
    n_free, ratio = 1 + beta.shape[1] - rows.columns.n_shrunk, 1.0 / (tau_sq_inv * tau_0**2)

    def marginal(r, asked):
        c = _factor(r, scale)
        prior = n_free * np.log(c) - np.log1p(c**2 * ratio) - (c**2 - 1.0) * energy
        return groups.logliks(predictors, effects, c, np.exp(r), asked) + of_scale(r) + prior

    r = _slice(marginal, width, uniform[:, EACH:])
    c = _factor(r, scale)
    rows.effects, rows.scale, rows.beta = effects * np.exp(r), scale * np.exp(r), beta * c[:, None]
    return rows.beta, tau_sq_inv / c**2


def _factor(r, scale):
    """c: by which sqrt(1 + s^2) grows."""
    return np.sqrt((1.0 + (np.exp(r) * scale) ** 2) / (1.0 + scale**2))


def _slice(log_density, width, uniform):
    """A slice step from r = 0 for each chain (``_backends/lines.py``); log_density(r, asked) of the chains asked."""
    r = proposals(uniform, np.full(1, width))
    left = np.ones(len(uniform), bool)
    level = log_density(0.0 * uniform[:, 0], left) + np.log(uniform[:, 0])
    found = np.zeros(len(uniform))
    for k in range(1, 1 + LINE_PROPOSALS):
        inside = left & (log_density(r[:, k], left) >= level)
        found[inside] = r[inside, k]
        left &= ~inside
        if not left.any():
            break
    return found
