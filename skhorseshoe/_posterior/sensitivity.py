"""How far the posterior moves where the prior or the likelihood is raised to a power, from the draws by weights.

The law of a coefficient given tau stays: in a hierarchy it is the top that is scaled. A power of the density of beta
given tau would have the factor tau^(1 - power) for each column, which is another prior of tau, improper for the power
1.05 from some twenty columns on; one of the density of beta / tau would change the unit of tau. Nor does a power touch
the law of effects of groups given their scale.
"""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from scipy.special import rel_entr

from .._mcmc.prior import WIDE
from .._model.horseshoe import log_half_cauchy
from .._utils.errstate import guarded
from .._utils.memmap import cut
from .._utils.names import names_of
from .._utils.warn import warn
from ..diagnostics import mcse_mean
from .arviz import log_normal, log_prior
from .classes import cut_points, has_sizes, is_ordered, needs_two
from .estimates import SCALE_ROW, other_quantities, scale_names
from .grouped_prediction import draws_with_effects, is_grouped, is_of_several
from .loo import LEAST_DRAWS, highest_good_k, relative_efficiency, smoothed_weights, tail_length
from .pipeline import named, prepared, unwrap
from .predict import rows_of_fit, total_log_likelihood
from .shrunk_columns import shrunk_columns
from .summary import in_lines
from .table import Summary

if TYPE_CHECKING:
    from .._types import DataFrame, Labels, Model, Offsets, RowsLike, Weights

MOVED = 0.05  # distance for a doubling of the power from which the posterior is said to move
_BY_SHIFT = MOVED / 0.3  # distance for a shift of the mean by a standard deviation, roughly
_TOO_FEW = "too few draws to tell"
_NUMBERS_AT_A_TIME = 2**20


@guarded
def sensitivity(
    model: Model,
    X: RowsLike = None,
    y: Labels = None,
    sample_weight: Weights = None,
    *,
    groups: Labels = None,
    offset: Offsets = None,
    delta: float = 0.01,
) -> DataFrame:
    """How far each answer moves if the prior, or the likelihood, is raised to a power, without a second fit.

    Powers are 1 + ``delta`` and 1 / (1 + ``delta``). Draws are given weights, the largest of which are smoothed.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted.
    X, y, sample_weight, groups, offset : see `loo`, default=None
        The rows of the fit with their labels, weights, groups and offsets, for the likelihood: its power 2 counts each
        row twice. Without them the prior alone is scaled, which needs no rows. With groups the likelihood is that given
        their effects, and draws are those for which these are kept.
    delta : float, default=0.01
        In (0, 1]. It hardly changes the result, since that is for a doubling of the power; with smaller ones weights
        are more even.

    Returns
    -------
    frame : pandas.DataFrame
        Indexed as `summary`: coefficients, the intercept or cut points, and the logarithms of the scales. Columns:
        prior, the cumulative Jensen-Shannon distance between the posteriors for a doubling of the power, of which 0.05
        and more matters (about 0.3 standard deviations of the mean); prior_shift, by how many posterior standard
        deviations the mean moves for a doubling; prior_error, the Monte Carlo error of that; the same for the
        likelihood; diagnosis, in words. ``frame.attrs`` has "pareto_k" of the weights by name, "good_k" and "header".

    Raises
    ------
    ValueError
        If one of X and y is missing, rows are not those of the fit or have no groups, ``delta`` is out of range, there
        are fewer than 100 draws, or the model is that of `at_least`, `against`, `one_vs_rest` or `with_prevalence`, or
        has several classes without an order.

    Warns
    -----
    UserWarning
        If a Pareto k is above ``good_k``, so that weights are not to be trusted.

    Notes
    -----
    What is scaled of the prior is what has a number: the law of tau (``global_scale``), the slab, the laws of the scale
    of groups, intercept, cut points and unpenalized coefficients. Power a makes the density of tau
    (1 + (tau / tau_0)^2)^-a and a slab c / sqrt(a). The horseshoe of a coefficient given tau stays, as the paper
    advises for hierarchies: a power of it would be another law of tau, the more so the more columns there are. Where
    prior and likelihood both move an answer, they disagree about it; where the prior alone does, it says more than the
    data.

    References
    ----------
    Kallioinen, N., Paananen, T., Bürkner, P.-C. & Vehtari, A. (2024). Detecting and diagnosing prior and likelihood
    sensitivity with power-scaling. Statistics and Computing 34, 57.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import sensitivity
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((300, 5))
    >>> y = X[:, 0] - 0.5 * X[:, 1] + rng.standard_normal(300) > 0
    >>> moved = sensitivity(HorseshoeProbitClassifier(random_state=0).fit(X, y), X, y)
    >>> bool(moved["prior"]["x0"] < 0.05), bool(moved["likelihood"]["x0"] > 0.05)
    (True, True)
    """
    steps, classifier = unwrap(model)
    if has_sizes(classifier):
        raise needs_two(classifier, "sensitivity")
    if (X is None) != (y is None) or (X is None and not (sample_weight is None and groups is None and offset is None)):
        raise ValueError("X and y are needed together: the likelihood is that of the labels y of the rows X.")
    if isinstance(delta, bool) or not isinstance(delta, Real) or not 0 < delta <= 1:
        raise ValueError(f"delta must be above 0 and at most 1; got {delta!r}.")
    if hasattr(classifier, "_derived"):
        cure = "ask the one that was fitted."
        if is_of_several(classifier):
            cure = "sensitivity takes no part of a fit to several classes without an order. Fit y == a class."
        raise ValueError(f"This is the model {classifier._derived}: {cure}")
    labelled = None
    if X is not None:
        if (groups is None) != (not is_grouped(classifier)):
            raise ValueError("Give groups= if, and only if, the model was fitted with groups: those of the rows X.")
        labelled = rows_of_fit(classifier, prepared(steps, X), y, sample_weight, offset, groups)
    return _frame(named(steps, classifier), labelled, float(delta))


def _frame(model, labelled, delta):
    """The frame of ``sensitivity``. labelled : None, or as from ``predict.rows_of_fit``."""
    draws = _answers(model)
    n_chains, n_draws = draws[0][1].shape
    if n_chains * n_draws < LEAST_DRAWS:
        raise ValueError(
            f"sensitivity needs {LEAST_DRAWS} draws or more, not {n_chains * n_draws}: fit with a larger n_iter."
        )
    kept = draws_with_effects(model) if labelled is not None and labelled[0].codes is not None else slice(None)
    scaled = {"prior": log_prior_of_draws(model)[:, kept]}
    if labelled is not None:
        scaled["likelihood"] = total_log_likelihood(model, *labelled).reshape(n_chains, -1)
    n_tail = tail_length(scaled["prior"].size, relative_efficiency(model, None))
    powers = -delta / (1 + delta), delta  # both powers less 1: 1 / (1 + delta) and 1 + delta
    weights = {name: [smoothed_weights(c * log.ravel(), n_tail) for c in powers] for name, log in scaled.items()}
    rows = [_of_answer(values[:, kept], scaled, weights, delta) for _, values in draws]
    frame = Summary(rows, index=pd.Index([name for name, _ in draws], name="feature", tupleize_cols=False))
    frame["diagnosis"] = _diagnoses(frame)
    k = {name: max(shape for _, shape in pair) for name, pair in weights.items()}
    good_k = highest_good_k(scaled["prior"].size)
    frame.attrs |= {"pareto_k": k, "good_k": good_k, "header": _header(frame, k, good_k)}
    return frame


def log_prior_of_draws(model):
    """The logarithm of what is scaled of the prior, for each draw, up to a constant; (n_chains, n_draws)."""
    terms, tau, shrunk = log_prior(model, None), model.global_scale_draws_, shrunk_columns(model)
    total = log_half_cauchy((tau / model.prior_["tau_0"]) ** 2)
    total += sum(terms[name] for name in terms if name == "intercept" or name.startswith("group_scale"))
    total += terms["unpenalized"].sum(axis=-1) if "unpenalized" in terms else 0.0
    if is_ordered(model):  # the first cut point is minus the intercept
        at_mean = cut_points(model)[..., 1:]
        if model._fit_facts["fit_intercept"]:
            at_mean = at_mean - (model.coef_draws_ @ model._column_means)[..., None]
        total += log_normal(at_mean**2, WIDE).sum(axis=-1)
    for some in cut(0, len(shrunk.places), max(1, _NUMBERS_AT_A_TIME // tau.size)):
        in_slabs = model.coef_draws_[..., shrunk.places[some]] / (shrunk.slabs / shrunk.unit)[some]
        total -= (in_slabs**2).sum(axis=-1) / 2
    return total


def _answers(model):
    """Pairs of the names of quantities and draws (n_chains, n_draws); logarithms of scales, which may have no
    variance."""
    scales = scale_names(model)
    others = {
        name: np.log(values) if name in scales and name.endswith(SCALE_ROW) else values  # not correlations
        for name, values in other_quantities(model)[0].items()
    }
    return [*zip(names_of(model), np.moveaxis(model.coef_draws_, 2, 0), strict=True), *others.items()]


def _of_answer(values, scaled, weights, delta):
    """The row of a quantity with draws (n_chains, n_draws). scaled : log densities, and weights at both powers, by
    name."""
    values = values.astype(np.float64)
    spread, doubling, row = values.std(), np.log2(1 + delta), {}
    order = np.argsort(values, axis=None, kind="stable")
    flat = values.ravel()[order]
    for name, log in scaled.items():
        low, high = (weight[order] for weight, _ in weights[name])
        product = (values - values.mean()) * (log - log.mean())  # its mean is the derivative of the mean by the power
        row |= {
            name: (_distance(flat, low) + _distance(flat, high)) / (2 * doubling),
            f"{name}_shift": float((high - low) @ flat) / (2 * doubling * spread) if spread > 0 else 0.0,
            f"{name}_error": float(np.log(2) * mcse_mean(product) / spread) if spread > 0 else 0.0,
        }
    return row


def _distance(values, weight):
    """The cumulative Jensen-Shannon distance, in [0, 1], of ascending values (n,) to these with weights, or if larger
    that of their opposites."""
    width, n = np.diff(values), len(values)
    own, other = np.arange(1, n) / n, np.minimum(np.cumsum(weight)[:-1], 1.0)
    squares = []
    for p, q in ((own, other), (1 - own, 1 - other)):
        p, q = np.maximum(p, 0.0), np.maximum(q, 0.0)
        middle = (p + q) / 2
        both, bound = float(width @ (rel_entr(p, middle) + rel_entr(q, middle))), np.log(2) * float(width @ (p + q))
        squares.append(max(0.0, both) / bound if bound > 0 else 0.0)
    return float(np.sqrt(max(squares)))


def _diagnoses(frame):
    """What each row says, in words."""
    words, likelihood = np.full(len(frame), "", object), frame.get("likelihood")
    moved, is_clear = frame["prior"] >= MOVED, frame["prior"] > 2 * _BY_SHIFT * frame["prior_error"]
    words[moved & ~is_clear] = _TOO_FEW
    words[moved & is_clear] = "moved by the prior"
    if likelihood is not None:
        words[moved & is_clear & (likelihood >= MOVED)] = "prior and data disagree"
        words[moved & is_clear & (likelihood < MOVED)] = "prior says more than the data"
    return words


def _header(frame, k, good_k):
    """The frame in words; a warning where weights are not to be trusted."""
    n_moved = int((~frame["diagnosis"].isin(["", _TOO_FEW])).sum())
    shapes = ", ".join(f"{shape:.2f} of the {name}" for name, shape in k.items())
    if high := [name for name, shape in k.items() if shape > good_k]:
        warn(
            f"Pareto k of the weights is above {good_k:.2g} ({shapes}), so the sensitivity to the "
            f"{' and the '.join(high)} is not to be trusted: take a smaller delta, or fit twice, with another prior."
        )
    return in_lines(
        f"{n_moved} of {len(frame)} quantities are moved by the prior: a distance of {MOVED:g} or more for a doubling "
        "of its power, and more than Monte Carlo error. Shifts are of the mean, in posterior standard deviations for a "
        f"doubling, with their Monte Carlo error. Pareto k: {shapes} (at most {good_k:.2g})"
    )
