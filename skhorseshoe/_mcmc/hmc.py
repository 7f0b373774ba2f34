"""Split Hamiltonian Monte Carlo for beta, within Gibbs for the scales.

z is integrated out: l(beta) = sum_i log Phi(s_i x_i beta), s_i = 1 or -1. With a reference point r, the quadratic
g'(beta - r) - (beta - r)' H (beta - r) / 2 stands for l, up to a small remainder: U(beta) = quadratic - l(beta). Given
the scales, the Gaussian that it makes with the prior is N(m, M^-1), M = H + D. With M as the mass matrix the Gaussian
part rotates the position u = L'(beta - m), M = L L', and the momentum v exactly; in a leapfrog step the gradient of U
gives half-kicks before and after (Shahbaba, Lan, Johnson & Neal 2014, "Split Hamiltonian Monte Carlo"). The rotation
does not depend on the scales, so tau and some lambda_j can move with u held, which moves beta: within the trajectory
where the Gaussian is good, else after it, with a test of their own. A Metropolis test makes all of it exact for any r,
g and H. Then tau and lambda are drawn given beta (``_backends/core/priors/horseshoe.hpp``).
"""

from typing import NamedTuple

import numpy as np

from .._backends import LINE_TEST, SECOND_TRAJECTORY


class HmcState(NamedTuple):
    """The state that the next sweep reads, and two reports of the last sweep; float64."""

    beta: object  # (n_chains, q)
    lambda_sq_inv: object  # (n_chains, p)
    tau_sq_inv: object  # (n_chains,)
    loglik: object  # (n_chains,) at beta
    score: object  # (n_chains, q) at beta
    sweep: int
    acceptance: object  # (n_chains,) probability with which the proposal of the sweep was accepted
    tau_acceptance: object  # (n_chains,) share of the moves of tau that were accepted


class Reference(NamedTuple):
    """The quadratic that stands for the log-likelihood; float64."""

    point: object  # r (q,)
    score: object  # g (q,)
    information: object  # H (q, q)
    mass_matrix: object  # ``MassMatrix`` of H plus the precision of the fixed prior, with b = H r + g


class Tuning(NamedTuple):
    """What burn-in tunes or chooses, and then freezes. While tuned, step sizes are arrays on the device."""

    step: float  # step size: the angle of a rotation, at most pi / 2
    n_steps: int  # leapfrog steps of a trajectory, each with one gradient; odd
    tau_moves: int  # Metropolis steps of tau with u held, an even number; 0 if the scales move given beta alone
    tau_step: float  # standard deviation of such a step, in log tau
    slow: object = ()  # columns whose lambda_j move with u held too
    apart: bool = False  # whether the scales move after the trajectory, with a test of their own, or within it


def sweep(state, problem, reference, tuning, lines=None):
    """Draw every unknown once from its law given the others; returns the new state. lines : ``Lines``, or none."""
    with_scales = lines is None
    state = _trajectories(state, problem, reference, tuning, with_scales)
    if lines is not None:
        state = draw_scales(_along_lines(state, problem, lines), problem)
    return state._replace(sweep=state.sweep + 1)


def _along_lines(state, problem, lines):
    """The state after line moves of (beta, tau) and (beta_j, lambda_j), z integrated out.

    Where ``rows.quick`` stand for the rows there is one move, which leaves their law, with which a test corrects it
    (Christen & Fox 2005, "Markov chain Monte Carlo using an approximation")."""
    rows, _, tau_0, key = problem
    t, quick, ops = state.sweep, rows.quick, rows.ops
    beta, *scales = ops.move_along_lines(*state[:3], quick, lines, tau_0, key, t)
    loglik, score = rows.score(beta)
    new = beta, *scales, loglik, score
    if quick is not rows:
        before, after = np.split(quick.score(ops.concatenate([state.beta, beta]))[0], 2)
        change = (state.loglik - before) - (loglik - after)
        *new, _ = ops.metropolis(change, new, state[:5], key, t + LINE_TEST)
    return HmcState(*new, t, state.acceptance, state.tau_acceptance)


def _trajectories(state, problem, reference, tuning, with_scales):
    """The state after one trajectory, or two where the scales move apart, and with_scales after draws of the scales."""
    rows, _, tau_0, key = problem
    if rows.takes_fused_calls:
        new = rows.ops.fused_trajectories(state, rows, reference, tuning, tau_0, key, with_scales)
        if new is not None:
            return HmcState._make(new)
    t = state.sweep
    if not (tuning.apart and tuning.tau_moves):
        state = along_trajectory(state, problem, reference, tuning)
    else:
        state = along_trajectory(state, problem, reference, tuning._replace(tau_moves=0))
        acceptance, scales_only = state.acceptance, tuning._replace(step=0.0, n_steps=1)
        state = state._replace(sweep=t + SECOND_TRAJECTORY)
        state = along_trajectory(state, problem, reference, scales_only, same_scales=True)
        state = state._replace(acceptance=(acceptance + state.acceptance) / 2, sweep=t)
    return draw_scales(state, problem) if with_scales else state


def draw_scales(state, problem):
    rows, _, tau_0, key = problem
    shrunk, t, ops, d = state.beta[:, : state.lambda_sq_inv.shape[1]], state.sweep, rows.ops, rows.columns.n_contrasts
    tau_sq_inv = ops.draw_tau_given_beta(shrunk, state.tau_sq_inv, tau_0, key, t, d, rows.threads)  # tau | beta
    lambda_sq_inv = ops.draw_lambda_given_beta(shrunk, tau_sq_inv, key, t, d, rows.threads)  # lambda | beta, tau
    return state._replace(lambda_sq_inv=lambda_sq_inv, tau_sq_inv=tau_sq_inv)


def along_trajectory(state, problem, reference, tuning, same_scales=False):
    """The state after a trajectory and its test. With a step size of 0 only moves of the scales change beta.

    same_scales : whether the trajectory before ended with these scales.
    """
    rows, _, tau_0, key = problem
    t, tau_acceptance, mass_matrix = state.sweep, state.tau_acceptance, reference.mass_matrix
    # The scales move in the middle of an odd number of steps, so that the trajectory is reversible.
    middle = tuning.n_steps // 2 if tuning.tau_moves else None

    trajectory = mass_matrix.begin(reference, state, key, same_scales)  # u = L'(beta - m), v ~ N(0, I)
    energy_at_start = trajectory.energy.copy()
    _, lambda_sq_inv, tau_sq_inv, *_ = state
    for step in range(tuning.n_steps):
        trajectory = mass_matrix.kick_and_rotate(trajectory, tuning.step)  # v half-kicked, (u, v) rotated
        if step == middle:  # tau, lambda_j, tau | u
            moved = mass_matrix.move_scales(lambda_sq_inv, tau_sq_inv, tau_0, tuning, t, key)
            lambda_sq_inv, tau_sq_inv, tau_acceptance = moved
        beta = mass_matrix.to_beta(trajectory)  # m + L^-T u
        loglik, score = (rows.score if step + 1 == tuning.n_steps else rows.quick.score)(beta)
        trajectory = mass_matrix.kick(trajectory, tuning.step, beta, loglik, score)  # v half-kicked
    # The trajectory follows the Gaussian and the score; the test makes beta and the scales exact.
    change, new = trajectory.energy - energy_at_start, (beta, lambda_sq_inv, tau_sq_inv, loglik, score)
    beta, lambda_sq_inv, tau_sq_inv, loglik, score, acceptance = rows.ops.metropolis(change, new, state[:5], key, t)
    return HmcState(beta, lambda_sq_inv, tau_sq_inv, loglik, score, t, acceptance, tau_acceptance)
