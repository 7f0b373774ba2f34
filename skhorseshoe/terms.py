"""Terms: columns that belong together, such as the levels of a category or the columns of a spline.

Of such columns the question is what they do together: "does the ward matter?" is one question, whatever the number of
its columns. Where levels sum to one in every row, no single coefficient is known, while their differences are.

A ``model`` is a fitted ``HorseshoeProbitClassifier``, a Pipeline that ends with one, or a search. X are rows as the
model itself takes them, before any scaler.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from ._backends import device
from ._data import validation
from ._data.input_table import warn_if_reordered
from ._data.weights import check_weights
from ._posterior import claim_errors as claims
from ._posterior import terms as _terms
from ._posterior.category_levels import levels_of_input, of_level_columns
from ._posterior.classes import refuse_several
from ._posterior.fitted_rows import warn_of_other_rows
from ._posterior.grouped_prediction import on_average, population
from ._posterior.input_rows import input_names
from ._posterior.mixin import level_of
from ._posterior.pipeline import named, prepared, unwrap
from ._posterior.summary import described, favoured, in_lines, interval_headings
from ._posterior.table import Summary
from ._utils.errstate import guarded
from ._utils.names import names_of, printable
from .diagnostics import ess_bulk, rhat

if TYPE_CHECKING:
    from ._types import DataFrame, Mapping, Missing, Model, RowsLike, Weights

__all__ = ["find", "levels", "summary"]


def find(
    model: Model, X: RowsLike = None, *, terms: Mapping[str, Any] | Literal["auto"] = "auto", missing: Missing = "raise"
) -> dict[str, list[Any]]:
    """The terms of a model: one for each input column of a Pipeline, for each category, for each other column.

    The steps of a Pipeline are walked from the input columns to those of the classifier. Columns that are made of
    several input columns, as interactions are, are a term of their own ("age x sex"), and so is each column of which
    the steps do not tell what it is made of, as of a principal component, or of a function of several columns whose
    names are all that is known: age_sex may be anything. A step within a ColumnTransformer that is given one column
    tells: what it makes is made of that one. Without steps, columns of two values of which
    every row has one are the levels of a category; their common beginning names it ("ward" of ward_a and ward_b);
    where some level has no column, as with ``drop_first=True``, each of them is a term.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : table of shape (n_samples, n_features), default=None
        Rows as the model takes them, if the first step does not remember the names of the input columns.
    terms, missing : see `summary`
        Terms of your own, in place of those that are found among their columns; and what becomes of unknown names.

    Returns
    -------
    terms : dict
        The name of each term with the names of its columns, behind the steps, in their order; numbers in place of names
        that several columns have, as encoders may make them.

    Raises
    ------
    TypeError
        If ``model`` does not end with a HorseshoeProbitClassifier.
    NotFittedError
        If it is not fitted.
    ValueError
        If a step has no names for its columns, so that they cannot be told apart, or yours are empty or have unknown
        ones.

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
    keys = _terms.keys_of(names_of(classifier))
    asked, _ = _terms.judged_terms(terms, steps, classifier, None if X is None else input_names(X), missing)
    return {term.name: [keys[j] for j in term.columns] for term in asked}


@guarded
def summary(
    model: Model,
    X: RowsLike = None,
    *,
    terms: Mapping[str, Any] | Literal["auto"] = "auto",
    effect: float | Mapping[str, float] = claims.EFFECT,
    level: float | None = None,
    sample_weight: Weights = None,
    missing: Missing = "raise",
) -> DataFrame:
    """Does it matter? The size of the effect of each term, and how sure it is.

    The effect of a term on a row is what its columns do to the score together, beside the mean over rows. Its size is
    the standard deviation of that over the rows: the unit of ``effect`` in the selector's rule "fsr", and for a single
    column abs(beta_j) sd_j. Of a model with groups of rows, beta_j is averaged over these: divided by sqrt(1 + s^2).

    So a level that few rows have is small by this measure, whatever it does to these rows: with 1 % of them, a size of
    0.1 is a difference of 1 in the score, an odds ratio of 5. ``effect={"levels": 0.3}`` asks for that difference.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : array-like, table or sparse matrix of shape (n_samples, n_features), default=None
        The rows of the fit, as the model takes them. Not needed where each term is one column or has a column for every
        level of a category.
    terms : dict or "auto", default="auto"
        The terms, as `find` gives them; or a dict of your own: names, each with a list of columns, of the classifier or
        of the input. They may overlap, as gene sets do: each has the effect of all its columns. Columns that it leaves
        out are in the terms that are found.
    effect : float or dict, default=0.1
        The least size that counts. A dict has "levels", the least difference between two levels that counts, for terms
        all of whose columns hold two values, such as a column of zeros and ones or the columns of a category; and "sd",
        for all others, 0.1 where it is left out. With "levels" X is needed.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        The weights of the fit, times the class weights if there was a ``class_weight``.
    missing : {"raise", "ignore"}, default="raise"
        What becomes of names in ``terms`` that are none of the columns: an error, or they are left out, which the
        header tells.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by term, the largest first. Columns: n_columns, mean, sd and the ends of the equal-tailed interval of
        the size, probability (that the size is above ``effect``, at most 1 - 1 / ess), prior (what that would be if the
        data said nothing of the term: of coefficients from the prior under each draw of tau; not of a model that was
        made of one of several classes without an order), ess (bulk) and rhat. Of a term of one column probability is
        that of the claim of the rule "fsr", that the effect is beyond ``effect`` on its more probable side: of a level
        of a category the effect beside the other levels, while the size in the row is by its coefficient alone. With
        "levels" also per: "levels", where the size is the largest difference between two levels, or "sd".

    Raises
    ------
    TypeError
        If ``terms`` is no dict and not "auto", ``model`` does not end with a HorseshoeProbitClassifier, or X behind its
        steps is a Dask collection.
    NotFittedError
        If the model is not fitted.
    ValueError
        If terms are empty, have unknown columns or the same value in all rows; if X is needed and not given,
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
    warn_if_reordered(X, sample_weight=sample_weight)
    classifier = population(classifier)
    model = named(steps, classifier)
    claims.check_effect(effect)
    inputs = None if X is None else input_names(X)
    asked, left_out = _terms.judged_terms(terms, steps, model, inputs, missing)
    rows = None
    if X is not None:  # checked even if no term needs it
        seen_rows = device.to_host(validation.check_X(classifier, prepared(steps, X), reset=False))
        rows = seen_rows, None if sample_weight is None else check_weights(sample_weight, seen_rows)
        warn_of_other_rows(classifier, *rows)
    effects = claims.least_effects(model, effect, rows and rows[0])
    alone, table = claims.prob_columns_wrong(model, effects.least, effects.scale), []
    for term in _terms.with_roots(asked, model, rows, effects.has_levels):
        least, is_single = effects.for_columns(term.columns), term.root is None
        term = term._replace(root=effects.scale[term.columns] * np.eye(1)) if is_single else term
        size = claims.size_of(model.coef_draws_, term)  # of several classes, over these
        ess = ess_bulk(size)
        # A single column is claimed with a sign, and no claim is surer than draws of the size can tell.
        wrong = claims.wrong_size(size, -np.inf if is_single else least, ess)
        wrong = max(wrong, alone[term.columns[0]]) if is_single else wrong
        table.append(
            {
                "term": term.name,
                "n_columns": len(term.columns),
                "per": "levels" if effects.has_levels[term.columns].all() else "sd",
                **{name: values[0] for name, values in described(size[..., None], level).items()},
                "probability": 1 - wrong,
                "prior": claims.prior_probability(model, term, least),
                "ess": ess,
                "rhat": rhat(size),
            }
        )
    has_prior = table[0]["prior"] is not None
    columns = ["n_columns", "mean", "sd", *interval_headings(level), "probability"]
    columns += [*["prior"] * has_prior, "ess", "rhat"]
    columns[1:1] = ["per"] if (has_levels := effects.between_levels is not None) else []
    frame = Summary(table, columns=["term", *columns]).set_index("term")
    frame = frame.sort_values("mean", ascending=False, kind="stable")
    kinds = "standard deviation over the rows"
    kinds += ", or the largest difference between two levels" if has_levels else ""
    least = f"{effects.per_sd:g}" + (f", or {effects.between_levels:g} between levels" if has_levels else "")
    frame.attrs["header"] = in_lines(
        f"Effect of each of {len(frame)} terms on the score: {kinds}, and the probability that it is above "
        f"{least}{', prior: if the data said nothing' * has_prior}{on_average(classifier)}{left_out}"
    )
    return frame


@guarded
def levels(
    model: Model,
    term: str,
    X: RowsLike = None,
    *,
    reference: Any = None,
    effect: float | None = None,
    level: float | None = None,
    sample_weight: Weights = None,
) -> DataFrame:
    """What each level of a category does to the score.

    Each level is compared with the mean over rows, or with a level that is named. All columns that the steps make of
    the category alone are set together, as rows of that level have them; the header names columns of which the steps
    do not tell what they are made of, which are held. Of a model with groups of rows, coefficients are averaged over
    these: divided by sqrt(1 + s^2).

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    term : str
        The name of the category: a column of X, such as one of zeros and ones, or of level columns the name that `find`
        gives them.
    X : table of shape (n_samples, n_features), default=None
        The rows to average over, as the model takes them: those of the fit, or of another population, whose shares then
        count. None is those of the fit, with their weights there, for a classifier with a column for every level.
    reference : object, default=None
        The level to compare with, nan for the rows in which the value is missing; None is the mean over rows.
    effect : float or None, default=None
        The least difference in the score that counts: the table then says how probable it is that there is one.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows of X in the mean and in the shares, those of the fit or others.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by level, nan where the value is missing. Columns: share (of the rows), mean, sd, the ends of the
        equal-tailed interval, prob_positive, lfsr (as in ``summary``), with ``effect`` probability (that the difference
        is beyond it, on the more probable side, at most 1 - 1 / ess), and ess (bulk).

    Raises
    ------
    TypeError
        If ``model`` does not end with a HorseshoeProbitClassifier.
    NotFittedError
        If the model is not fitted.
    ValueError
        If there is no such category, it has one level, is itself a level of another, or ``reference`` is none of its
        levels; if the steps make interactions of it, so that a level does not add the same to all rows; if ``effect``
        is below 0; if X is needed and not given, or has other columns than the model; if a weight is negative, or all
        are 0; if the model has several classes without an order.

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
    classifier = population(classifier)
    model = named(steps, classifier)
    claims.check_difference(effect)
    refuse_several(classifier, "terms.levels")
    if X is None and sample_weight is not None:
        raise ValueError("sample_weight goes with rows, and X is None: give their X, or leave sample_weight out.")
    if steps is None and X is None:
        labels, columns, points, share, held = of_level_columns(model, term)
    else:
        labels, columns, points, share, held = levels_of_input(classifier, steps, X, term, sample_weight)
    if len(labels) < 2:
        raise ValueError(f"{term!r} has one level in these rows, {labels[0]!r}: there is nothing to compare.")
    origin, compared = share @ points, np.arange(len(labels))
    if reference is not None:
        asked = None if np.ndim(reference) == 0 and pd.isna(reference) else reference
        if asked not in labels:
            raise ValueError(f"reference={reference!r} is no level of {term!r}: these are {labels}.")
        origin, compared = points[labels.index(asked)], np.delete(compared, labels.index(asked))
    draws = model.coef_draws_[..., columns].astype(np.float64) @ (points[compared] - origin).T
    ess, statistics = ess_bulk(draws), described(draws, level)
    frame = Summary(
        {
            "share": share[compared],
            **statistics,
            "lfsr": claims.lfsr(statistics["prob_positive"], ess, draws[..., 0].size),
            **({} if effect is None else {"probability": 1 - claims.wrong_contrast(draws, ess, effect)}),
            "ess": ess,
        },
        index=pd.Index([labels[k] for k in compared], name=str(term), tupleize_cols=False),
    )
    origin_name = "the mean over rows" if reference is None else f"level {printable(repr(reference))}"
    beyond = "" if effect is None else f"; the probability is that of a difference beyond {effect:g}"
    frame.attrs["classes"] = model.classes_.tolist()
    frame.attrs["header"] = in_lines(
        f"What each level of {printable(repr(term))} adds to the score beside {origin_name}; "
        f"{favoured(model, 'values')}{beyond}{on_average(classifier)}{held}"
    )
    return frame
