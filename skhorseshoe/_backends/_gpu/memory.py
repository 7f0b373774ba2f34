"""What a fit takes of a GPU's memory: said before it starts, given back when it ends."""

import cupy as cp

from ..._utils.memmap import is_on_disk
from ..._utils.memory import check_copy, in_words
from .. import lines
from ..limits import MAX_STEPS, is_without_matrix
from .csr import Csr, blocks_of, most_pieces
from .csr_chunks import HostCsr, room_for_sparse_parts
from .cuda import MAX_CHAINS, MOST_BLOCKS, THREADS, compiled_chains
from .host_streaming import HostRows, room_for_parts

BESIDE = 2**32  # bytes of factors, one for each chain, up to which they are computed beside a pass
WIDENED = 2**25  # elements of X converted to float64 at a time
_VECTORS = 60  # numbers for each coefficient and chain that a sweep has at a time
_OF_A_TURN, _OF_A_MOVE = 36, 56  # those that a recorded one keeps of each turn, and of each move along a line
_OF_A_SPLIT = 6 * (1 + lines.LINE_PROPOSALS)  # and beside these of a split move
_MOST_TURNS = MAX_STEPS + 1  # of a sweep: those of a path, and one of no angle for scales that move apart
_LEAST = 512  # bytes of an array
ANSWERED = 1024  # rows whose linear predictors are computed together
SPARSE_ROWS = 2**17  # of a sweep that is recorded: a pass leaves a number of each for each chain, which is kept
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
    of_a_move, vectors = 8 * MOST_BLOCKS * multiprocessors * n_chains * (1 + lines.LINE_PROPOSALS), _VECTORS
    if q <= THREADS:  # a recorded sweep keeps all that it has in between
        turns, moves = 2 * _MOST_TURNS * (sampler == "hmc"), moves_kept(sampler)
        sums = sums * passes_kept(sampler) + of_a_move * moves
        splits = 2 * lines.SPLITS * (sampler == "hmc")  # of sweeps of two kinds, in burn-in
        vectors += _OF_A_TURN * turns + _OF_A_MOVE * moves + _OF_A_SPLIT * splits
    vectors *= max(8 * n_chains * q, _LEAST)
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
    recorded = not part and n <= SPARSE_ROWS and p < THREADS
    passes, moves = (passes_kept(sampler), moves_kept(sampler)) if recorded else (1, 0)  # where a sweep may be recorded
    of_a_pass = 8 * chains * (n_rows + most_pieces(size, p) + 2 * blocks_of(n_rows))
    of_a_move = 8 * n_chains * (1 + lines.LINE_PROPOSALS) * blocks_of(n_rows)
    values = 25 * n + 3 * 8 * min(WIDENED, n * n_chains)
    rest = 8 * together * (p + 1) * 40 if iterative else working_set(0, p, n_chains, sampler, 0)
    return by_column + values + passes * of_a_pass + (1 + moves) * of_a_move + rest


def passes_kept(sampler):
    """Passes whose sums are there at a time, at most, where sweeps are recorded: those of such sweeps of three kinds,
    with all turns that there may be, and of one that is not recorded.

    In burn-in of HMC tau moves in every second sweep. Of many rows one sweep in some has moves along lines: which is
    always with tau or always without. With few rows all sweeps have them, and one pass more.
    """
    return 3 * _MOST_TURNS + 2 if sampler == "hmc" else 3


def moves_kept(sampler):
    """The same of moves along lines: in burn-in of HMC those of two kinds of sweeps, after it those of one, which may
    have more of them; and those of one kind for "pxda"."""
    in_burn_in, at_most = (1 + n for n in lines.SINGLES)
    of_hmc = max(2 * (in_burn_in + lines.SPLITS), at_most + lines.SPLITS)
    return {"hmc": of_hmc, "pxda": in_burn_in}.get(sampler, 0)


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
