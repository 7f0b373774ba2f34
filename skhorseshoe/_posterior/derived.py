"""Fitted models of two classes that are made of a fitted model, without another fit."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.pipeline import make_pipeline

from .._utils.names import plain, printable
from .claim_errors import check_share
from .classes import cut_points, has_classes, is_ordered, is_several, needs_two
from .grouped_prediction import is_grouped
from .pipeline import unwrap
from .several import of_class, place_of_class, with_coefficients

if TYPE_CHECKING:
    from .._types import Model

_OPPOSITES = {"=": "!=", ">=": "<"}


def at_least(model: Model, label: Any) -> Model:
    """The model of y >= a class, of a fit with ordered classes: a fitted model of two classes.

    P(y >= label) = Phi(x beta - c), with c the cut point below the class. All that speaks of two classes, such as
    ``marginal_effects``, ``contributions`` and displays of probabilities, takes this model; its labels are False and
    True, y >= label. It has the draws of the fit, which is not repeated.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted with ``ordered``.
    label : scalar
        One of its ``ordered_classes_`` but the lowest.

    Returns
    -------
    model : HorseshoeProbitClassifier or Pipeline
        A Pipeline with the steps before the classifier, if there are any.

    Raises
    ------
    ValueError
        If the model has two classes, or label is not a class above the lowest.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import at_least
    >>> X = np.linspace(-2, 2, 60)[:, None]
    >>> y = np.digitize(X[:, 0] + np.sin(40 * X[:, 0]), [-1, 0.5])
    >>> model = HorseshoeProbitClassifier(ordered=True, random_state=0).fit(X, y)
    >>> bool(np.allclose(at_least(model, 2).predict_proba(X)[:, 1], model.predict_proba(X)[:, 2]))
    True
    """
    return _behind_its_steps(model, _at_least, label)


def _at_least(model, label):
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


def one_vs_rest(model: Model, label: Any) -> Model:
    """The model of y == a class, of a fit with more than two classes: a fitted model of two classes.

    P(y == label) is that of ``predict_proba``, and under each draw that of ``predict_proba_samples``. All that speaks
    of the probability of the second of two classes takes this model, such as `marginal_effects`, `calibration`,
    `net_benefit`, `predictive_check` and displays of probabilities; its labels are False and True, y == label. It has
    the draws of the fit, which is not repeated: it is one model of all classes, not one for each.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted on more than two classes, with or without ``ordered``.
    label : scalar
        One of its ``classes_``.

    Returns
    -------
    model : HorseshoeProbitClassifier or Pipeline
        A Pipeline with the steps before the classifier, if there are any. Its coefficients are those of the class
        beside the mean of all, as of ``summary(of=label)``, and of ordered classes those of the fit.

    Raises
    ------
    ValueError
        If the model has two classes, or label is not one of its classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import marginal_effects, one_vs_rest
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = HorseshoeProbitClassifier(standardize=True, random_state=0).fit(X, y)
    >>> effects = [marginal_effects(one_vs_rest(model, k), X, change="sd", max_draws=200) for k in (0, 1, 2)]
    >>> means = [effect.loc["petal width (cm)", "mean"] for effect in effects]
    >>> bool(means[0] < 0 < means[2]), bool(abs(sum(means)) < 1e-12)  # what one gains, others lose
    (True, True)
    """
    return _behind_its_steps(model, _one_vs_rest, label)


def _one_vs_rest(model, label):
    if not has_classes(model):
        raise ValueError("one_vs_rest is for more than two classes: a model of two is its own model of the second.")
    if not is_ordered(model):
        one, k = of_class(model, label, "one_vs_rest"), place_of_class(model, label, "one_vs_rest")
        own = {"coef": model.coef_draws_, "intercept": model.intercept_draws_}
        one._predictors = {**own, "place": k, "classes": model.classes_}
        return _whether(one, "=", model.classes_.tolist()[k], "several")
    levels, cuts = model.ordered_classes_.tolist(), cut_points(model)
    if label not in levels:
        raise ValueError(f"one_vs_rest takes one of {levels}; got {label!r}.")
    k = levels.index(label)  # the label of the fit is levels[k], which a number like True or 1.0 is equal to
    if k == len(levels) - 1:
        return _of_two(model, -cuts[..., -1], "=", levels[k])
    one, ends = _of_two(model, model.intercept_draws_, "=", levels[k]), -cuts[..., [max(0, k - 1), k]]
    coef = np.broadcast_to(model.coef_draws_[:, :, None], (*ends.shape, model.n_features_in_))
    place, one._favours = "between" if k else "lowest", "higher classes"
    one._predictors = {"coef": coef, "intercept": ends, "place": place, "classes": ()}
    return one


def _of_two(model, intercept_draws, relation, label):
    """A copy of a model of ordered classes that has two, whether y has this relation to a class."""
    two = _whether(copy(model), relation, label, "ordered")
    two.intercept_draws_ = intercept_draws
    two.intercept_ = np.atleast_1d(intercept_draws.mean())
    two.moments_ = two._saved_run = None  # those of the intercept are another's
    two.ordered, two._favours = False, two._outcomes[1]
    del two.ordered_classes_, two._own_draws
    return two


def _whether(one, relation, label, kind):
    """The copy of a model, with two classes: whether y has this relation to a label of the fit."""
    one.classes_ = np.array([False, True])
    one._outcomes = f"y {_OPPOSITES[relation]} {printable(label)}", f"y {relation} {printable(label)}"
    one._derived = f"of y {relation} {plain(label)!r} within a model of {kind} classes"
    return one


def with_prevalence(model: Model, share: float) -> Model:
    """The model of a population with another share of events than the fit: a fitted model of two classes.

    For rows that were drawn by their label, as in a case-control study or where rows without an event were thrown away.
    By Bayes' theorem the odds of a row in the population are those in the sample times share / (1 - share) * (1 - r) /
    r, with r the share in the fit, by its weights, ``class_weight`` too. This is done to the probability of each draw.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted to two classes, without groups.
    share : float
        The share of ``classes_[1]`` in the population, in (0, 1). Where the other rows were thinned out at random, that
        in the rows before.

    Returns
    -------
    model : HorseshoeProbitClassifier or Pipeline
        With the draws of the fit, which is not repeated, and the steps before the classifier, if there are any. All
        that speaks of probabilities is of the population: ``predict``, ``predict_proba``, its intervals and samples,
        effects, displays. Labels that it is judged by have to be of rows of the population, with none thrown away.
        Coefficients, and what is selected by them, are those of the fit. ``inspection.loo`` is refused, and a ``fit``
        begins anew, without the correction.

    Raises
    ------
    ValueError
        If the model was fitted with groups or more than two classes, or share is not in (0, 1).

    Notes
    -----
    It is not the intercept that is corrected: a shift of that changes the odds of rows by different factors.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import with_prevalence
    >>> rng = np.random.default_rng(0)
    >>> y = rng.random(400) < 0.5  # half of the sample, one in twenty of the population
    >>> model = HorseshoeProbitClassifier(random_state=0).fit(rng.standard_normal((400, 2)) + y[:, None], y)
    >>> between = [[0.5, 0.5]]  # of both classes alike, so as probable as the class is frequent
    >>> bool(abs(with_prevalence(model, 0.05).predict_proba(between)[0, 1] - 0.05) < 0.02)
    True
    """
    return _behind_its_steps(model, _with_prevalence, share)


def _with_prevalence(model, share):
    if has_classes(model):
        raise needs_two(model, "with_prevalence")
    if is_grouped(model):
        raise ValueError(
            "with_prevalence takes no model that was fitted with groups: rows that are drawn by their label hide how "
            "groups differ. Draw whole groups, or fit without groups one row of each."
        )
    if hasattr(model, "_derived") and not hasattr(model, "_odds_factor"):
        raise ValueError(f"This is the model {model._derived}: with_prevalence takes one that was fitted.")
    share, in_fit, label = check_share("share", share), model._fitted_rows["share"], model.classes_.tolist()[1]
    corrected = copy(model)
    corrected._odds_factor = float(share / (1 - share) * (1 - in_fit) / in_fit)
    corrected._derived = f"of a population in which a share of {share:g} is {label!r}, {in_fit:.3g} in the fit"
    corrected._saved_run = None
    return corrected


def against(model: Model, label: Any, other: Any) -> Model:
    """The model of one class against another, of a fit with several classes: a fitted model of two.

    Its probability of ``label`` is that of a row for which only these two are possible, Phi((eta_label - eta_other) /
    sqrt 2): the utility of the one is above that of the other. That is not the share of ``label`` among rows of both
    classes, from which other classes have taken theirs. All that speaks of two classes, such as ``summary``,
    ``marginal_effects``, ``contributions`` and displays, takes this model, but for what sets its probability beside
    labels, as `calibration` does. It has the draws of the fit, which is not repeated.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted on more than two classes, without ``ordered``.
    label, other : scalar
        Two of its ``classes_``; positive coefficients favour ``label``.

    Returns
    -------
    model : HorseshoeProbitClassifier or Pipeline
        Its labels are False and True, ``other`` and ``label``; a Pipeline with the steps before the classifier, if
        there are any.

    Raises
    ------
    ValueError
        If the model has two classes, or classes in order, or label and other are not two of its classes.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import against
    >>> X, y = load_iris(return_X_y=True)
    >>> model = HorseshoeProbitClassifier(standardize=True, random_state=0).fit(X, y)
    >>> against(model, 2, 1).predict(X[[60, 120]]).tolist()  # whether it is class 2
    [False, True]
    """
    return _behind_its_steps(model, _against, label, other)


def _against(model, label, other):
    if not is_several(model):
        cure = "at_least is for classes in order" if len(model.classes_) > 2 else "this model has two"
        raise ValueError(f"against is for more than two classes without an order: {cure}.")
    k, other_k = (place_of_class(model, each, "against") for each in (label, other))
    if k == other_k:
        raise ValueError(f"against takes two different classes; got {label!r} twice.")
    if hasattr(model, "_has_offset"):
        raise ValueError("against takes no model that was fitted with an offset: ask inspection.one_vs_rest.")
    coef, intercept = model.coef_draws_, model.intercept_draws_
    # Utilities of variance 1 have a difference of variance 2.
    two = with_coefficients(
        model,
        (coef[:, :, k] - coef[:, :, other_k]) / np.sqrt(2).astype(coef.dtype),
        (intercept[..., k] - intercept[..., other_k]) / np.sqrt(2),
    )
    two.classes_ = np.array([False, True])  # scikit-learn takes classes_ to be sorted, as (other, label) may not be
    two._outcomes = tuple(f"y = {printable(model.classes_[place])}" for place in (other_k, k))
    two._favours = two._outcomes[1]
    two._derived = f"of {label!r} against {other!r} within a model of several classes"
    two._others_excluded = True
    return two


def _behind_its_steps(model, make, *asked):
    """What ``make`` makes of the classifier in a model, behind the steps before that."""
    steps, classifier = unwrap(model)
    made = make(classifier, *asked)
    return made if steps is None else make_pipeline(steps, made)
