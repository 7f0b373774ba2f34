"""The CUDA C++ sources, which include ``core``, and the layout of a pass over X. Nothing here needs a GPU."""

import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ... import constants

MODULES = "probe", "chains", "answers", "dense_passes"  # files, each compiled with what it includes
OPTIONS = ("-std=c++17",)
THREADS = 256  # number of threads of every block
WARPS = THREADS // 32
PASS_CHAINS = 16  # largest number of chains of one launch of a pass
MOST_BLOCKS = 8  # largest number of blocks of a pass for each multiprocessor, which the forecast of memory assumes
# By the type of X: the types of C++ of a number of X and of arithmetic, and their bytes.
TYPES = {"float16": ("Half", "float", 2, 4), "float32": ("float", "float", 4, 4), "float64": ("double", "double", 8, 8)}

_INCLUDE = re.compile(r'^#include "(.*)"\n', re.M)
_TILE_BYTES = 32 * 1024  # largest size of a tile of short rows: two such tiles hide the latency of memory
_TILES = (256, 128, 64, 32, 16, 8, 4)  # numbers of rows of a tile


@cache
def source(module):
    """The text of a module with the files that it includes, each once, so that NVRTC needs no folder, and CuPy, which
    caches kernels by their text, sees changes of included files."""
    return f"constexpr int THREADS = {THREADS}, WARPS = {WARPS};\n{_with_includes(f'{module}.cuh', set())}"


def _with_includes(name, included):
    if name in included:
        return ""
    included.add(name)
    if name == "constants.hpp":
        return constants.cpp_header().replace("#pragma once\n", "")
    folder = Path(__file__).parent
    folder = folder if name.endswith(".cuh") else folder.parents[1] / "core"
    text = (folder / name).read_text().replace("#pragma once\n", "")
    return _INCLUDE.sub(lambda match: _with_includes(match[1], included), text)


def compiled_chains(n_chains):
    """The number of chains for which the kernel of n_chains is compiled."""
    return next(c for c in (1, 2, 4, 8, 16) if c >= n_chains)


class Layout(NamedTuple):
    """The layout of a pass."""

    chains: int  # number of chains for which the kernel is compiled: 1, 2, 4, 8 or 16
    staged: bool  # whether tiles, coefficients and sums are in shared memory
    tile: int  # number of rows of a tile
    shared_bytes: int  # shared memory of a block
    at_a_time: int = MOST_BLOCKS  # largest number of blocks that run on a multiprocessor


def layout(p, q, n_chains, dtype, limits, cached, sums=True):
    """The largest tile of which two fit into shared memory: the next is copied while one is used.

    If none fits, tiles are read twice, and are as small and as few as fit into the cache.

    limits : bytes of shared memory of a block, if two run on a multiprocessor and if one does. cached : bytes of the
    L2 cache for each multiprocessor. sums : whether rows are summed; if not, a tile is read once.
    """
    chains = compiled_chains(n_chains)
    _, _, element, real = TYPES[dtype]
    least = max(4, 16 // element)  # four rows share a coefficient, and a tile begins at a multiple of 16 bytes
    tiles = [t for t in _TILES if t >= least and (t <= 8 or t * p * element <= _TILE_BYTES)]
    least_shared = 0 if sums else 8 * THREADS  # a total for each thread
    limits = limits if real * chains <= 32 else limits[1:]  # registers suffice for two blocks, as in dense_passes.cuh
    for limit, rows in product(limits, tiles):
        size = _round_16(8 * q * chains * sums) + _round_16(real * q * chains) + 2 * rows * p * element
        size = max(least_shared, size + _scratch(rows, chains, real))
        if size <= limit:
            return Layout(chains, True, rows, size)
    if not sums:
        return Layout(chains, False, 16, max(least_shared, _scratch(16, chains, real)))
    reread = {rows: rows * p * element + 8 * q * chains for rows in (16, 8, 4)}  # bytes that a block reads twice
    rows = next((rows for rows in reread if reread[rows] <= cached), 16)
    return Layout(chains, False, rows, _scratch(rows, chains, real), max(1, min(MOST_BLOCKS, cached // reread[rows])))


def definitions(chains, dtype, staged):
    """Compiler options that make ``dense_passes`` for a number of chains and a type of X."""
    element, real, _, _ = TYPES[dtype]
    return (f"-DCHAINS={chains}", f"-DELEMENT={element}", f"-DREAL={real}", f"-DSTAGED={int(staged)}")


def _scratch(rows, chains, real):
    parts = max(1, WARPS // (rows // 4))
    return _round_16((parts + 1) * rows * chains * real)


def _round_16(size):
    return (size + 15) // 16 * 16
