"""The sampler of Terenin, Dong & Draper (2019) for probit regression with the horseshoe prior.

    z_i | beta        ~ N(b0 + x_i beta, 1),   y_i = 1[z_i > 0]      (Albert & Chib 1993)
    beta_j | ...      ~ N(0, lambda_j^2 tau^2),   lambda_j ~ C+(0, 1),   tau ~ C+(0, tau_0)
    lambda_j^-2 | nu  ~ Gamma(1/2, nu_j^-1),   nu_j^-1 ~ Gamma(1/2, 1)      (Makalic & Schmidt 2016)
    tau^-2 | xi       ~ Gamma(1/2, xi^-1),     xi^-1   ~ Gamma(1/2, tau_0^-2)

Gamma(shape, rate). All chains advance together: they are the leading axis of every array. z is not part of the
state, because a sweep begins by drawing it. The arrays may be on any device.
"""

from typing import NamedTuple

from .._backends import EXPAND_PURPOSE, LAMBDA_PURPOSE, NU_PURPOSE, TAU_PURPOSE, XI_PURPOSE
from .hmc import draw_scales


class State(NamedTuple):
    """The state that the next sweep reads; float64."""

    beta: object  # (n_chains, q): p shrunk coefficients, unpenalised ones, the intercept if there is one
    lambda_sq_inv: object  # (n_chains, p)
    nu_inv: object  # (n_chains, p)
    tau_sq_inv: object  # (n_chains,)
    xi_inv: object  # (n_chains,)
    sweep: int  # number of sweeps so far, of which the random numbers of the next are a function


def sweep(state, problem, precision, expand=False, lines=None):
    """Draw every unknown once from its law given the others; returns the new state.

    precision : draws from N(Q^-1 b, Q^-1) with Q = H + D; H is X'X and the prior precision that does not depend on the
    scales. expand : z is multiplied by a factor g, drawn with beta integrated out, before beta is drawn: the Haar PX-DA
    algorithm (Liu & Wu 1999; Roy & Hobert 2007), which helps where z and beta are strongly correlated. lines :
    ``Lines``, of line moves of the coefficients with z, nu and xi integrated out, or None.
    """
    beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, t = state
    rows, _, tau_0, key = problem
    p, ops = lambda_sq_inv.shape[1], rows.ops

    d = prior_precision(state, ops)
    xtz, ztz = rows.latent(beta, t, key)  # z_i ~ N(x_i beta, 1) on the side of y_i; X'z, z'z

    noise = precision.noise(ops, beta.shape, key, t)
    if expand:  # g^2 ~ Gamma(n/2, (z'z - z'X S X'z) / 2)
        gamma = ops.gamma(rows.n / 2, 1 + 0 * ztz, key, t, EXPAND_PURPOSE)
        beta = precision.draw(xtz, d, noise, ztz, gamma)
    else:
        beta = precision.draw(xtz, d, noise)  # beta ~ N(S X'z, S), S = (X'X + D)^-1

    half_sq = beta[:, :p] ** 2 / 2
    rate = nu_inv + tau_sq_inv[:, None] * half_sq
    lambda_sq_inv = ops.exponential(rate, key, t, LAMBDA_PURPOSE)  # Exp(nu_j^-1 + tau^-2 beta_j^2 / 2)
    rate = xi_inv + (lambda_sq_inv * half_sq).sum(axis=1)  # xi^-1 + sum_j lambda_j^-2 beta_j^2 / 2
    tau_sq_inv = ops.gamma((p + 1) / 2, rate, key, t, TAU_PURPOSE)  # Gamma((p+1)/2, rate)

    if lines is not None:  # (beta, tau), (beta_j, lambda_j)
        moved = ops.move_along_lines(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, t)
        beta, lambda_sq_inv, tau_sq_inv = moved

    nu_inv = ops.exponential(1 + lambda_sq_inv, key, t, NU_PURPOSE)  # Exp(1 + lambda_j^-2)
    xi_inv = ops.exponential(tau_0**-2 + tau_sq_inv, key, t, XI_PURPOSE)  # Exp(tau_0^-2 + tau^-2)

    return State(beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, t + 1)


def sweep_of_contrasts(state, problem, precision):
    """As ``sweep``, of several classes, whose utilities are latent. tau is drawn given beta, and lambda, which the
    contrasts of a column share, given both: nu and xi stay as they are."""
    rows, _, _, key = problem
    t, ops = state.sweep, rows.ops
    xtz, _ = rows.latent(state.beta, t, key)
    noise = precision.noise(ops, state.beta.shape, key, t)
    beta = precision.draw(xtz, prior_precision(state, ops), noise)
    return draw_scales(state._replace(beta=beta), problem)._replace(sweep=t + 1)


def prior_precision(state, ops):
    """The diagonal of D: tau^-2 lambda_j^-2, and 0 for the intercept; (n_chains, q)."""
    d = ops.empty_like(state.beta)
    p = state.lambda_sq_inv.shape[1]
    d[:, :p] = state.tau_sq_inv[:, None] * state.lambda_sq_inv
    d[:, p:] = 0.0
    return d
