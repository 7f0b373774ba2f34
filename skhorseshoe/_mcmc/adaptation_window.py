"""A window of HMC's burn-in: it tunes the step sizes, and averages states over its second half.

All of it stays on the device, so that no sweep waits for the host.
"""

from math import log, pi
from typing import NamedTuple

import numpy as np

from .._backends.limits import MOST_LEAPFROG_STEPS

_STEP_ACCEPTANCE = 0.8  # acceptance to which the step size of trajectories is tuned
_TAU_ACCEPTANCE = 0.4  # acceptance to which the step of tau is tuned
_POINTS = 32  # number of states at which the information is averaged
# Acceptance with moves of the scales relative to that without: the least with which they go on, within a trajectory and
# after it; and the least with which moves within are as good as moves after it, which take one more pass.
_LEAST_RATIO, _GOOD_RATIO = (0.5, 0.6), 0.8
# Number of coefficients whose lambda_j move with u held: the least, and the most that are a share of all.
_SLOW_COEFFICIENTS = 32, 256
_LEAST_NOVELTY = 0.6  # 1 less the autocorrelation at lag 1, above which a coefficient forgets quickly
_WIDTH_IN_LOG_DEVIATIONS = 20.0  # width of a slice, in standard deviations of a logarithm
_WINDOW_SHARES = (0.15, 0.2, 0.25)  # windows, as shares of burn-in; the rest tunes steps for the last reference
_LARGEST_TAU_STEP = 3.0  # largest step of tau, in log tau


class DualAveraging(NamedTuple):
    """The logarithm of a step size, tuned by Nesterov's dual averaging (Hoffman & Gelman 2014, section 3.2).

    Between sweeps it is an array of four numbers on the device.
    """

    log_step: object
    log_average: object
    n: object
    gap: object

    def after(self, excess, start, largest, ops):
        """The next values, after a sweep whose acceptance was ``excess`` above its target."""
        n = self.n + 1.0
        gap = self.gap - (excess + self.gap) / (n + 10.0)
        log_step = ops.minimum(start - n**0.5 / 0.05 * gap, largest)
        log_average = self.log_average + n**-0.75 * (log_step - self.log_average)
        return DualAveraging(log_step, log_average, n, gap)


class Window:
    """A window of ``length`` sweeps. tuning : ``hmc.Tuning`` to begin with.

    step, tau_step : ``DualAveraging`` as arrays (4,). rates : sums of acceptances, plus 1, of sweeps without and with
    moves of tau (2,). beta, score : sums of the means over the chains. points : some of the betas. squares, lagged :
    sums of products of beta, less the first of them, with itself and with the beta of the sweep before.
    """

    def __init__(self, length, tuning, ops):
        largest = pi / 2 if tuning.n_steps == 1 else 2 * pi / 3 / tuning.n_steps
        self.length, self.n, self.tau_moves, self.apart = length, 0, tuning.tau_moves, tuning.apart
        self.starts = log(min(tuning.step, largest)), log(tuning.tau_step)
        self.largest = log(largest), log(_LARGEST_TAU_STEP)
        self.step, self.tau_step = (ops.to_device(np.array([start, start, 0.0, 0.0])) for start in self.starts)
        self.rates = ops.to_device(np.ones(2))
        self.beta, self.score, self.points = 0.0, 0.0, ()
        self.first, self.last, self.squares, self.lagged = 0.0, 0.0, 0.0, 0.0

    @property
    def moves(self):
        """1 if tau moves in the next sweep, so that its step is tuned, else 0; it moves in every second one at most."""
        return self.n % 2 if self.tau_moves else 0

    @property
    def n_seen(self):
        """Number of sweeps whose states have been added: those of the second half."""
        return max(0, self.n - self.length // 2)

    def next_tuning(self, tuning, ops):
        """``tuning`` for the next sweep: the step sizes of now, and moves of tau or none."""
        step, tau_step = ops.exp(self.step[0]), ops.exp(self.tau_step[0])  # the first is ``log_step``
        return tuning._replace(step=step, tau_moves=self.moves * tuning.tau_moves, tau_step=tau_step)

    def tune(self, state, ops):
        """Tune the step size of the sweep that has ended in this state; ``add`` is called afterwards."""
        moves, name = self.moves, ("step", "tau_step")[self.moves]
        rates, target = (state.tau_acceptance, _TAU_ACCEPTANCE) if moves else (state.acceptance, _STEP_ACCEPTANCE)
        excess, averaging = mean_of_chains(rates) - target, DualAveraging._make(getattr(self, name))
        new = ops.empty_like(getattr(self, name))
        for i, number in enumerate(averaging.after(excess, self.starts[moves], self.largest[moves], ops)):
            new[i] = number
        setattr(self, name, new)

    def add(self, state):
        """Add the state after the next sweep to the sums, in the second half."""
        moves, n_seen = self.moves, self.n_seen
        self.n += 1
        if self.n_seen == 0:
            return
        self.rates[moves] += mean_of_chains(state.acceptance)
        n_states = (self.length - self.length // 2) * len(state.beta)
        self.points += chosen_points(state.beta, n_seen, n_states)
        beta = mean_of_chains(state.beta)
        if n_seen == 0:
            self.first = beta
        centred = state.beta - self.first
        self.squares = self.squares + mean_of_chains(centred**2)
        self.lagged = self.lagged + mean_of_chains(centred * self.last)
        self.last = centred
        self.beta, self.score = self.beta + beta, self.score + mean_of_chains(state.score)

    # The methods below need a window that ``ops.to_host`` has moved to the host.

    def last_tuning(self, tuning):
        """``tuning`` with the step sizes at the end of the window."""
        step, tau_step = (DualAveraging._make(values).log_average for values in (self.step, self.tau_step))
        return tuning._replace(step=float(np.exp(step)), tau_step=float(np.exp(tau_step)))

    def scales_move_well(self):
        """Whether trajectories with moves of the scales are accepted often enough relative to those without."""
        return self.tau_moves > 0 and self._acceptance_ratio() >= _LEAST_RATIO[self.apart]

    def scales_hinder(self):
        """Whether such trajectories are accepted so rarely that a test of their own for the scales pays."""
        return self.tau_moves > 0 and self._acceptance_ratio() < _GOOD_RATIO

    def _acceptance_ratio(self):
        n_rates = 1 + np.bincount(np.arange(self.length // 2, self.n) % 2, minlength=2)
        without, with_moves = self.rates / n_rates
        return with_moves / without

    def slowest(self, p, d=1):
        """Of the columns, with d of the p shrunk coefficients each, those with the largest autocorrelation at lag 1."""
        least, most = _SLOW_COEFFICIENTS
        share = p // 4 if d == 1 else p  # several coefficients hold their lambda fast, so of these all are slow
        n_slow = max(least, min(most, share), p // 16) // d
        novelty = self._novelty()[:p].reshape(-1, d).mean(axis=1)
        return tuple(sorted(np.argsort(novelty)[:n_slow].tolist()))

    def forgets(self, p):
        """Whether each of the p shrunk coefficients has a small autocorrelation at lag 1."""
        return self._novelty()[:p].min(initial=1.0) > _LEAST_NOVELTY

    def _novelty(self):
        """1 less the autocorrelation of each coefficient at lag 1."""
        n = max(1, self.n_seen)
        mean_sq = (self.beta / n - self.first) ** 2
        return (self.squares - self.lagged) / np.maximum(self.squares - n * mean_sq, 1e-300)

    def spread(self, information, p):
        """Widths of slices (1 + p,): ``_WIDTH_IN_LOG_DEVIATIONS`` times the standard deviation of the logarithm of the
        size of beta, and of each of the p shrunk coefficients."""
        n, shrunk = max(1, self.n_seen), np.concatenate(self.points)[:, :p]
        mean = self.beta[:p] / n
        variance = np.maximum(self.squares[:p] / n - (mean - self.first[:p]) ** 2, 0.0)
        sizes = ((shrunk @ information[:p, :p]) * shrunk).sum(axis=1)
        size_deviation = np.log(np.maximum(sizes, 1e-300)).std() / 2
        return _WIDTH_IN_LOG_DEVIATIONS * np.append(size_deviation, np.sqrt(variance) / np.maximum(abs(mean), 1e-300))

    def arrays(self, ops):
        """Everything but what follows from the tuning, on the device."""
        points = ops.concatenate(self.points) if self.points else np.empty((0, 0))
        from_tuning = "starts", "largest", "tau_moves", "apart"
        sums = {name: value for name, value in vars(self).items() if name not in from_tuning}
        return {**sums, "points": points}

    @classmethod
    def restored(cls, saved, tuning, ops):
        """The window that ``arrays`` saved, now on the host, and that began with this tuning."""
        counts = {name: int(saved[name]) for name in ("length", "n")}
        window = cls(counts["length"], tuning, ops)
        saved = {**saved, "rates": np.array(saved["rates"])}  # a copy, since ``add`` changes it in place
        vars(window).update(ops.to_device(saved) | counts)
        window.points = (window.points,) if len(saved["points"]) else ()
        return window


def mean_of_chains(values):
    """The mean over the leading axis, in half the time of ``values.mean``."""
    return values.sum(axis=0) / len(values)


def chosen_points(beta, n_seen, n_states):
    """A tuple of the coefficients of the chains (n_chains, q) if the information is averaged there, else an empty one.

    n_seen : sweeps before this one. n_states : states of all chains that there will be."""
    return (beta[:_POINTS],) if n_seen % -(-n_states // _POINTS) == 0 else ()


def phase_ends(burn_in):
    """The sweeps at which the climb and the windows end; the last is ``burn_in``."""
    out = [max(1, burn_in // 10) if burn_in else 0]
    for share in _WINDOW_SHARES:
        out.append(out[-1] + int(share * burn_in))
    return sorted({*out, burn_in})


def steps_for_angle(step, angle):
    """The least odd number of steps whose rotations exceed this angle."""
    return next((n for n in range(1, MOST_LEAPFROG_STEPS, 2) if n * step > angle), MOST_LEAPFROG_STEPS)
