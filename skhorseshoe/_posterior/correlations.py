"""Correlations of the columns of X, a block at a time. A function of two sets of columns (a, b), slices or arrays of
numbers, returns them; they are 0 for a column that does not vary."""

import numpy as np
from scipy.sparse import csc_array, diags_array, issparse

from .._utils.memory import check_copy

ROUNDING = 1e-12  # rounding error of a standard deviation relative to the largest value, and of a correlation


def correlations_of(X):
    """The function for X (n, p) of finite numbers, dense or sparse, and the standard deviations (p,) of its columns, 0
    for those that vary by rounding only."""
    n = X.shape[0]
    if issparse(X):
        check_copy(24 * X.nnz, "Telling correlations", " Take a sample of the rows, or fewer columns.")
        X = csc_array(X, dtype=np.float64)
        mean, largest = X.sum(axis=0) / n, np.abs(X).max(axis=0).toarray().ravel()
        column = np.repeat(np.arange(X.shape[1]), np.diff(X.indptr))
        squares = np.bincount(column, (X.data - mean[column]) ** 2, X.shape[1])
        sd = np.sqrt((squares + (n - np.diff(X.indptr)) * mean**2) / n)
    else:
        mean, largest = X.mean(axis=0, dtype=np.float64), np.abs(X).max(axis=0)
        Z = X - mean
        sd = np.sqrt(np.einsum("ij,ij->j", Z, Z) / n)
    sd = np.where(sd > ROUNDING * largest, sd, 0.0)
    factor = np.divide(1 / np.sqrt(n), sd, out=np.zeros(len(sd)), where=sd > 0)
    if issparse(X):
        return _SparseCorrelations(csc_array(X @ diags_array(factor)), mean * factor * np.sqrt(n)), sd
    Z *= factor
    return products_of(Z), sd


def products_of(Z):
    """The function for columns Z (n, p) of which Z'Z are the correlations."""
    return lambda a, b: Z[:, a].T @ Z[:, b]


def among(r, columns):
    """The function for some columns of those of r, whose numbers are their places."""
    if isinstance(r, _SparseCorrelations):
        return _SparseCorrelations(r.by_column[:, columns], r.mean[columns])
    return lambda a, b: r(columns[a], columns[b])


class _SparseCorrelations:
    """Products are sparse, and what the means take off is subtracted from them, so that no column is centred.

    by_column : X / (sd sqrt(n)), CSC. mean : (p,) of its columns, times sqrt(n).
    """

    def __init__(self, by_column, mean):
        self.by_column, self.by_row, self.mean = by_column, by_column.tocsr(), mean

    def __call__(self, a, b):
        first = self.by_column[:, a].T
        if isinstance(b, slice):  # a part of all columns would be a copy
            products = (first @ self.by_row).toarray()[:, b]
        else:
            products = (first @ self.by_column[:, b]).toarray()
        products -= np.outer(self.mean[a], self.mean[b])
        return products
