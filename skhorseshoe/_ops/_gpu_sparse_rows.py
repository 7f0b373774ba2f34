"""Questions to sparse rows on the GPU; they have the names and the answers of ``sparse.py``.

A pass reads the stored numbers twice: by rows, for what is drawn or derived of each row and chain, and by columns, for
the sums over rows. Every sum has one owner and a fixed order, which depends on X and the number of chains alone.
"""

import cupy as cp
import numpy as np

from ._centring import finish, uncentred
from ._gpu_clock import random_arguments
from ._gpu_csr import Csr, lanes_for
from ._gpu_kernels import blocks_for, i32, i64, kernel, launch, padded
from ._gpu_memory import WIDENED
from ._gpu_stream import brought
from .cuda import MAX_CHAINS, THREADS, TYPES, compiled_chains, sparse_definitions

_WARPS = THREADS // 32
# As in the kernels.
_TILE = 256  # rows whose predictors are together in shared memory
_STRIP = 512  # columns of X'X whose sums a warp has there


def hold(X, y, weight):
    """X as ``Csr``, y (n,) and the weights (n,) or (0,), on the current device."""
    return Csr.of(X), cp.asarray(brought(y), dtype=cp.uint8), brought(weight)


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0):
    """As ``cpu.latent``; ``bounds`` and ``threads`` say nothing to a GPU."""
    out = _pass("latent_rows", X, coef, (y, i64(first_row), *random_arguments(key, sweep)))
    return out[:, :-1], out[:, -1]


def score(X, y, weight, coef, bounds, threads):
    """As ``cpu.score``."""
    out = _pass("score_rows", X, coef, (y, *_if_any(weight)))
    return out[:, -1], out[:, :-1]


def gram_product(X, weight, vectors, bounds, threads):
    """As ``sparse.gram_product``."""
    return _pass("product_rows", X, vectors, _if_any(weight), "float64")[:, :-1]


def gram_noise(X, weight, shape, bounds, attempt, sweep, purpose, key, threads):
    """As ``sparse.gram_noise``."""
    given = *_if_any(weight), np.uint32(attempt), *random_arguments(key, sweep, purpose)
    return _pass("noise_rows", X, cp.zeros(shape), given, "float64")[:, :-1]


def _pass(name, X, coef, given, real=None):
    """Sums over the rows (n_chains, q + 1) of what a kernel makes of each, and in the last column its totals.

    coef : (n_chains, q). given : the kernel's arguments beside X and the chains. real : the type in which rows are
    computed, X's own by default.
    """
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
            function = kernel("sparse", kernel_name, sparse_definitions(chains, X.dtype.name, index, real))
            launch(function, grid, *arguments, shared_bytes=shared_bytes)

        sizes = i64(pieces), i64(n), i32(p), i32(q), i32(len(some)), i32(first), i32(X.lanes)
        shared = _TILE * chains * bytes_of_real
        start(name, X.blocks, *X.arrays, by_chain, values, parts, *sizes, *given, shared_bytes=shared)
        if pieces:
            lanes = lanes_for(X.size / pieces)
            read = columns.data, columns.rows, columns.cuts
            start("add_columns", blocks_for(pieces * lanes), *read, values, parts, i64(pieces), i32(lanes))
        start("add_pieces", blocks_for(32 * (q + 1)), parts, columns.firsts, sums, i32(p), i32(q), i32(len(some)))
    return out


def gram(X, weight, centre, scale, fit_intercept, threads, beta=None, spare=()):
    """As ``sparse.gram``, on the host."""
    (n, p), columns = X.shape, X.by_column
    q = p + fit_intercept
    shift = np.where(columns.stored == n, centre, 0.0)
    squared = weight
    if beta is not None:
        information = information_weights(X, *uncentred(beta, centre, scale, p))
        squared = squared * information if len(squared) else information
    H, sums = cp.zeros((q, q)), cp.empty(p)
    read = *X.arrays, columns.data, columns.rows, columns.starts
    given = *_if_any(squared), cp.asarray(shift), H, sums, i32(q)
    X.launch("gram_columns", (p, -(-p // _STRIP)), *read, *given, shared_bytes=8 * _WARPS * (_STRIP + 1))
    H = cp.asnumpy(H)
    finish(H, cp.asnumpy(sums), _total(squared, n), centre - shift, scale)
    return H


def information_weights(X, coef, intercept):
    """As ``sparse.information_weights``, on the device; coef (m, p) and intercept (m,) are on the host."""
    n, m = X.shape[0], len(coef)
    coef, intercept = cp.asarray(np.ascontiguousarray(coef.T)), cp.asarray(np.atleast_1d(intercept))
    out = cp.empty(n)
    function = kernel("rows", "information_weights", (f"-DELEMENT={TYPES[X.dtype.name][0]}",))
    step = max(1, WIDENED // m)
    for start in range(0, n, step):
        eta = product(X[start : start + step], coef) + intercept
        launch(function, blocks_for(len(eta)), eta, out[start : start + step], i64(len(eta)), i32(m))
    return out


def moments(X, weight):
    """As ``sparse.moments``, on the host."""
    (n, p), columns = X.shape, X.by_column
    total, mean, square = _total(weight, n), cp.empty(p), cp.empty(p)
    given = *_if_any(weight), i64(n), np.float64(total), mean, square
    X.launch("column_moments", p, columns.data, columns.rows, columns.starts, *given, shared_bytes=8 * _WARPS)
    return cp.asnumpy(mean), cp.asnumpy(square) / total


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
