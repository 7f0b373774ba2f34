"""Displays of posterior predictive checks, and of a decision curve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._posterior.decisions import net_benefit
from .._posterior.predictive_check import predictive_check
from .._posterior.table import interval_ends
from ._base import DARK, MAX_NAMES, MUTED, PALE, AxesDisplay, RowsDisplay, ink
from ._texts import class_names, drawable, percent

if TYPE_CHECKING:
    from .._types import Axes, Bools, DataFrame, Floats, Labels, Model, RowsLike


class PredictiveCheckDisplay(RowsDisplay):
    """Does the model fit? Observed shares of a class beside the bands in which they are if the model is right.

    A line is a band, with a small bar where the model predicts the share; the mark is what was observed, filled where
    it is outside.

    Parameters
    ----------
    names : sequence of str of length n_rows
        The ranges or levels of a column, or the labels of groups.
    observed, predicted : ndarray of shape (n_rows,)
        Shares of the second class.
    band : ndarray of shape (2, n_rows)
        Lower and upper ends of the bands.
    outside : ndarray of shape (n_rows,), bool
        Which observed shares are outside.
    level : float
        Level of the bands, in (0, 1).
    by : str
        What the rows are put together by.

    Attributes
    ----------
    predicted_ : matplotlib.lines.Line2D
        The predicted shares.

    Examples
    --------
    >>> display = plotting.PredictiveCheckDisplay.from_estimator(clf, X, y, by="x1", bins=5)
    >>> len(display.names)
    5
    """

    observed: Floats
    predicted: Floats
    band: Floats
    outside: Bools
    level: float
    label: object
    by: str

    @classmethod
    def from_estimator(
        cls, estimator: Model, X: RowsLike, y: Labels, by: Any, *, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Compute shares and bands and draw them.

        Parameters
        ----------
        X, y, by : see `skhorseshoe.inspection.predictive_check`
            The rows with their labels, and what to put them together by.
        **options : see `skhorseshoe.inspection.predictive_check`
            All else that it takes, such as ``groups``.
        """
        return cls.from_frame(predictive_check(estimator, X, y, by, **options), ax=ax)

    @classmethod
    def from_frame(cls, frame: DataFrame, *, ax: Axes | None = None) -> Self:
        """Draw a table of shares, or some of its rows in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            As `predictive_check <skhorseshoe.inspection.predictive_check>` gives it. More than 60 rows are drawn side
            by side, without names.
        """
        ends = interval_ends(frame)
        if len(ends) != 2 or "level" not in frame.attrs:
            raise ValueError(f"frame must be a table of inspection.predictive_check; got {type(frame).__name__}.")
        return cls(
            names=frame.index.tolist(),
            observed=frame["observed"].to_numpy(),
            predicted=frame["predicted"].to_numpy(),
            band=frame[ends].to_numpy().T,
            outside=frame["outside"].to_numpy(),
            level=frame.attrs["level"],
            label=frame.attrs["classes"][1],
            by=str(frame.index.name),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        rows, few = np.arange(len(self.observed)), len(self.observed) <= MAX_NAMES
        (label,), (by,), share = class_names([self.label]), drawable([self.by]), f"{percent(self.level)} band"
        marks = self.outside, (f"observed, outside the {share}", "observed")
        words = f"share of {label}: observed, and predicted (bar) with its {share}"
        self._draw(ax, rows, self.observed, self.band, marks=marks, label=words, row_label=by, line=None)
        at = (self.predicted, rows) if few else (rows, self.predicted)
        (self.predicted_,) = self.ax_.plot(
            *at, "|" if few else "_", color=ink(self.ax_, DARK), markersize=9 if few else 3, zorder=5
        )
        if few:
            self.ax_.set_ylabel(by)
        return self


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
