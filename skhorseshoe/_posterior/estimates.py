"""Point estimates and intervals."""

import numpy as np

from .._mcmc.blocks import SUMMARY_ROWS
from ..diagnostics import convergence
from .ordered import cut_rows


def other_quantities(model):
    """The draws of other quantities than features, by name; R-hat and effective sample size of features and of
    these."""
    draws, intercept = {}, model.intercept_draws_
    if model._fit_facts["fit_intercept"] and intercept.ndim > 2:
        draws = {f"(intercept {label})": intercept[..., k] for k, label in enumerate(model.classes_.tolist())}
    elif model._fit_facts["fit_intercept"]:
        draws = {"(intercept)": intercept}
    draws["(global scale)"] = model.global_scale_draws_
    draws |= cut_rows(model)
    draws |= {name: getattr(model, attribute) for name, attribute in SUMMARY_ROWS.items() if hasattr(model, attribute)}
    checks = convergence(np.stack(list(draws.values()), axis=-1))
    return draws, np.append(model.rhat_, checks.rhat), np.append(model.ess_, checks.ess_bulk)


def ends_of(level):
    """The probabilities below both ends of an equal-tailed interval."""
    return [(1 - level) / 2, (1 + level) / 2]


def interval(draws, level):
    """Equal-tailed credible interval; draws (n_chains, n_draws, ...) -> (2, ...)."""
    return np.quantile(draws, ends_of(level), axis=(0, 1))


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
