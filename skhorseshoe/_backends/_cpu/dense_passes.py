"""The pieces in which ``passes`` read rows."""

import numpy as np

from ..._utils import memmap
from ..._utils.memmap import ahead, cut, is_on_disk
from ..constants import FLUSH_ROWS, TILE_BYTES


def pieces(X, bounds, first, last):
    """The pieces of the blocks first to last - 1: (rows of X, their slice, bounds, their blocks).

    Rows in memory, in an array or a CSR matrix, are one piece with all blocks.
    """
    if not is_on_disk(X):
        return ((X, slice(0, X.shape[0]), bounds[first : last + 1], slice(first, last)),)
    return _pieces_of_disk(X, bounds, first, last)


def _pieces_of_disk(X, bounds, first, last):
    """Pieces within a block, cut so that its sums keep their bits. float16, which no kernel reads, becomes float32."""
    dtype = np.float32 if X.dtype == np.float16 else X.dtype
    tile = _tile_rows(X.shape[1] * np.dtype(dtype).itemsize)
    flushed = FLUSH_ROWS // tile * tile  # rows from flush to flush: pieces that end at a flush keep the bits of a block
    step = flushed * max(1, memmap.WINDOW // (flushed * X.strides[0]))
    slices = (rows for block in range(first, last) for rows in cut(*map(int, bounds[block : block + 2]), step))
    for rows in ahead(X, slices, bounds[last]):
        block = np.searchsorted(bounds, rows.start, side="right") - 1
        x = X[rows].astype(dtype, copy=False)
        yield x, rows, np.array([0, len(x)], np.int64), slice(block, block + 1)


def _tile_rows(row_bytes):
    """Number of rows of a tile, as in ``exports/dense_rows.hpp``: those that fit TILE_BYTES, a multiple of four."""
    return min(256, max(4, TILE_BYTES // max(1, row_bytes) // 4 * 4))
