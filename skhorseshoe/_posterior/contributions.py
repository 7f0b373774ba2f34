"""Contributions of the values of single rows to their scores, relative to a reference, by term or by column."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from .._utils.arrays import dense
from .._utils.errstate import guarded
from .._utils.memory import check_matrices
from .._utils.names import names_of, printable
from .estimates import means
from .grouped_prediction import on_average, population, refuse_offset
from .input_rows import InputRows, classifier_rows, row_like
from .mixin import level_of
from .pipeline import named, unwrap
from .summary import in_lines, summary_frame
from .table import Summary
from .term_contributions import Differences, described, of_terms

if TYPE_CHECKING:
    from .._types import DataFrame, Mapping, Model, RowsLike

_ROUNDING = 1e-12  # largest mean, in standard deviations, that steps may leave by rounding instead of 0
_BITS = 2.0**-46  # rounding error of a mean over rows, relative to the value


@guarded
def contributions(
    model: Model,
    X: RowsLike,
    reference: RowsLike = None,
    *,
    level: float | None = None,
    terms: Mapping[str, Any] | Literal["auto"] | None = "auto",
    top: int | None = 10,
) -> DataFrame:
    """Why these rows have the probabilities that they have: what each value adds to the score, beside a reference.

    The score is x beta + intercept; under a draw the probability is the normal distribution function of it. A term
    adds sum_l (x_l - reference_l) beta_l over its columns. Of a model with groups it is all averaged over these:
    coefficients are divided by sqrt(1 + s^2), draw by draw, and probabilities are those of a new group.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        A few rows, as ``model.predict_proba`` takes them.
    reference : array-like or Series of shape (n_features,), dict, table of one row, or None, default=None
        The row to compare with, such as ``X_train.median()``. None is the average row: the means of the classifier's
        columns in the fit, by their weights.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    terms : dict, "auto" or None, default="auto"
        What has a line: the terms of ``skhorseshoe.terms.find``, one for each input column of a Pipeline; or a dict of
        your own, as `skhorseshoe.terms.summary` takes it. None is each column of the classifier, as it has them.
    top : int or None, default=10
        Number of terms that have a line of their own, the largest of the row; the others have one together. None is
        all.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by row and term, the largest mean first, then "(k others)", "(total)", which is the difference of the
        scores, and "(probability)" of the row. Columns: value (as in X), reference (the same, where one is given),
        mean, sd and the ends of the equal-tailed interval. With ``terms=None`` the index is row and feature, in their
        order, with "(total)"; value and reference are as the classifier has them.

    Raises
    ------
    TypeError
        If ``terms`` is none of those above.
    ValueError
        If X or ``reference`` do not have the columns of the model, terms overlap or have unknown columns, a step has no
        names for its columns, or ``top`` is below 1; other errors are those of `marginal_effects`.
    MemoryError
        If the result does not fit in memory; before anything is computed.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> from skhorseshoe.inspection import contributions
    >>> X, y, coef = make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> parts = contributions(clf, X[:1], top=3).loc[0, "mean"]
    >>> parts.index.tolist()
    ['x1', 'x4', 'x5', '(27 others)', '(total)', '(probability)']
    >>> bool(abs(parts["(probability)"] - clf.predict_proba(X[:1])[0, 1]) < 1e-9)
    True
    """
    steps, classifier = unwrap(model)
    refuse_offset(classifier, "contributions")
    classifier = population(classifier)
    level = level_of(classifier, level)
    if top is not None and (isinstance(top, bool) or not isinstance(top, Integral) or top < 1):
        raise ValueError(f"top must be a whole number from 1 on, or None for all; got {top!r}.")
    raw = InputRows(X)
    check_matrices(8, (raw.shape[0], classifier.n_features_in_), "contributions(X)", "Ask for fewer rows.")
    differences = _differences(classifier, steps, raw, None if reference is None else row_like(raw, reference))
    classifier = named(steps, classifier)
    if terms is None:
        return _of_columns(classifier, raw, differences, level)
    return of_terms(classifier, steps, raw, differences, level, terms, top)


def _differences(model, steps, X, reference):
    """Rows relative to the reference, or to the mean of the fit. Differences by rounding are exactly 0."""
    rows = dense(classifier_rows(model, steps, X.block(slice(None))))
    origin = model._column_means
    if reference is not None:
        origin = dense(classifier_rows(model, steps, reference.block(slice(None))))[0]
    least = _ROUNDING * model._column_sd
    origin = np.where(np.abs(origin) > np.maximum(least, _ROUNDING * np.abs(rows).max(axis=0)), origin, 0.0)
    difference = rows - origin
    difference[np.abs(difference) <= least + _BITS * np.abs(origin)] = 0.0
    return Differences(rows, origin, difference, reference)


def _of_columns(model, X, differences, level):
    """The table of the classifier's columns, in their order."""
    rows, origin, difference, reference = differences
    coef = summary_frame(model, level, None).iloc[: len(origin), :4]  # mean, sd, and the ends of the interval
    low, high = (difference * end for end in coef.iloc[:, 2:].to_numpy().T)
    mean, sd = difference * coef["mean"].to_numpy(), np.abs(difference) * coef["sd"].to_numpy()
    total = described(model, difference, level)
    columns = {
        "value": (rows, np.full(len(rows), np.nan)),
        "reference": (np.tile(origin, (len(rows), 1)), np.full(len(rows), np.nan)),
        "mean": (mean, mean.sum(axis=1)),
        "sd": (sd, total[:, 0]),
        coef.columns[2]: (np.minimum(low, high), total[:, 1]),
        coef.columns[3]: (np.maximum(low, high), total[:, 2]),
    }
    features = pd.Index([*names_of(model), "(total)"], tupleize_cols=False)
    index = pd.MultiIndex.from_product([X.labels, features], names=["row", "feature"])
    frame = Summary({name: np.column_stack(values).ravel() for name, values in columns.items()}, index=index)
    weights, intercept = means(model)
    whose = "the average row" if reference is None else "the reference"
    frame.attrs["header"] = in_lines(
        f"Score of P(y = {printable(model.classes_[1])}): {whose} has {origin @ weights + intercept:.3g}, and each "
        f"column moves a row away from that by its contribution{on_average(model)}"
    )
    return frame
