"""How much the columns of a classifier move if rows are changed before the steps of a Pipeline."""

from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._utils.arrays import dense
from .level_columns import origins_of
from .raw_rows import seen

_ALIKE = 2e-13  # largest difference of linear predictors between rows that move alike


class Move(NamedTuple):
    """The move of the classifier's columns for some rows of X, in one state of a change."""

    change: int
    state: int
    columns: np.ndarray  # (k,) that move
    values: np.ndarray  # (n, k) by how much; or (g, k) for groups of rows that move alike
    groups: np.ndarray | None  # (n,) groups of the rows, -1 for rows that do not move

    def by_row(self):
        """How much the columns of each row move; (n, k)."""
        if self.groups is None:
            return self.values
        return np.vstack([self.values, np.zeros(len(self.columns))])[self.groups]


class Mover:
    """Changes rows of X, ``RawRows``, and finds how the columns behind the steps move.

    largest : (p,) largest absolute coefficient of each column.
    """

    def __init__(self, model, steps, X, changes, largest):
        self._model, self._steps, self._X, self._changes, self._largest = model, steps, X, changes, largest
        self._outputs = {} if steps is None else _outputs(model, steps, X, changes)

    def moves(self, rows, block, base):
        """Yields the ``Move`` of each state of each change. block : the rows of X at these places; base : the same as
        the classifier has them."""
        done = set()
        with suppress(ValueError):  # values that no step takes are found, and named, one by one below
            for move in self._together(rows, block, base) if self._outputs else ():
                done.add((move.change, move.state))
                yield move
        for i, change in enumerate(self._changes):
            for k in range(len(change.states)):
                if (i, k) not in done:
                    yield self._move(i, k, rows, *self._alone(change, k, rows, block, base))

    def _together(self, rows, block, base):
        """Yields moves of changes that share no column behind the steps, from one state of each of them at once."""
        everything = [*chain(*self._outputs.values())]
        for k in range(max(len(self._changes[i].states) for i in self._outputs)):
            active = [i for i in self._outputs if k < len(self._changes[i].states)]
            changed = block
            for i in active:
                changed = self._changes[i].put(self._X, changed, rows, k)
            columns, values = _moving(seen(self._model, self._steps, changed) - base)
            if not np.isin(columns, everything).all():  # a step does not do what its type does
                return
            for i in active:
                inside = np.isin(columns, self._outputs[i])
                yield self._move(i, k, rows, columns[inside], values[:, inside])

    def _alone(self, change, k, rows, block, base):
        """The columns that move in state k of a change, and how much."""
        X = self._X
        if self._steps is None:  # the classifier has the columns of X: no others move
            old = np.column_stack([X.values(j)[rows] for j in change.columns])
            return np.array(change.columns), change.values(X, rows, k) - old
        try:
            return _moving(seen(self._model, self._steps, change.put(X, block, rows, k)) - base)
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
    """The columns that move, and how much (n, k)."""
    if issparse(moved):
        moved = moved.tocsc()
        moved.eliminate_zeros()
        columns = np.flatnonzero(np.diff(moved.indptr))
    else:
        columns = np.flatnonzero(moved.any(axis=0))
    return columns, dense(moved[:, columns])


def _outputs(model, steps, X, changes):
    """The columns behind the steps of each change, by its number, if these are made of no other columns of X."""
    outputs, origins = {}, origins_of(model, steps, X)
    if not all(origin.inputs for origin in origins):
        return outputs
    for i, change in enumerate(changes):
        inputs = {*change.columns}
        columns = [j for j, origin in enumerate(origins) if inputs & {*origin.inputs}]
        if all(origins[j].is_alone and inputs.issuperset(origins[j].inputs) for j in columns):
            outputs[i] = columns
    return outputs
