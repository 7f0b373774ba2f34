"""What the displays share: the classifier inside a Pipeline, what they accept, axes, intervals one under another."""

from difflib import get_close_matches
from numbers import Integral

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._compat import check_matplotlib_support
from .._posterior import PosteriorMixin, check_level

DARK, MUTED, PALE = "#004488", "0.6", "0.85"
MAX_NAMES = 60  # rows of a picture that can still be told apart by name
INCHES_A_ROW = 0.21
_LISTED = 8


def unwrap(estimator):
    """The steps before the classifier, or None, and the fitted classifier."""
    before, classifier = None, estimator
    if hasattr(estimator, "steps"):  # a Pipeline
        before, classifier = estimator[:-1] if len(estimator.steps) > 1 else None, estimator[-1]
    if not isinstance(classifier, PosteriorMixin):
        raise TypeError(
            "A fitted HorseshoeProbitClassifier is wanted, or a Pipeline that ends with one; got "
            f"{type(estimator).__name__}. A search has it as best_estimator_."
        )
    check_is_fitted(classifier)
    return before, classifier


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
    where = {name: place for place, name in enumerate(known)}
    for name in names:
        if name not in where:
            near = get_close_matches(str(name), map(str, known), n=3)
            hint = f"Did you mean {', '.join(map(repr, near))}?" if near else f"The last ones are {known[-3:]}."
            raise ValueError(f"names: there is no {name!r} among the {len(known)} quantities of this model. {hint}")
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


def legend_above(ax, ncols=2):
    """A legend over the axes, where it hides nothing."""
    return ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 1),
        ncols=ncols,
        frameon=False,
        handletextpad=0.5,
        columnspacing=1.4,
        numpoints=1,
    )


def listing(names):
    """The first names, in parentheses on a line of their own; nothing for none."""
    if not names:
        return ""
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"\n({', '.join(map(str, names[:_LISTED]))}{more})"


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
