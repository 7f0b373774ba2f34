"""Arithmetic that several kernels share: of vectors, of triangular matrices, and of sums of logarithms."""

import math

from .jit import REORDER_SUMS, device


@device
def multiply_in(total, product, factor):
    """total + log(product factor), as such a pair: a sum of many logarithms takes few of them."""
    if 1e-150 < product * factor < 1e150:
        return total, product * factor
    return total + math.log(product), factor


@device
def solve(L, b, x):
    """x = L^-1 b; x may be b."""
    for i in range(b.shape[0]):
        x[i] = (b[i] - dot(L[i, :i], x)) / L[i, i]


@device(fastmath=REORDER_SUMS)
def solve_transposed(L, b, x):
    """x = L^-T b; x may be b."""
    for i in range(b.shape[0]):
        x[i] = b[i]
    for i in range(b.shape[0] - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@device(fastmath=REORDER_SUMS)
def transposed_product(L, x, out):
    """out = L'x."""
    out[:] = 0.0
    for i in range(x.shape[0]):
        for j in range(i + 1):
            out[j] += L[i, j] * x[i]


@device(fastmath=REORDER_SUMS)
def add_square(P, factor, g):
    """P += factor g g'."""
    for i in range(g.shape[0]):
        scaled = factor * g[i]
        for j in range(g.shape[0]):
            P[i, j] += scaled * g[j]


@device(fastmath=REORDER_SUMS)
def dot(a, b):
    """a'b; b may be the longer one."""
    total = 0.0
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total
