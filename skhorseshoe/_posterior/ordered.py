"""Probabilities of ordered classes, and the model of y >= a class, which all that speaks of two classes takes."""

from copy import copy
from itertools import pairwise

import numpy as np

from .._utils.names import plain, printable
from .grouped_prediction import evenly

_OPPOSITES = {"=": "!=", ">=": "<"}


def is_ordered(model):
    """Whether a fitted model has more than two classes, in an order."""
    return hasattr(model, "ordered_classes_")


def cut_points(model):
    """The draws of the cut points; (n_chains, n_draws, K - 1). An AttributeError of a model of other classes."""
    if not is_ordered(model):
        raise AttributeError(
            "Cut points are of a fitted model of three classes or more in order; of two the intercept is all there is."
        )
    first = -model.intercept_draws_[..., None]
    return np.concatenate([first, first + model._own_draws], axis=-1)


def own_draws(model, max_draws=None, some=slice(None)):
    """Draws of the cut points less the first, chain after chain (m, K - 2), of some draws of a chain; None of other
    models."""
    if not is_ordered(model):
        return None
    own = evenly(model._own_draws[:, some], max_draws)
    return own.reshape(-1, own.shape[2])


def in_order_of_classes(model, values):
    """Values of the classes from lowest to highest (..., K), in the order of ``classes_``."""
    return values[..., [model.ordered_classes_.tolist().index(label) for label in model.classes_.tolist()]]


def average_of_ordered(model, eta, ops, own):
    """Averages over draws of the probabilities of the classes from lowest to highest; (n, K). eta : (n, m). own : (m,
    K - 2), or (n, m, K - 2)."""
    none, every = np.zeros((1, len(eta))), np.ones((1, len(eta)))
    cuts = 0.0, *np.moveaxis(own, -1, 0)
    below, above = np.moveaxis([ops.average_probabilities(eta - cut, model._of_two_classes) for cut in cuts], 2, 0)
    below, above = np.concatenate([none, below, every]), np.concatenate([every, above, none])  # P(y < k), P(y >= k)
    # A difference of the smaller tails keeps its digits.
    return np.where(above[:-1] < 0.5, above[:-1] - above[1:], below[1:] - below[:-1]).T


def at_least(model, label):
    """See ``inspection.at_least``, of a classifier."""
    if not is_ordered(model):
        raise ValueError(
            "at_least is for ordered classes: a model of two is its own model of the second, and several without an "
            "order have no model of two (ordered=True gives them one)."
        )
    levels = model.ordered_classes_.tolist()
    if label not in levels[1:]:
        raise ValueError(f"at_least takes one of {levels[1:]}, the classes above the lowest; got {label!r}.")
    k = levels.index(label)
    return _of_two(model, -cut_points(model)[..., k - 1], ">=", levels[k])


def one_vs_rest(model, label):
    """See ``inspection.one_vs_rest``, of a classifier of ordered classes."""
    levels = model.ordered_classes_.tolist()
    if label not in levels:
        raise ValueError(f"one_vs_rest takes one of {levels}; got {label!r}.")
    k, cuts = levels.index(label), cut_points(model)
    label = levels[k]  # which a number like True or 1.0 is equal to
    if k == len(levels) - 1:
        return _of_two(model, -cuts[..., -1], "=", label)
    one, ends = _of_two(model, model.intercept_draws_, "=", label), -cuts[..., [max(0, k - 1), k]]
    coef = np.broadcast_to(model.coef_draws_[:, :, None], (*ends.shape, model.n_features_in_))
    place, one._favours = "between" if k else "lowest", "higher classes"
    one._predictors = {"coef": coef, "intercept": ends, "place": place, "classes": ()}
    return one


def _of_two(model, intercept_draws, relation, label):
    """A copy of a model of ordered classes that has two, whether y has this relation to a class."""
    two = copy(model)
    two.intercept_draws_ = intercept_draws
    two.intercept_ = np.atleast_1d(intercept_draws.mean())
    two.classes_, two.ordered = np.array([False, True]), False
    two.moments_ = None  # those of the intercept are another's
    two._outcomes = f"y {_OPPOSITES[relation]} {printable(label)}", f"y {relation} {printable(label)}"
    two._favours = two._outcomes[1]
    two._saved_run, two._derived = None, f"of y {relation} {plain(label)!r} within a model of ordered classes"
    del two.ordered_classes_, two._own_draws
    return two


def one_above_other(model):
    """The models of y >= a class and of y >= the next, where a model is that of a class between others; or itself."""
    own = getattr(model, "_predictors", {})
    if own.get("place") != "between":
        return [model]
    models = [copy(model), copy(model)]
    for k, one in enumerate(models):
        one.intercept_draws_ = own["intercept"][..., k]
        del one._predictors
    return models


def cut_names(model):
    """The cut points by the classes below and above them."""
    return [f"{low}|{high}" for low, high in pairwise(model.ordered_classes_.tolist())]


def cut_rows(model):
    """The draws of the cut points by their names in rows of summary(), but of a first one that is held at 0; {} for two
    classes."""
    if not is_ordered(model):
        return {}
    held = 0 if model._fit_facts["fit_intercept"] else 1
    names = [f"(cut {name})" for name in cut_names(model)[held:]]
    return dict(zip(names, np.moveaxis(cut_points(model)[..., held:], 2, 0), strict=True))
