"""A forecast of what a fit needs, made before it starts."""

from .._backends.limits import is_without_factor
from .._data.row_blocks import layout
from .._utils import memory
from .._utils.memory import _addresses_left, in_words


def forecast(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False):
    """Bytes that a fit allocates beside X: its draws, with ``item`` bytes a coefficient, and its working set.

    no_matrix : whether data augmentation has passes over X in place of X'X.
    """
    q = p + 1
    draws = n_chains * n_draws * (item * q + 16)
    if sampler == "collapsed":
        vectors = 20 * n_chains * q  # scales, variances, noise and products
        blocks = n_threads * (max(2**17, 64 * n) + n * min(n, p))
        return draws, 8 * (2 * n_chains * n * n + vectors + blocks) + 40 * 2**20
    factors = 4 + n_threads + n_chains if sampler == "hmc" else 7 if is_without_factor(p) else 3 + n_threads
    segments = len(layout(n, p)[1]) - 1
    if segments > 1:  # of each, a thread has its matrix, and those that it has still to add
        factors += 6 * min(n_threads, segments)
    matrices = 8 * q * q * factors
    if no_matrix and sampler != "hmc":
        matrices = 8 * q * n_chains * 40
    sums = 8 * n_chains * min(2**20, 64 * q)
    labels = 4 * n  # as codes, and what they are found by
    return draws, matrices + sums + 40 * 2**20 + labels


def check_memory(n, p, n_chains, n_draws, n_threads, sampler, item=8, no_matrix=False, copied=0):
    """The forecast in words; raises MemoryError if it cannot fit. copied : bytes of X that are held twice already."""
    draws, working_set = forecast(n, p, n_chains, n_draws, n_threads, sampler, item, no_matrix)
    words = f"{in_words(draws)} for draws ({n_chains} chains x {n_draws} draws x {p} features) and "
    words += f"{in_words(working_set)} of working set"
    if copied >= 2**20:
        words += f", and has {in_words(copied)} for a copy of X (CSR, and C-contiguous float32 or float64, need none),"
    known = [] if (free := memory.available()) is None else [free]
    free = min(known + _addresses_left(n_threads), default=None)
    if free is not None and draws + working_set > free:
        if draws > working_set:
            cure = "Keep fewer draws: set max_draws, raise thin, or lower n_chains."
        elif no_matrix and sampler == "hmc":
            cure = f"sampler='pxda' needs none of the {p} x {p} matrices that take the room."
        elif no_matrix:
            cure = "Select columns first, or lower n_chains."
        else:
            size, fewer = (n, "rows") if sampler == "collapsed" else (p, "columns")
            cure = f"The {size} x {size} matrices are what takes the room: select {fewer} first, or lower n_jobs."
            if 8 * size * size < 2**20:
                cure = "Even a small fit needs about this much: give the process more memory."
        raise MemoryError(f"This fit needs {words} beside X, but only {in_words(max(0, free))} are available. {cure}")
    return words
