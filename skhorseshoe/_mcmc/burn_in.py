"""How long burn-in takes: as many sweeps as were asked for, or ("auto") until halves of the chains agree."""

from typing import NamedTuple

import numpy as np

from .adaptation_window import ends

AUTO = "auto"
_SHORTEST = 240  # sweeps of an automatic burn-in that tunes, if its first look is content
_UNTUNED = 200  # of one without tuning
MOST_EXTENSIONS = 4  # each twice as long as the one before: 2040 sweeps in all, or 3200
# Split R-hat of every coefficient: what burn-in learns, halves of chains then tell alike. Few states make it noisy.
_AGREED, _UNTUNED_AGREED = 1.35, 1.2


class Phases(NamedTuple):
    """The sweeps at which phases of burn-in end, those after which an automatic one looks at the chains, and the R-hat
    with which it is content."""

    ends: list
    start: int
    stop: int
    agreed: float


def of_tuning(burn_in, extensions=0):
    """The climb, the windows, and the last window, which tunes the steps for the last reference. An extension learns
    that reference once more, from a window twice as long."""
    *learning, last = ends(_SHORTEST if burn_in == AUTO else burn_in)
    if burn_in != AUTO:
        return Phases([*learning, last], last, last, _AGREED)
    length, rest = learning[-1] - learning[-2], last - learning[-1]
    for i in range(extensions):
        learning.append(learning[-1] + (length << (1 + i)))
    stop = learning[-1]
    return Phases([*learning, stop + rest], (learning[-2] + stop) // 2, stop, _AGREED)


def of_no_tuning(burn_in, extensions=0):
    """One phase; an extension doubles it."""
    end = _UNTUNED << extensions if burn_in == AUTO else burn_in
    return Phases([end], end // 2, end, _UNTUNED_AGREED)


class BurnIn:
    """Burn-in of chains that run.

    asked : sweeps, or "auto". schedule : ``of_tuning`` or ``of_no_tuning``. saved : what ``arrays`` gave, or None.
    ops : of the device where the chains are, for what was saved.
    """

    def __init__(self, asked, schedule, saved=None, ops=None):
        self.asked, self.schedule = asked, schedule
        self.extensions = 0 if asked != AUTO or saved is None else int(saved["extensions"])
        self.phases = schedule(asked, self.extensions)  # as they are planned now
        self.seen = None  # ``Halves`` of the chains in the sweeps that are looked at
        if saved is not None and "halves_squares" in saved:
            seen = Halves(*(saved[f"halves_{name}"] for name in Halves._fields))
            self.seen = seen if ops is None else ops.to_device(seen)

    @property
    def end(self):
        """The sweep with which burn-in ends, as it is planned now."""
        return self.phases.ends[-1]

    def see(self, sweep, beta, ops):
        """The coefficients (n_chains, q) after so many sweeps. Where the chains do not agree, burn-in is extended."""
        _, start, stop, agreed = self.phases
        if self.asked != AUTO or not start < sweep <= stop:
            return
        if self.seen is None:
            self.seen = Halves.from_first(beta)
        self.seen = self.seen.with_next(beta, half=int(2 * (sweep - start) > stop - start))
        if sweep == stop:
            if self.extensions < MOST_EXTENSIONS and not ops.to_host(self.seen).agree(stop - start, agreed):
                self.extensions += 1
                self.phases = self.schedule(self.asked, self.extensions)
            self.seen = None

    def arrays(self, ops):
        """All that ``asked`` does not say, by name, on the host."""
        if self.asked != AUTO:
            return {}
        seen = {} if self.seen is None else ops.to_host(self.seen)._asdict()
        return {"extensions": self.extensions, **{f"halves_{name}": value for name, value in seen.items()}}

    def shapes(self, sweep):
        """The shapes of ``arrays`` after so many sweeps, by name, in letters: C chains, q coefficients."""
        if self.asked != AUTO:
            return {}
        _, start, stop, _ = self.phases
        sums = {"halves_origin": "q", "halves_first": "Cq", "halves_second": "Cq", "halves_squares": "q"}
        return {"extensions": "", **(sums if start < sweep < stop else {})}


class Halves(NamedTuple):
    """Sums over the first and over the second half of each chain, on the device."""

    origin: object  # (q,) from which coefficients are measured, so that no digits cancel
    first: object  # sum over the first half of each chain (n_chains, q)
    second: object
    squares: object  # (q,) of all

    @classmethod
    def from_first(cls, beta):
        """Of no states yet; beta is the first to come."""
        origin = beta.mean(axis=0)
        zero = 0 * beta
        return cls(origin, zero, zero, 0 * origin)

    def with_next(self, beta, half):
        """With one more state (n_chains, q) of the first (0) or second (1) half."""
        offset = beta - self.origin
        name = ("first", "second")[half]
        squares = self.squares + (offset**2).sum(axis=0)
        return self._replace(squares=squares, **{name: getattr(self, name) + offset})

    def agree(self, n, agreed):
        """Whether no R-hat over halves of chains is above ``agreed``. n : states of a chain; of the host."""
        sizes = n // 2, n - n // 2
        means = np.stack([self.first / sizes[0], self.second / sizes[1]])  # (2, n_chains, q)
        explained = sizes[0] * (means[0] ** 2).sum(axis=0) + sizes[1] * (means[1] ** 2).sum(axis=0)
        within = np.maximum(self.squares - explained, 0.0) / (n * len(self.first))
        return bool((means.reshape(-1, len(self.origin)).var(axis=0, ddof=1) <= (agreed**2 - 1) * within).all())
