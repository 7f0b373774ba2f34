"""How the CPU kernels are compiled."""

import functools

import numba

# Sums over columns may be reordered (that is what vectorises them); nothing may assume that inf or NaN
# cannot occur.
REORDER_SUMS = {"reassoc", "contract", "nsz"}


def jit(function=None, *, fastmath=False, inline="never"):
    """Compile for use from any Python thread: no parallel layer, no GIL, cached where a cache can be written.

    Numba's own parallel layers abort the process when two Python threads enter them, so kernels are serial
    and the threads are ours (``skhorseshoe._threads``).
    """
    if function is None:
        return functools.partial(jit, fastmath=fastmath, inline=inline)
    options = {"nogil": True, "fastmath": fastmath, "error_model": "numpy", "inline": inline}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write the cache: compile anew in each process
        return numba.njit(**options)(function)
