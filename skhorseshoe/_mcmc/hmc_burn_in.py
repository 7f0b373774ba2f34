"""Chains of the split Hamiltonian sampler, and their burn-in, which finds the reference and the steps.

climb     The first tenth of burn-in runs data augmentation with E[z] in place of z. It finds its way from any
          start. The first reference is the mode given the scales found there.
windows   Each tunes the steps and ends with a better reference: the means of beta and of the score over its second
          half, and the information averaged over points of it, which describes the log-likelihood over the whole
          posterior and not only at one point.
          An automatic burn-in repeats the last but one, twice as long, until the chains agree in it.
sample    All of it is frozen.
"""

from functools import partial

import numpy as np

from .._backends import COEF, NO_SWEEP
from .._backends.lines import SELDOM, every, line_widths, singles, splits
from . import gibbs, hmc
from .adaptation_window import Window, enough_steps, mean_of_chains
from .burn_in import BurnIn, of_tuning
from .chains import shrinkage

_SETTINGS = hmc.Tuning(step=1.0, n_steps=1, tau_moves=4, tau_step=0.8)  # of the first window
_ONE_TURN = 0.85 * np.pi / 2, 0.95 * np.pi / 2  # the least that is enough; where passes are cheap
_FEW_ROWS = 2**11  # of which a pass costs little beside all else
_LARGE = 10  # times the number of rows: the square of so many columns that their matrices outweigh moves along lines
_SETTLED_ANGLE = 0.9 * 2 * np.pi / 3  # of all turns together, where one is not enough
_REFERENCE = "point", "score", "information"


class HmcChains:
    """Chains of ``hmc``, which are tuned while ``state.sweep`` is below ``burn_in.end``.

    problem : ``Problem``. start : ``gibbs.State``. burn_in : sweeps, or "auto". saved : what ``arrays`` gave, or None.
    """

    def __init__(self, problem, start, burn_in, saved=None):
        self.problem, self.burn_in = problem, BurnIn(burn_in, of_tuning, saved, problem.rows.ops)
        rows, fixed, _, _ = problem
        ops, p, (n_chains, q) = rows.ops, rows.columns.n_shrunk, start.beta.shape
        H = fixed.add_to(rows.gram()) if saved is None else np.array(saved.get("H", np.empty((q, q))))
        self.precision = ops.Precision(H, rows.threads)
        self.whitening = ops.Whitening(np.empty((q, q)), None, n_chains, p, rows.threads, memory_of=self.precision)
        self.reference = self.window = self.lines = None
        self.settings, self.every = _SETTINGS, every(rows)  # sweeps, of which one has moves along lines
        self.accepted = 0.0, 0  # sum and number of the acceptance rates after burn-in
        if saved is not None:
            self._restore(saved)
        else:
            zero, scales = ops.to_device(np.zeros(n_chains)), (start.lambda_sq_inv, start.tau_sq_inv)
            self.state = hmc.HmcState(start.beta, *scales, *rows.score(start.beta), 0, zero, zero)
            if burn_in == 0:  # a reference there must be
                self.state = self._climb()(self.state._replace(sweep=NO_SWEEP))
                self._refer(*self._mode())
                self.state = self.state._replace(sweep=0)
        self._choose_sweeps()

    @property
    def ends(self):
        """The sweeps with which the phases of burn-in end."""
        return self.burn_in.phases.ends

    @property
    def tuning(self):
        """What burn-in has chosen, and how often proposals have been accepted since."""
        total, count = self.accepted
        chosen = self.settings._asdict()
        del chosen["slow"], chosen["apart"]
        return {**chosen, "acceptance": float(total / count) if count else float("nan")}

    def advance(self):
        """One sweep, and what the end of its phase brings."""
        t, ends = self.state.sweep, self.ends
        with_lines = t % self.every == 0
        if t < ends[0]:
            self.state = self.sweeps(self.state)
        elif t < ends[-1]:
            window, ops = self.window, self.problem.rows.ops
            self.state = self.sweeps[with_lines](self.state, tuning=window.tuning(self.settings, ops))
            window.tune(self.state, ops)
            window.see(self.state)
        else:
            self.state = self.sweeps[with_lines](self.state, tuning=self.settings)
            total, count = self.accepted
            self.accepted = total + mean_of_chains(self.state.acceptance), count + 1
        if t < ends[-1]:
            self.burn_in.see(t + 1, self.state.beta, self.problem.rows.ops)
            if t + 1 in ends:
                self._next_phase()

    def _choose_sweeps(self):
        """The sweeps of this phase, without moves along lines and with them.

        None may reference these chains, which keep them: a cycle would hold memory of a GPU after an error.
        """
        rows, t = self.problem.rows, self.state.sweep
        if t < self.ends[0]:
            self.sweeps = self._whole(self._climb())
            return
        _, _, tau_0, key = self.problem
        law = partial(self._law(), rows=rows, ops=rows.ops, reference=self.reference, tau_0=tau_0, key=key)
        self.sweeps = [self._whole(law), self._whole(partial(law, lines=self.lines))]

    def _law(self):
        """A sweep after the climb, of beta and its scales."""
        return hmc.sweep

    def _whole(self, sweep):
        """A sweep of everything that there is to draw; ``sweep`` is that of beta and its scales."""
        return sweep

    def _climb(self):
        """From a state of the climb to the next one."""
        fixed = self.problem.rows.ops.to_device(self.problem.fixed)
        return partial(_climbed, problem=self.problem, fixed=fixed, precision=self.precision)

    def _next_phase(self):
        """What follows where the climb or a window has ended."""
        rows, t = self.problem.rows, self.state.sweep
        self.sweeps = None  # they keep memory
        following = [end for end in self.ends if end > t]
        if self.window is None:
            self._refer(*self._mode())
        else:
            self._end_window(len(following))
        self.window = Window(following[0] - t, self.settings, rows.ops) if following else None
        self._choose_sweeps()

    def _end_window(self, n_left):
        """Take from a window what it has found. n_left : windows that follow."""
        rows, p = self.problem.rows, self.problem.rows.columns.n_shrunk
        window = rows.ops.to_host(self.window)
        settings = self.settings._replace(**window.steps())
        if n_left < 2 and not window.scales_may_move():  # the Gaussian is too poor here for them to move with it
            settings = settings._replace(tau_moves=0)
        self.every = SELDOM if self._needs_no_lines(settings.step, window) else every(rows)
        if n_left > 0:
            information = rows.information(np.concatenate(window.points), self.precision.work)
            spread = window.spread(information, p)
            self._refer(window.beta / window.n_seen, window.score / window.n_seen, information, spread)
        if n_left == 1:
            n_steps = enough_steps(settings.step, self._least_angle())
            settings = settings._replace(n_steps=n_steps, slow=window.slowest(p), apart=n_steps > 1)
        elif n_left == 0:
            if settings.n_steps > 1:  # the last reference may need more of them
                n_steps = max(settings.n_steps, enough_steps(settings.step, _SETTLED_ANGLE))
                settings = settings._replace(n_steps=n_steps)
            settings = settings._replace(apart=settings.apart or window.scales_are_in_the_way())
            self.lines = self._final_lines(settings)
        self.settings = settings

    def _final_lines(self, settings):
        """``Lines`` after burn-in: where no scale moves under the Gaussian, more of them make up for it."""
        n_turns = 1 if settings.tau_moves else settings.n_steps
        return self.lines._replace(n_columns=singles(self.problem.rows, n_turns))

    def _least_angle(self):
        """Of one turn that is enough; more are cheap where a pass takes less than a factor."""
        q = self.state.beta.shape[1]
        return _ONE_TURN[self.problem.rows.n <= max(_FEW_ROWS, q**2)]

    def _needs_no_lines(self, step, window):
        """Whether paths with this step get everywhere: no state separates the classes, and a draw owes little to the
        one before; and moves along lines would cost more than they give."""
        if self.state.beta.shape[1] ** 2 > _LARGE * self.problem.rows.n:
            return False
        if enough_steps(step, self._least_angle()) > 1 and not window.forgets(self.problem.rows.columns.n_shrunk):
            return False
        return not self.problem.rows.separated_by(np.concatenate(window.points))

    def _refer(self, point, score, information, spread=None):
        """A new reference; ``precision`` is from now on that of its information. spread : as ``Window`` gives it."""
        rows, fixed, _, _ = self.problem
        self.whitening.refer(fixed.add_to(information.copy()), information @ point + score)
        widths = line_widths(rows.columns.n_shrunk, fixed, information.diagonal(), spread)
        self.lines = rows.lines(fixed, widths, n_splits=splits(rows))
        self.reference = hmc.Reference(*map(rows.ops.to_device, (point, score, information)), self.whitening)
        self.precision = rows.ops.Precision(self.whitening.H, rows.threads, memory_of=self.precision)

    def _mode(self):
        """The mode of beta given the mean scales of the chains, by Newton's method; with score and information."""
        rows, fixed, _, _ = self.problem
        ops, state = rows.ops, self.state
        d = np.exp(np.log(np.maximum(ops.to_host(gibbs.prior_precision(state, ops)), 1e-100)).mean(axis=0))

        def evaluate(point):
            (loglik,), (score,) = map(ops.to_host, rows.score(ops.to_device(point[None])))
            return loglik - (d * point) @ point / 2 - fixed.energy(point), score

        point = ops.to_host(state.beta).mean(axis=0)
        value, score = evaluate(point)
        for _ in range(4):
            information = rows.information(point[None], self.precision.work)
            solver = ops.Precision(fixed.add_to(information.copy()), rows.threads, memory_of=self.precision)
            system = (information @ point + score)[None], d[None], np.zeros((1, len(d)))
            new = ops.to_host(solver.draw(*map(ops.to_device, system)))[0]
            for _ in range(5):
                new_value, new_score = evaluate(new)
                if new_value >= value:
                    point, value, score = new, new_value, new_score
                    break
                new = (new + point) / 2
        return point, score, rows.information(point[None], self.precision.work)

    def shrinkage(self):
        """kappa_j (n_chains, n_shrunk) given the scales of the state."""
        return shrinkage(self.precision, self.state, self.problem.fixed, self.problem.rows.ops)

    def arrays(self):
        """All that a later run needs to go on."""
        *settings, slow, apart = self.settings
        out = {
            **self.state._asdict(),
            "settings": np.array([*settings, apart]),
            "slow": np.array(slow, int),
            "accepted": np.array([float(value) for value in self.accepted]),
            "every": self.every,
            **self.burn_in.arrays(self.problem.rows.ops),
        }
        if self.reference is None:
            out["H"] = self.precision.H
        else:
            out |= {f"reference_{name}": getattr(self.reference, name) for name in _REFERENCE}
            out["spread"] = self.lines.widths[: 1 + self.state.lambda_sq_inv.shape[1]]
        if self.window is not None:
            out |= {f"stage_{name}": value for name, value in self.window.arrays(self.problem.rows.ops).items()}
        return out

    def _restore(self, saved):
        rows = self.problem.rows
        step, n_steps, tau_moves, tau_step, apart = saved["settings"].tolist()
        slow = tuple(saved["slow"].tolist())
        self.settings = hmc.Tuning(step, int(n_steps), int(tau_moves), tau_step, slow, bool(apart))
        self.every, self.accepted = int(saved["every"]), tuple(saved["accepted"])
        fields = {name: saved[name] for name in hmc.HmcState._fields}
        self.state = rows.ops.to_device(hmc.HmcState(**{**fields, "sweep": int(saved["sweep"])}))
        if "H" not in saved:
            self._refer(*(saved[f"reference_{name}"] for name in _REFERENCE), saved["spread"])
            if len(self.ends) > 1 and self.state.sweep >= self.ends[-1]:
                self.lines = self._final_lines(self.settings)
        if "stage_n" in saved:
            window = {name[6:]: saved[name] for name in saved if name.startswith("stage_")}
            self.window = Window.restored(window, self.settings, rows.ops)


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
