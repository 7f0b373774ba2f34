"""What the displays share: the classifier inside a Pipeline, what they accept, names and room for them, rows."""

import re
from collections import Counter
from numbers import Integral

import numpy as np

from .._posterior.mixin import check_level
from .._posterior.pipeline import flat_steps, joined, names_of, prepared, unwrap, where_it_is  # noqa: F401 - for displays
from .._utils import names as _names
from .._utils.sklearn_compat import check_matplotlib_support

DARK, MUTED, PALE = "#004488", "0.6", "0.85"
MAX_NAMES = 60  # rows of a picture that can still be told apart by name
INCHES_A_ROW = 0.21
LONGEST, _SHORTEST = 35, 12  # letters of a long name that are drawn, where there is much room and where there is little
_LETTER = 0.7  # width of a letter beside the size of the font: small letters have less, most capitals as much
_LISTED, _LINES = 8, 3
_LEAST_WIDTH, _PADS, _USUAL_LEGEND = 4.0, 0.3, 0.9  # inches: of the axes in a new figure, around them, above them


def level_of(level, classifier):
    """The level of the intervals: None is that of the classifier."""
    return check_level(classifier.credible_level if level is None else level)


def check_option(name, value, allowed):
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")


def check_count(name, value, smallest=1, largest=None):
    """Raise unless the value is a whole number in the range."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number; got {value!r}.")
    if value < smallest or (largest is not None and value > largest):
        limit = f"at least {smallest}" if largest is None else f"from {smallest} to {largest}"
        raise ValueError(f"{name} must be {limit}; got {value}.")


def check_count_or_none(name, value):
    if value is not None:
        check_count(name, value)


def places(names, known):
    """Where the names are among the known ones; one name may come without a list."""
    names = [names] if isinstance(names, str) else list(names)
    if not names:
        raise ValueError("names is empty: give at least one, or None.")
    where, times = {name: place for place, name in enumerate(known)}, Counter(known)
    for name in names:
        if name not in where:
            hint = _names.did_you_mean(name, known) or f" The last ones are {known[-3:]}."
            raise ValueError(f"names: there is no {name!r} among the {len(known)} quantities of this model.{hint}")
        if times[name] > 1:
            raise ValueError(
                f"names: {times[name]} quantities of this model are called {name!r}. Fit with another name for the "
                "feature, or leave it out of names."
            )
    return [where[name] for name in names]


def new_axes(caller, ax, rows=None, height=4.0):
    """The axes to draw on: those given, or new ones of this height in inches, or high enough for so many rows."""
    check_matplotlib_support(caller)
    if ax is None:
        import matplotlib.pyplot as plt

        if rows is not None and rows <= MAX_NAMES:
            height = 1.2 + INCHES_A_ROW * max(rows, 6)
        _, ax = plt.subplots(figsize=(6.4, height), layout="constrained")
    return ax


def drawable(names, which=None, letters=LONGEST):
    """The names at these places, or all, as texts to draw: literal, on one line, long ones without their middle.

    Different names whose texts would be the same have their place behind them.
    """
    which = range(len(names)) if which is None else which
    whole = [re.sub(r"[\s\x00-\x1f]", " ", str(names[j])) for j in which]
    texts = [_shorten(name, letters) for name in whole]
    alike = Counter(text for text, _ in set(zip(texts, whole, strict=True)))
    for i, j in enumerate(which):
        if alike[texts[i]] > 1:
            texts[i] = _shorten(whole[i], letters, f" ({j})")
    # Matplotlib reads what stands between two dollars as a formula. A backslash works in every text and every version,
    # also in ticks that are made later; the option parse_math would have to be set on each.
    return [text.replace("$", r"\$") for text in texts]


def _shorten(name, letters, end=""):
    kept = letters - len(end)
    if len(name) > kept:
        tail = (kept - 1) // 2
        name = f"{name[: kept - 1 - tail]}…{name[len(name) - tail :]}"
    return name + end


def letters_in(ax, share=1.0, beside=0, most=LONGEST):
    """How many letters of a name fit into a share of the width, beside so many others."""
    from matplotlib import rcParams

    fit = share * slot(ax) * 72 / (_LETTER * rcParams["font.size"])
    return int(np.clip(fit - beside, _SHORTEST, most))


def row_names(ax, names, shown):
    """The names of the rows of a picture; none for more rows than can be told apart."""
    return drawable(names, shown, letters_in(ax, share=0.55)) if len(shown) <= MAX_NAMES else []


def listing(names, which, letters):
    """The first of the names at these places, in parentheses on lines of their own; nothing for none."""
    if not len(which):
        return ""
    lines, listed = [], 0
    for text in drawable(names, which[:_LISTED], min(letters, LONGEST)):
        if lines and len(lines[-1]) + len(text) + 2 <= letters:
            lines[-1] += f", {text}"
        elif len(lines) < _LINES:
            lines.append(text)
        else:
            break
        listed += 1
    more = f"and {len(which) - listed} more" if len(which) > listed else ""
    gap = "\n" if len(lines[-1]) + len(more) > letters else " "
    return "\n({}{})".format(",\n".join(lines), gap + more if more else "")


def inches(*artists):
    """Width and height of the widest and of the highest."""
    boxes = [artist.get_window_extent() for artist in artists]
    dpi = artists[0].figure.dpi
    return max(box.width for box in boxes) / dpi, max(box.height for box in boxes) / dpi


def slot(ax):
    """Inches of width that axes have for themselves and what stands beside them, before anything is laid out."""
    width = ax.get_position(original=True).width
    if ax.get_subplotspec() is not None:  # the gaps between columns are room too
        grid = ax.get_subplotspec().get_topmost_subplotspec().get_gridspec()
        _, _, left, right = grid.get_grid_positions(ax.figure)
        width /= (right - left).sum()
    return width * ax.figure.bbox.width / ax.figure.dpi


def beside(ax):
    """Inches that the labels on the left, and what is around, take of the width."""
    return inches(ax.yaxis.label)[0] + inches(ax.yaxis.label, *ax.get_yticklabels())[0] + _PADS


def finish(ax, given, legend=True):
    """Make room for names and legend in a new figure, or fit into the axes that were given; returns the legend."""
    new = given is None
    room = slot(ax) - beside(ax)
    below, left = inches(ax.xaxis.label)[0], inches(ax.yaxis.label)[1]  # how long the labels of the axes are
    wide, high, usual = max(_LEAST_WIDTH, below), 0, 0
    if legend:
        legend, usual = _legend_above(ax, max(room, wide) if new else room, new)
        width, high = inches(legend)
        wide = max(wide, width)
    if new:
        width, height = ax.figure.get_size_inches()
        height = max(height + high - min(usual, _USUAL_LEGEND), left + high + _PADS)
        ax.figure.set_size_inches(max(width, beside(ax) + wide), height)
    elif below > room:  # there is more room below the labels on the left
        ax.set_xlabel(ax.get_xlabel(), loc="right")
    return legend or None


def _legend_above(ax, room, new):
    """A legend where it hides nothing, in two columns if the room allows; and how high it is in two."""
    legend = _above(ax, 2)
    width, usual = inches(legend)
    if width > room:
        legend = _above(ax, 1)
        if not new and inches(legend)[0] > room:  # there is more room above the labels on the left
            legend = _above(ax, 1, "right")
    return legend, usual


def _above(ax, ncols, side="left"):
    return ax.legend(
        loc=f"lower {side}",
        bbox_to_anchor=(-0.01 if side == "left" else 1, 1),
        ncols=ncols,
        frameon=False,
        handletextpad=0.5,
        columnspacing=1.4,
        numpoints=1,
    )


def draw_rows(ax, names, values, ends, marked, *, labels, reference, value_label, row_label, limits=None):
    """Values and intervals: the marked ones dark with filled squares, the others with open circles.

    Up to MAX_NAMES of them stand by name one under another; more stand side by side along the horizontal axis.
    ``ends`` (2, n) or None. A label for the marked ones only leaves the others out. Returns the points and the lines,
    each as a list: the marked ones, the others.
    """
    n_rows = len(values)
    few = n_rows <= MAX_NAMES
    at = np.arange(n_rows)
    interval, mark_at, across = (ax.hlines, ax.axvline, ax.set_xlim) if few else (ax.vlines, ax.axhline, ax.set_ylim)
    size = 5 if few else 3
    points, lines = [], []
    styles = [(marked, DARK, "s", DARK, 4, 1), (~marked, MUTED, "o", "white", 3, 1 if few else 0.5)]
    for (rows, colour, marker, face, zorder, alpha), label in zip(styles, labels, strict=False):
        if ends is not None:
            width = 1.8 if few else 1.4 * alpha
            lines.append(interval(at[rows], *ends[:, rows], color=colour, linewidth=width, alpha=alpha, zorder=2))
        place = (values[rows], at[rows]) if few else (at[rows], values[rows])
        points += ax.plot(
            *place, marker, color=colour, markerfacecolor=face, markersize=size, label=label, zorder=zorder
        )
    if reference is not None:
        mark_at(reference, color="black", linewidth=0.8, linestyle="--", zorder=1)
    if limits is not None:
        across(limits)
    if few:
        ax.set(ylim=(n_rows - 0.4, -0.6), yticks=at, yticklabels=names, xlabel=value_label, ylabel=row_label)
        ax.tick_params(axis="y", length=0)
    else:
        ax.set(xlim=(-0.01 * n_rows - 0.5, 1.01 * n_rows - 0.5), xlabel=row_label, ylabel=value_label)
    ax.spines[["right", "top"]].set_visible(False)
    return points, lines
