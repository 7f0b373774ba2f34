"""The effects u of groups and their standard deviation s ~ C+(0, scale), given beta.

    u_g              a slice step for each group (``_backends/core/group_effects.hpp``)
    s                given u: s^-2 | xi ~ Gamma((G + 1) / 2, xi^-1 + u'u / 2),  xi^-1 ~ Exp(scale^-2 + s^-2)
    s, u             a slice step on r from s to e^r s, with (u_g - m_g) / d_g held
    s, u, beta, tau  the same with u / s held, and c beta and c tau, c^2 = (1 + e^2r s^2) / (1 + s^2): what holds for
                     groups yet to be seen, Phi(x beta / sqrt(1 + s^2)), stays as it is

m_g and d_g are the mean and the standard deviation of u_g given s and beta by what burn-in has learnt of the rows
(``GroupedRows.conditional``): as far as that is right, s moves as if u were integrated out. With the density of u and
the Jacobian the log-density of r is

    l - sum_g u_g^2 / (2 e^2r s^2) - G r + sum_g log d_g + r - log(1 + e^2r s^2 / scale^2)

In the last move the density of u and the Jacobian leave nothing. beta_j / (lambda_j tau) stays, so that the horseshoe's
Gaussian leaves a factor c for each coefficient that is not shrunk, and one for tau. Its log-density is

    l + r - log(1 + e^2r s^2 / scale^2) + (1 + q - p) log c - log(1 + c^2 tau^2 / tau_0^2)

and the logarithm of the fixed prior at c beta.
"""

import numpy as np

from .._backends import GROUP_LINE, GROUP_SCALE, GROUP_SCALE_AUX
from .._backends.constants import LINE_PROPOSALS
from .._backends.lines import EACH


def sweep(state, inner, rows, fixed, tau_0, **given):
    """A sweep ``inner`` of beta and its scales with delta held, then of u and s. state : of any sampler that asks rows
    for the score. given : for ``inner``, beside its state."""
    t = state.sweep
    loglik, score = rows.hold(state.beta)
    state = inner(state._replace(loglik=loglik, score=score), **given)
    beta, tau_sq_inv = move(rows, state.beta, state.tau_sq_inv, fixed, tau_0, t)
    return state._replace(beta=beta, tau_sq_inv=tau_sq_inv)


def move(rows, beta, tau_sq_inv, fixed, tau_0, t):
    """beta and tau^-2 after the moves of u and s, which stay with ``rows``."""
    ops, key, effects, predictors = rows.ops, rows.key, rows.at(beta), rows.predictors(beta)
    information = np.ascontiguousarray(rows.told.precision[:, 0])
    rows.of_groups.move(effects, predictors, rows.scale**-2.0, information, t, key)

    xi_inv = ops.exponential(rows.prior_scale**-2 + rows.scale**-2.0, key, t, GROUP_SCALE_AUX)
    rate = xi_inv + (effects**2).sum(axis=0) / 2
    scale = ops.gamma((rows.n_groups + 1) / 2, rate, key, t, GROUP_SCALE) ** -0.5

    uniform = ops.uniform((len(beta), 2 * EACH), key, t, GROUP_LINE)
    line = ScaleLine(rows, predictors, beta, effects, scale)
    first, loglik = _slice(line, None, rows.widths[0], uniform[:, :EACH])
    line = LineWithBeta(rows, predictors, beta, line.effects(first), scale * np.exp(first), tau_sq_inv, fixed, tau_0)
    last, _ = _slice(line, loglik, rows.widths[1], uniform[:, EACH:])
    rows.steps += 1, (first**2).mean(), (last**2).mean()

    c = line.factor(last)
    rows.effects, rows.scale, rows.beta = line.effects(last), line.scale * np.exp(last), beta * c[:, None]
    return rows.beta, tau_sq_inv / c**2


class ScaleLine:
    """Where s goes to e^r s and u goes along; r (n_chains,)."""

    def __init__(self, rows, predictors, beta, effects, scale):
        self.rows, self.predictors, self.scale = rows, predictors, scale
        self.along = rows.followed(beta)
        mean, precision = rows.conditional(scale, self.along)
        self.standard, self.one = (effects - mean) * np.sqrt(precision), np.ones(len(beta))

    def effects(self, r):
        """u (n_groups, n_chains)."""
        mean, precision = self.rows.conditional(np.exp(r) * self.scale, self.along)
        return mean + self.standard / np.sqrt(precision)

    def at(self, r, asked):
        """The log-likelihood, of the chains asked, and what is to be added."""
        rows, effects, scale = self.rows, self.effects(r), np.exp(r) * self.scale
        _, precision = rows.conditional(scale, self.along)
        of_effects = -(effects**2).sum(axis=0) / (2 * scale**2) - rows.n_groups * r - np.log(precision).sum(axis=0) / 2
        loglik = rows.of_groups.logliks(self.predictors, effects, self.one, asked)
        return loglik, of_effects + _of_scale(r, scale, rows)


class LineWithBeta:
    """Where s goes to e^r s and u, beta and tau go along."""

    def __init__(self, rows, predictors, beta, effects, scale, tau_sq_inv, fixed, tau_0):
        self.rows, self.predictors, self.scale, self.now = rows, predictors, scale, effects
        self.energy = (fixed.force(beta) * beta).sum(axis=1) / 2
        self.n_free, self.ratio = 1 + beta.shape[1] - rows.columns.n_shrunk, 1.0 / (tau_sq_inv * tau_0**2)

    def factor(self, r):
        """c, by which beta and tau grow."""
        return np.sqrt((1.0 + (np.exp(r) * self.scale) ** 2) / (1.0 + self.scale**2))

    def effects(self, r):
        """u (n_groups, n_chains)."""
        return self.now * np.exp(r)

    def at(self, r, asked):
        """As that of ``ScaleLine``."""
        rows, c = self.rows, self.factor(r)
        of_beta = self.n_free * np.log(c) - np.log1p(c**2 * self.ratio) - (c**2 - 1.0) * self.energy
        loglik = rows.of_groups.logliks(self.predictors, self.effects(r), c, asked)
        return loglik, of_beta + _of_scale(r, np.exp(r) * self.scale, rows)


def _of_scale(r, scale, rows):
    """The logarithm of the density of log s."""
    return r - np.log1p((scale / rows.prior_scale) ** 2)


def _slice(line, loglik, width, uniform):
    """A slice step from r = 0 for each chain (``_backends/lines.py``), and the log-likelihoods there. loglik : at 0, or
    None."""
    steps, found, left = (
        line.rows.ops.proposals(uniform, np.full(1, width)),
        np.zeros(len(uniform)),
        np.ones(len(uniform), bool),
    )
    now, prior = line.at(found, left if loglik is None else ~left)
    loglik = now if loglik is None else loglik
    level = loglik + prior + np.log(uniform[:, 0])
    for k in range(1, 1 + LINE_PROPOSALS):
        r = steps[:, k]
        at, prior = line.at(r, left)
        inside = left & (at + prior >= level)
        found, loglik, left = np.where(inside, r, found), np.where(inside, at, loglik), left & ~inside
        if not left.any():
            break
    return found, loglik
