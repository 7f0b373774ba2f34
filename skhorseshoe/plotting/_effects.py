"""Display of average marginal effects as a forest plot."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from .._posterior.effects import marginal_effects
from .._posterior.estimates import excludes_zero
from ._common import MAX_NAMES, PALE, RowsDisplay, class_names, ink

if TYPE_CHECKING:
    from .._types import Axes, DataFrame, Floats, Model, Offsets, RowsLike, Sequence, Weights


@dataclass(kw_only=True, repr=False, eq=False)
class EffectsDisplay(RowsDisplay):
    """Average marginal effects with their intervals, in percentage points: a forest plot.

    A row is a column of numbers and what it changes by, or two levels of a category; the contrasts of one column stand
    together between thin lines. Make it with `from_estimator`, or with `from_frame` of a table that is there.

    Parameters
    ----------
    names : sequence of str of length n_rows
        Names of the rows, with what the numbers change by.
    mean : ndarray of shape (n_rows,)
        Posterior means, as differences of probabilities, in [-1, 1].
    interval : ndarray of shape (2, n_rows)
        Lower and upper ends of the credible intervals.
    level : str
        Level of the intervals, in words.
    features : sequence of str of length n_rows
        The column of each row.
    classes : sequence of length 2 or None, default=None
        The labels; the effects are on the probability of the second one, as the axis then says.

    Attributes
    ----------
    shown_ : ndarray of int
        The rows that are drawn, from the top or from the left.
    points_ : list of matplotlib.lines.Line2D
        The means: of rows whose interval excludes zero, of the others.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the same.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, inspection, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> effects = inspection.marginal_effects(clf, X).sort_values("mean", ascending=False)
    >>> display = plotting.EffectsDisplay.from_frame(effects.head(3))
    >>> sorted(display.names)
    ['x1 (+1)', 'x3 (+1)', 'x4 (+1)']
    """

    names: list[str]
    mean: Floats
    interval: Floats
    level: str
    features: list[str]
    classes: list[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        X: RowsLike,
        features: str | int | Sequence[str | int] | None = None,
        *,
        change: Literal["auto", "unit", "sd", "binary", "pairs"] | float = "auto",
        reference: Any = None,
        level: float | None = None,
        sample_weight: Weights = None,
        offset: Offsets = None,
        max_draws: int | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the effects and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            A fitted classifier, or a fitted Pipeline or search (GridSearchCV) that ends with one.
        X : array-like, table or sparse matrix of shape (n_samples, n_features)
            The rows to average over.
        features, change, reference, level, sample_weight, offset, max_draws : see `inspection.marginal_effects`
            The columns, what they change by, and how the effects are computed.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : EffectsDisplay
        """
        options = {"change": change, "reference": reference, "level": level, "offset": offset}
        frame = marginal_effects(estimator, X, features, sample_weight=sample_weight, max_draws=max_draws, **options)
        return cls.from_frame(frame, ax=ax)

    @classmethod
    def from_frame(cls, frame: DataFrame, *, ax: Axes | None = None) -> Self:
        """Draw a table of effects, or some of its rows in any order.

        Parameters
        ----------
        frame : pandas.DataFrame
            As `marginal_effects <skhorseshoe.inspection.marginal_effects>` gives it. More than 60 rows are drawn side
            by side, without names.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : EffectsDisplay
        """
        ends = [name for name in getattr(frame, "columns", ()) if str(name).endswith("%")]
        if len(ends) != 2 or not {"change", "mean"} <= {*frame.columns}:
            raise ValueError(
                "frame must be a table of inspection.marginal_effects, with the columns change, mean and the ends of "
                f"an interval; got {type(frame).__name__} with {[*getattr(frame, 'columns', ())]!r:.100}."
            )
        known = frame.attrs.get("features", {})
        features = [known.get(str(label), str(label)) for label in frame.index]
        names = [
            f"{label} ({change})" if str(label) == feature else str(label)
            for label, feature, change in zip(frame.index, features, frame["change"], strict=True)
        ]
        low, high = (float(name.removesuffix("%")) for name in ends)
        return cls(
            names=names,
            mean=frame["mean"].to_numpy(np.float64),
            interval=frame[ends].to_numpy(np.float64).T,
            level=f"{high - low:.5g} %",  # the headings have six digits
            features=features,
            classes=frame.attrs.get("classes"),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        of_class = "" if self.classes is None else f" of {class_names(self.classes)[1]}"
        self._draw(
            ax,
            np.arange(len(self.mean)),
            100 * self.mean,
            100 * self.interval,
            names=self.names,
            marked=excludes_zero(self.interval),
            labels=(f"{self.level} interval excludes zero", "includes zero"),
            reference=0,
            value_label=f"change of the probability{of_class}\nin percentage points: mean and {self.level} interval",
            row_label=None if len(self.mean) <= MAX_NAMES else "columns and contrasts",
        )
        several = {feature for feature in self.features if self.features.count(feature) > 1}
        if len(self.mean) <= MAX_NAMES:
            for k, pair in enumerate(zip(self.features[:-1], self.features[1:], strict=True)):
                if pair[0] != pair[1] and several & {*pair}:
                    self.ax_.axhline(k + 0.5, color=ink(self.ax_, PALE), linewidth=0.8, zorder=0)
        return self
