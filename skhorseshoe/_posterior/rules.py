"""Rules that choose columns by what a posterior says of them."""

from typing import Any, NamedTuple

import numpy as np

from .._backends import device
from .._backends.limits import is_without_factor
from .._data.validation import is_dask
from .._utils.memory import check_matrices
from . import dss_cv
from .estimates import interval
from .signals import check_bounds, check_draws, largest_set, wrong_columns

_MATRICES = 6  # that "dss" has at the same time, of the shape of X'WX or, where that is smaller, of X


class Choice(NamedTuple):
    """What a rule chooses."""

    support: np.ndarray  # (p,) bool, the columns to keep
    rank: np.ndarray  # (p,) numbers, the smaller the earlier a column is kept
    found: dict[str, Any]  # what else the rule has found, by name


def by_shrinkage(model):
    """Columns that the data outweigh the prior of."""
    return Choice(model.shrinkage_ < 0.5, model.shrinkage_, {})


def by_interval(model, level):
    """Columns whose interval excludes zero."""
    lower, upper = interval(model.coef_draws_, level)
    return Choice((lower > 0) | (upper < 0), wrong_columns(model, 0.0), {})


def by_fsr(model, q, effect):
    """As many columns as have a mean probability of at most q of being false."""
    check_draws(model, f"q={q}", q)
    check_bounds(model, "rule='fsr'")
    error, support = wrong_columns(model, effect), np.zeros(model.n_features_in_, bool)
    shrunk = model.shrinkage_ > 0  # others are kept whatever comes out, and are no claims
    support[shrunk] = largest_set(error[shrunk], q)
    return Choice(support, error, {"error": error})


def by_dss(model, rows, level, n_columns):
    """The fewest columns that predict as well as all. rows : X, y and weights or None. n_columns : of the path, at
    least."""
    path = dss_cv.search(model, *dss_cv.weighted(model, *rows), level, n_columns)
    joins = np.where(path.supports.any(axis=0), path.supports.argmax(axis=0), len(path.supports))
    found = {"path": {**path._asdict(), "chosen": path.chosen, "level": level}}
    return Choice(path.supports[path.chosen], joins, found)


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
    if device.is_sparse(X) and is_without_factor(shape[0]):
        raise ValueError(
            f"rule='dss' needs a matrix of {shape[0]} x {shape[1]}, which has no room. Take 'interval' or 'fsr'."
        )
    check_matrices(_MATRICES, shape, "rule='dss'", "Take rule='interval' or 'fsr'.")
