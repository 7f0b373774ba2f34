"""Truncated normals with given means, and the standard variates from which they are computed."""

import numpy as np

from .library import function

_truncated_normals, _standard_variates = function("truncated_normals"), function("standard_variates")


def truncated_normals(means, positive, sweep, key, first_row=0, chain=0, one_by_one=False):
    """z_i ~ N(mean_i, 1), above zero where positive (n,) uint8 is 1, else below, as a pass draws them for rows from
    first_row on; (n,) float32 or float64, like the means. one_by_one : row by row in place of tile by tile."""
    z = means.copy()
    is_single = means.dtype == np.float32
    _truncated_normals(is_single, z, positive, len(z), first_row, one_by_one, chain, sweep, key)
    return z


def standard_variates(word):
    """-log(u) of a uniform u from each random word, and cosine and sine of 2 pi u; float32."""
    out = np.empty((3, len(word)), np.float32)
    _standard_variates(word, tuple(out), len(word))
    return out
