"""The value of a term in a row in the user's words: "71" for an age, also if a spline makes columns of it."""

import numpy as np

from .._utils.names import level_of_name, names_of
from . import terms as _terms
from .level_columns import levels_of_rows
from .table import value_text

_MOST_COLUMNS = 3  # most columns whose values are shown for one term
_NEAR = 1e-3  # distance from a level, in steps from none to it, up to which a row has it


def values_of(term, model, origins, X, rows):
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
        levels, level = [level_of_name(name, term.name) for name in names], levels_of_rows(rows, indicators)
        of_level = np.vstack([np.eye(len(columns)), np.zeros(len(columns))])[level]  # the last one where none is
        distance = abs((rows[:, columns] - indicators.base) / indicators.step - of_level).max(axis=1)
        return np.where(distance < _NEAR, np.array([*levels, "none"], object)[level], "mixed")
    if not places and len(columns) == 1:
        return rows[:, columns[0]].astype(object)
    if not 0 < len(places) <= _MOST_COLUMNS:
        return np.full(len(rows), "", object)
    texts = zip(*(map(value_text, X.objects(place)) for place in places), strict=True)
    return np.array([", ".join(each) for each in texts], object)
