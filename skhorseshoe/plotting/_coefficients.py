"""The coefficients with their intervals, and how far each is shrunk."""

import numpy as np

from .._posterior import estimates
from ._common import (
    MAX_NAMES,
    check_count_or_none,
    check_option,
    draw_rows,
    finish,
    letters_in,
    level_of,
    listing,
    names_of,
    new_axes,
    row_names,
    unwrap,
)

_ORDERS = ("size", "name", "original")


class CoefficientsDisplay:
    """Posterior means of the coefficients with their credible intervals, the selected ones marked.

    Make it with `from_estimator`.

    Parameters
    ----------
    names : sequence of str of length n_features
        Names of the features.
    mean : ndarray of shape (n_features,)
        Posterior means, on the scale of the columns.
    interval : ndarray of shape (2, n_features)
        Lower and upper ends of the credible intervals.
    level : float
        Level of the intervals, in (0, 1).
    selected : ndarray of shape (n_features,), bool, or None, default=None
        The features to mark. None marks those whose interval excludes zero.

    Attributes
    ----------
    shown_ : ndarray of int
        The features that are drawn, from the top or from the left, as positions in ``names``.
    points_ : list of matplotlib.lines.Line2D
        The means: of the selected features, of the others.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the selected features, of the others.
    legend_ : matplotlib.legend.Legend
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> from skhorseshoe.plotting import CoefficientsDisplay
    >>> X, y, coef = make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> display = CoefficientsDisplay.from_estimator(clf, top=10)
    >>> [display.names[j] for j in display.shown_[:6]]  # the columns that matter
    ['x4', 'x1', 'x5', 'x3', 'x0', 'x2']
    """

    def __init__(self, *, names, mean, interval, level, selected=None):
        self.names = names
        self.mean = mean
        self.interval = interval
        self.level = level
        self.selected = selected

    @classmethod
    def from_estimator(cls, estimator, *, level=None, selected=None, top=20, order="size", ax=None):
        """Compute the intervals and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier or Pipeline
            A fitted classifier, or a fitted Pipeline that ends with one.
        level : float or None, default=None
            Level of the intervals, in (0, 1). None is the classifier's ``credible_level``.
        selected : array-like of shape (n_features,), bool, or None, default=None
            The features to mark, for example ``selector.get_support()``. None marks those whose interval excludes zero.
        top : int or None, default=20
            Number of features to draw, those with the largest absolute means. None draws all; more than 60 are drawn
            side by side, without names.
        order : {"size", "name", "original"}, default="size"
            Largest absolute mean first, by name, or as in X.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : CoefficientsDisplay

        Raises
        ------
        TypeError
            If the estimator is not such a classifier or Pipeline, or ``top`` is not an integer.
        ValueError
            If a parameter has a value that is not listed above.
        """
        before, classifier = unwrap(estimator)
        level = level_of(level, classifier)
        if selected is not None:
            selected = np.asarray(selected)
            if selected.dtype != bool or selected.shape != (classifier.n_features_in_,):
                raise ValueError(
                    f"selected must be a boolean mask of shape ({classifier.n_features_in_},), one value for each "
                    f"feature; got shape {selected.shape} of {selected.dtype}."
                )
        display = cls(
            names=names_of(before, classifier),
            mean=estimates.means(classifier)[0],
            interval=estimates.interval(classifier.coef_draws_, level),
            level=level,
            selected=selected,
        )
        return display.plot(top=top, order=order, ax=ax)

    def plot(self, *, top=20, order="size", ax=None):
        """Draw.

        Parameters
        ----------
        top : int or None, default=20
            Number of features to draw, those with the largest absolute means. None draws all; more than 60 are drawn
            side by side, without names.
        order : {"size", "name", "original"}, default="size"
            Largest absolute mean first, by name, or as in X.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        self : CoefficientsDisplay
        """
        check_option("order", order, _ORDERS)
        n_features = len(self.names)
        check_count_or_none("top", top)
        shown = _arrange(np.argsort(-np.abs(self.mean), kind="stable")[:top], self.names, order)
        if self.selected is None:
            marked = (self.interval[0] > 0) | (self.interval[1] < 0)
            labels = f"{100 * self.level:g} % interval excludes zero", "includes zero"
        else:
            marked = self.selected
            labels = "selected", "not selected"
        given, ax = ax, new_axes("CoefficientsDisplay.plot", ax, rows=len(shown))
        self.points_, self.lines_ = draw_rows(
            ax,
            row_names(ax, self.names, shown),
            self.mean[shown],
            self.interval[:, shown],
            marked[shown],
            labels=_label(ax, labels, self.names, shown[marked[shown]], len(shown)),
            reference=0,
            value_label=f"coefficient: mean and {100 * self.level:g} % interval",
            row_label=_row_label("largest", len(shown), n_features, order),
        )
        self.legend_ = finish(ax, given)
        self.shown_, self.ax_, self.figure_ = shown, ax, ax.figure
        return self


class ShrinkageDisplay:
    """The shrinkage kappa_j of all coefficients: near 1 shrunk to zero, near 0 not shrunk.

    Make it with `from_estimator`.

    Parameters
    ----------
    names : sequence of str of length n_features
        Names of the features.
    shrinkage : ndarray of shape (n_features,)
        Posterior means of kappa_j, in [0, 1].

    Attributes
    ----------
    shown_ : ndarray of int
        The features that are drawn, from the top or from the left, as positions in ``names``.
    points_ : list of matplotlib.lines.Line2D
        The features below the threshold, the others.
    legend_ : matplotlib.legend.Legend
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    References
    ----------
    Carvalho, C. M., Polson, N. G. & Scott, J. G. (2010). The horseshoe estimator. Biometrika 97, 465-480.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> from skhorseshoe.plotting import ShrinkageDisplay
    >>> X, y, coef = make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> display = ShrinkageDisplay.from_estimator(clf)
    >>> sorted(display.names[j] for j in display.shown_[:6])  # the least shrunk
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    def __init__(self, *, names, shrinkage):
        self.names = names
        self.shrinkage = shrinkage

    @classmethod
    def from_estimator(cls, estimator, *, top=None, order="size", threshold=0.5, ax=None):
        """Draw the attribute ``shrinkage_`` of a fitted classifier.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier or Pipeline
            A fitted classifier, or a fitted Pipeline that ends with one.
        top : int or None, default=None
            Number of features to draw, the least shrunk. None draws all.
        order : {"size", "name", "original"}, default="size"
            The least shrunk first, by name, or as in X.
        threshold : float, default=0.5
            Features with less shrinkage are marked.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : ShrinkageDisplay

        Raises
        ------
        TypeError
            If the estimator is not such a classifier or Pipeline, or ``top`` is not an integer.
        ValueError
            If a parameter has a value that is not listed above.
        """
        before, classifier = unwrap(estimator)
        display = cls(names=names_of(before, classifier), shrinkage=classifier.shrinkage_)
        return display.plot(top=top, order=order, threshold=threshold, ax=ax)

    def plot(self, *, top=None, order="size", threshold=0.5, ax=None):
        """Draw.

        Parameters
        ----------
        top : int or None, default=None
            Number of features to draw, the least shrunk. None draws all.
        order : {"size", "name", "original"}, default="size"
            The least shrunk first, by name, or as in X.
        threshold : float, default=0.5
            Features with less shrinkage are marked.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        self : ShrinkageDisplay
        """
        check_option("order", order, _ORDERS)
        check_count_or_none("top", top)
        n_features = len(self.names)
        shown = _arrange(np.argsort(self.shrinkage, kind="stable")[:top], self.names, order)
        below = self.shrinkage < threshold
        labels = f"below {threshold:g}: {below.sum()} of {n_features}", "others"
        given, ax = ax, new_axes("ShrinkageDisplay.plot", ax, rows=len(shown))
        self.points_, _ = draw_rows(
            ax,
            row_names(ax, self.names, shown),
            self.shrinkage[shown],
            None,
            below[shown],
            labels=_label(ax, labels, self.names, shown[below[shown]], len(shown)),
            reference=threshold,
            value_label="shrinkage (0: left alone, 1: shrunk to zero)",
            row_label=_row_label("least shrunk", len(shown), n_features, order),
            limits=(-0.02, 1.02),
        )
        self.legend_ = finish(ax, given)
        self.shown_, self.ax_, self.figure_ = shown, ax, ax.figure
        return self


def _arrange(shown, names, order):
    """Features that come by size, in the order that is asked for."""
    if order == "name":
        return np.array(sorted(shown, key=lambda j: str(names[j])))
    return np.sort(shown) if order == "original" else shown


def _label(ax, labels, names, marked, n_shown):
    """The two labels; where there is no room for names on the axis, the first names of those marked are in theirs."""
    if n_shown <= MAX_NAMES:
        return labels
    return labels[0] + listing(names, marked, letters_in(ax, beside=12, most=60)), labels[1]


def _row_label(first, n_shown, n_features, order):
    if n_shown < n_features:
        return f"the {n_shown} {first} of {n_features}"
    if n_shown > MAX_NAMES:
        return {"size": f"features, the {first} first", "name": "features by name", "original": "column"}[order]
    return None
