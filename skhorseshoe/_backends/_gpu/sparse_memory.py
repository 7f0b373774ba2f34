"""What a fit of sparse rows takes of a GPU's memory."""

from ..._utils.memory import check_copy
from .. import lines
from ..limits import is_without_matrix
from .csr import Csr, blocks_of, most_pieces
from .csr_chunks import HostCsr, room_for_parts
from .cuda import MAX_CHAINS, THREADS, compiled_chains
from .cuda_graph import SPARSE_ROWS
from .memory import WIDENED, moves_kept, passes_kept, place_where_room
from .memory import working_set as of_coefficients

_SORTED = 40  # bytes for each stored number while the columns are sorted, beside their numbers
_CURE = "Use device='cpu', give X as float32, lower n_chains, or select columns first."


def working_set(X, n_chains, sampler, part=None):
    """Bytes on the GPU beside the arrays of X; an upper bound.

    part : the stored numbers and the rows of the largest part that is brought from the host, with its columns; None for
    an X that is on the GPU.
    """
    n, p = X.shape
    iterative = is_without_matrix(X) and sampler != "hmc"
    together = 2 * n_chains if iterative else n_chains  # "pxda" solves for two vectors of each chain
    chains = compiled_chains(min(together, MAX_CHAINS)) * (1 if together <= MAX_CHAINS else 2)
    by_column = 0 if part else X.data.nbytes + X.indices.nbytes + _SORTED * X.data.size
    size, n_rows = part or (X.data.size, n)
    recorded = not part and n <= SPARSE_ROWS and p < THREADS
    passes, moves = (passes_kept(sampler), moves_kept(sampler)) if recorded else (1, 0)  # where a sweep may be recorded
    of_a_pass = 8 * chains * (n_rows + most_pieces(size, p) + 2 * blocks_of(n_rows))
    of_a_move = 8 * n_chains * (1 + lines.PROPOSALS) * blocks_of(n_rows)
    values = 25 * n + 3 * 8 * min(WIDENED, n * n_chains)
    rest = 8 * together * (p + 1) * 40 if iterative else of_coefficients(0, p, n_chains, sampler, 0)
    return by_column + values + passes * of_a_pass + (1 + moves) * of_a_move + rest


def place(X, n_chains, sampler):
    """X, as ``HostCsr`` if it is to stay on the host, and the forecast in words; a MemoryError if the fit cannot have
    its room on the current GPU."""
    needed = working_set(X, int(n_chains), sampler)
    of_X = 0 if isinstance(X, Csr) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

    def with_parts():
        room, *part = room_for_parts(X)
        return room + working_set(X, int(n_chains), sampler, part)

    def on_host():
        check_copy(of_X, "Sparse rows that the GPU has no room for need their columns on the host too: that")
        return HostCsr((X.data, X.indices, X.indptr), shape=X.shape)

    return place_where_room(X, of_X, needed, with_parts, on_host, _CURE)
