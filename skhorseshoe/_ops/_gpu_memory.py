"""What a fit takes of a GPU's memory: said before it starts, given back when it ends."""

import cupy as cp
import numpy as np

from .._stage import MAX_STEPS
from . import in_words
from ._gpu_stream import HostRows, room_for_parts
from ._reading import is_on_disk
from .cuda import MAX_CHAINS, MOST_BLOCKS, THREADS

BESIDE = 2**32  # bytes of factors, one for each chain, up to which they are computed beside a pass
WIDENED = 2**25  # elements of X converted to float64 at a time
ANSWERED = 1024  # rows whose linear predictors are computed together
_CURE = "Use device='cpu', give X as float32 or float16, lower n_chains, or select columns first."


def working_set(n, p, n_chains, sampler, multiprocessors):
    """Bytes on the GPU beside X; an upper bound. Most are matrices: q x q, for "collapsed" n x n."""
    q = p + 1
    square = 8 * (n * n if sampler == "collapsed" else q * q)
    factors = n_chains if n_chains * square <= BESIDE else 1
    factors = {"hmc": 2 * n_chains, "collapsed": 3 * n_chains}.get(sampler, factors)
    blocks = 3 * max(q, min(n * q, max(WIDENED, 64 * n)))  # of X in float64, and what is made of them
    blocks = 8 * max(blocks, 2 * min(ANSWERED * q, WIDENED))
    launches = -(-n_chains // MAX_CHAINS)  # of a pass, all of whose sums are there at a time
    sums = 8 * MOST_BLOCKS * multiprocessors * (q + 1) * MAX_CHAINS * launches
    vectors = 8 * n_chains * q * 60
    if q <= THREADS:  # a recorded sweep keeps all that it has in between
        sums *= passes_kept(sampler)
        vectors *= 10 if sampler == "hmc" else 1
    return square * (factors + 9) + blocks + sums + vectors + 17 * n + 2**20


def passes_kept(sampler):
    """Passes whose sums are there at a time, at most, where sweeps are recorded: those of two such sweeps of HMC, with
    all turns that there may be, or of one of the others, and of one that is not recorded."""
    return 2 * MAX_STEPS + 1 if sampler == "hmc" else 2


def place(X, n_chains, sampler):
    """X, as ``HostRows`` if it is to stay on the host, and the forecast in words; a MemoryError if the fit cannot have
    its room on the current GPU."""
    n, p = X.shape
    has = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    needed = working_set(n, p, int(n_chains), sampler, has["multiProcessorCount"])
    of_X = 0 if isinstance(X, cp.ndarray) else X.nbytes
    free, _ = free_and_total()
    words = f"{in_words(of_X)} for X and {in_words(needed)} of working set on the GPU"
    on_disk = is_on_disk(X)
    if needed + of_X > free and isinstance(X, np.ndarray):
        by_columns = sampler == "collapsed"
        parts = room_for_columns(X) if by_columns else room_for_parts(of_X, has["multiProcessorCount"])
        if needed + parts < min(free, needed + of_X):
            what = f"{in_words(needed + parts)} for parts of X and the working set"
            return X.view(HostRows), (
                f"X, {in_words(of_X)}, does not fit into the {in_words(free)} that are free on the GPU and is read "
                f"from {'its file' if on_disk else 'the host'} in every sweep; {what} on the GPU"
            )
    check_room(words, needed + of_X, _CURE)
    return X, f"{words}; X is read from its file once and stays there" if on_disk else words


def room_for_columns(X):
    """Bytes of the two buffers for blocks of columns of X."""
    return 2 * min(X.nbytes, X.itemsize * max(64 * len(X), WIDENED))


def check_room(words, needed, cure):
    """Raise a MemoryError if the current GPU does not have so many bytes. words : what they are for."""
    free, total = free_and_total()
    if needed > free:
        raise MemoryError(
            f"This fit needs {words}, {needed:,} bytes, but only {free:,} of its {total:,} bytes are free. {cure}"
        )


def free_and_total():
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
    free, total = free_and_total()
    return MemoryError(f"The GPU is out of memory: {error}. {free:,} of its {total:,} bytes are free. {_CURE}")
