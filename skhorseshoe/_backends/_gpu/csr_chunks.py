"""Sparse rows that are more than a part: on the GPU, or on the host because it has no room for them.

Rows of more than ``PART`` stored numbers are cut into parts, by X alone, and what the parts answer is added in order.
So it makes no difference to the bits where they are.
"""

from itertools import pairwise

import numpy as np
from scipy.sparse import csr_array

from .csr import ByColumn, Csr, alike, blocks_of, most_pieces, pieces
from .host_streaming import Conveyor, room_of

PART = 2**25  # stored numbers


class HostCsr(csr_array):
    """Sparse rows of the host that the GPU has no room for."""


def room_for_sparse_parts(X):
    """Bytes of the two buffers for the parts of an X of the host, and the numbers and the rows of the largest."""
    slices = cut(X.indptr)
    size = max(int(X.indptr[rows.stop]) - int(X.indptr[rows.start]) for rows in slices)
    n_rows, index = max(rows.stop - rows.start for rows in slices), max(X.indices.itemsize, X.indptr.itemsize)
    ends = index * (n_rows + X.shape[1]) + 8 * (most_pieces(size, X.shape[1]) + X.shape[1]) + 2**12
    return 2 * (2 * size * (X.data.itemsize + index) + ends), size, n_rows


def parts_of(X):
    """(rows, part) of a ``Csr`` or of ``Parts``: a slice, and these rows on the GPU, until the next is asked for."""
    return [(slice(0, X.shape[0]), X)] if isinstance(X, Csr) else X


def stored_in(X):
    """How many numbers are stored of each column; (p,) on the host."""
    return X.by_column.stored if isinstance(X, Csr) else X.stored


def cut(starts):
    """The rows of each part, slices. starts : (n + 1,) the first number of each row, and the end, on the host."""
    inner = np.searchsorted(starts, np.arange(PART, int(starts[-1]), PART))
    edges = np.unique([0, *inner, len(starts) - 1]).tolist()
    return [slice(*rows) for rows in pairwise(edges)]


class Parts:
    """Sparse rows in parts. X : where they are as a whole. slices : the rows of each part."""

    def __init__(self, X, slices):
        self.X, self.slices = X, slices
        self.shape, self.dtype = X.shape, X.dtype

    def __getitem__(self, rows):
        """Some rows, where X is."""
        return self.X[rows]


class HeldParts(Parts):
    """X : ``Csr``."""

    def __init__(self, X, slices):
        super().__init__(X, slices)
        self.parts = [_part(X, rows) for rows in slices]
        self.stored = sum(part.by_column.stored for part in self.parts)

    def __iter__(self):
        return zip(self.slices, self.parts, strict=True)


def _part(X, rows):
    starts = X.indptr[rows.start : rows.stop + 1]
    numbers = slice(int(starts[0]), int(starts[-1]))
    return Csr(X.data[numbers], X.indices[numbers], starts - starts[0], (rows.stop - rows.start, X.shape[1]))


class StreamedParts(Parts):
    """X : ``HostCsr``. Every question brings all parts, one after the other; the host has their columns too."""

    def __init__(self, X, slices):
        super().__init__(X, slices)
        self.on_host = [_on_host(X[rows]) for rows in slices]
        self.stored = sum(stored for _, (_, stored) in self.on_host)
        self.conveyor = Conveyor()
        self.conveyor.reserve(max(room_of(layout_of(arrays)) for arrays, _ in self.on_host))

    def __iter__(self):
        for rows, (arrays, counts) in zip(self.slices, self.on_host, strict=True):
            brought = self.conveyor.bring(layout_of(arrays), _copier(arrays))
            part = Csr(*brought[:3], (rows.stop - rows.start, self.shape[1]))
            part.by_column = ByColumn(*brought[3:], *counts)
            yield rows, part
            self.conveyor.done()


def layout_of(arrays):
    """The shape and dtype of each."""
    return [(array.shape, array.dtype) for array in arrays]


def _copier(arrays):
    def write(*pinned):
        for there, here in zip(pinned, arrays, strict=True):
            np.copyto(there, here)

    return write


def _on_host(X):
    """The arrays of a part by rows and by columns, and the rest of its ``ByColumn``."""
    rows, by_column = (X.data, *alike(X.indices, X.indptr, X.shape[0])), X.tocsc()  # rows ascend within a column
    columns = by_column.data, *(values.astype(rows[1].dtype) for values in (by_column.indices, by_column.indptr))
    cuts, firsts, stored = pieces(by_column.indptr.astype(np.int64), blocks_of(X.shape[0]))
    return (*rows, *columns, cuts, firsts), (len(cuts) - 1, stored)
