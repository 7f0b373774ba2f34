"""The run of the sampler, with all that watches it: the log, the callbacks, the checkpoint."""

import time
from contextlib import nullcontext, suppress
from functools import partial
from numbers import Integral

from .._mcmc.run import Run
from .._utils import progress
from .._utils.signals import held_back
from .._version import __version__
from . import warm_start
from .checkpoint import Checkpoint, check_saved


def sample(params, problem, plan, earlier, callbacks_of):
    """The ``Run`` of a problem, at its end, and the seconds that a sweep has taken.

    earlier : what a model has kept to go on with its chains, or None. callbacks_of : function of the run.
    """
    settings, saved = plan.settings, earlier
    if saved is not None:
        warm_start.check_same(saved, problem, settings)
    checkpoint = _checkpoint(params, problem, settings, plan.device.name)
    with checkpoint or nullcontext():
        if checkpoint is not None:
            saved = checkpoint.load(settings.n_iter, partial(check_saved, problem=problem, settings=settings))
        run = Run(problem, settings, saved)
        sweep = _go(run, params.verbose, checkpoint, callbacks_of(run))
    return run, sweep


def _checkpoint(params, problem, settings, device):
    """The ``Checkpoint`` to read and write, or None."""
    if params.checkpoint is None:
        return None
    seed = params.random_state
    if not isinstance(seed, Integral):  # a generator is known by what it has drawn, a fresh seed by nothing
        seed = "fresh" if seed is None else f"a generator that draws {problem.key.tolist()}"
    what = {**warm_start.described(problem, settings), "random_state": str(seed), "device": device}
    return Checkpoint(params.checkpoint, params.checkpoint_interval, what, __version__)


def _go(run, verbose, checkpoint, callbacks):
    """Run to the end; returns the seconds that a sweep of the second half has taken, when all was compiled."""
    log, first = _log(verbose, run), run.sweep
    marks = 2 * [(0, time.monotonic())]  # sweeps of this fit, twice as many each time, and when they were done

    def save():
        if checkpoint is not None and run.whole:
            checkpoint.write(run)

    with nullcontext(lambda: None) if checkpoint is None else held_back() as call_handler:

        def report(t):
            if t - first >= 2 * marks[-1][0]:
                marks.append((t - first, time.monotonic()))
            log(t)
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.write(run)
            enough = callbacks(t)
            call_handler()
            return enough

        try:
            run.go(report)
        except BaseException:
            with suppress(Exception):  # what has ended the run is what to say
                save()
            raise
        save()
    callbacks.close()
    done, then = marks[-2]
    return (time.monotonic() - then) / max(1, run.sweep - first - done)


def _log(verbose, run):
    """A function of the number of sweeps done that logs a line now and then, and warns of a fit of hours."""
    of, about = ("of", "about") if run.settings.target_ess is None else ("of at most", "at most")

    def end():
        return run.burn_in + run.settings.n_iter

    def line(t, left):
        time_left = f"{left:.0f} s" if left < 120 else f"{left / 60:.0f} minutes"
        return f"{'burn-in' if t <= run.burn_in else 'sampling'}: sweep {t} {of} {end()}, {about} {time_left} left"

    def too_long(t, sweep, left):
        hours = left / 3600
        return (
            f"At {sweep:.2g} s a sweep, the {end() - t} sweeps that are left {of} {end()} take {about} "
            f"{f'{hours:.0f} hours' if hours < 48 else f'{hours / 24:.0f} days'}. To shorten it, set target_ess or "
            "reduce rows or columns; checkpoint saves progress, verbose=1 reports progress, and Ctrl-C ends the fit "
            "with the draws so far."
        )

    return progress.reporter(verbose, end, line, too_long)
