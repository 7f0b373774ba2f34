"""Display of the contributions of terms to the probability of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from sklearn.utils.validation import _num_samples

from .._posterior.classes import shown_classes
from .._posterior.contributions import contributions
from .._posterior.mixin import level_of
from .._posterior.pipeline import unwrap
from .._posterior.table import value_text
from .._utils.counts import check_count
from ._base import DARK, LETTER, MAX_NAMES, MUTED, PALE, AxesDisplay, ink, spaced, table_intervals
from ._texts import class_names, drawable, percent

if TYPE_CHECKING:
    from .._types import Axes, Callable, Floats, Mapping, Model, NDArray, RowsLike

_ROW_HEIGHT = 0.3  # inches
_TICKS = 0.5, 0.2, 0.8, 0.05, 0.95, 0.01, 0.99, 0.001, 0.999, 0.3, 0.4, 0.6, 0.7, 0.1, 0.9  # most important first
_APART = 6  # letters between two ticks
_LETTERS, _SHARE = 40, 0.55  # most letters of a label with its value or probability, and share of the width for these
_SURE = 1e-9  # smallest distance of a drawn probability from 0 and 1


class ContributionsDisplay(AxesDisplay):
    """From the average row to this one: what each of its values adds to the score, the largest first.

    A bar leads from the score without a term to that with it, and the line on it is the credible interval of what it
    adds. The squares are the scores of the average row and of this one, with the intervals of their probabilities,
    which the upper axis has.

    Parameters
    ----------
    names : sequence of str of length n_lines
        The terms with their values, as "age 71"; the last one may stand for several.
    mean : ndarray of shape (n_lines,)
        Posterior means of what they add to the score.
    interval : ndarray of shape (2, n_lines)
        Lower and upper ends of the credible intervals of that.
    rows : sequence of length 2
        Names of the row that is compared with and of this one.
    score : float
        Posterior mean of the score of the first of them.
    probability : ndarray of shape (2, 3)
        The probability of the second class of both rows, with the lower and the upper end of its interval.
    classes : ndarray of shape (2,)
        The labels.
    predictor : callable
        Gives the scores of an array of probabilities, as the model of the classifier has it.

    Attributes
    ----------
    bars_ : matplotlib.container.BarContainer
        What the terms add.
    points_ : list of matplotlib.lines.Line2D
        The scores of both rows.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the terms, of both rows.
    upper_ : matplotlib.axes.Axes
        The axis of probabilities, above.

    Examples
    --------
    >>> display = plotting.ContributionsDisplay.from_estimator(clf, X[:1], top=3)
    >>> [name.split()[0] for name in display.names]
    ['x1', 'x4', 'x5', '(27']
    """

    names: list[str]
    mean: Floats
    interval: Floats
    rows: list[Any]
    score: float
    probability: Floats
    level: float
    classes: NDArray[Any]
    predictor: Callable[[Any], Any]

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        X: RowsLike,
        reference: RowsLike = None,
        *,
        level: float | None = None,
        terms: Mapping[str, Any] | Literal["auto"] = "auto",
        top: int = 10,
        ax: Axes | None = None,
    ) -> Self:
        """Compute what the terms add, and draw it.

        Parameters
        ----------
        X : array-like or table of shape (1, n_features)
            The row: ``X.iloc[[7]]``. The index of a pandas frame names it.
        reference : array-like or Series of shape (n_features,), dict, table of one row, or None, default=None
            The row to compare with; None is the average row.
        terms : dict or "auto", default="auto"
            What has a bar, as in `skhorseshoe.inspection.contributions`.
        top : int, default=10
            Number of terms that have a bar of their own, from 1 to 60; the others have one together.
        """
        _, classifier = unwrap(estimator)
        level = level_of(classifier, level)
        check_count("top", top)
        if top > MAX_NAMES:
            raise ValueError(f"top must be at most {MAX_NAMES}, so that names can be read; got {top}.")
        if terms is None:
            raise TypeError("terms=None is a table of columns, not a picture: take 'auto' or a dict.")
        table = contributions(estimator, X, reference, level=level, terms=terms, top=top)
        (name, *more) = table.index.get_level_values("row").unique()
        if more or not table.index.is_unique:
            raise ValueError(f"X must be one row, as X.iloc[[7]] or X[[7]]; got {_num_samples(X)} rows.")
        numbers, about = table.loc[name], table.attrs["reference"]
        lines, in_frame = numbers.iloc[:-2], hasattr(X, "index") and hasattr(X, "columns")
        means, ends, _ = table_intervals(numbers)
        return cls(
            names=[_term_with_value(term, value) for term, value in lines["value"].items()],
            mean=means[:-2],
            interval=ends[:, :-2],
            rows=[about["name"], name if in_frame else "this row"],
            score=about["score"],
            probability=np.array([about["probability"], [means[-1], *ends[:, -1]]]),
            level=level,
            classes=shown_classes(classifier),
            predictor=classifier._likelihood.predictor,
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        n = len(self.mean)
        ax = self._axes(ax, 1.4 + _ROW_HEIGHT * (n + 2))
        dark, muted, face, black = (ink(ax, colour) for colour in (DARK, MUTED, PALE, "black"))
        scores = self.score + np.append(0.0, np.cumsum(self.mean))  # before each term, and after the last
        at = np.arange(1, n + 1)
        self.bars_ = ax.barh(
            at, self.mean, left=scores[:-1], height=0.66, color=face, edgecolor=muted, linewidth=0.8, zorder=2
        )
        ax.vlines(scores, np.arange(n + 1), np.arange(1, n + 2), colors=muted, linewidth=0.8, zorder=1)
        both, places = scores[[0, -1]], [0, n + 1]
        interval = self.predictor(np.clip(self.probability[:, 1:], _SURE, 1 - _SURE))
        low, high = scores[:-1] + self.interval
        self.lines_ = [
            ax.hlines(at, low, high, colors=black, linewidth=1.2, zorder=3),
            ax.hlines(places, interval[:, 0], interval[:, 1], colors=dark, linewidth=1.8, zorder=3),
        ]
        self.points_ = ax.plot(both, places, "s", color=dark, markersize=5, zorder=4)
        letter, room = LETTER * float(ax.xaxis.label.get_fontsize()), self._room()[0]
        first, last = drawable(list(map(_probability, self.rows, self.probability)), letters=_LETTERS)
        names = [first, *drawable(self.names, letters=min(_LETTERS, int(_SHARE * room / letter))), last]
        ax.set(ylim=(n + 1.6, -0.6), yticks=np.arange(n + 2), yticklabels=names)
        ax.tick_params(axis="y", length=0)
        second = class_names(self.classes)[1]
        width = room - letter * max(map(len, names))  # not more than a layout leaves
        ticks = spaced(_TICKS, self.predictor, ax.get_xlim(), _APART * letter / width * np.ptp(ax.get_xlim()))
        self.upper_ = ax.secondary_xaxis("top")
        self.upper_.set_xticks(self.predictor(ticks), [f"{100 * p:g} %" for p in ticks])
        self.upper_.set_xlabel(f"probability of {second}", loc="right")  # leaves room for names on the left
        return self._finish(f"score, and {percent(self.level)} intervals", None)


def _term_with_value(term, value):
    """A term with its value: "age 71"."""
    return str(term) if isinstance(value, str) and not value else f"{term} {value_text(value)}"


def _probability(name, probability):
    """The name of a row with its probability and its interval, in per cent."""
    mean, low, high = map(_percent, probability)
    return f"{name}: {mean} % ({low} to {high} %)"


def _percent(p):
    """A probability in per cent, never 0 or 100."""
    if not 0.0005 < p < 0.9995:
        return "<0.1" if p < 0.5 else ">99.9"
    return f"{100 * p:.{0 if 0.01 <= p < 0.99 else 1}f}"
