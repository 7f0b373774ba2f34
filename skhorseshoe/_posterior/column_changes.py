"""How the columns of a classifier change if rows are changed before the steps of a Pipeline."""

from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import dense
from .category_levels import levels_of_rows, origins_of
from .claim_errors import indicator_sets_of
from .feature_changes import Category, Number
from .input_rows import classifier_rows

_ALIKE = 2e-13  # largest difference of linear predictors between rows that change alike


class ColumnChange(NamedTuple):
    """The change of the classifier's columns for some rows of X, in one state of a change."""

    feature_change: int  # its number
    state: int
    columns: np.ndarray  # (k,) that change
    values: np.ndarray  # (n, k) by how much; or (g, k) for groups of rows that change alike
    groups: np.ndarray | None  # (n,) groups of the rows, -1 for rows that do not change

    def by_row(self):
        """By how much the columns of each row change; (n, k)."""
        if self.groups is None:
            return self.values
        return np.vstack([self.values, np.zeros(len(self.columns))])[self.groups]

    def of_rows(self, places):
        """The change for those of the rows that are at these places."""
        if self.groups is None:
            return self._replace(values=self.values[places])
        return self._replace(groups=self.groups[places])


class ColumnChanger:
    """Changes rows of X, ``InputRows``, and finds how the columns behind the steps change.

    largest : (p,) largest absolute coefficient of each column. moved : numbers of the changes that have changed columns
    of the classifier so far.
    """

    def __init__(self, model, steps, X, changes, largest):
        self._model, self._steps, self._X, self._changes, self._largest = model, steps, X, changes, largest
        self._outputs, self._encoded, self.moved = {}, [], set()
        self._levels = {}  # by number of a category, the columns behind the steps in a row of each of its states
        if steps is not None:
            origins = origins_of(model, steps, X)
            self._outputs, self._encoded = _outputs(origins, changes), _encoded_numbers(model, origins, changes)

    def column_changes(self, rows, block, base):
        """Yields the ``ColumnChange`` of each state of each change, of a block of the rows of X, which the classifier
        has as base."""
        done = set()
        with suppress(ValueError):  # values that no step takes are found, and named, one by one below
            for column_change in self._together(rows, block, base) if self._outputs else ():
                done.add((column_change.feature_change, column_change.state))
                yield column_change
        for i, change in enumerate(self._changes):
            for k in range(len(change.states)):
                if (i, k) not in done:
                    columns, values = self._alone(change, k, rows, block, base)
                    yield self._column_change(i, k, rows, columns, values)

    def _together(self, rows, block, base):
        """Yields those of changes that share no column behind the steps, from one state of each of them at once; of a
        category from its first state, if that is what its levels, encoded once, tell."""
        everything, told = [*chain.from_iterable(self._outputs.values())], set()
        for k in range(max(len(self._changes[i].states) for i in self._outputs)):
            active = [i for i in self._outputs if k < len(self._changes[i].states) and i not in told]
            if not active:
                return
            changed = self._X.copied(block)
            for i in active:
                changed = self._changes[i].put(self._X, changed, rows, k)
            columns, values = self._moved(changed, base)
            if not np.isin(columns, everything).all():  # a step does not do what its type does
                return
            for i in active:
                inside = np.isin(columns, self._outputs[i])
                yield (first := self._column_change(i, k, rows, columns[inside], values[:, inside]))
                if k == 0 and isinstance(self._changes[i], Category) and len(self._changes[i].states) > 1:
                    by_level = self._by_level(i, rows, base)
                    both = ((one.columns, one.values, one.groups) for one in (next(by_level), first))
                    if all(map(np.array_equal, *both)):  # to the last bit
                        told.add(i)
                        yield from by_level

    def _by_level(self, i, rows, base):
        """Yields the ``ColumnChange`` of each state of a category, whose columns it has from one row of each level."""
        outputs, change = np.array(self._outputs[i], int), self._changes[i]
        if i not in self._levels:
            seen = classifier_rows(self._model, self._steps, self._X.block(np.array(change.states)))
            self._levels[i] = dense(seen[:, outputs])
        present, at, groups = np.unique(change.codes[rows], return_index=True, return_inverse=True)
        old, first = dense(base[at][:, outputs]), int(present[0] < 0)
        for k, new in enumerate(self._levels[i]):
            values = (new - old)[first:]
            moves = values.any(axis=0)
            if moves.any():
                self.moved.add(i)
            yield ColumnChange(i, k, outputs[moves], values[:, moves], groups - first)

    def _alone(self, change, k, rows, block, base):
        """The columns that change in state k, and by how much."""
        X = self._X
        if self._steps is None:  # the classifier has the columns of X: no others change
            old = np.column_stack([X.values(j)[rows] for j in change.columns])
            return np.array(change.columns), change.values(X, rows, k) - old
        try:
            return self._moved(change.put(X, X.copied(block), rows, k), base)
        except ValueError as error:
            raise ValueError(
                f"The model takes the rows as they are, but not with column {change.name!r} changed: leave it out of "
                "features, or take another change; if its numbers are codes of a category, say so with "
                f"X.astype({{{change.name!r}: 'category'}}). ({error})"
            ) from error

    def _moved(self, changed, base):
        """The columns that change, and by how much (n, k). A ValueError for numbers that an encoder passes over."""
        seen = classifier_rows(self._model, self._steps, changed)
        for indicators in self._encoded:
            if ((levels_of_rows(base, indicators) >= 0) & (levels_of_rows(seen, indicators) < 0)).any():
                raise ValueError("An encoder knows no such value.")
        return _changing(seen - base)

    def _column_change(self, i, k, rows, columns, values):
        if len(columns):
            self.moved.add(i)
        codes = self._changes[i].codes[rows]
        present, at, groups = np.unique(codes, return_index=True, return_inverse=True)
        common = values[at]
        common[present < 0] = 0.0
        if (np.abs(values - common[groups]) @ self._largest[columns]).max() > _ALIKE:
            return ColumnChange(i, k, columns, values, None)
        first = int(present[0] < 0)
        return ColumnChange(i, k, columns, common[first:], groups - first)


def _changing(difference):
    """The columns that change, and by how much (n, k)."""
    if issparse(difference):
        difference = difference.tocsc()
        difference.eliminate_zeros()
        columns = np.flatnonzero(np.diff(difference.indptr))
    else:
        columns = np.flatnonzero(difference.any(axis=0))
    return columns, dense(difference[:, columns])


def _encoded_numbers(model, origins, changes):
    """The ``IndicatorSet``s that are made of a single column of numbers which changes."""
    numbers = [change.columns for change in changes if isinstance(change, Number)]
    sets = [(indicators, {origins[j].inputs for j in indicators.columns}) for indicators in indicator_sets_of(model)]
    return [indicators for indicators, inputs in sets if len(inputs) == 1 and inputs.issubset(numbers)]


def _outputs(origins, changes):
    """The columns behind the steps of each change, by its number, if these are made of no other columns of X."""
    outputs = {}
    for i, change in enumerate(changes):
        inputs = {*change.columns}
        columns = [j for j, origin in enumerate(origins) if not inputs.isdisjoint(origin.reach)]
        if all(inputs.issuperset(origins[j].reach) for j in columns):
            outputs[i] = columns
    return outputs
