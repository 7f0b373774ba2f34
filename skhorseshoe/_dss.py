"""Decoupled shrinkage and selection: the sparsest summary that predicts as the whole posterior does.

Hahn & Carvalho (2015) leave the posterior as it is and ask for the sparsest coefficients gamma that predict nearly as
well as its mean b: they follow an adaptive lasso from b. For probit the loss is the Kullback-Leibler divergence of the
probabilities, to second order in the linear predictor and averaged over the rows

    d(beta, gamma) = (beta - gamma)' S (beta - gamma) / 2,   S = X'WX / n

with W the Fisher information of a row, averaged over the posterior, and the intercept profiled out. So the rows enter
through X'WX alone. A gamma is good enough while it lies in the credible region {beta: d(beta, b) <= r}, r the ``level``
quantile of d over the draws, as in Bondell & Reich (2012). In one dimension that is the rule of the credible interval
about the mean.
"""

import warnings
from bisect import bisect_left

import numpy as np
from scipy.linalg import solve
from sklearn.linear_model import lars_path_gram

_FIRST_STEPS = 16  # of the path; then twice as many until one is good enough
_JITTER = 1e-12  # relative, for columns that are copies of one another


def sparsest(draws, information, level):
    """Columns of the first summary on the path that lies in the region; (p,) bool.

    draws : (n_chains, n_draws, p). information : X'WX (q, q), bordered by the intercept if there is one; its scale does
    not matter. ValueError if it is zero.
    """
    if not information.any():
        raise ValueError(
            "rule='dss' compares the probabilities of the rows, and here they are 0 or 1 to the last digit under every "
            "draw (or X is zero). The columns can separate the classes completely: set slab_scale=2 on the classifier, "
            "or take rule='interval' or 'shrinkage'."
        )
    p = draws.shape[2]
    S = information[:p, :p]
    if len(information) > p:
        S = S - np.outer(information[p, :p], information[p, :p] / information[p, p])
    mean = draws.mean(axis=(0, 1))
    radius = np.quantile([_distances(chain - mean, S) for chain in draws], level)

    # In units of the mean, an adaptive lasso is a lasso and the mean is 1 everywhere.
    moments = mean[:, None] * S * mean
    moves = np.flatnonzero(np.diag(moments) > 0)
    moments = moments[np.ix_(moves, moves)]
    largest = moments.diagonal().max(initial=0.0)
    if largest > 0:  # the path ends early where numbers are small
        moments, radius = moments / largest, radius / largest
    selected = np.zeros(p, dtype=bool)
    selected[moves[_first_within(moments, radius)]] = True
    return selected


def _distances(offsets, S):
    """Quadratic forms of the rows."""
    return np.einsum("ij,ij->i", offsets @ S, offsets)


def _first_within(moments, radius):
    """Indices of the first support on the lasso path whose best coefficients are no further than radius from 1."""
    p = len(moments)
    target = moments.sum(axis=1)
    if target.sum() <= radius:
        return np.zeros(0, dtype=int)
    steps = _FIRST_STEPS
    while True:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the path ends early where columns are copies
            _, _, path = lars_path_gram(target, moments, n_samples=1, max_iter=steps, method="lasso")
        # Supports grow along the path, but for the odd column that leaves it, so distances fall.
        supports = [np.flatnonzero(coef) for coef in path.T]
        at = bisect_left(supports, True, key=lambda s: _projected_distance(moments, target, s) <= radius)
        if at < len(supports):
            return supports[at]
        if len(supports) <= steps:
            return np.arange(p)
        steps *= 2


def _projected_distance(moments, target, support):
    """Distance from 1 of the best coefficients that are zero outside the support."""
    rest = np.ones(len(moments))
    if len(support):
        inner = moments[np.ix_(support, support)]
        inner[np.diag_indices_from(inner)] *= 1 + _JITTER
        rest[support] -= solve(inner, target[support], assume_a="pos")
    return rest @ moments @ rest
