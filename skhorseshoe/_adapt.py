"""Burn-in of the split Hamiltonian sampler: it finds the reference and the step, which are frozen afterwards.

In a tenth of the sweeps data augmentation's mean finds its way from any start. The first reference is the mode given
the scales found there. Then come stages; each tunes the step and ends with a better reference: the means of beta and of
the score over its second half, and the information averaged over points of it, which describes the log-likelihood over
the whole posterior and not only at one point.
"""

from dataclasses import astuple, dataclass
from functools import partial
from math import exp, log, pi, sqrt

import numpy as np

from . import _gibbs, _hmc
from ._chains import shrinkage
from ._ops import COEF

_ACCEPTANCE = 0.8  # that the step is tuned to
_TAU_ACCEPTANCE = 0.4  # that the moves of tau are tuned to
_TAU_MOVES = 4
_SLOW = 32, 1 / 16  # columns whose lambda_j move on the way: so many, or this share if that is more
_STAGES = (0.15, 0.2, 0.25)  # shares of the sweeps; the rest tunes the step for the last reference
_POINTS = 32  # at which the information is averaged
_MAX_STEPS = 7
_LARGEST_TAU_STEP = 3.0


class HmcChains:
    """Chains of ``_hmc``, which are tuned while ``state.sweep`` is below ``burn_in``.

    problem : ``Problem``. start : ``_gibbs.State``. saved : what ``arrays`` gave, or None.
    """

    def __init__(self, problem, start, burn_in, saved=None):
        self.problem = problem
        rows, fixed, _, _ = problem
        n_chains, q = start.beta.shape
        self.ends = _ends(burn_in)
        self.precision = rows.ops.Precision(
            fixed.add_to(rows.gram()) if saved is None else np.empty((q, q)), rows.threads
        )
        p = rows.columns.n_shrunk
        self.gauss = rows.ops.Whitening(np.empty((q, q)), None, n_chains, p, rows.threads, memory_of=self.precision)
        self.reference = self.stage = self.repeated = None
        self.settings = _hmc.Tuning(step=1.0, n_steps=1, tau_moves=_TAU_MOVES, tau_step=0.8)
        self.accepted = 0.0, 0  # sum and number of the acceptance rates after burn-in
        self._pull = rows.ops.to_device(fixed).force
        if saved is None:
            zero = rows.ops.to_device(np.zeros(n_chains))
            self.state = _hmc.HmcState(
                start.beta, start.lambda_sq_inv, start.tau_sq_inv, *rows.score(start.beta), 0, zero, zero
            )
            if burn_in == 0:  # a reference there must be
                self._climb()
                self._refer(*_mode(self.state, rows, self.precision, fixed))
                self.state = self.state._replace(sweep=0)
        else:
            self._restore(saved)

    @property
    def tuning(self):
        """What burn-in has chosen, and how often proposals have been accepted since."""
        total, count = self.accepted
        chosen = self.settings._asdict()
        del chosen["slow"]
        return {**chosen, "acceptance": float(total / count) if count else float("nan")}

    def advance(self):
        """One sweep."""
        t, rows = self.state.sweep, self.problem.rows
        if t < self.ends[0]:
            self._climb()
        elif t < self.ends[-1]:
            self._tune()
        else:
            if self.repeated is None:  # nothing of the sweep changes any more
                self.repeated = rows.ops.recorded(self._sweep(self.settings), rows, self.state.beta.shape[1])
            self.state = self.repeated(self.state)
            total, count = self.accepted
            self.accepted = total + self.state.acceptance.mean(), count + 1
        if t < self.ends[-1] and t + 1 in self.ends:
            self._next_stage(t + 1)

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        return shrinkage(self.precision, self.state, self.problem.fixed, self.problem.rows.ops)

    def _sweep(self, tuning):
        """From a state to the next one."""
        rows, _, tau_0, key = self.problem
        settings = {"reference": self.reference, "tuning": tuning, "tau_0": tau_0, "key": key}
        return partial(_hmc.sweep, rows=rows, ops=rows.ops, **settings)

    def _climb(self):
        """As data augmentation, but with the mean of z in place of z, which weights and all rows alike can have."""
        rows, _, tau_0, key = self.problem
        ops, (beta, lambda_sq_inv, tau_sq_inv, _, score, t, *rates) = rows.ops, self.state
        noise = ops.normal(beta.shape, key, t, COEF)
        towards = beta @ self.precision.H - self._pull(beta) + score  # X' E[z | beta]
        beta = self.precision.draw(towards, _gibbs.prior_precision(self.state, ops), noise)
        shrunk = beta[:, : lambda_sq_inv.shape[1]]
        tau_sq_inv = ops.global_scale(shrunk, tau_sq_inv, tau_0, key, t)
        lambda_sq_inv = ops.local_scales(shrunk, tau_sq_inv, key, t)
        self.state = _hmc.HmcState(beta, lambda_sq_inv, tau_sq_inv, *rows.score(beta), t + 1, *rates)

    def _tune(self):
        """A sweep; those without moves of tau, which come in turn with those that have them, tune the step."""
        stage = self.stage
        moves = stage.n % 2
        tuning = self.settings._replace(
            step=exp(stage.step.log_step),
            tau_moves=self.settings.tau_moves * moves,
            tau_step=exp(stage.tau_step.log_step),
        )
        self.state = self._sweep(tuning)(self.state)
        rate = float(self.state.acceptance.mean())
        if moves:
            stage.tau_step.update(float(self.state.tau_acceptance.mean()) - _TAU_ACCEPTANCE)
        else:
            stage.step.update(rate - _ACCEPTANCE)
        stage.n += 1
        if stage.n > stage.length // 2:
            stage.rates[moves] += [rate, 1]
            stage.see(self.problem.rows.ops.to_host(self.state))

    def _next_stage(self, t):
        """What follows the sweep ``t`` that ends the climb or a stage."""
        rows, fixed, _, _ = self.problem
        if self.stage is None:
            self._refer(*_mode(self.state, rows, self.precision, fixed))
        else:
            stage = self.stage
            steps = exp(stage.step.log_average), exp(stage.tau_step.log_average)
            self.settings = self.settings._replace(step=steps[0], tau_step=steps[1])
            if t == self.ends[-1]:
                rates = stage.rates[:, 0] / stage.rates[:, 1]
                if rates[1] < rates[0] / 2:  # the Gaussian is too poor here for tau to move with it
                    self.settings = self.settings._replace(tau_moves=0)
                return
            information = rows.information(np.concatenate(stage.points), self.precision.work)
            self._refer(stage.beta / stage.n_seen, stage.score / stage.n_seen, information)
        following = [end for end in self.ends if end > t]
        if len(following) == 1 and self.stage is not None:
            n_steps = _enough_steps(self.settings.step)
            # Where one is not enough, the Gaussian is too poor for scales to move under it without harm.
            slow = self.stage.slowest(rows.columns.n_shrunk) if n_steps == 1 else ()
            self.settings = self.settings._replace(n_steps=n_steps, slow=slow)
        if following:
            self.stage = _Stage(following[0] - t, self.settings)

    def _refer(self, point, score, information):
        """A new reference; ``precision`` is from now on that of its information."""
        rows, fixed, _, _ = self.problem
        self.gauss.refer(fixed.add_to(information.copy()), information @ point + score)
        self.reference = _hmc.Reference(*map(rows.ops.to_device, (point, score, information)), self.gauss)
        self.precision = rows.ops.Precision(self.gauss.H, rows.threads, memory_of=self.precision)

    def arrays(self):
        accepted = np.array([float(value) for value in self.accepted])
        *settings, slow = self.settings
        out = {
            **self.state._asdict(),
            "settings": np.array(settings),
            "slow": np.array(slow, int),
            "accepted": accepted,
        }
        if self.reference is None:
            out["H"] = self.precision.H
        else:
            out |= {f"reference_{name}": getattr(self.reference, name) for name in _REFERENCE}
        if self.stage is not None:
            out |= {f"stage_{name}": value for name, value in self.stage.arrays().items()}
        return out

    def _restore(self, saved):
        step, n_steps, tau_moves, tau_step = saved["settings"]
        self.settings = _hmc.Tuning(
            float(step), int(n_steps), int(tau_moves), float(tau_step), tuple(saved["slow"].tolist())
        )
        rows = self.problem.rows
        self.accepted = tuple(saved["accepted"])
        fields = {name: saved[name] for name in _hmc.HmcState._fields}
        self.state = rows.ops.to_device(_hmc.HmcState(**{**fields, "sweep": int(saved["sweep"])}))
        if "H" in saved:
            self.precision = rows.ops.Precision(np.array(saved["H"]), rows.threads, memory_of=self.precision)
        else:
            self._refer(*(saved[f"reference_{name}"] for name in _REFERENCE))
        if "stage_n" in saved:
            self.stage = _Stage.restored({name[6:]: saved[name] for name in saved if name.startswith("stage_")})


_REFERENCE = "point", "score", "information"


def _ends(burn_in):
    """The numbers of sweeps at which the climb and the stages end; the last is ``burn_in``."""
    ends = [max(1, burn_in // 10) if burn_in else 0]
    for share in _STAGES:
        ends.append(ends[-1] + int(share * burn_in))
    return sorted({*ends, burn_in})


class _Stage:
    """A stage of burn-in: its steps, and what its second half has seen.

    rates : for sweeps without and with moves of tau, the sum and the number of the acceptance rates. beta, score : sums
    of the means over the chains. points : some of the betas. squares, lagged : sums of the products of beta, less the
    first of them, with itself and with the beta of the sweep before.
    """

    def __init__(self, length, settings):
        largest = pi / 2 if settings.n_steps == 1 else 2 * pi / 3 / settings.n_steps
        self.length, self.n = length, 0
        self.step = _DualAveraging.begun(min(settings.step, largest), largest)
        self.tau_step = _DualAveraging.begun(settings.tau_step, _LARGEST_TAU_STEP)
        self.rates = np.ones((2, 2))
        self.n_seen, self.beta, self.score, self.points = 0, 0.0, 0.0, []
        self.first, self.last, self.squares, self.lagged = 0.0, 0.0, 0.0, 0.0

    def see(self, state):
        n_states = (self.length - self.length // 2) * len(state.beta)
        if self.n_seen % -(-n_states // _POINTS) == 0:
            self.points.append(state.beta[:_POINTS])
        if self.n_seen == 0:
            self.first = state.beta.mean(axis=0)
        offset = state.beta - self.first
        self.squares, self.lagged = (
            self.squares + (offset**2).mean(axis=0),
            self.lagged + (offset * self.last).mean(axis=0),
        )
        self.last = offset
        self.beta, self.score = self.beta + state.beta.mean(axis=0), self.score + state.score.mean(axis=0)
        self.n_seen += 1

    def slowest(self, p):
        """The coefficients with the largest autocorrelation at lag 1, of the p that are shrunk."""
        n_slow, share = _SLOW
        n = max(1, self.n_seen)
        mean_sq = (self.beta / n - self.first) ** 2
        gap = (self.squares - self.lagged) / np.maximum(self.squares - n * mean_sq, 1e-300)
        return tuple(sorted(np.argsort(gap[:p])[: max(n_slow, int(share * p))].tolist()))

    def arrays(self):
        steps = {name: np.array(astuple(getattr(self, name))) for name in ("step", "tau_step")}
        return {**vars(self), **steps, "points": np.array(self.points)}

    @classmethod
    def restored(cls, saved):
        stage = cls.__new__(cls)
        steps = {name: _DualAveraging(*map(float, saved[name])) for name in ("step", "tau_step")}
        vars(stage).update(saved, **steps, points=list(saved["points"]))
        for name in ("length", "n", "n_seen"):
            setattr(stage, name, int(saved[name]))
        stage.rates = np.array(saved["rates"])
        return stage


def _enough_steps(step):
    """The least odd number of turns that make most of a right angle, which leaves little memory."""
    for n in range(1, _MAX_STEPS, 2):
        if n * step > 0.85 * pi / 2:
            return n
    return _MAX_STEPS


def _mode(state, rows, precision, fixed):
    """The mode of beta given the scales, averaged over the chains, by Newton's method; with score and information."""
    ops = rows.ops
    d = np.exp(np.log(np.maximum(ops.to_host(_gibbs.prior_precision(state, ops)), 1e-100)).mean(axis=0))

    def evaluate(point):
        (loglik,), (score,) = map(ops.to_host, rows.score(ops.to_device(point[None])))
        return loglik - (d * point) @ point / 2 - fixed.energy(point), score

    point = ops.to_host(state.beta).mean(axis=0)
    value, score = evaluate(point)
    for _ in range(4):
        information = rows.information(point[None], precision.work)
        solver = ops.Precision(fixed.add_to(information.copy()), rows.threads, memory_of=precision)
        given = (information @ point + score)[None], d[None], np.zeros((1, len(d)))
        new = ops.to_host(solver.draw(*map(ops.to_device, given)))[0]
        for _ in range(5):
            new_value, new_score = evaluate(new)
            if new_value >= value:
                point, value, score = new, new_value, new_score
                break
            new = (new + point) / 2
    return point, score, rows.information(point[None], precision.work)


@dataclass
class _DualAveraging:
    """Step size by Nesterov's dual averaging (Hoffman & Gelman 2014, section 3.2)."""

    centre: float
    largest: float
    log_step: float
    log_average: float
    n: float = 0.0
    gap: float = 0.0

    @classmethod
    def begun(cls, start, largest):
        return cls(log(start), log(largest), log(start), log(start))

    def update(self, excess):
        """Take an acceptance rate, less the one that is wanted."""
        self.n += 1
        self.gap += (-excess - self.gap) / (self.n + 10)
        self.log_step = min(self.centre - sqrt(self.n) / 0.05 * self.gap, self.largest)
        self.log_average += self.n**-0.75 * (self.log_step - self.log_average)
