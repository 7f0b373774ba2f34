"""Rows to predict, with their groups and offsets, and the draws to predict with.

A row of a group of the fit has the linear predictor x beta + u_g. A row of another group has a new u ~ N(0, s^2), and
the mean of its probability over u is that at x beta divided by ``shrunk_by`` of the likelihood, as cut points of
ordered classes are. A row's offset is added to x beta. With several factors a row may have a known level of some and a
new one of others: the effects of the former are added, and the variances of the latter averaged over. A single factor
has the name None.

With slopes the effects b of a group have an entry for the group and for each slope, and a row the values x~, 1 and its
columns less their means: the group adds x~'b, and a new group has the variance x~' Sigma x~, a sum of
``variance_terms``. Models without slopes have a term s^2 for each factor, and x~ = 1.
"""

from copy import copy
from itertools import combinations
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _num_samples

from .._data.factors import match_factors
from .._data.input_table import refuse_dask
from .._data.row_groups import check_offset
from .._mcmc.group_covariance import cholesky
from .._mcmc.group_draws import CORRELATION
from .._utils.arrays import dense
from .._utils.warn import warn_once

_BELOW_ONE = 1 - 1e-12  # times correlations: rounding has no root of a negative number
_KNOWN = (
    "Labels in groups that fit has seen: {}. Their rows get the effects of these groups, other rows the average "
    "over new groups. If equal labels are not the same group, as where two hospitals number their patients alike, give "
    "new_groups=True. new_groups=False says that they are, without this warning."
)


class GivenRows(NamedTuple):
    """Checked rows."""

    X: Any
    codes: Any = None  # (n, n_factors) codes of the groups, -1 for one that the fit has not seen; None without groups
    offset: Any = None  # (n,), of classes without an order (n, K), or None


class DrawsForRows(NamedTuple):
    """Draws to predict with."""

    coef: Any  # (m, p), of all linear predictors of a row under the first draw, and then under the next
    intercept: Any  # (m,)
    own: Any = None  # (m, k) parameters of the likelihood's own, or None
    variances: Any = None  # (n_terms, m) of ``variance_terms``, which are s^2 without slopes; None without groups
    terms: Any = None  # (n_terms, 2) the effects of each, where there are slopes
    factors: Any = None  # the number of the factor of each effect of a group
    effects: Any = None  # of each effect of a group (k, number of groups) draws
    places: Any = None  # of these k draws among the m, or None for all


def evenly(draws, max_draws):
    """At most ``max_draws`` of draws (n_chains, n_draws, ...), evenly spaced, as many from each chain; None is all."""
    n_chains, n_draws = draws.shape[:2]
    if max_draws is not None and (not isinstance(max_draws, Integral) or max_draws < 1):
        raise ValueError(f"max_draws must be a positive integer or None; got {max_draws!r}.")
    if max_draws is None or max_draws >= n_chains * n_draws:
        return draws
    m = max_draws // n_chains
    if m < 1:
        raise ValueError(f"max_draws={max_draws} must be at least 1 for each of the {n_chains} chains.")
    places = (2 * np.arange(m, dtype=np.int64) + 1) * n_draws // (2 * m)  # NumPy 1 on Windows would take 32 bits
    return draws[:, places]


def by_factor(model, attribute):
    """An attribute of a model with groups for each factor, by its name."""
    values = getattr(model, attribute)
    return values if isinstance(values, dict) else {None: values}


def scale_draws(model):
    """The draws of s (n_chains, n_draws) of each factor, by its name; empty without groups."""
    return by_factor(model, "group_scale_draws_") if is_grouped(model) else {}


def is_grouped(model):
    """Whether a model was fitted with groups."""
    return hasattr(model, "groups_")


def given_rows(model, X, groups, offset, new_groups=None):
    """``GivenRows``; an error if the model was fitted without the groups or offset, or needs an offset."""
    refuse_dask(X, groups=groups, offset=offset)
    has_offset, classes = hasattr(model, "_has_offset"), _classes_with_utilities(model)
    if has_offset and offset is None:
        entry, shape = "a number for each row", "len(X)"
        if len(classes):
            entry, shape = "numbers for each row, one of each class of the fit", f"(len(X), {len(classes)})"
        raise ValueError(
            "This model was fitted with an offset, without which its scores are not known: give offset= here too, "
            f"{entry} (np.zeros({shape}) for none). scikit-learn's scorers hand none on: fit and predict fold by fold."
        )
    if offset is not None and not has_offset:
        raise ValueError("This model was fitted without an offset: leave offset out, or fit with one.")
    n = None if groups is None and offset is None else _num_samples(X)
    matched = matched_groups(model, n, groups, new_groups)
    if matched is not None and not hasattr(model, "group_effect_draws_") and matched.counts[0]:
        raise ValueError("The effects of groups are known when the fit has ended: leave groups out until then.")
    offset = None if offset is None else check_offset(offset, n, classes)
    return GivenRows(X, None if matched is None else matched.codes, offset)


def _classes_with_utilities(model):
    """The classes without an order of which each has a linear predictor, if a model has them."""
    if hasattr(model, "_predictors"):
        return model._predictors["classes"]
    return model.classes_ if model.intercept_draws_.ndim > 2 else ()


def is_of_several(model):
    """Whether a model is fitted to more than two classes without an order, or made of such a fit."""
    return len(_classes_with_utilities(model)) > 0 or hasattr(model, "_others_excluded")


def matched_groups(model, n, groups, new_groups):
    """``Matched`` of the groups of n rows, as ``match_factors`` gives it, or None; an error if the model was fitted
    without. With new_groups=None a warning says how many labels are known."""
    if not (new_groups is None or isinstance(new_groups, bool | np.bool_)):
        raise ValueError(f"new_groups must be True, False or None; got {new_groups!r:.80}. Labels are groups=.")
    if groups is None:
        return None
    if not is_grouped(model):
        cure = ", or fit with them."
        if is_of_several(model):
            cure = ". A fit to several classes without an order takes none; one to y == a class does."
        raise ValueError(f"This model was fitted without groups: leave groups out{cure}")
    matched = match_factors(model.groups_, groups, n, bool(new_groups))
    if new_groups is None:
        warn_once(_KNOWN.format(matched.told), UserWarning, "known groups")
    return matched


def group_roots(model):
    """By which coefficients are divided to average over groups, for each draw; (n_chains, n_draws). Where there are
    slopes this differs between rows, and their mean variance is taken."""
    return model._likelihood.shrunk_by(mean_variance(model))


def draws_with_effects(model):
    """The draws of a chain for which the groups' effects are kept, a slice."""
    (effects, *_), stride = by_factor(model, "group_effect_draws_").values(), model._group_stride
    return slice(stride - 1, stride * effects.shape[1], stride)


def population(model):
    """The model averaged over groups: a copy whose coefficients and cut points are divided by ``group_roots``. A model
    without groups is returned unchanged."""
    if not is_grouped(model):
        return model
    root = group_roots(model)
    averaged = copy(model)
    del averaged.groups_, averaged.group_scale_draws_
    for name in ("_group_slopes", "group_correlation_draws_"):
        vars(averaged).pop(name, None)
    averaged.coef_draws_ = (model.coef_draws_ / root[..., None]).astype(model.coef_draws_.dtype)
    averaged.intercept_draws_ = model.intercept_draws_ / root
    if hasattr(model, "_own_draws"):
        averaged._own_draws = model._own_draws / root[..., None]
    if hasattr(model, "_predictors"):
        own = model._predictors
        averaged._predictors = {
            **own, "coef": own["coef"] / root[..., None, None], "intercept": own["intercept"] / root[..., None]
        }  # fmt: skip
    averaged.moments_ = None  # the moments of all draws are of coefficients given the group
    averaged._averaged_by = root
    return averaged


def offset_factors(model, max_draws=None):
    """The factor of offsets under each draw, the same as that of coefficients; (m,)."""
    root = getattr(model, "_averaged_by", np.ones(model.intercept_draws_.shape[:2]))
    return 1 / evenly(root, max_draws).ravel()


def on_average(model):
    """The end of a header for a model that ``population`` has averaged; "" for others."""
    if hasattr(model, "_roots_by_row"):
        return "; averaged over groups (x'beta / sqrt(1 + x'Sigma x))"
    return "; averaged over groups (beta / sqrt(1 + s^2))" if hasattr(model, "_averaged_by") else ""


def by_row(model, max_draws):
    """The model for averages over rows: ``population``; where there are slopes, the model of coefficients given the
    group, whose ``_roots_by_row`` tell by what scores are divided."""
    if not has_slopes(model):
        return population(model)
    given = copy(model)
    given._roots_by_row = RootsByRow(model, lambda draws: evenly(draws, max_draws).ravel())
    return given


def refuse_offset(model, name):
    """Raise a ValueError if the model was fitted with an offset. name : of the function that cannot take one."""
    if hasattr(model, "_has_offset"):
        cure = "Fit without it."
        if model._likelihood_of_fit.n_predictors == 1:
            cure = "Fit with the offset as a column of X that is in unpenalized, whose coefficient is then about 1."
        raise ValueError(f"{name} takes no model that was fitted with an offset. {cure}")


class VarianceTerm(NamedTuple):
    """A term of the variance of a new group: x~_a x~_b times draws."""

    a: int
    b: int
    draws: Any  # (n_chains, n_draws)


def has_slopes(model):
    """Whether a factor of a model has slopes."""
    return hasattr(model, "_group_slopes")


def factors_of_effects(model):
    """The number of the factor of each effect of a group."""
    return model._group_slopes["factor"] if has_slopes(model) else np.arange(len(scale_draws(model)))


def variance_terms(model):
    """The ``VarianceTerm``s."""
    scales = scale_draws(model)
    draws = [*scales.values()]
    terms = [VarianceTerm(k, k, s**2) for k, s in enumerate(draws)]
    return terms + [VarianceTerm(a, b, 2 * r * draws[a] * draws[b]) for a, b, r in _correlations(model, scales)]


def _correlations(model, names):
    """Yields the numbers of two effects of a factor among these names, and the draws of their correlation."""
    known = getattr(model, "group_correlation_draws_", {})
    for (a, one), (b, other) in combinations(enumerate(names), 2):
        if (r := known.get(CORRELATION.format(one, other))) is not None:
            yield a, b, r


def roots(model):
    """R of the covariance R R' of all effects of a new group, lower triangular, (n_chains, n_draws, k, k)."""
    scales = scale_draws(model)
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


def mean_variance(model, factor=None):
    """The variance that groups, or those of the factor with this number, add to the score of a row, the mean over the
    rows of the fit where there are slopes; (n_chains, n_draws)."""
    of = factors_of_effects(model)
    products = getattr(model, "_group_slopes", {}).get("products", np.ones((len(of), len(of))))
    return sum(products[a, b] * draws for a, b, draws in variance_terms(model) if factor is None or of[a] == factor)


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


class RootsByRow:
    """By which scores of rows are divided to average over groups, under each draw, where factors have slopes. select :
    function of draws (n_chains, n_draws) to (m,)."""

    def __init__(self, model, select):
        self.model, terms = model, variance_terms(model)
        self.a, self.b = np.array([term.a for term in terms]), np.array([term.b for term in terms])
        self.draws = np.stack([select(term.draws) for term in terms], axis=1)  # (m, n_terms)

    def of(self, X, draws, columns=(), changes=None):
        """The roots (k, n) for some draws and rows X, whose columns have changed by changes (n, number of columns)."""
        values = values_in_rows(self.model, X)
        for column, change in zip(columns, () if changes is None else changes.T, strict=True):
            values[:, self.model._group_slopes["column"] == column] += change[:, None]
        variance = self.draws[draws] @ (values[:, self.a] * values[:, self.b]).T
        return self.model._likelihood.shrunk_by(np.maximum(variance, 0.0))
