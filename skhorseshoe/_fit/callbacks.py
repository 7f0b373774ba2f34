"""scikit-learn's callbacks (1.9 and later): what a fit tells them, and when.

A fit is a task, and its subtasks are blocks of sweeps. A fit by itself groups the blocks in parts, each with a progress
bar: burn-in and the two halves of sampling. Where the length of sampling is not known, its parts double in length. The
name of a part says what R-hat is when it begins. Inside a search or a pipeline a fit is one bar.
"""

import math
import time
from contextlib import contextmanager, nullcontext

from .._mcmc.burn_in import AUTO
from .._mcmc.draws import STORED
from .._utils.sklearn_compat import HAS_CALLBACKS
from ..diagnostics import rhat
from .sparse_input import in_all_columns

_BLOCKS = 20  # approximate number of blocks; scikit-learn keeps each until the fit ends, and a bar takes 0.5 ms for it
_BLOCK_SWEEPS, _PART_SWEEPS = 100, 250  # of a block and of the first part, where the length of sampling is not known
_RHAT_SHARE = 0.001  # largest share of the time so far that R-hat may take
_RHAT_SECONDS = 5e-8  # seconds that R-hat takes for one number
_FEWEST_DRAWS = 100  # fewest draws of a chain from which R-hat is computed


class Tasks:
    """A function of the number of sweeps done that tells the callbacks of a model; it returns True to stop the run.

    arguments : the estimator, X, y and metadata, by name, as ``fit`` has them. known : attributes that the model will
    have, without the draws.
    """

    def __init__(self, arguments, known, run):
        model = arguments["estimator"]
        self.arguments, self.known, self.run, self.begun = arguments, known, run, time.monotonic()
        self.sweep = run.sweep
        self.is_open = run.settings.target_ess is not None or run.settings.burn_in == AUTO
        self.size = _BLOCK_SWEEPS if self.is_open else max(1, -(-(self._last() - self.sweep) // _BLOCKS))
        self.nested = hasattr(model, "_parent_callback_ctx")
        self.has_callbacks = bool(getattr(model, "_skl_callbacks", None))
        # Only two parts of sampling: each is a line that is drawn ten times a second, in 0.2 ms.
        half = (max(run.burn_in, self.sweep) + self._last()) // 2
        self.ends = sorted(end for end in {run.burn_in, half, self._last()} if end > self.sweep)  # if not is_open
        self.stop = False  # whether a callback has asked to stop; the run stops once there is a draw
        self.open = []  # the tasks that have begun, outermost first: the fit, the part if there are parts, the block
        n = _blocks(self.sweep, self._last(), self.size) if self.nested else len(self.ends)
        self._begin(model._init_callback_context(max_subtasks=None if self.is_open else n))
        if self.sweep < self._last():
            self._begin_block()

    def _last(self):
        """The last sweep of the fit as planned now; it may end earlier."""
        return self.run.burn_in + self.run.settings.n_iter

    def _end_of_part(self):
        """The last sweep of the part that begins now."""
        if not self.is_open:
            return next(end for end in self.ends if end > self.sweep)
        done = self.sweep - self.run.burn_in
        if done < 0:
            return self.run.burn_in
        return min(self._last(), self.run.burn_in + (_PART_SWEEPS << (done // _PART_SWEEPS).bit_length()))

    def __call__(self, t):
        end_of_part = not self.nested and t == self.end
        if (t - self.sweep) >= self.size or end_of_part or t >= self._last():
            self._tell(t, end_of_part)
        return self.stop

    def _tell(self, t, end_of_part):
        """Tell that a block has ended, and that the next one begins."""
        self.sweep = t
        self._end()
        if end_of_part:
            self._end()
        over = self.run.stopped_by != "n_iter" or (self.stop and self.run.draws.n)
        if t < self._last() and not over:
            self._begin_block(new_part=end_of_part)

    def close(self):
        """End all open tasks: the fit has ended, perhaps in the middle of a block."""
        while self.open:
            self._end()

    def _begin_block(self, new_part=True):
        """Begin the next block, and a new part before it if there are parts."""
        if not self.nested and new_part:
            self.end = self._end_of_part()
            n = _blocks(self.sweep, self.end, self.size)
            self._begin(self.open[-1].subcontext(task_name=self._name(self.end), max_subtasks=n))
        self._begin(self.open[-1].subcontext(task_name="sweeps"))

    def _begin(self, task):
        self.open.append(task)
        task.call_on_fit_task_begin(**self.arguments)

    def _end(self):
        """End the innermost task. At the end of a block, callbacks can have the model as it is now."""
        task = self.open.pop()
        fitted = self._fitted() if task.max_subtasks == 0 else None
        self.stop |= task.call_on_fit_task_end(**self.arguments, reconstruction_attributes=fitted)

    def _name(self, end):
        burn_in = self.run.burn_in
        if end <= burn_in:
            return f"burn-in, {burn_in} sweeps"
        name = f"sweeps {self.sweep - burn_in + 1}-{end - burn_in}"  # short: a terminal has 80 columns, or 120
        return name + self._worst_rhat() if self.has_callbacks else name

    def _worst_rhat(self):
        """The largest R-hat in words, of as many evenly spaced draws as there is time for; "" if these are too few."""
        draws = self.run.draws
        n_chains, _, *_, p = draws.coef.shape
        affordable = _RHAT_SHARE * (time.monotonic() - self.begun) / (_RHAT_SECONDS * n_chains * (p + 1))
        step = max(1, math.ceil(draws.n / max(affordable, 1)))
        if draws.n < _FEWEST_DRAWS * step:
            return ""
        coef, tau = (values[:, : draws.n : step] for values in (draws.coef, draws.global_scale[..., None]))
        return f", worst R-hat {max(rhat(coef[..., draws.columns.informative]).max(), rhat(tau)[0]):.3f}"

    def _fitted(self):
        """A function that returns the attributes that a model needs to predict; None before the first draw, and with
        an offset, which scorers would not hand on."""
        draws, columns = self.run.draws, self.run.problem.rows.numbers
        if draws.n == 0 or "_has_offset" in self.known:
            return None

        def attributes():
            drawn = {f"{name}_draws_": getattr(draws, name)[:, : draws.n] for name in STORED}
            for of_block in draws.of_blocks:
                drawn |= of_block.to_predict(draws.n)
            if columns is not None:
                drawn["coef_draws_"] = in_all_columns(drawn["coef_draws_"], columns, self.known["n_features_in_"])
            return {**self.known, **drawn}

        return attributes


def _blocks(first, last, size):
    return max(1, -(-(last - first) // size))


@contextmanager
def selection_task(selector, X, y, n_folds):
    """Tell the callbacks of a selector. Yields a function of a classifier: the context in which it has them too."""
    if not HAS_CALLBACKS:
        yield nullcontext
        return
    selector_task = selector._init_callback_context(max_subtasks=int(not selector.prefit) + n_folds)
    selector_task.call_on_fit_task_begin(estimator=selector, X=X, y=y)

    @contextmanager
    def classifier(model):
        classifier_task = selector_task.subcontext(task_name="fit-classifier")
        with classifier_task.propagate_callback_context(model):
            classifier_task.call_on_fit_task_begin(estimator=selector, X=X, y=y)
            yield
            classifier_task.call_on_fit_task_end(estimator=selector, X=X, y=y)

    yield classifier
    selector_task.call_on_fit_task_end(estimator=selector, X=X, y=y)
