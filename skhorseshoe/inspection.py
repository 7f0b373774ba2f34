"""What a model says of its columns and rows, asked of a whole Pipeline or search in the units and names of its data.

A ``model`` is a fitted ``HorseshoeProbitClassifier``, a Pipeline that ends with one, or a search such as GridSearchCV
whose best estimator is one of these; each may be in a FrozenEstimator. X are rows as the model itself takes them,
before any scaler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ._data.input_table import is_dask
from ._posterior import predict
from ._posterior.claim_errors import EFFECT
from ._posterior.comparisons import number_needed_to_treat
from ._posterior.contributions import contributions
from ._posterior.decisions import calibration, net_benefit
from ._posterior.derived import against, at_least, one_vs_rest, with_prevalence
from ._posterior.input_rows import input_names
from ._posterior.loo import LeaveOneOut, leave_one_out
from ._posterior.marginal_effects import marginal_effects
from ._posterior.pipeline import named, named_classifier, prepared, unwrap
from ._posterior.predictive_check import predictive_check
from ._posterior.sensitivity import sensitivity
from ._posterior.terms import asked_terms
from ._utils.errstate import guarded
from .selection import HorseshoeSelector

if TYPE_CHECKING:
    from ._types import DataFrame, Floats, Labels, Mapping, Missing, Model, NewGroups, Offsets, RowsLike, Rule, Weights

__all__ = [
    "LeaveOneOut",
    "against",
    "at_least",
    "calibration",
    "contributions",
    "loo",
    "marginal_effects",
    "net_benefit",
    "number_needed_to_treat",
    "one_vs_rest",
    "predict_interval",
    "predict_proba_samples",
    "predictive_check",
    "select",
    "sensitivity",
    "summary",
    "summary_of_sets",
    "with_prevalence",
]


@guarded
def loo(
    model: Model,
    X: RowsLike,
    y: Labels,
    sample_weight: Weights = None,
    *,
    groups: Labels = None,
    offset: Offsets = None,
    max_draws: int | None = None,
) -> LeaveOneOut:
    """PSIS-LOO: the log score of new rows, estimated from the rows of the fit, without a second fit.

    Each row is left out in turn by giving the draws other weights, the largest of which are smoothed. Rows are taken in
    blocks, so that beside X there is memory of 24 bytes a row and a few MiB.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Steps before the classifier are taken as they are: what they have learnt from a row stays in them.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        The rows that the model was fitted on, in any order, in memory or on disk.
    y : array-like of shape (n_samples,)
        Their labels, and below their weights, groups and offsets, in the order of X.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the fit, times the class weights if there was a ``class_weight``. A row of weight w is left out
        with all its weight, and predicted as w rows: its term is log E[p^w].
    groups : array-like of shape (n_samples,) or None, default=None
        The groups of the fit, if it had any: each is left out with all its rows, and predicted as a new group, with its
        effect, and up to two slopes, integrated out. ``elpd_i`` and ``pareto_k`` have an entry for each of ``groups_``.
    offset : array-like of shape (n_samples,) or None, default=None
        The offsets of the fit, if it had any.
    max_draws : int or None, default=None
        Maximum number of draws to use, evenly spaced, equally many from each chain; at least 100, which of 3 chains
        are 102. Time is proportional to rows x draws, and 1000 are enough for most purposes; None uses all.

    Returns
    -------
    loo : LeaveOneOut
        ``elpd_loo``, its standard error ``se``, ``p_loo``, and for each row ``elpd_i`` and ``pareto_k``.

    Raises
    ------
    TypeError
        If X is a Dask collection, or the model is none of those above.
    ValueError
        If the model was fitted with groups, and ``groups`` are not given or not those, or with several factors or
        more than two slopes; if there are fewer than 100 draws, the rows are not those of the fit, with the labels,
        weights, offsets and groups that they had there (by their number and by means of the columns, weighted by
        these), y holds a label that is not in ``classes_``, lengths differ, or a weight is negative; other errors are
        those of `marginal_effects`.

    Warns
    -----
    UserWarning
        If a row has a Pareto k above ``good_k``, so that its term is not to be trusted.

    Notes
    -----
    The method is that of Vehtari et al. (2024), as in ``arviz.loo``, with three departures. A row that gives all draws
    weights within 1 % of one another, since all are nearly sure of it, has a k of 0: leaving it out changes nothing. k
    is infinite, not nan, where it cannot be computed. And the tail has the same number of draws for all rows, as in the
    R package loo, where ``arviz.loo`` leaves out draws that tie with the first one outside it.

    References
    ----------
    Vehtari, A., Simpson, D., Gelman, A., Yao, Y. & Gabry, J. (2024). Pareto smoothed importance sampling. Journal of
    Machine Learning Research 25(72), 1-58.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import loo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(300) > 0
    >>> clf = HorseshoeProbitClassifier(random_state=0)
    >>> every = loo(clf.fit(X, y), X, y)
    >>> fewer = loo(clf.fit(X[:, 1:], y), X[:, 1:], y)  # without the first column
    >>> difference = every.elpd_i - fewer.elpd_i
    >>> bool(difference.sum() > 4 * np.sqrt(300) * difference.std())  # of its standard error
    True
    """
    steps, classifier = unwrap(model)
    if is_dask(X, y, sample_weight):
        raise TypeError("loo takes rows of this process, not a Dask collection: give it rows that are computed.")
    rows, positive, weight = predict.labelled_rows(classifier, prepared(steps, X), y, sample_weight, offset, groups)
    return leave_one_out(classifier, rows, positive, weight, max_draws)


def summary(model: Model, level: float | None = None, sort_by: str | None = None, *, of: Any = None) -> DataFrame:
    """``HorseshoeProbitClassifier.summary`` of the classifier in the model, with the names of the Pipeline.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    level, sort_by, of : see ``HorseshoeProbitClassifier.summary``
        Level of the intervals, the column to sort by, and of several classes the one whose coefficients to show.

    Returns
    -------
    frame : pandas.DataFrame
        Coefficients are those of the columns that the classifier was given, behind the steps before it.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import summary
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = make_pipeline(StandardScaler(), HorseshoeProbitClassifier(random_state=0)).fit(X.iloc[:, :4], y)
    >>> summary(model).index[:2].tolist()
    ['mean radius', 'mean texture']
    """
    return named_classifier(model).summary(level, sort_by, of=of)


def summary_of_sets(
    model: Model, sets: Mapping[str, Any], level: float | None = None, *, missing: Missing = "raise"
) -> DataFrame:
    """``HorseshoeProbitClassifier.summary_of_sets`` of the classifier in the model, with the names of the Pipeline.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    sets, level, missing : see ``HorseshoeProbitClassifier.summary_of_sets``
        The sets, of columns behind the steps before the classifier and with weights in their units, as
        ``skhorseshoe.sets.correlated_sets(X, model=model)`` finds them (without ``model`` they are in the units of X,
        and nothing here can tell); the level of the intervals; and what becomes of unknown names.

    Returns
    -------
    frame : pandas.DataFrame
    """
    return named_classifier(model).summary_of_sets(sets, level, missing=missing)


def predict_interval(
    model: Model,
    X: RowsLike,
    level: float | None = 0.9,
    groups: Labels = None,
    offset: Offsets = None,
    new_groups: NewGroups = None,
    *,
    of_one: bool = False,
) -> Floats:
    """``HorseshoeProbitClassifier.predict_interval`` of rows as the model takes them.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X, level, groups, offset, new_groups, of_one : see ``HorseshoeProbitClassifier.predict_interval``
        The rows, as ``model.predict_proba`` takes them, the level, and what goes with the rows.

    Returns
    -------
    interval : ndarray of shape (n_samples, 2), or of more than two classes (n_samples, n_classes, 2), float64
    """
    steps, classifier = unwrap(model)
    rows = prepared(steps, X, groups=groups, offset=offset)
    return classifier.predict_interval(rows, level, groups, offset, new_groups, of_one=of_one)


def predict_proba_samples(
    model: Model,
    X: RowsLike,
    max_draws: int | None = None,
    groups: Labels = None,
    offset: Offsets = None,
    new_groups: NewGroups = None,
) -> Floats:
    """``HorseshoeProbitClassifier.predict_proba_samples`` of rows as the model takes them.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X, max_draws, groups, offset, new_groups : see ``HorseshoeProbitClassifier.predict_proba_samples``
        The rows, as ``model.predict_proba`` takes them, the most draws, and what goes with the rows.

    Returns
    -------
    samples : ndarray of shape (n_samples, n_draws_used), or of more than two classes with an axis for these, float64
    """
    steps, classifier = unwrap(model)
    rows = prepared(steps, X, groups=groups, offset=offset)
    return classifier.predict_proba_samples(rows, max_draws, groups, offset, new_groups)


@guarded
def select(
    model: Model,
    X: RowsLike,
    y: Labels = None,
    *,
    rule: Rule = "dss",
    level: float | None = None,
    q: float = 0.1,
    effect: float | Mapping[str, float] = EFFECT,
    sample_weight: Weights = None,
    groups: Labels = None,
    offset: Offsets = None,
    cv: Any = None,
    min_features: int = 0,
    terms: Mapping[str, Any] | Literal["auto"] | None = None,
) -> HorseshoeSelector:
    """A `HorseshoeSelector <skhorseshoe.HorseshoeSelector>` that reads the posterior of the classifier in the model.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        The rows that the model was fitted on.
    y, rule, level, q, effect, sample_weight, groups, offset, cv, min_features : see ``HorseshoeSelector``
        The labels, for a classifier with a ``class_weight`` or a ``cv``; the rule; its level, share of false columns
        and least effect; the weights of the fit, and with a ``cv`` its groups; its offsets; the folds, in which the
        steps before the classifier stay as they are; the least number of columns.
    terms : dict, "auto" or None, default=None
        As for ``HorseshoeSelector``, with the terms of the whole Pipeline: "auto" has one for each of its input
        columns, and a dict may name input columns.

    Returns
    -------
    selector : HorseshoeSelector
        Fitted, with the names of the Pipeline: ``selector.get_feature_names_out()`` are those of the columns to keep.
        Its ``transform`` takes rows behind the steps before the classifier.
    """
    steps, model = unwrap(model)
    known = named(steps, model)
    if terms is not None and steps is not None:
        terms = {term.name: term.columns.tolist() for term in asked_terms(terms, steps, known, input_names(X))}
    selector = HorseshoeSelector(
        model, prefit=True, rule=rule, level=level, q=q, effect=effect, cv=cv, min_features=min_features, terms=terms
    )
    by_row = {"y": y, "sample_weight": sample_weight, "groups": groups, "offset": offset}
    selector.fit(prepared(steps, X, **by_row), **by_row)
    if hasattr(known, "feature_names_in_"):
        selector.feature_names_in_ = known.feature_names_in_
    return selector
