"""Frames of the posterior with a header in words."""

from textwrap import fill

import numpy as np
import pandas as pd

from .._mcmc.prior import PER_CONTRAST, SLAB, SLAB_TEXT, WIDE
from .._utils.memmap import cut
from .._utils.names import class_texts, first_of, name_of_levels, names_of, printable, with_article
from ..diagnostics import MAX_RHAT, MIN_ESS_PER_CHAIN, convergence
from .claim_errors import EFFECT, indicator_sets_of, lfsr, sure_signs
from .classes import has_sizes, is_ordered, is_several, refuse_several
from .column_sets import checked_sets
from .estimates import interval, other_quantities, scale_names
from .grouped_prediction import (
    by_factor,
    group_roots,
    has_slopes,
    is_grouped,
    is_of_several,
    mean_variance,
    slopes_of,
)
from .several import of_class, sizes
from .table import Summary

_DRAWS_AT_A_TIME = 2**22  # draws of effects to read at a time


def summary_frame(model, level, sort_by, of=None):
    """See ``HorseshoeProbitClassifier.summary``."""
    model = model if of is None else of_class(model, of)
    frame, n_extra = (sizes(model, described, level), 1) if has_sizes(model) else _coefficients(model, level)
    frame.attrs |= {"header": header(model, frame, level), "caption": _caption(model, frame, level)}
    frame.attrs["classes"] = model.classes_.tolist()
    return frame if sort_by is None else _sorted(frame, sort_by, n_extra)


def _coefficients(model, level):
    """The frame of one coefficient a column, and its number of rows that are no features."""
    extra, rhat, ess = other_quantities(model)
    extra_draws = np.stack(list(extra.values()), axis=-1)
    columns = described(np.concatenate([model.coef_draws_, extra_draws], axis=-1), level)
    if model.moments_ is not None:  # moments of all draws, since not all were kept
        has_intercept = model._fit_facts["fit_intercept"] and not is_ordered(model)
        has_moments = np.append(np.ones(model.n_features_in_, bool), [has_intercept, True])
        for name in ("mean", "sd", "prob_positive"):
            columns[name][: has_moments.sum()] = model.moments_[name][has_moments]
    is_signless = [name != "(intercept)" for name in extra]
    columns["prob_positive"][model.n_features_in_ :][is_signless] = np.nan  # scales, and places of cut points
    columns |= {
        "lfsr": lfsr(columns["prob_positive"], ess, model.global_scale_draws_.size),
        "shrinkage": np.append(model.shrinkage_, np.full(len(extra), np.nan)),
        "ess": ess,
        "rhat": rhat,
    }
    return Summary(columns, index=pd.Index([*names_of(model), *extra], name="feature")), len(extra)


def sets_frame(model, sets, level, missing):
    """See ``HorseshoeProbitClassifier.summary_of_sets``."""
    refuse_several(model, "summary_of_sets")
    sets, weights, left_out = checked_sets(sets, model, missing)
    n_chains, n_draws, p = model.coef_draws_.shape
    draws = (model.coef_draws_.reshape(-1, p) @ weights).reshape(n_chains, n_draws, len(sets))
    checks = convergence(draws)
    frame = Summary(
        {
            "n_columns": np.diff(weights.indptr),
            **described(draws, level),
            "m_eff": (weights != 0).T @ model.inclusion_score_,
            "ess": checks.ess_bulk,
            "rhat": checks.rhat,
        },
        index=pd.Index(list(sets), name="set", tupleize_cols=False),
    )
    condition = ", given the group of rows" if is_grouped(model) else ""
    text = in_lines(f"Weighted sums of coefficients{condition}; {favoured(model, 'ones')}{left_out}")
    frame.attrs |= {"header": text, "classes": model.classes_.tolist()}
    return frame


def effects_frame(model, name, level):
    """See ``HorseshoeProbitClassifier.group_effects``. name : of the factor."""
    if not is_grouped(model):
        labels = "y == a class" if is_of_several(model) else "y"  # a fit to more without an order takes none
        raise ValueError(f"This model was fitted without groups: fit(X, {labels}, groups=...) gives each an effect.")
    labels = by_factor(model, "groups_")
    name = next(iter(labels)) if name is None and len(labels) == 1 else name
    if name not in labels:
        known = (
            "one factor, which has no name: leave factor out"
            if None in labels
            else f"the factors {[*labels]}: give one of them"
        )
        raise ValueError(f"factor={name!r:.80}, and the model was fitted with {known}.")
    labels, slopes = labels[name], slopes_of(model, name)
    n, columns = len(labels), _group_columns(model, name, level)
    for column, effect in slopes.items():
        columns |= {f"{column}: {key}": values for key, values in _group_columns(model, effect, level).items()}
    frame = Summary(columns, index=pd.Index(listed(labels), name=name or "group", tupleize_cols=False))
    frame.attrs["classes"] = model.classes_.tolist()
    at = f", at the means of {', '.join(slopes)}, and to the coefficients of these" if slopes else ""
    frame.attrs["header"] = in_lines(
        f"What each of {n} groups{'' if name is None else f' of {name!r}'} adds to the score of its rows"
        f"{at}; "
        f"{share_between(model, name, level)}; {favoured(model, 'effects')}"
    )
    return frame


def _group_columns(model, effect, level):
    """The columns of a frame about an effect of groups."""
    draws, moments = by_factor(model, "group_effect_draws_")[effect], model.group_effect_moments_.items()
    low, high = np.empty((2, draws.shape[2]))
    for block in cut(0, draws.shape[2], max(1, _DRAWS_AT_A_TIME // max(1, draws[..., 0].size))):
        low[block], high[block] = interval(draws[..., block].astype(np.float64), level)
    return {
        **{key: values[effect] if isinstance(values, dict) else values for key, values in moments},
        **by_heading((low, high), level),
    }


def listed(labels):
    """The labels of groups, a list."""
    return (pd.Index(labels) if labels.dtype in ("M8[ns]", "m8[ns]") else labels).tolist()  # NumPy would make them ints


def favoured(model, quantities="coefficients"):
    """The class that positive ones favour, in words."""
    if is_several(model):
        which = "their class beside the mean of all classes"
    else:
        which = "higher classes" if is_ordered(model) else class_texts(model.classes_)[1]
    return f"positive {quantities} favour {getattr(model, '_favours', which)}"


def described(draws, level):
    """Mean, standard deviation (nan for a single draw), interval, and share above zero, in which a zero counts half."""
    n_chains, n_draws, p = draws.shape
    return {
        "mean": draws.mean(axis=(0, 1)),
        "sd": draws.std(axis=(0, 1), ddof=1) if n_chains * n_draws > 1 else np.full(p, np.nan),
        **by_heading(interval(draws, level), level),
        "prob_positive": ((draws > 0).mean(axis=(0, 1)) + (draws >= 0).mean(axis=(0, 1))) / 2,
    }


def interval_headings(level):
    """The headings of an interval."""
    low, high = (f"{50 * (1 + sign * level):g}%" for sign in (-1, 1))
    if low == high:
        raise ValueError(f"level is so small that both ends of the interval are called {low}; got {level!r}.")
    return [low, high]


def by_heading(ends, level):
    """The ends of an interval by their headings."""
    return dict(zip(interval_headings(level), ends, strict=True))


def _sorted(frame, sort_by, n_extra):
    """The frame with features sorted by the absolute values of a column, largest first, or the smallest shrinkage."""
    if not isinstance(sort_by, str) or sort_by not in frame.columns:
        raise ValueError(f"sort_by={sort_by!r} is not a column of the summary: it has {', '.join(frame.columns)}.")
    features = frame.iloc[:-n_extra]
    size = features[sort_by].abs().to_numpy()
    order = np.argsort(size if sort_by == "shrinkage" else -size, kind="stable")
    return frame.iloc[np.append(order, np.arange(len(features), len(frame)))]


def header(model, frame, level):
    """The outcome in a sentence; then the prior, the sampler, the chains and the effective number of coefficients."""
    prior, asked, shrunk, checks = model.prior_, model._fit_facts, model.shrinkage_ > 0, _checks(model, frame)
    tuning = ", ".join(f"{name} {value:.3g}" for name, value in model.tuning_.items())
    of_kept = [*["cut points"] * is_ordered(model), *scale_names(model)[1:]]
    but = f", but those of {', '.join(of_kept)}" if of_kept else ""
    of_all = "" if has_sizes(model) else f"mean and sd are of all{but}; "
    n_made = "" if model.moments_ is None else f"kept of {model.moments_['n_draws']}; {of_all}"
    from_expected = "" if asked["expected_nonzero"] is None else f" from expected_nonzero={asked['expected_nonzero']:g}"
    lines = {
        "Sizes": has_sizes(model)
        and "mean, sd and interval are of the size of a column, the root of the sum of its squared coefficients over "
        "the classes, whose mean coefficients follow",
        "Prior": f"horseshoe, tau ~ half-Cauchy({prior['tau_0']:.3g}){from_expected}{_slab(model)}{_own_scales(model)}"
        if shrunk.any()
        else f"no column is shrunk; N(0, {WIDE:g}^2) per standard deviation of each{_own_scales(model)}, beside which "
        "tau tells nothing",
        "Before data": shrunk.any()
        and "of one class against another, " * has_sizes(model) + _before_data(prior, shrunk.sum()),
        "Weights": asked["weights"],  # None for none
        "Model": hasattr(model, "_derived") and f"{model._derived}; its draws are those of the fit",
        "Groups": is_grouped(model) and _groups_text(model, level),
        "Sampler": model.sampler_ + (f" ({tuning})" if tuning else ""),
        "Draws": f"{n_made}burn_in={model.burn_in_}, thin={asked['thin']}, ended by {model.stopped_by_} after "
        f"{model.n_iter_} sweeps",
        "Separation": model._separated
        and f"the columns separate the classes ({model._separated} separation), so the data do not bound the "
        f"coefficients; slab_scale={PER_CONTRAST!r} bounds them",
        "One-sided": asked.get("one_sided") and _one_sided(asked["one_sided"]),
        "Categories": _categories(model),
        "Dependent": _dependent(model),
        "Stricter": model._rough and f"single columns are as sure as the rest with {model._rough[1]}",
        "Convergence": f"worst R-hat {_extreme(checks['rhat'], 1, 3)}, smallest ess {_extreme(checks['ess'], -1, 0)}",
        "m_eff": shrunk.any()
        and f"{model.inclusion_score_[shrunk].sum():.1f} of {shrunk.sum()} shrunk coefficients are effectively "
        f"nonzero; the prior expected {prior['m_eff']:.1f} ({prior['m_eff_at_tau_0']:.1f} for "
        f"tau = {prior['tau_0']:.3g})",
    }
    details = [in_lines(f"{name + ':':<13}{text}", 13) for name, text in lines.items() if text]
    return "\n".join([in_lines(_outcome_text(model, checks, level)), *details])


def _caption(model, frame, level):
    """What the table is, for a paper; what the sampler did is said there only if the chains have not converged."""
    given = ", given the group of rows" if is_grouped(model) else ""
    law, state = model._likelihood.name, _state_text(model, _checks(model, frame))
    what = "Sizes over the classes, and mean coefficients by class," if has_sizes(model) else "Coefficients"
    return (
        f"{what} of {with_article(law)} regression with the horseshoe prior{given}: posterior mean, standard "
        f"deviation and {100 * level:g} % interval; {favoured(model)}"
        f"{'' if state == 'converged' else f'; chains {state}'}"
    )


def _groups_text(model, level):
    """The number of groups, how much they differ, and that coefficients are given the group; for each factor."""
    share, scales = float((1 / group_roots(model)).mean()), model.prior_["group_scale"]
    of_factors = []
    for name, labels in by_factor(model, "groups_").items():
        scale, called = (scales, "") if name is None else (scales[name], f"{name} ")
        own = slopes_of(model, name)
        law = f"s and slopes of {', '.join(own)} ~ half-t(2, {scale:g})" if own else f"s ~ half-Cauchy({scale:g})"
        of_factors.append(f"{called}{len(labels)}, {law}; {share_between(model, name, level)}")
    more = f"coefficients are given the group, and {share:.3g} times as large averaged over groups"
    return "; ".join([*of_factors, more])


def share_between(model, name, level):
    """The intraclass correlation of a factor in words: its share of the variance of the score given x."""
    if name is None:
        what, share = "intraclass correlation s^2 / (1 + s^2)", 1 - group_roots(model) ** -2
    else:
        what = "mean share of the variance" if has_slopes(model) else "share of the variance"
        own = mean_variance(model, [*model.groups_].index(name))
        share = own / group_roots(model) ** 2
    low, high = interval(share, level)
    bounds = f"{100 * level:g} % interval {low:.2f} to {high:.2f}"
    return f"{what} {share.mean():.2f} ({bounds})"


def _slab(model):
    """The slab, in words."""
    slab_scale = model.prior_["slab_scale"]
    if slab_scale is None:
        return ""
    if np.ndim(slab_scale) == 0:
        return f", slab of standard deviation {slab_scale:g}"
    size, why = model._fit_facts.get("slab_per_contrast", SLAB), ""
    if model._fit_facts.get("slab_scale") == "auto":
        why = f", chosen because {'columns outnumber rows' if size == SLAB else 'there are several classes'}"
    return f", slab of {SLAB_TEXT.format(size)}{why}"


def _before_data(prior, n):
    """What the prior says before any data, in words, of n shrunk columns; where most rows are certain, also what to do.
    It is no warning: without a slab the default prior says so for a dozen columns, and data of some size outweigh
    it."""
    share = prior["share_certain"]
    less = ": most rows are certain; where data are few, slab_scale or expected_nonzero says less"
    return (
        f"a median of {prior['n_relevant']:.0f} of {n} effects are above {EFFECT:g}, and the columns alone take "
        f"{100 * share:.0f} % of rows beyond probabilities of 0.01 and 0.99{less if share > 0.5 else ''}"
    )


def _own_scales(model):
    """How many columns have a ``prior_scale``, in words."""
    scales = model.prior_.get("prior_scale", ())
    n = np.sum(scales != np.where(model.shrinkage_ > 0, 1.0, np.inf)) if len(scales) else 0
    return f", with a prior_scale for {n} of {len(scales)} columns" if n else ""


def in_lines(text, indent=0):
    """A text in lines that fit into a terminal of 80 columns."""
    return fill(text, 79, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)


def _categories(model):
    """The categories whose level columns sum to a constant, and the function that compares levels; empty for none."""
    names, sets = names_of(model), (indicators.columns for indicators in indicator_sets_of(model))
    titles = [f"{name_of_levels([names[j] for j in columns])} ({len(columns)} levels)" for columns in sets]
    unless = ", unless named below" if model._dependent else ""
    source = "" if has_sizes(model) else ", as told by skhorseshoe.terms.levels"
    return titles and (
        f"{first_of(titles)}: every row has one of the columns, so no single coefficient is known, but their "
        f"differences are{unless}. Above, levels count that differ from the mean over rows{source}"
    )


def _dependent(model):
    """The first set of other columns of which a weighted sum is the same in every row; empty for none."""
    if not model._dependent:
        return ""
    names, (first, *others) = names_of(model), model._dependent
    more = f" (one of {len(others) + 1} such sets)" if others else ""
    return (
        f"{first_of([names[j] for j in first])}{more}: a weighted sum of the columns is the same in every row, so how "
        "they share an effect is the prior's answer"
    )


def _one_sided(names):
    """Columns that separate the classes by themselves, whose coefficients the prior bounds."""
    return (
        f"{first_of(names)}: no value in one class is beyond those of the next, so the data do not bound the "
        "coefficient: its sign is theirs, its size the prior's"
    )


def _checks(model, frame):
    """R-hat and ess of the rows of a summary; where columns outnumber rows, of what ``fit`` watched beside them too."""
    checks, watched = frame[["rhat", "ess"]], model._fit_facts.get("watched")
    if watched is None:
        return checks
    name, rhat, ess = watched
    return pd.concat([checks, pd.DataFrame({"rhat": [rhat], "ess": [ess]}, index=[name])])


def _state_text(model, checks):
    """Whether the chains have converged."""
    rhat, ess = checks["rhat"].dropna(), checks["ess"].dropna()
    if model._rough:
        return (
            f"converged for {model._rough[0]}; single columns are rough (R-hat {rhat.max():.2f}, ess {ess.min():.0f})"
        )
    converged = (rhat <= MAX_RHAT).all() and (ess >= MIN_ESS_PER_CHAIN * len(model.global_scale_draws_)).all()
    return ("converged" if converged else "NOT converged") if len(rhat) else "too few to tell whether they converged"


def _outcome_text(model, checks, level):
    """Whether the chains have converged, how many columns have intervals without zero, and the meaning of a sign."""
    n_chains, n_draws = model.global_scale_draws_.shape
    matters, _ = sure_signs(model, level)
    return (
        f"{n_chains} chain{'s' if n_chains > 1 else ''} of {n_draws} draws, {_state_text(model, checks)}; "
        f"{matters.sum()} of {len(matters)} columns clearly matter; {favoured(model)}"
    )


def _extreme(column, sign, digits):
    """The largest value of a column, or the smallest for a negative sign, and the name of its row."""
    values = column.to_numpy()
    if np.isnan(values).all():
        return "unknown"
    at = np.nanargmax(sign * values)
    return f"{values[at]:.{digits}f} ({printable(column.index[at])})"
