"""The least effect that counts, of a standard deviation of a column or of the difference between two levels.

A standard deviation is no change that a row can make where a column holds two values, and for a rare level it is a
small part of the difference between them.
"""

from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._utils.arrays import dense
from .._utils.memmap import blocks
from .classes import has_sizes

_BETWEEN = 1e-5  # share of a column's variance, below which values between its smallest and its largest do not count


class LeastEffects(NamedTuple):
    """What the effect of each column is the effect of, and the least that counts."""

    scale: np.ndarray  # (p,) the change of a column
    least: np.ndarray  # (p,) the least effect of that
    has_levels: np.ndarray  # (p,) bool, whether it is the difference between its two values
    per_sd: float  # the least effect of terms that have other columns
    between_levels: float | None  # that of terms that have none; None if it is not asked for

    def for_columns(self, columns):
        """The least effect of a term with these columns."""
        return self.least[columns[0]] if self.has_levels[columns].all() else self.per_sd


class LevelPoints(NamedTuple):
    """The different rows (m, k) of the columns of a term that hold two values each, as those of a category do.

    In place of the root of the term: the size of its effect is the largest difference between two of these rows.
    """

    values: np.ndarray


def check_effect(effect):
    """Raise a ValueError unless ``effect`` is a number from 0 on, or a dict of such numbers."""
    values = effect.values() if isinstance(effect, Mapping) else [effect]
    is_known = not isinstance(effect, Mapping) or (effect and effect.keys() <= {"sd", "levels"})
    if not is_known or not all(map(_is_size, values)):
        raise ValueError(
            "effect must be a number from 0 on, or a dict such as {'sd': 0.1, 'levels': 0.3}, with numbers for one "
            f"standard deviation and for the difference between two levels; got {effect!r:.80}."
        )


def check_difference(effect):
    """Raise a ValueError unless ``effect`` is a number from 0 on or None."""
    if effect is not None and not _is_size(effect):
        raise ValueError(
            "effect must be a number from 0 on, the least difference in the score that counts, or None; got "
            f"{effect!r:.80}."
        )


def _is_size(value):
    return isinstance(value, Real) and not isinstance(value, bool) and value >= 0


def asks_for_levels(effect):
    """Whether ``effect`` has a number of its own for the difference between two levels."""
    return isinstance(effect, Mapping) and "levels" in effect


def least_effects(model, effect, default, X=None):
    """``LeastEffects`` for a checked ``effect``. default : number for a standard deviation, where a dict has none. X :
    the rows of the fit, as the classifier has them, on the host; needed if ``asks_for_levels``."""
    sd, p = model._column_sd, model.n_features_in_
    per_sd = effect.get("sd", default) if isinstance(effect, Mapping) else effect
    if not asks_for_levels(effect):
        return LeastEffects(sd, np.full(p, per_sd), np.zeros(p, bool), per_sd, None)
    if has_sizes(model):
        raise ValueError("effect has 'levels', which is of two classes or classes in order: give one number.")
    if X is None:
        raise ValueError(
            "effect has 'levels', the least difference between two levels: give X, the rows of the fit, which tell the "
            "columns that have two."
        )
    low, high = np.full(p, np.inf), np.full(p, -np.inf)
    for rows in blocks(X):
        block = X[rows]
        low = np.minimum(low, dense(block.min(axis=0)).ravel())
        high = np.maximum(high, dense(block.max(axis=0)).ravel())
    # The mean of (high - x) (x - low), which is 0 if no value lies between these.
    between = (high - model._column_means) * (model._column_means - low) - sd**2
    has_levels = (sd > 0) & (np.abs(between) <= _BETWEEN * sd**2)
    scale = np.where(has_levels, high - low, sd)
    least = np.where(has_levels, effect["levels"], per_sd)
    return LeastEffects(scale, least, has_levels, per_sd, effect["levels"])


def level_points(X, columns):
    """``LevelPoints`` of these columns of X."""
    points = np.empty((0, len(columns)))
    for rows in blocks(X):
        points = np.unique(np.vstack([points, np.asarray(dense(X[rows][:, columns]), np.float64)]), axis=0)
    return LevelPoints(points)
