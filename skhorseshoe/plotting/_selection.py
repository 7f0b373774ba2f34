"""Displays of the selection path, and of how well summaries of each size predict."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._posterior.dss_cv import SMALL
from .._posterior.pipeline import flat_steps, joined, named, where_it_is
from .._utils.counts import check_count
from .._utils.names import names_of
from ..selection import HorseshoeSelector
from ._base import MAX_NAMES, MUTED, PALE, MarksDisplay, RowsDisplay, ink, spaced
from ._texts import columns, percent

if TYPE_CHECKING:
    from .._types import Axes, Bools, Floats, Model, NDArray

_ROOM = {"x": 1.6, "y": 1.0}  # room for a number, in multiples of Matplotlib's room for a tick


class SelectionPathDisplay(RowsDisplay):
    """What each further column adds to a sparse summary of the posterior, and when the summary is good enough.

    Starting from the summary without any shrunk column, each row adds the columns that the path of the rule "dss" of
    `skhorseshoe.HorseshoeSelector` takes next, and shows how far the probabilities then are from those of the posterior
    mean. The scale is linear up to the dashed line, and logarithmic beyond it.

    Parameters
    ----------
    supports : ndarray of shape (n_supports, n_features), bool
        Columns of the summaries, the first with none, or only with those that are not shrunk.
    distances : ndarray of shape (n_supports,)
        Kullback-Leibler divergence of each from the posterior mean, summed over the rows of X, in nats, the unit of the
        log loss (natural logarithms): by how much that is expected to rise, if the posterior mean is right.
    radius : float
        Largest divergence allowed, in the same unit.
    level : float
        Share of the draws that lie within ``radius``, in (0, 1).

    Examples
    --------
    >>> from skhorseshoe import HorseshoeSelector
    >>> selector = HorseshoeSelector(clf, prefit=True).fit(X)
    >>> display = plotting.SelectionPathDisplay.from_estimator(selector)
    >>> sorted(label.get_text() for label in display.ax_.get_yticklabels()[1:7])  # the first that join
    ['+ x0', '+ x1', '+ x2', '+ x3', '+ x4', '+ x5']
    """

    supports: Bools
    distances: Floats
    radius: float
    level: float

    @classmethod
    def from_estimator(cls, estimator: Model, *, beyond: int | None = 5, ax: Axes | None = None) -> Self:
        """Draw the attribute ``path_`` of a fitted selector.

        Parameters
        ----------
        estimator : HorseshoeSelector or Pipeline
            A fitted selector with ``rule="dss"``, or a fitted Pipeline with one such step.
        beyond : int or None, default=5
            Number of summaries to draw after the chosen one, if the path goes that far. None draws all; more than 60
            are drawn side by side, without names.
        """
        selector = selector_in(estimator)
        path = selector.path_
        if path is None:
            raise ValueError(f"Only rule='dss' has a path; this selector was fitted with rule={selector.rule!r}.")
        stored = {name: path[name] for name in ("supports", "distances", "radius", "level")}
        return cls(names=names_of(selector), **stored).plot(beyond=beyond, ax=ax)

    def plot(self, *, beyond: int | None = 5, ax: Axes | None = None) -> Self:
        chosen = int(np.argmax(self.distances <= self.radius))
        distances = self.distances[: _end(chosen, beyond)]
        rows = np.arange(len(distances))
        marks = rows <= chosen, (f"needed: {columns(self.supports[chosen].sum())}", "not needed")
        label = "divergence in nats: rise of the log loss over all rows\n"
        label += f"(dashed: {percent(self.level)} of the draws are nearer)"
        names, row_label = _changes(self.names, self.supports[rows]), "columns, in the order of the path"
        self._draw(ax, rows, distances, marks=marks, label=label, row_label=row_label, line=self.radius, names=names)
        along, linear = "x" if len(rows) <= MAX_NAMES else "y", self.radius or 1.0
        _scale(self.ax_, along, linear, -0.05 * linear)  # room for a divergence of zero
        return self


class ModelSizeDisplay(MarksDisplay):
    """What is lost on rows held out with ever more columns, against the model of all columns.

    Each point is the log score of the summaries of that size less that of the full model, with one standard error on
    each side; the dashed line is the full model, and losses in the grey band, of less than 4 nats, are small. The scale
    is linear about them and, for large losses, logarithmic beyond.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,), int
        Numbers of columns, ascending.
    difference : ndarray of shape (n_sizes,)
        Log score less that of the full model, in nats, the unit of the log loss (natural logarithms), summed over the
        rows that were held out: minus the rise of the log loss.
    se : ndarray of shape (n_sizes,)
        Standard errors of these.
    suggested_size : int
        The suggested number of columns, one of ``sizes``.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, datasets, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 10, random_state=0)
    >>> clf = HorseshoeProbitClassifier(slab_scale=2, random_state=0)
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
        """
        selector = selector_in(estimator)
        if selector.sizes_ is None:
            raise ValueError("This selector was fitted without cross-validation: fit it with rule='dss', cv=5.")
        stored = {name: selector.sizes_[name] for name in ("sizes", "difference", "se")}
        return cls(**stored, suggested_size=selector.suggested_size_).plot(beyond=beyond, ax=ax)

    def plot(self, *, beyond: int | None = 15, ax: Axes | None = None) -> Self:
        (suggested,) = np.flatnonzero(self.sizes == self.suggested_size)
        self.shown_ = np.arange(len(self.sizes))[: _end(suggested, beyond)]
        ax = self._axes(ax)
        from matplotlib.ticker import MaxNLocator

        sizes, value, se = self.sizes[self.shown_], self.difference[self.shown_], self.se[self.shown_]
        ax.axhline(0, color=ink(ax, "black"), linewidth=0.8, linestyle="--", zorder=1)
        ax.axhspan(-SMALL, 0, color=ink(ax, PALE), linewidth=0, zorder=0)
        ax.plot(sizes, value, color=ink(ax, MUTED), linewidth=0.8, zorder=1)
        labels = f"suggested: {columns(self.suggested_size)}", "other sizes"
        ends = np.stack([value - se, value + se])
        self._mark(sizes, value, ends, self.shown_ == suggested, labels, few=True, upright=True)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        linear = 4 * max(se[suggested], SMALL / 2)
        if max(np.abs(value)) > linear:
            _scale(ax, "y", linear)
        meaning = f"columns (dashed: all of them; bars: \N{PLUS-MINUS SIGN} 1 standard error; grey: {SMALL:g} nats)"
        return self._finish(meaning, "log score less\nthe full model's, nats")


def _end(chosen, beyond):
    """Where what is drawn ends: ``beyond`` places after the chosen one, or nowhere."""
    check_count("beyond", beyond, smallest=0, optional=True)
    return None if beyond is None else chosen + 1 + beyond


def _scale(ax, along, linear, low=None):
    """Set a scale that is linear up to ``linear`` on each side and logarithmic beyond, with as many ticks as have room,
    the roundest first. low : its lower end."""
    from matplotlib.ticker import FixedLocator

    axis = getattr(ax, f"{along}axis")
    getattr(ax, f"set_{along}scale")("symlog", linthresh=linear)
    ax.autoscale_view()  # with margins on this scale
    getattr(ax, f"set_{along}lim")(low, None)
    low, high = axis.get_view_interval()
    powers = 10.0 ** np.arange(np.floor(np.log10(linear)) - 1, np.log10(max(-low, high, linear)) + 1)
    place, limits = axis.get_transform().transform, axis.get_transform().transform((low, high))
    gap = _ROOM[along] * np.ptp(limits) / max(1, axis.get_tick_space())
    ticks = spaced([0.0, *np.outer(np.outer((1, 5, 2), powers), (1, -1)).ravel()], place, limits, gap)
    axis.set_major_locator(FixedLocator(sorted(ticks)))
    axis.set_major_formatter("{x:g}")


def selector_in(estimator):
    """The fitted selector, which may be a step of a Pipeline, with the names of the steps before it."""
    steps = flat_steps(estimator)
    places = [k for k, step in enumerate(steps) if isinstance(step, HorseshoeSelector)]
    if len(places) != 1:
        raise TypeError(
            "A fitted HorseshoeSelector is wanted, or a Pipeline with one such step; got "
            f"{type(estimator).__name__}.{where_it_is(estimator)}"
        )
    (k,) = places
    check_is_fitted(steps[k])
    return named(joined(steps[:k]), steps[k])


def _changes(names, supports):
    """The columns that enter and leave from one summary to the next, as texts."""
    texts = [_list(names, supports[0]) or "no column"]
    for previous, current in pairwise(supports):
        changes = ("+", current & ~previous), ("\N{MINUS SIGN}", previous & ~current)
        texts.append(" ".join(f"{sign} {_list(names, changed)}" for sign, changed in changes if changed.any()))
    return texts


def _list(names, mask):
    return ", ".join(str(names[j]) for j in np.flatnonzero(mask))
