"""Columns of X that are the levels of one category, each of which a classifier has as a column of its own."""

import numpy as np

from .._utils.arrays import dense
from .origins import Origin, walked
from .raw_rows import seen
from .signals import factors_of

_NUMBERS = 2**19  # of rows that pass through the steps of a Pipeline together


def level_columns(model, before, X):
    """Pairs of the numbers of such columns, and for each row that of its level (n,), -1 where it has none.

    X : ``RawRows``. Levels of an encoder within the steps are none of these: there the column of X is the category.
    """
    found, known = [], origins_of(model, before, X) if (factors := factors_of(model)) else []
    for factor in factors:
        made_of = [known[j].inputs for j in factor.columns if known[j].is_alone and len(known[j].inputs) == 1]
        columns = tuple(j for inputs in made_of for j in inputs)
        if len({*columns}) == len(factor.columns) and all(map(X.holds_numbers, columns)):
            found.append((columns, factor))
    if not found:
        return []
    codes = [np.full(X.shape[0], -1) for _ in found]
    size = max(1, _NUMBERS // max(X.shape[1], model.n_features_in_))
    for start in range(0, X.shape[0], size):
        rows = slice(start, min(X.shape[0], start + size))
        block = seen(model, before, X.part(rows))
        for own, (_, factor) in zip(codes, found, strict=True):
            is_level = (dense(block[:, factor.columns]) - factor.base) / factor.step > 0.5
            own[rows] = np.where(is_level.sum(axis=1) == 1, is_level.argmax(axis=1), -1)
    return [(columns, own) for (columns, _), own in zip(found, codes, strict=True)]


def origins_of(model, before, X):
    """What each column of the classifier is made of, as far as the steps tell."""
    unknown = [Origin((), False)] * model.n_features_in_
    if before is None:
        return [Origin((j,), True) for j in range(model.n_features_in_)]
    try:
        found, _ = walked(before, X.names)
    except ValueError:
        return unknown
    return found if len(found) == len(unknown) else unknown
