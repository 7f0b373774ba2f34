"""Compiling and launching the CUDA kernels through CuPy."""

import functools

import cupy as cp
import numpy as np

from .cuda import OPTIONS, THREADS, source

i32, i64 = np.int32, np.int64  # integers of kernels: CuPy passes those of Python with 64 bits

_RESERVED_BYTES = 1024  # bytes of shared memory of each block that the system reserves
_CACHED_SHARE = 0.7  # share of the L2 cache that a pass uses


def kernel(module, name, definitions=()):
    """The kernel with this name, compiled once for each device and cached on disk by CuPy."""
    return _kernel(cp.cuda.runtime.getDevice(), module, name, definitions)


@functools.cache
def _kernel(device, module, name, definitions):
    function = _raw_module(device, module, definitions).get_function(name)
    # Set once for all launches, since two fits in two threads could undo each other's settings.
    function.max_dynamic_shared_size_bytes = properties(device)["sharedMemPerBlockOptin"] - function.shared_size_bytes
    return function


@functools.cache
def _raw_module(device, name, definitions):
    return cp.RawModule(code=source(name), options=(*OPTIONS, *definitions))


def launch(function, grid, *arguments, shared_bytes=0):
    """Start a kernel in blocks of THREADS threads. Without blocks, as for laws of shrunk coefficients where there are
    none, there is nothing to start, and CUDA would refuse.

    grid : number of blocks, or several numbers. arguments : a tuple is passed as its members.
    """
    grid = grid if isinstance(grid, tuple) else (grid,)
    if 0 not in grid:
        function(grid, (THREADS,), tuple(_flat(arguments)), shared_mem=shared_bytes)


def _flat(arguments):
    for argument in arguments:
        yield from _flat(argument) if isinstance(argument, tuple) else (argument,)


def random_arguments(key, sweep, *purpose):
    """The last arguments of every kernel that draws: the sweep, the purpose if it takes one, and the key."""
    return tuple(np.uint32(value) for value in (sweep, *purpose, *key))


def blocks_for(n_threads):
    """Number of blocks for so many threads."""
    return -(-int(n_threads) // THREADS)


@functools.cache
def properties(device):
    """The properties of a device, a dictionary with the names of the CUDA runtime."""
    return cp.cuda.runtime.getDeviceProperties(device)


def shared_limits(device):
    """Bytes of shared memory of a block if two run on a multiprocessor, and if one does."""
    one, half = properties(device)["sharedMemPerBlockOptin"], properties(device)["sharedMemPerMultiprocessor"] // 2
    return min(half - _RESERVED_BYTES, one), one


def cached_bytes(device):
    """Bytes of the usable L2 cache for each multiprocessor."""
    return int(_CACHED_SHARE * properties(device)["l2CacheSize"]) // properties(device)["multiProcessorCount"]


def resident_blocks(function, shared_bytes):
    """Number of blocks of a kernel that run at the same time on a multiprocessor."""
    has = properties(cp.cuda.runtime.getDevice())
    registers = max(1, -(-function.num_regs // 8)) * 8 * THREADS  # allocated in eights
    slots = min(has["maxThreadsPerMultiProcessor"] // THREADS, has["regsPerMultiprocessor"] // registers)
    return min(slots, has["sharedMemPerMultiprocessor"] // (shared_bytes + _RESERVED_BYTES))


def padded(coef, chains, size):
    """Coefficients (n_chains, q) as a pass reads them: (q, chains), padded with zeros. size : bytes of a number."""
    out = cp.zeros((coef.shape[1], chains), {4: cp.float32, 8: cp.float64}[size])
    out[:, : len(coef)] = coef.T
    return out
