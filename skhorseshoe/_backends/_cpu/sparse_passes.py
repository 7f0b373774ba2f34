"""What ``passes`` does with rows in CSR form, and the kernels that only such rows need.

The random numbers are those of the same rows in an array. Sums over rows are held in float64 from the start: a row
touches few of them.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types, uint32, uint64

from .jit import kernel
from .passes import add_weighted_rows, for_rows, linear_predictor, scratch
from .philox import normal_and_unit, stream
from .simd import add_times, lane, lanes, load, store

_TILE = 256  # rows


class Csr(NamedTuple):
    """Rows in CSR form, as kernels take them."""

    data: object  # float32 or float64
    indices: object  # int32 or int64, as is indptr
    indptr: object
    p: int  # columns

    @property
    def dtype(self):
        return self.data.dtype


def csr(X):
    """The ``Csr`` of a matrix; read-only: kernels are compiled once per type."""
    views = [array.view() for array in (X.data, X.indices, X.indptr)]
    for view in views:
        view.flags.writeable = False
    return Csr(*views, X.shape[1])


@for_rows(scratch, types.NamedTuple)
def _scratch(X, coef):
    return _TILE, _TILE, np.empty((coef.shape[1], _TILE), coef.dtype), np.empty((0, 0), coef.dtype)


@for_rows(linear_predictor, types.NamedTuple)
def _linear_predictor(X, coef, start, rows, out):
    """Unsigned indices are not looked at for a minus sign."""
    data, indices, indptr, p = X
    has_intercept, number = coef.shape[0] > p, coef.dtype.type
    flat, width = coef.reshape(-1), uint64(coef.shape[1])
    for c in range(0, coef.shape[1], 4):
        zero = lanes(number(0), number(0), number(0), number(0))
        first = load(flat, uint64(p) * width + uint64(c)) if has_intercept else zero
        for r in range(rows):
            total = first
            for k in range(uint64(indptr[start + r]), uint64(indptr[start + r + 1])):
                total = add_times(total, load(flat, uint64(indices[k]) * width + uint64(c)), number(data[k]))
            for i in range(4):
                out[c + i, r] = lane(total, i)


@for_rows(add_weighted_rows, types.NamedTuple)
def _add_weighted_rows(X, weights, start, rows, partial, total):
    data, indices, indptr, p = X
    flat, width, number = total.reshape(-1), uint64(total.shape[1]), np.float64
    for c in range(0, total.shape[1], 4):
        for r in range(rows):
            w = weights[c : c + 4, r]
            factors = lanes(number(w[0]), number(w[1]), number(w[2]), number(w[3]))
            for k in range(uint64(indptr[start + r]), uint64(indptr[start + r + 1])):
                at = uint64(indices[k]) * width + uint64(c)
                store(add_times(load(flat, at), factors, number(data[k])), flat, at)
    if total.shape[0] > p:
        for c in range(total.shape[1]):
            for r in range(rows):
                total[p, c] += weights[c, r]


@kernel
def product_pass(X, row_weight, vectors, bounds, sums):
    """X' diag(row_weight) X vectors over blocks of rows, all in float64; vectors (q, width), sums as in ``passes``.

    row_weight : (n,), or (0,) for none.
    """
    tile, _, eta, partial = scratch(X, vectors)
    for block in range(sums.shape[0]):
        for start in range(bounds[block], bounds[block + 1], tile):
            rows = min(tile, bounds[block + 1] - start)
            linear_predictor(X, vectors, start, rows, eta)
            if row_weight.shape[0]:
                for c in range(eta.shape[0]):
                    for r in range(rows):
                        eta[c, r] *= row_weight[start + r]
            add_weighted_rows(X, eta, start, rows, partial, sums[block])


@kernel
def noise_pass(X, row_weight, n_chains, bounds, attempt, sweep, purpose, k0, k1, sums):
    """X' diag(row_weight)^(1/2) e, e ~ N(0, I), over blocks of rows; sums and row_weight as in ``product_pass``."""
    e = np.zeros((sums.shape[2], _TILE))
    for block in range(sums.shape[0]):
        for start in range(bounds[block], bounds[block + 1], _TILE):
            rows = min(_TILE, bounds[block + 1] - start)
            for c in range(n_chains):
                for r in range(rows):
                    st = stream(c, purpose, start + r)
                    e[c, r], _ = normal_and_unit(attempt, uint32(sweep), start + r, st, k0, k1)
                    if row_weight.shape[0]:
                        e[c, r] *= math.sqrt(row_weight[start + r])
            add_weighted_rows(X, e, start, rows, e, sums[block])


@kernel
def gram_pass(X, row_weight, shift, start, stop, total, column_sums):
    """Lower triangle of X' diag(row_weight) X over rows start to stop - 1, and the weighted sums of the columns.

    Indices ascend within a row. row_weight : (stop - start,), or (0,) for none. shift : (p,), taken from each stored
    number. total : (at least p, p) and column_sums : (p,), float64, added to. Returns the sum of the weights.
    """
    data, indices, indptr, _ = X
    size = 0.0
    for i in range(start, stop):
        w = row_weight[i - start] if row_weight.shape[0] else 1.0
        size += w
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            wx = w * (data[k] - shift[j])
            column_sums[j] += wx
            row = total[j]
            for other in range(indptr[i], k + 1):
                at = indices[other]
                row[at] += wx * (data[other] - shift[at])
    return size


@kernel
def column_moments(X, row_weight, mean, square, stored):
    """Weighted mean and sum of squares about it of every column, in two passes; returns the sum of the weights.

    mean, square, stored : (p,) float64, overwritten. A column is summed about the first number stored in it, so that
    one whose numbers are all alike has no variance, not even by rounding. stored : the weight of the stored numbers.
    """
    data, indices, indptr, _ = X
    size = 0.0
    shift = square  # until the second pass
    stored[:] = 0.0
    shift[:] = 0.0
    mean[:] = 0.0
    for i in range(indptr.shape[0] - 1):
        w = row_weight[i] if row_weight.shape[0] else 1.0
        size += w
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            if stored[j] == 0.0:
                shift[j] = data[k]
            stored[j] += w
            mean[j] += w * (data[k] - shift[j])
    for j in range(mean.shape[0]):
        mean[j] = mean[j] / size + shift[j] * (stored[j] / size)
        square[j] = (size - stored[j]) * mean[j] * mean[j]
    for i in range(indptr.shape[0] - 1):
        w = row_weight[i] if row_weight.shape[0] else 1.0
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            square[j] += w * (data[k] - mean[j]) ** 2
    return size


@kernel
def quadratic_forms(indptr, indices, data, P, out):
    """x_j' P x_j of the columns x_j of a CSC matrix. P : (n, n) symmetric. out : (p,), overwritten."""
    for j in range(out.shape[0]):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            for other in range(indptr[j], indptr[j + 1]):
                total += data[k] * data[other] * P[indices[k], indices[other]]
        out[j] = total
