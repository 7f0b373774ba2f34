"""What a user would call the value of a term in a row: "71" of an age, whatever a spline makes of it."""

import numpy as np

from .._utils.names import level_of_name, names_of
from . import terms as _terms
from .raw_rows import input_names
from .table import value_text

_TOGETHER = 3  # values of several columns, at most, that are told beside one another


def sources_of(before, model, X):
    """For each column of the classifier the columns of X that it is made of, () where that is not known."""
    if before is None:
        return [(j,) for j in range(model.n_features_in_)]
    return _terms.sources(before, model, input_names(X.X))[0]


def values_of(term, model, sources, X, rows):
    """The value of a term in each row of X, ``RawRows``; (n,) object.

    It is that of the one column of X that the term is made of. Of level columns it is the level that a row has, of a
    few columns their values side by side, of one column of unknown origin that of the classifier, and else nothing.

    sources : as ``sources_of`` gives them. rows : X as the classifier has it, (n, p).
    """
    columns = term.columns.tolist()
    is_known = all(sources[j] for j in columns)
    places = sorted({place for j in columns for place in sources[j]}) if is_known else []
    if len(places) == 1:
        return X.objects(places[0])
    if (factor := _terms.factors_by_columns(model).get(tuple(columns))) is not None:
        levels = [level_of_name(names_of(model)[j], term.name) for j in columns]
        return np.array(levels, object)[((rows[:, columns] - factor.base) / factor.step).argmax(axis=1)]
    if not places and len(columns) == 1:
        return rows[:, columns[0]].astype(object)
    if not 0 < len(places) <= _TOGETHER:
        return np.full(len(rows), "", object)
    texts = zip(*(map(value_text, X.objects(place)) for place in places), strict=True)
    return np.array([", ".join(each) for each in texts], object)
