"""Displays of coefficients with their intervals, of their shrinkage, and of credible sets."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from .._posterior import estimates
from .._posterior.claim_errors import check_share
from .._posterior.mixin import level_of
from .._posterior.pipeline import named_classifier
from .._utils.names import names_of
from ._common import MAX_NAMES, RowsDisplay, check_count, check_option, favoured_line, listing

if TYPE_CHECKING:
    from .._types import ArrayLike, Axes, Bools, Floats, Model, NDArray, Order
    from ..groups import CredibleSets

_ORDERS = ("size", "name", "original")


class _FeaturesDisplay(RowsDisplay):
    """Rows that are features; the first by size can be selected."""

    def _draw_features(self, ax, top, order, by_size, values, ends=None, *, first, marked, labels, **options):
        """first : the property of those that come first ``by_size``, in words."""
        check_option("order", order, _ORDERS)
        if top is not None:
            check_count("top", top)
        n_features = len(self.names)
        shown = by_size[:top]
        row_label = None
        if len(shown) < n_features:
            row_label = f"the {len(shown)} {first} of {n_features}"
        elif n_features > MAX_NAMES:
            row_label = {"size": f"features, the {first} first", "name": "features by name", "original": "column"}[
                order
            ]
        if order == "name":
            shown = np.array(sorted(shown, key=lambda j: str(self.names[j])))
        elif order == "original":
            shown = np.sort(shown)
        if len(shown) > MAX_NAMES:  # the axis has no room for names
            labels = labels[0] + listing(self.names, shown[marked[shown]]), labels[1]
        return self._draw(
            ax, shown, values, ends, names=self.names, marked=marked, labels=labels, row_label=row_label, **options
        )


@dataclass(kw_only=True, repr=False, eq=False)
class CoefficientsDisplay(_FeaturesDisplay):
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
    classes : ndarray of shape (2,) or None, default=None
        The labels; positive coefficients favour the second one, as the axis then says.

    Attributes
    ----------
    shown_ : ndarray of int
        The features that are drawn, from the top or from the left, as positions in ``names``.
    points_ : list of matplotlib.lines.Line2D
        The means: of the selected features, of the others.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the selected features, of the others.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> display = plotting.CoefficientsDisplay.from_estimator(clf, top=10)
    >>> [display.names[j] for j in display.shown_[:6]]  # the columns that matter
    ['x4', 'x1', 'x5', 'x3', 'x0', 'x2']
    """

    names: list[str]
    mean: Floats
    interval: Floats
    level: float
    selected: Bools | None = None
    classes: NDArray[Any] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        *,
        level: float | None = None,
        selected: ArrayLike | None = None,
        top: int | None = 20,
        order: Order = "size",
        ax: Axes | None = None,
    ) -> Self:
        """Compute the intervals and draw them.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            A fitted classifier, or a fitted Pipeline or search (GridSearchCV) that ends with one.
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
        """
        classifier = named_classifier(estimator)
        level = level_of(classifier, level)
        if selected is not None:
            selected = np.asarray(selected)
            if selected.dtype != bool or selected.shape != (classifier.n_features_in_,):
                raise ValueError(
                    f"selected must be a boolean mask of shape ({classifier.n_features_in_},), one value for each "
                    f"feature; got shape {selected.shape} of {selected.dtype}."
                )
        return cls(
            names=names_of(classifier),
            mean=estimates.means(classifier)[0],
            interval=estimates.interval(classifier.coef_draws_, level),
            level=level,
            selected=selected,
            classes=classifier.classes_,
        ).plot(top=top, order=order, ax=ax)

    def plot(self, *, top: int | None = 20, order: Order = "size", ax: Axes | None = None) -> Self:
        marked, labels = self.selected, ("selected", "not selected")
        if marked is None:
            marked = estimates.excludes_zero(self.interval)
            labels = f"{100 * self.level:g} % interval excludes zero", "includes zero"
        by_size = np.argsort(-np.abs(self.mean), kind="stable")
        return self._draw_features(
            ax,
            top,
            order,
            by_size,
            self.mean,
            self.interval,
            first="largest",
            marked=marked,
            labels=labels,
            reference=0,
            value_label=f"coefficient: mean and {100 * self.level:g} % interval{favoured_line(self.classes)}",
        )


@dataclass(kw_only=True, repr=False, eq=False)
class ShrinkageDisplay(_FeaturesDisplay):
    """The shrinkage kappa_j of coefficients: near 1 shrunk to zero, near 0 not shrunk.

    What is below one half is a screen for data in which few of many columns matter, without a stated rate of errors: it
    lets in noise. `CoefficientsDisplay` shows which signs are clear. Make it with `from_estimator`.

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
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    References
    ----------
    Carvalho, C. M., Polson, N. G. & Scott, J. G. (2010). The horseshoe estimator. Biometrika 97, 465-480.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X, y)
    >>> display = plotting.ShrinkageDisplay.from_estimator(clf)
    >>> sorted(display.names[j] for j in display.shown_[:6])  # the least shrunk
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    names: list[str]
    shrinkage: Floats

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        *,
        top: int | None = 20,
        order: Order = "size",
        threshold: float = 0.5,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the attribute ``shrinkage_`` of a fitted classifier.

        Parameters
        ----------
        estimator : HorseshoeProbitClassifier, Pipeline or search
            A fitted classifier, or a fitted Pipeline or search (GridSearchCV) that ends with one.
        top : int or None, default=20
            Number of features to draw, the least shrunk. None draws all; more than 60 are drawn side by side, without
            names.
        order : {"size", "name", "original"}, default="size"
            The least shrunk first, by name, or as in X.
        threshold : float, default=0.5
            Features with less shrinkage are marked; in (0, 1).
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : ShrinkageDisplay
        """
        classifier = named_classifier(estimator)
        display = cls(names=names_of(classifier), shrinkage=classifier.shrinkage_)
        return display.plot(top=top, order=order, threshold=threshold, ax=ax)

    def plot(
        self, *, top: int | None = 20, order: Order = "size", threshold: float = 0.5, ax: Axes | None = None
    ) -> Self:
        check_share("threshold", threshold)
        below = self.shrinkage < threshold
        return self._draw_features(
            ax,
            top,
            order,
            np.argsort(self.shrinkage, kind="stable"),
            self.shrinkage,
            first="least shrunk",
            marked=below,
            labels=(f"below {threshold:g}: {below.sum()} of {len(self.names)}", "others"),
            reference=threshold,
            limits=(-0.02, 1.02),
            value_label="shrinkage (0: left alone, 1: shrunk to zero)",
        )


@dataclass(kw_only=True, repr=False, eq=False)
class CredibleSetsDisplay(RowsDisplay):
    """The effects of credible sets of columns with their intervals, and below each set those of its columns.

    Where the interval of a set is narrow and those of its columns are wide, the columns stand in for one another. Make
    it with `from_sets`.

    Parameters
    ----------
    names : sequence of str of length n_rows
        Names of the sets and of the columns, with their probabilities.
    mean : ndarray of shape (n_rows,)
        Posterior means: of the effects of the sets, of the parts that their columns have in these.
    interval : ndarray of shape (2, n_rows)
        Lower and upper ends of the credible intervals.
    level : str
        Level of the intervals, in words.
    is_set : ndarray of shape (n_rows,), bool
        Which rows are sets.
    classes : sequence of length 2 or None, default=None
        The labels; positive effects favour the second one, as the axis then says.

    Attributes
    ----------
    shown_ : ndarray of int
        The rows that are drawn, from the top or from the left.
    points_ : list of matplotlib.lines.Line2D
        The means: of the sets, of their columns.
    lines_ : list of matplotlib.collections.LineCollection
        The intervals: of the sets, of their columns.
    legend_, ax_, figure_ : matplotlib.legend.Legend, matplotlib.axes.Axes, matplotlib.figure.Figure

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, groups, plotting
    >>> X, y, coef = datasets.make_sparse_probit(1000, 30, random_state=0)
    >>> found = groups.credible_sets(HorseshoeProbitClassifier(random_state=0).fit(X, y), X)
    >>> display = plotting.CredibleSetsDisplay.from_sets(found)
    >>> sorted(name[:2] for name in display.names)  # each alone, since no columns are correlated
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    names: list[str]
    mean: Floats
    interval: Floats
    level: str
    is_set: Bools
    classes: list[Any] | None = None

    @classmethod
    def from_sets(cls, found: CredibleSets, *, ax: Axes | None = None) -> Self:
        """Draw what `credible_sets <skhorseshoe.groups.credible_sets>` has found.

        Parameters
        ----------
        found : CredibleSets
            The sets. More than 60 rows are drawn side by side, without names.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : CredibleSetsDisplay
        """
        ends = [name for name in found.sets.columns if name.endswith("%")]
        names, rows, is_set = [], [], []
        for title, row in found.sets.iterrows():
            names.append(_row(title, row["probability"]))
            rows.append(row[["mean", *ends]].to_numpy(np.float64))
            is_set.append(True)
            if row["n_columns"] > 1:
                members: Any = found.members.xs(title)
                names += [f"\N{MIDDLE DOT} {_row(name, alone)}" for name, alone in members["probability"].items()]
                rows += list(members[["mean", *ends]].to_numpy(np.float64))
                is_set += [False] * len(members)
        mean, *interval = np.reshape(rows, (-1, 3)).T
        low, high = (float(name.removesuffix("%")) for name in ends)
        return cls(
            names=names,
            mean=mean,
            interval=np.array(interval),
            level=f"{high - low:.5g} %",  # the headings have six digits
            is_set=np.array(is_set, bool),
            classes=found.sets.attrs.get("classes"),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        effect = f"effect of one standard deviation on the score: mean and {self.level} interval"
        return self._draw(
            ax,
            np.arange(len(self.mean)),
            self.mean,
            self.interval,
            names=self.names,
            marked=self.is_set,
            labels=("sets: probability of a signal", "their columns: of each alone"),
            reference=0,
            value_label=f"{effect}{favoured_line(self.classes)}",
            row_label=None if len(self.mean) <= MAX_NAMES else "sets and their columns",
        )


def _row(name, probability):
    """A name with a probability that is not rounded up."""
    return f"{name}: {floor(1000 * probability) / 10:g} %"
