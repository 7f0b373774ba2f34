"""Point estimates and intervals."""

import numpy as np
from scipy.special import ndtr, ndtri

from ..diagnostics import convergence
from .classes import cut_rows, is_ordered
from .grouped_prediction import scale_draws

_BISECTIONS = 40  # after which an interval is 1e-12 of its first length
SCALE_ROW = " scale)"  # end of the names of scales


def scale_names(model):
    """The names that the rows of tables of the global scale and those of groups have."""
    correlations = getattr(model, "group_correlation_draws_", {})
    of_scales = [f"({name or 'group'}{SCALE_ROW}" for name in scale_draws(model)]
    return ["(global scale)", *of_scales, *(f"({pair} correlation)" for pair in correlations)]


def other_quantities(model):
    """The draws of other quantities than features, by name; R-hat and effective sample size of features and these."""
    draws, intercept = {}, model.intercept_draws_
    if model._fit_facts["fit_intercept"] and intercept.ndim > 2:
        draws = {f"(intercept {label})": intercept[..., k] for k, label in enumerate(model.classes_.tolist())}
    # That of ordered classes is minus the first cut point; where this is held at 0, y >= a class still has its own.
    elif not is_ordered(model) and (model._fit_facts["fit_intercept"] or intercept.any()):
        draws = {"(intercept)": intercept}
    of_tau, *of_groups = scale_names(model)
    draws[of_tau] = model.global_scale_draws_
    draws |= cut_rows(model)
    correlations = getattr(model, "group_correlation_draws_", {})
    draws |= zip(of_groups, [*scale_draws(model).values(), *correlations.values()], strict=True)
    checks = convergence(np.stack(list(draws.values()), axis=-1))
    return draws, np.append(model.rhat_, checks.rhat), np.append(model.ess_, checks.ess_bulk)


def names_by_class(model, names):
    """The names of the coefficients of columns with these names, in the order of ``rhat_``."""
    if model.rhat_.ndim == 1:
        return list(names)
    return [f"{name} ({label})" for label in model.classes_.tolist() for name in names]


def ends_of(level):
    """The probabilities below both ends of an equal-tailed interval."""
    return [(1 - level) / 2, (1 + level) / 2]


def interval(draws, level):
    """Equal-tailed credible interval; draws (n_chains, n_draws, ...) -> (2, ...)."""
    return np.quantile(draws, ends_of(level), axis=(0, 1))


def mixture_quantiles(centres, deviations, levels):
    """Quantiles of equal mixtures of N(centre, deviation^2), (n, m) and (m,) -> (n, len(levels)), by bisection."""
    out = []
    for level in levels:
        ends = centres + deviations * ndtri(level)
        low, high = ends.min(axis=1), ends.max(axis=1)
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            is_below = ndtr((middle[:, None] - centres) / deviations).mean(axis=1) < level
            low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
        out.append((low + high) / 2)
    return np.stack(out, axis=1)


def excludes_zero(ends):
    """Whether both ends (2, ...) of an interval are on one side of zero."""
    return (ends[0] > 0) | (ends[1] < 0)


def means(model):
    """Posterior means of the coefficients (p,) and of the intercept, over all draws, also those that were not kept; of
    several classes (K, p) and (K,)."""
    coef, intercept = model.coef_draws_, model.intercept_draws_
    if model.moments_ is None:
        return [draws.mean(axis=(0, 1), dtype=np.float64) for draws in (coef, intercept)]
    n = coef[0, 0].size
    mean = model.moments_["mean"]
    return mean[:n].reshape(coef.shape[2:]), mean[n:-1].reshape(intercept.shape[2:])


def medians(model):
    """As ``means``, medians of the draws that were kept."""
    return [np.median(draws, axis=(0, 1)).astype(float) for draws in (model.coef_draws_, model.intercept_draws_)]
