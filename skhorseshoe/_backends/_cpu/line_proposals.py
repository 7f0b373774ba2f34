"""The proposals of line moves, known in advance, and the first of them in the slice (``core/line_proposals.hpp``)."""

import numpy as np

from .library import function

_propose, _find_first = function("propose_along_lines"), function("find_first_inside")


def proposals(uniform, width):
    """0 and the proposals r, and e^r - 1; (n_chains, k) each. uniform : (n_chains, N_UNIFORMS). width : (1,) or
    (n_chains,)."""
    r, growth = np.empty((2, len(uniform), uniform.shape[1] - 2))
    _propose(np.ascontiguousarray(uniform), width, len(width) > 1, *r.shape, r, growth)
    return r, growth


def first_inside(value, steps, uniform):
    """The first of the steps (n_chains, k) whose log-density ``value`` is not below the level, value[0] + log(uniform);
    0 if there is none."""
    out = np.empty(len(value))
    _find_first(value, steps, np.ascontiguousarray(uniform), *value.shape, out)
    return out
