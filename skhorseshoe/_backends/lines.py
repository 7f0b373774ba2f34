"""Moves of the coefficients along lines, z integrated out, which no reference can hold back.

With l the log-likelihood, each is a slice step on one number r, from r = 0, with the log-density

    global   e^r beta, e^r tau          l + r - log(1 + e^2r tau^2 / tau_0^2)
    local    e^r beta_j, e^r lambda_j   l + r - log(1 + e^2r lambda_j^2)
    fixed    beta_j + r                 l

and the logarithm of the fixed prior. beta_j / (lambda_j tau) stays as it is, so that the horseshoe's Gaussian and the
Jacobian leave r. A global move takes the shrunk coefficients, or all of them, which adds an r for each of the others.

A split move is a global one of some coefficients. The others are held: beta_j and lambda_j tau stay, lambda_j goes to
e^-r lambda_j, which adds -r - log(1 + e^-2r lambda_j^2). A column is held with probability h / (1 + h), h_j =
lambda_j^2 tau^2 x_j'x_j / ``LINE_HELD_SIZE``, drawn before: the choice is an unknown of its own, and where it is not to
hold, its probability adds -log(1 + e^2r h_j).

The slice is an interval of fixed width that is laid about 0 at random and shrinks towards 0 (Neal 2003). On which side
it shrinks depends on the sign of a proposal alone, so all proposals are known beforehand: one pass over X has their
log-likelihoods. After ``LINE_PROPOSALS`` of them r stays 0, which is exact, for the way back would end there too.
"""

from typing import NamedTuple

import numpy as np

from .constants import (
    LARGEST_ODDS,
    LINE,
    LINE_ALL,
    LINE_HELD,
    LINE_HELD_SIZE,
    LINE_ONE,
    LINE_PROPOSALS,
    LINE_SPLIT,
)

EACH = 3 + LINE_PROPOSALS  # uniforms for a move: of its level, its interval, its line, and its proposals
LOG_WIDTH = 12.0  # of a slice in log units, at most
_LEAST_WIDTH = 1e-3
_DEVIATIONS = 8.0  # in the width of a slice for a coefficient that is not shrunk
FEW_ROWS = 2**15  # of which evaluations of the likelihood cost little beside the matrices over the columns
SELDOM = 8  # sweeps, of which one has these moves where little asks for them
SPLITS = 2  # split moves in a sweep of few rows
SINGLES = 4, 16  # coefficients that move by themselves in a sweep: in burn-in, and at most after it


class Lines(NamedTuple):
    """Which moves a sweep makes, and how wide; frozen after burn-in."""

    prior: object  # ``FixedPrior``, on the device
    n_splits: int  # split moves, half of them before the others
    n_columns: int  # coefficients that move by themselves, at random
    widths: object  # (1 + q,) of the slices: of the global move, and of each coefficient
    square: object  # (p,) x_j'x_j of the shrunk columns, on the device
    near: tuple  # what ``line_moves`` takes beside: arrays of the host


def every(rows):
    """Sweeps, of which one has these moves, by the number of rows and whether they have groups."""
    return 1 if _are_cheap(rows) else SELDOM


def _are_cheap(rows):
    """Whether these moves are; where rows have groups each of them is a pass."""
    return rows.n <= FEW_ROWS and rows.groups is None


def splits(rows):
    """Split moves in a sweep."""
    return SPLITS if _are_cheap(rows) else 0


def singles(rows, n_steps=None):
    """Coefficients that move by themselves in a sweep; the more turns of a path burn-in has chosen, the more are left
    to these moves. n_steps : turns, or None before that."""
    if not _are_cheap(rows):
        return 1
    return SINGLES[0] if n_steps is None else min(max(2, 4 * (n_steps - 1)), SINGLES[1])


def line_widths(p, prior, information, spread=None):
    """Widths of the slices, (1 + q,): of the global move and the p coefficients that are shrunk, in log units, then of
    the others.

    information : (q,) of which the inverse roots are standard deviations, but for the prior. spread : (1 + p,) the
    widths that logarithms need, or None where nothing is known of it.
    """
    logs = np.full(1 + p, LOG_WIDTH) if spread is None else np.clip(spread, _LEAST_WIDTH, LOG_WIDTH)
    precision = (information + prior.anchor**2 + prior.diagonal)[p:]
    return np.concatenate([logs, _DEVIATIONS / np.sqrt(precision)])


def choose(rows, prior, widths, near, n_splits=0, n_columns=None):
    """The ``Lines`` for these rows. n_columns : by the number of rows, where it is not given."""
    columns, p = rows.columns, rows.columns.n_shrunk
    square = rows.size() * (columns.mean**2 + columns.sd**2)[:p]
    n_columns = singles(rows) if n_columns is None else n_columns
    return Lines(*rows.ops.to_device((prior, n_splits, n_columns, widths, square)), near)


def move(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep):
    """beta, lambda^-2 and tau^-2 after the moves of a sweep, on any device and wherever the rows are."""
    uniform, chances = random_numbers(beta, lines, rows.ops, key, sweep)
    p = lambda_sq_inv.shape[1]
    for i, kind in enumerate(kinds(lines)):
        u = uniform[:, i * EACH : (i + 1) * EACH]
        if kind == LINE_ONE:
            beta, lambda_sq_inv = _move_one(beta, lambda_sq_inv, rows, lines, u)
            continue
        chance = None
        if kind == LINE_SPLIT:
            chance, chances = chances[:, :p], chances[:, p:]
        beta, lambda_sq_inv, tau_sq_inv = _move_all(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, u, chance)
    return beta, lambda_sq_inv, tau_sq_inv


def kinds(lines):
    """What the moves of a sweep are, in their order."""
    half = [LINE_SPLIT] * (lines.n_splits // 2)
    return [*half, *[LINE_ONE] * lines.n_columns, LINE_ALL, *half]


def random_numbers(beta, lines, ops, key, sweep):
    """Uniforms for the moves, ``EACH`` for each, and for the choices of the columns that are held."""
    n_chains, p = len(beta), len(lines.square)
    uniform = ops.uniform((n_chains, (1 + lines.n_splits + lines.n_columns) * EACH), key, sweep, LINE)
    return uniform, ops.uniform((n_chains, lines.n_splits * p), key, sweep, LINE_HELD) if lines.n_splits else None


def _move_all(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, uniform, chance):
    """The global move, or with uniforms ``chance`` a split one."""
    where, p = rows.ops.where, lambda_sq_inv.shape[1]
    n_others, with_others = beta.shape[1] - p, uniform[:, 2] < 0.5
    direction = beta.copy()
    direction[:, p:] *= with_others[:, None]
    ratio = 1.0 / (tau_sq_inv * tau_0**2)
    r = rows.ops.proposals(uniform, lines.widths[:1])
    steps = rows.ops.growth(r)
    prior = r * (1.0 + n_others * with_others)[:, None] - np.log1p(np.exp(2.0 * r) * ratio[:, None])
    if chance is not None:
        odds = np.minimum(lines.square / (tau_sq_inv[:, None] * lambda_sq_inv * LINE_HELD_SIZE), LARGEST_ODDS)
        held = chance * (1.0 + odds) < odds
        direction[:, :p] = where(held, 0.0, beta[:, :p])
        growth = np.exp(2.0 * r)[:, :, None]
        factor = where(held[:, None], 1.0 / (lambda_sq_inv[:, None] * growth), odds[:, None] * growth)
        prior -= np.log1p(factor).sum(axis=2) + r * held.sum(axis=1)[:, None]
    step = _first_in_the_slice(steps, prior, beta, direction, rows, lines.prior, uniform)
    square = (1.0 + step) ** 2
    if chance is not None:
        lambda_sq_inv = where(held, lambda_sq_inv * square[:, None], lambda_sq_inv)
    return beta + step[:, None] * direction, lambda_sq_inv, tau_sq_inv / square


def _move_one(beta, lambda_sq_inv, rows, lines, uniform):
    """The move of a coefficient, local or fixed, for each chain one at random."""
    q, p = beta.shape[1], lambda_sq_inv.shape[1]
    column = np.minimum(np.floor(uniform[:, 2] * q), q - 1.0)
    chosen = np.cumsum(np.ones_like(beta), axis=1) - 1.0 == column[:, None]
    is_shrunk = column < p
    direction = rows.ops.where(chosen, rows.ops.where(is_shrunk[:, None], beta, 1.0), 0.0)
    ratio = (chosen[:, :p] / lambda_sq_inv).sum(axis=1)  # lambda_j^2
    r = rows.ops.proposals(uniform, (chosen * lines.widths[1:]).sum(axis=1))
    log_scale = rows.ops.where(is_shrunk[:, None], r, 0.0)
    steps = rows.ops.where(is_shrunk[:, None], rows.ops.growth(log_scale), r)
    prior = log_scale - np.log1p(np.exp(2.0 * log_scale) * ratio[:, None])
    step = _first_in_the_slice(steps, prior, beta, direction, rows, lines.prior, uniform)
    growth = rows.ops.where(chosen[:, :p], 1.0 + step[:, None], 1.0)
    return beta + step[:, None] * direction, lambda_sq_inv / growth**2


def _first_in_the_slice(steps, prior, beta, direction, rows, fixed, uniform):
    """The first of the steps along the direction that is in the slice, 0 if none is; (n_chains,)."""
    slope, curvature = fixed.along(beta, direction)
    value = rows.line(beta, direction, steps) + prior - steps * (slope[:, None] + steps * curvature[:, None] / 2.0)
    return rows.ops.first_inside(value, steps, uniform[:, 0])
