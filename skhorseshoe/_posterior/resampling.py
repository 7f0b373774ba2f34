"""Draws of the population that rows are from, by Rubin's (1981) Bayesian bootstrap of rows or of whole groups."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._data.factors import called
from .._data.input_table import warn_if_reordered
from .._data.weights import check_some_weights
from .._utils.names import printable
from .._utils.warn import warn
from .grouped_prediction import by_factor, is_grouped

N_DRAWS = 1000
_NUMBERS_HELD = 2**22  # of draws times rows
_LEAST_GROUPS = 5  # from which on the interval is near its level
_ALONE = (
    "This model was fitted with groups. Without groups= each row is taken for a new group of its own: if rows belong "
    "together, the {} too narrow. Give groups=, a label for each row."
)
_LEFT_OUT = (
    "{} is not given, so that each row is taken for a new group of that factor: if rows belong together by it, the "
    "band is too narrow. Give the labels of all factors of the fit."
)
_ONE = (
    "{} one label in these rows, and one does not tell how much such groups differ. So {} within it: the intervals are "
    "those of this group, and too narrow for another."
)
_FEW = (
    "{} has {} labels in these rows, which are drawn anew as wholes: so few do not tell well how much such groups "
    "differ, and the intervals are too narrow."
)


class Units(NamedTuple):
    """What is drawn: groups with all their rows, or rows. A row of weight w is w rows."""

    codes: Any  # (n,) the unit of each row
    shape: Any  # (n_units,) of the gamma distribution of its weight: the rows that it is, or 1 for a group; 0 for none
    within: Any  # (n,) how many rows of its unit a row is
    told: str  # of which single groups all rows are, in words

    @property
    def counts(self):
        """How many rows each row is; (n,)."""
        return self.shape[self.codes] * self.within

    def draws(self, n_held, random_state):
        """Yields blocks (k, n_units) of draws of weights, which need not sum to one. n_held : numbers for each draw."""
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        size = max(1, min(N_DRAWS, _NUMBERS_HELD // n_held))
        for start in range(0, N_DRAWS, size):
            yield rng.standard_gamma(self.shape, (min(size, N_DRAWS - start), len(self.shape)))


def row_counts(X, sample_weight, n):
    """How many rows each of the n rows of X is; (n,) float64."""
    warn_if_reordered(X, sample_weight=sample_weight)
    return np.ones(n) if sample_weight is None else check_some_weights(sample_weight, np.empty((n, 0)))


def rows_alone(counts, told=""):
    """The ``Units`` where each row is drawn by itself."""
    return Units(np.arange(len(counts)), counts, np.ones(len(counts)), told)


def units_of(matched, counts):
    """The ``Units`` of rows with these counts (n,): the groups of the factor with the fewest labels, but more than one,
    or rows. matched : ``Matched``, or None for rows without groups."""
    if matched is None:
        return rows_alone(counts)
    labels = {k: len(np.unique(matched.own[counts > 0, k])) for k in matched.given}
    names, single = matched.given, [k for k in labels if labels[k] == 1]
    drawn = min(labels.keys() - single, key=lambda k: (labels[k], k), default=None)
    told = "".join(f" of one {printable(names[k] or 'group')}" for k in single)
    if single:
        have = f"{' and '.join(called(names[k]) for k in single)} {'has' if len(single) == 1 else 'have'}"
        warn(_ONE.format(have, "rows are drawn" if drawn is None else f"{called(names[drawn])} are drawn"))
    if drawn is None:
        return rows_alone(counts, told)
    if labels[drawn] < _LEAST_GROUPS:
        warn(_FEW.format(called(names[drawn]), labels[drawn]))
    codes = matched.own[:, drawn]
    return Units(codes, (np.bincount(codes, counts) > 0).astype(float), counts, told)


def warn_of_rows_alone(classifier, matched, is_band=False):
    """Warn if a model with groups gets rows without. is_band : whether labels of every factor are needed, since the
    outcomes are drawn with effects of each; else whole groups of one are drawn."""
    if matched is None and is_grouped(classifier):
        warn(_ALONE.format("band is" if is_band else "intervals are"))
    elif matched is not None and is_band:
        names = [*by_factor(classifier, "groups_")]
        if left_out := [name for k, name in enumerate(names) if k not in matched.given]:
            warn(_LEFT_OUT.format(called(left_out[0])))
