"""Arithmetic that several kernels share: of vectors, and of sums of logarithms."""

import math

from .jit import REORDER_SUMS, device


@device
def multiply_in(total, product, factor):
    """total + log(product factor), as such a pair: a sum of many logarithms takes few of them."""
    if 1e-150 < product * factor < 1e150:
        return total, product * factor
    return total + math.log(product), factor


@device(fastmath=REORDER_SUMS)
def dot(a, b):
    """a'b; b may be the longer one."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total
