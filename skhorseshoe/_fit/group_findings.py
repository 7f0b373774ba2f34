"""Findings of a fit with groups: few of them, outcomes that tell nothing of them, and columns whose group means
correlate with their effects.

The model takes group effects to be independent of the columns. If the effect of a column between groups differs from
that within groups, the group effects take up the difference, and correlate with its group means (Mundlak 1978).
"""

import numpy as np

from .._data.factors import called
from .._data.group_outcomes import Copied, Matched, fixed_outcomes
from .._data.row_groups import are_repeated
from .warning_texts import Finding

_FEW_GROUPS = 10  # fewer groups hardly tell how much groups differ
COPIED, MATCHED = "copied outcome", "matched sets"
_LEAST_CORRELATION = 0.1  # smallest correlation that matters
_CHANCE = 1e-4  # probability that any column of noise is found
_WITHIN = 1e-6  # smallest share of a column's variance within groups; with less, the column is its group means
_MOST_MEANS = 2**27  # largest number of group means to compute
ONE_ROW_EACH = "Fit one row for each group, without groups: with pandas, X.groupby(groups).mean() and the group's y."


def of_outcomes(data, y, codes, weight):
    """The findings before sampling. data : ``Data``. y, codes, weight : of its rows."""
    by_factor = data.groups.by_row(codes)
    return [finding for factor in by_factor for finding in _of_factor(data, y, *factor, weight)]


def _of_factor(data, y, name, codes, n_groups, weight):
    fixed, of = fixed_outcomes(y, codes, weight, "class_weight" in data.weighted_by), _of(name)
    if isinstance(fixed, Copied):
        which = f"all but {fixed.n_mixed} of {fixed.n}" if fixed.n_mixed else f"each of the {fixed.n}"
        return [Finding(COPIED, [], ONE_ROW_EACH, {"which": which, "of": of})]
    findings, n_repeated = [], int(are_repeated(codes, weight).sum())
    if n_repeated < _FEW_GROUPS:
        labels, cure = "one label for all rows, which does not tell", "Leave groups out."
        if n_groups > 1:
            labels = f"{n_groups} different labels: so few hardly tell"
            if n_groups >= _FEW_GROUPS:
                labels = f"{n_repeated} of {n_groups} labels in two rows or more: so few hardly tell"
            cure = (
                "About half of that prior lies below group_scale: if groups are known to differ little, set a smaller "
                "one (0.3 is an intraclass correlation of 0.08)."
            )
        findings.append(Finding("few groups", [], cure, {"called": called(name), "labels": labels}))
    if isinstance(fixed, Matched):
        groups = f"Each of the {fixed.n}" if fixed.n_alike == fixed.n else f"{fixed.n_alike} of {fixed.n}"
        of_class = "" if fixed.by is None else f"y == {data.classes.tolist()[fixed.by]!r}"
        number = f"{fixed.number:g} row{'s' * (fixed.number != 1)} with {of_class}"
        facts = {"groups": groups, "of": of, "verb": "has" if fixed.n_alike == fixed.n else "have"}
        share = f"the same share of {'both' if len(data.classes) == 2 else 'all'} classes"
        facts["number"] = f"exactly {number}" if of_class else share
        findings.append(Finding(MATCHED, [], "", facts))
    return findings


def _of(name):
    """Of which factor groups are, in words; "" for a single one."""
    return "" if name is None else f" of {called(name)}"


def of_means(rows, effects, names):
    """At most one ``Finding`` for each factor. effects : their posterior means, as of a model. names : of columns."""
    by_factor = effects.items() if isinstance(effects, dict) else [(None, effects)]
    pairs = zip(by_factor, rows.groups.factors(), strict=True)
    return [
        found
        for (name, own), (codes, *_, column) in pairs
        if column is None  # not the slopes of a factor
        for found in _means_of(rows, name, codes, own, names)
    ]


def _means_of(rows, name, codes, effects, names):
    n_groups, c = len(effects), rows.columns
    if n_groups * rows.shape[1] > _MOST_MEANS or n_groups < 4:
        return []
    sums = rows.sums_by_group(rows.weight if len(rows.weight) else np.ones(rows.n), codes, n_groups)
    sizes, means = sums[:, -1:], sums[:, :-1] / sums[:, -1:]
    between = (sizes * (means - c.mean_of_X) ** 2).sum(axis=0) / sizes.sum()
    varies = c.informative & (c.sd_of_X**2 - between > _WITHIN * c.sd_of_X**2)
    r = _correlations(means, effects)
    statistic = np.sqrt(n_groups - 2) * np.abs(r) / np.sqrt(1 - np.minimum(r**2, 1 - 1e-12))
    threshold = np.sqrt(2 * np.log(len(r) / _CHANCE))  # a bound for the largest of len(r) standard normals
    columns = np.flatnonzero(varies & (np.abs(r) > _LEAST_CORRELATION) & (statistic > threshold))
    if not len(columns):
        return []
    columns = columns[np.argsort(-np.abs(r[columns]), kind="stable")]
    return [Finding("group means", names[columns], "", {"worst": r[columns[0]], "of": _of(name)})]


def _correlations(means, effects):
    """Correlations (p,) of the columns of ``means`` (n_groups, p) with the effects, 0 where one does not vary."""
    means, effects = means - means.mean(axis=0), effects - effects.mean()
    sizes = np.sqrt((means**2).sum(axis=0) * (effects**2).sum())
    return np.divide(effects @ means, sizes, out=np.zeros(means.shape[1]), where=sizes > 0)
