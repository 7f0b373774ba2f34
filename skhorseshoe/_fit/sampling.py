"""The run of a fit: begun anew or resumed, logged, saved, and told to callbacks."""

import time
from contextlib import nullcontext, suppress
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._mcmc.prior import SLABS, FixedPrior, slabs_of
from .._mcmc.run import Problem, Run
from .._model.horseshoe import scale_of_tau_prior
from .._utils.interrupts import ctrl_c_noted, sigterm_deferred
from .._version import __version__
from . import warm_start
from .checkpoint import Checkpoint
from .sweep_report import log_where_it_goes_on, reporter_of
from .warning_texts import warn_of


class Sampled(NamedTuple):
    """A run at its end."""

    run: Run
    seconds_per_sweep: float
    what: dict | None  # of ``warm_start.dependencies``, where chains may be continued


def sample(params, plan, seen, rows, n_shrunk, earlier, callbacks):
    """``Sampled``, resumed from a checkpoint or an earlier fit if there is one.

    seen : ``Inspected``. n_shrunk : columns of X that are shrunk, empty ones too. earlier : saved chains to go on with,
    or None. callbacks : function of the run.
    """
    problem = _problem(params, rows, n_shrunk)
    try:
        return _resume_or_start(params, problem, plan, earlier, seen, callbacks)
    except BaseException:  # the columns may be its cause
        with suppress(Warning):
            cure = "Set standardize=True." if any(f.changes for f in seen.findings) else ""
            warn_of(seen.findings, cure)
        raise


def _problem(params, rows, n_shrunk):
    """The ``Problem``: the rows, the prior and the seed. n_shrunk : columns of X that are shrunk, empty ones too."""
    scale, expected, n = params.global_scale, params.expected_nonzero, rows.size()
    tau_0 = scale_of_tau_prior(scale, expected, n_shrunk, n, rows.rate(), rows.likelihood)
    seed = params.random_state
    if seed is None:  # not from NumPy's global generator, which no fit changes
        key = np.random.SeedSequence().generate_state(2)
    elif isinstance(seed, np.random.Generator):
        key = seed.integers(0, 2**32, size=2, dtype=np.uint32)
    else:
        key = check_random_state(seed).randint(0, 2**32, size=2, dtype=np.uint32)
    slab_scale, shrunk = params.slab_scale, rows.columns.order[: rows.columns.n_shrunk]
    slab_scale = slabs_of(rows.contrast[shrunk], SLABS[slab_scale]) if slab_scale in SLABS else slab_scale
    return Problem(rows, FixedPrior(rows.columns, slab_scale), tau_0, key)


def _resume_or_start(params, problem, plan, earlier, seen, callbacks):
    settings, saved, what = plan.settings, earlier, None
    if params.warm_start or params.checkpoint is not None:  # it may take a pass over the rows
        what = warm_start.dependencies(params, problem, settings)
    if saved is not None:
        warm_start.check_same(saved, what)
        warm_start.check_seed(saved, problem, params.random_state)
        if plan.stored is not None:
            draws = saved["draws"]
            saved = {**saved, "draws": {**draws, "coef": draws["coef"][..., plan.stored]}}
    checkpoint = _checkpoint(params, what, problem.key, plan.device.name)
    with checkpoint or nullcontext():
        if checkpoint is not None:
            saved = checkpoint.load(settings.n_iter)
        run = Run(problem, settings, saved, seen.unbounded, seen.watched, seen.sets)
        if saved is not None:
            log_where_it_goes_on(run, "the last fit" if checkpoint is None else checkpoint.name)
        seconds_per_sweep = _go(run, params, checkpoint, callbacks(run))
    return Sampled(run, seconds_per_sweep, what)


def _checkpoint(params, what, key, device):
    """The ``Checkpoint`` to read and write, or None. what : of ``warm_start.dependencies``. key : of the problem."""
    if params.checkpoint is None:
        return None
    seed = params.random_state
    if not isinstance(seed, Integral):  # a generator is identified by what it has drawn; a fresh seed cannot be
        seed = "fresh" if seed is None else f"a generator that draws {key.tolist()}"
    identity = {**what, "random_state": str(seed), "device": device}
    return Checkpoint(params.checkpoint, params.checkpoint_interval, identity, __version__, params.max_time == 0)


def _go(run, params, checkpoint, callbacks):
    """Run to the end; returns seconds a sweep of the second half, when all kernels are compiled, or 0.0."""
    log, first = reporter_of(run, params.verbose), run.sweep
    marks = 2 * [(0, time.monotonic())]  # sweeps of this fit, about twice as many each time, and when they were done

    def save():
        if checkpoint is not None and run.whole:
            checkpoint.write(run)

    with nullcontext(lambda: None) if checkpoint is None else sigterm_deferred() as call_handler:

        def report(t):
            if t - first >= 2 * marks[-1][0]:
                marks.append((t - first, time.monotonic()))
            log(t)
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.write(run)
            stop = callbacks is not None and callbacks(t)
            call_handler()
            return stop

        try:
            run.go(report, params.ends_at)
        except BaseException:
            with suppress(Exception):  # the error that has ended the run is the one to raise
                save()
            raise
        with ctrl_c_noted():  # one Ctrl-C loses none of the draws, here and after it
            save()
            if callbacks is not None:
                callbacks.close()
    done, since = marks[-2]
    if run.sweep == first:
        return 0.0
    return (time.monotonic() - since) / max(1, run.sweep - first - done)
