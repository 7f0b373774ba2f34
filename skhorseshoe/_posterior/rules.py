"""Rules that choose columns, or terms, by their posterior."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.multiclass import type_of_target

from .._backends.limits import needs_conjugate_gradients
from .._data.input_table import is_dask
from .._utils.memory import check_matrices
from . import claim_errors as claims
from . import dss_cv, terms
from .classes import needs_one_score
from .estimates import excludes_zero, interval
from .fitted_rows import warn_of_other_rows
from .grouped_prediction import given_rows

_MATRICES = 6  # matrices that "dss" holds at a time, of the shape of X'WX or of X, whichever is smaller
_SO = "rule={!r} then chooses columns for these rows by a posterior of others."


class Choice(NamedTuple):
    """The choice of a rule."""

    support: np.ndarray  # (p,) bool, the columns to keep
    rank: np.ndarray  # (p,) numbers; a column with a smaller one is kept earlier
    facts: dict[str, Any]  # other results of the rule, by name


class Judged(NamedTuple):
    """Terms that are kept or dropped as a whole, many of a single column."""

    terms: list[Any]  # ``Term``s with roots; each column is in one
    owners: np.ndarray  # as ``terms.owners`` returns them
    effects: claims.LeastEffects  # the least that count

    def as_a_whole(self, support):
        """A support (p,) with all columns of each term of which it has one."""
        return (np.bincount(self.owners, support) > 0)[self.owners]

    def values(self, single, several):
        """A value for each term: that of its single column from ``single`` (p,), or several(term)."""
        return np.array([single[term.columns[0]] if term.root is None else several(term) for term in self.terms])


def judged(model, asked, rule, effect, X, y, sample_weight):
    """``Judged`` for the asked terms. effect : as the user gives it for "fsr". X, y, sample_weight : those of the
    fit."""
    effect = effect if rule == "fsr" else claims.EFFECT
    needs_rows = claims.asks_for_levels(effect) or terms.without_rows(asked, model)
    rows = dss_cv.weighted(model, X, y, sample_weight) if needs_rows else None
    if rows and rule in ("fsr", "interval"):
        warn_of_other_rows(model, *rows, _SO.format(rule))
    effects = claims.least_effects(model, effect, rows and rows[0])
    return Judged(terms.with_roots(asked, model, rows, effects.has_levels), terms.owners(asked), effects)


def by_shrinkage(model, judged):
    """Terms with a column for which the data outweigh the prior."""
    kappa = model.shrinkage_
    shrinkage = judged.values(kappa, lambda term: kappa[term.columns].min())[judged.owners]
    return Choice(shrinkage < 0.5, shrinkage, {})


def by_interval(model, level, judged):
    """Terms whose interval excludes zero.

    A term with several columns has the intervals of its r principal components over the rows, which depend only on X,
    each at level 1 - (1 - level) / r. So the probability that any claimed sign is wrong is at most half of 1 - level,
    as for a column. Of several classes each has these intervals, at a level for all of them.
    """
    support, rank = claims.sure_signs(model, level)

    def is_clear(term):
        values = claims.scores(model.coef_draws_, term.columns, term.root)
        return excludes_zero(interval(values, 1 - (1 - level) / values.shape[-1])).any()

    def surest(term):
        above = (claims.scores(model.coef_draws_, term.columns, term.root) > 0).mean(axis=(0, 1))
        return min(1.0, len(above) * np.minimum(above, 1 - above).min())

    support, rank = judged.values(support, is_clear), judged.values(rank, surest)
    return Choice(support[judged.owners], rank[judged.owners], {})


def by_fsr(model, q, judged):
    """As many terms as have a mean probability of at most q of being false."""
    claims.check_draws(model, f"q={q}", q)
    claims.check_bounds(model, "rule='fsr'")
    shrunk, effects = model.shrinkage_ > 0, judged.effects  # others are always kept, and are no claims

    def wrong(term):
        return claims.prob_term_wrong(model, term, effects.for_columns(term.columns))

    error = judged.values(claims.prob_columns_wrong(model, effects.least, effects.scale), wrong)
    shrunk = judged.values(shrunk, lambda term: shrunk[term.columns].all())
    support = np.zeros(len(error), bool)
    support[shrunk] = claims.largest_set(error[shrunk], q)
    error = error[judged.owners]
    return Choice(support[judged.owners], error, {"error": error})


def by_dss(model, rows, level, n_columns, judged):
    """The fewest columns that predict as well as all, those of a term together. rows : X, y, and weights and offsets or
    None. n_columns : up to which the path is followed at least."""
    needs_one_score(model, "rule='dss'")
    X, y, sample_weight, offset = rows
    _check_dss(X, model._likelihood_of_fit.n_predictors)
    X, weight, offset = dss_cv.weighted(model, X, y, sample_weight, [given_rows(model, X, None, offset).offset])
    warn_of_other_rows(model, X, weight, _SO.format("dss"))
    path = dss_cv.search(model, X, weight, level, n_columns, judged.owners, offset)
    supports = np.array([judged.as_a_whole(support) for support in path.supports])  # also columns of posterior mean 0
    path = path._replace(supports=supports)
    joins = np.where(supports.any(axis=0), supports.argmax(axis=0), len(supports))
    facts = {"path": {**path._asdict(), "chosen": path.chosen, "level": level}}
    return Choice(supports[path.chosen], joins, facts)


def check_rule(rule, X, effect, y=None, model=None):
    """Raise an error if a rule cannot take this X or effect, before a fit that may take hours. y : the labels that
    ``model`` is to be fitted to without weights, or None."""
    claims.check_effect(effect)
    if rule == "fsr" and claims.asks_for_levels(effect) and is_dask(X):
        raise ValueError(
            "effect has 'levels', for which rule='fsr' reads the rows in memory, and X is a Dask collection: give a "
            "number, of one standard deviation, or fit with prefit=True on rows that fit in memory."
        )
    if rule == "dss":
        _check_dss(X, 1 if y is None or model.ordered is not False else _n_contrasts(y))


def _n_contrasts(y):
    """The number of contrasts of the classes of these labels; 1 where ``fit`` says what is wrong with them."""
    try:
        return len(np.unique(y)) - 1 if not is_dask(y) and type_of_target(y) == "multiclass" else 1
    except (TypeError, ValueError):
        return 1


def _check_dss(X, d):
    """Raise an error if there is no room for the matrices of d coefficients of each column."""
    if is_dask(X):
        raise ValueError(
            "rule='dss' reads the rows in memory, and X is a Dask collection. Take rule='interval' or 'fsr', or "
            "fit with prefit=True on rows that fit in memory, such as a sample."
        )
    if len(getattr(X, "shape", ())) != 2:
        return
    shape = d * min(X.shape), d * X.shape[1]  # of X, or of X'WX
    if issparse(X) and needs_conjugate_gradients(shape[0]):
        raise ValueError(
            f"rule='dss' needs a matrix of {shape[0]} x {shape[1]}, which has no room. Take 'interval' or 'fsr'."
        )
    check_matrices(_MATRICES, shape, "rule='dss'", "Take rule='interval' or 'fsr'.")
