"""What tells whether rows have the labels, weights and offsets that they had in a fit, in any order of the rows.

Means over the rows do not change with their order. Weighted by what goes with each row, they change where a label, a
weight or an offset goes with another row.
"""

import numpy as np

_LEAST_SPREAD = 1e-9  # spread of offsets relative to their mean, below which they are constant but for rounding


def offset_facts(offset, y, weight):
    """Mean and standard deviation of the offsets, and their mean if rows of the second class count twice; (3,).

    y, weight : (n,), or (0,) for no weights.
    """
    offset = _of_row(offset)
    counts = weight if len(weight) else np.ones(len(y))
    mean, by_label = (np.average(offset, weights=values) for values in (counts, counts * (1.0 + y)))
    return np.array([mean, np.sqrt(np.average((offset - mean) ** 2, weights=counts)), by_label])


def times_offset(weight, offset, facts):
    """Weights (n,), or (0,) for none, times a number for each row that grows with its offset. facts : its
    ``offset_facts``."""
    offset, (mean, sd, _) = _of_row(offset), facts
    spread = sd + _LEAST_SPREAD * abs(mean) or 1.0
    return (weight if len(weight) else 1.0) * (2.0 + np.tanh((offset - mean) / spread))


def _of_row(offset):
    """A number for each row: its offset, or of classes a sum of these that tells them apart."""
    return offset if offset.ndim == 1 else offset @ np.sqrt(np.arange(1.0, offset.shape[1] + 1))


def times_label(weight, y):
    """Weights (n,), or (0,) for none, twice for rows of the second class; arrays of any device."""
    return (weight if len(weight) else 1.0) * (1.0 + y)
