"""Split Hamiltonian Monte Carlo in the coordinates of the prior, for more columns than rows.

No quadratic describes the likelihood there, but most of the posterior is nearly the prior: each coefficient has a
coordinate that is standard normal under the prior, lambda integrated out, and measures the coefficient itself where
that is far from zero (``_backends/core/priors/coordinates.hpp``). log tau and the coefficients that are not shrunk are
coordinates too. With a centre and a size for each, learnt in burn-in, rotations are exact for a standard normal law,
half-kicks before and after account for the rest, and a Metropolis test makes it exact. So columns that are noise cost
no accuracy, however many there are.

The posterior has several modes, by which of some correlated columns explains the rows. Exchanges move between them: a
coefficient leaves, the score without it suggests a column that enters, and a Metropolis test makes it exact
(``_backends/core/exchange.hpp``). The rows need only compute the score.
"""

from typing import NamedTuple

from .._backends import EXCHANGE_PURPOSE

_STRIDE = 2**28  # added to the number of the sweep for each exchange, so that it has random numbers of its own
EXCHANGES = 8  # number of exchanges in a sweep


class PriorCoordinateState(NamedTuple):
    """The state that the next sweep reads, and two reports of the last sweep; float64."""

    beta: object  # (n_chains, q)
    tau_sq_inv: object  # (n_chains,)
    loglik: object  # (n_chains,) at beta
    score: object  # (n_chains, q) at beta
    acceptance: object  # (n_chains,) probability with which the trajectory of the sweep was accepted
    exchanged: object  # (n_chains,) mean probability with which its exchanges were accepted
    sweep: int


def sweep(state, problem, coordinates, exchanges, step, n_steps):
    """Draw the coefficients and tau from their law, lambda integrated out; returns the new state.

    coordinates : ``PriorCoordinates``. exchanges : ``Exchanges``, or None. step : step size, an angle.
    """
    state = _trajectory(state, problem, coordinates, step, n_steps)
    if exchanges is not None:
        state = _exchange(state, problem, exchanges)
    return state._replace(sweep=state.sweep + 1)


def _trajectory(state, problem, coordinates, step, n_steps):
    rows, _, _, key = problem
    if rows.takes_fused_calls:
        new = rows.ops.fused_trajectory_in_prior_coordinates(state, rows, coordinates, step, n_steps, key)
        if new is not None:
            beta, tau_sq_inv, loglik, score, acceptance = new
            return PriorCoordinateState(beta, tau_sq_inv, loglik, score, acceptance, state.exchanged, state.sweep)
    trajectory = coordinates.begin(state, key)  # u, v ~ N(0, I)
    energy_at_start = trajectory.energy.copy()
    for i in range(n_steps):
        trajectory = coordinates.kick_and_rotate(trajectory, step)  # v half-kicked, (u, v) rotated
        beta, tau_sq_inv = coordinates.to_beta(trajectory)
        loglik, score = (rows.score if i + 1 == n_steps else rows.quick.score)(beta)
        trajectory = coordinates.kick(trajectory, step, beta, loglik, score)  # v half-kicked
    new = beta, tau_sq_inv, loglik, score
    return _tested(trajectory.energy - energy_at_start, new, state, problem, state.sweep)


def _exchange(state, problem, exchanges):
    rows, _, _, key = problem
    n_chains, acceptance, t, ops = len(state.beta), state.acceptance, state.sweep, rows.ops
    uniform = ops.uniform((n_chains, 2 * EXCHANGES), key, t, EXCHANGE_PURPOSE)
    standard = ops.normal((n_chains, EXCHANGES), key, t, EXCHANGE_PURPOSE, attempt=1)
    if rows.takes_fused_calls:
        new = ops.fused_exchanges(state, rows, exchanges, (uniform, standard), _STRIDE, key)
        if new is not None:
            beta, tau_sq_inv, loglik, score, exchanged = new
            return PriorCoordinateState(beta, tau_sq_inv, loglik, score, acceptance, exchanged, t)
    exchanged = 0.0
    for i in range(EXCHANGES):
        exchange = exchanges.propose_leaving(state.beta, uniform[:, 2 * i])
        _, score = rows.score(exchange.without)
        exchanges.propose_entering(exchange, state.beta, score, uniform[:, 2 * i + 1], standard[:, i])
        loglik, score = rows.score(ops.concatenate([exchange.new, exchange.without]))
        change = exchanges.minus_log_ratio(state, exchange, loglik[:n_chains], score[n_chains:])
        proposal = exchange.new, state.tau_sq_inv.copy(), loglik[:n_chains].copy(), score[:n_chains].copy()
        state = _tested(change, proposal, state, problem, t + (1 + i) * _STRIDE)
        exchanged = exchanged + state.acceptance / EXCHANGES
    return state._replace(acceptance=acceptance, exchanged=exchanged)


def _tested(change, new, state, problem, t):
    """The state with the new beta, tau^-2, log-likelihood and score where a Metropolis test accepts them."""
    no_lambda = state.beta[:, :0]
    (beta, *others), old = new, (state.beta, no_lambda, *state[1:4])
    new = beta, no_lambda.copy(), *others
    *new, acceptance = problem.rows.ops.metropolis(change, new, old, problem.key, t)
    beta, _, tau_sq_inv, loglik, score = new
    return state._replace(beta=beta, tau_sq_inv=tau_sq_inv, loglik=loglik, score=score, acceptance=acceptance)
