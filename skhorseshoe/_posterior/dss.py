"""Decoupled shrinkage and selection: the sparsest summary that predicts as the whole posterior does.

Hahn & Carvalho (2015) leave the posterior as it is and ask for the sparsest coefficients gamma that predict nearly as
well as its mean b: they follow an adaptive lasso from b. For probit the loss is the Kullback-Leibler divergence of the
probabilities, to second order in the linear predictor and averaged over the rows

    d(beta, gamma) = (beta - gamma)' S (beta - gamma) / 2,   S = X'WX / n

with W the Fisher information of a row, averaged over the posterior, and the intercept profiled out, with the columns
that are not shrunk and so belong to every summary. So the rows enter through X'WX alone, of which R with R'R = X'WX is
held: W^(1/2) X itself, or as many rows as there are columns. A gamma is good enough while it lies in the credible
region {beta: d(beta, b) <= r}, r the ``level`` quantile of d over the draws, as in Bondell & Reich (2012). In one
dimension that is the rule of the credible interval about the mean.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse import issparse
from sklearn.linear_model import lars_path

from .._backends import device
from .._utils.arrays import dense
from .._utils.threads import count_threads, open_threads
from .grouped import GivenRows, by_draw
from .predict import each_predictor, flat

_FIRST_STEPS = 16  # of the path; then twice as many until one is good enough
_POINTS = 32  # of the posterior, at which the information is averaged
_JITTER = 1e-12  # relative, for columns that others can stand in for


class Path(NamedTuple):
    """The summaries, from the empty one on as far as the path was followed: to the first good one, or beyond it.

    A distance is d of the best coefficients on a support from the mean, times the number of rows where R'R is X'WX: the
    divergence of all rows together.
    """

    supports: np.ndarray  # (k, p) bool, with the columns that belong to each
    distances: np.ndarray  # (k,)
    radius: float  # what a distance may be at most, in the same unit

    @property
    def chosen(self):
        """Place of the first summary that is good enough."""
        return int(np.argmax(self.distances <= self.radius))


def root_of(model, X, weight, informed=True, offset=None):
    """R (m, q) with R'R = X'WX, bordered by the intercept if there is one; and the centre (p,) of the columns of X.

    weight : (n,) or (0,) for none, of the rows. W is the Fisher information of a row times its weight; or, where it is
    not ``informed``, the weight alone. offset : (n,) of the rows, or None.
    """
    fit_intercept = model._asked["fit_intercept"]
    centre, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    points, ops = None, device.resolve("cpu", sparse=issparse(X)).ops
    if fit_intercept:  # about their means, the columns lose no digits to the intercept
        centre, _ = ops.moments(X, weight)
    if informed and offset is not None:
        weight = _information(model, X, weight, offset)
    elif informed:
        points, intercept = flat(model, max(_POINTS, len(model.coef_draws_)))
        if fit_intercept:
            points = np.column_stack([points, intercept + points @ centre])
    if X.shape[0] < X.shape[1]:
        return weighted_rows(ops, X, weight, centre, points, fit_intercept), centre
    with open_threads(count_threads(model.n_jobs)) as threads:
        S = ops.gram(X, weight, centre, scale, fit_intercept, threads, points)
    return factor(S), centre


def _information(model, X, weight, offset):
    """The Fisher information of rows with an offset, times their weights; (n,)."""
    most = max(_POINTS, len(model.coef_draws_))
    out = np.empty(X.shape[0])

    def use(eta, block, ops):
        out[block] = device.of_host().fisher_weight(ops.to_host(eta)).mean(axis=1)

    each_predictor(model, GivenRows(X, None, offset), *flat(model, most), use, by_draw(model, most))
    return out * weight if len(weight) else out


def factor(S):
    """R (m, q) with R'R = S, which has rank m."""
    scale = root_or_one(S.diagonal())
    upper, order, rank, _ = dpstrf(S / scale / scale[:, None])
    R = np.empty((rank, len(S)))
    R[:, order - 1] = np.triu(upper)[:rank]
    R *= scale
    return R


def follow(draws, R, level, given, columns=0, groups=None):
    """The ``Path``; its last summary, if no other one, is good enough.

    draws : (n_chains, n_draws, p). R : (m, q), as ``root_of`` gives it; for the choice its scale does not matter.
    given : (p,) bool, the columns that belong to every summary. columns : how many others the path is followed to at
    least, if it goes so far. groups : (p,) of int, columns of one number being in a summary together; None for each by
    itself. ValueError if the information is zero.
    """
    if not _squares(R).any():
        raise ValueError(
            "rule='dss' compares the probabilities of the rows, but here every draw gives probabilities of exactly 0 "
            "or 1 in floating point (or X is zero). The columns can separate the classes completely: set slab_scale=2 "
            "on the classifier, or use rule='interval' or 'fsr'."
        )
    R = _profiled(R, np.append(given, np.ones(R.shape[1] - len(given), bool)))
    draws = draws[..., ~given] if given.any() else draws
    mean = draws.mean(axis=(0, 1))
    radius = np.quantile([_squares(R @ (chain - mean).T) for chain in draws], level)

    # In units of the mean, an adaptive lasso is a lasso and the mean is 1 everywhere.
    size = mean**2 * _squares(R)
    moves = np.flatnonzero(size > 0)
    largest = size.max(initial=0.0) or 1.0
    R = R[:, moves] * (mean[moves] / np.sqrt(largest))
    groups = moves if groups is None else np.unique(groups[~given][moves], return_inverse=True)[1]
    supports, distances = _lasso_path(R, radius / largest, columns, groups)  # ends early where small
    of_all = np.tile(given, (len(supports), 1))
    of_all[:, np.flatnonzero(~given)[moves]] = supports
    return Path(of_all, distances * (largest / 2), radius / 2)


def _profiled(R, out):
    """R of the others where the coefficients of the columns ``out`` (q,) take whatever values suit best."""
    if not out.any():
        return R
    rest, given = R[:, ~out], R[:, out]
    given /= root_or_one(_squares(given))
    left = rest - given @ np.linalg.lstsq(given, rest, rcond=None)[0]
    left[:, _squares(left) <= _JITTER * _squares(rest)] = 0.0
    return left


def _lasso_path(R, radius, columns, groups):
    """Supports (k, p) on the lasso path, and how far from 1 is the best on each: at least until one is good enough and
    one has so many columns, if the path goes so far.

    groups : (p,) of int. The columns of one number are shrunk by one factor, whose penalty is the root of their number
    (a garrote of groups; Yuan & Lin 2006), and their best coefficients are each their own.
    """
    steps = max(_FIRST_STEPS, columns)
    target = len(R) * R.sum(axis=1)  # by which lars_path divides what it ends by
    _, place, times = np.unique(groups, return_inverse=True, return_counts=True)
    together = R
    if len(times) < len(place):
        together = np.stack([R[:, place == g].sum(axis=1) / np.sqrt(n) for g, n in enumerate(times)], axis=1)
    else:
        place = np.arange(len(place))
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the path ends early where columns are copies
            path = lars_path(together, target, Gram=None, max_iter=steps, method="lasso")[2].T
        supports = (path != 0)[:, place]
        distances = _projected_distances(R, supports)
        ended = len(supports) <= steps
        if (distances <= radius).any() and (ended or supports.sum(axis=1).max() >= columns):
            return supports, distances
        if ended:
            return np.vstack([supports, np.ones(R.shape[1], dtype=bool)]), np.append(distances, 0.0)
        steps *= 2


def _projected_distances(R, supports):
    """Distances from 1 of the best coefficients that are zero outside each support."""
    leaves = (supports[:-1] & ~supports[1:]).any(axis=1)
    runs = np.split(supports, 1 + np.flatnonzero(leaves))  # in each, a support holds those before it
    return np.concatenate([_nested_distances(R, run) for run in runs])


def _nested_distances(R, supports):
    """The same, where each support holds those before it: one factor serves all."""
    order = np.flatnonzero(supports[-1])
    order = order[np.argsort(supports[:, order].argmax(axis=0), kind="stable")]
    inside, left = R[:, order], R.sum(axis=1)
    if not len(order):
        return np.full(len(supports), left @ left)
    inner = inside.T @ inside
    inner[np.diag_indices_from(inner)] *= 1 + _JITTER
    lower = cholesky(inner, lower=True)
    steps = solve_triangular(lower, inside.T @ left, lower=True)
    left -= inside @ solve_triangular(lower, steps, lower=True, trans=1)
    # From the last one back each column that is left out adds a square: nothing is subtracted that could cancel.
    added = np.append(np.cumsum(steps[::-1] ** 2)[::-1], 0.0)
    return left @ left + added[supports.sum(axis=1)]


def weighted_rows(ops, X, weight, centre, points, fit_intercept):
    """W^(1/2) (X - centre), with a column for the intercept if there is one; (n, q) float64.

    weight : (n,) or (0,) for none. points : (m, q), at which the Fisher information of a row is averaged, or None for
    a W of the weights alone.
    """
    n, p = X.shape
    R = np.ones((n, p + fit_intercept))
    R[:, :p] = dense(X)
    R[:, :p] -= centre
    squared = weight if len(weight) else np.ones(n)
    if points is not None:
        squared = squared * ops.information_weights(R, points, 0.0)
    R *= np.sqrt(squared)[:, None]
    return R


def _squares(R):
    """The sum of squares of each column."""
    return np.einsum("ij,ij->j", R, R)


def root_or_one(squares):
    """Square roots to divide by: 1 where there is nothing."""
    return np.sqrt(np.where(squares == 0, 1.0, squares))
