"""The length of burn-in: a given number of sweeps, or ("auto") until halves of the chains agree."""

from typing import NamedTuple

import numpy as np

from .adaptation_window import phase_ends

AUTO = "auto"  # the parameter ``burn_in`` of an automatic burn-in
_TUNED_SWEEPS = 240  # sweeps of an automatic burn-in that tunes and is not extended
_UNTUNED_SWEEPS = 200  # sweeps of one that does not tune and is not extended
MOST_EXTENSIONS = 4  # largest number of extensions, each twice as long as the one before: 2040 or 3200 sweeps in all
# Largest split R-hat of the coefficients at which an automatic burn-in ends, with and without tuning. It comes from few
# states, so that it is noisy.
_TUNED_RHAT, _UNTUNED_RHAT = 1.35, 1.2


class Phases(NamedTuple):
    """When phases of burn-in end, and how an automatic one decides whether to go on."""

    ends: list  # sweeps at which phases end
    start: int  # first and last sweep of those whose R-hat is computed
    stop: int
    agreed: float  # largest R-hat with which burn-in ends


def tuned_phases(burn_in, extensions=0):
    """The climb, the windows, and the last window, which tunes step sizes for the last reference. An extension repeats
    the window before it, twice as long."""
    *stops, last = phase_ends(_TUNED_SWEEPS if burn_in == AUTO else burn_in)
    if burn_in != AUTO:
        return Phases([*stops, last], last, last, _TUNED_RHAT)
    length, last_length = stops[-1] - stops[-2], last - stops[-1]
    for i in range(extensions):
        stops.append(stops[-1] + (length << (1 + i)))
    stop = stops[-1]
    return Phases([*stops, stop + last_length], (stops[-2] + stop) // 2, stop, _TUNED_RHAT)


def untuned_phases(burn_in, extensions=0):
    """One phase; an extension doubles it."""
    end = _UNTUNED_SWEEPS << extensions if burn_in == AUTO else burn_in
    return Phases([end], end // 2, end, _UNTUNED_RHAT)


class BurnIn:
    """The burn-in of a run.

    asked : sweeps, or "auto". schedule : ``tuned_phases`` or ``untuned_phases``. saved : what ``arrays`` gave, or None.
    ops : the back end of the chains, to which saved arrays are moved.
    """

    def __init__(self, asked, schedule, saved=None, ops=None):
        self.asked, self.schedule = asked, schedule
        self.extensions = 0 if asked != AUTO or saved is None else int(saved["extensions"])
        self.phases = schedule(asked, self.extensions)  # with the extensions so far
        self.halves = None  # ``Halves`` of the chains from sweep ``start`` to sweep ``stop``
        if saved is not None and "halves_squares" in saved:
            halves = Halves._make(saved[f"halves_{name}"] for name in Halves._fields)
            self.halves = halves if ops is None else ops.to_device(halves)

    @property
    def end(self):
        """The sweep with which burn-in ends, unless it is extended."""
        return self.phases.ends[-1]

    def latest(self, sweep):
        """The sweep with which burn-in ends at the latest, after a sweep of it."""
        may_be_extended = self.asked == AUTO and sweep < self.phases.stop
        return self.schedule(AUTO, MOST_EXTENSIONS).ends[-1] if may_be_extended else self.end

    def add(self, sweep, judged, ops):
        """Add what ``judged()`` gives, (n_chains, k), after a sweep; at ``stop`` burn-in goes on if chains disagree."""
        _, start, stop, agreed = self.phases
        if self.asked != AUTO or not start < sweep <= stop:
            return
        values = judged()
        if self.halves is None:
            origin = values.mean(axis=0)
            self.halves = Halves(origin, 0 * values, 0 * values, 0 * origin)
        self.halves = self.halves.with_next(values, half=int(2 * (sweep - start) > stop - start))
        if sweep == stop:
            if self.extensions < MOST_EXTENSIONS and not ops.to_host(self.halves).agree(stop - start, agreed):
                self.extensions += 1
                self.phases = self.schedule(self.asked, self.extensions)
            self.halves = None

    def arrays(self, ops):
        """Everything but what follows from ``asked``, by name, on the host."""
        if self.asked != AUTO:
            return {}
        halves = {} if self.halves is None else ops.to_host(self.halves)._asdict()
        return {"extensions": self.extensions, **{f"halves_{name}": value for name, value in halves.items()}}


class Halves(NamedTuple):
    """Sums over the first and over the second half of each chain, on the device."""

    origin: object  # (q,) subtracted from coefficients, so that no digits cancel
    first: object  # (n_chains, q) sums over the first half of each chain
    second: object  # (n_chains, q) sums over the second half
    squares: object  # (q,) sums of squares over all states

    def with_next(self, beta, half):
        """Sums with one more state (n_chains, q), of the first half (0) or the second (1)."""
        centred = beta - self.origin
        squares = self.squares + (centred**2).sum(axis=0)
        if half:
            return self._replace(second=self.second + centred, squares=squares)
        return self._replace(first=self.first + centred, squares=squares)

    def agree(self, n, agreed):
        """Whether no R-hat over halves of chains is above ``agreed``, on the host. n : states of a chain."""
        sizes = n // 2, n - n // 2
        means = np.stack([self.first / sizes[0], self.second / sizes[1]])  # (2, n_chains, q)
        explained = sizes[0] * (means[0] ** 2).sum(axis=0) + sizes[1] * (means[1] ** 2).sum(axis=0)
        within = np.maximum(self.squares - explained, 0.0) / (n * len(self.first))
        return bool((means.reshape(-1, len(self.origin)).var(axis=0, ddof=1) <= (agreed**2 - 1) * within).all())
