"""Clusters of correlated columns, by average linkage of one minus the absolute correlation."""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .._utils.memmap import cut
from .._utils.memory import check_matrices
from .correlations import ROUNDING

_CORRELATIONS_AT_A_TIME = 2**22  # correlations to compute at a time


def clusters(r, p, threshold, caller):
    """Yields for each cluster its columns, their signs and the place of the central column among them; in the order of
    the first columns.

    r, p, caller : as for ``trees``. A sign is that of the correlation with the central column.
    """
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
    """The place of the central one among columns with these correlations (m, m); the first if they differ by rounding
    only, as two columns do."""
    return np.abs(r).sum(axis=0).round(9).argmax()


def trees(r, p, threshold, caller):
    """Yields each connected set of columns, with its merges by average linkage.

    Clusters merge only if some of their columns are correlated by the threshold. So each cluster is within a connected
    set, and these are small even if columns are many. r : correlations, a function of two sets of columns. caller : by
    name, for an error.
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
