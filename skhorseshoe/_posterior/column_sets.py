"""Sets of columns as users give them: checked, with the matrix of their weights."""

from collections.abc import Mapping, Sized
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csc_array

from .._utils.names import finder, names_of, printable

LEAVE_OUT = " missing='ignore' leaves out names that are no columns."


class ColumnSets(NamedTuple):
    """Sets of a model's columns, as ``summary_of_sets`` takes them."""

    sets: dict[Any, Any]  # those that have a column, as they were given
    weights: csc_array  # (p, k) of the columns in each of these
    left_out: str  # in words, what ``missing="ignore"`` has left out


def checked_sets(sets, model, missing="raise"):
    """``ColumnSets``. missing : as for ``finder``."""
    if isinstance(sets, Mapping) and not sets:
        raise ValueError("sets is empty: give one set of columns at least.")
    if not isinstance(sets, Mapping):
        raise TypeError(
            f"sets must be a dict of lists of columns, or of dicts of columns and weights; got {sets!r:.80}."
        )
    p = model.n_features_in_
    cure = f" Give names, or numbers below {p}."
    if not hasattr(model, "feature_names_in_") and not hasattr(model, "_column_labels"):
        cure += " It was fitted without names: fit it on a table, in a Pipeline with set_output(transform='pandas')."
    find = finder(names_of(model), "columns of this model", cure, numbered=True, missing=missing, choice=LEAVE_OUT)
    rows, columns, values, kept, n_unknown = [], [], [], {}, 0
    for title, given in sets.items():
        # A Series may hold columns, or weights whose index has the columns.
        if isinstance(given, str | pd.Series) or not isinstance(given, Sized) or not len(given):
            raise ValueError(
                f"The set {title!r} must be a list of columns, one at least, or a dict of columns and weights (of a "
                f"Series .tolist() or .to_dict()); got {given!r}."
            )
        found = [find(column, f"The set {title!r}") for column in given]
        members = [j for j in found if j is not None]
        if len({*members}) < len(members):
            raise ValueError(f"The set {title!r} has a column more than once, by name or number; got {given!r:.80}.")
        weights = list(given.values()) if isinstance(given, Mapping) else [1.0] * len(found)
        if not all(isinstance(weight, Real) and np.isfinite(weight) for weight in weights):
            raise ValueError(
                f"The weights of columns in the set {title!r} must be finite numbers; got {weights!r:.80}."
            )
        n_unknown += len(found) - len(members)
        if members:
            values += [float(weight) for j, weight in zip(found, weights, strict=True) if j is not None]
            rows += members
            columns += [len(kept)] * len(members)
            kept[title] = given
    matrix = csc_array((values, (rows, columns)), shape=(p, len(kept)))
    return ColumnSets(kept, matrix, left_out(n_unknown, len(sets) - len(kept), len(sets), "sets", names_of(model)))


def left_out(n_names, n_sets, n_given, kind, names):
    """In words what ``missing="ignore"`` has left out, or ""; a ValueError if nothing is left.

    n_sets : those of which nothing is left, of the n_given. kind : what they are. names : of the columns.
    """
    if n_sets == n_given:
        columns = ", ".join(printable(repr(name)) for name in names[:3])
        raise ValueError(f"None of the {kind} has a column of this model, whose columns are {columns}, ...")
    if not n_names and not n_sets:
        return ""
    names = "1 name that is no column" if n_names == 1 else f"{n_names} names that are no columns"
    return f". Left out: {names}, {n_sets} of {n_given} {kind} as a whole"
