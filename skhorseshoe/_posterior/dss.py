"""Decoupled shrinkage and selection: the sparsest summary that predicts as the whole posterior does.

Hahn & Carvalho (2015) leave the posterior as it is and ask for the sparsest coefficients gamma that predict nearly as
well as its mean b: they follow an adaptive lasso from b. For probit the loss is the Kullback-Leibler divergence of the
probabilities, to second order in the linear predictor and averaged over the rows

    d(beta, gamma) = (beta - gamma)' S (beta - gamma) / 2,   S = X'WX / n

with W the Fisher information of a row, averaged over the posterior, and the intercept profiled out, with the columns
that are not shrunk and so belong to every summary. So the rows enter through X'WX alone (``_divergence.py`` has two
forms of it). A gamma is good enough while it lies in the credible region {beta: d(beta, b) <= r}, r the ``level``
quantile of d over the draws, as in Bondell & Reich (2012). In one dimension that is the rule of the credible interval
about the mean.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from ._divergence import JITTER

_FIRST_STEPS = 16  # of the path; then twice as many until one is good enough


class Path(NamedTuple):
    """The summaries, from the empty one on as far as the path was followed: to the first good one, or beyond it.

    A distance is d of the best coefficients on a support from the mean, times the number of rows where ``information``
    is X'WX: the divergence of all rows together.
    """

    supports: np.ndarray  # (k, p) bool, with the columns that belong to each
    distances: np.ndarray  # (k,)
    radius: float  # what a distance may be at most, in the same unit

    @property
    def chosen(self):
        """Place of the first summary that is good enough."""
        return int(np.argmax(self.distances <= self.radius))


def follow(draws, form, level, given=None):
    """The ``Path``; its last summary, if no other one, is good enough.

    draws : (n_chains, n_draws, p). form : of X'WX (q, q), which is bordered by the intercept if there is one; for the
    choice its scale does not matter. given : (p,) bool, the columns that belong to every summary; None is none of them.
    ValueError if the information is zero.
    """
    if not form.diagonal.any():
        raise ValueError(
            "rule='dss' compares the probabilities of the rows, but here every draw gives probabilities of exactly 0 "
            "or 1 in floating point (or X is zero). The columns can separate the classes completely: set slab_scale=2 "
            "on the classifier, or use rule='interval' or 'shrinkage'."
        )
    given = np.zeros(draws.shape[2], bool) if given is None else given
    form = form.profiled(np.append(given, np.ones(len(form.diagonal) - len(given), bool)))
    draws = draws[..., ~given] if given.any() else draws
    mean = draws.mean(axis=(0, 1))
    radius = np.quantile([form.of(chain - mean) for chain in draws], level)

    # In units of the mean, an adaptive lasso is a lasso and the mean is 1 everywhere.
    size = mean**2 * form.diagonal
    moves = np.flatnonzero(size > 0)
    largest = size.max(initial=0.0) or 1.0
    supports, distances = _lasso_path(form.scaled(mean, moves, largest), radius / largest)  # ends early where small
    of_all = np.tile(given, (len(supports), 1))
    of_all[:, np.flatnonzero(~given)[moves]] = supports
    return Path(of_all, distances * (largest / 2), radius / 2)


def _lasso_path(form, radius):
    """Supports (k, p) on the lasso path, at least until one is good enough, and how far from 1 is the best on each."""
    p = len(form.diagonal)
    if p == 0:
        return np.zeros((1, 0), dtype=bool), np.zeros(1)
    steps = _FIRST_STEPS
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the path ends early where columns are copies
            supports = form.path(steps).T != 0
        distances = _projected_distances(form, supports)
        if (distances <= radius).any():
            return supports, distances
        if len(supports) <= steps:
            return np.vstack([supports, np.ones(p, dtype=bool)]), np.append(distances, 0.0)
        steps *= 2


def _projected_distances(form, supports):
    """Distances from 1 of the best coefficients that are zero outside each support."""
    leaves = (supports[:-1] & ~supports[1:]).any(axis=1)
    runs = np.split(supports, 1 + np.flatnonzero(leaves))  # in each, a support holds those before it
    return np.concatenate([_nested_distances(form, run) for run in runs])


def _nested_distances(form, supports):
    """The same, where each support holds those before it: one factor serves all."""
    order = np.flatnonzero(supports[-1])
    order = order[np.argsort(supports[:, order].argmax(axis=0), kind="stable")]
    rest = np.ones(supports.shape[1])
    if not len(order):
        return np.full(len(supports), form.of(rest[None])[0])
    inner = form.block(order)
    inner[np.diag_indices_from(inner)] *= 1 + JITTER
    factor = cholesky(inner, lower=True)
    steps = solve_triangular(factor, form.times_ones[order], lower=True)
    rest[order] -= solve_triangular(factor, steps, lower=True, trans=1)
    # From the last one back each column that is left out adds a square: nothing is subtracted that could cancel.
    added = np.append(np.cumsum(steps[::-1] ** 2)[::-1], 0.0)
    return form.of(rest[None])[0] + added[supports.sum(axis=1)]
