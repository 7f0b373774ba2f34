"""Displays of effects: of columns on the probability, and of the groups of rows on the score."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .._posterior.comparisons import check_told
from .._posterior.estimates import excludes_zero
from .._posterior.marginal_effects import marginal_effects
from .._posterior.mixin import level_of
from .._posterior.pipeline import unwrap
from .._posterior.table import interval_ends
from .._utils.counts import check_count
from ._base import MAX_NAMES, PALE, IntervalsDisplay, ink, spaced, table_intervals
from ._texts import class_names, favoured_line

if TYPE_CHECKING:
    from .._types import Axes, DataFrame, Model, NDArray, RowsLike, Sequence

_RATIOS = 1, 2, 5, 3, 1.5, 0.7, 1.2, 0.8, 1.1, 0.9, 1.05, 0.95, 1.02, 0.98, 1.01, 0.99  # as ticks, the first ones first


class EffectsDisplay(IntervalsDisplay):
    """Average marginal effects with their intervals: a forest plot.

    A row is a column of numbers and what it changes by, or two levels of a category; the contrasts of one column stand
    together between thin lines. Differences are in percentage points, ratios on a scale of logarithms.

    Parameters
    ----------
    names : sequence of str of length n_rows
        Names of the rows, with what the numbers change by.
    mean : ndarray of shape (n_rows,)
        Posterior means, as differences of probabilities, in [-1, 1]; of ratios medians.
    level : str
        Level of the intervals, in words.
    features : sequence of str of length n_rows
        The column of each row.
    classes : sequence of length 2 or None, default=None
        The labels; the effects are on the probability of the second one, as the axis then says.
    comparison : {"difference", "ratio", "odds_ratio"}, default="difference"
        What the effects are.

    Examples
    --------
    >>> from skhorseshoe import inspection
    >>> effects = inspection.marginal_effects(clf, X).sort_values("mean", ascending=False)
    >>> display = plotting.EffectsDisplay.from_frame(effects.head(3))
    >>> sorted(display.names)
    ['x1 (+1)', 'x3 (+1)', 'x4 (+1)']
    """

    level: str
    features: list[str]
    classes: list[Any] | None = None
    comparison: Literal["difference", "ratio", "odds_ratio"] = "difference"

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        X: RowsLike,
        features: str | int | Sequence[str | int] | None = None,
        *,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Compute the effects and draw them.

        Parameters
        ----------
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            The rows to average over.
        features : see `skhorseshoe.inspection.marginal_effects`
            The columns.
        **options : see `skhorseshoe.inspection.marginal_effects`
            All else that it takes, such as ``comparison``.
        """
        return cls.from_frame(marginal_effects(estimator, X, features, **options), ax=ax)

    @classmethod
    def from_frame(cls, frame: DataFrame, *, ax: Axes | None = None) -> Self:
        """Draw a table of effects, or some of its rows in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            As `marginal_effects <skhorseshoe.inspection.marginal_effects>` gives it, in one call: what ``pd.concat``
            makes of several no longer tells what its numbers are. More than 60 rows are drawn side by side, without
            names.
        """
        if len(interval_ends(frame)) != 2 or "change" not in frame or not {"mean", "median"} & {*frame.columns}:
            raise ValueError(
                "frame must be a table of inspection.marginal_effects, with the columns change, mean or median and the "
                f"ends of an interval; got {type(frame).__name__} with {[*getattr(frame, 'columns', ())]!r:.100}."
            )
        check_told(frame, "frame")
        known = frame.attrs["features"]
        features = [known.get(str(label), str(label)) for label in frame.index]
        names = [
            str(label) if change == "level" else str(label).replace(feature, f"{feature} ({change})", 1)
            for label, feature, change in zip(frame.index, features, frame["change"], strict=True)
        ]
        mean, interval, level = table_intervals(frame)
        known = {name: frame.attrs[name] for name in ("classes", "comparison")}
        display = cls(names=names, mean=mean, interval=interval, level=level, features=features, **known)
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        of_class = "" if self.classes is None else f" of {class_names(self.classes)[1]}"
        rows = np.arange(len(self.mean))
        if self.comparison == "difference":
            label = f"change of the probability{of_class}\nin percentage points: mean and {self._what}"
            values, ends, marks, line = 100 * self.mean, 100 * self.interval, self._clear(), 0
        else:
            what = {"ratio": "ratio of probabilities", "odds_ratio": "odds ratio"}[self.comparison]
            label = f"{what}{of_class}: median and {self._what}"
            values, ends, line = self.mean, self.interval, 1
            marks = excludes_zero(np.log(ends)), (f"{self._what} excludes 1", "includes 1")
        self._draw(ax, rows, values, ends, marks=marks, label=label, row_label="columns and contrasts", line=line)
        if line:
            self._scale_of_ratios()
        several = {feature for feature in self.features if self.features.count(feature) > 1}
        if len(self.mean) <= MAX_NAMES:
            for k, pair in enumerate(pairwise(self.features)):
                if pair[0] != pair[1] and several & {*pair}:
                    self.ax_.axhline(k + 0.5, color=ink(self.ax_, PALE), linewidth=0.8, zorder=0)
        return self

    def _scale_of_ratios(self):
        """A scale of logarithms, with round ratios as ticks."""
        ends = np.log([*self.interval.ravel(), 1.0])
        margin = 0.04 * max(np.ptp(ends), 0.02)
        limits = ends.min() - margin, ends.max() + margin
        powers = [float(f"1e{power}") for power in range(-9, 10)]
        candidates = [1.0, *(ratio * power for ratio in _RATIOS for power in powers)]
        ticks = spaced(candidates, np.log, limits, 0.13 * np.ptp(limits))
        ax, along = self.ax_, "x" if len(self.mean) <= MAX_NAMES else "y"
        ax.set(**{f"{along}scale": "log", f"{along}lim": np.exp(limits)})
        ax.minorticks_off()
        ax.set(**{f"{along}ticks": ticks, f"{along}ticklabels": [f"{tick:.4g}" for tick in ticks]})


class GroupEffectsDisplay(IntervalsDisplay):
    """Effects of the groups that rows belong to, from the largest to the smallest: which patients differ from others.

    It draws a model that was fitted with ``groups``.

    Parameters
    ----------
    names : sequence of length n_groups
        Labels of the groups.
    mean : ndarray of shape (n_groups,)
        Posterior means of the effects on the score.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier, plotting
    >>> rng = np.random.default_rng(0)
    >>> patient, X = np.repeat(np.arange(20), 30), rng.standard_normal((600, 3))
    >>> y = X[:, 0] + 0.1 * (patient - 10) + rng.standard_normal(600) > 0
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y, groups=patient)
    >>> display = plotting.GroupEffectsDisplay.from_estimator(clf)
    >>> bool(display.names[display.shown_[0]] > display.names[display.shown_[-1]])
    True
    """

    level: float
    classes: NDArray[Any] | None = None
    favours: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        *,
        factor: str | None = None,
        level: float | None = None,
        most: int | None = 100,
        ax: Axes | None = None,
    ) -> Self:
        """Take the effects and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            Fitted with ``groups``: a classifier, or a Pipeline or search (GridSearchCV) that ends with one.
        factor : str or None, default=None
            Name of the factor whose effects are drawn, of a model that was fitted with several.
        most : int or None, default=100
            Number of groups to draw: of more, evenly many from the largest to the smallest. None draws all; more than
            60 are drawn side by side, without names.
        """
        _, classifier = unwrap(estimator)
        level = level_of(classifier, level)
        frame = classifier.group_effects(factor, level)
        mean, interval, _ = table_intervals(frame.iloc[:, :4])  # not the slopes
        known = {"classes": classifier.classes_, "favours": getattr(classifier, "_favours", None)}
        display = cls(names=frame.index.tolist(), mean=mean, interval=interval, level=level, **known)
        return display.plot(most=most, ax=ax)

    def plot(self, *, most: int | None = 100, ax: Axes | None = None) -> Self:
        check_count("most", most, optional=True)
        shown, n = np.argsort(-self.mean, kind="stable"), len(self.mean)
        if most is not None:
            shown = shown[np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))]
        label = f"effect on the score: mean and {self._what}{favoured_line(self.classes, self.favours)}"
        row_label = f"{f'{len(shown)} of {n} groups' if len(shown) < n else 'groups'}, by mean"
        return self._draw(ax, shown, self.mean, self.interval, marks=self._clear(), label=label, row_label=row_label)
