"""The logarithm of the prior at the draws, of what has a prior of its own: what a study of its sensitivity scales.

The priors of shrunk coefficients are not among them. They are conditional on tau: their density to a power, in tau, is
no longer normalised, so that it would change the prior of tau by tau^(1 - power) for each column.
"""

from math import log, pi

import numpy as np
from scipy.special import logsumexp

from .._mcmc.prior import ENDS, STEP, WIDE
from . import predict


def of_draws(model, max_draws):
    """By variable: of tau, of the coefficients that are not shrunk, and of the intercept given all coefficients.

    Empty for a model that an older version has fitted, which does not know its columns.
    """
    if not hasattr(model, "_column_sd"):
        return {}
    draws = model.coef_draws_, model.intercept_draws_, model.global_scale_draws_
    coef, intercept, tau = (predict.evenly(values, max_draws) for values in draws)
    mean, spread, free = model._column_means, model._column_sd, model.shrinkage_ == 0
    terms = {"global_scale": log_global_scale(tau, model.prior_["tau_0"], model.prior_["slab_scale"], (~free).sum())}
    if not model._asked["fit_intercept"]:
        spread = np.hypot(mean, spread)
    if free.any():
        terms["unpenalized"] = _log_normal(coef[..., free], WIDE / np.where(spread > 0, spread, 1.0)[free])
    if model._asked["fit_intercept"]:
        at_mean = intercept + np.einsum("cmp,p->cm", coef, mean)
        terms["intercept"] = _log_normal(at_mean, WIDE)
    return terms


def log_global_scale(tau, tau_0, slab_scale, p):
    """log p(tau): half-Cauchy, times a factor of the slab for each of the p columns that are shrunk."""

    def density(log_x):  # of tau / tau_0, before it is normalised
        of_slab = 0.0 if slab_scale is None else p * _log_slab(tau_0 * np.exp(log_x) / slab_scale)
        return log(2 / pi) - np.logaddexp(0.0, 2 * log_x) + of_slab

    below = ENDS if slab_scale is None else ENDS + max(0.0, log(tau_0) + log(p) - log(slab_scale))
    log_x = STEP * np.arange(-round(below / STEP), round(ENDS / STEP) + 1)
    total = logsumexp(density(log_x) + log_x) + log(STEP)
    return density(np.log(tau) - log(tau_0)) - log(tau_0) - total


def _log_slab(a):
    """Logarithm of the mean of (1 + (a lambda)^2)^(-1/2) over half-Cauchy lambda, for a >= 0."""
    root = np.sqrt(np.abs(a - 1)) * np.sqrt(a + 1)
    arc = np.where(a < 1, np.arctan2(root, a), np.arcsinh(root))
    return np.log(np.divide(arc, root, out=np.ones_like(root), where=root > 0)) + log(2 / pi)


def _log_normal(x, sd):
    return -((x / sd) ** 2 + log(2 * pi)) / 2 - np.log(sd)
