"""Columns that go together: groups of them, to ask what the posterior says of each group as a whole."""

from collections.abc import Mapping

import numpy as np
from scipy.sparse import csc_array
from sklearn.utils import check_array
from sklearn.utils.validation import check_scalar

from ._compat import _get_feature_names
from ._input import with_names
from ._memory import check_matrices

__all__ = ["correlated_groups"]

_ROUNDING = 1e-12  # of a standard deviation, relative to the largest value, and of a correlation


def correlated_groups(X, threshold=0.7):
    """Groups of columns that are correlated, by average linkage of one minus the absolute correlation.

    Of columns that stand in for one another a posterior cannot say which matters, but it may well know that the group
    does: ``HorseshoeProbitClassifier.group_summary`` takes what this returns.

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
        If the matrices of correlations, 8 * n_features**2 bytes three times over, cannot fit.

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
    X = check_array(X, dtype=np.float64, ensure_min_samples=2)
    check_matrices(3, (X.shape[1],) * 2, "correlated_groups", "Take fewer columns.")
    sd = X.std(axis=0)
    varies = np.flatnonzero(sd > _ROUNDING * np.abs(X).max(axis=0))
    if not len(varies):
        return {}
    r = np.atleast_2d(np.corrcoef(X[:, varies], rowvar=False))
    labels = _linked(r, threshold)
    groups = {}
    for label in dict.fromkeys(labels):
        members = np.flatnonzero(labels == label)
        inner = r[np.ix_(members, members)]
        centre = np.argmax(np.abs(inner).sum(axis=0))
        weights = np.where(inner[centre] < 0, -1.0, 1.0) * sd[varies[members]]
        columns = [int(j) if names is None else names[j] for j in varies[members]]
        title = f"x{columns[centre]}" if names is None else columns[centre]
        if len(members) > 1:
            title += f" and {len(members) - 1} more"
        groups[title] = dict(zip(columns, weights.tolist(), strict=True))
    return groups


def _linked(r, threshold):
    """The number of the cluster of each column, by average linkage; r : (p, p), their correlations."""
    from scipy.cluster.hierarchy import fcluster, linkage  # heavy
    from scipy.spatial.distance import squareform

    if len(r) < 2:
        return np.zeros(len(r), int)
    distance = np.abs(r)
    np.subtract(1, np.minimum(distance, 1, out=distance), out=distance)
    return fcluster(linkage(squareform(distance, checks=False), "average"), 1 - threshold + _ROUNDING, "distance")


def weights_of(groups, names):
    """A matrix (p, k) with the weights of the columns in each of k groups, and the titles of the groups.

    groups : as ``group_summary`` takes them. names : of the p columns.
    """
    if not isinstance(groups, Mapping) or not groups:
        raise TypeError(
            "groups must be a dict that has for the name of each group a list of its columns, or a dict of columns and "
            f"their weights; got {groups!r:.80}."
        )
    place = {name: j for j, name in enumerate(names)}
    rows, columns, values = [], [], []
    for k, (title, group) in enumerate(groups.items()):
        if isinstance(group, str) or not len(group):
            raise ValueError(f"The group {title!r} must be a list of columns, one at least; got {group!r}.")
        pairs = group.items() if isinstance(group, Mapping) else ((column, 1.0) for column in group)
        for column, weight in pairs:
            rows.append(_place(column, place, len(names), title))
            columns.append(k)
            values.append(float(weight))
    if not np.isfinite(values).all():
        raise ValueError("The weights of columns in groups must be finite.")
    return csc_array((values, (rows, columns)), shape=(len(names), len(groups))), list(groups)


def _place(column, place, p, title):
    """The number of a column that is given by name or number."""
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool) and -p <= column < p:
        return int(column) % p
    if column not in place:
        raise ValueError(
            f"The group {title!r} has {column!r}, which is no column of this model: give names, or numbers below {p}."
        )
    return place[column]
