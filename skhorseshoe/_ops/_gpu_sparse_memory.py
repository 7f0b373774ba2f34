"""What a fit of sparse rows takes of a GPU's memory."""

from .._iterative import is_without_matrix
from . import in_words
from ._gpu_csr import BLOCKS, Csr, most_pieces
from ._gpu_memory import WIDENED, check_room, passes_kept
from ._gpu_memory import working_set as of_coefficients
from ._gpu_recorded import SPARSE_ROWS
from .cuda import MAX_CHAINS, THREADS, compiled_chains

_SORTED = 40  # bytes for each stored number while the columns are sorted, beside their numbers
_CURE = "Use device='cpu', give X as float32, lower n_chains, or select columns first."


def working_set(X, n_chains, sampler):
    """Bytes on the GPU beside the arrays of X; an upper bound."""
    n, p = X.shape
    iterative = is_without_matrix(X) and sampler != "hmc"
    together = 2 * n_chains if iterative else n_chains  # "pxda" solves for two vectors of each chain
    chains = compiled_chains(min(together, MAX_CHAINS)) * (1 if together <= MAX_CHAINS else 2)
    by_column = X.data.nbytes + X.indices.nbytes + _SORTED * X.data.size
    passes = passes_kept(sampler) if n <= SPARSE_ROWS and p < THREADS else 1  # where a sweep may be recorded
    of_a_pass = 8 * chains * (n + most_pieces(X.data.size, p) + 2 * BLOCKS)
    values = 25 * n + 3 * 8 * min(WIDENED, n * n_chains)
    rest = 8 * together * (p + 1) * 40 if iterative else of_coefficients(0, p, n_chains, sampler, 0)
    return by_column + values + passes * of_a_pass + rest


def place(X, n_chains, sampler):
    """X, and the forecast in words; a MemoryError if the fit cannot have its room on the current GPU."""
    needed = working_set(X, int(n_chains), sampler)
    of_X = 0 if isinstance(X, Csr) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    words = f"{in_words(of_X)} for X and {in_words(needed)} of working set on the GPU"
    check_room(words, needed + of_X, _CURE)
    return X, words
