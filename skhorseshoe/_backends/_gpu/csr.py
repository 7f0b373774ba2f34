"""Sparse rows on the GPU: the arrays of a CSR matrix, and once more column by column."""

from functools import cached_property
from typing import NamedTuple

import cupy as cp
import numpy as np
from scipy.sparse import csr_array

from .cuda import sparse_definitions
from .host_streaming import brought
from .launch import blocks_for, i32, i64, kernel, launch

# Constants, so that no sum depends on the card.
BLOCKS = 1024  # of a pass over the rows, at most
_BLOCK_ROWS = 64  # of a block, at least
_PIECE = 1024  # stored numbers that are a piece of a column; more where that makes too many
_MOST_PIECES = 2**16  # beside those that are the last of their column


class ByColumn(NamedTuple):
    """The stored numbers column by column, those of a column by ascending rows."""

    data: object  # (size,)
    rows: object  # (size,)
    starts: object  # (p + 1,) the first number of each column, and the end
    cuts: object  # (n_pieces + 1,) int64, the first number of each piece, and the end
    firsts: object  # (p + 3,) int64, the first sum of each column, of the ones and of the totals, and the end
    n_pieces: int
    stored: object  # (p,) how many numbers there are of each column, on the host


class Csr:
    """Rows in CSR form on the GPU; indices ascend within a row, and none comes twice.

    data : (size,) float32 or float64. indices : (size,). indptr : (n + 1,), both int32 or both int64. In a slice of
    rows ``indptr`` is a slice, and the others are as they are.
    """

    def __init__(self, data, indices, indptr, shape):
        self.data, self.indices, self.indptr, self.shape = data, indices, indptr, tuple(map(int, shape))

    dtype = property(lambda self: self.data.dtype)
    size = property(lambda self: self.data.size)
    device = property(lambda self: self.data.device)
    arrays = property(lambda self: (self.data, self.indices, self.indptr))

    @classmethod
    def of(cls, X):
        """X, an array or matrix of SciPy's in CSR form, or rows that are on the GPU already."""
        if isinstance(X, cls):
            return X
        return cls(*map(brought, (X.data, *alike(X.indices, X.indptr, X.shape[0]))), X.shape)

    @cached_property
    def lanes(self):
        """Threads that share a row."""
        return lanes_for(self.size / self.shape[0])

    @cached_property
    def blocks(self):
        """Blocks of a pass over the rows."""
        return blocks_of(self.shape[0])

    @cached_property
    def by_column(self):
        """The ``ByColumn``, made once."""
        (n, p), index = self.shape, self.indices.dtype
        data, rows, starts = self.data, self.indices, cp.zeros(p + 1, index)
        if self.size:
            rows = cp.empty(self.size, index)
            self.launch("row_numbers", blocks_for(n * self.lanes), self.indptr, rows, i64(n), i32(self.lanes))
            order = cp.argsort(self.indices)  # stable: rows ascend within a column
            edges = cp.asarray(np.arange(p + 1, dtype=index))
            starts = cp.searchsorted(self.indices[order], edges).astype(index)
            data, rows = data[order], rows[order]
        cuts, firsts, stored = pieces(cp.asnumpy(starts).astype(np.int64), self.blocks)
        return ByColumn(data, rows, starts, cp.asarray(cuts), cp.asarray(firsts), len(cuts) - 1, stored)

    def launch(self, name, grid, *arguments, shared_bytes=0):
        """Start a kernel of ``sparse_gram_moments``, compiled for these rows."""
        definitions = sparse_definitions(None, self.dtype.name, self.indices.dtype.name)
        launch(kernel("sparse_gram_moments", name, definitions), grid, *arguments, shared_bytes=shared_bytes)

    def __getitem__(self, rows):
        """Some rows: a slice of neighbours without a copy, or those that a mask or an array of numbers names."""
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(self.shape[0])
            return Csr(self.data, self.indices, self.indptr[start : stop + 1], (stop - start, self.shape[1]))
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        starts = cp.asnumpy(self.indptr)
        ends = np.append(0, np.cumsum(np.diff(starts)[rows], dtype=np.int64))
        if ends[-1] > np.iinfo(starts.dtype).max:
            return Csr(self.data, *(values.astype(np.int64) for values in self.arrays[1:]), self.shape)[rows]
        out = Csr(
            cp.empty(int(ends[-1]), self.dtype),
            cp.empty(int(ends[-1]), starts.dtype),
            cp.asarray(ends.astype(starts.dtype)),
            (len(rows), self.shape[1]),
        )
        sizes = i64(len(rows)), i32(self.lanes)
        moved = cp.asarray(rows), out.indptr, out.data, out.indices
        if len(rows):
            self.launch("take_rows", blocks_for(len(rows) * self.lanes), *self.arrays, *moved, *sizes)
        return out

    def get(self):
        """The same on the host, as an array of SciPy's."""
        starts = cp.asnumpy(self.indptr)
        stored = slice(int(starts[0]), int(starts[-1]))
        data, indices = (cp.asnumpy(values[stored]) for values in (self.data, self.indices))
        return csr_array((data, indices, starts - starts[0]), shape=self.shape)


def blocks_of(n):
    """Blocks of a pass over n rows."""
    return max(1, min(BLOCKS, -(-n // _BLOCK_ROWS)))


def alike(indices, indptr, n):
    """Both of one type, as the kernels read them; that of the rows' numbers too."""
    wide = np.int64 in (indices.dtype, indptr.dtype) or n > np.iinfo(np.int32).max
    return (values.astype(np.int64 if wide else np.int32, copy=False) for values in (indices, indptr))


def lanes_for(numbers):
    """A power of two up to 32, and up to the mean number of what the threads share."""
    return 1 << min(5, int(max(1.0, numbers)).bit_length() - 1)


def most_pieces(size, p):
    """An upper bound of the pieces of p columns with so many stored numbers."""
    return min(size // _PIECE, _MOST_PIECES) + p


def pieces(starts, n_blocks):
    """How columns that begin at starts (p + 1,) are cut: the first number of each piece, the first sum of each column,
    of the ones and of the totals, and how many numbers there are of each column."""
    stored = np.diff(starts)
    length = max(_PIECE, -(-int(starts[-1]) // _MOST_PIECES))
    counts = -(-stored // length)
    firsts = np.append(0, np.cumsum(counts))
    columns = np.repeat(np.arange(len(counts)), counts)
    cuts = starts[columns] + (np.arange(firsts[-1]) - firsts[columns]) * length
    return np.append(cuts, starts[-1]), np.append(firsts, firsts[-1] + n_blocks * np.array([1, 2])), stored
