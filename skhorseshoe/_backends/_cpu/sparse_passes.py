"""Passes over sparse rows alone; ``exports/sparse.cpp`` documents their arrays."""

import numpy as np

from .library import function
from .passes import or_none, pass_rows, rows_of

_noise_pass, _gram_pass = function("noise_pass"), function("gram_pass")
_column_moments, _quadratic_forms = function("column_moments"), function("quadratic_forms")


def noise_pass(X, weight, n_chains, bounds, key, sweep, purpose, attempt, sums):
    """X' diag(weight)^(1/2) e, e ~ N(0, I), over blocks of rows; sums and weight as in ``product_pass``."""
    rows = pass_rows(None, or_none(weight), bounds)
    _noise_pass(rows_of(X), rows, n_chains, attempt, sweep, purpose, key, *sums.shape[1:], sums)


def gram_pass(X, weight, shift, start, stop, total, column_sums):
    """Adds to the lower triangle of X' diag(weight) X and to the sums of columns; returns the sum of the weights."""
    size = np.zeros(1)
    _gram_pass(rows_of(X), or_none(weight), shift, start, stop, total, total.shape[1], column_sums, size)
    return size[0]


def column_moments(X, weight):
    """Weighted mean and sum of squares about it of every column, (p,) float64 each, and the sum of the weights."""
    (mean, square, stored), size = np.empty((3, X.shape[1])), np.empty(1)
    _column_moments(rows_of(X), or_none(weight), mean, square, stored, size)
    return mean, square, size[0]


def quadratic_forms(X, P):
    """x_j' P x_j of the columns of a CSC matrix (n, p), P (n, n) symmetric; (p,)."""
    out = np.empty(X.shape[1])
    _quadratic_forms(rows_of(X.T), P, out)
    return out
