"""One fit: data, plan, run, result; each is a value that the next step takes."""

import time
import traceback
from contextlib import nullcontext, suppress
from copy import copy
from functools import partial
from numbers import Integral
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._backends import device as _device
from .._data import validation
from .._data.column_checks import check_size
from .._data.column_names import column_mask
from .._data.labels import order_of
from .._data.row_groups import Groups, check_groups, check_offset, check_sizes, encode_groups, refuse_dask
from .._data.rows import Rows
from .._data.weights import Excess, is_whole, is_wide, rows_that_count
from .._mcmc.draws import STORED
from .._mcmc.prior import PER_CONTRAST, FixedPrior, slabs_of
from .._mcmc.run import Problem, Run
from .._model.horseshoe import describe_prior, scale_of_tau_prior
from .._posterior import estimates
from .._posterior.claim_errors import column_intervals
from .._utils import progress
from .._utils.interrupts import ctrl_c_noted, sigterm_deferred
from .._utils.names import names_of, names_to_warn_of
from .._utils.sklearn_compat import HAS_CALLBACKS
from .._utils.threads import open_threads
from .._utils.warn import warn
from .._version import __version__
from ..diagnostics import convergence
from . import findings, group_findings, input_findings, parameters, warm_start, warning_texts
from .callbacks import Tasks
from .checkpoint import Checkpoint
from .plan import fit_to_memory, plan_fit
from .recipe import recipe_of, stricter
from .sparse_input import put_back
from .sweep_report import log_where_it_goes_on, reporter_of
from .watched import Watched

_OF_COLUMNS = "n_features_in_", "feature_names_in_", "_column_labels"
_REPORTED = (
    "thin",
    "expected_nonzero",
    "fit_intercept",
    "class_weight",
    "standardize",
)  # parameters whose values at the fit are kept


class Data(NamedTuple):
    """Checked rows and labels, in memory or on a cluster."""

    shape: tuple  # of X
    columns: dict  # attributes of a fitted model about the columns: their number, and names if there are any
    classes: np.ndarray
    unpenalized: np.ndarray  # (p,) bool
    prior_scale: np.ndarray  # (p,), of ``scales_of_prior``
    weighted_by: str  # in words, "" if the rows have no weights
    whole_weights: bool  # whether rows can be repeated in place of their weights
    expansion: float  # row count after that, as a multiple
    excess: Excess  # of the weights
    outnumber: bool  # whether X has more columns than rows that were observed
    more_columns: bool  # whether X has clearly more columns than rows
    original_X: object = None  # X before the checks, which may have made a copy
    # X, y as 0 and 1, weights, codes of groups and offsets, the last three or None; None on a cluster.
    rows: tuple | None = None
    groups: np.ndarray | None = None  # labels, sorted
    extras: str = ""  # which of groups and offset rows have, in words
    open_on_cluster: object = None  # function that returns a context with ``DaskRows``, see ``dask_input.prepare``


class Fitted(NamedTuple):
    """The result of a fit."""

    attributes: dict  # of the model, by name
    interruption: str  # in words, or ""
    findings: list
    recipe: str

    def warn_of_all(self):
        """Warn of an interruption and of the findings."""
        if self.interruption:
            warn(self.interruption)
        warning_texts.warn_of(self.findings, self.recipe)


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


def fit(model, X, y, of_rows, lease):
    """``Fitted`` for ``HorseshoeProbitClassifier.fit``; ``model`` stays as it is.

    of_rows : the other arguments of that method, by name, or None. lease : ``Lease``, which learns the device.
    """
    params = parameters.validated(model)
    data = _validate(model, params, X, y, of_rows["sample_weight"], of_rows["groups"], of_rows["offset"])
    params.slab_scale = parameters.settled_slab(params, data.outnumber)
    earlier = warm_start.earlier(model) if params.warm_start else None
    plan = plan_fit(params, data, 0 if earlier is None else int(earlier["n_iter"]))
    data = data._replace(original_X=None, rows=None)  # frees them, where the plan has copies
    plan, needed = fit_to_memory(plan, 0 if data.groups is None else len(data.groups), params.checkpoint is not None)
    early = [*input_findings.about_order(X, {"y": y, **of_rows}, data), *plan.findings]
    lease.name = plan.device.name
    known = {**data.columns, "classes_": data.classes, "device_": plan.device.name, "sampler_": plan.settings.sampler}
    known |= {} if data.groups is None else {"groups_": data.groups}
    known |= {} if of_rows["offset"] is None else {"_has_offset": True}
    weight = of_rows["sample_weight"]  # scorers take no other argument, so rows are scored as those of new groups
    arguments = {"estimator": model, "X": X, "y": y, "metadata": {} if weight is None else {"sample_weight": weight}}
    callbacks = partial(Tasks, arguments, known) if HAS_CALLBACKS else lambda run: None
    with (
        progress.visible(params.verbose),
        open_threads(plan.n_threads) as threads,
        plan.device.ops.using(plan.device.name),
    ):
        _log_start(params, plan, needed)
        with _open_rows(params, data, plan, threads) as rows:
            seen = _inspect(params, data, plan, rows)
            early += input_findings.before_sampling(params, data, rows, seen.one_sided, seen.dependent_sets, seen.names)
            warning_texts.warn_of(early)
            problem = _problem(params, rows, int((~data.unpenalized).sum()))
            try:
                run, seconds_per_sweep = _resume_or_start(params, problem, plan, earlier, seen, callbacks)
            except BaseException:  # the columns may be its cause
                with suppress(Warning):
                    cure = "Set standardize=True." if any(f.changes for f in seen.findings) else ""
                    warning_texts.warn_of(seen.findings, cure)
                raise
            with ctrl_c_noted():  # one Ctrl-C loses none of the draws
                return _outcome(model, params, data, plan, seen, run, seconds_per_sweep, known)


class Inspected(NamedTuple):
    """What rows tell before sampling."""

    names: np.ndarray  # of the columns that the sampler has
    one_sided: object  # ``OneSidedColumns`` of these
    indicator_sets: list  # categories with a column for every level
    dependent_sets: list  # sets of other columns of which a weighted sum is constant
    unbounded: dict  # as in ``Run``
    watched: Watched | None  # what has to converge beside single columns, where these outnumber the rows
    findings: list  # about the scales of the columns
    pairs: dict  # of ``Rows.pairs``


def _inspect(params, data, plan, rows):
    """``Inspected``."""
    names = np.fromiter(names_to_warn_of(data.columns), dtype=object)
    names = names if plan.stored is None else names[plan.stored]
    check_size(rows.columns, rows.dtype, names)
    one_sided, (indicator_sets, dependent_sets) = rows.one_sided_columns(), rows.indicator_sets(data.shape[0])
    watched = Watched(rows, params.target_ess is None) if data.outnumber else None
    unbounded = rows.usual_values(one_sided.columns[~findings.are_bound(params.slab_scale, one_sided, rows)])
    of_columns = input_findings.of_columns(rows, one_sided.rounded, names, params.standardize)
    return Inspected(names, one_sided, indicator_sets, dependent_sets, unbounded, watched, of_columns, rows.pairs())


def _outcome(model, params, data, plan, seen, run, seconds_per_sweep, known):
    """``Fitted`` of a run. known : attributes that are there before a run."""
    rows, of_columns = run.problem.rows, list(seen.findings)
    fitted = _summarise(params, data, run, known, seen.indicator_sets)
    fitted._fitted_rows = {"n": int(data.shape[0]), **seen.pairs}
    worst = None if seen.watched is None else seen.watched.worst(run.draws)
    fitted._fit_facts["slab_scale"] = copy(model.slab_scale)
    fitted._fit_facts |= {"watched": worst and (worst.name, float(worst.rhat), float(worst.ess))}
    chains = findings.chains_of(fitted, seen.names, rows.columns.informative, seconds_per_sweep, worst)
    are_well = findings.are_sums_well(fitted, plan.rows, chains.failed, rows.columns.informative)
    chains = chains._replace(are_sums_well=are_well)
    unbounded = findings.unbounded_in(fitted, seen.names, run, params.slab_scale, seen.one_sided, plan.findings)
    if data.groups is not None and not group_findings.are_fixed(plan.findings):
        of_columns += group_findings.of_means(rows, fitted.group_effect_moments_["mean"], seen.names)
    if plan.stored is not None:
        put_back(fitted, plan.stored, data.shape[1])
    fitted._separated, fitted._rough = unbounded.separated, stricter(chains)
    outcome = findings.of_outcome(params, chains, unbounded, of_columns)
    return Fitted(vars(fitted), run.interruption(), outcome, recipe_of(outcome, params, chains))


def _validate(model, params, X, y, sample_weight, groups, offset):
    """``Data``; a ValueError, TypeError or MemoryError that names what cannot be used. ``model`` stays as it is."""
    refuse_dask(X, groups=groups, offset=offset)
    learner = object.__new__(type(model))  # scikit-learn's checks write to an estimator
    vars(learner).update({name: value for name, value in vars(model).items() if name not in _OF_COLUMNS} | vars(params))
    by = [] if params.class_weight is None else [f"class_weight={params.class_weight!r}"]
    by += [] if sample_weight is None else ["sample_weight"]
    if validation.is_dask(X, y, sample_weight):
        from .._data.dask_input import prepare  # imports Dask

        shape, classes, excess, open_rows = prepare(learner, X, y, sample_weight)
        facts = {"whole_weights": not by, "expansion": 1, "more_columns": False, "open_on_cluster": open_rows}
    else:
        original_X, order = X, order_of(y)
        X, y = validation.check_X_and_y(learner, X, y)
        groups = None if groups is None else check_groups(groups, X.shape[0])
        offset = None if offset is None else check_offset(offset, X.shape[0])
        more, by_class = (groups, offset), params.class_weight
        X, y, weight, classes, excess, groups, offset = rows_that_count(X, y, sample_weight, by_class, more, order)
        codes = None
        if groups is not None:
            groups, codes = encode_groups(groups)
            check_sizes(codes, weight)
        shape, whole = X.shape, is_whole(weight)
        facts = {"whole_weights": whole, "expansion": weight.sum() / len(weight) if whole and weight is not None else 1}
        has = {"groups": groups, "offset": offset}
        facts |= {"groups": groups, "extras": " and ".join(name for name in has if has[name] is not None)}
        facts |= {"rows": (X, y, weight, codes, offset), "more_columns": is_wide(X, weight), "original_X": original_X}
    facts |= {"outnumber": shape[1] > excess.observed, "excess": excess}
    columns = {name: value for name, value in vars(learner).items() if name in _OF_COLUMNS}
    unpenalized = column_mask(params.unpenalized, names := names_of(learner))
    prior_scale = parameters.scales_of_prior(params.prior_scale, names, unpenalized)
    return Data(shape, columns, classes, unpenalized, prior_scale, " and ".join(by), **facts)


def _log_start(params, plan, needed):
    """Log where the fit runs, and what it will need, in words."""
    _, device, reason = plan.device
    n, p = plan.shape
    if params.verbose:
        where = f"{device} ({reason})" if reason else device
        progress.logger.info("%d rows of %d features on %s: %s", n, p, where, needed)


def _open_rows(params, data, plan, threads):
    """A context with the ``Rows``."""
    ops, fit_intercept, standardize = plan.device.ops, params.fit_intercept, params.standardize
    if data.open_on_cluster is not None:
        return data.open_on_cluster(fit_intercept, ops, threads, data.unpenalized, standardize, data.prior_scale)
    stored = slice(None) if plan.stored is None else plan.stored
    X, y, weight, codes, offset = plan.rows
    groups = None if codes is None else Groups(codes, len(data.groups), params.group_scale)
    placed, words = ops.place(X, params.n_chains, plan.settings.kind_on_device)
    if params.verbose and words:
        progress.logger.info(words)
    return nullcontext(
        Rows(
            placed,
            y,
            fit_intercept,
            ops,
            threads,
            weight=weight,
            unpenalized=data.unpenalized[stored],
            prior_scale=data.prior_scale[stored],
            standardize=standardize,
            offset=offset,
            groups=groups,
            numbers=plan.stored,
            likelihood=params.likelihood,
        )
    )


def _problem(params, rows, n_shrunk):
    """The ``Problem``: the rows, the prior and the seed. n_shrunk : columns of X that are shrunk, empty ones too."""
    scale, expected, n = params.global_scale, params.expected_nonzero, rows.size()
    tau_0 = scale_of_tau_prior(scale, expected, n_shrunk, n, rows.share(), rows.likelihood)
    seed = params.random_state
    if seed is None:  # not from NumPy's global generator, which no fit changes
        key = np.random.SeedSequence().generate_state(2)
    elif isinstance(seed, np.random.Generator):
        key = seed.integers(0, 2**32, size=2, dtype=np.uint32)
    else:
        key = check_random_state(seed).randint(0, 2**32, size=2, dtype=np.uint32)
    slab_scale, shrunk = params.slab_scale, rows.columns.order[: rows.columns.n_shrunk]
    slab_scale = slabs_of(rows.contrast[shrunk]) if slab_scale == PER_CONTRAST else slab_scale
    return Problem(rows, FixedPrior(rows.columns, slab_scale), tau_0, key)


def _resume_or_start(params, problem, plan, earlier, seen, callbacks):
    """The ``Run`` of a problem at its end, resumed from a checkpoint or an earlier fit if there is one, and the seconds
    that a sweep has taken.

    earlier : saved chains of the model to go on with, or None. seen : ``Inspected``. callbacks : function of the run.
    """
    settings, saved = plan.settings, earlier
    if saved is not None:
        warm_start.check_same(saved, params, problem, settings)
        warm_start.check_seed(saved, problem, params.random_state)
        if plan.stored is not None:
            draws = saved["draws"]
            saved = {**saved, "draws": {**draws, "coef": draws["coef"][..., plan.stored]}}
    checkpoint = _checkpoint(params, problem, settings, plan.device.name)
    with checkpoint or nullcontext():
        if checkpoint is not None:
            saved = checkpoint.load(settings.n_iter)
        run = Run(problem, settings, saved, seen.unbounded, seen.watched)
        if saved is not None:
            log_where_it_goes_on(run, "the last fit" if checkpoint is None else checkpoint.name)
        seconds_per_sweep = _go(run, params.verbose, checkpoint, callbacks(run))
    return run, seconds_per_sweep


def _checkpoint(params, problem, settings, device):
    """The ``Checkpoint`` to read and write, or None."""
    if params.checkpoint is None:
        return None
    seed = params.random_state
    if not isinstance(seed, Integral):  # a generator is identified by what it has drawn; a fresh seed cannot be
        seed = "fresh" if seed is None else f"a generator that draws {problem.key.tolist()}"
    identity = {**warm_start.dependencies(params, problem, settings), "random_state": str(seed), "device": device}
    return Checkpoint(params.checkpoint, params.checkpoint_interval, identity, __version__)


def _go(run, verbose, checkpoint, callbacks):
    """Run to the end; returns the seconds that a sweep of the second half has taken, when all kernels are compiled."""
    log, first = reporter_of(run, verbose), run.sweep
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
            run.go(report)
        except BaseException:
            with suppress(Exception):  # the error that has ended the run is the one to raise
                save()
            raise
        with ctrl_c_noted():  # one Ctrl-C loses none of the draws, here and after it
            save()
            if callbacks is not None:
                callbacks.close()
    done, since = marks[-2]
    return (time.monotonic() - since) / max(1, run.sweep - first - done)


def _summarise(params, data, run, known, indicator_sets):
    """The attributes of a fitted model, all NumPy. known : those known before the run. indicator_sets : of
    ``Rows``."""
    draws, (rows, fixed, tau_0, _) = run.draws, run.problem
    fitted = SimpleNamespace(**known)
    for name in STORED:
        setattr(fitted, f"{name}_draws_", getattr(draws, name))
    for of_block in draws.of_blocks:
        vars(fitted).update(of_block.attributes(draws.stride))
    fitted.moments_ = None if draws.moments is None else draws.moments.pooled()
    fitted.shrinkage_ = draws.shrinkage()
    fitted.inclusion_score_ = 1.0 - fitted.shrinkage_
    checks = convergence(draws.coef)
    fitted.rhat_, fitted.ess_ = checks.rhat, checks.ess_bulk
    fitted.n_iter_, fitted.burn_in_, fitted.stopped_by_ = run.done, run.burn_in, run.stopped_by
    fitted.tuning_ = run.chains.tuning_report
    n, columns = rows.size(), rows.columns
    sd, share = columns.sd[: columns.n_shrunk], rows.share()
    fitted.prior_ = describe_prior(tau_0, fixed.slab_scale, sd, n, share, rows.likelihood)
    if np.ndim(fixed.slab_scale):
        free = np.full(len(columns.order) - columns.n_shrunk, np.inf)
        fitted.prior_["slab_scale"] = np.append(fixed.slab_scale, free)[columns.place]
    if params.prior_scale is not None:
        fitted.prior_["prior_scale"] = data.prior_scale
    for block in run.blocks:
        fitted.prior_ |= block.prior()
    fitted._column_means = columns.mean_of_X  # weighted; the reference point of contributions
    fitted._column_sd = columns.sd_of_X  # weighted; the unit of effects
    fitted._factors = [indicators._asdict() for indicators in indicator_sets]
    coef, intercept = estimates.medians(fitted) if params.coef_summary == "median" else estimates.means(fitted)
    if params.coef_summary == "selected":
        coef = np.where(estimates.excludes_zero(column_intervals(fitted, params.credible_level)), coef, 0.0)
    fitted.coef_, fitted.intercept_ = coef[None, :], np.atleast_1d(intercept)
    fitted._fit_facts = {name: copy(getattr(params, name)) for name in _REPORTED}
    fitted._fit_facts["weights"] = input_findings.weights_in_words(data, n)
    fitted._saved_run = None
    if params.warm_start and run.whole:
        fitted._saved_run = {"what": warm_start.dependencies(params, run.problem, run.settings), **run.arrays()}
    return fitted
