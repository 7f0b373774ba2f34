"""How the CPU kernels are compiled."""

import functools

import numba

from ._cache import made_safe

# Sums over columns may be reordered (that is what vectorises them); nothing may assume that inf or NaN
# cannot occur.
REORDER_SUMS = {"reassoc", "contract", "nsz"}


def kernel(function=None, *, fastmath=False):
    """Compile what Python calls: from any thread, without the GIL, cached where a cache can be written and read.

    Numba's own parallel layers abort the process when two Python threads enter them, so kernels are serial
    and the threads are ours (``skhorseshoe._threads``).
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath)
    try:
        return made_safe(_compile(function, fastmath=fastmath, cache=True, no_cfunc_wrapper=True))
    except RuntimeError:  # nowhere to write the cache: compile anew in each process
        return _compile(function, fastmath=fastmath)


def device(function=None, *, fastmath=False, inline="never"):
    """Compile what kernels call, into their code: a cache and wrappers of its own would only take time."""
    if function is None:
        return functools.partial(device, fastmath=fastmath, inline=inline)
    return _compile(function, fastmath=fastmath, inline=inline, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def _compile(function, **options):
    return numba.njit(nogil=True, error_model="numpy", **options)(function)
