"""The posterior of the effects of groups of rows, as a frame."""

import numpy as np
import pandas as pd

from .._utils.memmap import cut
from .estimates import interval
from .grouped_prediction import is_grouped
from .summary import favoured, in_lines, interval_headings, share_between
from .table import Summary

_DRAWS_AT_A_TIME = 2**22  # draws to read at a time


def effects_frame(model, level):
    """See ``HorseshoeProbitClassifier.group_effects``."""
    if not is_grouped(model):
        raise ValueError("This model was fitted without groups: fit(X, y, groups=...) gives each group an effect.")
    draws, n = model.group_effect_draws_, len(model.groups_)
    low, high = np.empty((2, n))
    for block in cut(0, n, max(1, _DRAWS_AT_A_TIME // max(1, draws[..., 0].size))):
        low[block], high[block] = interval(draws[..., block].astype(np.float64), level)
    frame = Summary(
        {
            "mean": model.group_effect_moments_["mean"],
            "sd": model.group_effect_moments_["sd"],
            **dict(zip(interval_headings(level), (low, high), strict=True)),
        },
        index=pd.Index(labels_of_groups(model), name="group", tupleize_cols=False),
    )
    frame.attrs["classes"] = model.classes_.tolist()
    frame.attrs["header"] = in_lines(
        f"What each of {n} groups adds to the score of its rows; {share_between(model, level)}; "
        f"{favoured(model, 'effects')}"
    )
    return frame


def labels_of_groups(model):
    """The labels of a model's groups, a list."""
    labels = model.groups_
    return (pd.Index(labels) if labels.dtype in ("M8[ns]", "m8[ns]") else labels).tolist()  # NumPy would make them ints
