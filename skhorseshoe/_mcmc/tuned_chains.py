"""Chains that tune one step size, in the phases of ``hmc_burn_in.py``, without a climb: to an acceptance of 0.8 by dual
averaging in each phase. What its second half averages is for the next phase; after burn-in everything is frozen."""

from math import exp, inf, log, pi

import numpy as np

from .adaptation_window import DualAveraging, mean_of_chains
from .burn_in import tuned_phases
from .chains import PlainChains

_STEP_ACCEPTANCE = 0.8  # acceptance to which the step size is tuned
_FIRST_STEP, _LARGEST_STEP = 0.2, pi / 2  # step sizes: the first, and the largest
_SHARES = 0.6, 0.8  # angle of a trajectory in units of the mean: the least, and the range over sweeps
_GOLDEN = 0.6180339887498949  # golden ratio less 1, whose multiples modulo 1 spread evenly


def is_averaged(sweep, phase_ends):
    """Whether a sweep is in the second half of a phase of burn-in, which chains average."""
    start = max((t for t in phase_ends if t <= sweep), default=0)
    end = min((t for t in phase_ends if t > sweep), default=phase_ends[-1])
    return start < sweep and end < phase_ends[-1] and 2 * (sweep - start) > end - start


class TunedChains(PlainChains):
    """Base of chains that have ``_law(state)``, ``_add()``, which adds the state to ``seen``, and ``_learn(*seen)``,
    which is called where a phase ends.

    seen : what the phase has added, by the names in ``SEEN``, of which the first is a number; None before.
    """

    schedule = staticmethod(tuned_phases)
    RATES: tuple = ("acceptance",)  # fields of the state that are reported; the first tunes the step size
    MEAN_ANGLE: float  # of a trajectory, over sweeps
    SEEN: tuple = ()

    def __init__(self, problem, start, burn_in, saved=None, blocks=()):
        super().__init__(problem, start, burn_in, saved, blocks)
        self.accepted = np.zeros(len(self.RATES) + 1)  # sums of the rates after burn-in, and their number
        self.seen = None
        self._tune_from(_FIRST_STEP)

    @property
    def step(self):
        """The step size, an angle."""
        return exp(self.dual.log_step if self.state.sweep < self.burn_in.end else self.dual.log_average)

    @property
    def tuning_report(self):
        """What burn-in has tuned, and the mean of each rate since."""
        *totals, count = self.accepted
        means = [float(total / count) if count else float("nan") for total in totals]
        return {"step": self.step, "n_steps": self._n_steps(1.0), **dict(zip(self.RATES, means, strict=True))}

    def _n_steps(self, share, most=inf):
        """The number of steps of a trajectory with this share of the mean angle, ``most`` at most."""
        return max(1, min(most, round(self.MEAN_ANGLE * share / self.step)))

    def _n_steps_in(self, t, most):
        """That of the trajectory in sweep t."""
        least, span = _SHARES
        return self._n_steps(least + span * (t * _GOLDEN % 1.0), most)

    def _sweep(self, state):
        t = state.sweep
        state = self._swept(self._law)
        rates = [float(mean_of_chains(rate)) for rate in (getattr(state, name) for name in self.RATES)]
        if t < self.burn_in.end:
            self.dual = self.dual.after(rates[0] - _STEP_ACCEPTANCE, self.started, log(_LARGEST_STEP), np)
        else:
            self.accepted += *rates, 1
        return state

    def advance(self):
        """One sweep, and the next phase of burn-in where one has ended."""
        super().advance()
        t, phase_ends = self.state.sweep, self.burn_in.phases.ends
        if t in phase_ends[:-1]:
            self._next_phase()
        elif is_averaged(t, phase_ends):
            self._add()
            for block in self.blocks:
                block.see(t)

    def _next_phase(self):
        """Learn from the phase, and begin the next: the step size is tuned from its present value."""
        if self.seen is not None:
            self._learn(*self.seen)
        self.seen = None
        self._tune_from(exp(self.dual.log_average))
        for block in self.blocks:
            block.learn()
            block.end_phase()

    def _tune_from(self, step):
        self.started = log(step)
        self.dual = DualAveraging(self.started, self.started, 0.0, 0.0)

    def _own_arrays(self):
        tuned = {"dual": np.array(self.dual), "started": self.started, "accepted": self.accepted}
        if self.seen is not None:
            tuned |= {f"seen_{name}": value for name, value in zip(self.SEEN, self.seen, strict=True)}
        return {**super()._own_arrays(), **tuned}

    def _restore(self, saved):
        self.dual, self.started = DualAveraging._make(saved["dual"].tolist()), float(saved["started"])
        self.accepted = saved["accepted"].copy()
        if f"seen_{self.SEEN[0]}" in saved:
            n, *sums = (saved[f"seen_{name}"] for name in self.SEEN)
            self.seen = [int(n), *sums]
