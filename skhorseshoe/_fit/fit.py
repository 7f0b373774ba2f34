"""One fit: check the input, run the chains with all that watches them, and set what the model keeps."""

import traceback
from contextlib import nullcontext, suppress
from functools import partial
from numbers import Integral
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._backends import device as _device
from .._backends.limits import is_without_factor, is_without_matrix
from .._data import validation
from .._data.column_checks import check_size
from .._data.rows import Rows
from .._data.weights import arrange, is_whole, is_wide, rows_that_count
from .._mcmc.draws import STORED
from .._mcmc.prior import FixedPrior, describe_prior, tau_scale
from .._mcmc.run import Problem, Run, Settings
from .._posterior import estimates
from .._utils import names, pickling, progress
from .._utils.memmap import is_on_disk
from .._utils.memory import check_copy
from .._utils.signals import held_back
from .._utils.threads import count_threads, open_threads
from ..diagnostics import convergence
from . import restored, warm_start, warnings
from .callbacks import teller
from .checkpoint import Checkpoint
from .memory_forecast import check_memory
from .plan import choose

DEVICES = _device.NAMES
_COLUMN = 5  # standard deviations between the ends of a usual column
_SLOW = 500  # columns, from where a sweep with matrices of their size takes a second or so
_REPEATED = 10  # times as many rows as there are, which "auto" does not make for the sake of whole weights
_JUDGED = 8  # draws of a chain, of which at least half are kept: R-hat takes four
_REPORTED = "burn_in", "thin", "expected_nonzero", "fit_intercept", "class_weight"  # as they were at the fit


class _Task(NamedTuple):
    """Checked data, and how they are to be fitted."""

    shape: tuple  # of X
    device: _device.Device  # where the sampler runs
    no_matrix: bool  # whether not even X'X has room
    copied: int  # bytes of X that are made for the fit
    open: object  # function of (fit_intercept, ops, threads, **columns) that gives a context with ``Rows``


def fit(model, X, y, sample_weight):
    """Set the fitted attributes of ``model``; see ``HorseshoeProbitClassifier.fit``. Returns a function that says, in
    warnings, how it went."""
    given = X, y, {} if sample_weight is None else {"sample_weight": sample_weight}
    model._asked = {name: _plain(getattr(model, name)) for name in _REPORTED}
    settings = Settings(**{name: _plain(getattr(model, name)) for name in Settings._fields})
    slab_scale = _plain(model.slab_scale)
    _check_counts(settings)
    task = (_prepare_dask if validation.is_dask(X, y, sample_weight) else _prepare)(model, X, y, sample_weight)
    ops, device, _ = task.device
    model.device_ = device
    unpenalized = validation.column_mask(
        model.unpenalized, model.n_features_in_, getattr(model, "feature_names_in_", None)
    )
    columns = {"unpenalized": unpenalized, "standardize": model.standardize}
    n_threads = count_threads(model.n_jobs)
    settings = settings._replace(sampler=model.sampler_)
    with progress.visible(model.verbose), open_threads(n_threads) as threads, ops.using(device):
        _announce(model, settings, task, n_threads)
        with task.open(model.fit_intercept, ops, threads, **columns) as rows:
            check_size(rows.columns, rows.dtype, names.names_of(model))
            far = rows.far_out()
            warnings.warn_if_far_out(model, *far, rows.spread)
            warnings.warn_if_scales_differ(model, rows.columns, far[0])
            warnings.warn_if_far_from_zero(model, rows.distance, rows.dtype)
            n, p = rows.size(), rows.columns.n_shrunk
            tau_0 = tau_scale(*map(_plain, (model.global_scale, model.expected_nonzero)), p, n, rows.share())
            problem = Problem(rows, FixedPrior(rows.columns, slab_scale), tau_0, _key(model.random_state))
            saved = warm_start.resume(model, problem, settings) if model.warm_start else None
            if saved is not None:
                settings = settings._replace(n_iter=settings.n_iter + int(saved["n_iter"]))
            checkpoint = _checkpoint(model, problem, settings, device)
            with checkpoint or nullcontext():
                if checkpoint is not None:
                    check = partial(restored.check, problem=problem, settings=settings)
                    saved = checkpoint.load(settings.n_iter, check)
                run = Run(problem, settings, saved)
                _go(model, run, checkpoint, given)
            widest = _COLUMN * rows.columns.sd[:p].max(initial=0.0)
            separated = not warnings.is_bound(slab_scale, widest) and run.separated()
            unbounded = _unbounded(rows, slab_scale)
            model.n_iter_, model.stopped_by_ = run.done, run.stopped_by
            model.tuning_ = run.chains.tuning
            model._asked["weights"] = _weights_in_words(model, sample_weight, n, task.shape[0])
            model.prior_ = describe_prior(tau_0, slab_scale, rows.columns.sd[:p], n, rows.share())
            model._column_means = rows.columns.mean_of_X  # by weight; what contributions are measured from
            model._saved_run = warm_start.of(run) if model.warm_start and run.whole else None
    _summarise(model, run.draws)
    outcome = run.interruption(), rows.columns, rows.spread, separated and widest, unbounded
    return partial(warnings.warn_of_outcome, model, *outcome)


def _weights_in_words(model, sample_weight, total, n_rows):
    """What the rows were weighted by, or None."""
    by = [] if model.class_weight is None else [f"class_weight={model.class_weight!r}"]
    by += [] if sample_weight is None else ["sample_weight"]
    return f"{' and '.join(by)}: {n_rows} rows count as {total:.6g}" if by else None


def _plain(value):
    """A number of NumPy's as one of Python's, which has room for sums of sweeps and can be written down."""
    return value.item() if isinstance(value, np.generic) else value


def _check_counts(settings):
    """Raise a ValueError where numbers of sweeps and draws contradict one another."""
    n_iter, thin, target, most = settings.n_iter, settings.thin, settings.target_ess, settings.max_draws
    if n_iter < thin:
        raise ValueError(f"thin must not exceed n_iter (thin={thin}, n_iter={n_iter}): no draw would be kept.")
    if None not in (target, most) and most < _JUDGED:
        raise ValueError(
            f"target_ess={target} is judged by the draws that are kept, and max_draws={most} keeps too few of them to "
            f"tell: raise max_draws to {_JUDGED} or more, or leave it out."
        )
    if None not in (target, most) and most * settings.n_chains < target:
        raise ValueError(
            f"target_ess={target} cannot be reached with max_draws={most} draws of each of {settings.n_chains} chains, "
            f"{most * settings.n_chains} in all: raise max_draws, or leave it out."
        )


def release(model, error=None):
    """Give the device its memory back. After ``fit`` has returned nothing holds it, after an error its traceback."""
    device = getattr(model, "device_", "cpu")
    while error is not None and device != "cpu":
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__
    _device.give_back(device)


def _prepare(model, X, y, sample_weight):
    """The ``_Task`` of data in memory; sets what the model knows before a fit."""
    given = X
    X, y = validation.check_X(model, X, y=y, reset=True)
    X, y, weight, model.classes_ = rows_that_count(X, y, sample_weight, model.class_weight)
    many, asked = is_without_factor(X.shape[1]), _device.beside(model.device, X)
    wide, whole = is_wide(X, weight), is_whole(weight)
    heavy = whole and weight is not None and weight.sum() > _REPEATED * len(weight) and not wide
    model.sampler_ = choose(model.sampler, model.burn_in, whole and (many or not heavy), wide, many)
    if heavy and model.sampler_ != "hmc":
        warnings.warn_of_repeated_rows(model.sampler_, len(weight), weight.sum())
    if model.sampler == "auto" and model.sampler_ == "hmc" and X.shape[1] > _SLOW and wide:
        warnings.warn_of_slow_weights(model, X.shape[1])
    device = _back_end(model, asked, X)
    narrow = X.dtype == np.float16 and device.name == "cpu" and not is_on_disk(X)  # which no kernel reads
    if narrow:
        check_copy(4 * X.size, "Computing with float16", " Have it on disk (skhorseshoe.disk).")
    X, y, weight = arrange(X, y, weight, model.sampler_)
    copied = 4 * X.size if narrow else validation.made_of(given, X)

    def open_rows(fit_intercept, ops, threads, **columns):
        placed, words = ops.place(X, model.n_chains, model.sampler_)
        if model.verbose and words:
            progress.logger.info(words)
        return nullcontext(Rows(placed, y, fit_intercept, ops, threads, weight=weight, **columns))

    return _Task(X.shape, device, is_without_matrix(X), copied, open_rows)


def _prepare_dask(model, X, y, sample_weight):
    from .._data.dask_input import prepare  # imports Dask

    def choose_for(whole_weights):
        return choose(model.sampler, model.burn_in, whole_weights, wide=False, many=is_without_factor(X.shape[1]))

    shape, open_rows = prepare(model, X, y, sample_weight, choose_for)
    device = _device.resolve("cpu")._replace(reason="the rows are on a cluster")
    return _Task(shape, device, False, 0, open_rows)


def _announce(model, settings, task, n_threads):
    """Forecast the memory, and log it."""
    earlier = vars(model).get("_saved_run") if model.warm_start else None
    n_iter = settings.n_iter + (int(earlier["n_iter"]) if earlier else 0)
    n_draws = min(n_iter // settings.thin, settings.max_draws or n_iter)
    item = np.dtype(settings.draws_dtype).itemsize
    words = check_memory(
        *task.shape, settings.n_chains, n_draws, n_threads, settings.sampler, item, task.no_matrix, task.copied
    )
    if model.verbose:
        _, device, reason = task.device
        progress.logger.info("%d rows of %d features on %s (%s): %s", *task.shape, device, reason, words)


def _back_end(model, asked, X):
    """The ``Device``; a ValueError if the sampler cannot have this X, or the device cannot."""
    if model.sampler_ != "collapsed":
        found = _device.resolve(asked, X.size, _device.is_sparse(X))
        return found if asked != "auto" else _device.with_room(found, X, model.n_chains, model.sampler_)
    if _device.is_sparse(X):
        raise ValueError(
            "sampler='collapsed' reads dense rows, and X is sparse: use another sampler, or, if it has room, the dense "
            "X.toarray()."
        )
    if asked == "auto":
        return _device.resolve("cpu")._replace(reason="it is the faster one for sampler='collapsed'")
    return _device.resolve(asked)


def _checkpoint(model, problem, settings, device):
    """The ``Checkpoint`` to read and write, or None."""
    if model.checkpoint is None:
        return None
    if model.warm_start:
        raise ValueError(
            "checkpoint and warm_start=True cannot be combined. With checkpoint, raise n_iter and call fit again to "
            "continue."
        )
    seed = model.random_state
    if not isinstance(seed, Integral):  # a generator is known by what it has drawn, a fresh seed by nothing
        seed = "fresh" if seed is None else f"a generator that draws {problem.key.tolist()}"
    what = {**warm_start.described(problem, settings), "random_state": str(seed), "device": device}
    return Checkpoint(model.checkpoint, model.checkpoint_interval, what, pickling.version())


def _unbounded(rows, slab_scale):
    """``Unbounded``: the columns whose own coefficient the data do not bound, nor a slab that is far beyond."""
    found, spans = rows.one_sided()
    free = rows.columns.unpenalized[found]
    shrunk = ~free & ~warnings.is_bound(slab_scale, spans)
    return warnings.Unbounded(found[shrunk], spans[shrunk], found[free])


def _go(model, run, checkpoint, given):
    """Run to the end, with all that watches: the log, the callbacks, the checkpoint."""
    log = progress.reporter(model.verbose, run.settings.burn_in, run.settings.n_iter)
    tell = teller(model, *given, run)
    with nullcontext(lambda: None) if checkpoint is None else held_back() as call_handler:

        def report(t):
            log(t)
            if checkpoint is not None and checkpoint.is_due():
                checkpoint.write(run)
            enough = tell(t)
            call_handler()
            return enough

        try:
            run.go(report)
        except BaseException:
            if checkpoint is not None and run.whole:
                with suppress(Exception):  # what has ended the run is what to say
                    checkpoint.write(run)
            raise
        if checkpoint is not None and run.whole:
            checkpoint.write(run)
    tell.close()


def _key(random_state):
    """The two words that all random numbers are functions of."""
    if random_state is None:  # not from NumPy's global generator, which is left alone
        return np.random.SeedSequence().generate_state(2)
    return check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint32)


def _summarise(model, draws):
    """Set the fitted attributes, all NumPy."""
    for name in STORED:
        setattr(model, f"{name}_draws_", getattr(draws, name))
    model.moments_ = None if draws.moments is None else draws.moments.pooled()
    model.shrinkage_ = draws.shrinkage()
    model.inclusion_score_ = 1.0 - model.shrinkage_
    summary = model.coef_summary, model.credible_level
    coef, intercept = estimates.means(model)
    model.coef_ = estimates.point(draws.coef, coef, *summary)[None, :]
    model.intercept_ = np.atleast_1d(estimates.point(draws.intercept, intercept, *summary))
    checks = convergence(draws.coef)
    model.rhat_, model.ess_ = checks.rhat, checks.ess_bulk
