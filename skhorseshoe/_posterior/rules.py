"""Rules that choose columns, or terms, by what a posterior says of them."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends.limits import is_without_factor
from .._data.validation import is_dask
from .._utils.memory import check_matrices
from . import dss_cv
from .estimates import interval
from .grouped import given_rows
from .signals import check_bounds, check_draws, column_intervals, largest_set, scores, wrong_columns, wrong_term

_MATRICES = 6  # that "dss" has at the same time, of the shape of X'WX or, where that is smaller, of X


class Choice(NamedTuple):
    """What a rule chooses."""

    support: np.ndarray  # (p,) bool, the columns to keep
    rank: np.ndarray  # (p,) numbers, the smaller the earlier a column is kept
    found: dict[str, Any]  # what else the rule has found, by name


class Judged(NamedTuple):
    """Terms that are kept or dropped as a whole."""

    terms: list[Any]  # ``Term``s, of which each column is in one
    roots: list[Any]  # as ``terms.roots`` gives them

    @property
    def groups(self):
        """The number of its term for each column; (p,)."""
        return self.of_columns(np.arange(len(self.terms)))

    def of_columns(self, values):
        """A value for each term as one for each of its columns."""
        sizes, columns = [len(term.columns) for term in self.terms], np.concatenate([t.columns for t in self.terms])
        out = np.empty(len(columns), np.asarray(values).dtype)
        out[columns] = np.repeat(values, sizes)
        return out

    def as_a_whole(self, support):
        """A support (p,) with all columns of each term that it has one of."""
        return self.of_columns([support[term.columns].any() for term in self.terms])

    def values(self, single, several):
        """One for each term: that of its column (p,), or several(term, root)."""
        each = zip(self.terms, self.roots, strict=True)
        return np.array([single[t.columns[0]] if root is None else several(t, root) for t, root in each])


def by_shrinkage(model, judged=None):
    """Columns of which the data outweigh the prior; terms with such a column."""
    shrinkage = model.shrinkage_
    if judged is not None:
        shrinkage = judged.of_columns(judged.values(shrinkage, lambda term, root: shrinkage[term.columns].min()))
    return Choice(shrinkage < 0.5, shrinkage, {})


def by_interval(model, level, judged=None):
    """Columns whose interval excludes zero.

    Of a term the intervals are those of its principal components over the rows, which X alone chooses, each of the
    level 1 - (1 - level) / r for r of them: the probability that any sign that is claimed is wrong is at most half of
    1 - level, as for a column.
    """
    lower, upper = column_intervals(model, level)
    support, rank = (lower > 0) | (upper < 0), wrong_columns(model, 0.0)
    if judged is None:
        return Choice(support, rank, {})

    def excludes_zero(term, root):
        low, high = interval(scores(model.coef_draws_, term, root), 1 - (1 - level) / len(root))
        return ((low > 0) | (high < 0)).any()

    def surest(term, root):
        above = (scores(model.coef_draws_, term, root) > 0).mean(axis=(0, 1))
        return min(1.0, len(root) * np.minimum(above, 1 - above).min())

    support, rank = judged.values(support, excludes_zero), judged.values(rank, surest)
    return Choice(judged.of_columns(support), judged.of_columns(rank), {})


def by_fsr(model, q, effect, judged=None):
    """As many columns, or terms, as have a mean probability of at most q of being false."""
    check_draws(model, f"q={q}", q)
    check_bounds(model, "rule='fsr'")
    error, shrunk = wrong_columns(model, effect), model.shrinkage_ > 0  # others are kept anyway, and are no claims
    if judged is not None:
        error = judged.values(error, lambda term, root: wrong_term(model, term, root, effect))
        shrunk = judged.values(shrunk, lambda term, root: shrunk[term.columns].all())
    support = np.zeros(len(error), bool)
    support[shrunk] = largest_set(error[shrunk], q)
    if judged is not None:
        support, error = judged.of_columns(support), judged.of_columns(error)
    return Choice(support, error, {"error": error})


def by_dss(model, rows, level, n_columns, judged=None):
    """The fewest columns that predict as well as all, those of a term together.

    rows : X, y, and weights and offsets or None. n_columns : of the path, at least.
    """
    groups, (*rows, offset) = None if judged is None else judged.groups, rows
    X, weight, offset = dss_cv.weighted(model, *rows, [given_rows(model, rows[0], None, offset).offset])
    path = dss_cv.search(model, X, weight, level, n_columns, groups, offset)
    supports = path.supports
    if judged is not None:  # with columns that do nothing in the posterior mean
        supports = np.array([judged.as_a_whole(support) for support in supports])
        path = path._replace(supports=supports)
    joins = np.where(supports.any(axis=0), supports.argmax(axis=0), len(supports))
    found = {"path": {**path._asdict(), "chosen": path.chosen, "level": level}}
    return Choice(supports[path.chosen], joins, found)


def check_dss(X):
    """Raise an error where "dss" cannot have this X; before a classifier is fitted, which may take hours."""
    if is_dask(X):
        raise ValueError(
            "rule='dss' reads the rows in memory, and X is a Dask collection. Take rule='interval' or 'fsr', or "
            "fit with prefit=True on rows that fit in memory, such as a sample."
        )
    if len(getattr(X, "shape", ())) != 2:
        return
    shape = min(X.shape), X.shape[1]  # as many rows as there are, or X'WX
    if issparse(X) and is_without_factor(shape[0]):
        raise ValueError(
            f"rule='dss' needs a matrix of {shape[0]} x {shape[1]}, which has no room. Take 'interval' or 'fsr'."
        )
    check_matrices(_MATRICES, shape, "rule='dss'", "Take rule='interval' or 'fsr'.")
