"""The horseshoe's marginal law of a coefficient; the rest is ``core/scales.hpp``."""

import math

from ..constants import E1_FAR, E1_NEAR, EULER
from .jit import device, polynomial

_e1_near, _e1_far = polynomial(E1_NEAR), polynomial(E1_FAR)


@device
def scaled_exponential_integral(b):
    """e^b E1(b) for b > 0, relative error below 1e-13: the power series below 1, above it an expansion in
    (b - 4) / (b + 2)."""
    if b < 1.0:
        return math.exp(b) * (_e1_near(b) * b - math.log(b) - EULER)
    return _e1_far((b - 4.0) / (b + 2.0)) / b
