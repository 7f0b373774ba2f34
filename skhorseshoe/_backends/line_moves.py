"""Line moves of the coefficients, with z integrated out; they mix well where the reference is poor.

With l the log-likelihood, each is a slice step on one number r, from r = 0, with the log-density

    global   e^r beta, e^r tau          l + r - log(1 + e^2r tau^2 / tau_0^2)
    local    e^r beta_j, e^r lambda_j   l + r - log(1 + e^2r lambda_j^2)
    fixed    beta_j + r                 l

and the logarithm of the fixed prior. beta_j / (lambda_j tau) stays, so that the horseshoe's Gaussian and the Jacobian
together give r. A global move moves the shrunk coefficients, or all, which adds an r for each of the others.

A split move is a global one of some coefficients. The others are held: beta_j and lambda_j tau stay, lambda_j goes to
e^-r lambda_j, which adds -r - log(1 + e^-2r lambda_j^2). A column is held with probability h / (1 + h), h_j =
lambda_j^2 tau^2 x_j'x_j / ``LINE_HALF_HELD``. The choice is an unknown that is drawn first; where column j is not held,
its probability adds -log(1 + e^2r h_j).

Of several classes there are global moves alone.

The slice is an interval of fixed width that is laid about 0 at random and shrinks towards 0 (Neal 2003). The side on
which it shrinks depends on the sign of a proposal alone, so all proposals are known in advance, and one pass over X
computes their log-likelihoods. After ``LINE_PROPOSALS`` of them r stays 0, which is exact: the reverse move would end
there too.
"""

from typing import NamedTuple

import numpy as np

from .._model.horseshoe import log_half_cauchy
from .constants import (
    LARGEST_ODDS,
    LINE_ALL,
    LINE_HALF_HELD,
    LINE_HOLD_PURPOSE,
    LINE_ONE,
    LINE_PROPOSALS,
    LINE_PURPOSE,
    LINE_SPLIT,
)

N_UNIFORMS = 3 + LINE_PROPOSALS  # uniforms of a move: for its level, its interval, its line, and its proposals
LOG_WIDTH = 12.0  # largest width of a slice, in log units
_LEAST_WIDTH = 1e-3  # least width of a slice, in log units
_WIDTH_IN_DEVIATIONS = 8.0  # width of the slice of a coefficient that is not shrunk, in standard deviations
CHEAP_LINE_ROWS = 2**15  # number of rows up to which the likelihood costs little relative to matrices over the columns
LONG_INTERVAL = 8  # sweeps from one with line moves to the next where they cost much or help little
SEVERAL_INTERVAL = 8, 64  # where they help, and where little, for several classes: a proposal is an integral a row
SPLIT_MOVES = 2  # number of split moves in a sweep of few rows
SINGLE_MOVES = 4, 16  # number of coefficients that move by themselves in a sweep: in burn-in; at most after it


class Lines(NamedTuple):
    """The line moves of a sweep; frozen after burn-in."""

    prior: object  # ``FixedPrior``, on the device
    n_splits: int  # number of split moves, half of them before the others
    n_columns: int  # number of coefficients, chosen at random, that move by themselves
    widths: object  # (1 + q,) widths of slices: of the global move, and of each coefficient
    square: object  # (p,) x_j'x_j of the shrunk columns, on the device
    for_fused: tuple  # further arrays of the host for ``_cpu/fused_rows.py``


def line_interval(rows, help_little=False):
    """Number of sweeps from one with line moves to the next."""
    if rows.columns.n_contrasts > 1:
        return SEVERAL_INTERVAL[help_little]
    return 1 if _are_cheap(rows) and not help_little else LONG_INTERVAL


def _are_cheap(rows):
    """Whether line moves are cheap and help: with groups of rows they help little, and of several classes each proposal
    costs as much as a pass."""
    return rows.n <= CHEAP_LINE_ROWS and rows.groups is None and rows.columns.n_contrasts == 1


def n_split_moves(rows):
    """Number of split moves in a sweep."""
    return SPLIT_MOVES if _are_cheap(rows) else 0


def n_single_moves(rows, n_steps=None):
    """Number of coefficients that move by themselves in a sweep: more where burn-in has chosen longer trajectories.

    n_steps : steps of a trajectory, or None before they are chosen."""
    if not _are_cheap(rows):
        return int(rows.columns.n_contrasts == 1)
    return SINGLE_MOVES[0] if n_steps is None else min(max(2, 4 * (n_steps - 1)), SINGLE_MOVES[1])


def line_widths(p, prior, information, spread=None):
    """Widths of the slices, (1 + q,): of the global move and the p coefficients that are shrunk, in log units, then of
    the others.

    information : (q,) precisions of the coefficients, without the prior. spread : (1 + p,) widths in log units, or None
    if they are not known.
    """
    logs = np.full(1 + p, LOG_WIDTH) if spread is None else np.clip(spread, _LEAST_WIDTH, LOG_WIDTH)
    precision = (information + prior.anchor**2 + prior.diagonal)[p:]
    return np.concatenate([logs, _WIDTH_IN_DEVIATIONS / np.sqrt(precision)])


def choose(rows, prior, widths, for_fused, n_splits=0, n_columns=None):
    """The ``Lines`` for these rows. n_columns : None for the default of these rows."""
    columns, p = rows.columns, rows.columns.n_shrunk
    square = rows.size() * (columns.mean**2 + columns.sd**2)[:p]
    n_columns = n_single_moves(rows) if n_columns is None else n_columns
    return Lines(*rows.ops.to_device((prior, n_splits, n_columns, widths, square)), for_fused)


def move(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep):
    """beta, lambda^-2 and tau^-2 after the line moves of a sweep, for rows of any device.

    A likelihood's own parameters, behind the coefficients of beta, are held."""
    q = len(lines.widths) - 1
    if beta.shape[1] > q:
        moved, *scales = move(
            beta[:, :q], lambda_sq_inv, tau_sq_inv, rows.holding(beta[:, q:]), lines, tau_0, key, sweep
        )
        return rows.ops.concatenate((moved, beta[:, q:]), axis=1), *scales
    uniform, hold_uniforms = random_numbers(beta, lines, rows.ops, key, sweep)
    p = lambda_sq_inv.shape[1]
    for i, kind in enumerate(kinds(lines)):
        u = uniform[:, i * N_UNIFORMS : (i + 1) * N_UNIFORMS]
        if kind == LINE_ONE:
            beta, lambda_sq_inv = _move_one(beta, lambda_sq_inv, rows, lines, u)
            continue
        hold = None
        if kind == LINE_SPLIT:
            hold, hold_uniforms = hold_uniforms[:, :p], hold_uniforms[:, p:]
        beta, lambda_sq_inv, tau_sq_inv = _move_all(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, u, hold)
    return beta, lambda_sq_inv, tau_sq_inv


def kinds(lines):
    """The kinds of the moves of a sweep, in order."""
    half = [LINE_SPLIT] * (lines.n_splits // 2)
    return [*half, *[LINE_ONE] * lines.n_columns, LINE_ALL, *half]


def random_numbers(beta, lines, ops, key, sweep):
    """``N_UNIFORMS`` uniforms for each move, and uniforms that choose the columns to hold, or None."""
    n_chains, p = len(beta), len(lines.square)
    uniform = ops.uniform((n_chains, (1 + lines.n_splits + lines.n_columns) * N_UNIFORMS), key, sweep, LINE_PURPOSE)
    if not lines.n_splits:
        return uniform, None
    return uniform, ops.uniform((n_chains, lines.n_splits * p), key, sweep, LINE_HOLD_PURPOSE)


def _move_all(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, uniform, hold_uniform):
    """The global move, or a split move with uniforms ``hold_uniform`` (n_chains, p)."""
    where, p = rows.ops.where, lambda_sq_inv.shape[1]
    n_others, with_others = beta.shape[1] - p, uniform[:, 2] < 0.5
    direction = beta.copy()
    direction[:, p:] *= with_others[:, None]
    ratio = 1.0 / (tau_sq_inv * tau_0**2)
    r, steps = rows.ops.proposals(uniform, lines.widths[:1])
    prior = r * (1.0 + n_others * with_others)[:, None] + log_half_cauchy(np.exp(2.0 * r) * ratio[:, None])
    if hold_uniform is not None:
        odds = np.minimum(lines.square / (tau_sq_inv[:, None] * lambda_sq_inv * LINE_HALF_HELD), LARGEST_ODDS)
        held = hold_uniform * (1.0 + odds) < odds
        direction[:, :p] = where(held, 0.0, beta[:, :p])
        growth = np.exp(2.0 * r)[:, :, None]
        factor = where(held[:, None], 1.0 / (lambda_sq_inv[:, None] * growth), odds[:, None] * growth)
        prior -= np.log1p(factor).sum(axis=2) + r * held.sum(axis=1)[:, None]
    step = _first_in_slice(steps, prior, beta, direction, rows, lines.prior, uniform)
    square = (1.0 + step) ** 2
    if hold_uniform is not None:
        lambda_sq_inv = where(held, lambda_sq_inv * square[:, None], lambda_sq_inv)
    return beta + step[:, None] * direction, lambda_sq_inv, tau_sq_inv / square


def _move_one(beta, lambda_sq_inv, rows, lines, uniform):
    """The local or fixed move of one coefficient of each chain, chosen at random."""
    q, p = beta.shape[1], lambda_sq_inv.shape[1]
    column = np.minimum(np.floor(uniform[:, 2] * q), q - 1.0)
    chosen = np.cumsum(np.ones_like(beta), axis=1) - 1.0 == column[:, None]
    is_shrunk = column < p
    direction = rows.ops.where(chosen, rows.ops.where(is_shrunk[:, None], beta, 1.0), 0.0)
    ratio = (chosen[:, :p] / lambda_sq_inv).sum(axis=1)  # lambda_j^2
    r, growth = rows.ops.proposals(uniform, (chosen * lines.widths[1:]).sum(axis=1))
    log_scale = rows.ops.where(is_shrunk[:, None], r, 0.0)
    steps = rows.ops.where(is_shrunk[:, None], growth, r)
    prior = log_scale + log_half_cauchy(np.exp(2.0 * log_scale) * ratio[:, None])
    step = _first_in_slice(steps, prior, beta, direction, rows, lines.prior, uniform)
    growth = rows.ops.where(chosen[:, :p], 1.0 + step[:, None], 1.0)
    return beta + step[:, None] * direction, lambda_sq_inv / growth**2


def _first_in_slice(steps, prior, beta, direction, rows, fixed, uniform):
    """The first step along the direction that is inside the slice, or 0; (n_chains,)."""
    slope, curvature = fixed.along(beta, direction)
    value = rows.line(beta, direction, steps) + prior - steps * (slope[:, None] + steps * curvature[:, None] / 2.0)
    return rows.ops.first_inside(value, steps, uniform[:, 0])
