"""The effects u of groups and their standard deviation s ~ C+(0, scale), given beta.

    u_g              a slice step for each group (``_backends/core/group_effects.hpp``)
    s                given u: s^-2 | xi ~ Gamma((G + 1) / 2, xi^-1 + u'u / 2),  xi^-1 ~ Exp(scale^-2 + s^-2)
    s, u             a slice step on r from s to e^r s, with (u_g - m_g) / d_g held
    s, u, beta, tau  the same with c beta and c tau, c^2 = (1 + e^2r s^2) / (1 + s^2): what holds for groups yet to be
                     seen, Phi(x beta / sqrt(1 + s^2)), stays as it is

m_g and d_g are mean and standard deviation of u_g given s and beta, as burn-in has approximated them
(``GroupMap.conditional``): as far as they are right, s moves as if u were integrated out. With the density of u and the
Jacobian, the log-density of r is

    l - sum_g u_g^2 / (2 e^2r s^2) - G r + sum_g log d_g + r - log(1 + e^2r s^2 / scale^2)

In the last move beta_j / (lambda_j tau) stays, so that there is a factor c for tau and for each coefficient that is not
shrunk. Cut points of ordered classes are multiplied too, and count among these. Added to the log-density are the
logarithm of the fixed prior at c beta, and

    (1 + q - p) log c - log(1 + c^2 tau^2 / tau_0^2)

With several factors each moves given the others, whose effects are part of x beta. In the last move their u and s
become c u and c s, which adds log c and the logarithm of the prior of each s.
"""

import numpy as np

from .._backends import GROUP_LINE_PURPOSE, GROUP_SCALE_PURPOSE, GROUP_XI_PURPOSE
from .._backends.constants import LINE_PROPOSALS
from .._backends.line_moves import N_UNIFORMS
from .._model.horseshoe import log_half_cauchy


def move_effects_and_scale(block, beta, tau_sq_inv, t):
    """beta and tau^-2 after the moves of u and s of the block, ``GroupEffects``; of several factors, one by one."""
    block.effects = block.at(beta)
    known = block.predictors(beta)
    for unit in block.units:
        given = block.given_others(unit, known, block.effects)
        c = unit.move(block, given, beta, tau_sq_inv, t)
        beta, tau_sq_inv = block.own.grown(beta, c), tau_sq_inv / c**2
        known.grow(c, beta)
    for shift in block.shifts:
        shift.move(block.effects, block.ops, t, block.across(block.effects))
    block.beta = beta
    return beta, tau_sq_inv


def move_factor(block, factor, given, beta, tau_sq_inv, t):
    """Move u and s of a factor, given the rest: c, by which all of the rest is to be multiplied. Other factors of the
    block are multiplied already."""
    ops, key, effects = block.ops, factor.key, block.effects[factor.part]
    information = np.ascontiguousarray(factor.map.precision[:, 0])
    factor.row_groups.move_effects(effects, given, factor.scale**-2.0, information, t, key)

    xi_inv = ops.exponential(factor.prior_scale**-2 + factor.scale**-2.0, key, t, GROUP_XI_PURPOSE)
    rate = xi_inv + (effects**2).sum(axis=0) / 2
    scale = ops.gamma((factor.n + 1) / 2, rate, key, t, GROUP_SCALE_PURPOSE) ** -0.5

    uniform = ops.uniform((len(beta), 2 * N_UNIFORMS), key, t, GROUP_LINE_PURPOSE)
    followed = block.followed_beside(factor, beta)
    line = ScaleLine(factor, given, followed, effects, scale)
    first, loglik = slice_step(line, None, factor.widths[0], uniform[:, :N_UNIFORMS], ops)
    _, scale, effects, _ = line.to(first)
    others = [one for one in block.units if one is not factor]
    line = LineWithBeta(factor, given, followed, effects, scale, block, beta, tau_sq_inv, others)
    last, _ = slice_step(line, loglik, factor.widths[1], uniform[:, N_UNIFORMS:], ops)

    c, factor.scale, effects, _ = line.to(last)
    factor.steps += 1, (first**2).mean(), (last**2).mean()
    for other in others:
        other.grow(c)
        block.effects[other.part] *= c
    block.effects[factor.part] = effects
    return c


class ScaleLine:
    """The line from s to e^r s, which u follows; r (n_chains,).

    factor : ``Factor``. given : the predictors of rows without u. followed : from ``GroupEffects.followed_beside``.
    """

    def __init__(self, factor, given, followed, effects, scale):
        self.of_factor, self.given, self.scale = factor, given, scale
        self.followed = followed
        mean, sd, _ = self._conditional(scale, 1.0)
        self.standard = (effects - mean) / sd

    def _conditional(self, scale, c):
        """``GroupMap.conditional`` at c beta."""
        return self.of_factor.map.conditional(scale, self.followed.at(c))

    def factor(self, r):
        """c, the factor of beta and tau."""
        return np.ones(len(r))

    def log_density_of_beta(self, c):
        """Terms of the log-density from the prior of beta and tau and the Jacobian."""
        return 0.0

    def to(self, r):
        """c and s (n_chains,), u and the logarithm of its standard deviation (n_groups, n_chains)."""
        c, scale = self.factor(r), np.exp(r) * self.scale
        mean, sd, log_sd = self._conditional(scale, c)
        sd *= self.standard
        mean += sd
        return c, scale, mean, log_sd

    def at(self, r, asked):
        """The log-likelihood, of the chains asked, and the other terms of the log-density."""
        c, scale, effects, log_sd = self.to(r)
        loglik = self.of_factor.row_groups.logliks(self.given.times(c), effects, asked)
        scale_terms = r + log_half_cauchy((scale / self.of_factor.prior_scale) ** 2)
        return loglik, log_density_of_effects(r, effects, scale, log_sd) + self.log_density_of_beta(c) + scale_terms


class LineWithBeta(ScaleLine):
    """The line on which beta and tau move too, to c beta and c tau, and u and s of other factors, to c u and c s."""

    def __init__(self, factor, given, followed, effects, scale, block, beta, tau_sq_inv, others=()):
        super().__init__(factor, given, followed, effects, scale)
        self.rest = BetaAndOthers(block, beta, tau_sq_inv, others)

    def factor(self, r):
        """As in ``ScaleLine``."""
        return np.sqrt((1.0 + (np.exp(r) * self.scale) ** 2) / (1.0 + self.scale**2))

    def log_density_of_beta(self, c):
        """As in ``ScaleLine``."""
        return self.rest.log_density(c)


class BetaAndOthers:
    """What is multiplied by c in the last move: beta, tau, and others, which are ``block.units``."""

    def __init__(self, block, beta, tau_sq_inv, others):
        self.others, energy = others, (block.fixed.force(beta) * beta).sum(axis=1) / 2
        self.energy = energy + block.own.energy(beta)
        self.n_free, self.ratio = 1 + beta.shape[1] - block.columns.n_shrunk, 1.0 / (tau_sq_inv * block.tau_0**2)

    def log_density(self, c):
        """Terms of the log-density from the priors and the Jacobian; (n_chains,)."""
        own = self.n_free * np.log(c) + log_half_cauchy(c**2 * self.ratio) - (c**2 - 1.0) * self.energy
        return sum((other.log_density_grown(c) for other in self.others), own)


def log_density_of_effects(r, effects, scale, log_sd):
    """Terms of the log-density from the density of u and the Jacobian; (n_chains,)."""
    return log_sd.sum(axis=0) - len(effects) * r - (effects**2).sum(axis=0) / (2 * scale**2)


def slice_step(line, loglik, width, uniform, ops):
    """A slice step from r = 0 for each chain (``_backends/line_moves.py``): r, and the log-likelihoods there.

    loglik : the log-likelihoods at 0, or None."""
    proposals, _ = ops.proposals(uniform, np.full(1, width))
    r, is_open = np.zeros(len(uniform)), np.ones(len(uniform), bool)
    loglik_at_0, prior = line.at(r, is_open if loglik is None else ~is_open)
    loglik = loglik_at_0 if loglik is None else loglik
    level = loglik + prior + np.log(uniform[:, 0])
    for k in range(1, 1 + LINE_PROPOSALS):
        proposed = proposals[:, k]
        new_loglik, prior = line.at(proposed, is_open)
        inside = is_open & (new_loglik + prior >= level)
        r, loglik, is_open = np.where(inside, proposed, r), np.where(inside, new_loglik, loglik), is_open & ~inside
        if not is_open.any():
            break
    return r, loglik
