"""An adaptation window of HMC's burn-in: how its steps are tuned, and what its second half sees.

All of it is kept on the device, so that no sweep waits for the host.
"""

from math import log, pi
from typing import NamedTuple

import numpy as np

from .._backends.limits import MAX_STEPS

_ACCEPTANCE = 0.8  # that the step is tuned to
_TAU_ACCEPTANCE = 0.4  # that the moves of tau are tuned to
_POINTS = 32  # at which the information is averaged
_FAIR = 0.5, 0.6  # least share of acceptance with moves of scales, of that without: on the way, and beside a path's own
_GOOD = 0.8  # the least share on the way that is as good as moves apart, which take a pass of their own
_SLOW = 32, 256  # columns whose lambda_j move with u held: so many at least, and up to so many a quarter of them
_NOVEL = 0.6  # 1 less an autocorrelation at lag 1 that is small
_DEVIATIONS = 20.0  # of a logarithm
_WINDOWS = (0.15, 0.2, 0.25)  # shares of the sweeps; the rest tunes the step for the last reference
_LARGEST_TAU_STEP = 3.0


class DualAveraging(NamedTuple):
    """The logarithm of a step, as Nesterov's dual averaging tunes it (Hoffman & Gelman 2014, section 3.2).

    Between two sweeps it is an array of four numbers on the device, which the host does not wait for.
    """

    log_step: object
    log_average: object
    n: object
    gap: object

    def after(self, excess, start, largest, ops):
        """After a sweep whose acceptance rate is ``excess`` above the one that is wanted."""
        n = self.n + 1.0
        gap = self.gap - (excess + self.gap) / (n + 10.0)
        log_step = ops.minimum(start - n**0.5 / 0.05 * gap, largest)
        log_average = self.log_average + n**-0.75 * (log_step - self.log_average)
        return DualAveraging(log_step, log_average, n, gap)


class Window:
    """A window of so many sweeps; the steps begin with those of ``settings``, a ``hmc.Tuning``.

    step, tau_step : ``DualAveraging`` as arrays (4,). rates : for sweeps without and with moves of tau, the sum of the
    acceptance rates (2,), beginning with 1. beta, score : sums of the means over the chains. points : some of the
    betas. squares, lagged : sums of the products of beta, less the first of them, with itself and with the beta of the
    sweep before.
    """

    def __init__(self, length, settings, ops):
        largest = pi / 2 if settings.n_steps == 1 else 2 * pi / 3 / settings.n_steps
        self.length, self.n, self.tau_moves, self.apart = length, 0, settings.tau_moves, settings.apart
        self.starts = log(min(settings.step, largest)), log(settings.tau_step)
        self.largest = log(largest), log(_LARGEST_TAU_STEP)
        self.step, self.tau_step = (ops.to_device(np.array([start, start, 0.0, 0.0])) for start in self.starts)
        self.rates = ops.to_device(np.ones(2))
        self.beta, self.score, self.points = 0.0, 0.0, ()
        self.first, self.last, self.squares, self.lagged = 0.0, 0.0, 0.0, 0.0

    @property
    def moves(self):
        """1 if tau moves in the next sweep, as it may in every second one, and tunes its step; else 0."""
        return self.n % 2 if self.tau_moves else 0

    @property
    def n_seen(self):
        """The states that have been seen: those of the second half."""
        return max(0, self.n - self.length // 2)

    def tuning(self, settings, ops):
        """``settings`` for the next sweep: with the steps as they are tuned by now, and moves of tau or none."""
        steps = {name: ops.exp(getattr(self, name)[0]) for name in ("step", "tau_step")}  # whose first is a logarithm
        return settings._replace(tau_moves=self.moves * settings.tau_moves, **steps)

    def tune(self, state, ops):
        """Tune the step of this sweep, which has ended in this state; ``see`` is called afterwards."""
        moves, name = self.moves, ("step", "tau_step")[self.moves]
        rates, wanted = (state.tau_acceptance, _TAU_ACCEPTANCE) if moves else (state.acceptance, _ACCEPTANCE)
        excess, before = mean_of_chains(rates) - wanted, DualAveraging(*getattr(self, name))
        new = ops.empty_like(getattr(self, name))
        for i, number in enumerate(before.after(excess, self.starts[moves], self.largest[moves], ops)):
            new[i] = number
        setattr(self, name, new)

    def see(self, state):
        """The state after the next sweep."""
        moves, seen = self.moves, self.n_seen
        self.n += 1
        if self.n_seen == 0:
            return
        self.rates[moves] += mean_of_chains(state.acceptance)
        n_states = (self.length - self.length // 2) * len(state.beta)
        self.points += some_points(state.beta, seen, n_states)
        beta = mean_of_chains(state.beta)
        if seen == 0:
            self.first = beta
        offset = state.beta - self.first
        self.squares = self.squares + mean_of_chains(offset**2)
        self.lagged = self.lagged + mean_of_chains(offset * self.last)
        self.last = offset
        self.beta, self.score = self.beta + beta, self.score + mean_of_chains(state.score)

    # What follows is read on the host: of a window that ``ops.to_host`` has moved.

    def steps(self):
        """The steps at the end of the window."""
        return {name: float(np.exp(DualAveraging(*getattr(self, name)).log_average)) for name in ("step", "tau_step")}

    def scales_may_move(self):
        """Whether proposals under which scales move are accepted often enough beside the others."""
        return self.tau_moves > 0 and self._share() >= _FAIR[self.apart]

    def scales_are_in_the_way(self):
        """Whether paths on which scales move are accepted so much less often that a test of their own pays."""
        return self.tau_moves > 0 and self._share() < _GOOD

    def _share(self):
        """The rate of acceptance with moves of scales, as a share of that without."""
        n_rates = 1 + np.bincount(np.arange(self.length // 2, self.n) % 2, minlength=2)
        without, with_moves = self.rates / n_rates
        return with_moves / without

    def slowest(self, p):
        """The coefficients with the largest autocorrelation at lag 1, of the p that are shrunk."""
        least, many = _SLOW
        n_slow = max(least, min(many, p // 4), p // 16)
        return tuple(sorted(np.argsort(self._novelty()[:p])[:n_slow].tolist()))

    def forgets(self, p):
        """Whether every one of the p coefficients that are shrunk has a small autocorrelation at lag 1."""
        return self._novelty()[:p].min(initial=1.0) > _NOVEL

    def _novelty(self):
        """1 less the autocorrelation of each coefficient at lag 1."""
        n = max(1, self.n_seen)
        mean_sq = (self.beta / n - self.first) ** 2
        return (self.squares - self.lagged) / np.maximum(self.squares - n * mean_sq, 1e-300)

    def spread(self, information, p):
        """How much the logarithm of the size of beta, and of each of the p coefficients that are shrunk, has varied:
        some standard deviations, (1 + p,)."""
        n, shrunk = max(1, self.n_seen), np.concatenate(self.points)[:, :p]
        mean = self.beta[:p] / n
        variance = np.maximum(self.squares[:p] / n - (mean - self.first[:p]) ** 2, 0.0)
        sizes = ((shrunk @ information[:p, :p]) * shrunk).sum(axis=1)
        of_all = np.log(np.maximum(sizes, 1e-300)).std() / 2
        return _DEVIATIONS * np.append(of_all, np.sqrt(variance) / np.maximum(abs(mean), 1e-300))

    def arrays(self, ops):
        """All that the settings do not say, on the device."""
        points = ops.concatenate(self.points) if self.points else np.empty((0, 0))
        of_settings = "starts", "largest", "tau_moves", "apart"
        changing = {name: value for name, value in vars(self).items() if name not in of_settings}
        return {**changing, "points": points}

    @classmethod
    def restored(cls, saved, settings, ops):
        """A window that began with these settings, and of which ``saved`` has the arrays, on the host."""
        counts = {name: int(saved[name]) for name in ("length", "n")}
        window = cls(counts["length"], settings, ops)
        saved = {**saved, "rates": np.array(saved["rates"])}  # a copy: they are added to in place
        vars(window).update(ops.to_device(saved), **counts)
        window.points = (window.points,) if len(saved["points"]) else ()
        return window


def mean_of_chains(values):
    """Over the leading axis, in half the time of the method."""
    return values.sum(axis=0) / len(values)


def some_points(beta, seen, n_states):
    """The coefficients of the chains (n_chains, q), if they are among those at which the information is averaged; a
    tuple of them or of nothing. seen : sweeps before. n_states : that there will be, of all chains."""
    return (beta[:_POINTS],) if seen % -(-n_states // _POINTS) == 0 else ()


def ends(burn_in):
    """The numbers of sweeps at which the climb and the windows end; the last is ``burn_in``."""
    out = [max(1, burn_in // 10) if burn_in else 0]
    for share in _WINDOWS:
        out.append(out[-1] + int(share * burn_in))
    return sorted({*out, burn_in})


def enough_steps(step, angle):
    """The least odd number of turns that make this angle; most of a right one leaves little memory."""
    return next((n for n in range(1, MAX_STEPS, 2) if n * step > angle), MAX_STEPS)
