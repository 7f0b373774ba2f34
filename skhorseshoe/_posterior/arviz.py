"""The draws in the form of ArviZ: InferenceData of 0.x, DataTree of 1.x.

They include the log prior of quantities with a prior of their own, which a sensitivity analysis raises to powers. The
priors of shrunk coefficients are left out, since they are conditional on tau: a power of their density is not
normalised as a function of tau, and would change the prior of tau by tau^(1 - power) for each column.
"""

from math import log, pi

import numpy as np
from scipy.special import logsumexp

from .._mcmc.prior import GRID_END, GRID_STEP, WIDE, on_grid
from .._utils.names import names_of
from .._version import __version__
from . import predict
from .group_effects import labels_of_groups
from .grouped_prediction import is_grouped


def from_model(model, rows, max_draws):
    """See ``HorseshoeProbitClassifier.to_arviz``; rows : None, or X, whether y is the second class, and weights."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install arviz, version 0.18 or later.") from error
    draws = {"coef": model.coef_draws_, "intercept": model.intercept_draws_, "global_scale": model.global_scale_draws_}
    if is_grouped(model):
        draws["group_scale"] = model.group_scale_draws_
        if model.group_effect_draws_.shape[1] == model.intercept_draws_.shape[1]:
            draws["group_effect"] = model.group_effect_draws_
    groups = {"posterior": {name: predict.evenly(values, max_draws) for name, values in draws.items()}}
    groups["sample_stats"] = {"acceptance_rate": predict.evenly(model.acceptance_draws_, max_draws)}
    priors = log_prior(model, max_draws)
    if rows is not None:
        X, positive, weight = rows
        groups["log_likelihood"] = {"y": predict.log_likelihood(model, X, positive, weight, max_draws)}
        groups["observed_data"] = {"y": positive.astype(int)}
    columns = [str(name) if isinstance(name, tuple) else name for name in names_of(model)]
    free = [name for name, kappa in zip(columns, model.shrinkage_, strict=True) if kappa == 0]
    coords = {"feature": columns, "unpenalized_feature": free}
    dims = {"coef": ["feature"], "unpenalized": ["unpenalized_feature"], "y": ["row"], "group_effect": ["group"]}
    if is_grouped(model):
        coords["group"] = labels_of_groups(model)
    attrs = {
        "inference_library": "skhorseshoe",
        "inference_library_version": __version__,
        "sampler": model.sampler_,
        **{f"tuning_{name}": value for name, value in model.tuning_.items()},
    }
    if int(arviz.__version__.split(".")[0]) == 0:
        data = arviz.from_dict(**groups, coords=coords, dims=dims, posterior_attrs=attrs)
        data.add_groups({"log_prior": priors}, coords=coords, dims=dims)
        return data
    groups["log_prior"] = priors
    return arviz.from_dict(groups, coords=coords, dims=dims, attrs={"posterior": attrs})


def log_prior(model, max_draws):
    """Log prior by variable: tau, the coefficients that are not shrunk, and the intercept given all coefficients."""
    draws = model.coef_draws_, model.intercept_draws_, model.global_scale_draws_
    coef, intercept, tau = (predict.evenly(values, max_draws) for values in draws)
    mean, spread, free = model._column_means, model._column_sd, model.shrinkage_ == 0
    terms = {"global_scale": log_global_scale(tau, model.prior_["tau_0"], model.prior_["slab_scale"], (~free).sum())}
    if is_grouped(model):
        s, scale = predict.evenly(model.group_scale_draws_, max_draws), model.prior_["group_scale"]
        terms["group_scale"] = log(2 / pi / scale) - np.log1p((s / scale) ** 2)
    if not model._asked["fit_intercept"]:
        spread = np.hypot(mean, spread)
    if free.any():
        unit = np.where(spread > 0, spread, 1.0)[free]
        own = model.prior_.get("prior_scale", np.full(len(free), np.inf))[free]
        own = own / unit if model._asked["standardize"] else own
        terms["unpenalized"] = _log_normal(coef[..., free], np.where(np.isinf(own), WIDE / unit, own))
    if model._asked["fit_intercept"]:
        at_mean = intercept + np.einsum("cmp,p->cm", coef, mean)
        terms["intercept"] = _log_normal(at_mean, WIDE)
    return terms


def log_global_scale(tau, tau_0, slab_scale, p):
    """log p(tau): half-Cauchy, times a factor of the slab for each of the p columns that are shrunk.

    slab_scale : None, a number for all columns, or an array for all columns, infinite for no slab.
    """
    slabs, counts = _distinct(slab_scale, p)

    def density(log_x):  # of tau / tau_0, before it is normalised
        of_slab = sum(k * _log_slab(tau_0 * np.exp(log_x) / c) for c, k in zip(slabs, counts, strict=True))
        return log(2 / pi) - np.logaddexp(0.0, 2 * log_x) + of_slab

    below = GRID_END if len(slabs) == 0 else GRID_END + max(0.0, log(tau_0) + log((counts / slabs).sum()))
    log_x = GRID_STEP * np.arange(-round(below / GRID_STEP), round(GRID_END / GRID_STEP) + 1)
    total = logsumexp(density(log_x) + log_x) + log(GRID_STEP)
    return density(np.log(tau) - log(tau_0)) - log(tau_0) - total


def _distinct(slab_scale, p):
    """Slabs and the number of columns with each; several slabs are replaced by points of a grid, see ``on_grid``."""
    if np.ndim(slab_scale) == 0:
        return (np.empty(0), np.empty(0)) if slab_scale is None or p == 0 else (np.array([slab_scale]), np.array([p]))
    finite = slab_scale[np.isfinite(slab_scale)]
    if len(finite) == 0:
        return finite, finite
    first, counts = on_grid(np.log(finite))
    (at,) = counts.nonzero()
    return np.exp(GRID_STEP * (first + at)), counts[at]


def _log_slab(a):
    """Logarithm of the mean of (1 + (a lambda)^2)^(-1/2) over half-Cauchy lambda, for a >= 0."""
    root = np.sqrt(np.abs(a - 1)) * np.sqrt(a + 1)
    arc = np.where(a < 1, np.arctan2(root, a), np.arcsinh(root))
    return np.log(np.divide(arc, root, out=np.ones_like(root), where=root > 0)) + log(2 / pi)


def _log_normal(x, sd):
    return -((x / sd) ** 2 + log(2 * pi)) / 2 - np.log(sd)
