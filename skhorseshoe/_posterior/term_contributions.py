"""Contributions of terms to the scores of single rows.

Under a draw a term adds sum_l (x_l - reference_l) beta_l over its columns. The table summarises these sums.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from .._utils.names import printable
from . import predict
from . import terms as _terms
from .estimates import ends_of, interval, means
from .grouped_prediction import GivenRows, on_average
from .input_rows import InputRows, input_names
from .summary import in_lines, interval_headings
from .table import Summary
from .term_values import sources_of, values_of


class Differences(NamedTuple):
    """Rows as the classifier has them, relative to a reference, in float64."""

    rows: np.ndarray  # (n, p)
    origin: np.ndarray  # (p,)
    difference: np.ndarray  # rows - origin
    reference: InputRows | None  # as the user gives it; None for the mean of the fit


def of_terms(model, steps, X, differences, level, terms, top):
    """The table of the terms of each row, the largest first, those beyond ``top`` in one line."""
    terms = _asked(terms, steps, model, X)
    means_of_terms = _means(model, differences.difference, terms)
    order = np.argsort(-np.abs(means_of_terms), axis=1, kind="stable")
    shown = order if top is None or len(terms) <= top + 1 else order[:, :top]  # one other has a line
    n_others = len(terms) - shown.shape[1]
    proba = _probabilities(model, np.vstack([differences.rows, differences.origin]), level)
    blocks = [_of_shown(model, differences.difference, terms, means_of_terms, shown, level)]
    if n_others:
        blocks.append(_of_others(model, differences.difference, terms, means_of_terms, shown, level))
    total = np.column_stack([means_of_terms.sum(axis=1), described(model, differences.difference, level)])
    numbers = np.concatenate([*blocks, total[:, None], proba[:-1, None]], axis=1) + 0.0  # no -0
    last = [*([f"({n_others} others)"] if n_others else []), "(total)", "(probability)"]
    texts, sources = {}, sources_of(steps, model, X)
    texts["value"] = _placed(terms, shown, len(last), lambda term: values_of(term, model, sources, X, differences.rows))
    if differences.reference is not None:
        arguments = differences.reference, differences.origin[None]
        texts["reference"] = _placed(terms, shown, len(last), lambda term: values_of(term, model, sources, *arguments))
    titles = np.column_stack([_objects([t.name for t in terms])[shown], *np.tile(_objects(last)[:, None], len(shown))])
    index = pd.MultiIndex.from_arrays(
        [X.labels.repeat(titles.shape[1]), pd.Index(titles.ravel(), tupleize_cols=False)], names=["row", "term"]
    )
    described_by = dict(zip(["mean", "sd", *interval_headings(level)], numbers.reshape(-1, 4).T, strict=True))
    frame = Summary({**texts, **described_by}, index=index)
    frame.attrs |= _about(model, differences, proba[-1], level)
    return frame


def _asked(terms, steps, model, X):
    """The ``Term``s for the user's argument."""
    try:
        return _terms.asked_terms(terms, steps, model, input_names(X.X))
    except ValueError as error:
        raise ValueError(f"{error} Or take terms=None, the columns of the classifier.") from error


def _means(model, difference, terms):
    """Posterior mean of the contribution of each term to each row; (n, number of terms)."""
    columns, sizes = np.concatenate([term.columns for term in terms]), [len(term.columns) for term in terms]
    return np.add.reduceat((difference * means(model)[0])[:, columns], np.cumsum([0, *sizes[:-1]]), axis=1)


def _of_shown(model, difference, terms, mean, shown, level):
    """Mean, standard deviation and ends of the interval for the terms that are shown; (n, k, 4)."""
    numbers = np.empty((*shown.shape, 4))
    numbers[..., 0] = np.take_along_axis(mean, shown, axis=1)
    for t in np.unique(shown):
        rows, places = np.nonzero(shown == t)
        numbers[rows, places, 1:] = _of_term(model, difference[np.ix_(rows, terms[t].columns)], terms[t].columns, level)
    return numbers


def _of_term(model, difference, columns, level):
    """Standard deviation and ends of the interval of the contributions of a term's columns; (m, 3)."""
    if len(columns) > 1:
        different, places = np.unique(difference, axis=0, return_inverse=True)  # few rows differ in level columns
        return described(model, different, level, columns)[places.ravel()]
    draws = model.coef_draws_[..., columns[0]].astype(np.float64)
    low, high = (difference[:, 0] * end for end in interval(draws, level))
    sd = draws.std(ddof=1) if draws.size > 1 else np.nan
    return np.column_stack([np.abs(difference[:, 0]) * sd, np.minimum(low, high), np.maximum(low, high)])


def _of_others(model, difference, terms, mean, shown, level):
    """The same four numbers for the sum of the terms that are not shown; (n, 1, 4)."""
    is_shown = np.zeros(mean.shape, bool)
    np.put_along_axis(is_shown, shown, True, axis=1)
    hidden = np.where(is_shown[:, _terms.owners(terms)], 0.0, difference)
    return np.column_stack([np.where(is_shown, 0.0, mean).sum(axis=1), described(model, hidden, level)])[:, None]


def described(model, difference, level, columns=slice(None)):
    """Standard deviation and ends of the interval of the contribution of these columns to each row; (n, 3)."""
    out, (coef, intercept) = np.empty((len(difference), 3)), predict.flat_draws(model)

    def use(eta, block, ops):
        out[block, 0] = ops.to_host(eta).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[block, 1:] = ops.to_host(ops.quantiles(eta, ends_of(level)))

    predict.each_predictor(model, GivenRows(difference), coef[:, columns], np.zeros_like(intercept), use)
    return out


def _probabilities(model, rows, level):
    """Mean, standard deviation and ends of the interval for the probability of each row; (n, 4)."""
    out, (coef, intercept) = np.empty((len(rows), 4)), predict.flat_draws(model)

    def use(eta, block, ops):
        out[block, 0] = ops.to_host(ops.average_phi(eta))[:, 1]
        out[block, 1] = ops.to_host(ops.ndtr(eta)).std(axis=1, ddof=1) if len(coef) > 1 else np.nan
        out[block, 2:] = ops.to_host(ops.quantiles(eta, ends_of(level), ops.ndtr))  # may overwrite eta

    predict.each_predictor(model, GivenRows(rows), coef, intercept, use)
    return out


def _placed(terms, shown, n_after, values):
    """values(term), (n,) or (1,), for all terms that are shown, in the lines of the table; (n (k + n_after),)."""
    texts = np.full((len(shown), shown.shape[1] + n_after), "", object)
    for t in np.unique(shown):
        rows, places = np.nonzero(shown == t)
        texts[rows, places] = np.broadcast_to(values(terms[t]), len(shown))[rows]
    return texts.ravel()


def _objects(names):
    """An array of names of any type."""
    out = np.empty(len(names), object)
    out[:] = names
    return out


def _about(model, differences, proba, level):
    """Header, classes and reference of the table. proba : the four numbers for the reference."""
    weights, intercept = means(model)
    whose = "the average row" if differences.reference is None else "the reference"
    mean, _, low, high = map(float, proba)
    return {
        "header": in_lines(
            f"P(y = {printable(model.classes_[1])}) of each row, and what its values add to the score beside {whose}, "
            f"which has a probability of {mean:.3g} ({100 * level:g} % interval {low:.3g} to {high:.3g})"
            f"{on_average(model)}"
        ),
        "classes": model.classes_.tolist(),
        "reference": {
            "name": whose.removeprefix("the "),
            "score": float(differences.origin @ weights + intercept),
            "probability": [mean, low, high],
        },
    }
