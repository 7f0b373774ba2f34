"""The outcome of a fit: the attributes of the fitted model, and what is to be warned of."""

from copy import copy
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np

from .._mcmc.draws import STORED
from .._mcmc.prior import SLABS
from .._model.before_data import MOST_ROWS, before_data, share_certain
from .._model.horseshoe import describe_prior, each_slab
from .._posterior import estimates
from .._posterior.claim_errors import EFFECT, column_intervals
from .._utils.warn import warn
from ..diagnostics import convergence
from . import findings, group_findings, input_findings, warning_texts
from .recipe import recipe_of, stricter
from .sparse_input import put_back

# Their values at the fit are kept.
_REPORTED = "thin", "expected_nonzero", "fit_intercept", "class_weight", "standardize"


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


def outcome(params, data, plan, seen, sampled, known):
    """``Fitted``. sampled : ``Sampled``. known : attributes that are there before a run."""
    run, rows = sampled.run, sampled.run.problem.rows
    worst = None if seen.watched is None else seen.watched.worst(run.draws)
    told = {
        "_fit_facts": {**_facts(params, data, rows.size(), worst), "one_sided": _one_sided(params, seen, rows)},
        "_fitted_rows": {"n": int(data.shape[0]), **seen.pairs},
    }
    fitted = SimpleNamespace(**known, **told, **_drawn(run), **_described(params, data, seen, run.problem, run.blocks))
    informative, seconds_per_sweep = rows.columns.informative, sampled.seconds_per_sweep
    chains = findings.chains_of(fitted, seen.names, plan.rows, informative, seconds_per_sweep, worst)
    unbounded = findings.unbounded_in(fitted, seen.names, run, params.slab_scale, seen.one_sided, plan.findings)
    of_columns = list(seen.findings)
    tells_of_groups = not {finding.kind for finding in plan.findings} & {group_findings.COPIED, group_findings.MATCHED}
    if data.groups is not None and tells_of_groups:
        of_columns += group_findings.of_means(rows, fitted.group_effect_moments_["mean"], seen.names)
    found = findings.of_outcome(params, chains, unbounded, of_columns)
    saved = {"what": sampled.what, **run.arrays()} if params.warm_start and run.whole else None
    judged = {"_saved_run": saved, "_separated": unbounded.separated, "_rough": stricter(chains)}
    attributes = {**vars(fitted), **_estimates(params, fitted), **judged}
    if plan.stored is not None:
        attributes = put_back(attributes, plan.stored, data.shape[1])
    return Fitted(attributes, run.interruption(), found, recipe_of(found, params, chains))


def _facts(params, data, size, worst):
    """What the header of a summary says of the fit. size : sum of the weights. worst : of ``Watched``, or None."""
    facts = {name: copy(getattr(params, name)) for name in _REPORTED}
    facts |= {"weights": input_findings.weights_in_words(data, size), "slab_scale": params.slab_as_given}
    facts |= {"slab_per_contrast": SLABS[params.slab_scale]} if params.slab_scale in SLABS else {}
    return {**facts, "watched": worst and (worst.name, float(worst.rhat), float(worst.ess))}


def _one_sided(params, seen, rows):
    """The names of one-sided columns whose coefficients the prior bounds, but for those that are so by chance."""
    columns, nats, _ = seen.one_sided
    sure = nats >= input_findings.EVIDENCE + np.log(rows.shape[1])
    return list(map(str, seen.names[columns[sure & findings.are_bound(params.slab_scale, seen.one_sided, rows)]]))


def _drawn(run):
    """The attributes that the draws and their number tell, all NumPy."""
    draws, checks = run.draws, convergence(run.draws.coef)
    drawn = {f"{name}_draws_": getattr(draws, name) for name in STORED}
    for of_block in draws.of_blocks:
        drawn |= of_block.attributes(draws.stride)
    shrinkage = draws.shrinkage()
    drawn |= {"moments_": None if draws.moments is None else draws.moments.pooled()}
    drawn |= {"shrinkage_": shrinkage, "inclusion_score_": 1.0 - shrinkage}
    drawn |= {"rhat_": checks.rhat, "ess_": checks.ess_bulk}
    drawn |= {"n_iter_": run.done, "burn_in_": run.burn_in, "stopped_by_": run.stopped_by}
    return {**drawn, "tuning_": run.chains.tuning_report}


def _described(params, data, seen, problem, blocks):
    """The attributes about the prior and the columns."""
    rows, fixed, tau_0, _ = problem
    columns = rows.columns
    sd = columns.sd[: columns.n_shrunk]
    prior = describe_prior(tau_0, fixed.slab_scale, sd, rows.size(), rows.rate(), rows.likelihood)
    prior |= _said_before_data(rows, fixed, tau_0)
    if np.ndim(fixed.slab_scale):
        free = np.full(len(columns.order) - columns.n_shrunk, np.inf)
        prior["slab_scale"] = np.append(fixed.slab_scale, free)[columns.place]
    if params.prior_scale is not None:
        prior["prior_scale"] = data.prior_scale
    for block in blocks:
        prior |= block.prior()
    return {
        "prior_": prior,
        "_column_means": columns.mean_of_X,  # weighted; the reference point of contributions
        "_column_sd": columns.sd_of_X,  # weighted; the unit of effects
        "_factors": [indicators._asdict() for indicators in seen.sets.levels],
        "_dependent": [each.columns for each in seen.sets.dependent],
    }


def _said_before_data(rows, fixed, tau_0):
    """What the prior says of rows and columns before any data, by the names in ``prior_``."""
    columns = rows.columns
    moves = columns.sd[: columns.n_shrunk] > 0
    which = columns.order[: columns.n_shrunk][moves]
    slabs = each_slab(fixed.slab_scale, columns.n_shrunk)[moves]
    mean = columns.mean_of_X[which] * columns.fit_intercept
    X, weight = rows.weighted_sample(MOST_ROWS)
    unit, sd = columns.unit[which], columns.sd[: columns.n_shrunk][moves]
    d = rows.likelihood.n_predictors
    predictors, n_relevant = before_data(tau_0, slabs, X[:, which], mean, unit, sd, EFFECT, d)
    share = share_certain(predictors, rows.likelihood, weight)
    return {"share_certain": share, "n_relevant": float(np.median(n_relevant))}


def _estimates(params, fitted):
    coef, intercept = estimates.medians(fitted) if params.coef_summary == "median" else estimates.means(fitted)
    if params.coef_summary == "selected":
        coef = np.where(estimates.excludes_zero(column_intervals(fitted, params.credible_level)), coef, 0.0)
    return {"coef_": np.atleast_2d(coef), "intercept_": np.atleast_1d(intercept)}
