"""How the CPU kernels are compiled, and their cache.

Numba's cache is made one that can fail without ending a fit, and that knows all sources.
"""

import functools
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

import numba

from ..constants import horner

# Sums over columns may be reordered (that is what vectorises them); nothing may assume that inf or NaN
# cannot occur.
REORDER_SUMS = {"reassoc", "contract", "nsz"}
CONTRACT = {"contract"}  # a b + c with one rounding
COMPILED = {"nogil": True, "error_model": "numpy"}  # as all that runs in a kernel


def kernel(function=None, *, fastmath=False):
    """Compile what Python calls: from any thread, without the GIL, cached where a cache can be written and read.

    Numba's own parallel layers abort the process when two Python threads enter them, so kernels are serial
    and the threads are ours (``skhorseshoe._utils.threads``).
    """
    if function is None:
        return functools.partial(kernel, fastmath=fastmath)
    try:
        return made_safe(_compile(function, fastmath=fastmath, cache=True, no_cfunc_wrapper=True))
    except RuntimeError:  # nowhere to write the cache: compile anew in each process
        return _compile(function, fastmath=fastmath)


def device(function=None, *, fastmath=False, inline="never"):
    """Compile what kernels call, into their code: a cache and wrappers of its own would only take time.

    Copies of a function in two kernels have the same name, and the process that compiles both runs one of them in
    both. Where the compiler may choose how to round, copies differ: these are inlined, so that every process has the
    same numbers.
    """
    if function is None:
        return functools.partial(device, fastmath=fastmath, inline=inline)
    bare = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "forceinline": bool(fastmath)}
    return _compile(function, fastmath=fastmath, inline=inline, **bare)


def polynomial(coefficients):
    """A polynomial, the highest power first, unrolled so that loops over it vectorise."""
    return device(inline="always")(eval(f"lambda u: {horner(coefficients)}"))


def _compile(function, **options):
    return numba.njit(**COMPILED, **options)(function)


# Kernels inline one another across files, and Numba looks at the time stamp of one file.
_SOURCES = crc32(b"".join(path.read_bytes() for path in sorted(Path(__file__).parents[1].rglob("*.py"))))


@cache
def _say_once():
    """Tell those who sit before a prompt why the first fit takes long."""
    if sys.flags.interactive or hasattr(sys, "ps1"):
        print("skhorseshoe compiles its kernels, once: some ten seconds.", file=sys.stderr)


def made_safe(function):
    """Have a compiled function compile anew where its cache cannot be read or is of other sources, and go on where it
    cannot be written.

    Numba raises what the disk or the unpickling raises: where the disk is full, the files are another user's, or a file
    was cut off. What is damaged is replaced by the next saving. Attributes of Numba that are not public are touched; in
    a version that has none of them the cache stays as Numba has it.
    """
    own = getattr(function, "_cache", None)
    load, save = getattr(own, "load_overload", None), getattr(own, "save_overload", None)
    if load is None or save is None:
        return function
    if (file := getattr(own, "_cache_file", None)) is not None:
        file._source_stamp = file._source_stamp, _SOURCES

    def load_or_compile(*args):
        found = None
        with suppress(Exception):  # a damaged pickle may raise anything
            found = load(*args)
        if found is None:
            _say_once()
        return found

    def save_if_possible(*args):
        try:
            save(*args)
        except OSError:  # no room or no right: what is there stays
            pass
        except Exception:  # the index, to which it adds, is damaged: begin a new one
            with suppress(Exception):
                own.flush()
                save(*args)

    own.load_overload, own.save_overload = load_or_compile, save_if_possible
    return function
