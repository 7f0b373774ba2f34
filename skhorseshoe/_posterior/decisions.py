"""What a model's probabilities are worth: the net benefit of acting on them, and their calibration in two numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.utils.validation import _num_samples

from .._data.factors import of_new_factors
from .._data.input_table import refuse_lazy, warn_if_reordered
from .._data.labels import is_second
from .._utils.errstate import guarded
from .classes import event_of, refuse_classes, shown_classes
from .estimates import interval
from .fitted_rows import warn_of_seen_rows
from .grouped_prediction import is_grouped, matched_groups
from .mixin import level_of
from .pipeline import prepared, unwrap
from .resampling import row_counts, units_of, warn_of_rows_alone
from .summary import by_heading, in_lines
from .table import TableOfDraws

if TYPE_CHECKING:
    from .._types import ArrayLike, DataFrame, Labels, Model, NewGroups, Offsets, RowsLike, Seed, Weights

_SHOWN = 0.95  # smallest share of the expected events to show
_ROUNDING, _CERTAIN = 1e-12, 1e-16
_NEWTON_STEPS, _LONGEST_STEP, _CONVERGED = 200, 4.0, 3e-5  # the next step would be some 1e-9
_RIDGE = 1e-12  # added to the information, in units of the weights, so that it has an inverse


@guarded
def net_benefit(
    model: Model,
    X: RowsLike,
    y: Labels = None,
    thresholds: ArrayLike | None = None,
    *,
    level: float | None = None,
    sample_weight: Weights = None,
    groups: Labels = None,
    offset: Offsets = None,
    new_groups: NewGroups = None,
    random_state: Seed = 0,
) -> DataFrame:
    """The net benefit of acting where the probability is a threshold or more: a decision curve as numbers.

    At the threshold t it is TP / n - FP / n * t / (1 - t), of n rows: the true positives, less the false ones at the
    rate at which one trades them by acting from t on (Vickers & Elkin 2006). Acting on nobody has 0.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Of more than two classes, ask that of `one_vs_rest`, or of ordered ones that of `at_least`.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        The rows to act on. With ``y`` they should be others than those of the fit, on which it is too good.
    y : array-like of shape (n_samples,) or None, default=None
        Their labels. None is what the model expects before they are known.
    thresholds : array-like of shape (k,) or None, default=None
        In (0, 1). None is 49 with equal steps from 0 to a limit, without both: the smallest of 1, 0.5, 0.2, 0.1, ...
        below which 95 % of the events are expected.
    level : float or None, default=None
        Level of the intervals, in (0, 1). None is the classifier's ``credible_level``.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows: a row of weight w counts as w rows.
    groups, offset, new_groups : see ``HorseshoeProbitClassifier.predict_proba``
        The groups of the rows, and their offsets. With ``y`` groups are also what is drawn, see the notes, and any
        model takes them.
    random_state : int, RandomState instance or None, default=0
        Seed of the draws with ``y``.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by threshold, with the columns net_benefit, the ends of its interval, treat_all (that of acting on
        everybody) and prob_useful (that it is above both that and 0). ``frame.draws`` are the draws, which are paired
        for models that are asked of the same rows: subtract them to compare models.

    Raises
    ------
    ValueError
        If thresholds are not different numbers in (0, 1), ``level`` is not in (0, 1), the model has more than two
        classes or, with ``y``, is that of `against`, or the rows, labels, weights or groups cannot be used.

    Notes
    -----
    One acts on the average over the draws, so that is the rule whose net benefit is told. With ``y`` the 1000 draws are
    of the population that the rows are from, by Rubin's (1981) Bayesian bootstrap of rows or, where given, of whole
    groups, with several factors of that with the fewest. One group does not tell how much groups differ: then it is the
    next factor that is drawn, or rows, and the interval is that of other rows of this group. From fewer than five it is
    too narrow. Warnings say both. Without ``y`` the draws are those of the posterior: the outcomes of these rows have
    the probabilities of each.

    References
    ----------
    Vickers, A. J. & Elkin, E. B. (2006). Decision curve analysis. Medical Decision Making 26, 565-574.

    Rubin, D. B. (1981). The Bayesian bootstrap. Annals of Statistics 9, 130-134.
    """
    classifier, matched, arguments = matched_rows(model, X, y, groups, offset, new_groups, "net_benefit", True)
    level = level_of(classifier, level)
    p = classifier.predict_proba(**arguments)[:, 1]
    counts = row_counts(X, sample_weight, len(p))
    share, told = counts / counts.sum(), ""
    t = np.arange(1, 50) / 50 * round_limit(p, counts) if thresholds is None else np.asarray(thresholds, float).ravel()
    if not (len(t) and ((t > 0) & (t < 1)).all() and len({*t}) == len(t)):
        raise ValueError(
            f"thresholds must be different numbers above 0 and below 1 (0.2 for 20 %); got {thresholds!r:.100}."
        )
    acts, odds = np.column_stack([p[:, None] >= t, np.ones((len(p), len(t)))]), np.tile(t / (1 - t), 2)
    if y is None:
        samples = classifier.predict_proba_samples(**arguments).T
        draws = samples @ (share[:, None] * acts * (1 + odds)) - odds * (share @ acts)
        means = draws.mean(axis=0)
    else:
        values = acts * np.where(is_second(y, p, classifier)[:, None], 1, -odds)
        warn_of_seen_rows(classifier, arguments["X"], counts)
        warn_of_rows_alone(classifier, matched)
        codes, _, within, told = units = units_of(matched, counts)
        totals, draws, means = np.column_stack([np.ones(len(p)), values]) * within[:, None], [], share @ values
        totals = np.array([np.bincount(codes, column) for column in totals.T]).T
        for weights in units.draws(len(totals), random_state):
            sums = weights @ totals
            draws.append(sums[:, 1:] / sums[:, [0]])
        draws = np.concatenate(draws)
    model_draws, of_all = np.split(draws, 2, axis=1)
    useful = (model_draws > np.maximum(of_all, 0) + _ROUNDING).mean(axis=0)
    ends = by_heading(interval(model_draws[None], level), level)
    of_model, of_everybody = np.split(means, 2)
    frame = TableOfDraws(
        {"net_benefit": of_model, **ends, "treat_all": of_everybody, "prob_useful": useful},
        index=pd.Index(t, name="threshold"),
    )
    n_chains = 1 if y is not None else len(classifier.intercept_draws_)
    frame._draws = t.tolist(), model_draws.reshape(n_chains, -1, len(t))
    expected = "expected" if y is None else "observed"
    what = f"P({event_of(classifier)}) >= threshold"
    frame.attrs["header"] = in_lines(f"Net benefit of acting on {what}, {expected}, {counts.sum():.0f} rows{told}")
    frame.attrs["about"] = {"label": shown_classes(classifier)[1], "level": level}
    return frame


def calibration(
    model: Model,
    X: RowsLike,
    y: Labels,
    *,
    level: float | None = None,
    sample_weight: Weights = None,
    groups: Labels = None,
    offset: Offsets = None,
    new_groups: NewGroups = None,
    random_state: Seed = 0,
) -> DataFrame:
    """The calibration slope and intercept of predicted probabilities p, in logits (Cox 1958).

    The slope is b of logit P(y = 1) = a + b logit(p): 1 is right, and less means that probabilities are too extreme,
    as of a model that fits noise. The intercept ("calibration in the large") is a where b is held at 1: 0 is right, and
    less means that they are too high.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted. Of more than two classes, ask that of `one_vs_rest`, or of ordered ones that of `at_least`.
    X, y : array-like or table of shape (n_samples, n_features), and array-like of shape (n_samples,)
        Rows that the model has not seen, and their labels.
    level, sample_weight, groups, offset, new_groups, random_state : see `net_benefit`
        The level of the intervals, the weights of the rows, their groups and offsets, and the seed of the draws.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed by "slope" and "intercept", with the columns estimate and the ends of the interval. ``frame.draws`` are
        1000 draws of the population, as of `net_benefit`, whose notes say what is drawn of few groups.

    Raises
    ------
    ValueError
        If no slope is known, since all rows have one label or one probability, or a threshold of the probability
        separates the labels; else as `net_benefit`.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45, 562-565.
    """
    classifier, matched, arguments = matched_rows(model, X, y, groups, offset, new_groups, "calibration", True)
    p = classifier.predict_proba(**arguments)[:, 1]
    y, counts = is_second(y, p, classifier), row_counts(X, sample_weight, len(p))
    warn_of_seen_rows(classifier, arguments["X"], counts)
    warn_of_rows_alone(classifier, matched)
    frame = calibration_of(p, y, units_of(matched, counts), level_of(classifier, level), random_state)
    if frame is None:
        raise ValueError(
            f"The calibration slope of these {counts.sum():.0f} rows is not known: all have one label or one "
            "probability, or a threshold of the probability separates the labels. Give more rows."
        )
    return frame


@guarded
def calibration_of(p, y, units, level, random_state):
    """See ``calibration``, of probabilities and labels (n,) of the rows of ``Units``; None where the slope is not
    known."""
    z = logit(np.clip(p, _CERTAIN, 1 - _CERTAIN))
    counts = units.counts
    first, second = z[~y & (counts > 0)], z[y & (counts > 0)]
    if not (len(first) and len(second) and second.min() < first.max() and first.min() < second.max()):
        return None
    unit = z.std()
    design = np.column_stack([(z - z.mean()) / unit, np.ones(len(z))])
    free, fixed = (design, 0.0, y), (design[:, 1:], z, y)
    starts = [_logistic(*fit, counts[None], np.zeros((1, fit[0].shape[1]))) for fit in (free, fixed)]
    draws = []
    for of_units in units.draws(len(p), random_state):
        weights, fits = of_units[:, units.codes] * units.within, zip((free, fixed), starts, strict=True)
        draws.append([_logistic(*fit, weights, start)[:, 0] for fit, start in fits])
    draws, estimate = np.hstack(draws).T[None], np.array([start[0, 0] for start in starts])
    draws[..., 0], estimate[0] = draws[..., 0] / unit, estimate[0] / unit
    ends = by_heading(interval(draws, level), level)
    frame = TableOfDraws({"estimate": estimate, **ends}, index=["slope", "intercept"])
    frame._draws = ["slope", "intercept"], draws
    rows = f"{counts.sum():.0f} rows{units.told}"
    frame.attrs["header"] = in_lines(f"Calibration in logits by {rows}: a slope of 1 and an intercept of 0 are right")
    return frame


def matched_rows(model, X, y, groups, offset, new_groups, what="A display of probabilities", are_units=False):
    """The classifier, the matched groups of the rows, and arguments for predictions, which need not say again how many
    groups are known. are_units : whether groups have a use for a model without groups, that rows are drawn by them."""
    steps, classifier = unwrap(model)
    if y is not None and hasattr(classifier, "_others_excluded"):
        raise ValueError(
            f"{what} with y takes no model {classifier._derived}: that is of rows for which no other class is "
            "possible, and rows of both are those that others have left. Ask inspection.one_vs_rest(model, label)."
        )
    refuse_classes(classifier, what, with_y=y is not None)
    refuse_lazy(X)
    warn_if_reordered(X, y=y)
    rows = prepared(steps, X, groups=groups, offset=offset)
    n, units = None if groups is None else _num_samples(rows), None
    if are_units and groups is not None and y is not None and not is_grouped(classifier):
        units, groups = of_new_factors(groups, n), None
    matched = matched_groups(classifier, n, groups, new_groups)
    return classifier, units or matched, {"X": rows, "groups": groups, "offset": offset, "new_groups": bool(new_groups)}


def round_limit(predicted, counts):
    """The smallest of 1, 0.5, 0.2, 0.1, ... below which a share ``_SHOWN`` of the events is expected."""
    order = np.argsort(predicted)
    expected = np.cumsum((predicted * counts)[order])
    largest = predicted[order][np.searchsorted(expected, _SHOWN * expected[-1])]
    sizes = [float(f"{digit}e{power}") for power in range(-6, 0) for digit in (1, 2, 5)]
    return min((size for size in sizes if size >= largest), default=1.0)


def _logistic(design, offset, y, weights, coef):
    """The coefficients (k, d) of logistic regressions with weights (k, n) of the rows, by Newton's method from (1, d),
    whose first step takes one exponential for each row. A step is halved while the slope along it, at its end, is below
    minus half of that at its beginning: the likelihood is concave, so that its top is well behind."""
    products, d = (design[:, :, None] * design[:, None]).reshape(len(design), -1), design.shape[1]
    out, left, step, slope = np.empty((len(weights), d)), np.arange(len(weights)), 0.0 * coef, np.zeros(1)
    for _ in range(_NEWTON_STEPS):
        p = expit(coef @ design.T + offset)
        gradient = weights * (y - p) @ design
        is_behind = (gradient * step).sum(axis=1) < -0.5 * slope
        hessian = (weights * (p * (1 - p)) @ products).reshape(-1, d, d)
        hessian += _RIDGE * weights.sum(axis=1)[:, None, None] * np.eye(d)
        newton = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        newton *= np.minimum(1.0, _LONGEST_STEP / np.abs(newton).max(axis=1, initial=1e-300, keepdims=True))
        slope = np.where(is_behind, slope / 2, (gradient * newton).sum(axis=1))
        move, step = np.where(is_behind[:, None], [-step / 2, step / 2], newton)
        coef = coef + move
        out[left] = coef
        goes_on = is_behind | (np.abs(move) > _CONVERGED * (1 + np.abs(coef))).any(axis=1)
        if not goes_on.any():
            break
        left, weights, coef, step, slope = (values[goes_on] for values in (left, weights, coef, step, slope))
    return out
