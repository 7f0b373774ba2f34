"""Philox4x32-10, and the scalar variates that the kernels draw from it.

The key is the seed (two 32-bit words), the counter is (attempt, sweep, index, stream). A variate depends on
what it is for and on nothing else: not on threads, blocks or the order of evaluation. Nothing has to be stored.

Reference: Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
"""

import math

from numba import uint32, uint64

from .jit import device


@device(inline="always")  # so that loops over it vectorise
def philox(c0, c1, c2, c3, k0, k1):
    """Philox4x32-10: four random words from a counter of four words and a key of two (all uint32)."""
    for _ in range(10):
        a = uint64(0xD2511F53) * uint64(c0)
        b = uint64(0xCD9E8D57) * uint64(c2)
        n0 = uint32(uint32(b >> uint64(32)) ^ c1 ^ k0)
        n2 = uint32(uint32(a >> uint64(32)) ^ c3 ^ k1)
        c1, c3, c0, c2 = uint32(b), uint32(a), n0, n2
        k0 = uint32(k0 + uint32(0x9E3779B9))
        k1 = uint32(k1 + uint32(0xBB67AE85))
    return c0, c1, c2, c3


@device
def stream(chain, purpose, index):
    """Last counter word: chain (bits 0-7), purpose (8-15), bits 32-47 of the index (16-31)."""
    return uint32(uint32(chain) | (uint32(purpose) << uint32(8)) | (uint32(index >> 32) << uint32(16)))


@device
def unit(high, low):
    """Uniform on (0, 1) with 52 random bits from two words; never 0, never 1."""
    return ((high >> uint32(6)) * 67108864.0 + (low >> uint32(6)) + 0.5) * 2.220446049250313e-16


@device
def unit_1(attempt, sweep, index, st, k0, k1):
    """Uniform on (0, 1), float64. The arguments are uint32: of other types it would be compiled once for each."""
    a, b, _, _ = philox(attempt, sweep, index, st, k0, k1)
    return unit(a, b)


@device
def fill_units(out, sweep, first, st, k0, k1):
    """``unit_1`` for as many indices, from the first on; written out, since a loop that calls it does not vectorise."""
    for i in range(out.shape[0]):
        a, b, _, _ = philox(uint32(0), sweep, uint32(first + i), st, k0, k1)
        out[i] = unit(a, b)


@device
def exponential_1(attempt, sweep, index, st, k0, k1):
    """Exp(1), float64, in [1e-16, 36.8]."""
    return -math.log(unit_1(attempt, sweep, index, st, k0, k1))


@device
def normal_and_unit(attempt, sweep, index, st, k0, k1):
    """N(0, 1) by Box & Muller and, independent of it, a uniform on (0, 1) with 52 bits; float64."""
    a, b, c, d = philox(uint32(attempt), sweep, uint32(index), st, k0, k1)
    radius = math.sqrt(-2.0 * math.log((a + 0.5) * 2.3283064365386963e-10))
    return radius * math.cos(1.4629180792671596e-09 * (b + 0.5)), unit(c, d)


@device
def gamma_1(shape, sweep, index, st, k0, k1):
    """Gamma(shape, rate 1) for shape >= 1, float64; Marsaglia & Tsang (2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    for attempt in range(64):  # each accepts with probability > 0.95
        x, u = normal_and_unit(attempt, sweep, index, st, k0, k1)
        v = (1.0 + c * x) ** 3
        if v > 0.0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return d * v
    return d
