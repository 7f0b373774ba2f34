"""Correlations of the columns of X, a block at a time, and clusters of correlated columns.

A function of two sets of columns (a, b), slices or arrays of numbers, returns correlations; they are 0 for a column
that does not vary. Clusters are by average linkage of one minus the absolute correlation.
"""

import numpy as np
from scipy.sparse import coo_array, csc_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components

from .._utils.memmap import cut
from .._utils.memory import check_copy, check_matrices

ROUNDING = 1e-12  # rounding error of a standard deviation relative to the largest value, and of a correlation
_CORRELATIONS_AT_A_TIME = 2**22


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


def clusters(r, p, threshold, caller):
    """Yields for each cluster its columns, their signs, those of their correlations with the central one, and the place
    of that; in the order of the first columns. r, p, caller : as for ``trees``."""
    from scipy.cluster.hierarchy import fcluster  # slow to import

    sets = []
    for members, merges in trees(r, p, threshold, caller):
        is_one = len(members) == 1
        sets += [members] if is_one else _by_label(fcluster(merges, 1 - threshold + ROUNDING, "distance"), members)
    for members in sorted(sets, key=lambda columns: columns[0]):
        within = r(members, members) if len(members) > 1 else np.ones((1, 1))
        centre = central(within)
        yield members, np.where(within[centre] < 0, -1.0, 1.0), centre


def central(r):
    """The place of the central one among columns with these correlations (m, m), the first if they differ by
    rounding."""
    return np.abs(r).sum(axis=0).round(9).argmax()


def trees(r, p, threshold, caller):
    """Yields each connected set of columns, with its merges by average linkage.

    Clusters merge only if some of their columns are correlated by the threshold: they are within connected sets, which
    are small even if columns are many. r : correlations, a function of two sets of columns. caller : by name, for an
    error.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    for members in _connected_sets(r, p, threshold - 2 * ROUNDING):
        if len(members) == 1:
            yield members, np.empty((0, 4))
            continue
        cure = "Take fewer columns or a higher threshold."
        check_matrices(3, (len(members),) * 2, f"{caller}(threshold={threshold})", cure)
        distance = np.abs(r(members, members))
        np.subtract(1, np.minimum(distance, 1, out=distance), out=distance)
        np.fill_diagonal(distance, 0.0)
        yield members, linkage(squareform(distance, checks=False), "average")


def _connected_sets(r, p, least):
    """Lists of columns that are connected by correlations of at least ``least``."""
    labels = np.arange(p)
    for rows in cut(0, p, max(1, _CORRELATIONS_AT_A_TIME // max(p, 1))):
        near = np.nonzero(np.abs(r(rows, slice(rows.start, None))) >= least)
        ends = np.append(near[0] + rows.start, np.arange(p)), np.append(near[1] + rows.start, labels)
        links = coo_array((np.ones(len(ends[0]), bool), ends), shape=(p, p))
        components = connected_components(links, directed=False)[1]
        _, first, place = np.unique(components, return_index=True, return_inverse=True)
        labels = first[place]  # by column, the first column of its component
    return _by_label(labels, np.arange(p))


def _by_label(labels, columns):
    """The columns of each label, ascending within it."""
    if not len(labels):
        return []
    order = np.argsort(labels, kind="stable")
    return np.split(columns[order], 1 + np.flatnonzero(np.diff(labels[order])))
