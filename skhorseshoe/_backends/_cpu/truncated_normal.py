"""One-sided truncated normals for a tile of rows: z_i ~ N(mean_i, 1), positive if y_i = 1, negative if 0.

The two-branch rejection sampler of Terenin, Dong & Draper (2019), section 3: from the untruncated normal where
the mean is above 0.47, from Robert's (1995) exponential below. A block of random words holds two proposals of
each kind (a Box-Muller pair counts as one). Those of the first block are made and judged for all rows at once,
without a branch, in loops that vectorise; the few rows left go on one by one from the second block. Which
proposal a row ends with does not depend on this.

The standard variates (exponential, radius, cosine, sine) have the resolution of float32; they are combined with
the mean in the dtype of z. The variate itself is formed, never mean + (small difference), so the relative
accuracy holds for every |mean| up to 40 and beyond.

References: Robert (1995), "Simulation of truncated normal variables"; the polynomials for log, sin and cos are
those of Moshier's Cephes mathematical library.
"""

import math

import numpy as np
from numba import float32, int32, uint32

from .. import LATENT
from ..constants import GAUSSIAN_ABOVE
from .jit import device
from .philox import philox, stream


@device
def truncated_normal(mean, like, attempt, sweep, row, st, k0, k1):
    """N(mean, 1) given that it is positive, from the proposals of block ``attempt`` on; dtype of ``like``."""
    F = like.dtype.type
    inverse_rate = F(2) / (math.sqrt(mean * mean + F(4)) - mean)  # = mean + rate
    for block in range(attempt, attempt + 64):  # P(all rejected) < 1e-50
        w0, w1, w2, w3 = philox(uint32(block), sweep, uint32(row), st, k0, k1)
        for half in range(2):
            first, second = (w0, w1) if half == 0 else (w2, w3)
            e = -math.log(F(unit_32(first)))
            if mean > F(GAUSSIAN_ABOVE):
                radius = math.sqrt(F(2) * e)
                angle = F(1.4629180792671596e-09) * (F(second) + F(0.5))
                z = mean + radius * math.cos(angle)
                if z > F(0):
                    return z
                z = mean + radius * math.sin(angle)
                if z > F(0):
                    return z
            else:
                z = e * inverse_rate
                d = z - inverse_rate
                if F(0.5) * d * d < -math.log(F(unit_32(second))):
                    return z
    return max(mean, inverse_rate)


@device
def truncate_tile(z, y, row0, chain, sweep, k0, k1, words, work, proposal):
    """Replace the means z[r] of rows row0 + r by truncated normals.

    Scratch, at least as long as z: words (4, .) uint32; work (5, .) float32; proposal (2, .) in the dtype of z.
    """
    F = z.dtype.type
    rows = z.shape[0]
    mean, other = proposal[0], proposal[1]
    for r in range(rows):
        mean[r] = z[r] if y[r] else -z[r]
    same = min(rows, 2**32 - row0 % 2**32)  # rows whose numbers have the same high bits
    for a, b in ((0, same), (same, rows)):
        some = words[0, a:b], words[1, a:b], words[2, a:b], words[3, a:b]
        _first_block(some, sweep, row0 + a, stream(chain, LATENT, row0 + a), k0, k1)
    _propose(rows, words[0], words[1], mean, work, z)
    _propose(rows, words[2], words[3], mean, work, other)
    for r in range(rows):
        z[r] = z[r] if z[r] > F(0) else other[r]
    for r in range(rows):
        if not z[r] > F(0):
            z[r] = truncated_normal(mean[r], z, 1, sweep, row0 + r, stream(chain, LATENT, row0 + r), k0, k1)
    for r in range(rows):
        z[r] = z[r] if y[r] else -z[r]


@device
def _first_block(words, sweep, row0, st, k0, k1):
    """The random words of attempt 0 for each row."""
    (w0, w1, w2, w3), index = words, uint32(row0)
    for r in range(w0.shape[0]):
        w0[r], w1[r], w2[r], w3[r] = philox(uint32(0), sweep, uint32(index + uint32(r)), st, k0, k1)


@device
def _propose(rows, first, second, mean, work, out):
    """One proposal of the branch that each mean calls for; not positive where it is rejected."""
    F = mean.dtype.type
    e, log_u, cosine, sine = work[0], work[1], work[2], work[3]
    minus_log_unit(rows, first, work[4], e)
    minus_log_unit(rows, second, work[4], log_u)
    cos_sin_turn(rows, second, cosine, sine)
    for r in range(rows):
        m = mean[r]
        radius = math.sqrt(float32(2) * e[r])
        gaussian = m + radius * cosine[r]
        gaussian = gaussian if gaussian > F(0) else m + radius * sine[r]
        inverse_rate = F(2) / (math.sqrt(m * m + F(4)) - m)
        z = e[r] * inverse_rate
        d = z - inverse_rate
        exponential = z if F(0.5) * d * d < log_u[r] else F(-1)
        out[r] = gaussian if m > F(GAUSSIAN_ABOVE) else exponential


@device(inline="always")
def unit_32(word):
    """Uniform on (0, 1), float32, from one word; never 0, never 1."""
    return min(float32(word) * float32(2.0**-32) + float32(2.0**-33), float32(1 - 2.0**-24))


@device
def minus_log_unit(rows, word, scratch, out):
    """out[r] = -log(unit_32(word[r])), float32, relative error below 1e-7. scratch : float32."""
    bits = scratch.view(np.uint32)
    for r in range(rows):
        scratch[r] = unit_32(word[r])
    for r in range(rows):  # unit = mantissa 2^exponent, mantissa in [1/2, 1)
        out[r] = float32(int32(bits[r] >> uint32(23)) - int32(126))
        bits[r] = uint32((bits[r] & uint32(0x7FFFFF)) | uint32(0x3F000000))
    for r in range(rows):
        low = scratch[r] < float32(0.70710678)
        exponent = out[r] - float32(1) if low else out[r]
        x = (scratch[r] + scratch[r] if low else scratch[r]) - float32(1)
        y = float32(7.0376836292e-2)
        y = y * x + float32(-1.1514610310e-1)
        y = y * x + float32(1.1676998740e-1)
        y = y * x + float32(-1.2420140846e-1)
        y = y * x + float32(1.4249322787e-1)
        y = y * x + float32(-1.6668057665e-1)
        y = y * x + float32(2.0000714765e-1)
        y = y * x + float32(-2.4999993993e-1)
        y = y * x + float32(3.3333331174e-1)
        square = x * x
        y = y * x * square + exponent * float32(-2.12194440e-4) - float32(0.5) * square
        out[r] = -(x + y + exponent * float32(0.693359375))


@device
def cos_sin_turn(rows, word, cosine, sine):
    """cos and sin of 2 pi (word + 1/2) / 2^32, float32, absolute error below 1e-7."""
    for r in range(rows):
        quadrant = uint32(uint32(word[r] + uint32(0x20000000)) >> uint32(30))
        offset = int32(uint32(word[r] - uint32(quadrant << uint32(30))))
        t = (float32(offset) + float32(0.5)) * float32(1.4629180792671596e-09)  # in [-pi/4, pi/4]
        square = t * t
        s = float32(-1.9515295891e-4) * square + float32(8.3321608736e-3)
        s = (s * square + float32(-1.6666654611e-1)) * square * t + t
        c = float32(2.443315711809948e-5) * square + float32(-1.388731625493765e-3)
        c = (c * square + float32(4.166664568298827e-2)) * square * square - float32(0.5) * square + float32(1)
        odd = (quadrant & uint32(1)) != uint32(0)
        along, across = (s, c) if odd else (c, s)
        cosine[r] = -along if (quadrant == uint32(1) or quadrant == uint32(2)) else along
        sine[r] = -across if quadrant >= uint32(2) else across
