"""Rows to predict with what they bring along, and draws under which they are predicted.

A row of a group that the fit has seen has the score x beta + u_g. That of another group has a new u ~ N(0, s^2), over
which Phi(x beta + u) is on average Phi(x beta / sqrt(1 + s^2)). A row's offset is added to x beta.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .._data.row_groups import check_groups, check_offset, known_codes, refuse_dask


class GivenRows(NamedTuple):
    """Rows, checked."""

    X: Any
    codes: Any = None  # (n,) the number of the group of each, -1 for another one; None where none is given
    offset: Any = None  # (n,) or None


class Under(NamedTuple):
    """Draws that rows are predicted under."""

    coef: Any  # (m, p)
    intercept: Any  # (m,)
    root: Any = None  # (m,) sqrt(1 + s^2), or None without groups
    effects: Any = None  # (k, number of groups) of the groups' effects
    kept: Any = None  # places of those k draws among the m, or None for all


def is_grouped(model):
    """Whether a model was fitted with groups."""
    return hasattr(model, "groups_")


def given_rows(model, X, groups, offset):
    """``GivenRows``; an error where a model was fitted without what is given, or with an offset that is not."""
    refuse_dask(X, groups=groups, offset=offset)
    has_offset = hasattr(model, "_has_offset")
    if has_offset and offset is None:
        raise ValueError(
            "This model was fitted with an offset, without which its scores are not known: give offset= here too, a "
            "number for each row (np.zeros(len(X)) for none)."
        )
    if offset is not None and not has_offset:
        raise ValueError("This model was fitted without an offset: leave offset out, or fit with one.")
    if groups is not None and not is_grouped(model):
        raise ValueError("This model was fitted without groups: leave groups out, or fit with them.")
    n = X.shape[0]
    codes = None if groups is None else known_codes(model.groups_, check_groups(groups, n))
    if codes is not None and not hasattr(model, "group_effect_draws_") and (codes >= 0).any():
        raise ValueError("The effects of groups are known when the fit has ended: leave groups out until then.")
    return GivenRows(X, codes, None if offset is None else check_offset(offset, n))


def roots(model):
    """sqrt(1 + s^2) of each draw, (n_chains, n_draws): by which coefficients are divided to be those of new groups."""
    return np.sqrt(1 + np.square(model.group_scale_draws_))


def with_effects(model):
    """The places of those draws of a chain that have the groups' effects, a slice."""
    stride = model._group_stride
    return slice(stride - 1, stride * model.group_effect_draws_.shape[1], stride)


def population(model):
    """The model as it is averaged over groups: with coefficients divided by sqrt(1 + s^2), draw by draw. A model
    without groups as it is."""
    if not is_grouped(model):
        return model
    root = roots(model)
    averaged = copy(model)
    averaged.__dict__ = {name: value for name, value in vars(model).items() if name != "groups_"}
    averaged.coef_draws_ = (model.coef_draws_ / root[..., None]).astype(model.coef_draws_.dtype)
    averaged.intercept_draws_ = model.intercept_draws_ / root
    averaged.moments_ = None  # those of all draws are of coefficients given the group
    averaged._averaged_over = len(model.groups_)
    return averaged


def on_average(model):
    """In words, behind what a header says of a model that ``population`` has made; "" for others."""
    n = getattr(model, "_averaged_over", None)
    return "" if n is None else "; on the scale of the population: averaged over groups, beta / sqrt(1 + s^2)"
