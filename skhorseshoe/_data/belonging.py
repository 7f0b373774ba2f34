"""Signs in X that rows belong together although no groups are given: exact repeats, a column of labels, and a column
that is constant in blocks of rows, as what is known of a patient is.

Only runs of rows from all over X are read, so that a large X costs little. Sparse rows, and rows on disk or on a GPU,
are not examined.
"""

import re
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.memmap import is_on_disk

_RUNS, _ROWS_OF_A_RUN = 16, 256  # number of runs, and rows of each; fewer if columns are many
_NUMBERS_READ = 2**22  # numbers of X to read, about
_FEWEST_LABELS = 20  # fewest blocks or labels that are a sign
_MOST_ALIKE = 0.5  # correlation of the values of blocks with the next, from which rows are sorted or follow a time
_FEWEST_MIXED = 3  # fewest pairs of equal neighbours of different classes; with fewer, repeats may stand for weights
_NAMED = re.compile(  # names of identifiers
    r"(?i:(^|[\W_])(id|ids|identifier|patient|subject|person|participant|respondent|household)([\W_]?(id|no|nr|num|"
    r"number|code|key))?$)|[a-z](Id|ID)$"
)


class Sign(NamedTuple):
    """A sign that rows belong together."""

    column: int | None  # the column that looks like a label or is constant in blocks, or None if rows are repeated
    size: float  # mean number of rows that belong together
    is_label: bool = False  # whether the column looks like a label


def sign_of(X, y, names):
    """The ``Sign``, or None. y : (n,) as 0 and 1. names : of the columns, or numbers if they have none."""
    if issparse(X) or device.on_gpu(X) or is_on_disk(X) or len(y) < 2 * _FEWEST_LABELS:
        return None
    size = min(_ROWS_OF_A_RUN, max(8, _NUMBERS_READ // (_RUNS * X.shape[1])))
    starts = np.linspace(0, max(0, len(y) - size), _RUNS).astype(int)
    runs = [slice(0, len(y))] if len(y) <= _RUNS * size else [slice(start, start + size) for start in starts]
    blocks = [np.asarray(X[run]) for run in runs]
    equal = [block[1:] == block[:-1] for block in blocks]
    same = np.concatenate([pairs.all(axis=1) for pairs in equal])
    mixed = same & np.concatenate([np.diff(y[run].astype(int)) != 0 for run in runs])
    if 2 * same.sum() >= len(same) and mixed.sum() >= _FEWEST_MIXED and _tells_rows_apart(blocks, same):
        return Sign(None, len(same) / max(1, (~same).sum()))
    return _label_column(X, names, blocks, np.concatenate(equal)) or _constant_in_blocks(blocks, equal)


def _tells_rows_apart(blocks, same):
    """Whether some column has nearly as many values as there are blocks of equal rows; few values are no sign."""
    rows, n_blocks = np.concatenate(blocks), (~same).sum() + 1
    most = max(len(np.unique(column)) for column in rows.T)
    return n_blocks >= _FEWEST_LABELS and 2 * most >= n_blocks


def _label_column(X, names, blocks, equal):
    """The ``Sign`` of the first column that looks like a label, or None."""
    together = 2 * equal.sum(axis=0) >= len(equal)
    for j, name in enumerate(names):
        is_named = isinstance(name, str) and _NAMED.search(name) is not None
        if (is_named or together[j]) and all((block[:, j] == np.rint(block[:, j])).all() for block in blocks):
            column = np.asarray(X[:, j])
            changes = np.flatnonzero(np.diff(column))
            values = np.unique(column)
            in_blocks = len(values) == len(changes) + 1 and not _ascends(column)
            if len(values) >= _FEWEST_LABELS and 2 * len(values) <= len(column) and (is_named or in_blocks):
                return Sign(j, len(column) / len(values), True)
    return None


def _constant_in_blocks(blocks, equal):
    """The ``Sign`` of the first column of many values that are the same in most neighbours, though these differ in
    other columns, or None. equal : whether neighbours are equal, of each of ``blocks``."""
    rows, pairs = np.concatenate(blocks), np.concatenate(equal)
    differ, ends = ~pairs.all(axis=1), np.cumsum([len(block) for block in blocks])[:-1]
    together = (2 * pairs[differ].sum(axis=0) >= differ.sum()) & ((~pairs).sum(axis=0) >= _FEWEST_LABELS)
    together &= ((rows != rows.min(axis=0)) & (rows != rows.max(axis=0))).sum(axis=0) >= _FEWEST_LABELS
    for j in np.flatnonzero(together):
        values, codes = np.unique(rows[:, j], return_inverse=True)
        if len(values) < _FEWEST_LABELS:
            continue
        is_common = codes == np.bincount(codes).argmax()  # as zeros may be, of which neighbours are equal by chance
        is_telling = differ & np.concatenate([~(one[1:] & one[:-1]) for one in np.split(is_common, ends)])
        # The value of each run of equal rows, beside that of the next.
        of_runs = [one[np.append(True, ~same[:, j])] for one, same in zip(np.split(codes, ends), equal, strict=True)]
        steps = np.concatenate([np.stack([one[:-1], one[1:]]) for one in of_runs], axis=1)
        if 2 * pairs[is_telling, j].sum() >= is_telling.sum() and np.corrcoef(steps)[0, 1] < _MOST_ALIKE:
            return Sign(int(j), len(rows) / sum(map(len, of_runs)))
    return None


def _ascends(column):
    """Whether rows are in the order of the column, for example sorted by date or age."""
    steps = np.diff(column.astype(np.float64))
    return bool((steps >= 0).all() or (steps <= 0).all())
