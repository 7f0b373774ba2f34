"""The fitted model within a Pipeline, a search or a FrozenEstimator; rows and names behind the steps before it."""

from contextlib import suppress
from copy import copy

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from .._data.input_table import warn_if_reordered
from .._utils.arrays import refuse_masked
from .._utils.names import names_of
from .grouped_prediction import name_slopes
from .mixin import PosteriorMixin


def unfrozen(estimator):
    """The estimator within a FrozenEstimator; anything else unchanged."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def unwrap(estimator):
    """The steps before the classifier, or None, and the fitted classifier."""
    *steps, classifier = flat_steps(estimator) or [estimator]
    if not isinstance(classifier, PosteriorMixin):
        if hasattr(classifier, "refit"):  # a search that has no best estimator
            check_is_fitted(classifier)
        inside = "" if classifier is unfrozen(estimator) else f", which ends with {type(classifier).__name__}"
        raise TypeError(
            "A fitted HorseshoeProbitClassifier is wanted, or a Pipeline or a search that ends with one; got "
            f"{type(estimator).__name__}{inside}.{where_it_is(classifier)}"
        )
    check_is_fitted(classifier)
    return joined(steps), classifier


def flat_steps(estimator):
    """The steps of a Pipeline, of Pipelines and frozen estimators within it, and of the best estimator of a search; a
    list of any other estimator."""
    inside = unfrozen(estimator)
    if hasattr(inside, "best_estimator_"):
        return flat_steps(inside.best_estimator_)
    if not hasattr(inside, "steps"):
        return [inside]
    return [step for _, inner in inside.steps for step in flat_steps(inner)]


def joined(steps):
    """A Pipeline of these steps, or None of none, without samplers, as of imbalanced-learn, which act only in fit."""
    return make_pipeline(*steps) if (steps := [step for step in steps if hasattr(step, "transform")]) else None


def prepared(steps, X, **by_row):
    """X behind the steps. Masked values are refused, which steps would take for data. by_row : what goes with the rows,
    by name, of which few steps hand on the index that tells whether its order is that of X."""
    refuse_masked(X, "X")
    made = X if steps is None else steps.transform(X)
    if not hasattr(made, "index"):
        warn_if_reordered(X, **by_row)
    return made


def where_it_is(estimator):
    """A hint at what a search lacks, or at the attribute of a wrapper that holds the fitted estimator."""
    if hasattr(estimator, "cv_results_") and not hasattr(estimator, "best_estimator_"):
        return " It has kept no fitted estimator: set refit=True and fit it again."
    for name in ("estimator_", "calibrated_classifiers_[i].estimator", "estimators_[i]"):
        if hasattr(estimator, name.partition("[")[0]):
            return f" What it has fitted is its {name}."
    return ""


def named_classifier(estimator):
    """The fitted classifier, or a copy of it with the names of the steps before it."""
    steps, classifier = unwrap(estimator)
    return named(steps, classifier)


def named(steps, classifier):
    """The classifier, or a copy of it with the names of the steps before it."""
    if steps is None or hasattr(classifier, "feature_names_in_") or hasattr(classifier, "_column_labels"):
        return classifier
    named, names = copy(classifier), names_of(classifier)
    with suppress(AttributeError, ValueError):  # the steps have no names to give
        names = steps.get_feature_names_out()
    named.feature_names_in_ = np.asarray(names, dtype=object)
    name_slopes(named, names)
    return named
