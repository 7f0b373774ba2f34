"""Bytes that a fit needs beside X, forecast from its plan: as many threads as there is room for, or a refusal."""

import numpy as np
from scipy.sparse import issparse

from .._backends.limits import factors_rows, is_without_matrix, needs_conjugate_gradients
from .._data.row_blocks import block_bounds
from .._mcmc.group_draws import forecast_of_groups
from .._mcmc.run import DIAGONAL, PRIOR_COORDINATES
from .._utils import memory
from .._utils.memory import addresses_left, size_text
from .watched import MOST_ROWS


def forecast(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False, stored=0):
    """Bytes that a fit allocates in addition to X: its draws, with ``item`` bytes a coefficient, and its working set.

    no_matrix : whether passes over X replace X'X of data augmentation, or the matrix over the rows that the coordinates
    of the prior need. stored : numbers of a sparse X, and 0 of an array.
    """
    q = p + 1
    draws = n_chains * n_draws * (item * q + 16)
    if p > n:  # draws of the watched quantities in float32, twice while they grow; the watched rows and their centre
        watched = min(n, MOST_ROWS)
        draws += n_chains * n_draws * 8 * watched + (4 * watched + 16) * q
    if sampler == PRIOR_COORDINATES:
        matrices = 0 if no_matrix else 4 * min(n_threads, n_chains) * n * n  # n x n, for the shrinkage factors
        vectors = (40 * n_chains + 40) * q
        blocks = 4 * min(n_threads, n_chains) * max(min(2**20, 3 * n * p), n)
        return draws, 8 * (matrices + vectors + blocks) + _bytes_of_blas(n, 16 * 2**20)
    if sampler == DIAGONAL:
        of_rows = 3 * n * (n_chains + n_threads)  # linear predictors
        of_rows += 2 * stored or 8 * n * min(n_threads, n_chains)  # all by column, with their rows; or eight columns
        return draws, 8 * (of_rows + 60 * n_chains * q + n_chains * min(2**20, 64 * q)) + _bytes_of_blas(1, 0)
    factors = 4 + n_threads + n_chains if sampler == "hmc" else 7 if needs_conjugate_gradients(p) else 3 + n_threads
    segments = len(block_bounds((n, p))[1]) - 1
    if segments > 1:  # a thread has the matrix of its segment, and those that it has yet to add
        factors += 6 * min(n_threads, segments)
    matrices = 8 * q * q * factors
    if no_matrix and sampler != "hmc":
        matrices = 8 * q * n_chains * 40
    sums = 8 * n_chains * min(2**20, 64 * q)
    labels = 4 * n  # codes, and working space to encode them
    return draws, matrices + sums + _bytes_of_blas(q, 32 * 2**20) + labels


def _bytes_of_blas(size, most):
    """Bytes that code takes, and the buffers of BLAS, which grow with the size of matrices."""
    return 24 * 2**20 + min(most, 256 * size**2)


def fit_to_memory(plan, groups, has_checkpoint):
    """The plan with as many of its threads as there is room for, and the forecast in words; a MemoryError if there is
    none for one. groups : ``Factors``, or None."""
    free = memory.available()
    for n_threads in range(plan.n_threads, 0, -1):
        draws, working_set = _forecast_of(plan, n_threads, groups)
        left = min([free, *addresses_left(n_threads)])
        kept = (1 + has_checkpoint) * draws
        if kept + working_set <= left:
            break
    words = _words_of(plan, draws, working_set, has_checkpoint)
    if kept + working_set > left:
        cure = _cure_of(plan, kept > working_set)
        raise MemoryError(f"This fit needs {words} beside X, but only {size_text(max(0, left))} are available. {cure}")
    if n_threads < plan.n_threads:
        words += f", on {n_threads} of {plan.n_threads} threads, since there is no room for more"
    return plan._replace(n_threads=n_threads), words


def _forecast_of(plan, n_threads, groups):
    settings, (n, p) = plan.settings, plan.shape
    n_chains, n_draws, sampler = settings.n_chains, _most_draws(settings), settings.kind
    item = np.dtype(settings.draws_dtype).itemsize
    n_numbers = plan.rows[0].nnz if plan.rows is not None and issparse(plan.rows[0]) else 0
    p = plan.n_contrasts * (p + 1) - 1 + plan.n_own
    draws, working_set = forecast(n, p, n_chains, n_draws, n_threads, sampler, item, _has_no_matrix(plan), n_numbers)
    if plan.n_contrasts > 1:  # draws are kept by class, one more than the contrasts
        draws = draws * (plan.n_contrasts + 1) / plan.n_contrasts
    if plan.stored is not None:  # at the end they are copied to where the other columns have a place
        draws *= 1 + len(plan.stored) / plan.shape[1]
    if groups is None:
        return draws, working_set
    more = forecast_of_groups(n, p, n_chains, n_draws, groups.n_effects, sampler, groups.n_by_row)
    return draws + more[0], working_set + more[1]


def _most_draws(settings):
    return min(settings.n_iter // settings.thin, settings.max_draws or settings.room or settings.n_iter)


def _has_no_matrix(plan):
    """Whether the sampler does without a matrix over the columns, or in the coordinates of the prior over the rows."""
    X, _, _, codes, *_ = plan.rows or (None, None, None, None)
    if plan.settings.kind == PRIOR_COORDINATES:
        return not factors_rows(X.shape[0], issparse(X), plan.n_contrasts, codes)
    return is_without_matrix(X)


def _words_of(plan, draws, working_set, has_checkpoint):
    settings = plan.settings
    words = f"{size_text(draws)} for draws ({settings.n_chains} chains x {_most_draws(settings)} draws x "
    words += f"{plan.n_contrasts + 1} classes x " if plan.n_contrasts > 1 else ""
    words += f"{plan.shape[1]} features) and {size_text(working_set)} of working space"
    if has_checkpoint:
        words += f", and {size_text(draws)} to write or read the draws of the checkpoint"
    if plan.copied >= 2**20:
        copied = size_text(plan.copied)
        words += f", and has made a copy of X of {copied} (avoid it with a C-ordered float array, or CSR),"
    return words


def _cure_of(plan, draws_are_more):
    """What to do where there is no room. draws_are_more : whether draws take more than the working set."""
    n, p = plan.shape
    if draws_are_more:
        return "Keep fewer draws: set max_draws, raise thin, or lower n_chains."
    if _has_no_matrix(plan):
        if plan.settings.kind == "hmc":
            return f"sampler='pxda' needs none of the {p} x {p} matrices that take the room."
        return "Select columns first, or lower n_chains."
    size, fewer = (n, "rows") if plan.settings.kind == PRIOR_COORDINATES else (p, "columns")
    if 8 * size * size < 2**20:
        return "Even a small fit needs about this much: give the process more memory."
    return f"The {size} x {size} matrices are what takes the room: select {fewer} first."
