"""What a fit takes of a GPU's memory: said before it starts, given back when it ends."""

import cupy as cp

from ..._utils.memmap import is_on_disk
from ..._utils.memory import check_copy, in_words
from .. import lines
from ..limits import is_without_matrix
from .csr import Csr, blocks_of, most_pieces
from .csr_chunks import HostCsr, room_for_sparse_parts
from .cuda import MAX_CHAINS, MOST_BLOCKS, compiled_chains
from .host_streaming import HostRows, room_for_parts

BESIDE = 2**32  # bytes of factors, one for each chain, up to which they are computed beside a pass
WIDENED = 2**25  # elements of X converted to float64 at a time
_VECTORS = 60  # numbers for each coefficient and chain that a sweep has at a time
_OF_A_SPLIT = 6 * (1 + lines.LINE_PROPOSALS)  # and beside these of a split move
_LEAST = 512  # bytes of an array
ANSWERED = 1024  # rows whose linear predictors are computed together
_SORTED = 40  # bytes for each stored number while the columns are sorted, beside their numbers
_CURE = "Use device='cpu', give X as {}, lower n_chains, or select columns first."
_NARROW, _NARROW_SPARSE = "float32 or float16", "float32"


def working_set(n, p, n_chains, sampler, multiprocessors):
    """Bytes on the GPU beside X; an upper bound. Most are matrices q x q. sampler : the kind of the chains; those of
    "prior" only ask for the score there."""
    q = p + 1
    square = 0 if sampler == "prior" else 8 * q * q
    factors = n_chains if n_chains * square <= BESIDE else 1
    factors = 2 * n_chains if sampler == "hmc" else factors
    blocks = 3 * max(q, min(n * q, max(WIDENED, 64 * n)))  # of X in float64, and what is made of them
    blocks = 8 * max(blocks, 2 * min(ANSWERED * q, WIDENED))
    chains = compiled_chains(min(n_chains, MAX_CHAINS)) * -(-n_chains // MAX_CHAINS)  # of all launches of a pass
    sums = 8 * MOST_BLOCKS * multiprocessors * (q + 1) * chains
    of_a_move = 8 * MOST_BLOCKS * multiprocessors * n_chains * (1 + lines.LINE_PROPOSALS)
    vectors = (_VECTORS + _OF_A_SPLIT * (sampler == "hmc")) * max(8 * n_chains * q, _LEAST)
    return square * (factors + 9) + blocks + sums + of_a_move + vectors + 17 * n + 2**20


def sparse_working_set(X, n_chains, sampler, part=None):
    """The same of sparse rows, beside the arrays of X.

    part : the stored numbers and the rows of the largest part that is brought from the host, with its columns; None for
    an X that is on the GPU.
    """
    n, p = X.shape
    iterative = is_without_matrix(X) and sampler not in ("hmc", "prior")
    together = 2 * n_chains if iterative else n_chains  # "pxda" solves for two vectors of each chain
    chains = compiled_chains(min(together, MAX_CHAINS)) * (1 if together <= MAX_CHAINS else 2)
    by_column = 0 if part else X.data.nbytes + X.indices.nbytes + _SORTED * X.data.size
    size, n_rows = part or (X.data.size, n)
    of_a_pass = 8 * chains * (n_rows + most_pieces(size, p) + 2 * blocks_of(n_rows))
    of_a_move = 8 * n_chains * (1 + lines.LINE_PROPOSALS) * blocks_of(n_rows)
    values = 25 * n + 3 * 8 * min(WIDENED, n * n_chains)
    rest = 8 * together * (p + 1) * 40 if iterative else working_set(0, p, n_chains, sampler, 0)
    return by_column + values + of_a_pass + of_a_move + rest


def place(X, n_chains, sampler):
    """X, as ``HostRows`` if it is to stay on the host, and the forecast in words; a MemoryError if the fit cannot have
    its room on the current GPU."""
    has = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    needed = working_set(*X.shape, int(n_chains), sampler, has["multiProcessorCount"])
    of_X = 0 if isinstance(X, cp.ndarray) else X.nbytes

    def with_parts():
        return needed + room_for_parts(of_X, has["multiProcessorCount"])

    return _place_where_room(X, of_X, needed, with_parts, lambda: X.view(HostRows), _NARROW)


def place_sparse(X, n_chains, sampler):
    """As ``place``, of a ``HostCsr``."""
    needed = sparse_working_set(X, int(n_chains), sampler)
    of_X = 0 if isinstance(X, Csr) else X.data.nbytes + X.indices.nbytes + X.indptr.nbytes

    def with_parts():
        room, *part = room_for_sparse_parts(X)
        return room + sparse_working_set(X, int(n_chains), sampler, part)

    def on_host():
        check_copy(of_X, "Sparse rows that the GPU has no room for need their columns on the host too: that")
        return HostCsr((X.data, X.indices, X.indptr), shape=X.shape)

    return _place_where_room(X, of_X, needed, with_parts, on_host, _NARROW_SPARSE)


def _place_where_room(X, of_X, needed, with_parts, on_host, types):
    """As ``place``. of_X : bytes of X that are on the host. with_parts : a function for the bytes on the GPU if X stays
    on the host, on_host : one for this X. types : those that it could have."""
    (free, total), on_disk = _free_and_total(), is_on_disk(X)
    if of_X and needed + of_X > free and (smaller := with_parts()) < min(free, needed + of_X):
        return on_host(), (
            f"X, {in_words(of_X)}, does not fit into the {in_words(free)} that are free on the GPU and is read from "
            f"{'its file' if on_disk else 'the host'} in every sweep; {in_words(smaller)} for parts of X and the "
            "working set on the GPU"
        )
    words = f"{in_words(of_X)} for X and {in_words(needed)} of working set on the GPU"
    if needed + of_X > free:
        raise MemoryError(
            f"This fit needs {words}, {needed + of_X:,} bytes, but only {free:,} of its {total:,} bytes are free. "
            f"{_CURE.format(types)}"
        )
    return X, f"{words}; X is read from its file once and stays there" if on_disk else words


def _free_and_total():
    """Bytes of the current GPU; free are also those that CuPy keeps for its next arrays."""
    free, total = cp.cuda.runtime.memGetInfo()
    return free + cp.get_default_memory_pool().free_bytes(), total


def is_of_memory(error):
    """Whether the GPU has no more memory: CuPy says so, or a library that it calls, each in its own way."""
    words = "ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "std::bad_alloc"
    known = isinstance(error, cp.cuda.memory.OutOfMemoryError)
    return known or (isinstance(error, (MemoryError, RuntimeError)) and any(word in str(error) for word in words))


def explained(error):
    """The MemoryError that says what was asked for and what is free."""
    cp.get_default_memory_pool().free_all_blocks()
    free, total = _free_and_total()
    cure = _CURE.format(_NARROW)
    return MemoryError(f"The GPU is out of memory: {error}. {free:,} of its {total:,} bytes are free. {cure}")
