"""Back ends: one module per kind of device, all with the same names.

This file holds what they share: the purposes of random numbers, and the error where rounding has made a matrix
indefinite. A variate is a function of (seed; attempt, sweep, index, chain and purpose), so that all back ends draw the
same numbers.
"""

from typing import NamedTuple

from numpy.linalg import LinAlgError

from .constants import *  # noqa: F403 - the purposes, by which every back end draws the same numbers
from .constants import JITTERS

MAX_CHAINS = 256  # largest number of chains of a fit: the counter of random numbers has 8 bits for the chain
NO_SWEEP = 2**32 - 1  # number of a sweep that no run reaches, for what is drawn before the first sweep

# Share of z'z below which z'z - z'X S X'z is due to rounding, and "pxda" leaves z as it is. This is exact, since the
# move does not change the share.
LEAST_RESIDUAL = 1e-5


class Trajectory(NamedTuple):
    """The chains on their trajectories: position u, momentum v, force L^-1 grad U and energy U + (u'u + v'v) / 2."""

    u: object  # (n_chains, q)
    v: object  # (n_chains, q)
    force: object  # (n_chains, q)
    energy: object  # (n_chains,)


def not_definite(q, minor):
    """The error where no jitter has helped. minor : the order of the minor that failed."""
    return LinAlgError(
        f"X'X + D is not positive definite ({q} columns, minor {minor}), even with its diagonal raised by "
        f"{JITTERS[-1]:g}. Some columns of X are very large or nearly equal: scale them (StandardScaler) or drop one."
    )
