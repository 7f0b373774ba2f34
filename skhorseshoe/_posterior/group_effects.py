"""The posterior of the effects of groups of rows, as a frame."""

import numpy as np
import pandas as pd

from .._utils.memmap import cut
from .estimates import interval
from .grouped_prediction import by_factor, is_grouped
from .summary import favoured, in_lines, interval_headings, share_between
from .table import Summary

_DRAWS_AT_A_TIME = 2**22  # draws to read at a time


def effects_frame(model, name, level):
    """See ``HorseshoeProbitClassifier.group_effects``. name : of the factor."""
    if not is_grouped(model):
        raise ValueError("This model was fitted without groups: fit(X, y, groups=...) gives each group an effect.")
    labels = by_factor(model, "groups_")
    if name not in labels:
        known = (
            "one factor, which has no name: leave factor out"
            if None in labels
            else f"the factors {[*labels]}: give one of them"
        )
        raise ValueError(f"factor={name!r:.80}, and the model was fitted with {known}.")
    labels, draws = labels[name], by_factor(model, "group_effect_draws_")[name]
    n, moments = len(labels), model.group_effect_moments_.items()
    low, high = np.empty((2, n))
    for block in cut(0, n, max(1, _DRAWS_AT_A_TIME // max(1, draws[..., 0].size))):
        low[block], high[block] = interval(draws[..., block].astype(np.float64), level)
    frame = Summary(
        {
            **{key: values if name is None else values[name] for key, values in moments},
            **dict(zip(interval_headings(level), (low, high), strict=True)),
        },
        index=pd.Index(listed(labels), name=name or "group", tupleize_cols=False),
    )
    frame.attrs["classes"] = model.classes_.tolist()
    frame.attrs["header"] = in_lines(
        f"What each of {n} groups{'' if name is None else f' of {name!r}'} adds to the score of its rows; "
        f"{share_between(model, name, level)}; {favoured(model, 'effects')}"
    )
    return frame


def listed(labels):
    """The labels of groups, a list."""
    return (pd.Index(labels) if labels.dtype in ("M8[ns]", "m8[ns]") else labels).tolist()  # NumPy would make them ints
