"""What a fit with groups finds: columns whose group means go together with the effects of groups.

The model takes effects to be independent of the columns. Where the effect of a column between groups is another than
within one, the effects of groups take up the difference, and correlate with its group means (Mundlak 1978).
"""

import numpy as np

from .._utils.names import printable
from .warnings import Finding

_LEAST = 0.1  # correlation that matters
_CHANCE = 1e-4  # that any column of noise is found
_WITHIN = 1e-6  # of the variance of a column, that is within groups; with less its means are the column itself
_MOST_NUMBERS = 2**27  # means of groups


def of_means(rows, effects, names):
    """A ``Finding``, or none, in a list. rows : ``Rows``. effects : (n_groups,) posterior means. names : of columns."""
    n_groups, c = rows.groups.n, rows.columns
    if n_groups * rows.shape[1] > _MOST_NUMBERS or n_groups < 4:
        return []
    sums = rows.sums_by_group(rows.weight if len(rows.weight) else np.ones(rows.n))
    sizes, means = sums[:, -1:], sums[:, :-1] / sums[:, -1:]
    between = (sizes * (means - c.mean_of_X) ** 2).sum(axis=0) / sizes.sum()
    varies = c.informative & (c.sd_of_X**2 - between > _WITHIN * c.sd_of_X**2)
    r = _correlations(means, effects)
    statistic = np.sqrt(n_groups - 2) * np.abs(r) / np.sqrt(1 - np.minimum(r**2, 1 - 1e-12))
    enough = np.sqrt(2 * np.log(len(r) / _CHANCE))  # a bound for the largest of as many standard normals
    found = np.flatnonzero(varies & (np.abs(r) > _LEAST) & (statistic > enough))
    if not len(found):
        return []
    found = found[np.argsort(-np.abs(r[found]), kind="stable")]
    name = names[found[0]]
    new, old = printable(repr(f"{name}_mean")), printable(repr(name))
    cure = f"Add the means as columns: X[{new}] = X.groupby(groups)[{old}].transform('mean')."
    return [Finding("group means", names[found], cure, {"worst": r[found[0]]})]


def _correlations(means, effects):
    """Of each column (n_groups, p) with the effects (n_groups,), 0 where one does not vary; (p,)."""
    means, effects = means - means.mean(axis=0), effects - effects.mean()
    sizes = np.sqrt((means**2).sum(axis=0) * (effects**2).sum())
    return np.divide(effects @ means, sizes, out=np.zeros(means.shape[1]), where=sizes > 0)
