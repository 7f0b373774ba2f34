"""What a fit says of its columns before it, and of its chains after it: one warning each, with a cure."""

from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._posterior.estimates import interval, others
from .._utils.names import names_of
from .._utils.warn import warn
from ..diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN, convergence

MAX_SCALE_RATIO = 1e3  # of the standard deviations of two columns
MAX_ERROR = 1e-3  # of a column, from rounding as large as its distance from zero makes it, in its standard deviations
NOISE = 0.95  # shrinkage from where a column is one
LOOSE = 10  # standard deviations of the score by a standard deviation of the column, where its prior says 100
FAR_SLAB = 20  # scores between the ends of a column, from where a slab hardly bounds its coefficient
_FAR_APART = 1.1  # R-hat, from where chains have not met yet
_SHORT = 100  # sweeps of burn-in, of which a multiple may still be too few
_NAMED = 3  # columns in a warning
_ONE_SIDED = (
    "all values in one class lie on one side of those in the other (quasi-complete separation), for example because a "
    "level occurs in one class only. The likelihood keeps rising as the coefficient grows, so the data do not bound it"
)


def warn_if_far_out(model, which, usual, spread):
    """One warning for columns whose spread is that of a few values far out; see ``column_checks``. spread : (p,)."""
    if not len(which):
        return
    worst = np.argmax(spread[which] / usual)
    name = names_of(model)[which[worst]]
    warn(
        f"{_listed(model, which)} {'have' if len(which) > 1 else 'has'} values far out: the standard deviation of "
        f"{name!r} is {spread[which[worst]]:.2g}, but nine in ten of its values lie within {usual[worst]:.2g}. A few "
        "such values (often data-entry errors) can determine the coefficient, and scaling does not help. Clip them, or "
        "use the column's logarithm or quantiles (QuantileTransformer)."
    )


def warn_if_scales_differ(model, columns, without=()):
    """One warning for shrunk columns whose scales differ so much that one prior cannot suit them all.

    without : numbers of columns whose scale is another matter.
    """
    shrunk = np.setdiff1d(np.flatnonzero(columns.informative & ~columns.unpenalized), without)
    if model.standardize or len(shrunk) < 2:
        return
    spread = columns.by_column(columns.sd[: columns.n_shrunk])[shrunk]
    if spread.max() <= MAX_SCALE_RATIO * spread.min():
        return
    names = names_of(model)
    small, large = (names[shrunk[at(spread)]] for at in (np.argmin, np.argmax))
    warn(
        f"The columns are on very different scales: the standard deviation of {large!r} is {spread.max():.2g}, that of "
        f"{small!r} {spread.min():.2g}. The prior is the same for all coefficients, so those of columns with "
        "a small standard deviation are shrunk more. Set standardize=True, or scale the columns yourself."
    )


def warn_of_slow_weights(model, n_columns):
    """A warning for weights that keep a wide table from the sampler that is made for it."""
    cure = "Integer weights are much faster: they allow 'collapsed', whose matrices are n_samples x n_samples."
    if model.class_weight is not None:
        cure = (
            "Rare events do not need weights, and weights above 1 let noise columns in. Without class_weight the "
            "sampler is 'collapsed', which is much faster: its matrices are n_samples x n_samples."
        )
    warn(
        f"The weights ({'sample_weight' if model.class_weight is None else 'class_weight'}) are not integers, so "
        f"the sampler is 'hmc', whose matrices are {n_columns} x {n_columns}. {cure}"
    )


def warn_of_repeated_rows(sampler, n_rows, n_repeated):
    """A warning for whole weights that a sampler honours by that much work."""
    warn(
        f"sampler={sampler!r} repeats each row as often as its weight says: {n_rows} rows become "
        f"{n_repeated:.0f}. sampler='hmc' uses the weights directly."
    )


def warn_if_undetermined(model, spread):
    """One warning for unpenalised columns that only their wide prior bounds. spread : (p,) of the columns of X."""
    free = np.flatnonzero(model.shrinkage_ == 0)
    if not len(free):
        return
    lower, upper = interval(model.coef_draws_[..., free], 0.68)  # that of a Gaussian is two standard deviations
    loose = free[(upper - lower) / 2 * spread[free] > LOOSE]
    if len(loose):
        warn(
            f"{_listed(model, loose)}: unpenalized columns are collinear with each other or with the intercept (for "
            "example, a one-hot column for every level, or a column that is the sum of others), so only the prior "
            "bounds their coefficients. Drop one of these columns (OneHotEncoder(drop='first')), or remove them from "
            "unpenalized."
        )


def warn_if_far_from_zero(model, distance, dtype):
    """One warning for columns so far from zero that rounding takes a noticeable part of their spread.

    distance : (p,) from zero, in standard deviations. dtype : of X, which is computed with in at least float32.
    """
    dtype = np.promote_types(dtype, np.float32)
    far = np.flatnonzero(np.finfo(dtype).eps * distance > MAX_ERROR)
    if len(far):
        warn(
            f"{_listed(model, far)} {'lie' if len(far) > 1 else 'lies'} up to {distance.max():.1g} standard "
            f"deviations from zero, so rounding to {dtype} removes much or all of their variation. Subtract the "
            f"means before you fit{', or give X as float64' if dtype == np.float32 else ''}."
        )


def warn_of_outcome(model, interruption, columns, spread, separated, unbounded):
    """What is to be said of a model that is whole: after the fit, so that it stays where a warning is made an error.

    interruption : in words, or "". The others are those of ``warn_if_undetermined`` and ``warn_if_unconverged``.
    """
    if interruption:
        warn(interruption)
    if not separated and not len(unbounded.free):
        warn_if_undetermined(model, spread)
    warn_if_unconverged(model, columns.informative, separated, unbounded)


class Unbounded(NamedTuple):
    """The columns, by number, on whose own coefficient the data place no limit."""

    shrunk: np.ndarray  # those to which no slab sets one that is near
    spans: np.ndarray  # of their values, in the unit of the prior
    free: np.ndarray  # those that are not shrunk


def warn_if_unconverged(model, informative, separated, unbounded):
    """One ConvergenceWarning for all that keeps the draws from being what was wanted.

    informative : (p,) bool, False for constant columns. separated : where the classes are separated completely and no
    slab bounds the coefficients, the range of the widest column, else False.
    """
    # Of what is noise to the model the posterior keeps to zero, whatever the likelihood does beyond.
    matters = model.shrinkage_[unbounded.shrunk] < NOISE
    one_sided, spans, free = unbounded.shrunk[matters], unbounded.spans[matters], unbounded.free
    extra = others(model)
    checks = convergence(np.stack(list(extra.values()), axis=-1))
    of_columns = np.array(names_of(model), dtype=object)
    names = [*of_columns[informative], *extra]
    rhat = np.append(model.rhat_[informative], checks.rhat)
    ess = np.append(model.ess_[informative], checks.ess_bulk)
    some = len(one_sided) or len(free)
    cured = {*of_columns[one_sided], *of_columns[free], *extra} if some else ()
    found = _not_converged(model, names, rhat, ess, names if separated else cured)
    said = [found] if found else []
    if separated and found:
        bound = "Set slab_scale=2, which bounds those that are shrunk and converges much faster"
        if not is_bound(2, separated):
            bound += ", once the columns are scaled (standardize=True)"
        elif model.slab_scale is not None:
            bound += f"; slab_scale={model.slab_scale:g} is too wide"
        said.append(
            "The columns separate the classes completely, so the data do not bound the coefficients, and more "
            f"sweeps will not help. {bound}."
        )
    elif len(one_sided):
        said.append(f"{_listed(model, one_sided)}: {_ONE_SIDED}{_bound(model, spans)}")
    if len(free):
        said.append(
            f"{_listed(model, free)}: {_ONE_SIDED}, and slab_scale does not bound an unpenalized one. Remove the "
            "column from unpenalized and set slab_scale=2, merge a rare level with another, or drop the column."
        )
    if not found and model.target_ess is not None and model.stopped_by_ == "n_iter":
        said += _short_of_target(model, names, ess)
    if said:
        warn(" ".join(said), ConvergenceWarning)


def is_bound(slab_scale, span):
    """Whether a slab bounds the coefficient of a column whose values have this range; with None there is none."""
    return np.zeros(np.shape(span), bool) if slab_scale is None else slab_scale * span <= FAR_SLAB


def _bound(model, spans):
    """What sets a bound to coefficients of columns with values in such ranges."""
    slab, span = model.slab_scale or 2, spans.max()
    differ = "" if model.slab_scale else ", and its mean and interval differ from run to run"
    if is_bound(slab, span):
        return f"{differ}. Set slab_scale={slab}, which does."
    return (
        f"{differ}. slab_scale={slab} does so only if the values of the column lie within {FAR_SLAB / slab:.3g} of one "
        f"another; here they lie {span:.3g} apart. Leave columns of zeros and ones unscaled"
        f"{', with standardize=False' if model.standardize else ''}, and scale the others."
    )


def _listed(model, columns):
    """Some columns in words, by name."""
    names = [repr(name) for name in np.array(names_of(model), dtype=object)[columns]]
    more = f" and {len(names) - _NAMED} more columns" if len(names) > _NAMED else ""
    return ("Columns " if len(names) > 1 else "Column ") + ", ".join(names[:_NAMED]) + more


def _not_converged(model, names, rhat, ess, cured):
    """What R-hat and the effective sample sizes say, or "". cured : names of what is in need of more than sweeps."""
    n_chains, n_draws = model.global_scale_draws_.shape
    wanted = MIN_ESS_PER_CHAIN * n_chains
    # Where nothing can be computed (fewer than four draws) nothing is known to be well.
    failed = ~((rhat <= MAX_RHAT) & (ess >= wanted))
    if not failed.any():
        return ""
    if n_draws < 4:
        draws = "1 draw" if n_draws == 1 else f"{n_draws} draws"
        return f"{draws} of each chain are too few to tell whether the chains have converged. {_more(model, n_draws)}"
    badness = np.fmax((rhat - 1) / (MAX_RHAT - 1), wanted / ess)  # infinite where a chain does not move at all
    worst = int(np.argmax(np.where(failed, np.nan_to_num(badness, nan=0.0), -1.0)))
    text = (
        f"The chains have not converged for {failed.sum()} of {len(failed)} quantities. The worst is "
        f"{names[worst]!r} with R-hat {rhat[worst]:.4f} (at most {MAX_RHAT} is wanted) and a bulk effective sample "
        f"size of {ess[worst]:.0f} (at least {wanted}, {MIN_ESS_PER_CHAIN} a chain)."
    )
    if model.moments_ is not None and n_draws < 2 * MIN_ESS_PER_CHAIN:
        return (
            f"{text} But max_draws={model.max_draws} keeps only {n_draws} draws of each chain, and R-hat and "
            f"sample sizes are computed from these: first raise it to {4 * MIN_ESS_PER_CHAIN}."
        )
    to_do = failed & ~np.isin(names, list(cured))
    fold = np.where(to_do & np.isfinite(badness), badness, 0.0).max()
    far = (rhat[to_do] > _FAR_APART).any()
    return f"{text} {_more(model, n_draws, int(np.ceil(1.2 * fold)), far)}" if to_do.any() else text


def _more(model, n_draws, factor=1, far=False):
    """What to do for so many times as many independent draws; n_draws : of a chain, that are kept. far : whether the
    chains are so far apart that burn-in was too short."""
    if model.stopped_by_ in ("interrupt", "callback"):
        return f"The run was stopped after {model.n_iter_} sweeps: let it run longer."
    fold = f" about {max(2, factor)}-fold" if n_draws >= 4 else ""
    if model.warm_start:
        anew = f" R-hat is very large: better start again with a longer burn_in (now {model.burn_in})." if far else ""
        return f"Fit again with n_iter={max(1, factor - 1) * model.n_iter_}, which adds draws.{anew}"
    if model.checkpoint is not None:
        return (
            f"Raise n_iter (now {model.n_iter}){fold} and fit again: the run continues from the checkpoint. A longer "
            f"burn_in (now {model.burn_in}) needs another folder."
        )
    if n_draws < MIN_ESS_PER_CHAIN and model.thin > 1:
        return f"Lower thin (now {model.thin}), which leaves only {n_draws} draws of each chain."
    thin = ""
    if n_draws >= 4 * MIN_ESS_PER_CHAIN:  # enough to keep no more
        thin = f", and thin (now {model.thin}) in proportion so that memory does not grow"
    if model.burn_in < _SHORT:
        return f"Raise n_iter (now {model.n_iter}){fold}{thin}, and burn_in (now {model.burn_in}) to 1000."
    return f"Raise n_iter (now {model.n_iter}) and burn_in (now {model.burn_in}){fold}{thin}."


def _short_of_target(model, names, ess):
    """A sentence where fewer independent draws have been made than were asked for."""
    least, n_draws = int(np.argmin(ess)), model.global_scale_draws_.shape[1]
    if ess[least] >= model.target_ess:
        return []
    factor = max(2, int(np.ceil(1.2 * model.target_ess / ess[least])))
    text = (
        f"target_ess={model.target_ess} has not been reached: after {model.n_iter_} sweeps the smallest bulk effective "
        f"sample size is {ess[least]:.0f} ({names[least]!r})"
    )
    if model.moments_ is not None:
        return [
            f"{text}, computed from the {n_draws} draws of each chain that max_draws={model.max_draws} keeps. Raise "
            f"max_draws to {factor * n_draws}, or leave it out."
        ]
    if model.warm_start:
        return [f"{text}. Fit again with n_iter={(factor - 1) * model.n_iter_}, which adds draws."]
    return [f"{text}. Raise n_iter (now {model.n_iter}) about {factor}-fold."]
