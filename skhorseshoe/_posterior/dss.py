"""Decoupled shrinkage and selection: the sparsest summary that predicts like the posterior.

Hahn & Carvalho (2015) keep the posterior and look for the sparsest coefficients gamma that predict nearly as well as
its mean b: they follow the path of an adaptive lasso. For probit the loss is the Kullback-Leibler divergence of the
probabilities, to second order in the linear predictor and averaged over the rows,

    d(beta, gamma) = (beta - gamma)' S (beta - gamma) / 2,   S = X'WX / n

with W the Fisher information of a row, averaged over the posterior. The intercept is profiled out, and so are the
columns that are not shrunk, which belong to every summary. So the rows enter only through X'WX, held as R with R'R =
X'WX, which is W^(1/2) X or has as many rows as columns. A gamma is good enough if it lies in the credible region {beta:
d(beta, b) <= r}, r the ``level`` quantile of d over the draws, as in Bondell & Reich (2012). In one dimension that is
the rule of the credible interval about the mean.
"""

import warnings
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.linalg.lapack import dpstrf
from scipy.sparse import issparse
from sklearn.linear_model import lars_path

from .._backends import device
from .._mcmc.class_contrasts import joined_pairs, weights_of_pairs
from .._utils.arrays import dense
from .._utils.threads import count_threads, open_threads
from .classes import has_sizes, information_of
from .grouped_prediction import GivenRows, offset_factors
from .predict import each_predictor, flat_draws, predictors_of_row

_FIRST_STEPS = 16  # steps of the path at first; doubled until a summary is good enough
_AVERAGED_DRAWS = 32  # draws over which the information is averaged
_JITTER = 1e-12  # relative addition to the diagonal, for collinear columns


class Path(NamedTuple):
    """The summaries along the path, from the empty one to the first that is good enough, or beyond it.

    A distance is n d from the mean to the best coefficients on a support: the divergence of all rows together.
    """

    supports: np.ndarray  # (k, p) bool, the columns of each
    distances: np.ndarray  # (k,)
    radius: float  # largest distance that is good enough

    @property
    def chosen(self):
        """Place of the first summary that is good enough."""
        return int(np.argmax(self.distances <= self.radius))


def weighted_root(model, X, weight, informed=True, offset=None):
    """R (m, q) with R'R = X'WX, bordered by the intercept if there is one; and the centre (p,) of the columns of X.

    weight : (n,) or (0,) for none, of the rows. W is the weight of a row, times its Fisher information if ``informed``;
    of classes without an order that about d contrasts, so R is (m, q d) with those of a column side by side.
    offset : (n,) of the rows, or of each class (n, K), or None.
    """
    fit_intercept = model._fit_facts["fit_intercept"]
    centre, scale = np.zeros(X.shape[1]), np.ones(X.shape[1])
    points, likelihood, ops = None, model._likelihood_of_fit, device.resolve("cpu", sparse=issparse(X)).ops
    if fit_intercept:  # columns about their means keep their digits next to the intercept
        centre, _ = ops.moments(X, weight)
    if informed and (offset is not None or likelihood.n_classes > 2):
        weight = _information(model, X, weight, offset)
    elif informed:
        points, intercept = flat_draws(model, max(_AVERAGED_DRAWS, len(model.coef_draws_)))
        if fit_intercept:
            points = np.column_stack([points, intercept + points @ centre])
    if X.shape[0] < X.shape[1]:
        return weighted_rows(X, weight, centre, points, fit_intercept, likelihood), centre
    with open_threads(count_threads(model.n_jobs)) as threads:
        gram = partial(ops.gram, X, centre=centre, scale=scale, fit_intercept=fit_intercept, threads=threads)
        if weight.ndim > 1:
            by_pair = np.ascontiguousarray(weights_of_pairs(weight).T)
            S = joined_pairs([gram(weight=w) for w in by_pair], weight.shape[1])
        else:
            S = gram(weight=weight, beta=points, likelihood=likelihood)
    return factor(S), centre


def _information(model, X, weight, offset):
    """As ``information_of``, of rows with an offset or of more than two classes, times their weights."""
    most, d = max(_AVERAGED_DRAWS, len(model.coef_draws_)), model._likelihood_of_fit.n_predictors
    coef, intercept = flat_draws(model, most)
    out = np.empty((X.shape[0], d, d) if d > 1 else X.shape[0])

    def use(eta, block, ops):
        out[block] = information_of(model, ops.to_host(eta), most)

    factors = offset_factors(model, most).repeat(predictors_of_row(model))
    each_predictor(model, GivenRows(X, None, offset), coef, intercept, use, factors)
    return (out.T * weight).T if len(weight) else out


def predictor_draws(model, max_draws=None):
    """As ``flat_draws``, of classes without an order those of their d contrasts; (m d, p) and (m d,)."""
    coef, intercept = flat_draws(model, max_draws)
    if not has_sizes(model):
        return coef, intercept
    of_utilities = model._likelihood_of_fit.of_utilities
    return of_utilities(coef.T).T, of_utilities(intercept[None])[0]


def factor(S):
    """R (m, q) with R'R = S, which has rank m."""
    scale = root_or_one(S.diagonal())
    upper, order, rank, _ = dpstrf(S / scale / scale[:, None])
    R = np.empty((rank, len(S)))
    R[:, order - 1] = np.triu(upper)[:rank]
    R *= scale
    return R


def follow(draws, R, level, always, owners, columns=0):
    """The ``Path``; at least its last summary is good enough. A ValueError if the information is zero.

    draws : (n_chains, n_draws, p). R : (m, q) of ``weighted_root``; its scale has no effect. always : (p,) bool, the
    columns of every summary. owners : (p,) of int; columns with the same number join together. columns : number of
    other columns up to which the path is followed at least, if it goes so far.
    """
    if not _squares(R).any():
        raise ValueError(
            "rule='dss' compares the probabilities of the rows, but here every draw gives probabilities of exactly 0 "
            "or 1 in floating point (or X is zero). The columns can separate the classes completely: set "
            "slab_scale='per_contrast' on the classifier, or use rule='interval' or 'fsr'."
        )
    R = _profiled(R, np.append(always, np.ones(R.shape[1] - len(always), bool)))
    draws = draws[..., ~always] if always.any() else draws
    mean = draws.mean(axis=(0, 1))
    radius = np.quantile([_squares(R @ (chain - mean).T) for chain in draws], level)

    # In units of the mean, the adaptive lasso is a lasso, and all means are 1.
    size = mean**2 * _squares(R)
    moves = np.flatnonzero(size > 0)
    largest = size.max(initial=0.0) or 1.0
    R = R[:, moves] * (mean[moves] / np.sqrt(largest))
    owners = owners[~always][moves]
    supports, distances = _lasso_path(R, radius / largest, columns, owners)  # very small ones would end the path early
    of_all = np.tile(always, (len(supports), 1))
    of_all[:, np.flatnonzero(~always)[moves]] = supports
    return Path(of_all, distances * (largest / 2), radius / 2)


def _profiled(R, out):
    """R of the other columns, with the coefficients of the columns ``out`` (q,) at their best values."""
    if not out.any():
        return R
    kept, removed = R[:, ~out], R[:, out]
    removed /= root_or_one(_squares(removed))
    residual = kept - removed @ np.linalg.lstsq(removed, kept, rcond=None)[0]
    residual[:, _squares(residual) <= _JITTER * _squares(kept)] = 0.0
    return residual


def _lasso_path(R, radius, columns, owners):
    """Supports (k, p) on the lasso path, and the distance from 1 of the best coefficients on each. The path is followed
    at least until a support is good enough and one has so many columns, if it goes so far.

    owners : (p,) of int. The k columns with the same number are shrunk by one factor with penalty sqrt(k) (the group
    garrote of Yuan & Lin 2006); their best coefficients may differ.
    """
    steps = max(_FIRST_STEPS, columns)
    target = len(R) * R.sum(axis=1)  # lars_path divides its stopping rule by the number of rows
    _, place, times = np.unique(owners, return_inverse=True, return_counts=True)
    together = R
    if len(times) < len(place):
        together = np.stack([R[:, place == g].sum(axis=1) / np.sqrt(n) for g, n in enumerate(times)], axis=1)
    else:
        place = np.arange(len(place))
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning that the path ends early if columns are copies
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
    """Distances from 1 of the best coefficients on each support."""
    leaves = (supports[:-1] & ~supports[1:]).any(axis=1)
    runs = np.split(supports, 1 + np.flatnonzero(leaves))  # runs of nested supports
    return np.concatenate([_nested_distances(R, run) for run in runs])


def _nested_distances(R, supports):
    """The same for nested supports, with one Cholesky factor for all."""
    order = np.flatnonzero(supports[-1])
    order = order[np.argsort(supports[:, order].argmax(axis=0), kind="stable")]
    inside, residual = R[:, order], R.sum(axis=1)
    if not len(order):
        return np.full(len(supports), residual @ residual)
    inner = inside.T @ inside
    inner[np.diag_indices_from(inner)] *= 1 + _JITTER
    lower = cholesky(inner, lower=True)
    steps = solve_triangular(lower, inside.T @ residual, lower=True)
    residual -= inside @ solve_triangular(lower, steps, lower=True, trans=1)
    # From the last support backwards, each column that is left out adds a square, so nothing cancels.
    added = np.append(np.cumsum(steps[::-1] ** 2)[::-1], 0.0)
    return residual @ residual + added[supports.sum(axis=1)]


def weighted_rows(X, weight, centre, points, fit_intercept, likelihood):
    """W^(1/2) (X - centre), with a column for the intercept if there is one; (n, q) float64.

    weight : (n,) or (0,) for none; with d contrasts (n, d, d), which makes (n d, q d). points : (m, q), over which the
    Fisher information of a row is averaged; None if W is the weight alone.
    """
    n, p = X.shape
    R = np.ones((n, p + fit_intercept))
    R[:, :p] = dense(X)
    R[:, :p] -= centre
    if weight.ndim > 1:
        values, vectors = np.linalg.eigh(weight)
        roots = np.sqrt(np.maximum(values, 0.0))[..., None] * np.swapaxes(vectors, 1, 2)
        return np.einsum("iba,ij->ibja", roots, R).reshape(n * weight.shape[1], -1)
    squared = weight if len(weight) else np.ones(n)
    if points is not None:
        squared = squared * likelihood.information(R @ points.T).mean(axis=1)
    R *= np.sqrt(squared)[:, None]
    return R


def _squares(R):
    """The sum of squares of each column."""
    return np.einsum("ij,ij->j", R, R)


def root_or_one(squares):
    """Square roots to divide by, 1 in place of 0."""
    return np.sqrt(np.where(squares == 0, 1.0, squares))
