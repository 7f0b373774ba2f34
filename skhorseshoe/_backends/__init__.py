"""Back ends: one module per kind of device, all with the same names.

This file holds what they share: the streams of random numbers. A variate is a function of
(seed; attempt, sweep, index, chain and purpose), so every back end draws the same ones. And what they do where rounding
has made a matrix indefinite.
"""

from typing import NamedTuple

from numpy.linalg import LinAlgError

from .constants import (  # noqa: F401 - the purposes, by which every back end draws the same numbers
    ACCEPT,
    COEF,
    EFFECT,
    EXCHANGE,
    EXPAND,
    GLOBAL,
    GLOBAL_AUX,
    GROUP_LINE,
    GROUP_SCALE,
    GROUP_SCALE_AUX,
    HELD,
    JITTERS,
    LATENT,
    LENGTH,
    LINE,
    LINE_HELD,
    LOCAL,
    LOCAL_AUX,
    LOCAL_SLICE,
    MOMENTUM,
    PERTURB,
    PROBE,
    PROBE_ROWS,
    SWAP,
    SWAP_ACCEPT,
)

MAX_CHAINS = 256  # the counter has 8 bits for the chain
NO_SWEEP = 2**32 - 1  # a number of the counter that no sweep has

# Share of z'z below which z'z - z'X S X'z is a matter of rounding, and "pxda" leaves z as it is. That is exact: the
# move does not change the share.
LEAST_REST = 1e-5


class Path(NamedTuple):
    """Where the chains are on their paths: u, v, the force L^-1 grad U, and U + (u'u + v'v) / 2."""

    u: object  # (n_chains, q)
    v: object  # (n_chains, q)
    force: object  # (n_chains, q)
    total: object  # (n_chains,)


def not_definite(q, minor):
    """The error where none of them has helped; minor : the order of the minor that failed."""
    return LinAlgError(
        f"X'X + D is not positive definite ({q} columns, minor {minor}), even with its diagonal raised by "
        f"{JITTERS[-1]:g}. Some columns of X are very large or nearly equal: scale them (StandardScaler) or drop one."
    )
