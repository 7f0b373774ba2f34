"""The CUDA C++ sources, which include ``core``, and how a pass over X is laid out. Nothing here needs a GPU."""

import re
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

from ... import constants

MODULES = "probe", "chains", "answers", "dense_passes"  # files, each compiled with what it includes
OPTIONS = ("-std=c++17",)
THREADS = 256  # of every block
WARPS = THREADS // 32
MAX_CHAINS = 16  # that one launch of a pass carries; more chains are several launches
MOST_BLOCKS = 8  # of a pass, for each multiprocessor; the forecast of memory counts on it
TYPES = {"float16": ("Half", "float", 2, 4), "float32": ("float", "float", 4, 4), "float64": ("double", "double", 8, 8)}

_INCLUDE = re.compile(r'^#include "(.*)"\n', re.M)
_TILE_BYTES = 32 * 1024  # of X in a tile, where rows are short; two such tiles hide the latency of memory
_TILES = (256, 128, 64, 32, 16, 8, 4)  # rows
_SHARE = 32  # of X a block reads at least so many times the bytes of its sums, where it could read more


@cache
def source(module):
    """The text of a module, with that of the files which it includes, each once: NVRTC needs no folder, and CuPy, which
    keeps what it has compiled by the text, sees what has changed."""
    return f"constexpr int THREADS = {THREADS}, WARPS = {WARPS};\n{_text(f'{module}.cuh', set())}"


def _text(name, seen):
    if name in seen:
        return ""
    seen.add(name)
    if name == "constants.hpp":
        return constants.header().replace("#pragma once\n", "")
    folder = Path(__file__).parent
    folder = folder if name.endswith(".cuh") else folder.parents[1] / "core"
    text = (folder / name).read_text().replace("#pragma once\n", "")
    return _INCLUDE.sub(lambda found: _text(found[1], seen), text)


def compiled_chains(n_chains):
    """The number of chains that a kernel for so many is compiled for."""
    return next(c for c in (1, 2, 4, 8, 16) if c >= n_chains)


class Layout(NamedTuple):
    """How a pass is cut up."""

    chains: int  # that the kernel is compiled for: 1, 2, 4, 8 or 16
    staged: bool  # whether tiles, coefficients and sums are in shared memory
    tile: int  # rows
    shared_bytes: int
    at_a_time: int = MOST_BLOCKS  # blocks that a multiprocessor runs, at most


def layout(p, q, n_chains, dtype, limits, cached, sums=True):
    """The largest tile of which two fit into shared memory: the next is copied while one is used.

    Where none does, tiles are looked at twice, and are as small and as few as the cache has room for.

    limits : bytes that a block has where two are to run on a multiprocessor, and at most. cached : bytes of the cache
    of all multiprocessors, for each of them. sums : whether rows are added up; if not, a tile is looked at once.
    """
    chains = compiled_chains(n_chains)
    _, _, element, real = TYPES[dtype]
    least = max(4, 16 // element)  # four rows share a coefficient, and a tile begins at a multiple of 16 bytes
    tiles = [t for t in _TILES if t >= least and (t <= 8 or t * p * element <= _TILE_BYTES)]
    least_shared = 0 if sums else 8 * THREADS  # for a total of each thread
    some = limits if real * chains <= 32 else limits[1:]  # the registers of two blocks, as in dense_passes.cuh
    for limit, rows in product(some, tiles):
        size = _round_16(8 * q * chains * sums) + _round_16(real * q * chains) + 2 * rows * p * element
        size = max(least_shared, size + _scratch(rows, chains, real))
        if size <= limit:
            return Layout(chains, True, rows, size)
    if not sums:
        return Layout(chains, False, 16, max(least_shared, _scratch(16, chains, real)))
    again = {rows: rows * p * element + 8 * q * chains for rows in (16, 8, 4)}  # bytes that a block looks at again
    rows = next((rows for rows in again if again[rows] <= cached), 16)
    return Layout(chains, False, rows, _scratch(rows, chains, real), max(1, min(MOST_BLOCKS, cached // again[rows])))


def waves(layout, q, resident, multiprocessors, size):
    """How many times as many blocks as run at a time a pass over ``size`` bytes of X is cut into.

    As they come to their ends one by one, other kernels find room. But each has sums to begin, to keep and to write.
    """
    of_sums = 8 * (q + 1) * layout.chains
    return max(1, min(MOST_BLOCKS * multiprocessors // resident, size // (_SHARE * of_sums * resident)))


def definitions(chains, dtype, staged):
    """Compiler options that make ``dense_passes`` for a number of chains and a type of X."""
    element, real, _, _ = TYPES[dtype]
    return (f"-DCHAINS={chains}", f"-DELEMENT={element}", f"-DREAL={real}", f"-DSTAGED={int(staged)}")


def _scratch(rows, chains, real):
    parts = max(1, WARPS // (rows // 4))
    return _round_16((parts + 1) * rows * chains * real)


def _round_16(size):
    return (size + 15) // 16 * 16
