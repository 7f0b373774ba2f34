"""The back end for sparse rows on NVIDIA GPUs: ``dense``, with answers of its own to whatever reads X, a ``Csr``.

X is never made dense. A CSR matrix of SciPy's is copied to the device, one of CuPy's is read where it is; beside it is
a copy by columns. Of rows that are more than one part (``csr_chunks.py``) the answers of the parts are added.

A pass reads the stored numbers twice: by rows, for what is drawn or derived of each row and chain, and by columns, for
the sums over rows. Every sum has one owner and a fixed order, which depends on X and the number of chains alone.
"""

from functools import reduce
from operator import add

import cupy as cp
import numpy as np

from ..centring import finish, uncentred
from ..moments import merge_moments
from . import dense
from .csr import Csr, lanes_for
from .csr_chunks import PART, HeldParts, HostCsr, StreamedParts, cut, parts_of, stored_in
from .cuda import MAX_CHAINS, SPARSE_TILE, STRIP, TYPES, WARPS, compiled_chains, sparse_definitions
from .dense_passes import information_of
from .host_streaming import brought
from .launch import add_blocks, blocks_for, i32, i64, kernel, launch, padded, random_arguments
from .line_moves import TOGETHER, side_by_side
from .memory import WIDENED
from .memory import place_sparse as place  # noqa: F401 - part of what a back end offers
from .predict import rows_together


def __getattr__(name):
    """The rest of what a back end offers is that of ``dense``."""
    return getattr(dense, name)


def hold(X, y, weight):
    """X as ``Csr``, or as ``Parts`` if that is more than one or on the host; y (n,) and the weights (n,) or (0,), on
    the current device."""
    if isinstance(X, HostCsr):
        X = StreamedParts(X, cut(X.indptr))
    else:
        X = Csr.of(X)
        if X.size > PART:
            X = HeldParts(X, cut(cp.asnumpy(X.indptr)))
    return X, cp.asarray(brought(y), dtype=cp.uint8), brought(weight)


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0):
    """As the CPU's; ``bounds`` and ``threads`` say nothing to a GPU."""
    random = random_arguments(key, sweep)
    out = _sum("latent_rows", X, coef, lambda rows: (y[rows], i64(first_row + rows.start), *random))
    return out[:, :-1], out[:, -1]


def score(X, y, weight, coef, bounds, threads):
    """As the CPU's."""
    out = _sum("score_rows", X, coef, lambda rows: (y[rows], *_if_any(weight[rows])))
    return out[:, -1], out[:, :-1]


def line(X, y, weight, coef, direction, steps, bounds, threads):
    """As the CPU's."""
    both, steps = side_by_side(coef, direction), cp.ascontiguousarray(steps)
    return reduce(add, (_line(part, y[rows], weight[rows], both, steps) for rows, part in parts_of(X)))


def _line(X, y, weight, both, steps):
    """The same for a ``Csr``, with coefficients and directions ``side_by_side``."""
    (n, p), q, (n_lines, n_steps) = X.shape, both.shape[1], steps.shape
    bytes_of_real, out = TYPES[X.dtype.name][3], cp.empty(steps.shape)
    for first in range(0, n_lines, TOGETHER):
        some, total = both[2 * first : 2 * (first + TOGETHER)], out[first : first + TOGETHER]
        chains, sums = compiled_chains(len(some)), cp.empty((X.blocks, total.size, 1))
        function = kernel("sparse_passes", "line_rows", sparse_definitions(chains, X.dtype.name, X.indices.dtype.name))
        given = *X.arrays, padded(some, chains, bytes_of_real), sums
        sizes = i64(n), i32(p), i32(q), i32(len(total)), i32(X.lanes)
        shared = SPARSE_TILE * chains * bytes_of_real
        along = y, *_if_any(weight), steps[first:], i32(n_steps)
        launch(function, X.blocks, *given, *sizes, *along, shared_bytes=shared)
        add_blocks(sums, total.reshape(1, -1))
    return out


def gram_product(X, weight, vectors, bounds, threads):
    """As the CPU's."""
    return _sum("product_rows", X, vectors, lambda rows: _if_any(weight[rows]), "float64")[:, :-1]


def gram_noise(X, weight, shape, bounds, attempt, sweep, purpose, key, threads):
    """As the CPU's."""
    random = np.uint32(attempt), *random_arguments(key, sweep, purpose)

    def given(rows):
        return *_if_any(weight[rows]), i64(rows.start), *random

    return _sum("noise_rows", X, cp.zeros(shape), given, "float64")[:, :-1]


def _sum(name, X, coef, given, real=None):
    """Sums over the rows (n_chains, q + 1) of what a kernel makes of each, and in the last column its totals.

    coef : (n_chains, q). given : of a slice of rows, the kernel's arguments beside X and the chains. real : the type in
    which rows are computed, X's own by default.
    """
    return reduce(add, (_pass(name, part, coef, given(rows), real) for rows, part in parts_of(X)))


def _pass(name, X, coef, given, real):
    """The same for a ``Csr``; given : the arguments."""
    (n, p), (n_chains, q), columns = X.shape, coef.shape, X.by_column
    real, index = real or X.dtype.name, X.indices.dtype.name
    bytes_of_real, pieces = TYPES[real][3], columns.n_pieces
    out = cp.empty((n_chains, q + 1))
    for first in range(0, n_chains, MAX_CHAINS):
        some, sums = coef[first : first + MAX_CHAINS], out[first : first + MAX_CHAINS]
        chains = compiled_chains(len(some))
        by_chain = padded(some, chains, bytes_of_real)
        values, parts = cp.empty((n, chains), by_chain.dtype), cp.empty((pieces + 2 * X.blocks, chains))

        def start(kernel_name, grid, *arguments, shared_bytes=0, chains=chains):
            function = kernel("sparse_passes", kernel_name, sparse_definitions(chains, X.dtype.name, index, real))
            launch(function, grid, *arguments, shared_bytes=shared_bytes)

        sizes = i64(pieces), i64(n), i32(p), i32(q), i32(len(some)), i32(first), i32(X.lanes)
        shared = SPARSE_TILE * chains * bytes_of_real
        start(name, X.blocks, *X.arrays, by_chain, values, parts, *sizes, *given, shared_bytes=shared)
        if pieces:
            lanes = lanes_for(X.size / pieces)
            read = columns.data, columns.rows, columns.cuts
            start("add_columns", blocks_for(pieces * lanes), *read, values, parts, i64(pieces), i32(lanes))
        start("add_pieces", blocks_for(32 * (q + 1)), parts, columns.firsts, sums, i32(p), i32(q), i32(len(some)))
    return out


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As the CPU's, on the host."""
    n, p = X.shape
    shift = np.where(stored_in(X) == n, centre, 0.0)
    points = None if beta is None else uncentred(beta, centre, scale, p)
    size = 0.0

    def answers():
        nonlocal size
        for rows, part in parts_of(X):
            squared = weight[rows]
            if points is not None:
                information = _information(part, *points)
                squared = squared * information if len(squared) else information
            size += _total(squared, part.shape[0])
            yield _gram(part, squared, shift, p + fit_intercept)

    both = cp.asnumpy(reduce(add, answers()))
    H = np.ascontiguousarray(both[:-1])
    finish(H, both[-1, :p], size, centre - shift, scale)
    return H


def _gram(X, squared, shift, q):
    """Sums of the products of the columns (q, q), and beneath them those of the columns."""
    p, columns = X.shape[1], X.by_column
    out = cp.zeros((q + 1, q))
    read = *X.arrays, columns.data, columns.rows, columns.starts
    given = *_if_any(squared), cp.asarray(shift), out[:-1], out[-1], i32(q)
    X.launch("gram_columns", (p, -(-p // STRIP)), *read, *given, shared_bytes=8 * WARPS * (STRIP + 1))
    return out


def information_weights(X, coef, intercept):
    """As the CPU's, on the device; coef (m, p) and intercept (m,) are on the host."""
    return cp.concatenate([_information(part, coef, intercept) for _, part in parts_of(X)])


def _information(X, coef, intercept):
    n, m = X.shape[0], len(coef)
    coef, intercept = cp.asarray(np.ascontiguousarray(coef.T)), cp.asarray(np.atleast_1d(intercept))
    out = cp.empty(n)
    step = max(1, WIDENED // m)
    for start in range(0, n, step):
        eta = product(X[start : start + step], coef) + intercept
        information_of(eta, out[start : start + step])
    return out


def moments(X, weight):
    """As the CPU's, on the host."""
    return reduce(merge_moments, (_moments(part, weight[rows]) for rows, part in parts_of(X)))[1:]


def _moments(X, weight):
    """The sum of the weights, mean and variance of the columns of a ``Csr``."""
    (n, p), columns = X.shape, X.by_column
    total, mean, square = _total(weight, n), cp.empty(p), cp.empty(p)
    given = *_if_any(weight), i64(n), np.float64(total), mean, square
    X.launch("column_moments", p, columns.data, columns.rows, columns.starts, *given, shared_bytes=8 * WARPS)
    return total, cp.asnumpy(mean), cp.asnumpy(square) / total


def each_block(X, coef, threads, budget, use):
    """As the CPU's, with products on the GPU, whose own budget it is; X may be on the host."""
    coef = cp.ascontiguousarray(brought(coef).T, dtype=cp.float64)
    n, size = X.shape[0], rows_together(coef.shape[1])
    for start in range(0, n, size):
        rows = slice(start, min(n, start + size))
        use(product(Csr.of(X[rows]), coef), rows)


def product(X, coef):
    """X coef for coef (p, m) on the device; (n, m) float64. A row has the same bits whatever rows come with it."""
    out = cp.empty((X.shape[0], coef.shape[1]))
    X.launch("multiply_rows", X.shape[0], *X.arrays, coef, out, i32(coef.shape[1]))
    return out


def _if_any(weight):
    """Weights as a kernel takes them."""
    return weight, i32(len(weight) > 0)


def _total(weight, n):
    return float(weight.sum()) if len(weight) else float(n)
