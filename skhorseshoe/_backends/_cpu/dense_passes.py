"""How ``passes`` take rows."""

import numpy as np

from ..._utils.memmap import WINDOW, ahead, cut, is_on_disk
from ..constants import FLUSH_ROWS, TILE_BYTES


def pieces(X, bounds, first, last):
    """The blocks first to last - 1 of rows as the kernels take them: (rows of X, their slice, bounds, their blocks).

    Rows in memory, in an array or a CSR matrix, are one piece, in which the kernels find the blocks.
    """
    if not is_on_disk(X):
        return ((X, slice(0, X.shape[0]), bounds[first : last + 1], slice(first, last)),)
    return _pieces_of_disk(X, bounds, first, last)


def _pieces_of_disk(X, bounds, first, last):
    """Several, of one block each; a block is cut where that does not change a bit of its sums. float16, which no kernel
    reads, is made float32."""
    dtype = np.float32 if X.dtype == np.float16 else X.dtype
    tile = _tile_rows(X.shape[1] * np.dtype(dtype).itemsize)
    most = FLUSH_ROWS // tile * tile  # between two flushes: passes over parts that end there have the bits of one
    step = most * max(1, WINDOW // (most * X.strides[0]))
    slices = (rows for block in range(first, last) for rows in cut(*map(int, bounds[block : block + 2]), step))
    for rows in ahead(X, slices, bounds[last]):
        block = np.searchsorted(bounds, rows.start, side="right") - 1
        x = X[rows].astype(dtype, copy=False)
        yield x, rows, np.array([0, len(x)], np.int64), slice(block, block + 1)


def _tile_rows(row_bytes):
    """Rows to a tile, as ``exports/dense_rows.hpp`` has it: what half a second-level cache holds, in fours."""
    return min(256, max(4, TILE_BYTES // max(1, row_bytes) // 4 * 4))
