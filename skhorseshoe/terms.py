"""Terms: columns that belong together, such as the levels of a category or the columns of a spline.

Of such columns the question is what they do together: "does the ward matter?" is one question, whatever the number of
its columns. Where levels sum to one in every row, no single coefficient is known, while their differences are.

A ``model`` is a fitted ``HorseshoeProbitClassifier``, a Pipeline that ends with one, or a search. X are rows as the
model itself takes them, before any scaler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ._posterior import terms as _terms
from ._posterior.claim_errors import EFFECT
from ._posterior.grouped_prediction import population
from ._posterior.input_rows import input_names
from ._posterior.mixin import level_of
from ._posterior.pipeline import named, unwrap
from ._posterior.term_frames import levels_frame, terms_frame
from ._utils.errstate import guarded
from ._utils.names import names_of

if TYPE_CHECKING:
    from ._types import DataFrame, Mapping, Model, RowsLike, Weights

__all__ = ["find", "levels", "summary"]


def find(model: Model, X: RowsLike = None) -> dict[str, list[Any]]:
    """The terms of a model: one for each input column of a Pipeline, for each category, for each other column.

    The steps of a Pipeline are walked from the input columns to those of the classifier. Columns that are made of
    several input columns, as interactions are, are a term of their own ("age x sex"), and so is each column of which
    the steps do not tell what it is made of, as of a principal component. Without steps, columns of two values of which
    every row has one are the levels of a category; their common beginning names it ("ward" of ward_a and ward_b).

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : table of shape (n_samples, n_features), default=None
        Rows as the model takes them, if the first step does not remember the names of the input columns.

    Returns
    -------
    terms : dict
        The name of each term with the names of its columns, behind the steps, in their order.

    Raises
    ------
    TypeError
        If ``model`` does not end with a HorseshoeProbitClassifier.
    NotFittedError
        If it is not fitted.
    ValueError
        If a step has no names for its columns, so that they cannot be told apart.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from skhorseshoe import HorseshoeProbitClassifier, terms
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"ward": rng.choice(list("abc"), 300), "age": rng.normal(60, 10, 300)})
    >>> y = (X["ward"] == "a") + rng.standard_normal(300) > 0.5
    >>> encode = make_column_transformer((OneHotEncoder(), ["ward"]), (StandardScaler(), ["age"]))
    >>> model = make_pipeline(encode, HorseshoeProbitClassifier(random_state=0)).fit(X, y)
    >>> {name: len(columns) for name, columns in terms.find(model).items()}
    {'ward': 3, 'age': 1}
    """
    steps, classifier = unwrap(model)
    classifier = named(steps, classifier)
    names = names_of(classifier)
    terms = _terms.found_terms(steps, classifier, None if X is None else input_names(X))
    return {term.name: [names[j] for j in term.columns] for term in terms}


@guarded
def summary(
    model: Model,
    X: RowsLike = None,
    *,
    terms: Mapping[str, Any] | Literal["auto"] = "auto",
    effect: float = EFFECT,
    level: float | None = None,
    sample_weight: Weights = None,
) -> DataFrame:
    """Does it matter? The size of the effect of each term, and how sure it is.

    The effect of a term on a row is what its columns do to the score together, beside the mean over rows. Its size is
    the standard deviation of that over the rows: the unit of ``effect`` in the selector's rule "fsr", and for a single
    column abs(beta_j) sd_j. Of a model with groups of rows, beta_j is averaged over these: divided by sqrt(1 + s^2).

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : array-like, table or sparse matrix of shape (n_samples, n_features), default=None
        The rows of the fit, as the model takes them. Not needed where each term is one column or has a column for every
        level of a category.
    terms : dict or "auto", default="auto"
        The terms, as `find` gives them; or a dict of your own: names, each with a list of columns, of the classifier or
        of the input. Columns that it leaves out are in the terms that are found.
    effect : float, default=0.1
        The least size that counts.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the fit, times the class weights if there was a ``class_weight``.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by term, the largest first. Columns: n_columns, mean, sd and the ends of the equal-tailed interval of
        the size, probability (that the size is above ``effect``, at most 1 - 1 / ess), ess (bulk) and rhat.

    Raises
    ------
    TypeError
        If ``terms`` is no dict and not "auto", or ``model`` does not end with a HorseshoeProbitClassifier.
    NotFittedError
        If the model is not fitted.
    ValueError
        If terms overlap, are empty, have unknown columns or the same value in all rows; if X is needed and not given,
        or has other columns than the model.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skhorseshoe import HorseshoeProbitClassifier, terms
    >>> rng = np.random.default_rng(0)
    >>> ward, age = rng.choice(list("abcd"), 1000), rng.standard_normal(1000)
    >>> X = pd.get_dummies(pd.DataFrame({"ward": ward, "age": age}), dtype=float)
    >>> y = 0.7 * np.isin(ward, ["a", "c"]) + 0.5 * age + rng.standard_normal(1000) > 0.35
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> found = terms.summary(clf)
    >>> found.index.tolist(), bool((found["probability"] > 0.99).all())
    (['age', 'ward'], True)
    """
    steps, classifier = unwrap(model)
    level = level_of(classifier, level)
    return terms_frame(population(classifier), steps, X, terms, effect, level, sample_weight)


@guarded
def levels(
    model: Model,
    term: str,
    X: RowsLike = None,
    *,
    reference: Any = None,
    level: float | None = None,
    sample_weight: Weights = None,
) -> DataFrame:
    """What does each level of a category do to the score?

    Each level is compared with the mean over rows, or with a level that is named. All columns that the steps make of
    the category alone are set together, as rows of that level have them. Of a model with groups of rows, coefficients
    are averaged over these: divided by sqrt(1 + s^2).

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    term : str
        The name of the category: an input column of the Pipeline, or of level columns the name that `find` gives them.
    X : table of shape (n_samples, n_features), default=None
        The rows of the fit, as the model takes them. Not needed for a classifier that has a column for every level.
    reference : object, default=None
        The level to compare with, nan for the rows in which the value is missing; None is the mean over rows.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows in the mean and in the shares.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by level, nan where the value is missing. Columns: share (of the rows), mean, sd, the ends of the
        equal-tailed interval, prob_positive, lfsr (as in ``summary``) and ess (bulk).

    Raises
    ------
    TypeError
        If ``model`` does not end with a HorseshoeProbitClassifier.
    NotFittedError
        If the model is not fitted.
    ValueError
        If there is no such category, it has one level, or ``reference`` is none of its levels; if X is needed and not
        given, or has other columns than the model.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skhorseshoe import HorseshoeProbitClassifier, terms
    >>> rng = np.random.default_rng(0)
    >>> ward = rng.choice(list("abc"), 1000)
    >>> X = pd.get_dummies(pd.DataFrame({"ward": ward, "age": rng.standard_normal(1000)}), dtype=float)
    >>> y = 0.7 * (ward == "a") + rng.standard_normal(1000) > 0.3
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> beside_c = terms.levels(clf, "ward", reference="ward_c")
    >>> beside_c.index.tolist(), bool(0.4 < beside_c.loc["ward_a", "mean"] < 1)
    (['ward_a', 'ward_b'], True)
    """
    steps, classifier = unwrap(model)
    level = level_of(classifier, level)
    return levels_frame(population(classifier), steps, X, term, reference, level, sample_weight)
