"""The display of a decision curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._posterior.decisions import net_benefit
from ._base import DARK, MUTED, PALE, AxesDisplay, ink
from ._texts import class_names, percent

if TYPE_CHECKING:
    from .._types import Axes, Floats, Labels, Model, RowsLike


class DecisionCurveDisplay(AxesDisplay):
    """Is it worth acting on the probabilities? The net benefit at each threshold, beside acting on all and on nobody.

    Parameters
    ----------
    thresholds, net_benefit : ndarray of shape (n_thresholds,)
        The probabilities from which on one acts, and the net benefit of acting so.
    interval : ndarray of shape (2, n_thresholds)
        Lower and upper ends of the intervals of the net benefit.
    treat_all : ndarray of shape (n_thresholds,)
        The net benefit of acting on all.

    Attributes
    ----------
    line_, all_, none_ : matplotlib.lines.Line2D
        The net benefit of the model, of acting on all and of acting on nobody.
    band_ : matplotlib.collections.PolyCollection
        The intervals.

    Examples
    --------
    >>> display = plotting.DecisionCurveDisplay.from_estimator(clf, X, y)
    >>> bool(display.net_benefit.max() > 0)
    True
    """

    thresholds: Floats
    net_benefit: Floats
    interval: Floats
    treat_all: Floats
    level: float
    label: object

    @classmethod
    def from_estimator(
        cls, estimator: Model, X: RowsLike, y: Labels = None, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Compute the net benefit and draw it; best of rows that the model has not seen.

        Parameters
        ----------
        X, y : see `skhorseshoe.inspection.net_benefit`
            The rows, and their labels.
        **options : see `skhorseshoe.inspection.net_benefit`
            All else that it takes, such as ``groups``.
        """
        frame = net_benefit(estimator, X, y, **options)
        thresholds, (value, *ends, treat_all, _) = frame.index.to_numpy(float), frame.to_numpy(float).T
        numbers: dict[str, Any] = {"net_benefit": value, "interval": np.array(ends), "treat_all": treat_all}
        return cls(thresholds=thresholds, **numbers, **frame.attrs["about"]).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        ax = self._axes(ax)
        black, dark, muted, pale = (ink(ax, colour) for colour in ("black", DARK, MUTED, PALE))
        t, best = self.thresholds, max(0.0, *self.net_benefit, *self.treat_all)
        self.band_ = ax.fill_between(
            t, *self.interval, color=pale, linewidth=0, label=f"{percent(self.level)} interval"
        )
        self.line_ = ax.plot(t, self.net_benefit, color=dark, linewidth=1.8, label="act on the model")[0]
        self.all_ = ax.plot(t, self.treat_all, color=muted, linewidth=1.4, linestyle="--", label="act on all")[0]
        self.none_ = ax.plot(t, 0 * t, color=black, linewidth=0.8, label="act on nobody")[0]
        ax.set_ylim(-0.15 * best - 1e-9, 1.15 * max(best, self.interval.max()) + 1e-9)
        (label,) = class_names([self.label])
        return self._finish(f"threshold: the probability of {label} from which on one acts", "net benefit")
