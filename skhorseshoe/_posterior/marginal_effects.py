"""Marginal effects: how the average probability of rows changes if one column changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from .._data.input_table import warn_if_reordered
from .._data.weights import check_weights
from .._utils.arrays import dense
from .._utils.errstate import guarded
from .._utils.names import printable
from ..diagnostics import ess_bulk
from . import predict
from .column_changes import ColumnChanger
from .effects_of_alike_rows import AlikeRows
from .feature_changes import Number, changes_of, check_change
from .grouped_prediction import given_rows, offset_factors, on_average, population
from .input_rows import InputRows, blocks_behind
from .level_columns import inputs_of
from .mixin import level_of
from .classes import refuse_classes
from .pipeline import unwrap
from .summary import described, in_lines
from .table import Summary

if TYPE_CHECKING:
    from .._types import DataFrame, Model, Offsets, RowsLike, Sequence, Weights

_ROUNDING = 1e-12
_ZERO = 1e-16  # effects below this are set to 0, since rounding determines their sign
_NUMBERS_HELD = 2**21  # numbers of column changes of these rows to hold at a time


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
        Columns of X by name or number. None is all that the model uses and that hold numbers, or are categories of 2 to
        50 levels; the table says above it which others are left out, such as the outcome and the number of a patient,
        which the first step of a Pipeline may drop. A category is a column that holds neither numbers nor dates, or has
        the type "category"; one that is named may have 200 levels. To have numbers as levels, give
        ``X.astype({"code": "category"})``. Dates must be numbers in X before the fit, such as days since a date. Where
        X has a column for every level, as from ``pandas.get_dummies``, these are one category, which their common
        beginning names ("ward" of ward_a and ward_b), and the name of one of them is that level alone.
    change : {"auto", "unit", "sd", "binary", "pairs"} or float, default="auto"
        What each column of numbers changes by: "auto" and "unit" add one, "sd" the standard deviation of the column in
        X, and a number adds itself; "binary" compares 1 with 0 for all rows, as is done for booleans and for columns of
        zeros and ones whatever is asked. Of a category each level is compared with the reference; with "pairs", which
        is "auto" for numbers, each pair of levels, of 50 at most.
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
    column alone. Columns that go together seldom do so: ``summary_of_sets`` asks what they do together.

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
    refuse_classes(classifier, "marginal_effects")
    level = level_of(classifier, level)
    model = population(classifier)
    check_change(change)
    warn_if_reordered(X, sample_weight=sample_weight, offset=offset)
    X = InputRows(X)
    weight, offset = None, given_rows(model, X, None, offset).offset
    if sample_weight is not None:
        weight = check_weights(sample_weight, X.X)
        if not weight.sum() > 0:
            raise ValueError("sample_weight is 0 for all rows: there is nothing to average over.")
        weight = weight / weight.sum()
    changes, left_out = changes_of(model, steps, X, features, change, reference, weight)
    draws, moved = _average_changes(model, steps, X, changes, weight, offset, max_draws)
    if features is None and moved:  # steps may not tell what they use
        made_of, _ = inputs_of(model, steps, X)
        is_used = [i in moved or not made_of.isdisjoint(item.columns) for i, item in enumerate(changes)]
        left_out += [f"{item.name!r} (changes nothing)" for i, item in enumerate(changes) if not is_used[i]]
        draws = draws[..., [is_used[i] for i, item in enumerate(changes) for _ in item.contrasts]]
        changes = [item for i, item in enumerate(changes) if is_used[i]]
    contrasts = [contrast for item in changes for contrast in item.contrasts]
    frame = Summary(
        {"change": [item.words for item in contrasts], **described(draws, level), "ess": ess_bulk(draws)},
        index=pd.Index([item.label for item in contrasts], name="feature", tupleize_cols=False),
    )
    mean = "average" if weight is None else "weighted average"
    known = "" if min(item.known for item in changes) > 1 - _ROUNDING else " (of those that have a value)"
    by_sd = _by_sd([item.step for item in changes if isinstance(item, Number)]) if change == "sd" else ""
    over = f"{mean} of {X.shape[0]} row{'s' * (X.shape[0] > 1)}{known}"
    text = f"Change of P(y = {printable(model.classes_[1])}), {over}, if one column changes"
    more = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
    out = f"; left out: {', '.join(map(printable, left_out[:3]))}{more}" if left_out else ""
    frame.attrs["header"] = in_lines(f"{text}{by_sd}{out}{on_average(model)}")
    whose = {str(contrast.label): str(item.name) for item in changes for contrast in item.contrasts}
    frame.attrs |= {"features": whose, "classes": model.classes_.tolist()}
    return frame


def _by_sd(steps):
    """What columns of numbers change by with change="sd", in words. steps : None for those of 0 and 1."""
    if all(step is None for step in steps):
        return ""
    return " by one standard deviation" + (", or from 0 to 1 where it has no other values" if None in steps else "")


def _average_changes(model, steps, X, changes, weight, offset, max_draws):
    """The effect of each contrast on the average probability of the rows, by draw, (n_chains, m, contrasts); and the
    numbers of the changes that have changed a column of the classifier."""
    coef, intercept = predict.flat_draws(model, max_draws)
    scale = offset_factors(model, max_draws)
    changer = ColumnChanger(model, steps, X, changes, np.abs(coef).max(axis=0).astype(np.float64))
    first = np.cumsum([0, *(len(item.states) for item in changes)])
    states = np.zeros((first[-1], len(coef)))  # each relative to the unchanged rows
    for rows, block, base in blocks_behind(model, steps, X):

        def fixed(draws, rows=rows):
            shift = 0.0 if offset is None else scale[draws, None] * offset[rows]
            return intercept[draws, None] + shift

        share = base.shape[0] / X.shape[0] if weight is None else weight[rows]
        held, numbers = [], 0
        for column_change in changer.column_changes(rows, block, base):
            held.append(column_change)
            groups, values = column_change.groups, column_change.values
            numbers += values.size + (0 if groups is None or len(values) == 1 else len(groups))
            if numbers > _NUMBERS_HELD:
                _add_effects(model, dense(base), held, first, share, coef, fixed, states)
                held, numbers = [], 0
        _add_effects(model, dense(base), held, first, share, coef, fixed, states)
    if not np.isfinite(states).all():
        raise ValueError(
            "X is too large to predict, or holds NaN, as it is or changed: are its columns on the scale of the fit?"
        )
    out = []
    for i, item in enumerate(changes):
        for contrast in item.contrasts:
            effect = states[first[i] + contrast.high] - (0 if contrast.low is None else states[first[i] + contrast.low])
            effect[np.abs(effect) < _ZERO] = 0.0
            # Rows without a value do not change: they add nothing to the sum, and do not count in the mean.
            out.append(effect / item.known)
    return np.stack(out, axis=1).reshape(len(model.coef_draws_), -1, len(out)), changer.moved


def _add_effects(model, X, column_changes, first, share, coef, fixed, states):
    """Add to the states the effects of column changes on the sum of probabilities over the rows X, under each draw.

    first : number of the first state of each change. share : of these rows among all, or (n,) of each of them. fixed :
    function of the draws that returns intercept plus offset, (k, n) or (k, 1).
    """
    likelihood, shares = model._likelihood, share / len(X) * np.ones(len(X)) if np.ndim(share) == 0 else share
    alike = AlikeRows(column_changes, shares, coef.shape[1], likelihood)
    one_by_one = [column_change for column_change in column_changes if column_change.groups is None]

    def use(eta, draws, ops):
        def average(eta):
            if np.ndim(share) == 0:
                return share * ops.average_probabilities(eta, likelihood)[:, 1]
            return likelihood.probability(eta, ops) @ ops.to_device(share)

        # Blocks of draws with all rows, not of rows with all draws, so that each sum over rows is made in one place.
        eta += ops.to_device(fixed(draws))
        block_coef, remaining = coef[draws].astype(np.float64), [*one_by_one]
        for column_change, total in alike.effects(eta, block_coef, ops):
            if total is None:
                remaining.append(column_change)
            else:
                states[first[column_change.feature_change] + column_change.state, draws] += total
        unchanged = average(eta) if remaining else None
        for column_change in remaining:
            by_column = np.ascontiguousarray(column_change.by_row().T)
            shift = ops.to_device(block_coef[:, column_change.columns]) @ ops.to_device(by_column)
            state = first[column_change.feature_change] + column_change.state
            states[state, draws] += ops.to_host(average(eta + shift) - unchanged)

    if column_changes:
        predict.each_product(model, coef, X, use)
