"""The proposals of line moves on the GPU, and the first of them in the slice: the kernels before and after a pass."""

import cupy as cp

from .. import line_moves
from .cuda import PASS_CHAINS, THREADS
from .launch import blocks_for, i32, kernel, launch

# Largest number of lines of a launch, in which each step of each line has a thread.
LINES_PER_LAUNCH = min(PASS_CHAINS // 2, THREADS // (1 + line_moves.LINE_PROPOSALS))


def proposals(uniform, width):
    """As ``cpu.proposals``."""
    n_chains, n_steps = len(uniform), uniform.shape[1] - 2
    out = cp.empty((n_chains, n_steps))
    arguments = cp.ascontiguousarray(uniform), width, i32(width.size > 1), out
    launch(kernel("chains", "line_proposals"), blocks_for(n_chains), arguments, i32(n_chains), i32(n_steps))
    return out, cp.expm1(out)


def first_inside(value, steps, uniform):
    """As ``cpu.first_inside``."""
    out = cp.empty(len(value))
    arguments = value, steps, cp.ascontiguousarray(uniform), out
    launch(kernel("chains", "first_inside"), blocks_for(len(out)), arguments, tuple(map(i32, value.shape)))
    return out


def with_directions(coef, direction):
    """The coefficients of each chain, followed by its direction, as two chains; (2 n_chains, q)."""
    out = cp.empty((2 * len(coef), coef.shape[1]))
    out[::2], out[1::2] = coef, direction
    return out
