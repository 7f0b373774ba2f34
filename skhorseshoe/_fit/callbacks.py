"""scikit-learn's callbacks (1.9 and later): what a fit tells them, and when.

A fit is a task whose subtasks are blocks of sweeps. On its own it has parts between, each with a progress bar: burn-in,
and the halves of sampling, the second of which says how the chains stand; where nobody knows how long sampling will be,
parts of it that double. Inside a search or a pipeline it is one bar.
"""

import math
import time
from contextlib import contextmanager, nullcontext

from .._mcmc.burn_in import AUTO
from .._mcmc.draws import STORED
from .._utils.sklearn_compat import HAS_CALLBACKS
from ..diagnostics import rhat

_BLOCKS = 20  # about, of sweeps; each is kept until the fit ends, and takes a bar half a millisecond
_BLOCK, _PART = 100, 250  # sweeps of a block and of the first part, where the number of all is not known
_SHARE = 0.001  # of the time so far that R-hat may take
_SECONDS = 5e-8  # that it takes for a number
_FEWEST = 100  # draws of a chain that it is computed from


class Tasks:
    """A function of the number of sweeps done that tells the callbacks of a model; it returns True to stop the run.

    given : the estimator, X, y and metadata, by name, as ``fit`` has them. known : attributes that the model will have,
    draws apart.
    """

    def __init__(self, given, known, run):
        model = given["estimator"]
        self.given, self.known, self.run, self.begun = given, known, run, time.monotonic()
        self.now = run.sweep
        self.is_open = run.settings.target_ess is not None or run.settings.burn_in == AUTO
        self.size = _BLOCK if self.is_open else max(1, -(-(self._last() - self.now) // _BLOCKS))
        self.nested = hasattr(model, "_parent_callback_ctx")
        self.heard = bool(getattr(model, "_skl_callbacks", None))
        # Two parts of sampling, since each is a line to draw ten times a second, 0.2 ms every time.
        half = (max(run.burn_in, self.now) + self._last()) // 2
        self.ends = sorted(end for end in {run.burn_in, half, self._last()} if end > self.now)  # where that is known
        self.stop = False  # whether a callback has asked for it; that is obeyed when there is a draw
        self.open = []  # the tasks that have begun: the fit, its part if there are parts, the block
        n = _blocks(self.now, self._last(), self.size) if self.nested else len(self.ends)
        self._begin(model._init_callback_context(max_subtasks=None if self.is_open else n))
        if self.now < self._last():
            self._begin_block()

    def _last(self):
        """The sweep with which the fit ends at the latest, as it is planned now."""
        return self.run.burn_in + self.run.settings.n_iter

    def _end_of_part(self):
        """The sweep with which the part that begins now ends."""
        if not self.is_open:
            return next(end for end in self.ends if end > self.now)
        done = self.now - self.run.burn_in
        if done < 0:
            return self.run.burn_in
        return min(self._last(), self.run.burn_in + (_PART << (done // _PART).bit_length()))

    def __call__(self, t):
        end_of_part = not self.nested and t == self.end
        if (t - self.now) >= self.size or end_of_part or t >= self._last():
            self._tell(t, end_of_part)
        return self.stop

    def _tell(self, t, end_of_part):
        """A block has ended."""
        self.now = t
        self._end()
        if end_of_part:
            self._end()
        over = self.run.stopped_by != "n_iter" or (self.stop and self.run.draws.n)
        if t < self._last() and not over:
            self._begin_block(new_part=end_of_part)

    def close(self):
        """The fit has ended, perhaps in the middle of a block."""
        while self.open:
            self._end()

    def _begin_block(self, new_part=True):
        """Begin the next block, and its part if there are parts."""
        if not self.nested and new_part:
            self.end = self._end_of_part()
            n = _blocks(self.now, self.end, self.size)
            self._begin(self.open[-1].subcontext(task_name=self._name(self.end), max_subtasks=n))
        self._begin(self.open[-1].subcontext(task_name="sweeps"))

    def _begin(self, task):
        self.open.append(task)
        task.call_on_fit_task_begin(**self.given)

    def _end(self):
        """End the innermost task; for a block the callbacks can have the model as it is now."""
        task = self.open.pop()
        fitted = self._fitted() if task.max_subtasks == 0 else None
        self.stop |= task.call_on_fit_task_end(**self.given, reconstruction_attributes=fitted)

    def _name(self, end):
        burn_in = self.run.burn_in
        if end <= burn_in:
            return f"burn-in, {burn_in} sweeps"
        name = f"sweeps {self.now - burn_in + 1}-{end - burn_in}"  # short: a terminal has 80 columns, or 120
        return name + self._worst_rhat() if self.heard else name

    def _worst_rhat(self):
        """In words, of as many draws, evenly spaced, as the time so far allows; "" if they are too few."""
        draws = self.run.draws
        n_chains, _, p = draws.coef.shape
        affordable = _SHARE * (time.monotonic() - self.begun) / (_SECONDS * n_chains * (p + 1))
        step = max(1, math.ceil(draws.n / max(affordable, 1)))
        if draws.n < _FEWEST * step:
            return ""
        coef, tau = (values[:, : draws.n : step] for values in (draws.coef, draws.global_scale[..., None]))
        return f", worst R-hat {max(rhat(coef[..., draws.columns.informative]).max(), rhat(tau)[0]):.3f}"

    def _fitted(self):
        """What a model needs to predict with the draws so far; None before there are any."""
        draws = self.run.draws
        if draws.n == 0:
            return None
        names = STORED if draws.groups is None else (*STORED, "group_scale")
        return lambda: {**self.known, **{f"{name}_draws_": getattr(draws, name)[:, : draws.n] for name in names}}


def _blocks(first, last, size):
    return max(1, -(-(last - first) // size))


@contextmanager
def selection_task(selector, X, y, n_folds):
    """Tells the callbacks of a selector; yields a function of a classifier for a context in which it has them too."""
    if not HAS_CALLBACKS:
        yield nullcontext
        return
    whole = selector._init_callback_context(max_subtasks=int(not selector.prefit) + n_folds)
    whole.call_on_fit_task_begin(estimator=selector, X=X, y=y)

    @contextmanager
    def classifier(model):
        part = whole.subcontext(task_name="fit-classifier")
        with part.propagate_callback_context(model):
            part.call_on_fit_task_begin(estimator=selector, X=X, y=y)
            yield
            part.call_on_fit_task_end(estimator=selector, X=X, y=y)

    yield classifier
    whole.call_on_fit_task_end(estimator=selector, X=X, y=y)
