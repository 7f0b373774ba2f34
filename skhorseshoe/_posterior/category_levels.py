"""The levels of a category: of rows where X has level columns, and what a classifier's columns are in rows of each."""

from typing import Any, NamedTuple

import numpy as np

from .._data.input_table import warn_if_reordered
from .._data.weights import check_some_weights
from .._utils.arrays import dense
from .._utils.names import beginnings_of, finder, name_of_levels, names_of, printable, title_of
from .claim_errors import indicator_sets_of
from .input_rows import InputRows, blocks_behind
from .origins import Origin, column_origins
from .pipeline import named
from .terms import found_terms, indicator_sets_by_columns, names_before

MOST_LEVELS = 200  # of a category that is named
_MOST_ALIKE = 50  # that a category without a column for each may have
_FEW_PAIRS = 5.0  # rows expected to have two of some columns by chance, up to which it is no wonder that none has
_GATHER = "gather rare ones before the fit, or compare two by inspection.summary_of_sets, {'b - a': {'b': 1, 'a': -1}}."


class Levels(NamedTuple):
    """The levels of a category."""

    labels: list[Any]
    columns: np.ndarray  # numbers of the columns made of it (k,)
    points: np.ndarray  # their values in rows of each level (m, k)
    share: np.ndarray  # of the rows (m,)
    held: str = ""  # words on columns that may depend on it too


def of_level_columns(model, term, steps=None, inputs=None):
    """``Levels`` of columns that are levels. inputs : names of the input columns; None without steps."""
    names, sets = names_of(model), indicator_sets_by_columns(model)
    named_sets = ((t.name, sets.get(tuple(t.columns.tolist()))) for t in found_terms(steps, model, inputs))
    known = {name: indicators for name, indicators in named_sets if indicators is not None}
    if term not in known and steps is not None:
        raise ValueError(f"There is no input column {term!r}: X has {inputs[:9]}.")
    if term not in known:
        raise ValueError(
            f"There is no category {term!r} with a column for every level; there are {[*known]}. Fit a Pipeline with "
            "the encoder in it, whose input columns are categories."
        )
    indicators = known[term]
    points = np.tile(indicators.base, (len(indicators.columns), 1)) + np.diag(indicators.step)
    origins, inputs = column_origins(model, steps, inputs)
    labels = names_before(indicators.columns, origins, inputs, names)
    return Levels(labels, indicators.columns, points, indicators.share)


def levels_of_input(model, steps, X, term, sample_weight):
    """The same for an input column of a Pipeline, with means over the rows of each level as values."""
    if X is None:
        raise ValueError("X is needed, the rows of the fit: they tell the levels.")
    warn_if_reordered(X, sample_weight=sample_weight)
    X = InputRows(X)
    weight = np.ones(X.shape[0]) if sample_weight is None else check_some_weights(sample_weight, X.X)
    if term not in X.names:
        return _in_rows(of_level_columns(named(steps, model), term, steps, X.names), model, steps, X, weight)
    place, columns, held = _columns_of(model, steps, X.names, term)
    codes, labels = X.levels(place)
    if len(labels) > MOST_LEVELS:
        cure = "marginal_effects says what a number does." if X.holds_numbers(place) else _GATHER
        raise ValueError(
            f"{term!r} has {len(labels)} different values, too many for levels (at most {MOST_LEVELS}): {cure}"
        )
    share, points = np.zeros(len(labels)), np.zeros((len(labels), len(columns)))
    for rows, _, seen in blocks_behind(model, steps, X):
        np.add.at(points, codes[rows], dense(seen[:, columns]) * weight[rows, None])
        np.add.at(share, codes[rows], weight[rows])
    return _that_occur(labels, columns, points / np.where(share > 0, share, 1.0)[:, None], share, held)


def _that_occur(labels, columns, points, share, held=""):
    """``Levels`` of those that occur. share : of each, the sum of the weights of its rows."""
    occurs = share > 0
    labels = [label for label, is_used in zip(labels, occurs, strict=True) if is_used]
    return Levels(labels, columns, points[occurs], share[occurs] / share.sum(), held)


def _in_rows(levels, model, steps, X, weight):
    """``Levels`` of columns with their shares of these rows."""
    indicators, share = indicator_sets_by_columns(model)[tuple(levels.columns.tolist())], np.zeros(len(levels.share))
    for rows, _, seen in blocks_behind(model, steps, X):
        codes = levels_of_rows(seen, indicators)
        share += np.bincount(codes[codes >= 0], weight[rows][codes >= 0], len(share))
    if not share.any():
        raise ValueError(
            f"No row of X that counts has one of the levels {levels.labels}: give rows as the fit took them."
        )
    return _that_occur(*levels[:3], share)


def _columns_of(model, steps, inputs, term):
    """The place of an input column, the columns that are made of it alone, and words on those that may depend on it."""
    place = finder(inputs, "columns of X")(term, "levels")
    origins, _ = column_origins(model, steps, inputs)
    columns = np.flatnonzero([origin.inputs == (place,) for origin in origins])
    others = [origin.inputs for origin in origins if place in origin.inputs and len(origin.inputs) > 1]
    if others:
        title = " x ".join(repr(inputs[j]) for j in others[0])
        raise ValueError(
            f"What {term!r} adds to the score differs from row to row, as the steps make columns of it and of others "
            f"({title}): inspection.marginal_effects(model, X, {term!r}) averages its effect over the rows."
        )
    sets = indicator_sets_by_columns(model)
    if other := next((s for s in sets if not {*s}.isdisjoint(columns) and not {*s} <= {*columns.tolist()}), None):
        names = names_before(other, origins, inputs, names_of(named(steps, model)))
        raise ValueError(
            f"{term!r} is a level of a category, of which every row has one: ask for {name_of_levels(names)!r}, whose "
            "levels are compared with one another."
        )
    held = [j for j, origin in enumerate(origins) if not origin.inputs and place in origin.reach]
    if not len(columns) and not held:
        raise ValueError(
            f"No column that the classifier has is made of {term!r}: the steps before it leave it out, as a selector "
            "of columns may."
        )
    if not len(columns):
        raise ValueError(
            f"The steps before the classifier make no column of {term!r} alone, as far as they tell. A step does not "
            "tell of which of its columns it makes each of its own: give it this one alone, within a ColumnTransformer."
        )
    if not held:
        return place, columns, ""
    title = title_of(printable(repr(names_of(named(steps, model))[held[0]])), len(held))
    return place, columns, f"; held: {title}, of which the steps do not tell the inputs"


def find_level_columns(model, steps, X):
    """By the numbers of the level columns of a category, the level of each row (n,), -1 for none.

    X : ``InputRows``. An encoder within the steps gives no such columns: there the column of X is the category.
    """
    categories, known = {}, origins_of(model, steps, X) if (sets := indicator_sets_of(model)) else []
    for indicators in sets:
        origins = [known[j] for j in indicators.columns]
        columns = tuple(origin.inputs[0] for origin in origins if origin.is_alone and len(origin.inputs) == 1)
        if len({*columns}) == len(indicators.columns) and all(map(X.holds_numbers, columns)):
            categories[columns] = indicators
    codes = {columns: np.full(X.shape[0], -1) for columns in categories}
    for rows, _, seen in blocks_behind(model, steps, X) if categories else ():
        for columns, indicators in categories.items():
            codes[columns][rows] = levels_of_rows(seen, indicators)
    return codes


def lone_levels(X, asked, known):
    """Sets of columns of X, ``InputRows``, that seem levels of a category without a column for each: their names have
    the same beginning, they hold zeros and ones, and no row has two, though some would by chance. asked : columns of
    which one at least is in each set. known : columns of complete sets."""
    alike, found = {}, []
    for j, name in enumerate(X.names):
        if j not in known:
            for beginning in beginnings_of(name):
                alike.setdefault(beginning, []).append(j)
    for columns in alike.values():  # the shortest beginning of a name comes first
        if len(columns) > _MOST_ALIKE or asked.isdisjoint(columns) or any({*columns} <= {*one} for one in found):
            continue
        values = {j: X.values(j) for j in columns if X.holds_numbers(j)}
        values = {j: own for j, own in values.items() if np.isin(own, (0, 1)).all()}
        if len(values) < 2 or asked.isdisjoint(values) or sum(values.values()).max() > 1:
            continue
        share = np.array([own.mean() for own in values.values()])
        if X.shape[0] * (share.sum() ** 2 - share @ share) / 2 > _FEW_PAIRS:
            found.append([*values])
    return found


def levels_of_rows(rows, indicators):
    """The level of each row of the classifier's columns; (n,), -1 for none."""
    is_level = (dense(rows[:, indicators.columns]) - indicators.base) / indicators.step > 0.5
    return np.where(is_level.sum(axis=1) == 1, is_level.argmax(axis=1), -1)


def inputs_of(model, steps, X):
    """The places of the columns of X that columns of the classifier are made of, and of those on which none can depend;
    sets."""
    known = origins_of(model, steps, X)
    return {j for one in known for j in one.inputs}, {*range(X.shape[1])}.difference(*{one.reach for one in known})


def origins_of(model, steps, X):
    """The ``Origin`` of each column of the classifier, as far as it is known."""
    try:
        return column_origins(model, steps, X.names)[0]
    except ValueError:  # every column may depend on all of X
        return [Origin((), frozenset(range(X.shape[1])))] * model.n_features_in_
