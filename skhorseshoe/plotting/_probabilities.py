"""Displays of predicted probabilities: their intervals, and their calibration."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_random_state

from .._data.labels import is_second
from .._posterior import estimates
from .._posterior.claim_errors import check_share
from .._posterior.classes import shown_classes
from .._posterior.decisions import calibration_of, matched_rows, round_limit
from .._posterior.fitted_rows import warn_of_seen_rows
from .._posterior.mixin import level_of
from .._posterior.predictive_check import drawn, outcomes_of_groups, whole_counts
from .._posterior.resampling import row_counts, units_of, warn_of_rows_alone
from .._utils.counts import check_count
from ._base import DARK, MUTED, PALE, SHARES, AxesDisplay, IntervalsDisplay, check_option, ink
from ._texts import class_names, known_line, percent

if TYPE_CHECKING:
    from .._types import (
        Axes,
        DataFrame,
        Floats,
        Labels,
        Model,
        NDArray,
        NewGroups,
        Offsets,
        RowOrder,
        RowsLike,
        Seed,
        Weights,
    )

_HISTOGRAM_HEIGHT = 0.12  # as a share of the height of the axes
_ROW_LABELS = {"probability": "rows, the most probable first", "original": "row"}


class ProbabilityIntervalDisplay(IntervalsDisplay):
    """For single rows: the probability of the second class, and how certain it is.

    The mark is the posterior predictive probability, the line its credible interval, the uncertainty
    about that probability given the data.

    Parameters
    ----------
    names : sequence of length n_samples
        Names of the rows.
    mean : ndarray of shape (n_samples,)
        Posterior predictive probabilities of the second class.
    classes : ndarray of shape (2,)
        The labels.
    y : ndarray of shape (n_samples,) or None, default=None
        The true labels, where known.

    Examples
    --------
    >>> display = plotting.ProbabilityIntervalDisplay.from_estimator(clf, X[:5])
    >>> display.interval.shape
    (2, 5)
    """

    level: float
    classes: NDArray[Any]
    y: NDArray[Any] | None = None
    known_groups: tuple[int, int] | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        X: RowsLike,
        y: Labels = None,
        *,
        level: float | None = None,
        order: RowOrder = "probability",
        threshold: float | None = 0.5,
        groups: Labels = None,
        offset: Offsets = None,
        new_groups: NewGroups = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compute the intervals and draw them.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The rows. The index of a pandas frame names them.
        y : array-like of shape (n_samples,) or None, default=None
            Their true labels, to mark the rows by.
        order : {"probability", "original"}, default="probability"
            The largest probability first, or as in X.
        threshold : float or None, default=0.5
            Where to draw a line: the probability above which one would act, in (0, 1).
        groups, offset, new_groups : see ``HorseshoeProbitClassifier.predict_proba``
            The groups of the rows, and their offsets. The label of the axis says how many groups the fit has seen.
        """
        classifier, matched, arguments = matched_rows(estimator, X, y, groups, offset, new_groups)
        level, shown = level_of(classifier, level), shown_classes(classifier)
        mean = classifier.predict_proba(**arguments)[:, 1]
        if y is not None:
            y = shown[is_second(y, mean, classifier).astype(int)]
        return cls(
            names=list(X.index) if hasattr(X, "index") and hasattr(X, "columns") else list(range(len(mean))),
            mean=mean,
            interval=classifier.predict_interval(**arguments, level=level).T,
            level=level,
            classes=shown,
            y=y,
            known_groups=matched and matched.counts,
        ).plot(order=order, threshold=threshold, ax=ax)

    def plot(self, *, order: RowOrder = "probability", threshold: float | None = 0.5, ax: Axes | None = None) -> Self:
        check_option("order", order, tuple(_ROW_LABELS))
        if threshold is not None:
            check_share("threshold", threshold)
        first, second = class_names(self.classes)
        marks: Any = np.ones(len(self.mean), dtype=bool), [None]
        if self.y is not None:
            marks = self.y == self.classes[1], [f"in truth {second}", f"in truth {first}"]
        rows = np.argsort(-self.mean, kind="stable") if order == "probability" else np.arange(len(self.mean))
        label = f"probability of {second} and {self._what}{known_line(self.known_groups)}"
        mean, interval, row_label = self.mean, self.interval, _ROW_LABELS[order]
        return self._draw(
            ax, rows, mean, interval, marks=marks, label=label, row_label=row_label, line=threshold, limits=SHARES
        )


class PosteriorCalibrationDisplay(AxesDisplay):
    """Do predicted probabilities come true? Observed shares against predicted ones, without bins.

    The curve is the isotonic regression of the outcomes on the predicted probabilities. The band is where that curve
    lies, point by point, if the model is right: it is computed from outcomes drawn from the posterior predictive
    distribution, so it includes both the randomness of the outcomes and the uncertainty about the model. A curve below
    the diagonal means probabilities that are too high. The bars along the bottom show the distribution of the
    predictions.

    Parameters
    ----------
    predicted : ndarray of shape (n_points,)
        Predicted probabilities of the second class, ascending, each once.
    observed : ndarray of shape (n_points,)
        Observed shares of the second class: the isotonic regression.
    band : ndarray of shape (2, n_points)
        Lower and upper end of the band.
    counts : ndarray of shape (n_points,)
        How many rows have each predicted probability.
    level : float
        Level of the band at each point, in (0, 1).
    calibration : pandas.DataFrame or None, default=None
        The calibration slope and intercept of `skhorseshoe.inspection.calibration`, which stand in the corner; None
        where the rows do not tell them.

    Attributes
    ----------
    line_ : matplotlib.lines.Line2D
        The observed shares.
    band_ : matplotlib.collections.PolyCollection
        The band.
    bars_ : matplotlib.container.BarContainer
        Histogram of the predictions; the highest bar has 0.12 of the height of the axes.

    References
    ----------
    Dimitriadis, T., Gneiting, T. & Jordan, A. I. (2021). Stable reliability diagrams for probabilistic classifiers.
    Proceedings of the National Academy of Sciences 118(8).

    Säilynoja, T., Johnson, A. R., Martin, O. A. & Vehtari, A. (2025). Recommendations for visual predictive checks in
    Bayesian workflow. arXiv:2503.01509.

    Examples
    --------
    >>> from skhorseshoe import HorseshoeProbitClassifier, datasets, plotting
    >>> X, y, coef = datasets.make_sparse_probit(2000, 20, random_state=0)
    >>> clf = HorseshoeProbitClassifier(random_state=0).fit(X[:1000], y[:1000])
    >>> display = plotting.PosteriorCalibrationDisplay.from_estimator(clf, X[1000:], y[1000:])
    >>> lower, upper = display.band
    >>> within = (lower <= display.observed) & (display.observed <= upper)
    >>> bool(within.mean() > 0.5)
    True
    """

    predicted: Floats
    observed: Floats
    band: Floats
    counts: NDArray[Any]
    level: float
    label: object
    known_groups: tuple[int, int] | None = None
    calibration: DataFrame | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Model,
        X: RowsLike,
        y: Labels,
        *,
        level: float | None = None,
        n_draws: int = 400,
        random_state: Seed = 0,
        limit: float | None = None,
        sample_weight: Weights = None,
        groups: Labels = None,
        offset: Offsets = None,
        new_groups: NewGroups = None,
        ax: Axes | None = None,
    ) -> Self:
        """Compare the predictions for labelled rows with the labels; best use rows that the model has not seen.

        Parameters
        ----------
        X : array-like or table of shape (n_samples, n_features)
            The rows.
        y : array-like of shape (n_samples,)
            Their labels.
        level : float or None, default=None
            Level of the band at each point, in (0, 1). None is the classifier's ``credible_level``.
        n_draws : int, default=400
            Posterior draws to draw outcomes from: at least 20, and one of each chain. The memory is about
            ``16 * n_samples * n_draws`` bytes.
        random_state : int, RandomState instance or None, default=0
            Seed of the outcomes that are drawn.
        limit : float or None, default=None
            Upper end of both axes, in (0, 1]. None is the smallest of 1, 0.5, 0.2, 0.1, 0.05, ... below which 95 % of
            the events are expected. Where rows have predictions above it, the axis says so.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the rows, whole numbers: a row of weight w counts as w rows, whose outcomes are drawn one by one.
        groups, offset, new_groups : see ``HorseshoeProbitClassifier.predict_proba``
            The groups of the rows, and their offsets. Rows of one group share its effect, also if the fit has not seen
            the group, so the band is wider the fewer groups there are. Without ``groups``, or those of some factor, a
            model with groups takes each row for a new group of its own: if rows belong together, the band is too
            narrow, and a warning says so. The label of the axis says how many groups the fit has seen.
        """
        classifier, matched, arguments = matched_rows(estimator, X, y, groups, offset, new_groups)
        level = level_of(classifier, level)
        check_count("n_draws", n_draws, max(20, len(classifier.intercept_draws_)))
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
        proba = classifier.predict_proba(**arguments)[:, 1]
        counts = whole_counts(row_counts(X, sample_weight, len(proba)))
        predicted, place = np.unique(proba[counts > 0], return_inverse=True)
        y, n = is_second(y, proba, classifier), np.bincount(place, counts[counts > 0]).astype(np.int64)
        warn_of_seen_rows(classifier, arguments["X"], counts)
        warn_of_rows_alone(classifier, matched, is_band=True)
        if matched is not None:
            outcomes = outcomes_of_groups(classifier, arguments, n_draws, matched, rng, counts)
        else:
            samples = classifier.predict_proba_samples(**arguments, max_draws=n_draws)
            outcomes = (drawn(rng, p, counts) for p in samples.T)
        curves = [_isotonic(one[counts > 0], place, n) for one in outcomes]
        return cls(
            predicted=predicted,
            observed=_isotonic((y * counts)[counts > 0], place, n),
            band=estimates.interval(np.array(curves)[None], level),
            counts=n,
            level=level,
            label=shown_classes(classifier)[1],
            known_groups=matched and matched.counts,
            calibration=calibration_of(proba, y, units_of(matched, counts.astype(float)), level, 0),
        ).plot(limit=limit, ax=ax)

    def plot(self, *, limit: float | None = None, ax: Axes | None = None) -> Self:
        end: float = round_limit(self.predicted, self.counts) if limit is None else limit
        if not isinstance(end, Real) or not 0 < end <= 1:
            raise ValueError(f"limit must be above 0 and at most 1, or None; got {limit!r}.")
        ax = self._axes(ax, height=5.2)
        from matplotlib.ticker import MaxNLocator

        share = f"{percent(self.level)} band if the model is right"
        black, dark, muted, pale = (ink(ax, colour) for colour in ("black", DARK, MUTED, PALE))
        self.band_ = ax.fill_between(self.predicted, *self.band, color=pale, linewidth=0, label=share, zorder=1)
        (self.line_,) = ax.plot(self.predicted, self.observed, color=dark, linewidth=1.8, label="observed", zorder=3)
        ax.plot([0, 1], [0, 1], color=black, linewidth=0.8, linestyle=":", zorder=2)
        heights, edges = np.histogram(self.predicted, 40, range=(0, end), weights=self.counts)
        heights = heights * (_HISTOGRAM_HEIGHT * end / max(1, heights.max()))
        self.bars_ = ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color=muted, linewidth=0, zorder=2.5)
        ax.set(xlim=(0, end), ylim=(0, end), aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
            axis.set_major_formatter("{x:g}")
        if self.calibration is not None:
            rows = self.calibration.itertuples()
            text = "\n".join(f"{name} {value:z.2f} ({low:z.2f} to {high:z.2f})" for name, value, low, high in rows)
            ax.text(0.02, 0.98, text, transform=ax.transAxes, va="top", zorder=4)
        (label,), n_beyond = class_names([self.label]), self.counts[self.predicted > end].sum()
        beyond = f"\n({n_beyond:.0f} of {self.counts.sum():.0f} rows are beyond)" if n_beyond else ""
        return self._finish(
            f"predicted probability of {label}{beyond}{known_line(self.known_groups)}", f"observed share of {label}"
        )


def _isotonic(y, place, counts):
    """Isotonic regression of numbers of outcomes on their predictions; a value for each distinct prediction."""
    return isotonic_regression(np.bincount(place, y) / counts, sample_weight=counts, y_min=0, y_max=1)
