"""The draws in the form of ArviZ: InferenceData of 0.x, DataTree of 1.x.

They include the log prior of what a sensitivity analysis raises to powers; ``sensitivity.py`` says why the priors of
shrunk coefficients are left out.
"""

from math import log, pi

import numpy as np

from .._mcmc.group_covariance import inverse
from .._mcmc.group_covariance import log_prior as log_density_of_covariance
from .._mcmc.prior import WIDE
from .._model.horseshoe import each_slab, log_density_of_tau, log_half_cauchy
from .._utils.names import names_of
from .._version import __version__
from . import predict
from .classes import cut_names, cut_points, is_ordered, is_several
from .grouped_prediction import by_factor, covariances_of, evenly, is_grouped, scale_draws, slopes_of
from .shrunk_columns import sd_where_free
from .summary import listed


def _of_groups(model):
    """The draws of the scales of groups, of their effects where those of all draws are kept, and of correlations."""
    draws = {f"group_scale{of(name)}": values for name, values in scale_draws(model).items()}
    effects, n_draws = by_factor(model, "group_effect_draws_").items(), model.intercept_draws_.shape[1]
    draws |= {f"group_effect{of(name)}": values for name, values in effects if values.shape[1] == n_draws}
    correlations = getattr(model, "group_correlation_draws_", {})
    return draws | {f"group_correlation{of(pair)}": values for pair, values in correlations.items()}


def from_model(model, rows, max_draws):
    """See ``HorseshoeProbitClassifier.to_arviz``; rows : None, or X, the places of y, and weights."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install arviz, version 0.18 or later.") from error
    if hasattr(model, "_derived") and not hasattr(model, "_odds_factor"):
        raise ValueError(
            f"to_arviz takes no model {model._derived}: the prior is that of all classes. Ask the model that was "
            "fitted, which has the same draws."
        )
    draws = {"coef": model.coef_draws_, "intercept": model.intercept_draws_, "global_scale": model.global_scale_draws_}
    if is_grouped(model):
        draws |= _of_groups(model)
    of_classes = ["class"] if is_several(model) else []
    if is_ordered(model):
        draws["cut_points"] = cut_points(model)
    groups = {"posterior": {name: evenly(values, max_draws) for name, values in draws.items()}}
    groups["sample_stats"] = {"acceptance_rate": evenly(model.acceptance_draws_, max_draws)}
    priors = log_prior(model, max_draws)
    if rows is not None:
        X, place, weight = rows
        groups["log_likelihood"] = {"y": predict.log_likelihood(model, X, place, weight, max_draws)}
        groups["observed_data"] = {"y": place.astype(int)}
    columns = [str(name) if isinstance(name, tuple) else name for name in names_of(model)]
    free = [name for name, kappa in zip(columns, model.shrinkage_, strict=True) if kappa == 0]
    coords = {"feature": columns, "unpenalized_feature": free}
    dims = {"coef": [*of_classes, "feature"], "unpenalized": ["unpenalized_feature"], "y": ["row"]}
    dims |= {"intercept": of_classes} if of_classes else {}
    coords |= {"class": model.classes_.tolist()} if of_classes else {}
    dims["cut_points"] = ["cut"]
    if is_ordered(model):
        coords["cut"] = cut_names(model)
    if is_grouped(model):
        for name, labels in by_factor(model, "groups_").items():
            coords[f"group{of(name)}"] = listed(labels)
            for effect in (name, *slopes_of(model, name).values()):
                dims[f"group_effect{of(effect)}"] = [f"group{of(name)}"]
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
    coef, intercept, tau = (evenly(values, max_draws) for values in draws)
    mean, free = model._column_means, model.shrinkage_ == 0
    slabs = each_slab(model.prior_["slab_scale"], (~free).sum())
    d = model._likelihood.n_predictors
    terms = {"global_scale": log_density_of_tau(tau, model.prior_["tau_0"], slabs, d)}
    if is_grouped(model):
        scales = model.prior_["group_scale"]
        covariances = covariances_of(model)
        for name, (numbers, covariance) in covariances.items():
            root = np.linalg.cholesky(evenly(covariance, max_draws))
            own = np.array([scales[effect] for effect in numbers])
            of_root = log_density_of_covariance(inverse(np.moveaxis(root.reshape(-1, *root.shape[2:]), 0, -1)), own)
            # The density of Sigma times the Jacobian of deviations and correlations, whose law is raised to powers.
            deviations = np.stack([evenly(scale_draws(model)[effect], max_draws) for effect in numbers])
            jacobian = len(numbers) * np.log(deviations).sum(axis=0)
            terms[f"group_scale{of(name)}"] = of_root.reshape(root.shape[:2]) + jacobian
        with_slopes = {effect for numbers, _ in covariances.values() for effect in numbers}
        for name, values in scale_draws(model).items():
            if name in with_slopes:
                continue
            s, scale = evenly(values, max_draws), scales if name is None else scales[name]
            terms[f"group_scale{of(name)}"] = log(2 / pi / scale) + log_half_cauchy((s / scale) ** 2)
    if free.any():
        square = coef[..., free] ** 2 if d == 1 else (coef[..., free] ** 2).sum(axis=2)
        terms["unpenalized"] = log_normal(square, sd_where_free(model)[free], d)
    if model._fit_facts["fit_intercept"]:
        square = (intercept + coef @ mean) ** 2
        name = "intercept" if d == 1 else "intercepts"  # of all classes together
        terms[name] = log_normal(square if d == 1 else square.sum(axis=-1), WIDE, d)
    return terms


def of(name):
    """The end of the names of what is of a factor; empty for a single one."""
    return "" if name is None else f"_{name}"


def log_normal(square, sd, d=1):
    """log N(x; 0, sd) with the square of x; of d contrasts of classes the sum of the squares of these."""
    return -(square / sd**2 + d * log(2 * pi)) / 2 - d * np.log(sd)
