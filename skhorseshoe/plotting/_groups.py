"""Display of the effects of groups of rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._posterior.mixin import level_of
from .._posterior.pipeline import unwrap
from ._base import IntervalsDisplay, check_count, table_intervals
from ._texts import favoured_line

if TYPE_CHECKING:
    from .._types import Axes, Model, NDArray


class GroupEffectsDisplay(IntervalsDisplay):
    """Effects of the groups that rows belong to, from the largest to the smallest: which patients differ from others.

    It draws a model that was fitted with ``groups``. Make it with `from_estimator`.

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

    @classmethod
    def from_estimator(
        cls, estimator: Model, *, level: float | None = None, most: int | None = 100, ax: Axes | None = None
    ) -> Self:
        """Take the effects and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            Fitted with ``groups``: a classifier, or a Pipeline or search (GridSearchCV) that ends with one.
        most : int or None, default=100
            Number of groups to draw: of more, evenly many from the largest to the smallest. None draws all; more than
            60 are drawn side by side, without names.
        """
        _, classifier = unwrap(estimator)
        level = level_of(classifier, level)
        frame = classifier.group_effects(level)
        mean, interval, _ = table_intervals(frame)
        names, classes = frame.index.tolist(), classifier.classes_
        return cls(names=names, mean=mean, interval=interval, level=level, classes=classes).plot(most=most, ax=ax)

    def plot(self, *, most: int | None = 100, ax: Axes | None = None) -> Self:
        check_count("most", most, optional=True)
        shown, n = np.argsort(-self.mean, kind="stable"), len(self.mean)
        if most is not None:
            shown = shown[np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(int))]
        label = f"effect on the score: mean and {self._what}{favoured_line(self.classes)}"
        row_label = f"{f'{len(shown)} of {n} groups' if len(shown) < n else 'groups'}, by mean"
        return self._draw(ax, shown, self.mean, self.interval, marks=self._clear(), label=label, row_label=row_label)
