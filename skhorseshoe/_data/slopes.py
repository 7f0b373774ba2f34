"""Slopes of groups: columns of X whose effects differ between the levels of a factor."""

from typing import NamedTuple

import numpy as np

from .._utils.arrays import dense
from .._utils.names import are_names, numbers_in_fit
from .factors import called


class Slopes(NamedTuple):
    """The effects of each group, of all factors: its own, and behind it the slopes. Lists have an entry for each."""

    names: list  # of the factor, or factor:column
    factors: list  # its number
    columns: list  # the number of the column of X, or None


def with_slopes(groups, group_slopes, X, codes, names):
    """``Factors`` with ``Slopes``, and a scale for each effect; a ValueError if ``group_slopes`` do not fit these.

    groups : ``Factors``, with a scale for each. X : rows. codes : of combinations (n,). names : of the columns.
    """
    wanted = _by_factor(group_slopes, groups.labels, names)
    slopes, scale = Slopes([], [], []), []
    for k, (factor, of_rows, n_groups) in enumerate(groups.by_row(codes)):
        columns = wanted.get(factor, {})
        _check_values(factor, columns, dense(X[:, [*columns.values()]]), of_rows, n_groups)
        slopes.names.extend([factor, *(f"{factor}:{name}" for name in columns)])
        slopes.factors.extend([k] * (1 + len(columns)))
        slopes.columns.extend([None, *columns.values()])
        scale += [groups.scale[k]] * (1 + len(columns))
    groups = groups._replace(slopes=slopes, scale=tuple(scale))
    twice = {name for name in slopes.names if slopes.names.count(name) > 1}
    if twice:
        raise ValueError(f"Two effects of groups are called {sorted(twice)[0]!r}: rename a factor or a column.")
    if groups.n_effects > X.shape[0]:
        raise ValueError(
            f"groups and group_slopes have {groups.n_effects} effects, an intercept and slopes for each label, and "
            f"there are {X.shape[0]} rows: the data cannot tell more effects than there are rows. Leave slopes out."
        )
    return groups


def _by_factor(group_slopes, labels, names):
    """The numbers of the columns by name, by factor."""
    if not group_slopes:
        raise ValueError("group_slopes is an empty dict: give columns, as in {'patient': ['time']}, or None.")
    wanted = {}
    for factor, columns in group_slopes.items():
        if factor not in labels or factor is None:
            known = "has no names" if None in labels else f"has the factors {', '.join(map(repr, labels))}"
            raise ValueError(
                f"group_slopes has the factor {factor!r:.80}, and groups {known}: give slopes of one of its factors, "
                "and groups as a table or a dict, groups=frame[['patient']] with group_slopes={'patient': ['time']}."
            )
        if not are_names(columns) or not len(columns):
            raise ValueError(f"group_slopes[{factor!r}] is {columns!r:.80}: give a list of columns of X.")
        cure = " Give names of a table, or numbers of columns."
        numbers = numbers_in_fit(columns, names, f"group_slopes[{factor!r}]", cure)
        wanted[factor] = {str(names[j]): j for j in numbers}
    return wanted


def _check_values(factor, columns, X, codes, n_groups):
    """Raise a ValueError if a column is constant within all groups. X : (n, k) of these columns."""
    for name, x in zip(columns, X.T, strict=True):
        low, high = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
        np.minimum.at(low, codes, x)
        np.maximum.at(high, codes, x)
        if (low == high).all():
            raise ValueError(
                f"group_slopes[{factor!r}] has the column {name!r}, which is constant within each label of "
                f"{called(factor)}: no data tell how its effect differs between them. Leave this slope out."
            )
