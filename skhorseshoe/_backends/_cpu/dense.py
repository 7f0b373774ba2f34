"""The back end for the CPU: NumPy arrays, the core in C++, LAPACK from SciPy.

Every array that describes the chains has them as its leading axis. Arrays of size p are float64.
"""

from contextlib import nullcontext

import numpy as np
from scipy import special  # noqa: F401 - part of what a back end offers

from ..._model import PROBIT
from ..._utils.memmap import cut, is_on_disk, read_ahead
from ..._utils.threads import ONE_THREAD
from .. import line_moves
from ..moments import combine_moments
from .column_moves import ColumnMoves  # noqa: F401 - part of what a back end offers
from .diagonal_mass_matrix import DiagonalMassMatrix  # noqa: F401
from .fused_rows import fused_line_moves, fused_line_rows, fused_score_rows, give_effects  # noqa: F401 - the last is
from .gaussian import Precision, Root  # noqa: F401 - part of what a back end offers
from .group_lines import CovarianceLines, ScaleLines  # noqa: F401 - as are these
from .library import function
from .line_proposals import first_inside, proposals  # noqa: F401 - as are these
from .mass_matrix import MassMatrix  # noqa: F401 - as is this
from .passes import Shift, latent, line, score  # noqa: F401 - as are these
from .predict import (  # noqa: F401 - part of what a back end offers
    PREDICTORS_AT_ONCE,
    average_class_probabilities,
    average_probabilities,
    class_probabilities,
    each_block,
    next_hermite,
    quantiles,
)
from .prior_coordinates import Exchanges, PriorCoordinates  # noqa: F401 - two are, too
from .row_groups import RowGroups, sums_by_group  # noqa: F401 - as are these
from .shrinkage_by_rows import ShrinkageByRows  # noqa: F401 - as is this
from .variates import draw_lambda_given_beta, draw_tau_given_beta, exponential, gamma, normal, uniform  # noqa: F401

_accept_proposals, add_products = function("accept_proposals"), function("add_products")
_fused_score = function("fused_score")
empty_like, where, concatenate = np.empty_like, np.where, np.concatenate
exp, minimum = np.exp, np.minimum
using = nullcontext
MOST_FUSED_ROWS = 2**15  # largest number of rows in memory that take fused calls: a whole move in one call of the core
SEGMENTED = True  # passes are made segment by segment, so that sums have the bits of those on many machines

_MOST_FUSED_BLOCKS = 4  # blocks of rows up to which one call is faster than steps that threads share
_MOST_FUSED_COLUMNS = 127  # largest number of columns whose matrices threads do not share

# Least numbers of linear predictors of all chains for which threads share line moves, and trajectories of classes.
_LEAST_SHARED_PREDICTORS = 2**15, 2**14
_PIECES_OF_A_MATRIX = 16  # number of pieces of a large symmetric matrix that threads share

_GRAM_NUMBERS_AT_A_TIME = 2**20  # elements of X converted to float64 at a time
_GRAM_SHARDS = 2  # number of partial sums; a constant, so that bits do not depend on the number of threads


def times_symmetric(v, M, threads=None):
    """v M for v (m, q) and a symmetric M (q, q); with threads, in pieces that do not depend on their number."""
    if threads is None:
        return v @ M
    out, edges = np.empty(v.shape), np.linspace(0, len(M), _PIECES_OF_A_MATRIX + 1).astype(int)

    def multiply(first, last):
        for i in range(first, last):
            rows = slice(*edges[i : i + 2])
            out[:, rows] = v @ M[rows].T

    threads.run(multiply, _PIECES_OF_A_MATRIX)
    return out


def hold(X, y, weight):
    """The rows in the form that the passes read."""
    return X.astype(np.float32) if X.dtype == np.float16 and not is_on_disk(X) else X, y, weight


def place(X, n_chains, kind):
    """X, and an empty message; memory of the host is forecast elsewhere."""
    return X, ""


def to_device(values):
    """Arrays of the host, also in tuples, dicts and objects, as arrays of the device."""
    return values


def to_host(values):
    """Arrays of the device as arrays of the host."""
    return values


class Outbox:
    """Brings values to the host, where they are already."""

    def put(self, use, values):
        """Call use(*values)."""
        use(*values)

    def flush(self):
        """Nothing to wait for."""


class Watch:
    """Whether an iteration goes on, which ends when no flag is set."""

    @staticmethod
    def any_left(flags, step):
        """Whether any of the flags (m,) is set before this step; steps of an iteration are numbered from 0.

        Other back ends may return True for one step too many.
        """
        return flags.any()


def metropolis(change, new, old, key, sweep):
    """``new`` of chains whose change of energy a Metropolis test accepts, else ``old``; and acceptances (n_chains,).

    new, old : tuples of arrays of a state; ``new`` may be overwritten."""
    accepted, acceptance = np.empty(len(change), bool), np.empty(len(change))
    _accept_proposals(change, len(change), sweep, key, accepted, acceptance)
    if not accepted.all():
        for proposed, current in zip(new, old, strict=True):
            proposed[~accepted] = current[~accepted]
    return *new, acceptance


def fused_trajectories(state, rows, reference, tuning, tau_0, key, with_scales):
    """``_trajectories`` of ``hmc.py`` in one call of the core, with the same bits; None where rows or columns are so
    many that threads share them or that calls of Python take little of the time, or where rows have an offset."""
    if len(reference.point) > _MOST_FUSED_COLUMNS or not _one_thread_suffices(rows):
        return None
    made, threads = fused_score_rows(rows), _threads_of_chains(rows, state.beta, tuning.n_steps)
    return reference.mass_matrix.fused_trajectories(state, made, reference, tuning, tau_0, key, with_scales, threads)


def fused_trajectory_in_prior_coordinates(state, rows, coordinates, step, n_steps, key):
    """``_trajectory`` of ``hmc_prior_coordinates.py`` in one call, or None as for ``fused_trajectories``."""
    if not _one_thread_suffices(rows, _MOST_FUSED_BLOCKS):
        return None
    threads = _threads_of_chains(rows, state.beta, n_steps)
    return coordinates.fused_trajectory(state, fused_score_rows(rows), step, n_steps, key, threads)


def fused_exchanges(state, rows, exchanges, numbers, stride, key):
    """``_exchange`` of ``hmc_prior_coordinates.py`` in one call of the core, or None as for ``fused_trajectories``."""
    if not _one_thread_suffices(rows, _MOST_FUSED_BLOCKS):
        return None
    return exchanges.fused(state, fused_score_rows(rows), numbers, stride, key)


def fused_score(rows, beta):
    """Log-likelihood and score at the sampler's coefficients, or None as for ``fused_trajectories``."""
    if not _one_thread_suffices(rows, 1 if rows.groups is None else _MOST_FUSED_BLOCKS):
        return None
    made, beta = fused_score_rows(rows), np.ascontiguousarray(beta)
    loglik, gradient = np.empty(len(beta)), np.empty(beta.shape)

    def compute(first, last):
        _fused_score(made, beta[first:last], last - first, loglik[first:last], gradient[first:last])

    _threads_of_chains(rows, beta).run(compute, len(beta))
    return loglik, gradient


def _threads_of_chains(rows, beta, n_steps=1):
    """The threads that share the chains of a fused call: several if a chain has several linear predictors a row, since
    the chains of two classes are computed together, and if there are enough of them."""
    n_predictors = rows.n * len(beta) * rows.columns.n_contrasts * n_steps
    shares = rows.columns.n_contrasts > 1 and rows.groups is None and n_predictors >= _LEAST_SHARED_PREDICTORS[1]
    return rows.threads if shares else ONE_THREAD


def _one_thread_suffices(rows, n_blocks=1):
    """Whether one thread does all work on these rows, of at most so many blocks."""
    return rows.offset is None and (len(rows.bounds) <= n_blocks + 1 or rows.threads.n == 1)


def fuses_effects(rows, has_mass_matrix):
    """Whether fused calls take rows with groups, and so never steps, whatever the number of threads. has_mass_matrix :
    whether trajectories have one."""
    n_blocks = 1 if has_mass_matrix else _MOST_FUSED_BLOCKS
    fits = not has_mass_matrix or rows.columns.q_order.size <= _MOST_FUSED_COLUMNS
    return rows.takes_fused_calls and fits and len(rows.bounds) <= n_blocks + 1


def move_along_lines(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep):
    """beta, lambda^-2 and tau^-2 after the moves of ``line_moves.py``, in a fused call or by passes."""
    if not rows.takes_fused_calls or rows.likelihood.n_classes > 2:
        return line_moves.move(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep)
    out = beta.copy(), lambda_sq_inv.copy(), tau_sq_inv.copy()
    numbers = line_moves.random_numbers(beta, lines, rows.ops, key, sweep)
    inputs = *fused_line_rows(rows, lines, tau_0, beta), *numbers
    state = *out, None, None
    if rows.n * len(beta) < _LEAST_SHARED_PREDICTORS[0]:
        fused_line_moves(*inputs, 0, len(beta), state)
    else:
        rows.threads.run(lambda first, last: fused_line_moves(*inputs, first, last, state), len(beta))
    return out


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=(), likelihood=PROBIT):
    """X' diag(weight) X of the columns (x - centre) / scale, bordered by a column of ones if there is an intercept;
    (q, q) float64, summed in float64.

    weight : (n,) or (0,) for none. With beta (m, q) it is the Fisher information of the likelihood, averaged over the m
    points: each row has the average of its information about x beta as a further weight. spare : matrices (q, q) to use
    as scratch.
    """
    n, p = X.shape
    q = p + fit_intercept
    step = max(64, _GRAM_NUMBERS_AT_A_TIME // (q + (0 if beta is None else len(beta))))
    n_shards = min(_GRAM_SHARDS, -(-n // step))
    edges = np.linspace(0, n, n_shards + 1).astype(int)

    def add(shard, total):
        scratch = np.empty((min(step, n), q))
        for rows in read_ahead(X, cut(edges[shard], edges[shard + 1], step), edges[shard + 1]):
            scaled = scratch[: rows.stop - rows.start]
            scaled[:, p:] = 1.0
            np.subtract(X[rows], centre, out=scaled[:, :p])
            scaled[:, :p] /= scale
            row_weight = weight[rows] if len(weight) else 1.0
            if beta is not None:
                row_weight = row_weight * likelihood.information(scaled @ beta.T).mean(axis=1)
            if np.ndim(row_weight):
                scaled *= np.sqrt(row_weight)[:, None]
            add_products(scaled, *scaled.shape, total, True)

    return sum_of_shards(add, q, n_shards, spare, threads)


def sum_of_shards(add, q, n_shards, spare, threads):
    """A symmetric matrix (q, q), the sum of shards in order; add(shard, total) adds one to the lower triangle of total.

    spare : matrices (q, q) to use as scratch.
    """
    totals = [np.zeros((q, q)), *spare][:n_shards]
    totals += [np.empty((q, q)) for _ in range(n_shards - len(totals))]
    for total in totals[1:]:
        total[...] = 0.0

    def add_shards(first, last):
        for shard in range(first, last):
            add(shard, totals[shard])

    threads.run(add_shards, n_shards)
    total = totals[0]
    for other in totals[1:]:
        total += other
    for j in range(q):
        total[j, j + 1 :] = total[j + 1 :, j]
    return total


def moments(X, weight):
    """Mean and variance of the columns, weighted; (p,) float64 each, without cancellation. weight : (n,) or (0,)."""
    blocks = read_ahead(X, cut(0, len(X), max(64, _GRAM_NUMBERS_AT_A_TIME // X.shape[1])), len(X))
    return combine_moments(
        (X[rows].astype(np.float64), weight[rows] if len(weight) else np.ones(len(X[rows]))) for rows in blocks
    )
