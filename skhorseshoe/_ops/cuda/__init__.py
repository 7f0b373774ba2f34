"""The CUDA C++ sources, how they are put together, and how a pass over X is laid out. Nothing here needs a GPU."""

from functools import cache
from pathlib import Path
from typing import NamedTuple

# A module is compiled as one text: these files, one after the other. None includes anything.
MODULES = {
    "probe": ("probe",),
    "scales": ("primitives", "philox", "block_sum", "fills", "scales", "local_moves", "gaussian", "cholesky"),
    "rows": ("primitives", "normal", "block_sum", "rows"),
    "passes": ("primitives", "philox", "truncated", "normal", "row_tasks", "passes"),
    "sparse": ("primitives", "philox", "truncated", "normal", "row_tasks", "sparse"),
    "sparse_rows": ("primitives", "block_sum", "sparse_rows"),
}
OPTIONS = ("-std=c++17",)
THREADS = 256  # of every block
MAX_CHAINS = 16  # that one launch of a pass carries; more chains are several launches
TYPES = {"float16": ("Half", "float", 2, 4), "float32": ("float", "float", 4, 4), "float64": ("double", "double", 8, 8)}

_WARPS = THREADS // 32
_TILE_BYTES = 32 * 1024  # of X in a tile, where rows are short; two such tiles hide the latency of memory
_TILES = (256, 128, 64, 32, 16, 8)  # rows


@cache
def source(module):
    """The text of a module."""
    folder = Path(__file__).parent
    return "\n".join((folder / f"{name}.cuh").read_text() for name in MODULES[module])


def compiled_chains(n_chains):
    """The number of chains that a kernel for so many is compiled for."""
    return next(c for c in (1, 2, 4, 8, 16) if c >= n_chains)


class Layout(NamedTuple):
    """How a pass is cut up."""

    chains: int  # that the kernel is compiled for: 1, 2, 4, 8 or 16
    staged: bool  # whether tiles, coefficients and sums are in shared memory
    tile: int  # rows
    buffers: int  # 2: the next tile is copied while this one is used
    shared_bytes: int


def layout(p, q, n_chains, dtype, limit):
    """The largest tile that fits into ``limit`` bytes of shared memory, with two buffers if they fit."""
    chains = compiled_chains(n_chains)
    _, _, element, real = TYPES[dtype]
    tile = next((t for t in _TILES if t * p * element <= _TILE_BYTES), _TILES[-1])
    for rows, buffers in ((tile, 2), (_TILES[-1], 2), (_TILES[-1], 1)):
        size = _round_16(8 * q * chains) + _round_16(real * q * chains) + buffers * rows * p * element
        size += _scratch(rows, chains, real)
        if size <= limit:
            return Layout(chains, True, rows, buffers, size)
    return Layout(chains, False, 16, 1, _scratch(16, chains, real))


def definitions(chains, dtype, staged):
    """Compiler options that make ``passes`` for a number of chains and a type of X."""
    element, real, _, _ = TYPES[dtype]
    return (f"-DCHAINS={chains}", f"-DELEMENT={element}", f"-DREAL={real}", f"-DSTAGED={int(staged)}")


def sparse_definitions(chains, dtype, index, real=None):
    """Those for ``sparse``, and without ``chains`` for ``sparse_rows``; types are NumPy's names. real : of the rows."""
    element, index = TYPES[dtype][0], {"int32": "int", "int64": "long long"}[index]
    passes = () if chains is None else (f"-DCHAINS={chains}", f"-DREAL={TYPES[real or dtype][1]}")
    return (*passes, f"-DELEMENT={element}", f"-DINDEX={index}")


def _scratch(rows, chains, real):
    parts = max(1, _WARPS // (rows // 4))
    return _round_16((parts + 1) * rows * chains * real)


def _round_16(size):
    return (size + 15) // 16 * 16
