"""Displays of coefficients with their intervals, of their shrinkage, and of credible sets."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pandas import DataFrame

from .._posterior import estimates
from .._posterior.claim_errors import check_share
from .._posterior.classes import refuse_several
from .._posterior.mixin import level_of
from .._posterior.pipeline import named_classifier
from .._utils.counts import check_count
from .._utils.names import names_of
from ._base import SHARES, IntervalsDisplay, RowsDisplay, check_option, table_intervals
from ._texts import favoured_line

if TYPE_CHECKING:
    from .._types import ArrayLike, Axes, Bools, Floats, Model, NDArray, Order
    from ..sets import CredibleSets

_ORDERS = {"size": "features, the {first} first", "name": "features by name", "original": "column"}


class CoefficientsDisplay(IntervalsDisplay):
    """Posterior means of the coefficients with their credible intervals, the selected ones marked.

    Parameters
    ----------
    mean : ndarray of shape (n_features,)
        Posterior means, on the scale of the columns.
    selected : ndarray of shape (n_features,), bool, or None, default=None
        The features to mark. None marks those whose interval excludes zero.

    Examples
    --------
    >>> display = plotting.CoefficientsDisplay.from_estimator(clf, top=10)
    >>> [display.names[j] for j in display.shown_[:6]]  # the columns that matter
    ['x4', 'x1', 'x5', 'x3', 'x0', 'x2']
    """

    level: float
    selected: Bools | None = None
    classes: NDArray[Any] | None = None
    favours: str | None = None

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
        selected : array-like of shape (n_features,), bool, or None, default=None
            The features to mark, for example ``selector.get_support()``. None marks those whose interval excludes zero.
        top : int or None, default=20
            Number of features to draw, those with the largest absolute means. None draws all; more than 60 are drawn
            side by side, without names.
        order : {"size", "name", "original"}, default="size"
            Largest absolute mean first, by name, or as in X.
        """
        classifier = named_classifier(estimator)
        refuse_several(classifier, "CoefficientsDisplay")
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
            favours=getattr(classifier, "_favours", None),
        ).plot(top=top, order=order, ax=ax)

    def plot(self, *, top: int | None = 20, order: Order = "size", ax: Axes | None = None) -> Self:
        shown, row_label = _first_features(self.names, top, order, -np.abs(self.mean), "largest")
        marks = self._clear() if self.selected is None else (self.selected, ("selected", "not selected"))
        label = f"coefficient: mean and {self._what}{favoured_line(self.classes, self.favours)}"
        return self._draw(
            ax, shown, self.mean, self.interval, marks=marks, label=label, row_label=row_label, listed=True
        )


class ShrinkageDisplay(RowsDisplay):
    """The shrinkage kappa_j of coefficients: near 1 shrunk to zero, near 0 not shrunk.

    What is below one half is a screen for data in which few of many columns matter, without a stated rate of errors: it
    lets in noise. `CoefficientsDisplay` shows which signs are clear, and `skhorseshoe.HorseshoeSelector` has the
    references.

    Parameters
    ----------
    shrinkage : ndarray of shape (n_features,)
        Posterior means of kappa_j, in [0, 1].

    Examples
    --------
    >>> display = plotting.ShrinkageDisplay.from_estimator(clf)
    >>> sorted(display.names[j] for j in display.shown_[:6])  # the least shrunk
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

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
        top : int or None, default=20
            Number of features to draw, the least shrunk. None draws all; more than 60 are drawn side by side, without
            names.
        order : {"size", "name", "original"}, default="size"
            The least shrunk first, by name, or as in X.
        threshold : float, default=0.5
            Features with less shrinkage are marked; in (0, 1).
        """
        classifier = named_classifier(estimator)
        display = cls(names=names_of(classifier), shrinkage=classifier.shrinkage_)
        return display.plot(top=top, order=order, threshold=threshold, ax=ax)

    def plot(
        self, *, top: int | None = 20, order: Order = "size", threshold: float = 0.5, ax: Axes | None = None
    ) -> Self:
        check_share("threshold", threshold)
        shown, row_label = _first_features(self.names, top, order, self.shrinkage, "least shrunk")
        below = self.shrinkage < threshold
        marks = below, (f"below {threshold:g}: {below.sum()} of {len(self.names)}", "others")
        label, values = "shrinkage (0: left alone, 1: shrunk to zero)", self.shrinkage
        return self._draw(
            ax, shown, values, marks=marks, label=label, row_label=row_label, line=threshold, limits=SHARES, listed=True
        )


class CredibleSetsDisplay(IntervalsDisplay):
    """The effects of credible sets of columns with their intervals, and below each set those of its columns.

    Where the interval of a set is narrow and those of its columns are wide, the columns stand in for one another.

    Parameters
    ----------
    names : sequence of str of length n_rows
        Names of the sets and of the columns, with their probabilities.
    mean : ndarray of shape (n_rows,)
        Posterior means: of the effects of the sets, of the parts that their columns have in these.
    level : str
        Level of the intervals, in words.
    is_set : ndarray of shape (n_rows,), bool
        Which rows are sets.

    Examples
    --------
    >>> from skhorseshoe import sets
    >>> found = sets.credible_sets(clf, X)
    >>> display = plotting.CredibleSetsDisplay.from_sets(found)
    >>> sorted(name[:2] for name in display.names)  # each alone, since no columns are correlated
    ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    level: str
    is_set: Bools
    classes: list[Any] | None = None
    favours: str | None = None

    @classmethod
    def from_sets(cls, found: CredibleSets, *, ax: Axes | None = None) -> Self:
        """Draw what `credible_sets <skhorseshoe.sets.credible_sets>` has found.

        Parameters
        ----------
        found : CredibleSets
            The sets. More than 60 rows are drawn side by side, without names.
        """
        rows = []
        for title, row in found.sets.iterrows():
            rows.append((title, row))
            if row["n_columns"] > 1:
                members = found.members.xs(title)
                rows += [(f"\N{MIDDLE DOT} {name}", member) for name, member in members.iterrows()]
        mean, interval, level = table_intervals(DataFrame([row for _, row in rows], columns=found.sets.columns))
        return cls(
            # Not rounded up, but by the error of numbers.
            names=[f"{name}: {floor(1000 * row['probability'] + 1e-6) / 10:g} %" for name, row in rows],
            mean=mean,
            interval=interval,
            level=level,
            is_set=np.array(["n_columns" in row for _, row in rows], bool),
            classes=found.sets.attrs.get("classes"),
            favours=found.sets.attrs.get("favours"),
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        marks = self.is_set, ("sets: probability of a signal", "their columns: of each alone")
        favoured = favoured_line(self.classes, self.favours)
        effect = f"effect of one standard deviation on the score: mean and {self._what}{favoured}"
        rows, row_label = np.arange(len(self.mean)), "sets and their columns"
        return self._draw(ax, rows, self.mean, self.interval, marks=marks, label=effect, row_label=row_label)


def _first_features(names, top, order, size, first):
    """The first features by ``size``, in this order or another one, and what they are in words, as ``first`` ones."""
    check_option("order", order, tuple(_ORDERS))
    check_count("top", top, optional=True)
    shown = np.argsort(size, kind="stable")[:top]
    cut = len(shown) < len(names)
    words = f"the {len(shown)} {first} of {len(names)}" if cut else _ORDERS[order].format(first=first)
    if order == "name":
        shown = np.array(sorted(shown, key=lambda j: str(names[j])))
    elif order == "original":
        shown = np.sort(shown)
    return shown, words
