"""The proposals of line moves, known in advance, and the first of them in the slice (``core/line_proposals.hpp``)."""

import numpy as np

from .library import function

_growth = function("growth_of")
_propose, _find_first = function("propose_along_lines"), function("find_first_inside")


def proposals(uniform, width):
    """0 and the proposals; (n_chains, k). uniform : (n_chains, N_UNIFORMS). width : (1,) or (n_chains,)."""
    out = np.empty((len(uniform), uniform.shape[1] - 2))
    _propose(np.ascontiguousarray(uniform), width, len(width) > 1, *out.shape, out)
    return out


def first_inside(value, steps, uniform):
    """The first of the steps (n_chains, k) whose log-density ``value`` is not below the level, value[0] + log(uniform);
    0 if there is none."""
    out = np.empty(len(value))
    _find_first(value, steps, np.ascontiguousarray(uniform), *value.shape, out)
    return out


def growth(r):
    """e^r - 1, with the bits of the core."""
    out = np.empty(r.shape)
    _growth(np.ascontiguousarray(r), r.size, out)
    return out
