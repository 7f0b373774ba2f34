"""Changes of rows whose effects are computed: of a number by a step or from 0 to 1, of a category between levels."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from itertools import chain, combinations
from numbers import Real
from typing import NamedTuple

import numpy as np
import pandas as pd

from .._utils.names import finder, first_of, name_of_levels, plain
from .._utils.warn import warn
from .category_levels import MOST_LEVELS, find_level_columns, inputs_of, lone_levels
from .input_rows import InputRows
from .terms import distinct_titles

_ROUNDING = 1e-12  # standard deviation of a constant column, relative to its largest value
_TO_NUMBER = "make it a number in X before the fit, such as days since a date"
_USUAL_LEVELS = 50  # most of a category that is taken by default or in pairs


class Contrast(NamedTuple):
    """Two states of a column that are compared, ``high`` minus ``low``; None is the rows as they are."""

    label: object  # of the row in the table
    words: str  # the kind of the change
    high: int
    low: int | None


class Number(NamedTuple):
    """A column of numbers, and its changes."""

    name: object
    columns: tuple[int]
    codes: np.ndarray  # (n,) groups of rows that change alike; -1 for rows without a value
    contrasts: list[Contrast]
    states: list[float]  # values to set it to
    step: float | None  # to add instead of setting a value

    def values(self, X, rows, k, block=None):
        """Values of these rows in state k; (n, 1)."""
        (j,) = self.columns
        old = X.values(j)[rows] if block is None else X.values(j, block)
        new = old + self.step if self.step is not None else np.where(np.isnan(old), old, self.states[k])
        return new[:, None]

    def put(self, X, block, rows, k):
        """A block, the rows of X at these places, in state k; in place, as ``InputRows.changed``."""
        return X.changed(block, self.columns[0], self.values(X, rows, k, block)[:, 0])


class Category(NamedTuple):
    """The column of a category, or those of its levels, and the levels to set it to."""

    name: object
    columns: tuple[int, ...]
    codes: np.ndarray  # (n,) levels of the rows; -1 for rows without a level
    contrasts: list[Contrast]
    states: list[int]  # places of rows with these levels

    def _places(self, rows, k):
        return np.where(self.codes[rows] < 0, np.arange(rows.start, rows.stop), self.states[k])

    def values(self, X, rows, k):
        """Values of these rows in state k; (n, number of columns)."""
        return np.column_stack([X.values(j)[self._places(rows, k)] for j in self.columns])

    def put(self, X, block, rows, k):
        """A block, the rows of X at these places, in state k; in place, as ``InputRows.changed``."""
        return X.taken(block, self.columns, self._places(rows, k))


def changes_of(model, steps, X, features, change, reference, weight, sign):
    """The changes, each a ``Number`` or a ``Category``, and the columns that are left out, in words. X : ``InputRows``.
    weight : (n,) with sum 1, or None. sign : between two levels, in labels."""
    share = np.full(X.shape[0], 1 / X.shape[0]) if weight is None else weight
    sets = find_level_columns(model, steps, X)
    usual = [name_of_levels([X.names[j] for j in columns]) for columns in sets]
    titles = dict(zip(sets, distinct_titles(usual, [X.names[columns[0]] for columns in sets]), strict=True))
    unused = inputs_of(model, steps, X)[1] if features is None else set()
    selected = [*_by_default(X, sets, unused)] if features is None else _by_request(X, features, titles)
    times = [columns for columns, _ in selected if X.holds_times(columns[0])]
    selected = [item for item in selected if item[0] not in times]
    if times and (features is not None or not selected):
        name = X.names[times[0][0]]
        raise ValueError(
            f"Column {name!r} holds dates or durations, and what changes is a number or a category: {_TO_NUMBER}. If "
            f"its values are levels, say so with X.astype({{{name!r}: 'category'}})."
        )
    by_name, changes = _references(reference, change, X, selected, titles), []
    left_out = [f"{X.names[j]!r} (not used by the model)" for j in sorted(unused)]
    left_out += [f"{X.names[j]!r} (dates or durations)" for (j,) in times]
    for columns, level in selected:
        if columns not in sets and X.holds_numbers(columns[0]):
            own = change.get(X.names[columns[0]], "auto") if isinstance(change, Mapping) else change
            changes.append(_number_change(X, columns[0], own, weight, share))
            continue
        if columns in sets:
            name, codes, labels = titles[columns], sets[columns], [X.names[j] for j in columns]
        else:
            name, (codes, labels) = X.names[columns[0]], X.levels(columns[0])
            codes = np.where([label is not None for label in labels], np.arange(len(labels)), -1)[codes]
        shares = np.bincount(codes[codes >= 0], share[codes >= 0], minlength=len(labels))
        number = np.count_nonzero(shares)
        if features is None and not 2 <= number <= _USUAL_LEVELS:
            left_out.append(f"{name!r} ({number} level{'' if number == 1 else 's'})")
            continue
        _check_levels(name, labels, shares, change)
        pairs = _pairs(name, labels, shares, by_name.get(columns), change == "pairs", level)
        changes.append(_category_change(name, columns, codes, labels, pairs, sign))
    numbers = [item.name for item in changes if isinstance(item, Number)]
    if isinstance(change, Mapping) and (unknown := [name for name in change if name not in numbers]):
        raise ValueError(f"change has {unknown[0]!r}, which is no column of numbers among the features: {numbers}.")
    _warn_of_lone_levels(X, changes, sets)
    if not changes:
        raise ValueError(
            "features is empty, or no column of X holds numbers or a category of 2 to "
            f"{_USUAL_LEVELS} levels: give one column at least."
        )
    return changes, left_out


def _warn_of_lone_levels(X, changes, sets):
    """Warn of columns of zeros and ones that seem levels of one category, and are changed beside one another."""
    asked = {item.columns[0] for item in changes if isinstance(item, Number) and item.step is None}
    for columns in lone_levels(X, asked, {*chain(*sets)}) if asked else ():
        warn(
            f"Columns {first_of([repr(X.names[j]) for j in columns])} seem levels of one category that has no column "
            "for some level, since no row has two of them: the effect of each is averaged over the rows of the others "
            "too, where both are then 1. Encode the category within a Pipeline, or with a column for every level, and "
            "its levels are compared with one another."
        )


class Levels(NamedTuple):
    """Levels within which effects are averaged."""

    name: object
    column: int | None  # of X
    codes: np.ndarray  # (n,) -1 for rows without a level
    labels: list[object]
    reference: int  # the level that others are compared with, the most frequent one

    @property
    def others(self):
        return [k for k in range(len(self.labels)) if k != self.reference]

    def suffixes(self, sign):
        """Of the names of effects within each level, and of those that compare other levels with the reference."""
        within = [f" | {self.name}: {label}" for label in self.labels]
        return within + [f"{within[k]} {sign} {self.labels[self.reference]}" for k in self.others]


def levels_to_part(X, by, weight):
    """The ``Levels`` of rows: of a column of X, by name or number, or of labels (n,)."""
    if np.ndim(by) == 0:
        j = finder([plain(name) for name in X.names], "columns of X", numbered=True)(by, "by")
        name, (codes, labels) = X.names[j], X.levels(j)
    elif np.shape(by) == X.shape[:1]:
        j, name = None, getattr(by, "name", None) or "by"
        codes, labels = InputRows(pd.DataFrame({name: np.asarray(by)})).levels(0)
    else:
        raise ValueError(f"by must be a column of X or a label for each of its {X.shape[0]} rows; got {by!r:.100}.")
    is_level = np.array([label is not None for label in labels])[codes]
    shares = np.bincount(codes[is_level], None if weight is None else weight[is_level], len(labels))
    present = np.flatnonzero(shares)
    if len(present) < 2:
        has = f"only the level {labels[present[0]]!r}" if len(present) else "no level"
        raise ValueError(f"by={name!r} has {has} in the rows that count: there is nothing to compare, leave it out.")
    if len(present) > _USUAL_LEVELS:
        raise ValueError(
            f"by={name!r} has {len(present)} levels in these rows, and may have 2 to {_USUAL_LEVELS}: gather values in "
            "a few levels first, as pandas.cut does for numbers."
        )
    places = np.full(len(labels), -1)
    places[present] = np.arange(len(present))
    return Levels(name, j, places[codes], [labels[k] for k in present], int(np.argmax(shares[present])))


def _by_default(X, sets, unused):
    """Columns of X, numbers and categories, but the unused ones, with None for all levels; level columns are
    together."""
    inside = {j: columns for columns in sets for j in columns}
    for j in sorted({*range(X.shape[1])} - unused):
        if j in inside:
            if j == inside[j][0]:
                yield inside[j], None
        elif not X.holds_numbers(j) or not np.isnan(X.values(j)).all():
            yield (j,), None


def _by_request(X, features, titles):
    """The same for names and numbers of columns and names of sets of level columns, with the level of a level
    column."""
    names = [plain(name) for name in X.names]
    find = finder(names, "columns of X", f" Give names, or numbers below {X.shape[1]}.", numbered=True)
    sets = {title: columns for columns, title in titles.items() if title not in names}
    inside = {j: columns for columns in titles for j in columns}
    is_one = np.ndim(features) == 0 or (isinstance(features, tuple) and plain(features) in names)
    selected = []
    for feature in [features] if is_one else features:
        if isinstance(feature, str) and feature in sets:
            selected.append((sets[feature], None))
            continue
        j = find(feature, "features")
        selected.append((inside[j], inside[j].index(j)) if j in inside else ((j,), None))
    for (columns, level), times in Counter(selected).items():
        if times > 1:
            name = titles[columns] if level is None and columns in titles else X.names[columns[level or 0]]
            raise ValueError(f"features has {name!r} {times} times: give each column once, by name or number.")
    return selected


def _references(reference, change, X, selected, titles):
    """The reference levels that are given, by the columns of the category."""
    if reference is None:
        return {}
    if change == "pairs":
        raise ValueError("change='pairs' compares all levels with one another, so there is no reference: leave it out.")
    categories = [columns for columns, _ in selected if columns in titles or not X.holds_numbers(columns[0])]
    names = {titles.get(columns, X.names[columns[0]]): columns for columns in categories}
    if isinstance(reference, Mapping):
        for name in reference:
            if name not in names:
                raise ValueError(
                    f"reference has {name!r}, which is no category among the features: these are {[*names]}. What a "
                    "column of numbers changes by is said with change."
                )
        return {names[name]: level for name, level in reference.items()}
    if len(names) != 1:
        raise ValueError(
            f"reference={reference!r} is a level of one category, and among the features are {len(names)}: {[*names]}. "
            "Give a dict, such as reference={'ward': 'a'}, or fewer features."
        )
    return dict.fromkeys(categories, reference)


def _check_levels(name, labels, shares, change):
    number = np.count_nonzero(shares)
    if not number:
        raise ValueError(f"Column {name!r} has no value in any row that counts: leave it out of features.")
    if number < 2:
        raise ValueError(
            f"{name!r} has one level in these rows, {labels[np.argmax(shares)]!r}: there is nothing to compare. Leave "
            "it out of features, or give rows of other levels too."
        )
    if change == "pairs" and number > _USUAL_LEVELS:
        raise ValueError(
            f"{name!r} has {number} levels, and {_USUAL_LEVELS} is the most in pairs: compare them with one reference "
            "(change='auto'), or gather rare levels in one before the fit."
        )
    if number > MOST_LEVELS:
        raise ValueError(
            f"{name!r} has {number} levels, and {MOST_LEVELS} is the most there may be: gather rare levels in one "
            "before the fit. If these are numbers held as text, fit them as numbers."
        )


def _pairs(name, labels, shares, reference, is_each, level):
    """The pairs of levels that are compared, by number; the second is what the first is compared with."""
    levels = np.flatnonzero(shares).tolist()
    if is_each:
        return [(b, a) for a, b in combinations(levels, 2) if level is None or level in (a, b)]
    if reference is None:
        other_levels = [k for k in levels if k != level]  # a level that is named is compared with another
        origin = max(other_levels, key=lambda k: shares[k])
    else:
        known = [k for k in levels if labels[k] == reference]
        if not known:
            raise ValueError(
                f"reference={reference!r} is no level of {name!r} in these rows: they have "
                f"{[labels[k] for k in levels]!r:.200}."
            )
        (origin,) = known
        if origin == level:
            raise ValueError(
                f"features asks for the level {labels[level]!r} of {name!r}, which is the reference too: name another."
            )
    return [(k, origin) for k in levels if k != origin and level in (None, k)]


def _category_change(name, columns, codes, labels, pairs, sign):
    used = sorted({k for pair in pairs for k in pair})
    places = {k: int(np.flatnonzero(codes == k)[0]) for k in used}
    contrasts = [
        Contrast(f"{name}: {labels[b]} {sign} {labels[a]}", "level", used.index(b), used.index(a)) for b, a in pairs
    ]
    return Category(name, columns, codes, contrasts, [places[k] for k in used])


def _number_change(X, j, change, weight, share):
    """The ``Number`` of a column."""
    values, name = X.values(j), repr(X.names[j])
    is_missing = np.isnan(values)
    is_known = ~is_missing & (share > 0)
    if not is_known.any():
        raise ValueError(
            f"Column {name} has no value in any row{'' if weight is None else ' of positive weight'}: leave it out of "
            "features."
        )
    change = "binary" if X.are_booleans(j) else change  # the only change of a boolean
    words, step = _step(values[is_known], name, change, None if weight is None else weight[is_known])
    codes, label = np.where(is_missing, -1, 0), X.names[j]
    if step is not None:
        return Number(label, (j,), codes, [Contrast(label, words, 0, None)], [np.nan], step)
    codes[values == 1] = 1
    return Number(label, (j,), codes, [Contrast(label, words, 1, 0)], [0.0, 1.0], None)


def _step(values, name, change, weight):
    """The change in words, and the step; a step of None is from 0 to 1."""
    neither = values[~np.isin(values, (0, 1))]
    if not len(neither) and (change in ("auto", "binary", "pairs") or np.ptp(values) > 0):
        return "0 to 1", None
    if change == "binary":
        raise ValueError(
            f"change='binary' is from 0 to 1, and column {name} holds other values, such as {neither[0]:g}: "
            "take change='unit' or 'sd', or leave it out of features."
        )
    if change in ("auto", "unit", "pairs"):
        return "+1", 1.0
    if change == "sd":
        sd = np.sqrt(np.cov(values, ddof=0, aweights=weight))
        if not sd > _ROUNDING * np.abs(values).max():
            raise ValueError(
                f"change='sd' needs columns that vary, and {name} has the same value in all rows of X: take "
                "change='unit', or leave it out of features."
            )
        return f"{sd:+.3g}", sd
    return f"{change:+g}", float(change)


def check_change(change):
    """Raise a ValueError for an invalid ``change``."""
    if isinstance(change, Mapping):
        for one in change.values():
            check_change(one)
        return
    if isinstance(change, str) and change in ("auto", "unit", "sd", "binary", "pairs"):
        return
    if isinstance(change, bool) or not isinstance(change, Real) or not np.isfinite(change):
        cure = f" With a column of dates, {_TO_NUMBER}." if isinstance(change, timedelta) else ""
        problem = f"change must be 'auto', 'unit', 'sd', 'binary', 'pairs' or a finite number; got {change!r}."
        raise ValueError(problem + cure)
