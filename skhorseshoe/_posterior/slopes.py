"""Slopes of groups in the answers of a model: what a group adds to the score of a row depends on columns of the row.

The effects b of a group have an entry for the group and for each slope, and a row the values x~, 1 and its columns less
their means: the group adds x~'b, and a new group has the variance x~' Sigma x~, a sum of ``variance_terms``. Models
without slopes have a term s^2 for each factor, and x~ = 1.
"""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from .._mcmc.group_covariance import cholesky
from .._mcmc.group_draws import CORRELATION
from .._utils.arrays import dense

_BELOW_ONE = 1 - 1e-12  # times correlations: rounding has no root of a negative number


class VarianceTerm(NamedTuple):
    """A term of the variance of a new group: x~_a x~_b times draws."""

    a: int
    b: int
    draws: Any  # (n_chains, n_draws)


def has_slopes(model):
    """Whether a factor of a model has slopes."""
    return hasattr(model, "_group_slopes")


def factors_of_effects(model, n_factors):
    """The number of the factor of each effect of a group."""
    return model._group_slopes["factor"] if has_slopes(model) else np.arange(n_factors)


def variance_terms(model, scales):
    """The ``VarianceTerm``s. scales : draws of s by name."""
    draws = [*scales.values()]
    terms = [VarianceTerm(k, k, s**2) for k, s in enumerate(draws)]
    return terms + [VarianceTerm(a, b, 2 * r * draws[a] * draws[b]) for a, b, r in _correlations(model, scales)]


def _correlations(model, names):
    """Yields the numbers of two effects of a factor among these names, and the draws of their correlation."""
    known = getattr(model, "group_correlation_draws_", {})
    for (a, one), (b, other) in combinations(enumerate(names), 2):
        if (r := known.get(CORRELATION.format(one, other))) is not None:
            yield a, b, r


def roots(model, scales):
    """R of the covariance R R' of all effects of a new group, lower triangular, (n_chains, n_draws, k, k)."""
    s = np.stack([*scales.values()])
    correlation = np.eye(len(s))[..., None, None] * np.ones(s.shape[1:])
    for a, b, r in _correlations(model, scales):
        correlation[a, b] = correlation[b, a] = _BELOW_ONE * r
    return np.moveaxis(s[:, None] * cholesky(correlation), (0, 1), (2, 3))


def covariances_of(model):
    """By factor with slopes the names of its effects and the draws of Sigma (n_chains, n_draws, q, q)."""
    out, scales = {}, model.group_scale_draws_
    for name in model.groups_ if has_slopes(model) else ():
        if slopes := slopes_of(model, name):
            effects = [name, *slopes.values()]
            sigma = np.stack([scales[effect] for effect in effects], axis=-1)
            covariance = sigma[..., None] * sigma[..., None, :]
            for a, b, r in _correlations(model, effects):
                covariance[..., a, b] *= r
                covariance[..., b, a] *= r
            out[name] = effects, covariance
    return out


def mean_variance(model, scales, factor=None):
    """The variance that groups, or those of the factor with this number, add to the score of a row, the mean over the
    rows of the fit where there are slopes; (n_chains, n_draws)."""
    terms = variance_terms(model, scales)
    of, slopes = factors_of_effects(model, len(scales)), getattr(model, "_group_slopes", {})
    products = slopes.get("products", np.ones((len(scales),) * 2))
    return sum(products[a, b] * draws for a, b, draws in terms if factor is None or of[a] == factor)


def values_in_rows(model, X):
    """x~ of rows (n, n_effects) of a group; None without slopes. X : checked rows."""
    if not has_slopes(model):
        return None
    slopes, out = model._group_slopes, np.ones((X.shape[0], len(model._group_slopes["column"])))
    for k, (column, centre) in enumerate(zip(slopes["column"], slopes["centre"], strict=True)):
        if column >= 0:
            out[:, k] = np.asarray(dense(X[:, [column]]), np.float64)[:, 0] - centre
    return out


def slopes_of(model, name):
    """The names of the effects of a group that are slopes of a factor, by the names of their columns."""
    if not has_slopes(model):
        return {}
    factors, of = [*model.groups_], model._group_slopes["factor"]
    effects = [one for one, k in zip(model.group_scale_draws_, of, strict=True) if factors[k] == name != one]
    return {one[len(name) + 1 :]: one for one in effects}


def name_slopes(model, names):
    """Call the slopes of a copied model by these names of columns, unless two effects would have the same name."""
    if not has_slopes(model):
        return
    effects, own, factors = [*model.group_scale_draws_], model._group_slopes, [*model.groups_]
    places = zip(effects, own["factor"], own["column"], strict=True)
    known = {one: one if column < 0 else f"{factors[k]}:{names[column]}" for one, k, column in places}
    if len({*known.values()}) < len(known):
        return
    pairs = combinations(effects, 2)
    known |= {CORRELATION.format(a, b): CORRELATION.format(known[a], known[b]) for a, b in pairs}

    def renamed(values):
        return {known.get(name, name): renamed(v) if isinstance(v, dict) else v for name, v in values.items()}

    for name in ("group_scale_draws_", "group_effect_draws_", "group_effect_moments_", "group_correlation_draws_"):
        setattr(model, name, renamed(getattr(model, name)))
    model.prior_ = {**model.prior_, "group_scale": renamed(model.prior_["group_scale"])}


def refuse_slopes(model, what, cure):
    """Raise a ValueError if a factor of a model has slopes. what : cannot take them, in words."""
    if has_slopes(model):
        raise ValueError(f"{what} takes no model with group_slopes yet. {cure}")


class RootsByRow:
    """By which scores of rows are divided to average over groups, under each draw, where factors have slopes.

    scales : draws of s by name, as ``select`` takes them: function from (n_chains, n_draws) to (m,)."""

    def __init__(self, model, scales, select):
        self.model, terms = model, variance_terms(model, scales)
        self.a, self.b = np.array([term.a for term in terms]), np.array([term.b for term in terms])
        self.draws = np.stack([select(term.draws) for term in terms], axis=1)  # (m, n_terms)

    def of(self, X, draws, columns=(), changes=None):
        """The roots (k, n) for some draws and rows X, whose columns have changed by changes (n, number of columns)."""
        values = values_in_rows(self.model, X)
        for column, change in zip(columns, () if changes is None else changes.T, strict=True):
            values[:, self.model._group_slopes["column"] == column] += change[:, None]
        variance = self.draws[draws] @ (values[:, self.a] * values[:, self.b]).T
        return self.model._likelihood.shrunk_by(np.maximum(variance, 0.0))
