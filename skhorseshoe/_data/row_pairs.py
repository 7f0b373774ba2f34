"""What tells whether rows have the labels, weights, offsets and groups that they had in a fit, in any order.

Means over the rows do not change with their order. Weighted by what goes with each row, they change where a label, a
weight, an offset or a group goes with another row.
"""

import numpy as np

_LEAST_SPREAD = 1e-9  # spread of offsets relative to their mean, below which they are constant but for rounding
_LEAST_MARK = 0.05  # of a group, so that all rows count; marks reach 1 more, so that they differ much
_ROOTS = np.sqrt([5.0, 2.0, 3.0, 7.0, 11.0, 13.0, 17.0, 19.0])  # of factors; no sum of multiples is whole


def facts_beside(y, weight, offset=None, groups=None):
    """Facts by name about what goes with rows beside labels and weights, None for what is None; and the weights (n,)
    times numbers that tell other offsets and groups apart, None if both are None.

    y, weight : (n,), or (0,) for no weights. groups : the level of each factor that rows have, (n, n_factors).
    """
    facts: dict = {"offset": None, "groups": None}
    if offset is None and groups is None:
        return facts, None
    counts = of_all = weight if len(weight) else np.ones(len(y))
    if offset is not None:
        if offset.ndim > 1:  # of classes: a sum of these tells them apart
            offset = offset @ np.sqrt(np.arange(1.0, offset.shape[1] + 1))
        facts["offset"] = mean, sd, _ = _means(offset, y, counts)
        of_all = of_all * (2.0 + np.tanh((offset - mean) / (sd + _LEAST_SPREAD * abs(mean) or 1.0)))
    if groups is not None:
        marks = _LEAST_MARK + sum(root * levels for root, levels in zip(_ROOTS, groups.T, strict=False)) % 1.0
        facts["groups"] = _means(marks, y, counts)
        of_all = of_all * marks
    return facts, of_all


def _means(values, y, counts):
    """Mean and standard deviation of values, and their mean if rows of the second class count twice; (3,)."""
    mean, by_label = (np.average(values, weights=weight) for weight in (counts, counts * (1.0 + y)))
    return np.array([mean, np.sqrt(np.average((values - mean) ** 2, weights=counts)), by_label])


def times_label(weight, y):
    """Weights (n,), or (0,) for none, twice for rows of the second class; arrays of any device."""
    return (weight if len(weight) else 1.0) * (1.0 + y)
