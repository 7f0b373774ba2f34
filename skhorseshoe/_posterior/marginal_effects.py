"""Marginal effects: how the average probability of rows changes if one column changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from .._data.input_table import warn_if_reordered
from .._data.weights import check_some_weights
from .._utils.errstate import guarded
from .._utils.names import first_of, printable
from ..diagnostics import ess_bulk
from .average_changes import Parts, average_changes
from .category_levels import inputs_of
from .classes import event_of, refuse_classes, shown_classes
from .comparisons import COMPARISONS, SIGNS, NoRatio, check_comparison, contrast_draws, statistics
from .feature_changes import Number, changes_of, check_change, levels_to_part
from .grouped_prediction import by_row, given_rows, on_average
from .input_rows import InputRows
from .mixin import level_of
from .pipeline import unwrap
from .summary import in_lines
from .table import TableOfDraws

if TYPE_CHECKING:
    from .._types import Change, DataFrame, Mapping, Model, Offsets, RowsLike, Sequence, Weights

_ROUNDING = 1e-12


@guarded
def marginal_effects(
    model: Model,
    X: RowsLike,
    features: str | int | Sequence[str | int] | None = None,
    *,
    change: Change | Mapping[str, Change] = "auto",
    reference: Any = None,
    comparison: Literal["difference", "ratio", "odds_ratio"] = "difference",
    by: Any = None,
    level: float | None = None,
    sample_weight: Weights = None,
    offset: Offsets = None,
    max_draws: int | None = None,
) -> DataFrame:
    """Average marginal effects: how much the mean probability of the second class changes with each column.

    In all rows one column is changed and the others stay as they are: a number by a step, a category from one level to
    another. Under each draw of the coefficients the probabilities of all rows are averaged, before the change and after
    it; the table describes their differences, or their ratios. It is in the units of X: the changed rows pass through
    the steps before the classifier, whatever these are, so that all columns that a step makes of one change together.
    Of a model with groups the probabilities are those of new groups.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Steps before the classifier must treat each row by itself. Of more than two classes, ask that of
        `one_vs_rest`, or of ordered ones that of `at_least`.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        The rows to average over, as ``model.predict_proba`` takes them. An effect is averaged over those in which its
        column has a value, whatever the ``change``.
    features : str, int, list of these or None, default=None
        Columns of X by name or number. None is all that the model uses and that hold numbers, or are categories of 2 to
        50 levels; the table says above it which are left out. A category is a column that holds neither numbers nor
        dates, or has the type "category", as numbers have by ``X.astype({"code": "category"})``; one that is named may
        have 200 levels. Dates must be numbers in X before the fit, such as days since a date. Columns for every level,
        as from ``pandas.get_dummies``, are one category, which their common beginning names ("ward" of ward_a and
        ward_b), and the name of one of them is that level alone; without a column for some level
        (``drop_first=True``) each is changed beside the others.
    change : {"auto", "unit", "sd", "binary", "pairs"}, float or dict, default="auto"
        What each column of numbers changes by: "auto" and "unit" add one, "sd" its standard deviation in X, and a
        number adds itself; "binary" compares 1 with 0, as is done for booleans and columns of zeros and ones whatever
        is asked. Of a category each level is compared with the reference; with "pairs", which is "auto" for numbers,
        each pair of levels, of 50 at most. A dict has changes by column, such as {"age": 10}; others have "auto".
    reference : object, dict or None, default=None
        The level that others are compared with, where features have one category; or a dict of names of categories and
        levels. None is the most frequent level, by weight; of a level column that is named, the most frequent of the
        others.
    comparison : {"difference", "ratio", "odds_ratio"}, default="difference"
        Of the averages p after the change and q before it: p - q, p / q (risk ratio), or p / (1 - p) / (q / (1 - q)).
    by : str, int, array-like of shape (n_samples,) or None, default=None
        A column of X, by name or number, or labels, with 2 to 50 levels: effects are averaged over the rows of each,
        "age | sex: f", and compared with those within the most frequent level, "age | sex: f - m", by a difference, or
        of ratios by their ratio, "age | sex: f / m". So they tell subgroups apart. Rows without a label do not count.
    level : float or None, default=None
        Level of the credible interval, in (0, 1); None takes ``credible_level`` of the classifier.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows in all averages, those of "sd" included.
    offset : array-like of shape (n_samples,) or None, default=None
        Of a model that was fitted with an offset, that of these rows.
    max_draws : int or None, default=None
        Maximum number of draws to use, evenly spaced; None uses all. Time is proportional to rows x draws; for features
        that move rows by different amounts, as splines do, and a class of several without an order to their contrasts
        too: 1000 rows x 1000 draws x 10 columns take some seconds there.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by feature, one row for each contrast of a category: "ward: b - a". Columns: change ("+1", "0 to 1",
        "level" of a category), mean, sd, the ends of the equal-tailed interval, prob_positive (posterior probability
        that the effect is above zero; a draw in which it is below 1e-16 is half one) and ess (bulk). Of ratios it has
        median in place of mean and sd, since the mean of an odds ratio need not exist, and prob_above_1.
        ``frame.draws`` are the draws, a frame with a column for each row, for other questions:
        ``(frame.draws["a"] - frame.draws["b"]).quantile([0.05, 0.95])``. It is printed as that of `summary
        <skhorseshoe.inspection.summary>`, and `EffectsDisplay <skhorseshoe.plotting.EffectsDisplay>` draws it.

    Raises
    ------
    TypeError
        If the model is none of those above, or X is a Dask collection.
    NotFittedError
        If the model is not fitted.
    ValueError
        If X has other columns than the model, steps do not treat each row by itself, a feature is unknown or given
        twice, has no value in any row that counts, one level or too many, a column does not suit ``change``,
        ``reference`` is no level in these rows or belongs to no category among the features, ``by`` has no two levels,
        or too many, or a column has no value within one; if an average probability of a ratio is within 1e-9 of 0 under
        some draw, or of odds of 1; or a parameter has a value that is not listed above.

    Notes
    -----
    An effect is an association, given the other columns: it is what the model predicts for rows that differ in this
    column alone. Columns that go together seldom do so: ``summary_of_sets`` asks what they do together.

    A missing value is no level. To compare with it, give it a name of its own before the fit, as "unknown".

    Ratios are those of averages, as "ratioavg" and "lnoravg" (which is the logarithm) of R's marginaleffects, not
    averages of the ratios of rows. Such a marginal odds ratio is nearer to 1 than the odds ratio of one row, which
    exp(coefficient) of a logistic regression is, the more so the more the rows differ.

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
    >>> marginal_effects(model, X, change=10, comparison="odds_ratio").index.tolist()
    ['age', 'ward: b / a', 'ward: c / a']
    """
    steps, classifier = unwrap(model)
    refuse_classes(classifier, "marginal_effects")
    level = level_of(classifier, level)
    model = by_row(classifier, max_draws)
    check_change(change)
    check_comparison(comparison)
    warn_if_reordered(X, by=by, sample_weight=sample_weight, offset=offset)
    X = InputRows(X)
    weight, offset = None, given_rows(model, X, None, offset).offset
    if sample_weight is not None:
        weight = check_some_weights(sample_weight, X.X)
        weight = weight / weight.sum()
    changes, left_out = changes_of(model, steps, X, features, change, reference, weight, SIGNS[comparison])
    levels = None if by is None else levels_to_part(X, by, weight)
    if levels is not None and features is None:
        changes = [item for item in changes if levels.column not in item.columns] or changes
    parts = Parts(np.zeros(X.shape[0], int) if levels is None else levels.codes, weight)
    shares, is_ratio = _shares(changes, parts, levels), comparison != "difference"
    averages, moved = average_changes(model, steps, X, changes, parts, offset, max_draws, is_ratio)
    effects, errors = _effects(changes, averages, shares, levels, comparison)
    if errors and (features is not None or not effects):
        raise errors[-1]
    used = [*effects]
    if features is None:
        used, more = _used(model, steps, X, changes, effects, moved)
        left_out += more
    where = [""] if levels is None else levels.suffixes(SIGNS[comparison])
    rows = [(changes[i], contrast, suffix) for i in used for contrast in changes[i].contrasts for suffix in where]
    labels = [f"{contrast.label}{suffix}" if suffix else contrast.label for _, contrast, suffix in rows]
    draws = np.concatenate([effects[i] for i in used]).reshape(len(rows), len(model.coef_draws_), -1)
    draws = np.moveaxis(draws, 0, 2)
    frame = TableOfDraws(
        {"change": [row[1].words for row in rows], **statistics(comparison, draws, level), "ess": ess_bulk(draws)},
        index=pd.Index(labels, name="feature", tupleize_cols=False),
    )
    frame._draws = labels, draws
    mean = "average" if weight is None else "weighted average"
    known = "" if shares[used].min() > 1 - _ROUNDING else " (of those that have a value)"
    by_sd = _by_sd([changes[i].step for i in used if isinstance(changes[i], Number)]) if change == "sd" else ""
    within = "" if levels is None else f" within the levels of {printable(levels.name)}"
    n = int(np.count_nonzero(parts.counted))
    over = f"{mean} of {n} row{'s' * (n > 1)}{known}{within}"
    text = f"{COMPARISONS[comparison]} of P({event_of(model)}), {over}, if one column changes"
    out = f"; left out: {first_of(left_out)}" if left_out else ""
    frame.attrs["header"] = in_lines(f"{text}{by_sd}{out}{on_average(model)}")
    whose = {str(label): str(item.name) for label, (item, _, _) in zip(labels, rows, strict=True)}
    frame.attrs |= {"features": whose, "classes": shown_classes(model).tolist(), "comparison": comparison}
    between = where[parts.sizes().size :]
    frame.attrs["between"] = [label for label, (*_, suffix) in zip(labels, rows, strict=True) if suffix in between]
    return frame


def _shares(changes, parts, levels):
    """The share of rows that have a value, (changes, parts); a ValueError for a part without any."""
    shares = np.array([parts.sizes(item.codes >= 0) for item in changes]) / parts.sizes()
    if not shares.all():
        i, k = np.argwhere(shares == 0)[0]
        raise ValueError(
            f"Column {changes[i].name!r} has no value in the rows whose {levels.name} is {levels.labels[k]!r}: leave "
            "it out of features."
        )
    return shares


def _effects(changes, averages, shares, levels, comparison):
    """The effects of each change by its number, (contrasts, parts, draws), with those between levels behind the parts;
    and the errors of changes without ratios. averages : of ``average_changes``."""
    effects, errors = {}, []
    for i, (item, (states, unchanged)) in enumerate(zip(changes, averages, strict=True)):
        known = shares[i][:, None]
        try:
            own = np.array([contrast_draws(comparison, one, states, unchanged, known) for one in item.contrasts])
        except NoRatio as error:
            errors.append(error)
            continue
        if levels is not None:
            others, reference = own[:, levels.others], own[:, [levels.reference]]
            between = others - reference if comparison == "difference" else others / reference
            own = np.concatenate([own, between], axis=1)
        effects[i] = own
    return effects, errors


def _used(model, steps, X, changes, effects, moved):
    """The numbers of the changes to show where no features are chosen, and what is left out, in words. effects, moved :
    as of ``_effects`` and ``average_changes``."""
    idle = set()
    if moved:  # steps may not tell what they use
        made_of, _ = inputs_of(model, steps, X)
        idle = {i for i, item in enumerate(changes) if i not in moved and made_of.isdisjoint(item.columns)}
    used = [i for i in effects if i not in idle] or [*effects]  # something is to be shown
    why = {i: "changes nothing" if i in effects else "no ratio" for i in range(len(changes)) if i not in used}
    return used, [f"{changes[i].name!r} ({reason})" for i, reason in why.items()]


def _by_sd(steps):
    """What columns of numbers change by with change="sd", in words. steps : None for those of 0 and 1."""
    if all(step is None for step in steps):
        return ""
    return " by one standard deviation" + (", or from 0 to 1 where it has no other values" if None in steps else "")
