"""Probabilities of models of more than two classes, in an order or without one.

A linear predictor of such a model is eta (n, m) of n rows under m draws, with own (m, K - 2), the cut points less the
first; of classes without an order, whose utilities they are, eta (n, m K), those of the first draw first.
"""

from copy import copy
from functools import partial
from itertools import pairwise

import numpy as np

from .._mcmc.class_contrasts import information_of_rows
from .._utils.names import Outcome, printable
from .grouped_prediction import evenly


def is_ordered(model):
    """Whether a fitted model has more than two classes, in an order."""
    return hasattr(model, "ordered_classes_")


def is_several(model):
    """Whether a fitted model has more than two classes without an order."""
    return len(model.classes_) > 2 and not is_ordered(model)


def has_sizes(model):
    """Whether a column of a fitted model has several coefficients, and so a size; not a copy of one class."""
    return model.coef_draws_.ndim > 3


def has_classes(model):
    """Whether a fitted model has more than two classes."""
    return len(model.classes_) > 2


def average_probabilities(model, eta, ops, own):
    """Averages over draws of the probabilities of the classes, in the order of ``classes_``; (n, K)."""
    likelihood = model._likelihood
    if is_ordered(model):
        return in_order_of_classes(model, average_of_ordered(model, eta, ops, own))
    if has_classes(model):
        return ops.average_class_probabilities(likelihood.of_utilities(eta), likelihood)
    return likelihood.averages(eta, ops) if likelihood.n_predictors > 1 else ops.average_probabilities(eta, likelihood)


def each_probability(model, eta, ops, own):
    """The probabilities of the classes under each draw, in the order of ``classes_``; (n, m, K)."""
    if is_ordered(model):
        return in_order_of_classes(model, model._likelihood.probabilities(eta, own))
    return np.moveaxis(ops.class_probabilities(model._likelihood.of_utilities(eta), model._likelihood), 1, 2)


def ends_of_probabilities(model, eta, ops, own, levels):
    """Quantiles over draws of the probability of the second class, (n, 2), or of each class of more in the order of
    ``classes_``, (n, 2 K)."""
    likelihood = model._likelihood
    if has_classes(model):
        ends = np.quantile(each_probability(model, eta, ops, own), levels, axis=1)  # (2, n, K)
        return np.moveaxis(ends, 0, 2).reshape(len(eta), -1)
    if likelihood.n_predictors > 1:  # no increasing function of one
        return ops.quantiles(likelihood.probability(eta, ops), levels)
    return ops.quantiles(eta, levels, partial(likelihood.probability, ops=ops))


def log_density_of_class(model, eta, place, own):
    """The logarithm of the probability of the class of each row (n,), by its place; (n, m)."""
    if is_ordered(model):
        at = np.broadcast_to(place[:, None], eta.shape)
        return model._likelihood.log_density_of_class(eta, at, own)
    eta = model._likelihood.of_utilities(eta).reshape(len(eta), -1, model._likelihood.n_predictors)
    return model._likelihood.log_density_of_class(eta, np.broadcast_to(place[:, None], eta.shape[:2]))


def information_of(model, eta, max_draws):
    """The Fisher information of rows about their linear predictors (n, m), averaged over at most so many draws (n,); of
    classes without an order about their d contrasts, (n, d, d)."""
    likelihood = model._likelihood_of_fit
    if likelihood.n_classes == 2:
        return likelihood.information(eta).mean(axis=1)
    if is_ordered(model):
        return likelihood.fisher_information(eta, own_draws(model, max_draws))[0].mean(axis=1)
    contrasts = likelihood.of_utilities(eta).reshape(len(eta), -1, likelihood.n_predictors)
    return information_of_rows(likelihood, contrasts)


def refuse_classes(model, what, one_score=False, with_y=False):
    """Raise a ValueError if a model of more than two classes is asked for what is of two. one_score, with_y : whether
    the answer needs ``needs_one_score``, or has labels of rows, which a model of some rows has not."""
    if is_ordered(model):
        levels = model.ordered_classes_.tolist()
        others = "" if one_score else f", or of y == a class, inspection.one_vs_rest(model, {levels[1]!r})"
        raise ValueError(
            f"{what} is of two classes, and this model has {len(levels)} in order. Ask it of the model of y >= a class "
            f"above the lowest, inspection.at_least(model, {levels[-1]!r}){others}."
        )
    refuse_several(model, what, one_score, with_y)


def needs_two(model, what):
    """The ValueError that ``what`` needs a fit to two classes, since no model made of this one can stand in for it."""
    cure = "y >= a class" if is_ordered(model) else "y == a class"
    return ValueError(f"{what} is not for a fit to {len(model.classes_)} classes: fit {cure}, which has two.")


def refuse_several(model, what, one_score=False, with_y=False):
    """Raise a ValueError if a model of several classes is asked for what is of two; as ``refuse_classes``."""
    if has_sizes(model):
        first, second, *_ = model.classes_.tolist()
        rest = [] if one_score else [f"one and the rest, inspection.one_vs_rest(model, {second!r})"]
        pair = [] if with_y else [f"one against another, inspection.against(model, {second!r}, {first!r})"]
        raise ValueError(
            f"{what} is of two classes, and this model has {len(model.classes_)}. Ask it of the model of "
            f"{', or of '.join(rest + pair)}."
        )


def needs_one_score(model, what):
    """Raise a ValueError if the probability of two classes is no increasing function of one score."""
    if hasattr(model, "_predictors"):
        made = "at_least" if isinstance(model._predictors["place"], str) else "against"
        raise ValueError(
            f"{what} takes no model {model._derived}, whose probability is no function of one score. Ask it of one "
            f"that inspection.{made} makes."
        )


def event_of(model):
    """What the probability of the second of two classes is of, in words."""
    return model._outcomes[1] if hasattr(model, "_outcomes") else f"y = {printable(model.classes_[1])}"


def shown_classes(model):
    """The labels of the classes to show: ``classes_``, or what False and True stand for in a model made of another."""
    if not hasattr(model, "_outcomes"):
        return model.classes_
    return np.array([*map(Outcome, model._outcomes)], dtype=object)


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
