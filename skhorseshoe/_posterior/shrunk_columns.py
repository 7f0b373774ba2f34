"""The shrunk columns of a model, in the unit in which the prior of their coefficients holds."""

from typing import NamedTuple

import numpy as np

from .._mcmc.prior import WIDE
from .._model.horseshoe import draws_given_tau, each_slab
from .grouped_prediction import evenly, is_of_several


class ShrunkColumns(NamedTuple):
    """Those that vary, since the data tell nothing of the coefficient of a constant one."""

    places: np.ndarray  # of the columns among those of the model, (k,)
    unit: np.ndarray  # by which coefficients are multiplied for those of the prior, (k,)
    sd: np.ndarray  # standard deviations of the columns in that unit, (k,)
    slabs: np.ndarray  # of the coefficients in that unit, inf for none, (k,)


_UNSEEN, _FEWEST = 2**22, 400  # numbers to draw of columns that are not seen; fewest draws of many columns
_SEED = 0  # of a generator of its own, so that answers are the same at each call


def shrunk_columns(model, among=None):
    """``ShrunkColumns``. among : places to look at, (k,), or None for all."""
    prior, facts, sd = model.prior_, model._fit_facts, model._column_sd
    size = sd if facts["fit_intercept"] else np.hypot(model._column_means, sd)  # as in ``Columns``
    unit = np.where(sd > 0, sd, size) if facts["standardize"] else np.ones(len(sd))
    unit = unit / prior.get("prior_scale", 1.0)
    among = np.arange(len(sd)) if among is None else among
    at = among[(model.shrinkage_[among] > 0) & (model.coef_draws_[..., among] != 0).any(axis=(0, 1))]
    return ShrunkColumns(at, unit[at], size[at] / unit[at], each_slab(prior["slab_scale"], len(sd))[at])


def prior_sd_of_free(model):
    """Standard deviations of the prior of the coefficients that are not shrunk, (k,)."""
    free, facts = model.shrinkage_ == 0, model._fit_facts
    spread = model._column_sd if facts["fit_intercept"] else np.hypot(model._column_means, model._column_sd)
    unit = np.where(spread > 0, spread, 1.0)[free]
    own = model.prior_.get("prior_scale", np.full(len(free), np.inf))[free]
    return np.where(np.isinf(own), WIDE, own if facts["standardize"] else own * unit) / unit


def unseen_draws(model, columns):
    """Draws of coefficients (n_chains, m, k) as they would be if the data said nothing of these columns: of the prior,
    under evenly spaced draws of tau. None of several classes without an order.
    """
    if is_of_several(model):
        return None
    shrunk, most = shrunk_columns(model, columns), max(_FEWEST, _UNSEEN // len(columns))
    tau, rng = evenly(model.global_scale_draws_, most), np.random.default_rng(_SEED)
    draws = np.zeros((tau.size, len(columns)))
    draws[:, np.isin(columns, shrunk.places)] = draws_given_tau(tau.ravel(), shrunk.slabs, rng) / shrunk.unit
    if (free := model.shrinkage_ == 0)[columns].any():
        sd = prior_sd_of_free(model)[free.cumsum()[columns[free[columns]]] - 1]
        draws[:, free[columns]] = sd * rng.standard_normal((tau.size, len(sd)))
    root = getattr(model, "_averaged_by", np.ones(model.global_scale_draws_.shape))
    return draws.reshape(*tau.shape, -1) / evenly(root, most)[..., None]
