"""Observed shares of the second class beside those that the model predicts, by a column or by groups of rows."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype
from scipy.sparse import csr_array
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import _num_samples

from .._data.input_table import warn_if_reordered
from .._data.labels import is_second
from .._utils.counts import check_count
from .._utils.errstate import guarded
from .._utils.memmap import cut
from .._utils.names import class_texts, printable
from .classes import one_above_other, shown_classes
from .decisions import matched_rows
from .estimates import interval
from .grouped_prediction import draws_with_effects, evenly, factors_of_effects, roots, values_in_rows
from .input_rows import InputRows
from .mixin import level_of
from .pipeline import unwrap
from .resampling import row_counts, warn_of_rows_alone
from .summary import by_heading, in_lines
from .table import Summary, value_text

if TYPE_CHECKING:
    from .._types import DataFrame, Labels, Model, NewGroups, Offsets, RowsLike, Seed, Weights

_NUMBERS_AT_A_TIME = 2**22  # probabilities of rows under draws


def drawn(rng, p, counts):
    """How many are of the second class among as many outcomes with these probabilities as rows count for."""
    return rng.random(p.shape) < p if np.all(counts == 1) else rng.binomial(counts, np.clip(p, 0, 1))


def whole_counts(counts):
    """Whole numbers of rows (n,) for ``drawn``; a ValueError for others."""
    whole = np.rint(counts)
    if (broken := np.flatnonzero(counts != whole)).size:
        raise ValueError(
            "The band is that of outcomes that are drawn anew, of each row as many as its weight says: sample_weight "
            f"must hold whole numbers of rows here, and that of row {broken[0]} is {counts[broken[0]]:g}."
        )
    return whole.astype(np.int64)


def outcomes_of_groups(classifier, arguments, n_draws, matched, rng, counts=1):
    """Yields outcomes (n,) under each draw, as of ``drawn``; rows of a new group share new effects. arguments : of
    predictions, whose samples are averages over these."""
    of_new = evenly(roots(classifier)[:, draws_with_effects(classifier)], n_draws)
    of = factors_of_effects(classifier)
    is_new, codes = (matched.codes < 0)[:, of], matched.own.T[of]
    values = values_in_rows(classifier, classifier._check_rows(arguments["X"]))
    values = is_new * (1.0 if values is None else values)
    # A class between others is y >= it less y >= the next, and each of these grows with u.
    models = one_above_other(classifier)
    samples = [model.predict_proba_samples(**arguments, max_draws=n_draws).T for model in models]
    for p, root in zip(zip(*samples, strict=True), of_new.reshape(-1, *of_new.shape[2:]), strict=True):
        shared = (values @ root).T  # what independent standard normals of each group add to its rows
        effects = sum(one * rng.standard_normal(len(own))[own] for one, own in zip(shared, codes, strict=True))
        given = effects, sum(map(np.square, shared))
        at_least, *above = (m._likelihood.probability_given(one, *given) for m, one in zip(models, p, strict=True))
        yield drawn(rng, at_least - sum(above), counts)


@guarded
def predictive_check(
    model: Model,
    X: RowsLike,
    y: Labels,
    by: Any,
    *,
    bins: int = 10,
    level: float | None = None,
    n_draws: int = 400,
    random_state: Seed = 0,
    sample_weight: Weights = None,
    groups: Labels = None,
    offset: Offsets = None,
    new_groups: NewGroups = None,
) -> DataFrame:
    """Does the model fit? Observed shares of the second class beside predicted ones, by a column or by groups of rows.

    The band of a share is where it is if the model is right, from outcomes that are drawn under draws of the posterior:
    it has the chance of the outcomes and the uncertainty about the model.

    Parameters
    ----------
    model : HorseshoeProbitClassifier, Pipeline or search
        Fitted on two classes, or from `one_vs_rest` or `at_least`.
    X : array-like, table or sparse matrix of shape (n_samples, n_features)
        Rows as the model takes them: those of the fit, or better rows that it has not seen.
    y : array-like of shape (n_samples,)
        Their labels.
    by : str, int or array-like of shape (n_samples,)
        A column of X by name or number, or a label for each row, as its hospital, which need not be in the model.
    bins : int, default=10
        More numbers or dates than this are cut into so many ranges with about as many rows each; an array of
        integers holds labels.
    level : float or None, default=None
        Level of the band, in (0, 1); None takes ``credible_level``.
    n_draws : int, default=400
        Draws of the posterior to draw outcomes from: at least 20, and one of each chain.
    random_state : int, RandomState instance or None, default=0
        Seed of the outcomes.
    sample_weight : array-like of shape (n_samples,) or None, default=None
        Weights of the rows, whole numbers: a row of weight w counts as w rows, whose outcomes are drawn one by one.
    groups, offset, new_groups : see ``HorseshoeProbitClassifier.predict_proba``
        The groups of the rows, and their offsets. Rows of a group that the fit has not seen share its effect.

    Returns
    -------
    frame : pandas.DataFrame
        A row for each range, level or label: n, observed, predicted, the ends of the band, and outside, whether the
        observed share is not in it. ``frame.attrs["header"]`` says how many are, and compares the standard deviation of
        the shares, ``frame.attrs["spread"]``, with its band: larger, where rows belong together and the model was not
        told. `PredictiveCheckDisplay <skhorseshoe.plotting.PredictiveCheckDisplay>` draws it.

    Raises
    ------
    ValueError
        If ``by`` is no column of X and no label for each row, a number is out of range, or a weight is not whole; or
        the model has several classes.

    Warns
    -----
    UserWarning
        If the model was fitted with groups, and none are given or not those of every factor, or ``new_groups`` does not
        say whether they are new.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe import HorseshoeProbitClassifier
    >>> from skhorseshoe.inspection import predictive_check
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((2000, 3))
    >>> y = X[:, 0] ** 2 + X[:, 1] + rng.standard_normal(2000) > 1  # a curve, and the model has a line
    >>> check = predictive_check(HorseshoeProbitClassifier(random_state=0).fit(X, y), X, y, by="x0")
    >>> bool(check["outside"].mean() > 0.5), bool(check["observed"].iloc[0] > check["predicted"].iloc[0])
    (True, True)
    """
    level = level_of(unwrap(model)[1], level)
    check_count("bins", bins, 2)
    check_count("n_draws", n_draws, max(20, len(unwrap(model)[1].intercept_draws_)))
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31))
    warn_if_reordered(X, by=by)
    classifier, matched, arguments = matched_rows(model, X, y, groups, offset, new_groups, "A predictive check")
    counts = whole_counts(row_counts(X, sample_weight, _num_samples(X)))
    name, codes, labels = _cells(X, by, bins, counts)
    n = np.bincount(codes, counts, len(labels))
    proba = classifier.predict_proba(**arguments)[:, 1]
    y = is_second(y, codes, classifier)
    warn_of_rows_alone(classifier, matched, is_band=True)
    repeated = _repeated(classifier, arguments, matched, codes, counts, len(labels), n_draws, rng) / n
    shares = {"observed": np.bincount(codes, y * counts) / n, "predicted": np.bincount(codes, proba * counts) / n}
    band = interval(repeated[None], level)
    frame = Summary(
        {"n": n.astype(np.int64), **shares, **by_heading(band, level)},
        index=pd.Index(labels, name=name, tupleize_cols=False),
    )
    observed = shares["observed"]
    frame["outside"] = (observed < band[0] - 1e-12) | (observed > band[1] + 1e-12)
    # Counts do not weigh: how far apart shares are.
    spread, expected = observed.std(), interval(repeated.std(axis=1)[None], level)
    frame.attrs |= {"spread": (float(spread), *map(float, expected)), "level": level}
    frame.attrs["classes"] = shown_classes(classifier).tolist()
    second, share = class_texts(frame.attrs["classes"])[1], f"{100 * level:g} %"
    frame.attrs["header"] = in_lines(
        f"Shares of {second} by {printable(name)}: {frame['outside'].sum()} of {len(frame)} are outside the {share} "
        f"band in which they are if the model is right. Their standard deviation is {spread:.3f}, and would be "
        f"{expected[0]:.3f} to {expected[1]:.3f}"
    )
    return frame


def _repeated(classifier, arguments, matched, codes, counts, m, n_draws, rng):
    """Counts of the second class in each cell, of outcomes drawn under each draw; (n_draws, m)."""
    n = len(codes)
    inside = csr_array((np.ones(n), (codes, np.arange(n))), shape=(m, n))
    if matched is not None:
        each = outcomes_of_groups(classifier, arguments, n_draws, matched, rng, counts)
        return np.array([inside @ outcomes for outcomes in each])
    total, offset = 0.0, arguments["offset"]
    for rows in cut(0, n, max(1, _NUMBERS_AT_A_TIME // n_draws)):
        of_rows = None if offset is None else np.asarray(offset)[rows]
        p = classifier.predict_proba_samples(_safe_indexing(arguments["X"], rows), n_draws, offset=of_rows)
        total = total + inside[:, rows] @ drawn(rng, p, counts[rows, None])
    return total.T


def _cells(X, by, bins, counts):
    """The name of what rows are put together by, the code (n,) of each row's cell, and the labels of the cells, each of
    which has a row that counts."""
    if isinstance(by, str | Integral) and not isinstance(by, bool):
        rows = InputRows(X)
        if by not in rows.names and not (isinstance(by, Integral) and 0 <= by < rows.shape[1]):
            names = ", ".join(printable(repr(name)) for name in rows.names[:3])
            raise ValueError(f"by={by!r:.80} is none of the columns of X, which are {names}, ...")
        j = rows.names.index(by) if by in rows.names else int(by)
        name, is_cut = str(rows.names[j]), rows.holds_numbers(j) and not rows.are_booleans(j)
    else:
        values = np.asarray(by)
        if values.shape != (_num_samples(X),):
            raise ValueError(
                "by must be the name or the number of a column of X, or a label for each of its rows; got an array of "
                f"shape {values.shape} for {_num_samples(X)} rows."
            )
        rows, j, name = InputRows(pd.DataFrame({"group": values})), 0, "group"
        is_cut = infer_dtype(values) in ("floating", "mixed-integer-float")  # whole numbers may be of hospitals
    if is_cut:
        return _used(name, *_binned(rows.values(j), bins, counts), counts)
    codes, labels = rows.levels(j)
    if not rows.holds_times(j):
        return _used(name, codes, list(map(value_text, labels)), counts)
    values = np.where([label is None for label in labels], np.nan, np.arange(len(labels)))[codes]
    return _used(name, *_binned(values, bins, counts, lambda k: value_text(labels[int(k)])), counts)


def _used(name, codes, labels, counts):
    used = np.unique(codes[counts > 0])
    codes = np.minimum(np.searchsorted(used, codes), len(used) - 1)  # rows of weight 0 may be in any
    return name, codes, [labels[k] for k in used]


def _binned(values, bins, counts, text=value_text):
    """Codes and labels of the values of a column of numbers: each value, or where they are more than the bins, ranges
    with about as many rows each; missing ones last. text : of a value."""
    is_missing, has_value = np.isnan(values), ~np.isnan(values) & (counts > 0)
    known = np.unique(values[has_value])
    if len(known) <= bins:
        codes, labels = np.searchsorted(known, values), [text(float(value)) for value in known]
    else:
        ordered = np.flatnonzero(has_value)[np.argsort(values[has_value])]
        up_to = np.cumsum(counts[ordered])
        edges = np.unique(values[ordered[np.searchsorted(up_to, up_to[-1] * np.arange(1, bins) / bins, "right")]])
        codes, of_known = (np.searchsorted(edges, some, side="right") for some in (values, known))
        ends = [known[of_known == k] for k in range(len(edges) + 1)]
        labels = [f"{text(float(e[0]))} to {text(float(e[-1]))}" if len(e) else "" for e in ends]
    return np.where(is_missing, len(labels), codes), [*labels, value_text(None)]
