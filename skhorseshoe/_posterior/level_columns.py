"""Columns of X that are the levels of one category."""

import numpy as np

from .._utils.arrays import dense
from .._utils.names import beginnings_of
from .claim_errors import indicator_sets_of
from .input_rows import blocks_behind
from .origins import Origin, column_origins

_MOST_LEVELS = 50  # that a category without a column for each may have
_FEW_PAIRS = 5.0  # rows expected to have two of some columns by chance, up to which it is no wonder that none has


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
    """Sets of columns that seem levels of a category without a column for each: numbers of columns of X. Their names
    have the same beginning, they hold zeros and ones, and no row has two, though some would if they had nothing to do
    with one another.

    X : ``InputRows``. asked : columns of which one at least is in each set. known : columns of complete sets.
    """
    alike, found = {}, []
    for j, name in enumerate(X.names):
        if j not in known:
            for beginning in beginnings_of(name):
                alike.setdefault(beginning, []).append(j)
    for columns in alike.values():  # the shortest beginning of a name comes first
        if len(columns) > _MOST_LEVELS or asked.isdisjoint(columns) or any({*columns} <= {*one} for one in found):
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
    """The places of the columns of X of which columns of the classifier are made, and of those on which none can
    depend; two sets. Of the others the steps do not tell."""
    known = origins_of(model, steps, X)
    return {j for one in known for j in one.inputs}, {*range(X.shape[1])}.difference(*{one.reach for one in known})


def origins_of(model, steps, X):
    """The ``Origin`` of each column of the classifier, as far as it is known."""
    try:
        return column_origins(model, steps, X.names)[0]
    except ValueError:  # every column may depend on all of X
        return [Origin((), frozenset(range(X.shape[1])))] * model.n_features_in_
