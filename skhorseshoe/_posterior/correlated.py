"""Columns that are correlated: clusters of them, by average linkage of one minus the absolute correlation."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._utils.memory import check_matrices

ROUNDING = 1e-12  # of a standard deviation, relative to the largest value, and of a correlation
_BLOCK = 2**22  # correlations that are looked at together


def clusters(Z, threshold, caller):
    """For each cluster its columns, their signs and the place of the central one among them; in the order of the first
    columns.

    Z : (n, p) whose products Z'Z are the correlations. A sign is that of the correlation with the central column.
    """
    from scipy.cluster.hierarchy import fcluster  # heavy

    found = []
    for members, merges in trees(lambda a, b: Z[:, a].T @ Z[:, b], Z.shape[1], threshold, caller):
        is_one = len(members) == 1
        found += [members] if is_one else _members(fcluster(merges, 1 - threshold + ROUNDING, "distance"), members)
    for members in sorted(found, key=lambda columns: columns[0]):
        r = Z[:, members].T @ Z[:, members]
        centre = central(r)
        yield members, np.where(r[centre] < 0, -1.0, 1.0), centre


def central(r):
    """The place of the central one among columns with these correlations (m, m): the first, where rounding alone would
    tell, as of two columns."""
    return np.abs(r).sum(axis=0).round(9).argmax()


def trees(r, p, threshold, caller):
    """The members of each set of columns that hang together, and their merges by average linkage.

    Clusters become one only if some of their columns are correlated by the threshold: each is within such a set, and
    those are small even where the columns are many. r : function of two sets of columns. caller : by name, in an error.
    """
    from scipy.cluster.hierarchy import linkage
    from scipy.spatial.distance import squareform

    for members in _hanging_together(r, p, threshold - 2 * ROUNDING):
        if len(members) == 1:
            yield members, np.empty((0, 4))
            continue
        cure = "Take fewer columns or a higher threshold."
        check_matrices(3, (len(members),) * 2, f"{caller}(threshold={threshold})", cure)
        distance = np.abs(r(members, members))
        np.subtract(1, np.minimum(distance, 1, out=distance), out=distance)
        np.fill_diagonal(distance, 0.0)
        yield members, linkage(squareform(distance, checks=False), "average")


def _hanging_together(r, p, least):
    """Lists of columns between which there are ways along correlations of at least ``least``."""
    labels = np.arange(p)
    step = max(1, _BLOCK // max(p, 1))
    for start in range(0, p, step):
        near = np.nonzero(np.abs(r(slice(start, start + step), slice(start, None))) >= least)
        ends = np.append(near[0] + start, np.arange(p)), np.append(near[1] + start, labels)
        links = coo_array((np.ones(len(ends[0]), bool), ends), shape=(p, p))
        parts = connected_components(links, directed=False)[1]
        _, first, place = np.unique(parts, return_index=True, return_inverse=True)
        labels = first[place]  # of each column the first one of its part
    return _members(labels, np.arange(p))


def _members(labels, columns):
    """The columns of each label, ascending within it."""
    if not len(labels):
        return []
    order = np.argsort(labels, kind="stable")
    return np.split(columns[order], 1 + np.flatnonzero(np.diff(labels[order])))
