"""Split Hamiltonian Monte Carlo for beta, within Gibbs for the scales.

z is integrated out: l(beta) = sum_i log Phi(s_i x_i beta), s_i = 1 or -1. With a reference point r, the quadratic
g'(beta - r) - (beta - r)' H (beta - r) / 2 stands for l, up to a small remainder: U(beta) = quadratic - l(beta). Given
the scales, the Gaussian that it makes with the prior is N(m, M^-1), M = H + D. With M as the mass matrix the Gaussian
part turns every coordinate of u = L'(beta - m), M = L L', on a circle, exactly; the gradient of U gives half-kicks
before and after (Shahbaba, Lan, Johnson & Neal 2014, "Split Hamiltonian Monte Carlo"). The turn does not depend on the
scales in these coordinates, so tau and some lambda_j move with u held, and take beta along: on the way where the
Gaussian is good, else after the path, with a test of their own. A Metropolis test makes all of it exact for any r, g
and H. Then tau and lambda are drawn given beta (``_backends/core/scales.hpp``).
"""

from typing import NamedTuple

_APART = 2**31  # added to the number of the sweep: random numbers for what a sweep does once more


class HmcState(NamedTuple):
    """What the next sweep reads; float64. The last two entries are what it reports."""

    beta: object  # (n_chains, q)
    lambda_sq_inv: object  # (n_chains, p)
    tau_sq_inv: object  # (n_chains,)
    loglik: object  # (n_chains,) at beta
    score: object  # (n_chains, q) at beta
    sweep: int
    acceptance: object  # (n_chains,) probability with which a proposal of the last sweep was accepted
    tau_acceptance: object  # (n_chains,) share of its moves of tau that were accepted


class Reference(NamedTuple):
    """The quadratic that stands for the log-likelihood; float64."""

    point: object  # r (q,)
    score: object  # g (q,)
    information: object  # H (q, q)
    whitening: object  # of H and the intercept's prior precision, with b = H r + g


class Tuning(NamedTuple):
    """What burn-in chooses; frozen afterwards. While it tunes them, the steps are numbers on the device."""

    step: float  # angle of a turn, at most pi / 2
    n_steps: int  # turns, and gradients, in a sweep; odd
    tau_moves: int  # Metropolis steps for tau with u held; even. 0 : the scales move given beta alone
    tau_step: float  # standard deviation of one, in log tau
    slow: object = ()  # the columns whose lambda_j move with u held too
    apart: bool = False  # whether the scales move after the path, with a test of their own; else on the way


def sweep(state, rows, reference, tuning, tau_0, ops, key, lines=None):
    """Draw every unknown once from its law given the others; returns the new state. lines : ``Lines``, or none."""
    t = state.sweep
    if not (tuning.apart and tuning.tau_moves):
        state = _path(state, rows, reference, tuning, tau_0, ops, key)
    else:
        state = _path(state, rows, reference, tuning._replace(tau_moves=0), tau_0, ops, key)
        chance, still = state.acceptance, tuning._replace(step=0.0, n_steps=1)
        state = _path(state._replace(sweep=t + _APART), rows, reference, still, tau_0, ops, key, same_scales=True)
        state = state._replace(acceptance=(chance + state.acceptance) / 2)
    beta, lambda_sq_inv, tau_sq_inv, loglik, score, _, *chances = state

    if lines is not None:  # (beta, tau), (beta_j, lambda_j), z integrated out
        moved = ops.move_along_lines(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, t)
        beta, lambda_sq_inv, tau_sq_inv = moved
        loglik, score = rows.score(beta)

    shrunk = beta[:, : lambda_sq_inv.shape[1]]
    tau_sq_inv = ops.global_scale(shrunk, tau_sq_inv, tau_0, key, t)  # tau | beta, lambda integrated out
    lambda_sq_inv = ops.local_scales(shrunk, tau_sq_inv, key, t)  # lambda | beta, tau
    return HmcState(beta, lambda_sq_inv, tau_sq_inv, loglik, score, t + 1, *chances)


def _path(state, rows, reference, tuning, tau_0, ops, key, same_scales=False):
    """The state after a path and its test. With a step of 0 it is the scales alone that take beta along.

    same_scales : whether these are the scales of the path before.
    """
    given = state, rows, reference, tuning, tau_0, key, same_scales
    if rows.is_near and (new := ops.near_path(*given)) is not None:
        return HmcState(*new)
    t, tau_chance, gauss = state.sweep, state.tau_acceptance, reference.whitening
    # In the middle of an odd number of turns, so that the path is its own mirror image.
    swap_at = tuning.n_steps // 2 if tuning.tau_moves else None

    path = gauss.begin(reference, state, key, same_scales)  # u = L'(beta - m), v ~ N(0, I)
    before = path.total.copy()
    new = state[:5]
    for turn in range(tuning.n_steps):
        path = gauss.turn(path, tuning.step)  # v half-kicked, (u, v) turned
        scales = new[1:3]
        if turn == swap_at:
            *scales, tau_chance = gauss.move_scales(*scales, tau_0, tuning, t, key)  # tau, lambda_j, tau | u
        position = gauss.place(path)  # beta = m + L^-T u
        new = position, *scales, *rows.score(position)
        path = gauss.kick(path, tuning.step, reference, position, *new[3:])  # v half-kicked
    # beta, tau and lambda, of which the Gaussian alone has been respected on the way
    *new, chance = ops.metropolis(path.total - before, new, state[:5], key, t)
    return HmcState(*new, t, chance, tau_chance)
