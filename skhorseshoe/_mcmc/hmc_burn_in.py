"""Burn-in of the split Hamiltonian sampler: it finds the reference and the step, which are frozen afterwards.

In a tenth of the sweeps data augmentation's mean finds its way from any start. The first reference is the mode given
the scales found there. Then come stages; each tunes the step and ends with a better reference: the means of beta and of
the score over its second half, and the information averaged over points of it, which describes the log-likelihood over
the whole posterior and not only at one point.
"""

from collections import namedtuple
from functools import partial

import numpy as np

from .._backends import COEF
from .._backends.lines import SELDOM, every, line_widths, singles
from . import gibbs, hmc
from .adaptation_window import Stage, ends, enough_steps, size
from .chains import shrinkage

_TAU_MOVES = 4


# A state of ``hmc``, and the numbers that a stage of burn-in tunes the steps by; see ``Stage``.
_Tuned = namedtuple("_Tuned", (*hmc.HmcState._fields, "step", "tau_step"))


class HmcChains:
    """Chains of ``hmc``, which are tuned while ``state.sweep`` is below ``burn_in``.

    problem : ``Problem``. start : ``gibbs.State``. saved : what ``arrays`` gave, or None.
    """

    def __init__(self, problem, start, burn_in, saved=None):
        self.problem = problem
        rows, fixed, _, _ = problem
        n_chains, q = start.beta.shape
        self.ends = ends(burn_in)
        self.precision = rows.ops.Precision(
            fixed.add_to(rows.gram()) if saved is None else np.empty((q, q)), rows.threads
        )
        p = rows.columns.n_shrunk
        self.gauss = rows.ops.Whitening(np.empty((q, q)), None, n_chains, p, rows.threads, memory_of=self.precision)
        self.reference = self.stage = self.lines = None
        self.every = every(rows)  # sweeps, of which one has moves along lines
        self.repeated = {}  # sweeps of which nothing changes any more, as the device repeats them quickest
        self.settings = hmc.Tuning(step=1.0, n_steps=1, tau_moves=_TAU_MOVES, tau_step=0.8)
        self.accepted = 0.0, 0  # sum and number of the acceptance rates after burn-in
        self.fixed = rows.ops.to_device(fixed)
        if saved is None:
            zero = rows.ops.to_device(np.zeros(n_chains))
            self.state = hmc.HmcState(
                start.beta, start.lambda_sq_inv, start.tau_sq_inv, *rows.score(start.beta), 0, zero, zero
            )
            if burn_in == 0:  # a reference there must be
                self.state = self._climb()(self.state)
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
        t = self.state.sweep
        if t < self.ends[0]:
            self.state = self._repeated("climb", self._climb)(self.state)
        elif t < self.ends[-1]:
            self._tune()
        else:
            lines = self._lines_now()
            name = "sample" if lines is None else "sample with lines"
            self.state = self._repeated(name, self._sweep, tuning=self.settings, lines=lines)(self.state)
            total, count = self.accepted
            self.accepted = total + self.state.acceptance.mean(), count + 1
        if t < self.ends[-1] and t + 1 in self.ends:
            self._next_stage(t + 1)

    def _repeated(self, name, make, **given):
        """A sweep, from a state to the next one; make(**given) makes it when this name is first asked for.

        It must not know these chains: they keep it, and what is in a cycle keeps its memory on a GPU after an error.
        """
        if name not in self.repeated:
            rows = self.problem.rows
            self.repeated[name] = rows.ops.recorded(make(**given), rows, self.state.beta.shape[1])
        return self.repeated[name]

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        return shrinkage(self.precision, self.state, self.problem.fixed, self.problem.rows.ops)

    def _sweep(self, **tuning):
        """From a state to the next one, for the reference of now."""
        rows, _, tau_0, key = self.problem
        return partial(hmc.sweep, rows=rows, ops=rows.ops, reference=self.reference, tau_0=tau_0, key=key, **tuning)

    def _climb(self):
        """From a state of the climb to the next one."""
        return partial(_climbed, problem=self.problem, fixed=self.fixed, precision=self.precision)

    def _tune(self):
        """A sweep; those without moves of tau, which come in turn with those that have them, tune the step."""
        stage = self.stage
        lines = self._lines_now()
        name = "with moves of tau" if stage.moves else "without"
        sweep = self._repeated((name, lines is None), self._tuning, lines=lines)
        *state, stage.step, stage.tau_step = sweep(_Tuned(*self.state, stage.step, stage.tau_step))
        self.state = hmc.HmcState(*state)
        stage.see(self.state)

    def _lines_now(self):
        """``Lines`` in the sweeps that have such moves."""
        return self.lines if self.state.sweep % self.every == 0 else None

    def _tuning(self, lines):
        """From a state and the numbers of the steps to the next ones, with or without moves of tau as they come now."""
        moves = self.stage.moves
        settings = self.settings._replace(tau_moves=moves * self.settings.tau_moves)
        return partial(_tuned, sweep=self._sweep(lines=lines), settings=settings, stage=self.stage, moves=moves)

    def _next_stage(self, t):
        """What follows the sweep ``t`` that ends the climb or a stage."""
        rows, fixed, _, _ = self.problem
        stage = None if self.stage is None else rows.ops.to_host(self.stage)
        self.repeated = {}
        if stage is None:
            self._refer(*_mode(self.state, rows, self.precision, fixed))
        else:
            step, tau_step = stage.chosen()
            self.settings = self.settings._replace(step=step, tau_step=tau_step)
            if t >= self.ends[-2] and not stage.tau_may_move():  # the Gaussian is too poor here for tau to move with it
                self.settings = self.settings._replace(tau_moves=0)
            self.every = SELDOM if self._needs_no_lines(step, stage) else every(rows)
            if t == self.ends[-1]:
                self._settle()
                return
            information = rows.information(np.concatenate(stage.points), self.precision.work)
            spread = stage.spread(information, rows.columns.n_shrunk)
            self._refer(stage.beta / stage.n_seen, stage.score / stage.n_seen, information, spread)
        following = [end for end in self.ends if end > t]
        if len(following) == 1 and stage is not None:
            n_steps = enough_steps(self.settings.step)
            # Where one is not enough, the Gaussian is too poor for scales to move under it without harm.
            slow = stage.slowest(rows.columns.n_shrunk) if n_steps == 1 else ()
            self.settings = self.settings._replace(n_steps=n_steps, slow=slow)
        if following:
            self.stage = Stage(following[0] - t, self.settings, rows.ops)

    def _needs_no_lines(self, step, stage):
        """Whether paths with this step get everywhere: no state separates the classes, and a draw owes little to the
        one before."""
        if enough_steps(step) > 1 and not stage.forgets(self.problem.rows.columns.n_shrunk):
            return False
        return not self.problem.rows.separated_by(np.concatenate(stage.points))

    def _settle(self):
        """What the end of burn-in decides."""
        if self.settings.n_steps > 1:  # the last reference may need more of them
            n_steps = max(self.settings.n_steps, enough_steps(self.settings.step, 0.9 * 2 * np.pi / 3))
            self.settings = self.settings._replace(n_steps=n_steps)
        self.lines = self.lines._replace(n_columns=singles(self.problem.rows, self.settings.n_steps))
        self.stage = None

    def _refer(self, point, score, information, spread=None):
        """A new reference; ``precision`` is from now on that of its information. spread : as ``Stage`` gives it."""
        rows, fixed, _, _ = self.problem
        self.gauss.refer(fixed.add_to(information.copy()), information @ point + score)
        widths = line_widths(rows.columns.n_shrunk, fixed, information.diagonal(), spread)
        self.lines = rows.lines(fixed, widths)
        self.reference = hmc.Reference(*map(rows.ops.to_device, (point, score, information)), self.gauss)
        self.precision = rows.ops.Precision(self.gauss.H, rows.threads, memory_of=self.precision)

    def arrays(self):
        accepted = np.array([float(value) for value in self.accepted])
        *settings, slow = self.settings
        out = {
            **self.state._asdict(),
            "settings": np.array(settings),
            "slow": np.array(slow, int),
            "accepted": accepted,
            "every": self.every,
        }
        if self.reference is None:
            out["H"] = self.precision.H
        else:
            out |= {f"reference_{name}": getattr(self.reference, name) for name in _REFERENCE}
            out["spread"] = self.lines.widths[: 1 + self.state.lambda_sq_inv.shape[1]]
        if self.stage is not None:
            out |= {f"stage_{name}": value for name, value in self.stage.arrays(self.problem.rows.ops).items()}
        return out

    def _restore(self, saved):
        step, n_steps, tau_moves, tau_step = saved["settings"]
        self.settings = hmc.Tuning(
            float(step), int(n_steps), int(tau_moves), float(tau_step), tuple(saved["slow"].tolist())
        )
        rows = self.problem.rows
        self.every = int(saved["every"])
        self.accepted = tuple(saved["accepted"])
        fields = {name: saved[name] for name in hmc.HmcState._fields}
        self.state = rows.ops.to_device(hmc.HmcState(**{**fields, "sweep": int(saved["sweep"])}))
        if "H" in saved:
            self.precision = rows.ops.Precision(np.array(saved["H"]), rows.threads, memory_of=self.precision)
        else:
            self._refer(*(saved[f"reference_{name}"] for name in _REFERENCE), saved["spread"])
            if self.ends[-1] and self.state.sweep >= self.ends[-1]:
                self.lines = self.lines._replace(n_columns=singles(rows, self.settings.n_steps))
        if "stage_n" in saved:
            stage = {name[6:]: saved[name] for name in saved if name.startswith("stage_")}
            self.stage = Stage.restored(stage, self.settings, rows.ops)


_REFERENCE = "point", "score", "information"


def _climbed(state, problem, fixed, precision):
    """As data augmentation, but with the mean of z in place of z, which weights and all rows alike can have."""
    rows, _, tau_0, key = problem
    ops, (beta, lambda_sq_inv, tau_sq_inv, _, score, t, *rates) = rows.ops, state
    noise = ops.normal(beta.shape, key, t, COEF)
    towards = ops.times_symmetric(beta, precision.H) - fixed.force(beta) + score  # X' E[z | beta]
    beta = precision.draw(towards, gibbs.prior_precision(state, ops), noise)
    shrunk = beta[:, : lambda_sq_inv.shape[1]]
    tau_sq_inv = ops.global_scale(shrunk, tau_sq_inv, tau_0, key, t)
    lambda_sq_inv = ops.local_scales(shrunk, tau_sq_inv, key, t)
    return hmc.HmcState(beta, lambda_sq_inv, tau_sq_inv, *rows.score(beta), t + 1, *rates)


def _tuned(state, sweep, settings, stage, moves):
    """A sweep with the steps as they are tuned by now, and the steps after it."""
    ops = sweep.keywords["ops"]
    *state, step, tau_step = state
    tuning = settings._replace(step=size(step, ops), tau_step=size(tau_step, ops))
    state = sweep(hmc.HmcState(*state), tuning=tuning)
    return _Tuned(*state, *stage.tuned(step, tau_step, moves, state, ops))


def _mode(state, rows, precision, fixed):
    """The mode of beta given the scales, averaged over the chains, by Newton's method; with score and information."""
    ops = rows.ops
    d = np.exp(np.log(np.maximum(ops.to_host(gibbs.prior_precision(state, ops)), 1e-100)).mean(axis=0))

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
