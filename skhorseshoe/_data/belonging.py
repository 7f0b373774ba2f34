"""Signs in X that rows belong together although no groups are given: exact repeats, and a column of labels.

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
_FEWEST_MIXED = 3  # fewest pairs of equal neighbours of different classes; with fewer, repeats may stand for weights
_NAMED = re.compile(  # names of identifiers
    r"(?i:(^|[\W_])(id|ids|identifier|patient|subject|person|participant|respondent|household)([\W_]?(id|no|nr|num|"
    r"number|code|key))?$)|[a-z](Id|ID)$"
)


class Sign(NamedTuple):
    """A sign that rows belong together."""

    column: int | None  # the column that looks like a label, or None if rows are repeated
    size: float  # mean number of rows that belong together


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
    return _label_column(X, names, blocks, np.concatenate(equal))


def _tells_rows_apart(blocks, same):
    """Whether some column has nearly as many values as there are blocks of equal rows; equal rows of few values are no
    sign."""
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
                return Sign(j, len(column) / len(values))
    return None


def _ascends(column):
    """Whether rows are in the order of the column, for example sorted by date or age."""
    steps = np.diff(column.astype(np.float64))
    return bool((steps >= 0).all() or (steps <= 0).all())
