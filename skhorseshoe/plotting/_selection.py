"""How many columns are needed to predict as the whole posterior does."""

from itertools import pairwise

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..selection import HorseshoeSelector
from ._common import (
    MAX_NAMES,
    check_count,
    draw_rows,
    finish,
    flat_steps,
    joined,
    names_of,
    new_axes,
    row_names,
    where_it_is,
)


class SelectionPathDisplay:
    """What each further column adds to a sparse summary of the posterior, and when the summary is good enough.

    Starting from the summary without any shrunk column, each row adds the columns that the path of the rule
    "dss" takes next, and shows how far the probabilities then are from those of the posterior mean. The scale is linear
    up to the dashed line, and logarithmic beyond it. Make it with `from_estimator`.

    Parameters
    ----------
    names : sequence of str of length n_features
        Names of the features.
    supports : ndarray of shape (n_supports, n_features), bool
        Columns of the summaries, the first with none, or only with those that are not shrunk.
    distances : ndarray of shape (n_supports,)
        Kullback-Leibler divergence of each from the posterior mean, summed over the rows of X, in nats.
    radius : float
        Largest divergence allowed, in the same unit.
    level : float
        Share of the draws that lie within ``radius``, in (0, 1).

    Attributes
    ----------
    shown_ : ndarray of int
        The summaries that are drawn, from the top or from the left, as positions in ``supports``.
    points_ : list of matplotlib.lines.Line2D
        The divergences: up to the chosen summary, beyond it.
    legend_ : matplotlib.legend.Legend
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    References
    ----------
    Hahn, P. R. & Carvalho, C. M. (2015). Decoupling shrinkage and selection in Bayesian linear models: a posterior
    summary perspective. Journal of the American Statistical Association 110, 435-448.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier; from skhorseshoe import HorseshoeSelector
    >>> from skhorseshoe.datasets import make_sparse_probit
    >>> from skhorseshoe.plotting import SelectionPathDisplay
    >>> X, y, coef = make_sparse_probit(1000, 30, random_state=0)
    >>> selector = HorseshoeSelector(HorseshoeProbitClassifier(random_state=0)).fit(X, y)
    >>> display = SelectionPathDisplay.from_estimator(selector)
    >>> sorted(label.get_text() for label in display.ax_.get_yticklabels()[1:7])  # the first that join
    ['+ x0', '+ x1', '+ x2', '+ x3', '+ x4', '+ x5']
    """

    def __init__(self, *, names, supports, distances, radius, level):
        self.names = names
        self.supports = supports
        self.distances = distances
        self.radius = radius
        self.level = level

    @classmethod
    def from_estimator(cls, estimator, *, beyond=5, ax=None):
        """Draw the attribute ``path_`` of a fitted selector.

        Parameters
        ----------
        estimator : HorseshoeSelector or Pipeline
            A fitted selector with ``rule="dss"``, or a fitted Pipeline with one such step.
        beyond : int or None, default=5
            Number of summaries to draw after the chosen one, if the path goes that far. None draws all.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        display : SelectionPathDisplay

        Raises
        ------
        TypeError
            If the estimator is no such selector or Pipeline, or ``beyond`` is not an integer.
        ValueError
            If the selector has another rule, or ``beyond`` is negative.
        """
        before, selector = _selector_in(estimator)
        path = selector.path_
        if path is None:
            raise ValueError(f"Only rule='dss' has a path; this selector was fitted with rule={selector.rule!r}.")
        display = cls(
            names=names_of(before, selector),
            supports=path["supports"],
            distances=path["distances"],
            radius=path["radius"],
            level=path["level"],
        )
        return display.plot(beyond=beyond, ax=ax)

    def plot(self, *, beyond=5, ax=None):
        """Draw.

        Parameters
        ----------
        beyond : int or None, default=5
            Number of summaries to draw after the chosen one, if the path goes that far. None draws all; more
            than 60 are drawn side by side, without names.
        ax : matplotlib.axes.Axes or None, default=None
            Axes to draw on. None makes a figure.

        Returns
        -------
        self : SelectionPathDisplay
        """
        if beyond is not None:
            check_count("beyond", beyond, smallest=0)
        chosen = int(np.argmax(self.distances <= self.radius))
        shown = np.arange(len(self.distances))[: None if beyond is None else chosen + 1 + beyond]
        given, ax = ax, new_axes("SelectionPathDisplay.plot", ax, rows=len(shown))
        self.points_, _ = draw_rows(
            ax,
            row_names(ax, _changes(self.names, self.supports[shown]), range(len(shown))),
            self.distances[shown],
            None,
            shown <= chosen,
            labels=(f"needed: {_columns(self.supports[chosen].sum())}", "not needed"),
            reference=self.radius,
            value_label=f"divergence in nats (dashed: {100 * self.level:g} % of the draws are nearer)",
            row_label=None if len(shown) <= MAX_NAMES else "columns, in the order of the path",
        )
        _scale(ax, "x" if len(shown) <= MAX_NAMES else "y", self.radius or 1.0)
        self.legend_ = finish(ax, given)
        self.shown_, self.ax_, self.figure_ = shown, ax, ax.figure
        return self


def _selector_in(estimator):
    """The steps before the selector, or None, and the fitted selector, which may be a step of a Pipeline."""
    steps = flat_steps(estimator)
    found = [k for k, step in enumerate(steps) if isinstance(step, HorseshoeSelector)]
    if len(found) != 1:
        raise TypeError(
            "A fitted HorseshoeSelector is wanted, or a Pipeline with one such step; got "
            f"{type(estimator).__name__}.{where_it_is(estimator)}"
        )
    (k,) = found
    check_is_fitted(steps[k])
    return joined(steps[:k]), steps[k]


def _changes(names, supports):
    """What each summary has that the one before has not, and the other way round."""
    texts = [_list(names, supports[0]) or "no column"]
    for before, now in pairwise(supports):
        changes = ("+", now & ~before), ("\N{MINUS SIGN}", before & ~now)
        texts.append(" ".join(f"{sign} {_list(names, these)}" for sign, these in changes if these.any()))
    return texts


def _list(names, mask):
    return ", ".join(str(names[j]) for j in np.flatnonzero(mask))


def _scale(ax, axis, linear):
    """In proportion beyond the line, with room for a divergence of zero."""
    getattr(ax, f"set_{axis}scale")("symlog", linthresh=linear)
    getattr(ax, f"set_{axis}lim")(-0.05 * linear, None)
    getattr(ax, f"{axis}axis").set_major_formatter("{x:g}")


def _columns(n):
    return f"{n} column{'' if n == 1 else 's'}"
