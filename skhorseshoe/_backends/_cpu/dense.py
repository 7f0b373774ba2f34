"""The back end for the CPU: NumPy arrays, the core in C++, LAPACK from SciPy.

Every array that describes the chains has them as its leading axis. Arrays of size p are float64.
"""

from contextlib import nullcontext
from weakref import WeakKeyDictionary

import numpy as np
from scipy.special import ndtr  # noqa: F401 - part of what a back end offers

from ..._utils.memmap import ahead, cut, is_on_disk
from .. import lines as _lines
from ..moments import combine_moments
from .dense_passes import pieces
from .gaussian import Precision, Root, Whitening  # noqa: F401 - part of what a back end offers
from .library import function, record
from .line_moves import first_inside, growth, move_near, near_lines, proposals  # noqa: F401 - as are three of these
from .normal_tail import fisher_weight, information_weights  # noqa: F401 - as is fisher_weight
from .passes import Shift, latent_pass, line_pass, or_none, score_pass  # noqa: F401 - as is Shift
from .predict import (  # noqa: F401 - part of what a back end offers
    SCORES_TOGETHER,
    average_phi,
    each_block,
    next_hermite,
    quantiles,
)
from .prior_coordinates import SHARED, Exchanges, PriorCoordinates  # noqa: F401 - two are, too
from .row_groups import RowGroups, sums_by_group  # noqa: F401 - as are these
from .shrinkage_by_rows import ShrinkageByRows  # noqa: F401 - as is this
from .variates import exponential, gamma, global_scale, local_scales, normal, uniform  # noqa: F401

_accept_paths, add_products = function("accept_paths"), function("add_products")
_near_score = function("near_score")
empty_like, where, concatenate = np.empty_like, np.where, np.concatenate
exp, minimum = np.exp, np.minimum
using = nullcontext
NEAR_ROWS = 2**15  # in memory, of which linear predictors are kept while coefficients move along lines
SEGMENTED = True  # rows are asked segment by segment, so that their sums have the bits of those on many machines

_NEAR_COLUMNS = 127  # of matrices that threads do not share
_records = WeakKeyDictionary()

_SHARED_ROWS = 2**11  # times chains, whose moves outweigh handing a chain to another thread
_PIECES = 16  # of a large symmetric matrix that threads share

_GRAM_BLOCK = 2**20  # elements of X converted to float64 at a time
_GRAM_PARTS = 2  # partial sums; a constant, so that the sum does not depend on the number of threads


def times_symmetric(v, M, threads=None):
    """v M for v (m, q) and a symmetric M (q, q); with threads in pieces, always the same ones."""
    if threads is None:
        return v @ M
    out, edges = np.empty(v.shape), np.linspace(0, len(M), _PIECES + 1).astype(int)

    def some(first, last):
        for i in range(first, last):
            rows = slice(*edges[i : i + 2])
            out[:, rows] = v @ M[rows].T

    threads.run(some, _PIECES)
    return out


def hold(X, y, weight):
    """The rows as the passes read them, where they read them."""
    return X.astype(np.float32) if X.dtype == np.float16 and not is_on_disk(X) else X, y, weight


def place(X, n_chains, sampler):
    """X, and nothing to say: the forecast of the host's memory is about all of it."""
    return X, ""


def to_device(values):
    """Arrays of the host, also in tuples, dicts and objects that hold them, as arrays of the device."""
    return values


def to_host(values):
    """The way back."""
    return values


class Outbox:
    """Values on their way to the host, where they are already."""

    def put(self, use, values):
        """Call use(*values)."""
        use(*values)

    def flush(self):
        """Nothing is under way."""


class Watch:
    """Whether steps that are repeated until no flag is set go on."""

    @staticmethod
    def any_left(flags, step):
        """Whether any of the flags (m,) is set before this step, the number of which begins at 0 with every m.

        Other back ends may say so one step too often.
        """
        return flags.any()


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0, shift=None):
    """X'z (and 1'z) for z_i ~ N(x_i beta, 1) truncated to the side of y_i, (n_chains, q); z'z, (n_chains,); float64.

    One pass over X. ``bounds`` are the blocks of rows whose sums are added in pairs, so the result does not depend on
    the number of threads. The random numbers of row i are those of row first_row + i. shift : ``passes.Shift`` of the
    rows, or None.
    """
    n_blocks, of_columns = len(bounds) - 1, by_column(coef)
    sums, squares = np.zeros((n_blocks, *of_columns.shape)), np.zeros((n_blocks, len(coef)))

    def some(first, last):
        for x, rows, edges, blocks in pieces(X, bounds, first, last):
            beta, place = of_columns.astype(x.dtype, copy=False), first_row + rows.start
            latent_pass(
                x, y[rows], beta, edges, place, sweep, key, sums[blocks], squares[blocks], shift_of(shift, rows)
            )

    threads.run(some, n_blocks)
    return by_chain(add_pairs(sums), len(coef)), add_pairs(squares)


def score(X, y, weight, coef, bounds, threads, shift=None):
    """Log-likelihood (n_chains,) and its gradient (n_chains, q), float64; one pass over X, blocks as in ``latent``.

    weight : (n,) float64 that multiplies the rows' terms, or (0,) for none.
    """
    n_blocks, of_columns = len(bounds) - 1, by_column(coef)
    sums, logliks = np.zeros((n_blocks, *of_columns.shape)), np.zeros((n_blocks, len(coef)))

    def some(first, last):
        for x, rows, edges, blocks in pieces(X, bounds, first, last):
            beta = of_columns.astype(x.dtype, copy=False)
            score_pass(x, y[rows], weight[rows], beta, edges, sums[blocks], logliks[blocks], shift_of(shift, rows))

    threads.run(some, n_blocks)
    return add_pairs(logliks), by_chain(add_pairs(sums), len(coef))


def line(X, y, weight, coef, direction, steps, bounds, threads, shift=None):
    """Log-likelihoods at coef + step direction (n_chains, q) for the steps (n_chains, k); (n_chains, k) float64.

    One pass over X, the rest as in ``score``.
    """
    n_blocks = len(bounds) - 1
    both, logliks = by_column(np.concatenate([coef, direction])), np.zeros((n_blocks, *steps.shape))

    def some(first, last):
        for x, rows, edges, blocks in pieces(X, bounds, first, last):
            line_pass(x, y[rows], weight[rows], both, steps, edges, logliks[blocks], shift_of(shift, rows))

    threads.run(some, n_blocks)
    return add_pairs(logliks)


def shift_of(shift, rows):
    """What the core is given of a ``Shift``, or None."""
    return None if shift is None else shift.of(rows)


def by_column(coef):
    """coef (m, q) with the chains as the last axis, padded with zeros to a multiple of four; (q, width) float64."""
    if n_more := -len(coef) % 4:
        coef = np.concatenate([coef, np.zeros((n_more, coef.shape[1]))])
    return coef.T.copy()


def by_chain(sums, m):
    """The way back, (m, q)."""
    return sums[:, :m].T.copy()


def metropolis(change, new, old, key, sweep):
    """``new`` for the chains whose change of energy a Metropolis test accepts, else ``old``, tuples of the arrays of a
    state; and the probabilities of acceptance (n_chains,). ``new`` may be overwritten."""
    accepted, chance = np.empty(len(change), bool), np.empty(len(change))
    _accept_paths(change, len(change), sweep, *key, accepted, chance)
    if not accepted.all():
        for now, was in zip(new, old, strict=True):
            now[~accepted] = was[~accepted]
    return *new, chance


def near_path(state, rows, reference, tuning, tau_0, key, same_scales):
    """What ``_path`` of ``hmc.py`` answers, in one call of the core, with the same bits; or None, where rows or columns
    are so many that threads share them, or Python's part is small; or where rows have an offset."""
    if len(reference.point) > _NEAR_COLUMNS or not _are_near(rows, len(state.beta)):
        return None
    return reference.whitening.near_path(state, _near(rows), reference, tuning, tau_0, key, same_scales)


def near_prior_path(state, rows, coordinates, angle, n_turns, key):
    """The same of ``_path`` of ``hmc_prior.py``: what ``PriorCoordinates.near_path`` answers, or None."""
    if not _are_near(rows, state.beta.size):
        return None
    return coordinates.near_path(state, _near(rows), angle, n_turns, key)


def near_exchanges(state, rows, exchanges, numbers, apart, key):
    """The same of ``_exchange`` there: what ``Exchanges.near`` answers, or None."""
    if not _are_near(rows, state.beta.size):
        return None
    return exchanges.near(state, _near(rows), *numbers, apart, key)


def near_score(rows, beta):
    """Log-likelihood and its gradient, of the sampler's coefficients; or None, as for ``near_path``."""
    if not _are_near(rows, beta.size):
        return None
    loglik, score = np.empty(len(beta)), np.empty(beta.shape)
    _near_score(_near(rows), np.ascontiguousarray(beta), len(beta), loglik, score)
    return loglik, score


def _are_near(rows, n_coefficients):
    """Whether one thread answers for rows, and for so many coefficients of all chains."""
    are_few = len(rows.bounds) == 2 and n_coefficients < SHARED
    return rows.offset is None and (are_few or rows.threads.n == 1)


def _near(rows):
    """Where the core finds rows."""
    if rows not in _records:
        X, y, weight = rows.held
        columns, (n, p) = rows.columns, X.shape
        order, place, unit, centre = columns.q_order, columns.q_place, columns.q_unit, columns.q_centre
        _records[rows] = record(
            "ScoredRows",
            **{"is_double": X.dtype == np.float64, "X": X, "n": n, "p": p, "y": y, "weight": or_none(weight)},
            **{"bounds": rows.bounds, "n_blocks": len(rows.bounds) - 1},
            **{"q": len(order), "fit_intercept": columns.fit_intercept, "translated": columns.translated},
            **{"order": order, "place": place, "unit": unit, "centre": centre},
        )
    return _records[rows]


def move_along_lines(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep):
    """beta, lambda^-2 and tau^-2 after the moves of ``lines.py``, for few rows in memory by one kernel."""
    if not rows.is_near:
        return _lines.move(beta, lambda_sq_inv, tau_sq_inv, rows, lines, tau_0, key, sweep)
    out = beta.copy(), lambda_sq_inv.copy(), tau_sq_inv.copy()
    numbers = _lines.random_numbers(beta, lines, rows.ops, key, sweep)
    given = near_lines(rows, lines, tau_0), np.ascontiguousarray(rows.columns.of_X(beta)), *numbers
    if rows.n * len(beta) < _SHARED_ROWS:
        move_near(*given, 0, len(beta), *out)
    else:
        rows.threads.run(lambda first, last: move_near(*given, first, last, *out), len(beta))
    return out


def add_pairs(sums):
    """The sum over the first axis, as a tree: a part of it that is a node has the same bits wherever it is summed."""
    while len(sums) > 1:
        even = len(sums) // 2 * 2
        sums = np.concatenate([sums[:even:2] + sums[1:even:2], sums[even:]])
    return sums[0]


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """X' diag(weight) X of the columns (x - centre) / scale, bordered by a column of ones if there is an intercept;
    (q, q) float64, summed in float64.

    weight : (n,) or (0,) for none. With beta (m, q) it is the Fisher information of the probit likelihood, averaged
    over the m points: each row has the average of phi(eta)^2 / (Phi(eta) Phi(-eta)), eta = x beta, as a further weight.
    spare : matrices (q, q) to use as scratch.
    """
    n, p = X.shape
    q = p + fit_intercept
    step = max(64, _GRAM_BLOCK // (q + (0 if beta is None else len(beta))))
    n_parts = min(_GRAM_PARTS, -(-n // step))
    edges = np.linspace(0, n, n_parts + 1).astype(int)

    def add(part, total):
        block = np.empty((min(step, n), q))
        for given in ahead(X, cut(edges[part], edges[part + 1], step), edges[part + 1]):
            rows = block[: given.stop - given.start]
            rows[:, p:] = 1.0
            np.subtract(X[given], centre, out=rows[:, :p])
            rows[:, :p] /= scale
            squared = weight[given] if len(weight) else 1.0
            if beta is not None:
                squared = squared * information_weights(rows, beta, 0.0)
            if np.ndim(squared):
                rows *= np.sqrt(squared)[:, None]
            add_products(rows, *rows.shape, total, True)

    return sum_of_parts(add, q, n_parts, spare, threads)


def sum_of_parts(add, q, n_parts, spare, threads):
    """The symmetric matrix (q, q) to whose lower triangle add(part, total) adds; parts are summed in order.

    spare : matrices (q, q) to use as scratch.
    """
    parts = [np.zeros((q, q)), *spare][:n_parts]
    parts += [np.empty((q, q)) for _ in range(n_parts - len(parts))]
    for part in parts[1:]:
        part[...] = 0.0

    def some(first, last):
        for part in range(first, last):
            add(part, parts[part])

    threads.run(some, n_parts)
    total = parts[0]
    for part in parts[1:]:
        total += part
    for j in range(q):
        total[j, j + 1 :] = total[j + 1 :, j]
    return total


def moments(X, weight):
    """Mean and variance of the columns, weighted; (p,) float64 each, without cancellation. weight : (n,) or (0,)."""
    blocks = ahead(X, cut(0, len(X), max(64, _GRAM_BLOCK // X.shape[1])), len(X))
    return combine_moments(
        (X[rows].astype(np.float64), weight[rows] if len(weight) else np.ones(len(X[rows]))) for rows in blocks
    )
