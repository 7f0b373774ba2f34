"""Common code of the displays: checks of arguments, names as texts, rows of a picture."""

import re
from inspect import signature
from numbers import Integral
from textwrap import fill

import numpy as np

from .._utils import names as _names
from .._utils.sklearn_compat import check_matplotlib_support

DARK, MUTED, PALE = "#004488", "0.6", "0.85"
_ON_DARK = {"black": "white", DARK: "#66aaee", MUTED: "0.55", PALE: "0.25", "white": "black"}
MAX_NAMES = 60  # most rows of a picture that have names
LONGEST, SHORT = 30, 20  # most letters of a name next to the axes, and within a sentence
_WIDTH, _ROW_HEIGHT = 6.4, 0.21  # width of a new figure and height of a row in inches
_LISTED, _LINE = 8, 48  # names in a legend, and letters of a line there
_NAME_HEIGHT = 0.7  # largest height of a name as a share of its row, which a layout may make lower
_LETTER, _MARKS = 0.6, 8  # widths of a letter and of the marks of two columns in a legend, in sizes of the font
_PLOT = """Draw.

Parameters
----------
{names} : see `{maker}`
    How and where to draw.

Returns
-------
self : {display}
"""


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


def check_count(name, value, smallest=1):
    """Raise an error unless the value is a whole number, at least the smallest."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {value!r}.")
    if value < smallest:
        raise ValueError(f"{name} must be at least {smallest}; got {value}.")


def check_axes(ax):
    """Raise a TypeError unless this is one pair of axes."""
    if not hasattr(ax, "get_subplotspec"):
        raise TypeError(f"ax must be Matplotlib's Axes, one pair of them; got {type(ax).__name__}.")


def drawable(names, places=None, letters=LONGEST):
    """The names at these places, or all, as texts to draw: literal, on one line, and shortened if long.

    Different names whose texts would be the same are followed by their places.
    """
    places = range(len(names)) if places is None else places
    return [_literal(text) for text in _names.printables([_on_one_line(names[j]) for j in places], letters, places)]


def class_names(labels):
    """Labels of classes as texts to draw."""
    return [_literal(text) for text in _names.class_texts(list(map(_on_one_line, labels)), SHORT)]


def _on_one_line(name):
    return re.sub(r"\s", " ", name) if isinstance(name, str) else name


def _literal(text):
    """A text in which dollars are escaped, since Matplotlib reads a formula between two of them. A backslash works in
    every text and version, also in ticks that are made later; the option parse_math would have to be set on each."""
    return text.replace("$", r"\$")


def favoured_line(classes):
    """The class that a positive coefficient favours, on a line of its own; empty if the classes are not known."""
    return "" if classes is None else f"\n(positive favours {class_names(classes)[1]})"


def listing(names, places):
    """The first of the names at these places, in parentheses on lines of their own; empty for no names."""
    if not len(places):
        return ""
    more = f" and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
    return "\n" + fill(f"({', '.join(drawable(names, places[:_LISTED], SHORT))}{more})", _LINE, break_on_hyphens=False)


class Display:
    """A picture, usually on one pair of axes. The parameters of ``plot`` are documented in the method that computes and
    draws."""

    def __init_subclass__(cls):
        super().__init_subclass__()
        plot = vars(cls).get("plot")
        if plot is not None and not plot.__doc__:
            names = ", ".join(list(signature(plot).parameters)[1:])
            maker = "from_sets" if hasattr(cls, "from_sets") else "from_estimator"
            plot.__doc__ = _PLOT.format(names=names, maker=maker, display=cls.__name__)

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

    def _finish(self, xlabel, ylabel):
        """Label the axes, and put a legend above them if anything has a label."""
        from matplotlib import rcParams

        self.ax_.set_xlabel(xlabel, wrap=True)
        self.ax_.set_ylabel(ylabel, wrap=True)
        labels = self.ax_.get_legend_handles_labels()[1]
        cell, room = self.ax_.get_subplotspec(), self.figure_.bbox.width / self.figure_.dpi * 72
        if cell is not None:
            room *= len(cell.colspan) / cell.get_gridspec().ncols
        wide = (_LETTER * sum(sorted(map(len, labels))[-2:]) + _MARKS) * rcParams["font.size"] > room
        # A legend that is aligned right can extend over the names on the left.
        place = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 1 if wide else 2}
        style = {"frameon": False, "handletextpad": 0.5, "columnspacing": 1.4, "numpoints": 1}
        self.legend_ = self.ax_.legend(**place, **style) if labels else None
        return self


class RowsDisplay(Display):
    """Values and intervals of rows, some of them marked.

    Up to MAX_NAMES rows are drawn one below another, with names; more are drawn side by side.
    """

    def _draw(
        self, ax, shown, values, ends=None, *, names, marked, labels, reference, value_label, row_label, limits=None
    ):
        """Draw the rows at the places ``shown`` of all arguments, as ``_mark`` does.

        reference : value at which to draw a line, or None. limits : of the values, or None.
        """
        few, is_new = len(shown) <= MAX_NAMES, ax is None
        ax = self._axes(ax, 1.2 + _ROW_HEIGHT * max(len(shown), 6) if few else 4.0)
        self.shown_, at = shown, np.arange(len(shown))
        ends = None if ends is None else ends[:, shown]
        self._mark(at, values[shown], ends, marked[shown], labels, few=few, upright=not few)
        line, across = (ax.axvline, ax.set_xlim) if few else (ax.axhline, ax.set_ylim)
        if reference is not None:
            line(reference, color=ink(ax, "black"), linewidth=0.8, linestyle="--", zorder=1)
        if limits is not None:
            across(limits)
        if few:
            ax.set(ylim=(len(shown) - 0.4, -0.6), yticks=at, yticklabels=drawable(names, shown))
            height = _ROW_HEIGHT if is_new else ax.get_window_extent().height / ax.figure.dpi / max(1, len(shown))
            for name in ax.get_yticklabels():
                name.set_size(min(name.get_size(), _NAME_HEIGHT * 72 * height))
            ax.tick_params(axis="y", length=0)
            return self._finish(value_label, row_label)
        ax.set(xlim=(-0.01 * len(shown) - 0.5, 1.01 * len(shown) - 0.5))
        return self._finish(row_label, value_label)
