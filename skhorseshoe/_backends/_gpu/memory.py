"""What a fit takes of a GPU's memory: said before it starts, given back when it ends."""

import cupy as cp

from ..._utils.memmap import is_on_disk
from ..._utils.memory import in_words
from .. import lines
from .cuda import MAX_CHAINS, MOST_BLOCKS, compiled_chains
from .host_streaming import HostRows, room_for_parts

BESIDE = 2**32  # bytes of factors, one for each chain, up to which they are computed beside a pass
WIDENED = 2**25  # elements of X converted to float64 at a time
_VECTORS = 60  # numbers for each coefficient and chain that a sweep has at a time
_OF_A_SPLIT = 6 * (1 + lines.LINE_PROPOSALS)  # and beside these of a split move
_LEAST = 512  # bytes of an array
ANSWERED = 1024  # rows whose linear predictors are computed together
_CURE = "Use device='cpu', give X as float32 or float16, lower n_chains, or select columns first."


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


def place(X, n_chains, sampler):
    """X, as ``HostRows`` if it is to stay on the host, and the forecast in words; a MemoryError if the fit cannot have
    its room on the current GPU."""
    has = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    needed = working_set(*X.shape, int(n_chains), sampler, has["multiProcessorCount"])
    of_X = 0 if isinstance(X, cp.ndarray) else X.nbytes
    smaller = needed + room_for_parts(of_X, has["multiProcessorCount"])
    (free, total), on_disk = _free_and_total(), is_on_disk(X)
    if of_X and needed + of_X > free and smaller < min(free, needed + of_X):
        return X.view(HostRows), (
            f"X, {in_words(of_X)}, does not fit into the {in_words(free)} that are free on the GPU and is read from "
            f"{'its file' if on_disk else 'the host'} in every sweep; {in_words(smaller)} for parts of X and the "
            "working set on the GPU"
        )
    words = f"{in_words(of_X)} for X and {in_words(needed)} of working set on the GPU"
    if needed + of_X > free:
        raise MemoryError(
            f"This fit needs {words}, {needed + of_X:,} bytes, but only {free:,} of its {total:,} bytes are free. "
            f"{_CURE}"
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
    return MemoryError(f"The GPU is out of memory: {error}. {free:,} of its {total:,} bytes are free. {_CURE}")
