"""The effects u of groups and their standard deviation s ~ C+(0, scale), given beta.

    u_g              a slice step for each group (``_backends/core/group_effects.hpp``)
    s                given u: s^-2 | xi ~ Gamma((G + 1) / 2, xi^-1 + u'u / 2),  xi^-1 ~ Exp(scale^-2 + s^-2)
    s, u             a slice step on r from s to e^r s, with (u_g - m_g) / d_g held
    s, u, beta, tau  the same with c beta and c tau, c^2 = (1 + e^2r s^2) / (1 + s^2): what holds for groups yet to be
                     seen, Phi(x beta / sqrt(1 + s^2)), stays as it is

m_g and d_g are mean and standard deviation of u_g given s and beta, as burn-in has approximated them
(``GroupMap``): as far as they are right, s moves as if u were integrated out. With the density of u and the
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
from .._backends.line_moves import N_UNIFORMS
from .._model.horseshoe import log_half_cauchy

_FIRST_WIDTH, _LEAST_WIDTH, _LARGEST_WIDTH = 14.0, 1e-3, 4.0  # of slices in logs: the first, for one group; bounds
FEWEST_TUNING_STEPS = 25  # least number of steps that tune a width


def first_widths(k, n_groups):
    return np.full(k, min(_LARGEST_WIDTH, _FIRST_WIDTH / np.sqrt(n_groups)))


def tuned_widths(widths, n, squares, deviations):
    """Widths of slices, in standard deviations of the law, whose variance is half the mean square of a step from draw
    to draw. n, squares : number of steps of each slice, and sums of their squares."""
    tuned = np.clip(deviations * np.sqrt(squares / (2 * np.maximum(n, 1))), _LEAST_WIDTH, _LARGEST_WIDTH)
    return np.where(n < FEWEST_TUNING_STEPS, widths, tuned)


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
    """Move u and s of a factor: c, by which all else is to be multiplied, as other factors are already."""
    ops, key, effects = block.ops, factor.key, block.effects[factor.part]
    information = np.ascontiguousarray(factor.map.precision[:, 0])
    factor.row_groups.move_effects(effects, given, factor.scale**-2.0, information, t, key)

    xi_inv = ops.exponential(factor.prior_scale**-2 + factor.scale**-2.0, key, t, GROUP_XI_PURPOSE)
    rate = xi_inv + (effects**2).sum(axis=0) / 2
    scale = ops.gamma((factor.n + 1) / 2, rate, key, t, GROUP_SCALE_PURPOSE) ** -0.5

    uniform = ops.uniform((len(beta), 2 * N_UNIFORMS), key, t, GROUP_LINE_PURPOSE)
    factor.lines.hold(block.followed_beside(factor, beta), effects, scale)
    first, scale, _, loglik = _slice(factor, given, effects, scale, None, uniform[:, :N_UNIFORMS], ops)
    others = [one for one in block.units if one is not factor]
    rest = BetaAndOthers(block, beta, tau_sq_inv, others)
    last, factor.scale, c, _ = _slice(factor, given, effects, scale, rest, uniform[:, N_UNIFORMS:], ops, loglik)
    factor.steps += 1, (first**2).mean(), (last**2).mean()
    for other in others:
        other.grow(c)
        block.effects[other.part] *= c
    return c


def along_line(r, factor, scale, rest):
    """e^r s with s the ``scale`` (n_chains,), c, and the terms of the log-density beside those of u and rows; each as r
    (k, n_chains). rest : ``BetaAndOthers``, which are multiplied by c, or None, with c 1."""
    new = np.exp(r) * scale
    terms = (1 - factor.n) * r + log_half_cauchy((new / factor.prior_scale) ** 2)
    if rest is None:
        return new, np.ones(r.shape), terms
    c_sq = (1.0 + new**2) / (1.0 + scale**2)
    return new, np.sqrt(c_sq), terms + rest.log_density(c_sq)


class BetaAndOthers:
    """What is multiplied by c in the last move: beta, tau, and others, which are ``block.units``."""

    def __init__(self, block, beta, tau_sq_inv, others):
        self.others, energy = others, (block.fixed.force(beta) * beta).sum(axis=1) / 2
        self.energy = energy + block.own.energy(beta)
        self.n_free, self.ratio = 1 + beta.shape[1] - block.columns.n_shrunk, 1.0 / (tau_sq_inv * block.tau_0**2)

    def log_density(self, c_sq):
        """Terms of the log-density from the priors and the Jacobian, for c^2 (..., n_chains)."""
        own = self.n_free * (np.log(c_sq) / 2) + log_half_cauchy(c_sq * self.ratio) - (c_sq - 1.0) * self.energy
        return sum((other.log_density_grown(c_sq) for other in self.others), own)


def _slice(factor, given, effects, scale, rest, uniform, ops, loglik=None):
    """A slice step from r = 0 for each chain (``_backends/line_moves.py``), with effects that follow in place: r, s,
    c and the log-likelihoods there. scale, rest : as in ``along_line``. loglik : at 0, or None."""
    proposals, _ = ops.proposals(uniform, factor.widths[:1] if rest is None else factor.widths[1:])
    r = proposals.T
    scale, c, terms = along_line(r, factor, scale, rest)
    taken, loglik = factor.lines.step(given, scale, c, terms, uniform[:, 0], effects, loglik)
    at = taken, np.arange(len(uniform))
    return r[at], scale[at], c[at], loglik.copy()
