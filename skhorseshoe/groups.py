"""Columns that go together: groups of them, to ask what the posterior says of each group as a whole."""

import numpy as np
from scipy.sparse import coo_array
from sklearn.utils import check_array
from sklearn.utils.validation import check_scalar

from ._data.validation import with_names
from ._utils.finite import first_not_finite
from ._utils.memory import check_matrices
from ._utils.sklearn_compat import _get_feature_names

__all__ = ["correlated_groups"]

_ROUNDING = 1e-12  # of a standard deviation, relative to the largest value, and of a correlation
_BLOCK = 2**22  # correlations that are looked at together


def correlated_groups(X, threshold=0.7):
    """Groups of columns that are correlated, by average linkage of one minus the absolute correlation.

    If columns are strongly correlated, the posterior often cannot say which of them matters, but may well be sure that
    the group does: ``HorseshoeProbitClassifier.group_summary`` takes what this returns.

    Parameters
    ----------
    X : array-like or table of shape (n_samples, n_features)
        Dense numbers without missing values; the columns as the classifier was fitted on them.
    threshold : float, default=0.7
        Two groups become one while the mean absolute correlation of their columns is at least this, in (0, 1].

    Returns
    -------
    groups : dict
        For each group the weights of its columns, by name (by number, where X has no names). A weight is the column's
        standard deviation, negative where it is correlated negatively with the group's central column, whose name the
        group has: the weighted sum of the coefficients is what all columns do to the score that move together, each by
        one standard deviation. A column on its own is a group; constant columns are in none.

    Raises
    ------
    ValueError
        If X is not dense and finite, or the threshold is not in (0, 1].
    MemoryError
        If a set of columns, each correlated with another one of the set by the threshold, is so large that three
        matrices of their correlations, of 8 bytes an entry, do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from skhorseshoe.groups import correlated_groups
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 4))
    >>> X[:, 2] = 0.1 * X[:, 2] - X[:, 0]
    >>> [list(group) for group in correlated_groups(X).values()]
    [[0, 2], [1], [3]]
    """
    check_scalar(threshold, "threshold", (int, float), min_val=0, max_val=1, include_boundaries="right")
    X = with_names(X)
    names = _get_feature_names(X)
    X = check_array(X, dtype=np.float64, ensure_min_samples=2, ensure_all_finite=False)
    wrong = first_not_finite(X)
    if wrong is not None:
        column = wrong[1] if names is None else repr(names[wrong[1]])
        raise ValueError(f"Column {column} holds NaN or infinity: impute (SimpleImputer) or drop such rows.")
    sd = X.std(axis=0)
    varies = np.flatnonzero(sd > _ROUNDING * np.abs(X).max(axis=0))
    Z = (X[:, varies] - X[:, varies].mean(axis=0)) / (sd[varies] * np.sqrt(len(X)))  # Z'Z are the correlations
    groups = {}
    for members in _linked(Z, threshold):
        r = Z[:, members].T @ Z[:, members]
        centre = np.argmax(np.abs(r).sum(axis=0))
        weights = np.where(r[centre] < 0, -1.0, 1.0) * sd[varies[members]]
        columns = [int(j) if names is None else names[j] for j in varies[members]]
        title = f"x{columns[centre]}" if names is None else columns[centre]
        if len(members) > 1:
            title += f" and {len(members) - 1} more"
        groups[title] = dict(zip(columns, weights.tolist(), strict=True))
    return groups


def _linked(Z, threshold):
    """Lists of the columns of each cluster, by average linkage, in the order of their first ones; Z'Z : (p, p), their
    correlations.

    Clusters become one only if some of their columns are correlated by the threshold: each is within a set of columns
    that hang together, and those sets are small even where the columns are many.
    """
    from scipy.cluster.hierarchy import fcluster, linkage  # heavy, as csgraph is
    from scipy.spatial.distance import squareform

    clusters = []
    for members in _hanging_together(Z, threshold - 2 * _ROUNDING):
        if len(members) == 1:
            clusters.append(members)
            continue
        cure = "Take fewer columns or a higher threshold."
        check_matrices(3, (len(members),) * 2, f"correlated_groups(threshold={threshold})", cure)
        distance = np.abs(Z[:, members].T @ Z[:, members])
        np.subtract(1, np.minimum(distance, 1, out=distance), out=distance)
        np.fill_diagonal(distance, 0.0)
        merges = linkage(squareform(distance, checks=False), "average")
        labels = fcluster(merges, 1 - threshold + _ROUNDING, "distance")
        clusters += _members(labels, members)
    return sorted(clusters, key=lambda cluster: cluster[0])


def _hanging_together(Z, least):
    """Lists of columns between which there are ways along correlations of at least ``least``."""
    from scipy.sparse.csgraph import connected_components

    p = Z.shape[1]
    labels = np.arange(p)
    step = max(1, _BLOCK // max(p, 1))
    for start in range(0, p, step):
        near = np.nonzero(np.abs(Z[:, start : start + step].T @ Z[:, start:]) >= least)
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
