"""Split Hamiltonian Monte Carlo for beta, within Gibbs for the scales.

z is integrated out: l(beta) = sum_i log Phi(s_i x_i beta), s_i = 1 or -1. With a reference point r, the quadratic
g'(beta - r) - (beta - r)' H (beta - r) / 2 stands for l, up to a small remainder: U(beta) = quadratic - l(beta). Given
the scales, the Gaussian that it makes with the prior is N(m, M^-1), M = H + D. With M as the mass matrix the Gaussian
part turns every coordinate of u = L'(beta - m), M = L L', on a circle, exactly; the gradient of U gives half-kicks
before and after (Shahbaba, Lan, Johnson & Neal 2014, "Split Hamiltonian Monte Carlo"). The turn does not depend on tau
in these coordinates, so tau moves on the way and takes beta along. A Metropolis test makes all of it exact for any r, g
and H. Then tau and lambda are drawn given beta (``_ops/_scales.py``).
"""

from typing import NamedTuple

from ._gibbs import prior_precision
from ._ops import ACCEPT, MOMENTUM, SWAP, SWAP_ACCEPT


class HmcState(NamedTuple):
    """What the next sweep reads; float64. The last two entries are what it reports."""

    beta: object  # (n_chains, q)
    lambda_sq_inv: object  # (n_chains, p)
    tau_sq_inv: object  # (n_chains,)
    loglik: object  # (n_chains,) at beta
    score: object  # (n_chains, q) at beta
    sweep: int
    acceptance: object  # (n_chains,) probability with which the last proposal was accepted
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
    tau_moves: int  # Metropolis steps for tau on the way; even
    tau_step: float  # standard deviation of one, in log tau
    slow: tuple = ()  # the columns whose lambda_j move on the way


def remainder(reference, beta, loglik, score, ops):
    """U (n_chains,) and its gradient (n_chains, q)."""
    offset = beta - reference.point
    pull = ops.times_symmetric(offset, reference.information)
    energy = (offset * (reference.score - pull / 2)).sum(axis=1) - loglik
    return energy, reference.score - pull - score


def sweep(state, rows, reference, tuning, tau_0, ops, key):
    """Draw every unknown once from its law given the others; returns the new state."""
    beta, lambda_sq_inv, tau_sq_inv, loglik, score, t, _, tau_chance = state
    p = lambda_sq_inv.shape[1]
    gauss = reference.whitening
    half, cos, sin = tuning.step / 2, ops.cos(tuning.step), ops.sin(tuning.step)

    gauss.set(prior_precision(state, ops))
    u, v = gauss.whiten(beta), ops.normal(beta.shape, key, t, MOMENTUM)
    energy, gradient = remainder(reference, beta, loglik, score, ops)
    before = energy + (u**2 + v**2).sum(axis=1) / 2

    # In the middle of an odd number of turns, so that the path is its own mirror image.
    swap_at = tuning.n_steps // 2 if tuning.tau_moves else None
    new = beta, tau_sq_inv, loglik, score
    for turn in range(tuning.n_steps):
        v = v - half * gauss.force(gradient)
        u, v = u * cos + v * sin, v * cos - u * sin
        moved = new[1]
        if turn == swap_at:
            moved, tau_chance = _move_scales(state, gauss, tuning, tau_0, ops, key)
        position = gauss.unwhiten(u)
        new = position, moved, *rows.score(position)
        energy, gradient = remainder(reference, position, *new[2:], ops)
        v = v - half * gauss.force(gradient)
    change = energy + (u**2 + v**2).sum(axis=1) / 2 - before

    accept = change < ops.exponential(1 + 0 * tau_sq_inv, key, t, ACCEPT)  # False where the change is not a number
    beta = ops.where(accept[:, None], new[0], beta)  # beta, tau | lambda
    tau_sq_inv = ops.where(accept, new[1], tau_sq_inv)
    loglik, score = ops.where(accept, new[2], loglik), ops.where(accept[:, None], new[3], score)

    shrunk = beta[:, :p]
    tau_sq_inv = ops.global_scale(shrunk, tau_sq_inv, tau_0, key, t)  # tau | beta, lambda integrated out
    lambda_sq_inv = ops.local_scales(shrunk, tau_sq_inv, key, t)  # lambda | beta, tau

    chance = ops.where(change == change, ops.exp(-ops.where(change > 0, change, 0.0)), 0.0)
    return HmcState(beta, lambda_sq_inv, tau_sq_inv, loglik, score, t + 1, chance, tau_chance)


def _move_scales(state, gauss, tuning, tau_0, ops, key):
    """tau^-2 after the moves on the way, of lambda_j too, and the share of the moves of tau that were accepted.

    The moves of tau are split, so that they are with those of lambda_j their own mirror image. lambda itself is not
    needed any more: beta has moved with it, and it is drawn given beta.
    """
    lambda_sq_inv, tau_sq_inv, t = state.lambda_sq_inv, state.tau_sq_inv, state.sweep
    half = tuning.tau_moves // 2
    steps = tuning.tau_step * ops.normal((len(tau_sq_inv), 2 * half), key, t, SWAP)
    thresholds = ops.exponential(1 + 0 * steps, key, t, SWAP_ACCEPT)
    first, second = (steps[:, :half], thresholds[:, :half]), (steps[:, half:], thresholds[:, half:])

    tau_sq_inv, chance = gauss.move_global_scale(lambda_sq_inv, tau_sq_inv, tau_0, *first)
    if len(tuning.slow):
        lambda_sq_inv = gauss.move_local_scales(lambda_sq_inv, tau_sq_inv, tuning.slow, t, key)
    tau_sq_inv, again = gauss.move_global_scale(lambda_sq_inv, tau_sq_inv, tau_0, *second)
    return tau_sq_inv, (chance + again) / 2
