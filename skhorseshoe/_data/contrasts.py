"""The contrast of columns: how far apart their usual values are, of two-valued columns the difference of the values."""

import numpy as np
from scipy.sparse import issparse

from .._backends import device
from .._utils.memmap import blocks


def contrast_of(deviation, sd):
    """2 E d^2 / E|d|, 0 for a constant; (p,). deviation : E|d|, from a centre. sd : the root of E d^2."""
    return 2 * sd * np.divide(sd, deviation, out=np.zeros(len(sd)), where=(sd > 0) & (deviation > 0))


def absolute_deviations(X, weight, centre):
    """Sums over rows of their weight times the distance of columns from a centre (p,); (p,).

    X : (n, p), on its device. weight : (n,) on the host, or (0,) for none.
    """
    p = X.shape[1]
    total = np.zeros(p)
    for rows in blocks(X):
        with device.context_of(X):
            block = device.to_host(X[rows])
        of_rows = weight[rows] if len(weight) else np.ones(block.shape[0])
        if issparse(block):
            at, size = block.indices, np.repeat(of_rows, np.diff(block.indptr))
            total += abs(centre) * of_rows.sum()  # as if all were zero
            total += np.bincount(at, size * (abs(block.data - centre[at]) - abs(centre[at])), minlength=p)
        else:
            total += (of_rows[:, None] * abs(block - centre)).sum(axis=0)
    return total
