"""Display of the effects of groups of rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._posterior.estimates import excludes_zero
from .._posterior.mixin import level_of
from .._posterior.pipeline import unwrap
from ._common import MAX_NAMES, RowsDisplay, check_count, favoured_line

if TYPE_CHECKING:
    from .._types import Axes, Floats, Model, NDArray, Sequence


@dataclass(kw_only=True, repr=False, eq=False)
class GroupEffectsDisplay(RowsDisplay):
    """Effects of the groups that rows belong to, from the largest to the smallest: which patients differ from others.

    It draws a model that was fitted with ``groups``. Make it with `from_estimator`.

    Parameters
    ----------
    names : sequence of length n_groups
        Labels of the groups.
    mean : ndarray of shape (n_groups,)
        Posterior means of the effects on the score.
    interval : ndarray of shape (2, n_groups)
        Lower and upper ends of the credible intervals.
    level : float
        Level of the intervals, in (0, 1).
    classes : ndarray of shape (2,) or None, default=None
        The labels of the classes; positive effects favour the second one, as the axis then says.

    Attributes
    ----------
    shown_ : ndarray of int
        The groups that are drawn, from the top or from the left, as positions in ``names``.
    points_ : list of matplotlib.lines.Line2D
        The means: of groups whose interval excludes zero, of the others.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the same.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

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

    names: Sequence[Any]
    mean: Floats
    interval: Floats
    level: float
    classes: NDArray[Any] | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Model, *, level: float | None = None, most: int | None = 100, ax: Axes | None = None
    ) -> Self:
        """Take the effects and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            Fitted with ``groups``: a classifier, or a Pipeline or search (GridSearchCV) that ends with one.
        level : float or None, default=None
            Level of the intervals, in (0, 1). None is the classifier's ``credible_level``.
        most : int or None, default=100
            Number of groups to draw: of more, evenly many from the largest to the smallest. None draws all; more than
            60 are drawn side by side, without names.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : GroupEffectsDisplay
        """
        _, classifier = unwrap(estimator)
        level = level_of(classifier, level)
        frame = classifier.group_effects(level)
        return cls(
            names=frame.index.tolist(),
            mean=frame["mean"].to_numpy(),
            interval=frame.iloc[:, 2:4].to_numpy().T,
            level=level,
            classes=classifier.classes_,
        ).plot(most=most, ax=ax)

    def plot(self, *, most: int | None = 100, ax: Axes | None = None) -> Self:
        shown, n = np.argsort(-self.mean, kind="stable"), len(self.mean)
        if most is not None:
            check_count("most", most)
            shown = shown[np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))]
        label = f"{len(shown)} of {n} groups" if len(shown) < n else "groups"
        return self._draw(
            ax,
            shown,
            self.mean,
            self.interval,
            names=self.names,
            marked=excludes_zero(self.interval),
            labels=(f"{100 * self.level:g} % interval excludes zero", "includes zero"),
            reference=0,
            value_label=f"effect on the score: mean and {100 * self.level:g} % interval{favoured_line(self.classes)}",
            row_label=f"{label}, by mean" if len(shown) > MAX_NAMES or len(shown) < n else None,
        )
