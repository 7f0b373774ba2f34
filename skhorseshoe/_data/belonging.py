"""Signs in X that rows belong together, where nobody has said so: exact repeats, and a column that looks like a label.

Only runs of rows from all over X are looked at, so that a large X is not read for it. Sparse rows, and those on disk or
on a GPU, are left alone.
"""

import re
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.memmap import is_on_disk

_RUNS, _ROWS = 16, 256  # runs of rows that are looked at, and rows of each; fewer of many columns
_NUMBERS = 2**22  # of X that are looked at, about
_FEWEST = 20  # blocks or labels, from where they are a sign
_MIXED = 3  # pairs of equal neighbours with different classes: without them repeats are weights
_NAMED = re.compile(  # what is called so is no amount
    r"(?i:(^|[\W_])(id|ids|identifier|patient|subject|person|participant|respondent|household)([\W_]?(id|no|nr|num|"
    r"number|code|key))?$)|[a-z](Id|ID)$"
)


class Sign(NamedTuple):
    """That rows belong together."""

    column: int | None  # that looks like a label, or None where rows are repeated
    size: float  # rows that belong together, on average


def sign_of(X, y, names):
    """The ``Sign``, or None. y : (n,) as 0 and 1. names : of the columns; numbers where they have none."""
    if issparse(X) or device.on_gpu(X) or is_on_disk(X) or len(y) < 2 * _FEWEST:
        return None
    size = min(_ROWS, max(8, _NUMBERS // (_RUNS * X.shape[1])))
    starts = np.linspace(0, max(0, len(y) - size), _RUNS).astype(int)
    runs = [slice(0, len(y))] if len(y) <= _RUNS * size else [slice(start, start + size) for start in starts]
    parts = [np.asarray(X[run]) for run in runs]
    equal = [part[1:] == part[:-1] for part in parts]
    same = np.concatenate([pairs.all(axis=1) for pairs in equal])
    mixed = same & np.concatenate([np.diff(y[run].astype(int)) != 0 for run in runs])
    if 2 * same.sum() >= len(same) and mixed.sum() >= _MIXED and _tells_rows_apart(parts, same):
        return Sign(None, len(same) / max(1, (~same).sum()))
    return _label(X, names, parts, np.concatenate(equal))


def _tells_rows_apart(parts, same):
    """Whether some column has nearly as many values as there are blocks: that rows of a few values are equal is no
    sign."""
    rows, n_blocks = np.concatenate(parts), (~same).sum() + 1
    most = max(len(np.unique(column)) for column in rows.T)
    return n_blocks >= _FEWEST and 2 * most >= n_blocks


def _label(X, names, parts, equal):
    """The ``Sign`` of the first column that looks like a label, or None."""
    together = 2 * equal.sum(axis=0) >= len(equal)
    for j, name in enumerate(names):
        is_named = isinstance(name, str) and _NAMED.search(name) is not None
        if (is_named or together[j]) and all((part[:, j] == np.rint(part[:, j])).all() for part in parts):
            column = np.asarray(X[:, j])
            changes = np.flatnonzero(np.diff(column))
            values = np.unique(column)
            in_blocks = len(values) == len(changes) + 1 and not _ascends(column)
            if len(values) >= _FEWEST and 2 * len(values) <= len(column) and (is_named or in_blocks):
                return Sign(j, len(column) / len(values))
    return None


def _ascends(column):
    """Whether rows are in the order of the column, as of a date or an age by which a table was sorted."""
    steps = np.diff(column.astype(np.float64))
    return bool((steps >= 0).all() or (steps <= 0).all())
