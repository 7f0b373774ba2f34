"""Sets of columns that the posterior is sure of, and their columns."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ._common import MAX_NAMES, RowsDisplay, favoured

if TYPE_CHECKING:
    from .._types import Axes, Bools, Floats
    from ..groups import CredibleSets


@dataclass(kw_only=True, repr=False, eq=False)
class CredibleSetsDisplay(RowsDisplay):
    """The effects of credible sets of columns with their intervals, and below each set those of its columns.

    Where the interval of a set is narrow and those of its columns are wide, the columns stand in for one another. Make
    it with `from_sets`.

    Parameters
    ----------
    names : sequence of str of length n_rows
        Names of the sets and of the columns, with their probabilities.
    mean : ndarray of shape (n_rows,)
        Posterior means: of the effects of the sets, of the parts that their columns have in these.
    interval : ndarray of shape (2, n_rows)
        Lower and upper ends of the credible intervals.
    level : str
        Level of the intervals, in words.
    is_set : ndarray of shape (n_rows,), bool
        Which rows are sets.
    classes : sequence of length 2 or None, default=None
        The labels; positive effects favour the second one, as the axis then says.

    Attributes
    ----------
    shown_ : ndarray of int
        The rows that are drawn, from the top or from the left.
    points_ : list of matplotlib.lines.Line2D
        The means: of the sets, of their columns.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the sets, of their columns.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, groups, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
    >>> found = groups.credible_sets(HorseshoeProbitClassifier(random_state=0).fit(X, y), X)
    >>> display = plotting.CredibleSetsDisplay.from_sets(found)
    >>> sorted(name[:2] for name in display.names)  # each alone, since no columns are correlated
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    names: list[str]
    mean: Floats
    interval: Floats
    level: str
    is_set: Bools
    classes: list[Any] | None = None

    @classmethod
    def from_sets(cls, found: CredibleSets, *, ax: Axes | None = None) -> Self:
        """Draw what `credible_sets <skhorseshoe.groups.credible_sets>` has found.

        Parameters
        ----------
        found : CredibleSets
            The sets. More than 60 rows are drawn side by side, without names.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : CredibleSetsDisplay
        """
        ends = [name for name in found.sets.columns if name.endswith("%")]
        names, rows, is_set = [], [], []
        for title, row in found.sets.iterrows():
            names.append(_row(title, row["probability"]))
            rows.append(row[["mean", *ends]].to_numpy(np.float64))
            is_set.append(True)
            if row["n_columns"] > 1:
                members: Any = found.members.xs(title)
                names += [f"\N{MIDDLE DOT} {_row(*pair)}" for pair in members["probability"].items()]
                rows += list(members[["mean", *ends]].to_numpy(np.float64))
                is_set += [False] * len(members)
        mean, *interval = np.reshape(rows, (-1, 3)).T
        low, high = (float(name.removesuffix("%")) for name in ends)
        return cls(
            names=names,
            mean=mean,
            interval=np.array(interval),
            level=f"{high - low:g} %",
            is_set=np.array(is_set, bool),
            classes=found.sets.attrs.get("classes"),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        effect = f"effect of one standard deviation on the score: mean and {self.level} interval"
        return self._draw(
            ax,
            np.arange(len(self.mean)),
            self.mean,
            self.interval,
            names=self.names,
            marked=self.is_set,
            labels=("sets, and how probably each holds a signal", "their columns, and how probably each is one"),
            reference=0,
            value_label=f"{effect}{favoured(self.classes)}",
            row_label=None if len(self.mean) <= MAX_NAMES else "sets and their columns",
        )


def _row(name, probability):
    """A name with a probability that is not rounded up."""
    return f"{name}: {floor(1000 * probability) / 10:g} %"
