"""Compiling and launching the CUDA kernels through CuPy."""

import functools

import cupy as cp
import numpy as np

from .cuda import OPTIONS, THREADS, source

i32, i64 = np.int32, np.int64  # of a kernel's integers: CuPy passes those of Python as 64 bits

_RESERVED = 1024  # bytes of shared memory that the system keeps of each block
_CACHED = 0.7  # of the cache of all multiprocessors: what a pass may count on


def kernel(module, name, definitions=()):
    """The kernel of this name; compiled once for each device, and kept on disk by CuPy."""
    return _kernel(cp.cuda.runtime.getDevice(), module, name, definitions)


@functools.cache
def _kernel(device, module, name, definitions):
    function = _module(device, module, definitions).get_function(name)
    # Once for all launches: of two fits in two threads, one could take away what the other has just asked for.
    function.max_dynamic_shared_size_bytes = properties(device)["sharedMemPerBlockOptin"] - function.shared_size_bytes
    return function


@functools.cache
def _module(device, name, definitions):
    return cp.RawModule(code=source(name), options=(*OPTIONS, *definitions))


def launch(function, grid, *arguments, shared_bytes=0):
    """Start a kernel in blocks of the one size that is used; grid : blocks, one number or several."""
    grid = grid if isinstance(grid, tuple) else (grid,)
    function(grid, (THREADS,), arguments, shared_mem=shared_bytes)


def random_arguments(key, sweep, *purpose):
    """The last arguments of every kernel that draws: the sweep, the purpose where it takes one, and the key."""
    return tuple(np.uint32(value) for value in (sweep, *purpose, *key))


def blocks_for(n_threads):
    """Blocks that hold so many threads."""
    return -(-int(n_threads) // THREADS)


@functools.cache
def properties(device):
    """What a device has: a dictionary of its properties, as the CUDA runtime names them."""
    return cp.cuda.runtime.getDeviceProperties(device)


def shared_limits(device):
    """Bytes of shared memory that a block has where two are to run on a multiprocessor, and at most."""
    most, half = properties(device)["sharedMemPerBlockOptin"], properties(device)["sharedMemPerMultiprocessor"] // 2
    return min(half - _RESERVED, most), most


def cached_bytes(device):
    """Bytes of the cache of all multiprocessors, for each of them."""
    return int(_CACHED * properties(device)["l2CacheSize"]) // properties(device)["multiProcessorCount"]


def resident_blocks(function, shared_bytes, beside=()):
    """Blocks of a kernel that run at the same time on a multiprocessor.

    beside : bytes of shared memory of each block of another kernel that runs there too.
    """
    has = properties(cp.cuda.runtime.getDevice())
    registers = max(1, -(-function.num_regs // 8)) * 8 * THREADS  # a thread has them in eights
    slots = min(has["maxThreadsPerMultiProcessor"] // THREADS, has["regsPerMultiprocessor"] // registers) - len(beside)
    shared = has["sharedMemPerMultiprocessor"] - sum(size + _RESERVED for size in beside)
    return max(0, min(slots, shared // (shared_bytes + _RESERVED)))


def padded(coef, chains, size):
    """Coefficients (n_chains, q) as a pass reads them: (q, chains), those of chains that are not there zero.

    size : bytes of a number, 4 or 8.
    """
    out = cp.zeros((coef.shape[1], chains), {4: cp.float32, 8: cp.float64}[size])
    out[:, : len(coef)] = coef.T
    return out
