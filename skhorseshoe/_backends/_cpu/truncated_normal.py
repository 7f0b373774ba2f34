"""Truncated normals for given means, and the standard variates that they are made of."""

import numpy as np

from .library import function

_truncated_normals, _standard_variates = function("truncated_normals"), function("standard_variates")


def truncated_normals(means, positive, sweep, key, first_row=0, chain=0, one_by_one=False):
    """z_i ~ N(mean_i, 1) on the side that positive (n,) uint8 says, as a pass draws them for rows from the first on;
    (n,) float32 or float64, as the means are. one_by_one : without what serves many rows at once."""
    z = means.copy()
    is_single = means.dtype == np.float32
    _truncated_normals(is_single, z, positive, len(z), first_row, one_by_one, chain, sweep, *key)
    return z


def standard_variates(word):
    """-log(u) of a uniform u from each random word, and cosine and sine of a turn of as much; float32."""
    out = np.empty((3, len(word)), np.float32)
    _standard_variates(word, *out, len(word))
    return out
