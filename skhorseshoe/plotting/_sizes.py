"""How many columns predict new rows as well as all of them do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from .._posterior.dss_cv import SMALL
from ._common import MUTED, PALE, Display, check_count
from ._selection import selector_in

if TYPE_CHECKING:
    from .._types import Axes, Floats, Model, NDArray


@dataclass(kw_only=True, repr=False, eq=False)
class ModelSizeDisplay(Display):
    """What is lost on rows held out with ever more columns, against the model of all columns.

    Each point is the log score of the summaries of that size less that of the full model, with one standard error on
    each side; the dashed line is the full model, and losses in the grey band, of less than 4 nats, are small. The scale
    is linear about them and, for large losses, logarithmic beyond. Make it with `from_estimator`.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,), int
        Numbers of columns, ascending.
    difference : ndarray of shape (n_sizes,)
        Log score less that of the full model, in nats, the unit of the log loss (natural logarithms), summed over the
        rows that were held out.
    se : ndarray of shape (n_sizes,)
        Standard errors of these.
    suggested_size : int
        The suggested number of columns, one of ``sizes``.

    Attributes
    ----------
    shown_ : ndarray of int
        The sizes that are drawn, from the left, as positions in ``sizes``.
    points_ : list of matplotlib.lines.Line2D
        The differences: of the suggested size, of the others.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the suggested size, of the others.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, datasets, plotting
    >>> X, y, coef = datasets.make_sparse_probit(500, 10, random_state=0)
    >>> clf = HorseshoeProbitClassifier(n_iter=500, burn_in=500, random_state=0)
    >>> display = plotting.ModelSizeDisplay.from_estimator(HorseshoeSelector(clf, cv=3).fit(X, y))
    >>> display.suggested_size  # as many as matter
    6
    """

    sizes: NDArray[np.integer]
    difference: Floats
    se: Floats
    suggested_size: int

    @classmethod
    def from_estimator(cls, estimator: Model, *, beyond: int | None = 15, ax: Axes | None = None) -> Self:
        """Draw the attribute ``sizes_`` of a fitted selector.

        Parameters
        ----------
        estimator : HorseshoeSelector or Pipeline
            A selector that was fitted with a ``cv``, or a fitted Pipeline with one such step.
        beyond : int or None, default=15
            Number of sizes to draw after the suggested one. None draws all.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : ModelSizeDisplay
        """
        selector = selector_in(estimator)[1]
        found = selector.sizes_
        if found is None:
            raise ValueError("This selector was fitted without cross-validation: fit it with rule='dss', cv=5.")
        shown = {name: found[name] for name in ("sizes", "difference", "se")}
        return cls(**shown, suggested_size=selector.suggested_size_).plot(beyond=beyond, ax=ax)

    def plot(self, *, beyond: int | None = 15, ax: Axes | None = None) -> Self:
        if beyond is not None:
            check_count("beyond", beyond, smallest=0)
        ax = self._axes(ax)
        (suggested,) = np.flatnonzero(self.sizes == self.suggested_size)
        self.shown_ = np.arange(len(self.sizes))[: None if beyond is None else suggested + 1 + beyond]
        sizes, value, se = self.sizes[self.shown_], self.difference[self.shown_], self.se[self.shown_]
        ax.axhline(0, color="black", linewidth=0.8, linestyle="--", zorder=1)
        ax.axhspan(-SMALL, 0, color=PALE, linewidth=0, zorder=0)
        ax.plot(sizes, value, color=MUTED, linewidth=0.8, zorder=1)
        labels = f"suggested: {self.suggested_size} column{'' if self.suggested_size == 1 else 's'}", "other sizes"
        ends = np.stack([value - se, value + se])
        self._mark(sizes, value, ends, self.shown_ == suggested, labels, few=True, upright=True)
        self._scale(4 * max(se[suggested], SMALL / 2), max(np.abs(value)))
        meaning = f"columns (dashed: all of them; bars: \N{PLUS-MINUS SIGN} 1 standard error; grey: {SMALL:g} nats)"
        return self._finish(meaning, "log score less the full model's, nats\n(below 0: a higher log loss of all rows)")

    def _scale(self, linear, largest):
        """In proportion near the full model, logarithmic beyond; whole numbers of columns."""
        from matplotlib.ticker import FixedLocator, MaxNLocator

        self.ax_.xaxis.set_major_locator(MaxNLocator(integer=True))
        if largest > linear:
            self.ax_.set_yscale("symlog", linthresh=linear)
            powers = 10.0 ** np.arange(np.floor(np.log10(linear)), np.ceil(np.log10(largest)))
            ticks = np.outer(powers, (1, 2, 5)).ravel()
            ticks = ticks[(ticks > linear / 5) & (ticks < largest)]
            self.ax_.yaxis.set_major_locator(FixedLocator(np.r_[-ticks, 0, ticks]))
            self.ax_.yaxis.set_major_formatter("{x:g}")
