"""The draws in the form of ArviZ, of either of its two lines: InferenceData of 0.x, DataTree of 1.x."""

from .._utils.names import names_of
from .._utils.pickling import version
from . import log_prior, predict


def from_model(model, rows, max_draws):
    """See ``HorseshoeProbitClassifier.to_arviz``; rows : None, or X, whether y is the second class, and weights."""
    try:
        import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install arviz, version 0.18 or later.") from error
    draws = {
        "coef": model.coef_draws_,
        "intercept": model.intercept_draws_,
        "global_scale": model.global_scale_draws_,
    }
    groups = {"posterior": {name: predict.evenly(values, max_draws) for name, values in draws.items()}}
    groups["sample_stats"] = {"acceptance_rate": predict.evenly(model.acceptance_draws_, max_draws)}
    priors = log_prior.of_draws(model, max_draws)
    if rows is not None:
        groups["log_likelihood"] = {"y": predict.log_likelihood(model, *rows, max_draws)}
        groups["observed_data"] = {"y": rows[1].astype(int)}
    columns = names_of(model)
    free = [name for name, kappa in zip(columns, model.shrinkage_, strict=True) if kappa == 0]
    names = {
        "coords": {"feature": columns, "unpenalized_feature": free},
        "dims": {"coef": ["feature"], "unpenalized": ["unpenalized_feature"], "y": ["row"]},
    }
    attrs = {
        "inference_library": "skhorseshoe",
        "inference_library_version": version(),
        "sampler": model.sampler_,
        **{f"tuning_{name}": value for name, value in model.tuning_.items()},
    }
    if int(arviz.__version__.split(".")[0]) == 0:
        data = arviz.from_dict(**groups, **names, posterior_attrs=attrs)
        if priors:
            data.add_groups({"log_prior": priors}, **names)
        return data
    groups |= {"log_prior": priors} if priors else {}
    return arviz.from_dict(groups, **names, attrs={"posterior": attrs})
