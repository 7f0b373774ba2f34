"""Factors: what rows belong to, one column of labels or several by name, such as patient and hospital.

The levels of several factors may be nested (pupils in classes in schools) or crossed (pupils and questions). The
sampler reads rows by the combinations of levels that occur, which are as many as the levels of the finest factor where
all are nested.
"""

from collections.abc import Mapping
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from .._utils.names import check_different
from .input_table import table_of
from .row_groups import Matched, check_groups, check_sizes, encode_groups, match_groups

_MOST = 8  # largest number of factors; more are rather the columns of X


class Factors(NamedTuple):
    """The factors of the rows of a fit."""

    labels: dict  # of the levels, sorted, by the name of the factor; None is the name of a single one
    levels: np.ndarray | None  # (n, n_factors) int32, the level of each factor in a combination; None for one factor
    scale: Any = None  # as in ``Groups``
    slopes: Any = None  # ``Slopes``, where factors have some

    @property
    def n_effects(self):
        sizes = [len(labels) for labels in self.labels.values()]
        return sum(sizes if self.slopes is None else (sizes[k] for k in self.slopes.factors))

    @property
    def n_by_row(self):
        return len(self.labels if self.slopes is None else self.slopes.names)

    @property
    def as_attribute(self):
        """The labels as a fitted model has them: those of a single factor, or all by name."""
        return self.labels if self.levels is not None else self.labels[None]

    def by_row(self, codes):
        """Name, codes of the levels of rows, and number of levels of each factor. codes : of combinations, (n,)."""
        for k, (name, labels) in enumerate(self.labels.items()):
            yield name, codes if self.levels is None else self.levels[codes, k], len(labels)


def check_factors(groups, n, of_series=False):
    """The labels of n rows, checked, by the name of the factor; None is the name of what has no name. of_series :
    whether a Series gives its factor its name."""
    name = getattr(groups, "name", None) if of_series and len(getattr(groups, "shape", ())) == 1 else None
    columns = {name: groups} if isinstance(name, str) and name else _columns(groups)
    if columns is None:
        return {None: check_groups(groups, n)}
    return {name: check_groups(column, n, called(name)) for name, column in columns.items()}


def called(name):
    """What errors call a factor."""
    return "groups" if name is None else f"groups[{name!r}]"


def _columns(groups):
    """The columns of a dict or of a table by name; None for anything else."""
    if isinstance(groups, Mapping):
        names = list(groups)
        if not names:
            raise ValueError("groups is an empty dict: give the labels of each factor, such as {'patient': labels}.")
    else:
        names = table_of(groups).names
        if not names or len(getattr(groups, "shape", ())) != 2:
            return None
    check_different(names, "groups", "Each is a factor of its own: give them different names.")
    if len(names) > _MOST:
        raise ValueError(
            f"groups has {len(names)} columns, and each would be a factor, of which a fit takes {_MOST} at most: give "
            "those that say what rows belong to, such as groups=frame[['patient', 'hospital']]."
        )
    if len(names) > 1:
        _check_names(names)
    return {name: groups[name] for name in names}


def _check_names(names):
    """Raise a ValueError if factors cannot have these names."""
    if not all(isinstance(name, str) for name in names):
        raise ValueError(f"groups has columns named {names!r:.80}: names of factors are text, such as 'patient'.")
    if "global" in names:
        raise ValueError(
            "groups has a column named 'global', and (global scale) is the scale of the columns of X in tables: give "
            "this factor another name."
        )


def encode_factors(labels, weight, keeps_name=False):
    """``Factors`` of the rows, and the code of each row's combination of levels (n,) int32. labels : by name, from
    ``check_factors``. weight : of the rows, or None. keeps_name : whether a single factor keeps its name."""
    if len(labels) == 1:
        ((name, values),) = labels.items()
        groups, codes = encode_groups(values, called(name))
        check_sizes(codes, weight)
        if keeps_name and name is not None:
            _check_names([name])
            return Factors({name: groups}, np.arange(len(groups), dtype=np.int32)[:, None]), codes
        return Factors({None: groups}, None), codes
    encoded = {name: encode_groups(values, called(name)) for name, values in labels.items()}
    for name, (groups, codes) in encoded.items():
        if len(groups) == 1:
            raise ValueError(
                f"{called(name)} has one label, {groups.tolist()[0]!r}, for all rows, which the intercept is for: "
                "leave this factor out."
            )
        check_sizes(codes, weight, called(name))
    combined, levels = _combined(encoded)
    _check_different_partitions(encoded, levels)
    n, n_effects = len(combined), sum(len(groups) for groups, _ in encoded.values())
    if weight is not None:  # a row may stand for several, and a fraction for one
        n = max((weight > 0).sum(), weight.sum())
    if n_effects > n:
        raise ValueError(
            f"groups has {n_effects} labels in {len(encoded)} factors, and there are {n:g} rows: the data cannot tell "
            "more effects than there are rows. Leave out the factor whose labels few rows share."
        )
    return Factors({name: groups for name, (groups, _) in encoded.items()}, levels), combined


def _combined(encoded):
    """The code of each row's combination (n,) int32, and the levels of each combination."""
    combined, codes = 0, [codes for _, codes in encoded.values()]
    for (groups, _), of_rows in zip(encoded.values(), codes, strict=True):
        _, first, combined = np.unique(combined * len(groups) + of_rows.astype(np.int64), True, True)
    return combined.astype(np.int32), np.stack([of_rows[first] for of_rows in codes], axis=1)


def _check_different_partitions(encoded, levels):
    """Raise a ValueError if two factors have each other's levels under other labels."""
    for (i, (a, (groups_a, _))), (j, (b, (groups_b, _))) in combinations(enumerate(encoded.items()), 2):
        n_pairs = len(np.unique(levels[:, [i, j]], axis=0))
        if n_pairs == len(groups_a) == len(groups_b):
            raise ValueError(
                f"{called(a)} and {called(b)} put the same rows together, so no data tell their effects apart: leave "
                "one of them out."
            )


def match_factors(of_fit, groups, n, are_new):
    """``Matched`` with a column for each factor; of a factor that is not given, all levels are new.

    of_fit : labels of the fit, as a model has them. groups : of n rows, as a user gives them. are_new : as in
    ``match_groups``.
    """
    given = check_factors(groups, n, of_series=isinstance(of_fit, dict))
    if not isinstance(of_fit, dict):
        if len(given) > 1:
            raise ValueError(
                f"groups has the columns {', '.join(map(repr, given))}, and the model was fitted with one factor: give "
                "the column that fit had."
            )
        ((name, labels),) = given.items()
        matched = match_groups(of_fit, labels, are_new)
        return matched._replace(codes=matched.codes[:, None], own=matched.own[:, None], given={0: name})
    unknown = [name for name in given if name not in of_fit]
    if unknown:
        what = "has no names" if unknown == [None] else f"has {', '.join(map(repr, unknown))}"
        raise ValueError(
            f"groups {what}, and the model was fitted with the factors {', '.join(map(repr, of_fit))}: give a dict or "
            "a table with columns of these names. A factor that is left out is averaged over."
        )
    new = Matched(np.full(n, -1, np.int32), np.arange(n, dtype=np.int32), (0, 0), "")
    by_factor = [
        match_groups(labels, given[name], are_new, called(name)) if name in given else new
        for name, labels in of_fit.items()
    ]
    told = ", ".join(f"{one.told} ({name})" for name, one in zip(of_fit, by_factor, strict=True) if one.told)
    known, all_labels = np.sum([matched.counts for matched in by_factor], axis=0).tolist()
    codes, own = (np.stack([getattr(matched, name) for matched in by_factor], axis=1) for name in ("codes", "own"))
    names = {k: name for k, name in enumerate(of_fit) if name in given}
    return Matched(codes, own, (known, all_labels), told, names)


def of_new_factors(groups, n):
    """``Matched`` of groups of n rows, of which a fit without groups has seen none."""
    return match_factors(dict.fromkeys(check_factors(groups, n, of_series=True), ()), groups, n, True)


def labels_of_rows(labels, rows):
    """The labels of some rows, as a user may give them. labels : from ``check_factors``. rows : numbers or a mask."""
    taken = {name: values[rows] for name, values in labels.items()}
    return taken[None] if [*taken] == [None] else taken
