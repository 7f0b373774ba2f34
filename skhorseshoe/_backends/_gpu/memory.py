"""The forecast of the GPU memory of a fit, and errors of memory."""

import cupy as cp

from ..._utils.memmap import is_on_disk
from ..._utils.memory import size_text
from .. import line_moves
from .cuda import MOST_BLOCKS, PASS_CHAINS, compiled_chains
from .host_streaming import HostRows, buffer_bytes

_FACTOR_BYTES = 2**32  # largest size in bytes of the Cholesky factors of all chains that are computed at a time
WIDENED_NUMBERS = 2**25  # number of elements of X converted to float64 at a time
_VECTORS = 60  # numbers that a sweep needs at a time for each coefficient and chain
_SPLIT_VECTORS = 6 * (1 + line_moves.LINE_PROPOSALS)  # further ones of a split move
_LEAST_ARRAY_BYTES = 512  # least size of an array, in bytes
PREDICTED_ROWS = 1024  # number of rows whose linear predictors are computed at a time
_CURE = "Use device='cpu', give X as float32 or float16, lower n_chains, or select columns first."


def working_set(n, p, n_chains, kind, multiprocessors):
    """An upper bound of the bytes on the GPU without X, mostly of matrices (q, q). kind : of the chains, or None for
    chains on the host, for which the GPU computes the score alone."""
    q = p + 1
    square = 0 if kind is None else 8 * q * q
    factors = factors_at_a_time(n_chains, q) + 2 * n_chains * (kind == "hmc")
    blocks = 3 * max(q, min(n * q, max(WIDENED_NUMBERS, 64 * n)))  # X in float64, and arrays computed from it
    blocks = 8 * max(blocks, 2 * min(PREDICTED_ROWS * q, WIDENED_NUMBERS))
    chains = compiled_chains(min(n_chains, PASS_CHAINS)) * -(-n_chains // PASS_CHAINS)  # in all launches of a pass
    sums = 8 * MOST_BLOCKS * multiprocessors * (q + 1) * chains
    line_sums = 8 * MOST_BLOCKS * multiprocessors * n_chains * (1 + line_moves.LINE_PROPOSALS)
    vectors = (_VECTORS + _SPLIT_VECTORS * (kind == "hmc")) * max(8 * n_chains * q, _LEAST_ARRAY_BYTES)
    return square * (factors + 9) + blocks + sums + line_sums + vectors + 17 * n + 2**20


def factors_at_a_time(n_chains, q):
    """Number of chains whose Cholesky factors ``Precision`` computes at a time: all, or one if these are large."""
    return n_chains if 8 * n_chains * q * q <= _FACTOR_BYTES else 1


def place(X, n_chains, kind):
    """X, as ``HostRows`` if it must stay on the host, and the forecast in words; a MemoryError if the fit does not fit
    into the memory of the current GPU."""
    has = cp.cuda.runtime.getDeviceProperties(cp.cuda.runtime.getDevice())
    (n, p), count = X.shape, has["multiProcessorCount"]
    needed = working_set(n, p, int(n_chains), kind, count)
    X_bytes = 0 if isinstance(X, cp.ndarray) else X.nbytes
    smaller = needed + buffer_bytes(X_bytes, count)
    (free, total), on_disk = _free_and_total(), is_on_disk(X)
    if X_bytes and needed + X_bytes > free and smaller < min(free, needed + X_bytes):
        return X.view(HostRows), (
            f"X, {size_text(X_bytes)}, does not fit into the {size_text(free)} that are free on the GPU and is read "
            f"from {'its file' if on_disk else 'the host'} in every sweep; {size_text(smaller)} for parts of X and the "
            "working set on the GPU"
        )
    words = f"{size_text(X_bytes)} for X and {size_text(needed)} of working set on the GPU"
    if needed + X_bytes > free:
        raise MemoryError(
            f"This fit needs {words}, {needed + X_bytes:,} bytes, but only {free:,} of its {total:,} bytes are free. "
            f"{_CURE}"
        )
    return X, f"{words}; X is read from its file once and stays there" if on_disk else words


def _free_and_total():
    """Free and total bytes of the current GPU; memory that CuPy keeps for its next arrays is free."""
    free, total = cp.cuda.runtime.memGetInfo()
    return free + cp.get_default_memory_pool().free_bytes(), total


def is_of_memory(error):
    """Whether an error of CuPy, or of a library that it calls, says that the GPU is out of memory."""
    words = "ALLOC_FAILED", "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "std::bad_alloc"
    known = isinstance(error, cp.cuda.memory.OutOfMemoryError)
    return known or (isinstance(error, (MemoryError, RuntimeError)) and any(word in str(error) for word in words))


def explained(error):
    """A MemoryError with the request and the free memory."""
    cp.get_default_memory_pool().free_all_blocks()
    free, total = _free_and_total()
    return MemoryError(f"The GPU is out of memory: {error}. {free:,} of its {total:,} bytes are free. {_CURE}")
