"""Contributions of the values of single rows to their scores, relative to a reference, by term or by column.

Under a draw a term adds sum_l (x_l - reference_l) beta_l over its columns. The table summarises these sums.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from .._utils.arrays import dense
from .._utils.errstate import guarded
from .._utils.memory import check_matrices
from .._utils.names import levels_of_names, names_of
from . import predict
from . import terms as _terms
from .category_levels import levels_of_rows
from .classes import event_of, needs_one_score, refuse_classes
from .estimates import ends_of, interval, means
from .grouped_prediction import GivenRows, has_slopes, on_average, population, refuse_offset
from .input_rows import InputRows, classifier_rows, input_names, row_like
from .mixin import level_of
from .origins import column_origins
from .pipeline import named, unwrap
from .summary import in_lines, interval_headings, summary_frame
from .table import Summary, value_text

if TYPE_CHECKING:
    from .._types import DataFrame, Mapping, Model, RowsLike

_ROUNDING = 1e-12  # largest mean, in standard deviations, that steps may leave by rounding instead of 0
_BITS = 2.0**-46  # rounding error of a mean over rows, relative to the value
_MOST_COLUMNS = 3  # most columns whose values are shown for one term
_NEAR = 1e-3  # distance from a level, in steps from none to it, up to which a row has it


class Differences(NamedTuple):
    """Rows as the classifier has them, relative to a reference, in float64."""

    rows: np.ndarray  # (n, p)
    origin: np.ndarray  # (p,)
    difference: np.ndarray  # rows - origin
    reference: InputRows | None  # as the user gives it; None for the mean of the fit


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

    The probability is that of ``predict_proba``, averaged over draws. Tools that read ``coef_`` and ``intercept_``, as
    SHAP's LinearExplainer does, explain that of the posterior mean, which may be far from it.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        A few rows, as ``model.predict_proba`` takes them.
    reference : array-like or Series of shape (n_features,), dict, table of one row, or None, default=None
        The row to compare with, such as ``X_train.median()``, with a value for each column of X, which may leave out
        those that no step uses. None is the average row: the means of the classifier's columns in the fit, by their
        weights.
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
        scores, and "(probability)" of the row. Columns: value (as in X; of level columns the level, "none", or
        "mixed" of shares of several, as a mean has them), reference (the same, where one is given),
        mean, sd and the ends of the equal-tailed interval (with ``max_draws`` in the fit, the sd of a term of several
        columns, a total or a probability is of the draws that are kept). With ``terms=None`` the index is row and
        feature, in their order, with "(total)"; value and reference are as the classifier has them.

    Raises
    ------
    TypeError
        If ``terms`` is none of those above.
    ValueError
        If X or ``reference`` do not have the columns of the model, terms overlap or have unknown columns, a step has no
        names for its columns, ``top`` is below 1, or the model was fitted with an offset or ``group_slopes``; other
        errors are those of `marginal_effects`.
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
    refuse_classes(classifier, "contributions", one_score=True)
    needs_one_score(classifier, "contributions")
    refuse_offset(classifier, "contributions")
    if has_slopes(classifier):
        raise ValueError(
            "contributions takes no model with group_slopes yet. The score of a row is no sum over columns, averaged "
            "over such groups: marginal_effects says what columns do."
        )
    classifier = population(classifier)
    level = level_of(classifier, level)
    if top is not None and (isinstance(top, bool) or not isinstance(top, Integral) or top < 1):
        raise ValueError(f"top must be a whole number from 1 on, or None for all; got {top!r}.")
    raw = InputRows(X)
    check_matrices(8, (raw.shape[0], classifier.n_features_in_), "contributions(X)", "Ask for fewer rows.")
    differences = _from_reference(classifier, steps, raw, None if reference is None else row_like(raw, reference))
    classifier = named(steps, classifier)
    if terms is None:
        return _table_of_columns(classifier, raw, differences, level)
    return _table_of_terms(classifier, steps, raw, differences, level, terms, top)


def _from_reference(model, steps, X, reference):
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


def _table_of_columns(model, X, differences, level):
    """The table of the classifier's columns, in their order."""
    rows, origin, difference, reference = differences
    coef = summary_frame(model, level, None).iloc[: len(origin), :4]  # mean, sd, and the ends of the interval
    low, high = (difference * end for end in coef.iloc[:, 2:].to_numpy().T)
    mean, sd = difference * coef["mean"].to_numpy(), np.abs(difference) * coef["sd"].to_numpy()
    total = _described(model, difference, level)
    columns = {
        "value": (rows, np.full(len(rows), np.nan)),
        "reference": (np.tile(origin, (len(rows), 1)), np.full(len(rows), np.nan)),
        "mean": (mean, mean.sum(axis=1)),
        "sd": (sd, total[:, 0]),
        coef.columns[2]: (np.minimum(low, high), total[:, 1]),
        coef.columns[3]: (np.maximum(low, high), total[:, 2]),
    }
    index = _index(X.labels, np.tile(_objects([*names_of(model), "(total)"]), (len(rows), 1)), "feature")
    frame = Summary({name: np.column_stack(values).ravel() for name, values in columns.items()}, index=index)
    weights, intercept = means(model)
    whose = "the average row" if reference is None else "the reference"
    frame.attrs["header"] = in_lines(
        f"Score of P({event_of(model)}): {whose} has {origin @ weights + intercept:.3g}, and each "
        f"column moves a row away from that by its contribution{on_average(model)}"
    )
    return frame


def _table_of_terms(model, steps, X, differences, level, terms, top):
    """The table of the terms of each row, the largest first, those beyond ``top`` in one line."""
    try:
        terms = _terms.asked_terms(terms, steps, model, input_names(X.X))
    except ValueError as error:
        raise ValueError(f"{error} Or take terms=None, the columns of the classifier.") from error
    means_of_terms = _means(model, differences.difference, terms)
    order = np.argsort(-np.abs(means_of_terms), axis=1, kind="stable")
    shown = order if top is None or len(terms) <= top + 1 else order[:, :top]  # one other has a line
    n_others = len(terms) - shown.shape[1]
    proba = _row_probabilities(model, np.vstack([differences.rows, differences.origin]), level)
    blocks = [_numbers_of_shown(model, differences.difference, terms, means_of_terms, shown, level)]
    if n_others:
        blocks.append(_numbers_of_others(model, differences.difference, terms, means_of_terms, shown, level))
    total = np.column_stack([means_of_terms.sum(axis=1), _described(model, differences.difference, level)])
    numbers = np.concatenate([*blocks, total[:, None], proba[:-1, None]], axis=1) + 0.0  # no -0
    last = [*([f"({n_others} others)"] if n_others else []), "(total)", "(probability)"]
    origins, _ = column_origins(model, steps, input_names(X.X))
    given = {"value": (X, differences.rows)}
    if differences.reference is not None:
        given["reference"] = differences.reference, differences.origin[None]
    texts = {
        name: _placed(terms, shown, len(last), lambda t, rows=rows: _values_of(t, model, origins, *rows))
        for name, rows in given.items()
    }
    titles = np.column_stack([_objects([t.name for t in terms])[shown], *np.tile(_objects(last)[:, None], len(shown))])
    index = _index(X.labels, titles, "term")
    described_by = dict(zip(["mean", "sd", *interval_headings(level)], numbers.reshape(-1, 4).T, strict=True))
    frame = Summary({**texts, **described_by}, index=index)
    frame.attrs |= _about(model, differences, proba[-1], level)
    return frame


def _index(rows, titles, level):
    """The index of a table with lines (n, k) for each row, which pandas would sort, and cannot where tuples are among
    text."""
    codes, known = pd.factorize(titles.ravel(), use_na_sentinel=False)
    places = pd.MultiIndex.from_arrays([rows.repeat(titles.shape[1]), codes], names=["row", level])
    return places.set_levels([pd.Index(known, tupleize_cols=False)], level=[1])


def _means(model, difference, terms):
    """Posterior mean of the contribution of each term to each row; (n, number of terms)."""
    columns, sizes = np.concatenate([term.columns for term in terms]), [len(term.columns) for term in terms]
    return np.add.reduceat((difference * means(model)[0])[:, columns], np.cumsum([0, *sizes[:-1]]), axis=1)


def _numbers_of_shown(model, difference, terms, mean, shown, level):
    """Mean, standard deviation and ends of the interval for the terms that are shown; (n, k, 4)."""
    numbers = np.empty((*shown.shape, 4))
    numbers[..., 0] = np.take_along_axis(mean, shown, axis=1)
    for t in np.unique(shown):
        rows, places = np.nonzero(shown == t)
        columns = terms[t].columns
        numbers[rows, places, 1:] = _spread_of_term(model, difference[np.ix_(rows, columns)], columns, level)
    return numbers


def _spread_of_term(model, difference, columns, level):
    """Standard deviation and ends of the interval of the contributions of a term's columns; (m, 3)."""
    if len(columns) > 1:
        different, places = np.unique(difference, axis=0, return_inverse=True)  # few rows differ in level columns
        return _described(model, different, level, columns)[places.ravel()]
    draws = model.coef_draws_[..., columns[0]].astype(np.float64)
    low, high = (difference[:, 0] * end for end in interval(draws, level))
    if model.moments_ is not None:  # of all draws, since not all were kept
        sd = model.moments_["sd"][columns[0]]
    else:
        sd = draws.std(ddof=1) if draws.size > 1 else np.nan
    return np.column_stack([np.abs(difference[:, 0]) * sd, np.minimum(low, high), np.maximum(low, high)])


def _numbers_of_others(model, difference, terms, mean, shown, level):
    """The same four numbers for the sum of the terms that are not shown; (n, 1, 4)."""
    is_shown = np.zeros(mean.shape, bool)
    np.put_along_axis(is_shown, shown, True, axis=1)
    hidden = np.where(is_shown[:, _terms.owners(terms)], 0.0, difference)
    return np.column_stack([np.where(is_shown, 0.0, mean).sum(axis=1), _described(model, hidden, level)])[:, None]


def _described(model, difference, level, columns=slice(None)):
    """Standard deviation and ends of the interval of the contribution of these columns to each row; (n, 3)."""
    out, (coef, intercept) = np.empty((len(difference), 3)), predict.flat_draws(model)

    def use(eta, block, ops):
        out[block, 0] = ops.to_host(eta).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[block, 1:] = ops.to_host(ops.quantiles(eta, ends_of(level)))

    predict.each_predictor(model, GivenRows(difference), coef[:, columns], np.zeros_like(intercept), use)
    return out


def _row_probabilities(model, rows, level):
    """Mean, standard deviation and ends of the interval for the probability of each row; (n, 4)."""
    out, (coef, intercept), likelihood = np.empty((len(rows), 4)), predict.flat_draws(model), model._likelihood

    def use(eta, block, ops):
        probability = partial(likelihood.probability, ops=ops)
        out[block, 0] = ops.to_host(ops.average_probabilities(eta, likelihood))[:, 1]
        out[block, 1] = ops.to_host(probability(eta)).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[block, 2:] = ops.to_host(ops.quantiles(eta, ends_of(level), probability))  # may overwrite eta

    predict.each_predictor(model, GivenRows(rows), coef, intercept, use)
    return out


def _placed(terms, shown, n_after, values):
    """values(term), (n,) or (1,), for all terms that are shown, in the lines of the table; (n (k + n_after),)."""
    texts = np.full((len(shown), shown.shape[1] + n_after), "", object)
    for t in np.unique(shown):
        rows, places = np.nonzero(shown == t)
        texts[rows, places] = np.broadcast_to(values(terms[t]), len(shown))[rows]
    return texts.ravel()


def _values_of(term, model, origins, X, rows):
    """The value of a term in each row of X, ``InputRows``; (n,) object.

    A term that is made of one column of X has its value. Level columns have the level of the row, "none", or "mixed" as
    at a mean; a few columns their values in a list, a single column of unknown origin the classifier's value, and other
    terms an empty text.

    origins : the ``Origin`` of each column of the classifier. rows : X as the classifier has it, (n, p).
    """
    columns = term.columns.tolist()
    is_known = all(origins[j].inputs for j in columns)
    places = sorted({place for j in columns for place in origins[j].inputs}) if is_known else []
    if len(places) == 1:
        return X.objects(places[0])
    indicators = _terms.indicator_sets_by_columns(model).get(tuple(columns))
    if indicators is not None and all(len(origins[j].inputs) < 2 for j in columns):  # else of several categories
        names = _terms.names_before(columns, origins, X.names, names_of(model))
        levels, level = levels_of_names(names, term.name), levels_of_rows(rows, indicators)
        of_level = np.vstack([np.eye(len(columns)), np.zeros(len(columns))])[level]  # the last one where none is
        distance = abs((rows[:, columns] - indicators.base) / indicators.step - of_level).max(axis=1)
        return np.where(distance < _NEAR, np.array([*levels, "none"], object)[level], "mixed")
    if not places and len(columns) == 1:
        return rows[:, columns[0]].astype(object)
    if not 0 < len(places) <= _MOST_COLUMNS:
        return np.full(len(rows), "", object)
    texts = zip(*(map(value_text, X.objects(place)) for place in places), strict=True)
    return np.array([", ".join(each) for each in texts], object)


def _objects(names):
    """An array of names of any type."""
    out = np.empty(len(names), object)
    out[:] = names
    return out


def _about(model, differences, proba, level):
    """Header, classes and reference of the table. proba : the four numbers for the reference."""
    weights, intercept = means(model)
    whose = "the average row" if differences.reference is None else "the reference"
    mean, _, low, high = map(float, proba)
    return {
        "header": in_lines(
            f"P({event_of(model)}) of each row, and what its values add to the score beside {whose}, "
            f"which has a probability of {mean:.3g} ({100 * level:g} % interval {low:.3g} to {high:.3g})"
            f"{on_average(model)}"
        ),
        "classes": model.classes_.tolist(),
        "reference": {
            "name": whose.removeprefix("the "),
            "score": float(differences.origin @ weights + intercept),
            "probability": [mean, low, high],
        },
    }
