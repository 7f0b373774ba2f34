"""One fit: check the input, run the chains with all that watches them, and set what the model keeps."""

from contextlib import nullcontext

import numpy as np
from sklearn.utils import check_random_state

from . import _device, _input, _progress, _report, _saved, _snapshot
from ._callbacks import teller
from ._checkpoint import Checkpoint
from ._design import Rows
from ._memory import check_memory
from ._prior import FixedPrior, tau_scale
from ._run import Problem, Run, Settings, choose
from ._sparsity import describe_prior
from ._threads import count_threads, open_threads
from ._weights import arrange, is_whole, rows_that_count
from .diagnostics import convergence


def fit(model, X, y, sample_weight):
    """Set the fitted attributes of ``model``; see ``HorseshoeProbitClassifier.fit``."""
    given = X, y, {} if sample_weight is None else {"sample_weight": sample_weight}
    ops, device = _device.resolve(model.device)
    if model.n_iter < model.thin:
        raise ValueError(f"thin={model.thin} keeps none of n_iter={model.n_iter} sweeps: thin may be at most n_iter.")
    shape, open_rows = (_prepare_dask if _input.is_dask(X, y, sample_weight) else _prepare)(model, X, y, sample_weight)
    unpenalized = _input.column_mask(model.unpenalized, model.n_features_in_, getattr(model, "feature_names_in_", None))
    n_threads = count_threads(model.n_jobs)
    settings = Settings(model.sampler_, model.n_iter, model.burn_in, model.n_chains, model.thin, model.target_ess)
    words = check_memory(*shape, model.n_chains, model.n_iter // model.thin, n_threads, model.sampler_)
    columns = {"unpenalized": unpenalized, "standardize": model.standardize}
    with (
        _progress.visible(model.verbose),
        open_threads(n_threads) as threads,
        open_rows(model.fit_intercept, ops, threads, **columns) as rows,
    ):
        if model.verbose:
            _progress.logger.info("%d rows of %d features on %s: %s", *shape, device, words)
        _report.warn_if_scales_differ(model, rows.columns)
        n, p = rows.size(), rows.columns.n_shrunk
        tau_0 = tau_scale(model.global_scale, model.expected_nonzero, p, n, rows.base_rate())
        problem = Problem(rows, FixedPrior(rows.columns, model.slab_scale), tau_0, _key(model.random_state))
        saved = _snapshot.resume(model, problem, settings) if model.warm_start else None
        if saved is not None:
            settings = settings._replace(n_iter=model.n_iter + int(saved["n_iter"]))
        checkpoint = _checkpoint(model, problem, settings, device)
        run = Run(problem, settings, saved if checkpoint is None else checkpoint.load(model.n_iter))
        _go(model, run, checkpoint, given)
        separated = run.separated()
    model.device_, model.n_iter_, model.stopped_by_ = device, run.done, run.stopped_by
    model.tuning_ = run.chains.tuning
    model.prior_ = describe_prior(tau_0, model.slab_scale, rows.columns.sd[:p], n, rows.base_rate())
    model._saved_run = _snapshot.of(run) if model.warm_start else None
    _summarise(model, run.draws)
    if run.stopped_by == "interrupt":
        run.warn_of_interrupt()
    _report.warn_if_unconverged(model, rows.columns.informative, separated)


def _prepare(model, X, y, sample_weight):
    """The shape of X, and a function that opens the rows; sets what the model knows before a fit."""
    X, y = _input.check_X(model, X, y=y, reset=True)
    X, y, weight, model.classes_ = rows_that_count(X, y, sample_weight, model.class_weight)
    model.sampler_ = choose(model.sampler, model.burn_in, is_whole(weight))
    X, y, weight = arrange(X, y, weight, model.sampler_)
    return X.shape, lambda *args, **columns: nullcontext(Rows(X, y, *args, weight=weight, **columns))


def _prepare_dask(model, X, y, sample_weight):
    from ._dask import prepare  # imports Dask

    return prepare(model, X, y, sample_weight, choose)


def _checkpoint(model, problem, settings, device):
    """The ``Checkpoint`` to read and write, or None."""
    if model.checkpoint is None:
        return None
    if model.warm_start:
        raise ValueError(
            "checkpoint and warm_start=True are two ways to go on: with checkpoint, raise n_iter and fit again."
        )
    seed = "fresh" if model.random_state is None else str(model.random_state).split("(")[0]
    what = {**_snapshot.described(problem, settings), "random_state": seed, "device": device}
    return Checkpoint(model.checkpoint, model.checkpoint_interval, what, _saved.version())


def _go(model, run, checkpoint, given):
    """Run to the end, with all that watches: the log, the callbacks, the checkpoint."""
    log = _progress.reporter(model.verbose, model.burn_in, run.settings.n_iter)
    tell = teller(model, *given, run)

    def report(t):
        log(t)
        if checkpoint is not None and checkpoint.is_due():
            checkpoint.write(run)
        return tell(t)

    try:
        run.go(report)
    finally:
        if checkpoint is not None and run.is_whole():
            checkpoint.write(run)
    tell.close()


def _key(random_state):
    """The two words that all random numbers are functions of."""
    if random_state is None:  # not from NumPy's global generator, which is left alone
        return np.random.SeedSequence().generate_state(2)
    return check_random_state(random_state).randint(0, 2**32, size=2, dtype=np.uint32)


def _summarise(model, draws):
    """Set the fitted attributes, all NumPy."""
    model.coef_draws_ = draws.coef
    model.intercept_draws_ = draws.intercept
    model.global_scale_draws_ = draws.global_scale
    model.shrinkage_ = draws.shrinkage()
    model.inclusion_score_ = 1.0 - model.shrinkage_
    model.coef_ = _report.point(draws.coef, model.coef_summary, model.credible_level)[None, :]
    model.intercept_ = np.atleast_1d(_report.point(draws.intercept, model.coef_summary, model.credible_level))
    checks = convergence(draws.coef)
    model.rhat_, model.ess_ = checks.rhat, checks.ess_bulk
