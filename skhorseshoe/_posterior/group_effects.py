"""The posterior of the effects of groups of rows, as a frame."""

import numpy as np
import pandas as pd

from .._utils.memmap import cut
from .estimates import interval
from .grouped_prediction import by_factor, is_grouped
from .slopes import slopes_of
from .summary import by_heading, favoured, in_lines, share_between
from .table import Summary

_DRAWS_AT_A_TIME = 2**22  # draws to read at a time


def effects_frame(model, name, level):
    """See ``HorseshoeProbitClassifier.group_effects``. name : of the factor."""
    if not is_grouped(model):
        raise ValueError("This model was fitted without groups: fit(X, y, groups=...) gives each group an effect.")
    labels = by_factor(model, "groups_")
    name = next(iter(labels)) if name is None and len(labels) == 1 else name
    if name not in labels:
        known = (
            "one factor, which has no name: leave factor out"
            if None in labels
            else f"the factors {[*labels]}: give one of them"
        )
        raise ValueError(f"factor={name!r:.80}, and the model was fitted with {known}.")
    labels, slopes = labels[name], slopes_of(model, name)
    n, columns = len(labels), _columns(model, name, level)
    for column, effect in slopes.items():
        columns |= {f"{column}: {key}": values for key, values in _columns(model, effect, level).items()}
    frame = Summary(columns, index=pd.Index(listed(labels), name=name or "group", tupleize_cols=False))
    frame.attrs["classes"] = model.classes_.tolist()
    at = f", at the means of {', '.join(slopes)}, and to the coefficients of these" if slopes else ""
    frame.attrs["header"] = in_lines(
        f"What each of {n} groups{'' if name is None else f' of {name!r}'} adds to the score of its rows"
        f"{at}; "
        f"{share_between(model, name, level)}; {favoured(model, 'effects')}"
    )
    return frame


def _columns(model, effect, level):
    """The columns of a frame about an effect of groups."""
    draws, moments = by_factor(model, "group_effect_draws_")[effect], model.group_effect_moments_.items()
    low, high = np.empty((2, draws.shape[2]))
    for block in cut(0, draws.shape[2], max(1, _DRAWS_AT_A_TIME // max(1, draws[..., 0].size))):
        low[block], high[block] = interval(draws[..., block].astype(np.float64), level)
    return {
        **{key: values[effect] if isinstance(values, dict) else values for key, values in moments},
        **by_heading((low, high), level),
    }


def listed(labels):
    """The labels of groups, a list."""
    return (pd.Index(labels) if labels.dtype in ("M8[ns]", "m8[ns]") else labels).tolist()  # NumPy would make them ints
