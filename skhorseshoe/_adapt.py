"""Burn-in of the split Hamiltonian sampler: it finds the reference and the step, which are frozen afterwards.

A tenth of the sweeps are those of the data augmentation sampler, which finds its way from any start. The first
reference is the mode given their scales. Then come stages; each tunes the step and ends with a better reference: the
means of beta and of the score over its second half, and the information averaged over points of it, which describes the
log-likelihood over the whole posterior and not only at one point.
"""

from math import exp, log, pi, sqrt

import numpy as np

from . import _gibbs, _hmc

_TARGET = 0.8  # acceptance that the step is tuned to
_STAGES = (0.15, 0.2, 0.25)  # shares of the sweeps; the rest tunes the step for the last reference
_POINTS = 32  # at which the information is averaged
_MAX_STEPS = 7
_MANY_COLUMNS = 256  # from where a factorisation for a move of tau costs as much as a sweep


def burn_in(state, rows, precision, n_sweeps, fixed, tau_0, ops, key, report):
    """From a state of ``_gibbs`` to one of ``_hmc``, with the reference and the tuning to use from there.

    precision : of the data augmentation sampler. fixed : a ``FixedPrior``.
    """
    first = max(1, n_sweeps // 10)  # coefficients of constant columns start at zero, which only a draw can leave
    for t in range(1, first + 1):
        state = _gibbs.sweep(state, rows, precision, tau_0, ops, key)
        report(t)

    (n_chains, p), q = state.lambda_sq_inv.shape, state.beta.shape[1]
    gauss = ops.Whitening(np.empty((q, q)), None, n_chains, p, rows.threads, memory_of=precision)

    def refer(point, score, information):
        gauss.refer(fixed.add_to(information.copy()), information @ point + score)
        return _hmc.Reference(*map(ops.to_device, (point, score, information)), gauss)

    def advance(state, reference, tuning):
        report(state.sweep + 1)
        return _hmc.sweep(state, rows, reference, tuning, tau_0, ops, key)

    reference = refer(*_mode(state, rows, precision, fixed, ops))
    state = _hmc.HmcState(
        state.beta, state.lambda_sq_inv, state.tau_sq_inv, *rows.score(state.beta), state.sweep, np.zeros(n_chains)
    )
    tuning = _hmc.Tuning(step=1.0, n_steps=1, tau_moves=3 if len(reference.point) < _MANY_COLUMNS else 1)
    for share in _STAGES:
        n_stage = int(share * n_sweeps)
        if n_stage == 0:
            continue
        state, tuning, _, seen = _stage(state, reference, tuning, n_stage, advance)
        reference = refer(
            ops.to_host(seen.beta / seen.n),
            ops.to_host(seen.score / seen.n),
            rows.information(np.concatenate([ops.to_host(points) for points in seen.points]), precision.work),
        )

    tuning = tuning._replace(n_steps=_enough_steps(tuning.step))
    state, tuning, rates, _ = _stage(state, reference, tuning, n_sweeps - state.sweep, advance)
    if rates[1] < rates[0] / 2:  # the Gaussian is too poor here for tau to move with it
        tuning = tuning._replace(tau_moves=0)
    return state, reference, tuning


def _stage(state, reference, tuning, n_sweeps, advance):
    """Sweeps that tune the step, by those without moves of tau, which come in turn with those that have them.

    Returns the state, the tuning, the mean acceptance without and with moves of tau, and what the second half has seen.
    """
    largest = pi / 2 if tuning.n_steps == 1 else 2 * pi / 3 / tuning.n_steps
    step = _DualAveraging(min(tuning.step, largest), largest)
    rates, seen = ([1.0], [1.0]), _Seen(n_sweeps - n_sweeps // 2)
    for t in range(n_sweeps):
        moves = t % 2
        now = tuning._replace(step=exp(step.log_step), tau_moves=tuning.tau_moves * moves)
        state = advance(state, reference, now)
        rate = float(state.acceptance.mean())
        if not moves:
            step.update(rate)
        if t >= n_sweeps // 2:
            rates[moves].append(rate)
            seen.add(state)
    return state, tuning._replace(step=exp(step.log_average)), [np.mean(r) for r in rates], seen


class _Seen:
    """Sums over states of the means over the chains of beta and of the score, and some of the betas."""

    def __init__(self, n_states):
        self.n_states, self.n = n_states, 0
        self.beta = self.score = 0.0
        self.points = []

    def add(self, state):
        if self.n % -(-self.n_states * len(state.beta) // _POINTS) == 0:
            self.points.append(state.beta[:_POINTS])
        self.beta, self.score = self.beta + state.beta.mean(axis=0), self.score + state.score.mean(axis=0)
        self.n += 1


def _enough_steps(step):
    """The least odd number of turns that make three quarters of a right angle, which leaves little memory."""
    for n in range(1, _MAX_STEPS, 2):
        if n * step > 0.75 * pi / 2:
            return n
    return _MAX_STEPS


def _mode(state, rows, precision, fixed, ops):
    """The mode of beta given the scales, averaged over the chains, by Newton's method; with score and information."""
    d = np.exp(np.log(np.maximum(ops.to_host(_gibbs.prior_precision(state, ops)), 1e-100)).mean(axis=0))

    def evaluate(point):
        (loglik,), (score,) = map(ops.to_host, rows.score(ops.to_device(point[None])))
        return loglik - (d * point) @ point / 2 - fixed.energy(point), score

    point = ops.to_host(state.beta).mean(axis=0)
    value, score = evaluate(point)
    for _ in range(4):
        information = rows.information(point[None], precision.work)
        solver = ops.Precision(fixed.add_to(information.copy()), rows.threads, memory_of=precision)
        arguments = (information @ point + score)[None], d[None], np.zeros((1, len(d)))
        new = ops.to_host(solver.draw(*map(ops.to_device, arguments)))[0]
        for _ in range(5):
            new_value, new_score = evaluate(new)
            if new_value >= value:
                point, value, score = new, new_value, new_score
                break
            new = (new + point) / 2
    return point, score, rows.information(point[None], precision.work)


class _DualAveraging:
    """Step size by Nesterov's dual averaging (Hoffman & Gelman 2014, section 3.2)."""

    def __init__(self, start, largest):
        self.centre, self.largest = log(start), log(largest)
        self.n, self.gap = 0, 0.0
        self.log_step = self.log_average = self.centre

    def update(self, rate):
        self.n += 1
        self.gap += (_TARGET - rate - self.gap) / (self.n + 10)
        self.log_step = min(self.centre - sqrt(self.n) / 0.05 * self.gap, self.largest)
        self.log_average += self.n**-0.75 * (self.log_step - self.log_average)
