"""By how much the columns of a classifier move when rows are changed before the steps of a Pipeline."""

from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import dense
from .level_columns import origins_of
from .raw_rows import seen

_ALIKE = 2e-13  # in scores, up to which rows move alike


class Move(NamedTuple):
    """Of the columns of the classifier for some rows of X, in one state of a change."""

    change: int
    state: int
    columns: np.ndarray  # (k,) that move
    values: np.ndarray  # (n, k) by how much; or (g, k) for groups of rows that move alike
    groups: np.ndarray | None  # (n,) of each row, -1 of one that does not move

    def by_row(self):
        """By how much the columns of each row move; (n, k)."""
        if self.groups is None:
            return self.values
        return np.vstack([self.values, np.zeros(len(self.columns))])[self.groups]


class Mover:
    """Changes rows of X, ``RawRows``, and sees what their columns behind the steps do.

    largest : (p,) absolute coefficient of each column.
    """

    def __init__(self, model, before, X, changes, largest):
        self._model, self._before, self._X, self._changes, self._largest = model, before, X, changes, largest
        self._outputs = {} if before is None else _outputs(model, before, X, changes)

    def moves(self, rows, part, base):
        """Yields the ``Move`` of each state of each change. part : the rows of X at these places; base : as the
        classifier has them."""
        done = set()
        with suppress(ValueError):  # what no step takes is found, and named, one by one
            for move in self._together(rows, part, base) if self._outputs else ():
                done.add((move.change, move.state))
                yield move
        for i, change in enumerate(self._changes):
            for k in range(len(change.states)):
                if (i, k) not in done:
                    yield self._move(i, k, rows, *self._alone(change, k, rows, part, base))

    def _together(self, rows, part, base):
        """Those of changes that share no column behind the steps, a state of each of them at once."""
        everything = [*chain(*self._outputs.values())]
        for k in range(max(len(self._changes[i].states) for i in self._outputs)):
            now = [i for i in self._outputs if k < len(self._changes[i].states)]
            changed = part
            for i in now:
                changed = self._changes[i].put(self._X, changed, rows, k)
            columns, values = _moving(seen(self._model, self._before, changed) - base)
            if not np.isin(columns, everything).all():  # a step does not do what is known of it
                return
            for i in now:
                own = np.isin(columns, self._outputs[i])
                yield self._move(i, k, rows, columns[own], values[:, own])

    def _alone(self, change, k, rows, part, base):
        """The columns that move in state k of a change, and by how much."""
        X = self._X
        if self._before is None:  # the classifier has the columns themselves: no others are looked at
            old = np.column_stack([X.values(j)[rows] for j in change.columns])
            return np.array(change.columns), change.values(X, rows, k) - old
        try:
            return _moving(seen(self._model, self._before, change.put(X, part, rows, k)) - base)
        except ValueError as error:
            raise ValueError(
                f"The model takes the rows as they are, but not with column {change.name!r} changed: leave it out of "
                "features, or take another change; if its numbers are codes of a category, say so with "
                f"X.astype({{{change.name!r}: 'category'}}). ({error})"
            ) from error

    def _move(self, i, k, rows, columns, values):
        codes = self._changes[i].codes[rows]
        present, at, groups = np.unique(codes, return_index=True, return_inverse=True)
        common = values[at]
        common[present < 0] = 0.0
        if (np.abs(values - common[groups]) @ self._largest[columns]).max() > _ALIKE:
            return Move(i, k, columns, values, None)
        first = int(present[0] < 0)
        return Move(i, k, columns, common[first:], groups - first)


def _moving(moved):
    """Which columns move, and by how much (n, k)."""
    if issparse(moved):
        moved = moved.tocsc()
        moved.eliminate_zeros()
        columns = np.flatnonzero(np.diff(moved.indptr))
    else:
        columns = np.flatnonzero(moved.any(axis=0))
    return columns, dense(moved[:, columns])


def _outputs(model, before, X, changes):
    """By number the changes whose columns of X depend on no others behind the steps, and their columns there."""
    found, made_of = {}, origins_of(model, before, X)
    if not all(origin.inputs for origin in made_of):
        return found
    for i, change in enumerate(changes):
        inputs = {*change.columns}
        own = [j for j, origin in enumerate(made_of) if inputs & {*origin.inputs}]
        if all(made_of[j].is_alone and inputs.issuperset(made_of[j].inputs) for j in own):
            found[i] = own
    return found
