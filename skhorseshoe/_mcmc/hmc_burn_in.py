"""Chains of the split Hamiltonian sampler, and their burn-in, which finds the reference and the steps.

climb     The first tenth of burn-in runs data augmentation with E[z] in place of z, which works from any start. The
          first reference is the mode given the scales at its end.
windows   Each tunes the step sizes and ends with a better reference: the means of beta and of the score over its
          second half, and the information averaged over states there, which describes the log-likelihood over the
          whole posterior and not only at one point. An automatic burn-in repeats the last window but one, twice as
          long, until the chains agree in it.
sample    Everything is frozen.
"""

import numpy as np

from .._backends import COEF_PURPOSE, NO_SWEEP
from .._backends.line_moves import line_interval, line_widths, n_single_moves, n_split_moves
from . import gibbs, hmc
from .adaptation_window import Window, mean_of_chains, steps_for_angle
from .burn_in import BurnIn, tuned_phases
from .chains import Chains, shrinkage

_FIRST_TUNING = hmc.Tuning(step=1.0, n_steps=1, tau_moves=4, tau_step=0.8)  # of the first window
_LEAST_ANGLE_OF_ONE_STEP = 0.85 * np.pi / 2, 0.95 * np.pi / 2  # of a trajectory; the second if passes are cheap
_CHEAP_PASS_ROWS = 2**11  # number of rows up to which passes are cheap
_LARGE_SQUARE_PER_ROW = 10  # q^2 / n above which line moves cost little relative to matrices over the columns
_LEAST_ANGLE_OF_SEVERAL_STEPS = 0.9 * 2 * np.pi / 3
_REFERENCE = "point", "score", "information"  # fields of ``Reference`` that are saved


class HmcChains(Chains):
    """Chains of ``hmc``; they are tuned while ``state.sweep`` is below ``burn_in.end``."""

    def __init__(self, problem, start, burn_in, saved=None, blocks=()):
        self.problem, self.blocks = problem, blocks
        self.burn_in = BurnIn(burn_in, tuned_phases, saved, problem.rows.ops)
        rows, fixed, _, _ = problem
        ops, p, (n_chains, q) = rows.ops, rows.columns.n_shrunk, start.beta.shape
        H = fixed.add_to(rows.gram()) if saved is None else np.array(saved.get("H", np.empty((q, q))))
        self.precision = ops.Precision(H, rows.threads)
        of_contrasts = (d,) if (d := rows.columns.n_contrasts) > 1 else ()
        of_chains = n_chains, p, rows.threads, self.precision
        self.mass_matrix = ops.MassMatrix(np.empty((q, q)), None, *of_chains, *of_contrasts)
        self.fixed = ops.to_device(fixed)
        self.reference = self.window = self.lines = None
        self.tuning, self.line_interval = _FIRST_TUNING, line_interval(rows)
        self.accepted = 0.0, 0  # sum and number of the acceptance rates after burn-in
        if saved is not None:
            self._restore(saved)
        else:
            zero, (loglik, score) = ops.to_device(np.zeros(n_chains)), rows.score(start.beta)
            self.state = hmc.HmcState(start.beta, start.lambda_sq_inv, start.tau_sq_inv, loglik, score, 0, zero, zero)
            if burn_in == 0:  # a reference is needed all the same
                self.state = self._climb(self.state._replace(sweep=NO_SWEEP))
                self._set_reference(self._mode())
                self.state = self.state._replace(sweep=0)

    @property
    def tuning_report(self):
        """What burn-in has tuned and chosen, and the mean acceptance since."""
        total, count = self.accepted
        chosen = self.tuning._asdict()
        del chosen["slow"], chosen["apart"]
        return {**chosen, "acceptance": float(total / count) if count else float("nan")}

    def advance(self):
        """One sweep, and the next phase of burn-in where one has ended."""
        t, ends, ops = self.state.sweep, self.burn_in.phases.ends, self.problem.rows.ops
        if t < ends[0]:
            self.state = self._swept(self._climb)
        elif t < ends[-1]:
            if t < ends[-2]:
                for block in self.blocks:
                    block.see(self.window.n_seen)
            self.state = self._moved(self.window.next_tuning(self.tuning, ops))
            self.window.tune(self.state, ops)
            self.window.add(self.state)
        else:
            self.state = self._moved(self.tuning)
            total, count = self.accepted
            self.accepted = total + mean_of_chains(self.state.acceptance), count + 1
        if t < ends[-1]:
            self.burn_in.add(t + 1, self._judged, ops)
            if t + 1 in ends:
                self._next_phase()

    def _moved(self, tuning):
        """The state after a sweep that follows the climb."""
        return self._swept(lambda state: self._law(state, self.reference, tuning))

    def _law(self, state, reference, tuning):
        lines = self.lines if state.sweep % self.line_interval == 0 else None
        for block in self.blocks:
            reference = block.held(reference)
        return hmc.sweep(state, self.problem, reference, tuning, lines=lines)

    def _climb(self, state):
        """A sweep of data augmentation with the mean of z in place of z, which is defined with weights too."""
        rows, _, _, key = self.problem
        ops, beta, t = rows.ops, state.beta, state.sweep
        noise = ops.normal(beta.shape, key, t, COEF_PURPOSE)
        xtz = ops.times_symmetric(beta, self.precision.H) - self.fixed.force(beta) + state.score
        beta = self.precision.draw(xtz, gibbs.prior_precision(state, ops), noise)  # xtz is X' E[z | beta]
        state = hmc.draw_scales(state._replace(beta=beta), self.problem)
        loglik, score = rows.score(beta)
        return state._replace(loglik=loglik, score=score, sweep=t + 1)

    def _next_phase(self):
        """Ends the climb or a window, and begins the next one."""
        rows, t = self.problem.rows, self.state.sweep
        following = [end for end in self.burn_in.phases.ends if end > t]
        if self.window is None:
            self._set_reference(self._mode())
        else:
            self._end_window(len(following))
        self.window = Window(following[0] - t, self.tuning, rows.ops) if following else None
        for block in self.blocks:
            block.end_phase()

    def _end_window(self, n_left):
        """Take over what a window has learnt. n_left : number of windows that follow."""
        rows, p = self.problem.rows, self.problem.rows.columns.n_shrunk
        window = rows.ops.to_host(self.window)
        tuning = window.last_tuning(self.tuning)
        if n_left < 2 and not window.scales_move_well():  # the Gaussian is too poor for moves of the scales
            tuning = tuning._replace(tau_moves=0)
        self.line_interval = line_interval(rows, self._needs_no_lines(tuning.step, window))
        if n_left > 0:
            information = rows.information(np.concatenate(window.points), self.precision.work)
            point, score = window.beta / window.n_seen, window.score / window.n_seen
            reference = hmc.Reference(point, score, information, self.mass_matrix)
            self._set_reference(reference, window.spread(information, p))
        if n_left == 1:
            n_steps = steps_for_angle(tuning.step, self._least_angle())
            slow = window.slowest(p, rows.columns.n_contrasts)
            tuning = tuning._replace(n_steps=n_steps, slow=slow, apart=n_steps > 1)
        elif n_left == 0:
            if tuning.n_steps > 1:  # the last reference may need more steps
                n_steps = max(tuning.n_steps, steps_for_angle(tuning.step, _LEAST_ANGLE_OF_SEVERAL_STEPS))
                tuning = tuning._replace(n_steps=n_steps)
            tuning = tuning._replace(apart=tuning.apart or window.scales_hinder())
            self.lines = self._final_lines(tuning)
        self.tuning = tuning

    def _final_lines(self, tuning):
        """``Lines`` after burn-in; where the scales do not move under the Gaussian, with more single moves."""
        n_steps = 1 if tuning.tau_moves else tuning.n_steps
        return self.lines._replace(n_columns=n_single_moves(self.problem.rows, n_steps))

    def _least_angle(self):
        """The least angle of a trajectory of one step; larger where a pass takes less time than a Cholesky factor."""
        q = self.state.beta.shape[1]
        return _LEAST_ANGLE_OF_ONE_STEP[self.problem.rows.n <= max(_CHEAP_PASS_ROWS, q**2)]

    def _needs_no_lines(self, step, window):
        """Whether trajectories of this step size mix well alone, so that line moves cost more than they give: no state
        separates the classes, and successive draws are nearly independent."""
        if self.state.beta.shape[1] ** 2 > _LARGE_SQUARE_PER_ROW * self.problem.rows.n:
            return False
        if steps_for_angle(step, self._least_angle()) > 1 and not window.forgets(self.problem.rows.columns.n_shrunk):
            return False
        return not self.problem.rows.separated_by(np.concatenate(window.points))

    def _set_reference(self, reference, spread=None):
        """Take a new reference, of the host, and ``precision`` from it. spread : as ``Window.spread`` gives it."""
        rows, fixed, _, _ = self.problem
        point, score, information, _ = reference
        self.mass_matrix.set_reference(fixed.add_to(information.copy()), information @ point + score)
        widths = line_widths(rows.columns.n_shrunk, fixed, information.diagonal(), spread)
        self.lines = rows.lines(fixed, widths, n_splits=n_split_moves(rows))
        point, score, information = rows.ops.to_device((point, score, information))
        self.reference = hmc.Reference(point, score, information, self.mass_matrix)
        self.precision = rows.ops.Precision(self.mass_matrix.H, rows.threads, memory_from=self.precision)
        for block in self.blocks:
            block.set_reference(reference.point)

    def _mode(self):
        """The reference at the mode of beta given the mean scales of the chains, by Newton's method; on the host."""
        rows, fixed, _, _ = self.problem
        ops, state = rows.ops, self.state
        for block in self.blocks:
            block.stay(state.beta)
        d = np.exp(np.log(np.maximum(ops.to_host(gibbs.prior_precision(state, ops)), 1e-100)).mean(axis=0))

        def evaluate(point):
            (loglik,), (score,) = map(ops.to_host, rows.score(ops.to_device(point[None])))
            return loglik - (d * point) @ point / 2 - fixed.energy(point), score

        point = ops.to_host(state.beta).mean(axis=0)
        value, score = evaluate(point)
        for _ in range(4):
            information = rows.information(point[None], self.precision.work)
            solver = ops.Precision(fixed.add_to(information.copy()), rows.threads, memory_from=self.precision)
            b, diagonal, noise = ops.to_device(((information @ point + score)[None], d[None], np.zeros((1, len(d)))))
            new = ops.to_host(solver.draw(b, diagonal, noise))[0]
            for _ in range(5):
                new_value, new_score = evaluate(new)
                if new_value >= value:
                    point, value, score = new, new_value, new_score
                    break
                new = (new + point) / 2
        information = rows.information(point[None], self.precision.work)
        reference = hmc.Reference(point, score, information, self.mass_matrix)
        for block in self.blocks:
            reference = block.followed(reference, self.precision.work)
        return reference

    def shrinkage(self):
        return shrinkage(self.precision, self.state, self.problem.fixed, self.problem.rows.ops)

    def _own_arrays(self):
        *numbers, slow, apart = self.tuning
        out = {
            **self.state._asdict(),
            "settings": np.array([*numbers, apart]),
            "slow": np.array(slow, int),
            "accepted": np.array([float(value) for value in self.accepted]),
            "every": self.line_interval,
            **self.burn_in.arrays(self.problem.rows.ops),
        }
        if self.reference is None:
            out["H"] = self.precision.H
        else:
            out |= {f"reference_{name}": getattr(self.reference, name) for name in _REFERENCE}
            out["spread"] = self.lines.widths[: 1 + self.state.lambda_sq_inv.shape[1]]
        if self.window is not None:
            out |= {f"window_{name}": value for name, value in self.window.arrays(self.problem.rows.ops).items()}
        return out

    def _restore(self, saved):
        rows = self.problem.rows
        step, n_steps, tau_moves, tau_step, apart = saved["settings"].tolist()
        slow = tuple(saved["slow"].tolist())
        self.tuning = hmc.Tuning(step, int(n_steps), int(tau_moves), tau_step, slow, bool(apart))
        self.line_interval, self.accepted = int(saved["every"]), tuple(saved["accepted"])
        state = hmc.HmcState._make(saved[name] for name in hmc.HmcState._fields)
        self.state = rows.ops.to_device(state._replace(sweep=int(saved["sweep"])))
        if "H" not in saved:
            point, score, information = (saved[f"reference_{name}"] for name in _REFERENCE)
            self._set_reference(hmc.Reference(point, score, information, self.mass_matrix), saved["spread"])
            if len(self.burn_in.phases.ends) > 1 and self.state.sweep >= self.burn_in.end:
                self.lines = self._final_lines(self.tuning)
        if "window_n" in saved:
            window = {name.removeprefix("window_"): saved[name] for name in saved if name.startswith("window_")}
            self.window = Window.restored(window, self.tuning, rows.ops)
