"""Frames of terms: the size of the effect of each term, and the effects of a category's levels."""

from numbers import Real

import numpy as np
import pandas as pd

from .._backends import device
from .._data import validation
from .._data.weights import check_weights
from .._utils.arrays import dense
from .._utils.names import names_of, printable
from ..diagnostics import ess_bulk, rhat
from . import terms as _terms
from .claim_errors import lfsr, prob_columns_wrong, size_of, wrong_size
from .grouped_prediction import on_average
from .input_rows import InputRows, blocks_behind, input_names
from .pipeline import named, prepared
from .summary import favoured, in_lines, interval_headings, moments
from .table import Summary

_MOST_LEVELS = 200  # most levels of a category


def terms_frame(classifier, steps, X, terms, effect, level, sample_weight):
    """See ``terms.summary``."""
    model = named(steps, classifier)
    if isinstance(effect, bool) or not isinstance(effect, Real) or not effect >= 0:
        raise ValueError(f"effect must be a number from 0 on; got {effect!r}.")
    inputs = None if X is None else input_names(X)
    asked = _terms.asked_terms(terms, steps, model, inputs)
    rows = None
    if X is not None:  # checked even if no term needs it
        seen_rows = device.to_host(validation.check_X(classifier, prepared(steps, X), reset=False))
        rows = seen_rows, None if sample_weight is None else check_weights(sample_weight, seen_rows)
    roots, alone = _terms.roots(asked, model, rows), prob_columns_wrong(model, effect)
    table = []
    for term, root in zip(asked, roots, strict=True):
        if root is None:
            (j,) = term.columns
            size, wrong = np.abs(model.coef_draws_[..., j].astype(np.float64)) * model._column_sd[j], alone[j]
        else:
            size = size_of(model, term, root)
            wrong = wrong_size(size, effect)
        table.append(
            {
                "term": term.name,
                "n_columns": len(term.columns),
                **{name: values[0] for name, values in moments(size[..., None], level).items()},
                "probability": 1 - wrong,
                "ess": ess_bulk(size),
                "rhat": rhat(size),
            }
        )
    columns = ["n_columns", "mean", "sd", *interval_headings(level), "probability", "ess", "rhat"]
    frame = Summary(table, columns=["term", *columns]).set_index("term")
    frame = frame.sort_values("mean", ascending=False, kind="stable")
    frame.attrs["header"] = in_lines(
        f"Effect of each of {len(frame)} terms on the score: standard deviation over the rows, and the probability "
        f"that it is above {effect:g}{on_average(classifier)}"
    )
    return frame


def levels_frame(classifier, steps, X, term, reference, level, sample_weight):
    """See ``terms.levels``."""
    model = named(steps, classifier)
    if steps is None:
        labels, columns, points, share = _of_level_columns(model, term)
    else:
        labels, columns, points, share = _of_input(classifier, steps, X, term, sample_weight)
    if len(labels) < 2:
        raise ValueError(f"{term!r} has one level in these rows, {labels[0]!r}: there is nothing to compare.")
    origin, compared = share @ points, np.arange(len(labels))
    if reference is not None:
        asked = None if np.ndim(reference) == 0 and pd.isna(reference) else reference
        if asked not in labels:
            raise ValueError(f"reference={reference!r} is no level of {term!r}: these are {labels}.")
        origin, compared = points[labels.index(asked)], np.delete(compared, labels.index(asked))
    draws = model.coef_draws_[..., columns].astype(np.float64) @ (points[compared] - origin).T
    ess, described = ess_bulk(draws), moments(draws, level)
    frame = Summary(
        {
            "share": share[compared],
            **described,
            "lfsr": lfsr(described["prob_positive"], ess, draws[..., 0].size),
            "ess": ess,
        },
        index=pd.Index([labels[k] for k in compared], name=str(term), tupleize_cols=False),
    )
    origin_name = "the mean over rows" if reference is None else f"level {printable(repr(reference))}"
    frame.attrs["classes"] = model.classes_.tolist()
    frame.attrs["header"] = in_lines(
        f"What each level of {printable(repr(term))} adds to the score beside {origin_name}; "
        f"{favoured(model, 'values')}{on_average(classifier)}"
    )
    return frame


def _of_level_columns(model, term):
    """Labels, columns, the values of the columns in rows of each level (m, k), and the shares of the levels."""
    names, sets = names_of(model), _terms.indicator_sets_by_columns(model)
    named_sets = ((t.name, sets.get(tuple(t.columns.tolist()))) for t in _terms.found_terms(None, model))
    known = {name: indicators for name, indicators in named_sets if indicators is not None}
    if term not in known:
        raise ValueError(
            f"There is no category {term!r} with a column for every level; there are {[*known]}. Fit a Pipeline with "
            "the encoder in it, whose input columns are categories."
        )
    indicators = known[term]
    points = np.tile(indicators.base, (len(indicators.columns), 1)) + np.diag(indicators.step)
    return [names[j] for j in indicators.columns], indicators.columns, points, indicators.share


def _of_input(model, steps, X, term, sample_weight):
    """The same for an input column of a Pipeline, with means over the rows of each level as values."""
    if X is None:
        raise ValueError("X is needed, the rows of the fit: they tell the levels.")
    X = InputRows(X)
    if term not in X.names:
        raise ValueError(f"There is no input column {term!r}: X has {X.names[:9]}.")
    place = X.names.index(term)
    sources, _ = _terms.sources(steps, model, X.names)
    columns = np.flatnonzero([places == (place,) for places in sources])
    if not len(columns):
        raise ValueError(f"The steps before the classifier make no column of {term!r} alone.")
    codes, labels = X.levels(place)
    if len(labels) > _MOST_LEVELS:
        raise ValueError(
            f"{term!r} has {len(labels)} different values, too many for levels (at most {_MOST_LEVELS}): "
            "marginal_effects says what a number does."
        )
    weight = np.ones(X.shape[0]) if sample_weight is None else check_weights(sample_weight, X.X)
    share, points = np.zeros(len(labels)), np.zeros((len(labels), len(columns)))
    for rows, _, seen in blocks_behind(model, steps, X):
        np.add.at(points, codes[rows], dense(seen[:, columns]) * weight[rows, None])
        np.add.at(share, codes[rows], weight[rows])
    occurs = share > 0
    labels = [label for label, is_used in zip(labels, occurs, strict=True) if is_used]
    return labels, columns, points[occurs] / share[occurs, None], share[occurs] / share.sum()
