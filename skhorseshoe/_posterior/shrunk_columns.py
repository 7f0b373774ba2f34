"""The prior of a model's coefficients: of shrunk columns, in the unit in which it holds, and of the others."""

from typing import NamedTuple

import numpy as np

from .._mcmc.prior import WIDE
from .._model.horseshoe import each_slab, scales_given_tau
from .._model.multinomial_probit import simplex
from .classes import has_sizes
from .grouped_prediction import evenly, is_of_several

_UNSEEN, _FEWEST = 2**22, 400  # numbers to draw of columns that are not seen; fewest draws of many columns
_SEED = 0  # of a generator of its own, so that answers are the same at each call


class ShrunkColumns(NamedTuple):
    """Those that vary, since the data tell nothing of the coefficient of a constant one."""

    places: np.ndarray  # of the columns among those of the model, (k,)
    unit: np.ndarray  # by which coefficients are multiplied for those of the prior, (k,)
    sd: np.ndarray  # standard deviations of the columns in that unit, (k,)
    slabs: np.ndarray  # of the coefficients in that unit, inf for none, (k,)


def shrunk_columns(model, among=None):
    """``ShrunkColumns``. among : places to look at, (k,), or None for all."""
    prior, sd, size = model.prior_, model._column_sd, _spread(model)
    unit = np.where(sd > 0, sd, size) if model._fit_facts["standardize"] else np.ones(len(sd))
    unit = unit / prior.get("prior_scale", 1.0)
    among = np.arange(len(sd)) if among is None else among
    at = among[(model.shrinkage_[among] > 0) & (model.coef_draws_[..., among] != 0).reshape(-1, len(among)).any(axis=0)]
    return ShrunkColumns(at, unit[at], size[at] / unit[at], each_slab(prior["slab_scale"], len(sd))[at])


def sd_where_free(model):
    """Standard deviations of the prior of coefficients, (p,), which hold where columns are not shrunk."""
    spread = _spread(model)
    unit = np.where(spread > 0, spread, 1.0)
    own = model.prior_.get("prior_scale", np.inf) * np.ones(len(unit))
    return np.where(np.isinf(own), WIDE, own if model._fit_facts["standardize"] else own * unit) / unit


def _spread(model):
    """The size of each column as the fit has centred it, as in ``Columns``; (p,)."""
    mean, sd = model._column_means, model._column_sd
    return sd if model._fit_facts["fit_intercept"] else np.hypot(mean, sd)


def unseen_draws(model, columns):
    """Draws of coefficients (n_chains, m, k), of several classes (n_chains, m, K, k), as they would be if the data said
    nothing of these columns: of the prior, under evenly spaced draws of tau. None of one class of several."""
    if is_of_several(model) and not has_sizes(model):
        return None
    contrasts = simplex(len(model.classes_)) if has_sizes(model) else np.ones((1, 1))
    shrunk, most = shrunk_columns(model, columns), max(_FEWEST, _UNSEEN // (contrasts.shape[1] * len(columns)))
    tau, rng = evenly(model.global_scale_draws_, most), np.random.default_rng(_SEED)
    scales = np.zeros((tau.size, len(columns)))
    is_shrunk = np.isin(columns, shrunk.places)
    scales[:, is_shrunk] = scales_given_tau(tau.ravel(), shrunk.slabs, rng, len(contrasts)) / shrunk.unit
    is_free = model.shrinkage_[columns] == 0
    scales[:, is_free] = sd_where_free(model)[columns[is_free]]
    draws = scales[:, None] * rng.standard_normal((tau.size, len(contrasts), len(columns)))
    root = getattr(model, "_averaged_by", np.ones(model.global_scale_draws_.shape))
    draws = (contrasts.T @ draws).reshape(*tau.shape, -1, len(columns)) / evenly(root, most)[..., None, None]
    return draws if has_sizes(model) else draws[:, :, 0]
