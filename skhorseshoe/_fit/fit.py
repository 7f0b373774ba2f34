"""One fit: data, plan, rows, run, outcome; each is a value that the next step takes."""

import traceback
from functools import partial

from .._backends import device as _device
from .._utils import progress
from .._utils.interrupts import ctrl_c_noted
from .._utils.sklearn_compat import HAS_CALLBACKS
from .._utils.threads import open_threads
from . import input_findings, parameters, warm_start, warning_texts
from .callbacks import Tasks
from .data import checked
from .memory_forecast import fit_to_memory
from .opened_rows import inspect, open_rows
from .outcome import outcome
from .plan import plan_fit
from .sampling import sample


class Lease:
    """A context that frees GPU memory after a fit, also after an error, whose traceback holds arrays."""

    name = "cpu"

    def __enter__(self):
        return self

    def __exit__(self, kind, error, frames):
        while error is not None and self.name != "cpu":
            traceback.clear_frames(error.__traceback__)
            error = error.__cause__
        _device.give_back(self.name)


def fit(model, given, X, by_row, lease):
    """``Fitted`` for ``HorseshoeProbitClassifier.fit``; ``model`` stays as it is.

    given : its ``Parameters``. by_row : ``RowArguments``. lease : ``Lease``, which learns the device.
    """
    data = checked(model, given, X, by_row)
    params = parameters.settled(given, data.outnumber, data.likelihood(given.likelihood))
    earlier = warm_start.earlier(model) if params.warm_start else None
    plan = plan_fit(params, data, 0 if earlier is None else int(earlier["n_iter"]))
    data = data._replace(original_X=None, rows=None)  # frees them, where the plan has copies
    plan, needed = fit_to_memory(plan, data.groups, params.checkpoint is not None)
    lease.name = plan.device.name
    known = {**data.known, "device_": plan.device.name, "sampler_": plan.settings.sampler}
    weight = by_row.sample_weight  # scorers take no other argument, so rows are scored as those of new groups
    metadata = {} if weight is None else {"sample_weight": weight}
    arguments = {"estimator": model, "X": X, "y": by_row.y, "metadata": metadata}
    callbacks = partial(Tasks, arguments, known) if HAS_CALLBACKS else lambda run: None
    on_device = plan.device.ops.using(plan.device.name)
    with progress.visible(params.verbose), open_threads(plan.n_threads) as threads, on_device:
        if params.verbose:
            _, where, reason = plan.device
            where += f" ({reason})" if reason else ""
            progress.logger.info("%d rows of %d features on %s: %s", *plan.shape, where, needed)
        with open_rows(params, data, plan, threads) as rows:
            seen = inspect(params, data, plan, rows)
            early = [*input_findings.about_order(data), *plan.findings]
            warning_texts.warn_of(early + input_findings.before_sampling(params, data, rows, seen))
            n_shrunk = int((~data.unpenalized).sum())
            sampled = sample(params, plan, seen, rows, n_shrunk, earlier, callbacks)
            with ctrl_c_noted():  # one Ctrl-C loses none of the draws
                return outcome(params, data, plan, seen, sampled, known)
