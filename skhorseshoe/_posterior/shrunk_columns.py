"""The shrunk columns of a model, in the unit in which the prior of their coefficients holds."""

from typing import NamedTuple

import numpy as np

from .._model.horseshoe import each_slab


class ShrunkColumns(NamedTuple):
    """Those that vary, since the data tell nothing of the coefficient of a constant one."""

    places: np.ndarray  # of the columns among those of the model, (k,)
    unit: np.ndarray  # by which coefficients are multiplied for those of the prior, (k,)
    sd: np.ndarray  # standard deviations of the columns in that unit, (k,)
    slabs: np.ndarray  # of the coefficients in that unit, inf for none, (k,)


def shrunk_columns(model):
    """``ShrunkColumns``."""
    prior, facts, sd = model.prior_, model._fit_facts, model._column_sd
    size = sd if facts["fit_intercept"] else np.hypot(model._column_means, sd)  # as in ``Columns``
    unit = np.where(sd > 0, sd, size) if facts["standardize"] else np.ones(len(sd))
    unit = unit / prior.get("prior_scale", 1.0)
    at = np.flatnonzero((model.shrinkage_ > 0) & (model.coef_draws_ != 0).any(axis=(0, 1)))
    return ShrunkColumns(at, unit[at], size[at] / unit[at], each_slab(prior["slab_scale"], len(sd))[at])
