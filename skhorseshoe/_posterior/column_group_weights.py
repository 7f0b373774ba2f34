"""The matrix of weights for groups of columns."""

from collections.abc import Mapping, Sized
from numbers import Real

import numpy as np
import pandas as pd
from scipy.sparse import csc_array

from .._utils.names import finder, names_of


def column_group_weights(groups, model):
    """A matrix (p, k) with the weights of a model's columns in each of k groups, as ``group_summary`` takes them."""
    if isinstance(groups, Mapping) and not groups:
        raise ValueError("groups is empty: give one group at least.")
    if not isinstance(groups, Mapping):
        raise TypeError(
            f"groups must be a dict of lists of columns, or of dicts of columns and weights; got {groups!r:.80}."
        )
    p = model.n_features_in_
    cure = f" Give names, or numbers below {p}."
    if not hasattr(model, "feature_names_in_") and not hasattr(model, "_column_labels"):
        cure += " It was fitted without names: fit it on a table, in a Pipeline with set_output(transform='pandas')."
    find = finder(names_of(model), "columns of this model", cure, numbered=True)
    rows, columns, values = [], [], []
    for k, (title, group) in enumerate(groups.items()):
        # A Series may hold columns, or weights whose index has the columns.
        if isinstance(group, str | pd.Series) or not isinstance(group, Sized) or not len(group):
            raise ValueError(
                f"The group {title!r} must be a list of columns, one at least, or a dict of columns and weights (of a "
                f"Series .tolist() or .to_dict()); got {group!r}."
            )
        members = [find(column, f"The group {title!r}") for column in group]
        if len({*members}) < len(members):
            raise ValueError(f"The group {title!r} has a column more than once, by name or number; got {group!r:.80}.")
        rows += members
        columns += [k] * len(members)
        weights = list(group.values()) if isinstance(group, Mapping) else [1.0] * len(members)
        if not all(isinstance(weight, Real) and np.isfinite(weight) for weight in weights):
            raise ValueError(
                f"The weights of columns in the group {title!r} must be finite numbers; got {weights!r:.80}."
            )
        values += map(float, weights)
    return csc_array((values, (rows, columns)), shape=(p, len(groups)))
