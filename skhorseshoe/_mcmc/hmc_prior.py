"""Split Hamiltonian Monte Carlo in the coordinates of the prior, for more columns than rows.

No quadratic describes the likelihood there, but most of the posterior is nearly the prior: each coefficient has a
coordinate that is standard normal under the prior, lambda integrated out, and measures the coefficient itself where
that is far from zero (``_backends/core/prior_coordinates.hpp``). log tau and the coefficients that are not shrunk are
coordinates beside them. With a centre and a size for each, learnt in burn-in, a turn of all coordinates is exact for a
standard normal law, half-kicks before and after are for the rest, and a Metropolis test makes it exact. So the columns
that are noise cost no accuracy, however many they are.

The posterior has several modes: which of some correlated columns explains the rows. Exchanges go from one to another:
a coefficient is taken out, the score without it says which columns may take its place, and a Metropolis test weighs
both ways (``_backends/core/exchange.hpp``). Rows are asked for the score alone.
"""

from typing import NamedTuple

from .._backends import EXCHANGE

_APART = 2**28  # added to the number of the sweep: random numbers for what a sweep does once more
_GOLDEN = 0.6180339887498949
_SHARES = 0.6, 0.8  # of the length of a path, which differs from sweep to sweep: the least, and the range
LENGTH = 4.5  # of a path, an angle
EXCHANGES = 8  # in a sweep


class PriorState(NamedTuple):
    """What the next sweep reads, and what the last one reports; float64."""

    beta: object  # (n_chains, q)
    tau_sq_inv: object  # (n_chains,)
    loglik: object  # (n_chains,) at beta
    score: object  # (n_chains, q) at beta
    acceptance: object  # (n_chains,) probability with which the path of the last sweep was accepted
    exchanged: object  # (n_chains,) mean of the probabilities with which its exchanges were
    sweep: int


def n_turns(t, step, most):
    """How many turns of a step make the path of a sweep. It depends on its number alone."""
    least, wide = _SHARES
    return max(1, min(most, round(LENGTH * (least + wide * (t * _GOLDEN % 1.0)) / step)))


def sweep(state, rows, coordinates, exchanges, step, n, ops, key):
    """Draw the coefficients and tau from their law, lambda integrated out; returns the new state.

    coordinates : ``PriorCoordinates``. exchanges : ``Exchanges``, or None. step : angle of a turn. n : turns.
    """
    state = _path(state, rows, coordinates, step, n, ops, key)
    if exchanges is not None:
        state = _exchange(state, rows, exchanges, ops, key)
    return state._replace(sweep=state.sweep + 1)


def _path(state, rows, coordinates, step, n, ops, key):
    """The state after a path and its test."""
    if rows.is_near and (new := ops.near_prior_path(state, rows, coordinates, step, n, key)) is not None:
        return PriorState(*new, state.exchanged, state.sweep)
    path = coordinates.begin(state, key)  # u, v ~ N(0, I)
    before = path.total.copy()
    for _ in range(n):
        path = coordinates.turn(path, step)  # v half-kicked, (u, v) turned
        beta, tau_sq_inv = coordinates.place(path)
        loglik, score = rows.score(beta)
        path = coordinates.kick(path, step, beta, loglik, score)  # v half-kicked
    return _tested(path.total - before, (beta, tau_sq_inv, loglik, score), state, ops, key, state.sweep)


def _exchange(state, rows, exchanges, ops, key):
    """The state after exchanges."""
    n_chains, chance, t = len(state.beta), state.acceptance, state.sweep
    uniform = ops.uniform((n_chains, 2 * EXCHANGES), key, t, EXCHANGE)
    standard = ops.normal((n_chains, EXCHANGES), key, t, EXCHANGE, attempt=1)
    how = exchanges, (uniform, standard), _APART, key
    if rows.is_near and (new := ops.near_exchanges(state, rows, *how)) is not None:
        *new, exchanged = new
        return PriorState(*new, chance, exchanged, t)
    exchanged = 0.0
    for i in range(EXCHANGES):
        out, *logs, without = exchanges.take_out(state.beta, uniform[:, 2 * i])
        _, score = rows.score(without)
        draws = uniform[:, 2 * i + 1], standard[:, i]
        column, log_density, new, without = exchanges.put_in(state.beta, out, score, *draws)
        loglik, score = rows.score(ops.concatenate([new, without]))
        old, other = (state.beta, state.loglik), (new, loglik[:n_chains])
        logs = *logs, log_density
        change = exchanges.weigh(old, other, out, column, score[n_chains:], state.tau_sq_inv, logs)
        given = new, state.tau_sq_inv.copy(), loglik[:n_chains].copy(), score[:n_chains].copy()
        state = _tested(change, given, state, ops, key, t + (1 + i) * _APART)
        exchanged = exchanged + state.acceptance / EXCHANGES
    return state._replace(acceptance=chance, exchanged=exchanged)


def _tested(change, new, state, ops, key, t):
    """The state with the new beta, tau^-2, log-likelihood and score where a Metropolis test accepts them."""
    none = state.beta[:, :0]
    (beta, tau_sq_inv, *rest), old = new, (state.beta, none, *state[1:4])
    beta, _, tau_sq_inv, *rest, chance = ops.metropolis(change, (beta, none.copy(), tau_sq_inv, *rest), old, key, t)
    return state._replace(beta=beta, tau_sq_inv=tau_sq_inv, loglik=rest[0], score=rest[1], acceptance=chance)
