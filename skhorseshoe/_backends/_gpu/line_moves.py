"""Moves along lines on the GPU: what comes before and after a pass."""

import cupy as cp

from .. import lines as _lines
from .cuda import MAX_CHAINS, THREADS
from .launch import blocks_for, i32, kernel, launch

NEAR_ROWS = 0  # of which there would be another way to move than with a pass for all proposals
TOGETHER = min(
    MAX_CHAINS // 2, THREADS // (1 + _lines.LINE_PROPOSALS)
)  # lines of a launch: each step of each has a thread


def proposals(uniform, width):
    """As ``cpu.proposals``."""
    n_chains, n_steps = len(uniform), uniform.shape[1] - 2
    out = cp.empty((n_chains, n_steps))
    given = cp.ascontiguousarray(uniform), width, i32(width.size > 1), out
    launch(kernel("chains", "line_proposals"), blocks_for(n_chains), *given, i32(n_chains), i32(n_steps))
    return out


def first_inside(value, steps, uniform):
    """As ``cpu.first_inside``."""
    out = cp.empty(len(value))
    given = value, steps, cp.ascontiguousarray(uniform), out
    launch(kernel("chains", "first_inside"), blocks_for(len(out)), *given, *map(i32, value.shape))
    return out


def side_by_side(coef, direction):
    """The coefficients of each chain and behind them its direction, as of chains of their own; (2 n_chains, q)."""
    out = cp.empty((2 * len(coef), coef.shape[1]))
    out[::2], out[1::2] = coef, direction
    return out
