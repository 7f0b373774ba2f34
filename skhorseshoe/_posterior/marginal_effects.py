"""Average marginal effects, a function of ``skhorseshoe.inspection``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from .._utils.errstate import guarded
from . import effects
from .grouped_prediction import population
from .mixin import level_of
from .pipeline import unwrap

if TYPE_CHECKING:
    from .._types import DataFrame, Model, Offsets, RowsLike, Sequence, Weights


@guarded
def marginal_effects(
    model: Model,
    X: RowsLike,
    features: str | int | Sequence[str | int] | None = None,
    *,
    change: Literal["auto", "unit", "sd", "binary", "pairs"] | float = "auto",
    reference: Any = None,
    level: float | None = None,
    sample_weight: Weights = None,
    offset: Offsets = None,
    max_draws: int | None = None,
) -> DataFrame:
    """Average marginal effects: how much the mean probability of the second class changes with each column.

    In all rows one column is changed and the others stay as they are: a number by a step, a category from one level to
    another. Under each draw of the coefficients the probabilities of all rows are averaged, before the change and after
    it; the table describes the differences. It is in the units of X: the changed rows pass through the steps before the
    classifier, whatever these are, so that all columns that a step makes of one change together. Of a model with groups
    the probabilities are those of new groups.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Steps before the classifier must treat each row by itself.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        The rows to average over, as ``model.predict_proba`` takes them. An effect is averaged over those in which its
        column has a value, whatever the ``change``.
    features : str, int, list of these or None, default=None
        Columns of X by name or number. None is all that hold numbers and all categories of 2 to 50 levels; the table
        says above it which categories are left out. A category is a column that holds no numbers, or has the type
        "category"; one that is named may have 200 levels. To have numbers as levels, give
        ``X.astype({"code": "category"})``. Where X has a column for every level, as from ``pandas.get_dummies``, these
        are one category, which their common beginning names ("ward" of ward_a and ward_b), and the name of one of them
        is that level alone.
    change : {"auto", "unit", "sd", "binary", "pairs"} or float, default="auto"
        What each column of numbers changes by: "unit" adds one, "sd" the standard deviation of the column in X, and a
        number adds itself; "binary" compares 1 with 0 for all rows, as is done for booleans whatever is asked. "auto"
        is "binary" for columns of zeros and ones, else "unit". Of a category each level is compared with the
        reference; with "pairs", which is "auto" for numbers, each pair of levels, of 50 at most.
    reference : object, dict or None, default=None
        The level that others are compared with, where features have one category; or a dict of names of categories and
        levels. None is the most frequent level, by weight; of a level column that is named, the most frequent of the
        others.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows in all averages, those of "sd" included.
    offset : array-like of shape (n_samples,) or None, default=None
        Of a model that was fitted with an offset, that of these rows.
    max_draws : int or None, default=None
        Maximum number of draws to use, evenly spaced; None uses all. Time is proportional to rows x draws; for features
        that move the score by different amounts in different rows, as splines do, to their contrasts too.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by feature, one row for each contrast of a category: "ward: b - a". Columns: change ("+1", "0 to 1",
        "level" of a category), mean, sd, the ends of the equal-tailed interval, prob_positive (posterior probability
        that the effect is above zero; a draw in which it is below 1e-16, as where nearly all rows are sure of their
        class, is half one) and ess (bulk). It is printed as that of `summary <skhorseshoe.inspection.summary>`, and
        `EffectsDisplay <skhorseshoe.plotting.EffectsDisplay>` draws it.

    Raises
    ------
    TypeError
        If the model is none of those above, or X is a Dask collection.
    NotFittedError
        If the model is not fitted.
    ValueError
        If X has other columns than the model, a feature is unknown, has no value in any row that counts, one level or
        too many, a column does not suit ``change``, ``reference`` is no level in these rows or belongs to no category
        among the features, or a parameter has a value that is not listed above.

    Notes
    -----
    An effect is an association, given the other columns: it is what the model predicts for rows that differ in this
    column alone. Columns that go together seldom do so: ``group_summary`` asks what they do together.

    A missing value is no level. To compare with it, give it a name of its own before the fit, as "unknown".

    Where all rows, or all of a level, move by the same score, one pass over the rows serves every contrast: by Taylor's
    series of the normal distribution function, to 1e-13.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import marginal_effects
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.normal(50, 10, 500), "ward": rng.choice(list("aaabc"), 500)})
    >>> y = 0.1 * (X["age"] - 50) + (X["ward"] == "b") + rng.standard_normal(500) > 0
    >>> steps = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["ward"]))
    >>> model = make_pipeline(steps, HorseshoeProbitClassifier(random_state=0)).fit(X, y)
    >>> effects = marginal_effects(model, X, change=10)  # ten years, say, not ten standard deviations
    >>> effects["change"].to_dict()
    {'age': '+10', 'ward: b - a': 'level', 'ward: c - a': 'level'}
    >>> bool(0.15 < effects.loc["age", "mean"] < 0.35)
    True
    """
    steps, classifier = unwrap(model)
    level = level_of(classifier, level)
    of_rows = {"sample_weight": sample_weight, "offset": offset}
    arguments = features, change, reference
    return effects.effects_frame(population(classifier), steps, X, *arguments, level, of_rows, max_draws)
