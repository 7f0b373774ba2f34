"""What displays are: records of arrays with a picture, some of them on one pair of axes, of rows, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, dataclass_transform

import numpy as np

from .._posterior.estimates import excludes_zero
from .._posterior.table import interval_ends
from .._utils.sklearn_compat import check_matplotlib_support
from ._docstrings import complete
from ._texts import drawable, listing, percent

if TYPE_CHECKING:
    from .._types import Floats, Sequence

DARK, MUTED, PALE = "#004488", "0.6", "0.85"
_ON_DARK = {"black": "white", DARK: "#66aaee", MUTED: "0.55", PALE: "0.25", "white": "black"}
SHARES = -0.02, 1.02  # limits of an axis of shares
MAX_NAMES = 60  # most rows of a picture that have names
_WIDTH, _ROW_HEIGHT = 6.4, 0.21  # width of a new figure and height of a row in inches
_NAME_HEIGHT = 0.7  # largest height of a name as a share of its row, which a layout may make lower
LETTER, _MARKS = 0.6, 8  # widths of a letter and of the marks of two columns in a legend, in sizes of the font
_LINE, _TICKS = 1.4, 2.0  # heights of a line of text and of an axis' ticks, likewise


def is_dark(ax):
    """Whether the page is dark, as in the style "dark_background": the axes have light text."""
    from matplotlib.colors import to_rgb

    return sum(to_rgb(ax.xaxis.label.get_color())) > 1.5


def ink(ax, colour):
    """A colour of this module, or its counterpart on a dark page."""
    return _ON_DARK[colour] if is_dark(ax) else colour


def check_option(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def check_axes(ax):
    """Raise a TypeError unless this is one pair of axes."""
    if not hasattr(ax, "get_subplotspec"):
        raise TypeError(f"ax must be Matplotlib's Axes, one pair of them; got {type(ax).__name__}.")


def spaced(candidates, place, limits, gap):
    """Of ticks, the most important first, those whose places are within limits and by a gap apart."""
    (low, high), ticks = limits, []
    for tick in candidates:
        if low <= place(tick) <= high and all(abs(place(tick) - place(other)) >= gap for other in ticks):
            ticks.append(tick)
    return ticks


def table_intervals(table):
    """Means, or medians, and intervals (2, n) in a table with ends like 5% and 95%, and the level in words."""
    ends = interval_ends(table)
    low, high = (float(name.removesuffix("%")) for name in ends)
    mean, *interval = table[["mean" if "mean" in table else "median", *ends]].to_numpy(np.float64).T
    return mean, np.array(interval), f"{high - low:.5g} %"  # the headings have six digits


@dataclass_transform(kw_only_default=True, eq_default=False)
class Display:
    """A record of arrays with a picture: a class says which, has class methods that make it, and draws it in ``plot``.

    The fields of the record are what the class annotates. Docstrings of classes and methods describe what is their own;
    ``_docstrings`` adds the rest.
    """

    def __init_subclass__(cls):
        super().__init_subclass__()
        dataclass(kw_only=True, repr=False, eq=False)(cls)
        complete(cls)


class AxesDisplay(Display):
    """A picture on one pair of axes.

    Attributes
    ----------
    legend_, ax_, figure_ : matplotlib.legend.Legend or None, matplotlib.axes.Axes, matplotlib.figure.Figure
    """

    def _axes(self, ax, height=4.0):
        """The axes to draw on: the given ones, or new ones in a figure of this height in inches."""
        check_matplotlib_support(f"{type(self).__name__}.plot")
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(figsize=(_WIDTH, height), layout="constrained")
        check_axes(ax)
        ax.spines[["right", "top"]].set_visible(False)
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _room(self):
        """Width and height in points of the axes with all that is around them: of their cell in the grid."""
        room, cell = self.figure_.bbox.size / self.figure_.dpi * 72, self.ax_.get_subplotspec()
        if cell is not None:
            grid = cell.get_gridspec()
            room = room * (len(cell.colspan) / grid.ncols, len(cell.rowspan) / grid.nrows)
        return room

    def _finish(self, xlabel, ylabel):
        """Label the axes, and put a legend above them if anything has a label."""
        from matplotlib import rcParams

        room = self._room()[0]
        self.ax_.set_xlabel(xlabel, wrap=True)
        if (
            room < 0.99 * self.figure_.bbox.width / self.figure_.dpi * 72
        ):  # where Matplotlib wraps at the figure's edges
            letters = max(1, int(room / (LETTER * self.ax_.xaxis.label.get_size())))
            self.ax_.set_xlabel("\n".join(fill(line, letters) for line in xlabel.split("\n")), loc="right", wrap=False)
        self.ax_.set_ylabel(ylabel, wrap=True)
        labels = self.ax_.get_legend_handles_labels()[1]
        wide = (LETTER * sum(sorted(map(len, labels))[-2:]) + _MARKS) * rcParams["font.size"] > room
        # A legend that is aligned right can extend over the names on the left.
        place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 1 if wide else 2}
        style = {"frameon": False, "handletextpad": 0.5, "columnspacing": 1.4, "numpoints": 1}
        self.legend_ = self.ax_.legend(**place, **style) if labels else None
        return self


class MarksDisplay(AxesDisplay):
    """Values with their intervals, some of them marked.

    Attributes
    ----------
    shown_ : ndarray of int
        What is drawn, from the top or from the left, as positions in the arrays.
    points_ : list of matplotlib.lines.Line2D
        The values: the marked ones, the others, as the legend says.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals of the same, if there are any.
    """

    def _mark(self, at, values, ends, marked, labels, *, few, upright):
        """Draw values at their places along an axis, marked ones as filled squares, others as open circles.

        ends : (2, n) of intervals, or None. labels : of marked and other values; without a second label the others are
        left out. few : whether there is room for large marks. upright : whether the values are along the vertical axis.
        """
        self.points_, self.lines_ = [], []
        interval = self.ax_.vlines if upright else self.ax_.hlines
        dark, muted, face = (ink(self.ax_, colour) for colour in (DARK, MUTED, "white"))
        styles = [(marked, dark, "s", dark, 4, 1), (~marked, muted, "o", face, 3, 1 if few else 0.5)]
        size, width = (5, 1.8) if few else (3, 1.4)
        for (rows, colour, marker, face, zorder, alpha), label in zip(styles, labels, strict=False):
            if ends is not None:
                low, high = ends[:, rows]
                line = interval(at[rows], low, high, colors=colour, linewidth=width * alpha, alpha=alpha, zorder=2)
                self.lines_.append(line)
            x, y = (at[rows], values[rows]) if upright else (values[rows], at[rows])
            self.points_ += self.ax_.plot(
                x, y, marker, label=label, color=colour, markerfacecolor=face, markersize=size, zorder=zorder
            )


class RowsDisplay(MarksDisplay):
    """Values of rows. Up to MAX_NAMES rows are drawn one below another, with names; more are drawn side by side."""

    names: Sequence[Any]

    def _draw(
        self, ax, shown, values, ends=None, *, marks, label, row_label, line=0, limits=None, listed=False, names=None
    ):
        """Draw the rows at the places ``shown`` of all arguments, as ``_mark`` does.

        marks : which rows are marked, and ``labels``. label : of the values. row_label : where rows have no names, or
        are not all. line : value at which to draw one, or None. limits : of the values, or None. listed : whether the
        legend has the names of marked rows where the axis has no room for them. names : not those of the display.
        """
        few, is_new = len(shown) <= MAX_NAMES, ax is None
        ax = self._axes(ax, 1.2 + _ROW_HEIGHT * max(len(shown), 6) if few else 4.0)
        self.shown_, at, (marked, labels) = shown, np.arange(len(shown)), marks
        ends = None if ends is None else ends[:, shown]
        if listed and not few:
            labels = labels[0] + listing(self.names, shown[marked[shown]]), labels[1]
        self._mark(at, values[shown], ends, marked[shown], labels, few=few, upright=not few)
        draw_line, limit = (ax.axvline, ax.set_xlim) if few else (ax.axhline, ax.set_ylim)
        if line is not None:
            draw_line(line, color=ink(ax, "black"), linewidth=0.8, linestyle="--", zorder=1)
        if limits is not None:
            limit(limits)
        if few:
            names = drawable(self.names if names is None else names, shown)
            ax.set(ylim=(len(shown) - 0.4, -0.6), yticks=at, yticklabels=names)
            ax.tick_params(axis="y", length=0)
            self._finish(label, row_label if len(shown) < len(values) else None)
            height = 72 * _ROW_HEIGHT if is_new else self._height() / max(1, len(shown))
            for name in ax.get_yticklabels():
                name.set_size(min(name.get_size(), _NAME_HEIGHT * height))
            return self
        ax.set(xlim=(-0.01 * len(shown) - 0.5, 1.01 * len(shown) - 0.5))
        return self._finish(row_label, label)

    def _height(self):
        """Height in points that axes have at least, also after a layout, which makes room for legend and label."""
        height = self.ax_.get_window_extent().height / self.figure_.dpi * 72
        if self.figure_.get_layout_engine() is None:
            return height
        label, legend = self.ax_.xaxis.label, self.legend_.get_texts() if self.legend_ else []
        lines = sum(text.get_text().count("\n") + 1 for text in (label, *legend))
        return min(height, self._room()[1] - (_LINE * lines + _TICKS) * label.get_size())


class IntervalsDisplay(RowsDisplay):
    """Posterior means of rows with their credible intervals, whose ``level`` a class has as a number or in words."""

    mean: Floats
    interval: Floats

    @property
    def _what(self):
        """What is drawn beside the means, in words."""
        return f"{percent(self.level)} interval"

    def _clear(self):
        """Marks of rows whose interval excludes zero."""
        return excludes_zero(self.interval), (f"{self._what} excludes zero", "includes zero")
