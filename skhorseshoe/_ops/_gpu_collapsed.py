"""``CollapsedRows`` on the GPU: products by cuBLAS, factors by cuSOLVER, kernels for what goes row by row.

All arrays of size n x n, n x p and p stay on the GPU. The host decides what ``Collapsed`` decides: which columns are
heavy, and when a slice step of tau ends.
"""

import cupy as cp
import numpy as np

from ._collapsed import Collapsed, closest
from ._collapsed_kernels import IN_THE_SPAN, ROUNDING
from ._gpu_clock import random_arguments
from ._gpu_gaussian import Precision
from ._gpu_kernels import blocks_for, i32, i64, kernel, launch
from ._gpu_lapack import add_products, potrf, solve_lower, workspace_for
from ._gpu_memory import WIDENED
from ._gpu_rows import element
from .cuda import THREADS

_TOGETHER = 32  # lambda_j that are drawn before P follows


class CollapsedRows(Collapsed):
    """As ``Collapsed``; X : (n, p) of a type that the kernels read, C-contiguous on the current device."""

    Precision = Precision
    block = WIDENED
    _empty = staticmethod(cp.empty)
    _placed = staticmethod(cp.asarray)
    _on_host = staticmethod(cp.asnumpy)
    _add_products = staticmethod(add_products)

    def __init__(self, X, *others):
        n = len(X)
        self.inverse = cp.empty((n, n))
        self.workspace, self.info = workspace_for(self.inverse), cp.zeros(1, cp.int32)
        super().__init__(X, *others)

    @staticmethod
    def _smallest(values, k):
        return cp.sort(values)[k]  # by a library; CuPy's partition is a kernel that no tool has checked for races

    @staticmethod
    def _run(some, n_tasks):
        some(0, n_tasks)

    def _kernel(self, name):
        return kernel("collapsed", name, element(self.X))

    # Columns of X ----------------------------------------------------------------------------------------------------

    def _fill(self, root, first, block):
        given = self.X, self.order, self.centre, root, i64(first), block
        sizes = i64(block.size), i32(block.shape[1]), i32(len(self.order))
        launch(self._kernel("fill_columns"), blocks_for(block.size), *given, *sizes)

    def _columns(self, which):
        """As ``Collapsed._columns``, for which of any shape."""
        n = len(self.X)
        out = cp.empty((*which.shape, n))
        given = self.X, self.order, self.centre, self.root, which, out
        launch(
            self._kernel("gather_columns"), blocks_for(out.size), *given, i64(out.size), i32(n), i32(len(self.order))
        )
        return out

    # The n x n matrices ----------------------------------------------------------------------------------------------

    def _factorise(self, P):
        potrf(P, self.workspace, self.info)
        return int(self.info[0])

    def _invert_factor(self, P):
        self.inverse[...] = 0.0
        self.inverse.reshape(-1)[:: len(P) + 1] = 1.0
        solve_lower(P, self.inverse)  # row j is column j of L^-1
        cp.matmul(self.inverse, self.inverse.T, out=P)

    @staticmethod
    def _add_heavy(P, columns, weights):
        diagonal = P.reshape(-1)[:: len(P) + 1]
        before, rise = diagonal.copy(), 0.0
        for x, weight in zip(columns, weights):  # noqa: B905 - as many of both
            g = P @ x
            s, size = (g * x).sum(), (x * x * before).sum()
            weight = weight * (s > IN_THE_SPAN * size)
            P -= g[:, None] * (weight / (1.0 + weight * s) * g)
            rise = rise + cp.log1p(weight * s)
        diagonal[...] = cp.maximum(diagonal, ROUNDING * before)
        return rise

    def _quadratic(self, P, z):
        return self._forms(P[None], z[None], (P @ z)[None])[0, 0]

    def _forms(self, P, z, Pz):
        """z'Pz, the trace of P and 0 for each chain."""
        out = cp.empty((len(P), 3))
        function = self._kernel("quadratic_forms")
        launch(function, len(P), P, z, Pz, out, i32(z.shape[1]), shared_bytes=8 * THREADS // 32)
        return out

    def _times_each(self, z):
        """P z of each chain."""
        return (self.P @ z[:, :, None]).reshape(z.shape)

    @staticmethod
    def _information(eta):
        """phi(eta)^2 / (Phi(eta) Phi(-eta)); (n,)."""
        out = cp.empty_like(eta)
        function = kernel("rows", "information_weights", ("-DELEMENT=double",))
        launch(function, blocks_for(len(eta)), eta, out, i64(len(eta)), i32(1))
        return out

    # Draws -----------------------------------------------------------------------------------------------------------

    def latent(self, z, n_scans, index, sweep, key):
        z = z.copy()
        sizes = i32(z.shape[1]), i32(n_scans), i32(n_scans * index)
        given = z, self._times_each(z), self.P, self.y, *sizes, *random_arguments(key, sweep)
        launch(self._kernel("scan_latent"), len(z), *given, shared_bytes=8 * 4)
        return z

    def length(self, z, index, sweep, key):
        z = z.copy()
        forms = self._forms(self.P, z, self._times_each(z))
        launch(
            self._kernel("scale_latent"),
            len(z),
            z,
            forms,
            i32(z.shape[1]),
            np.uint32(index),
            *random_arguments(key, sweep),
        )
        return z

    def _scan_local_scales(self, lambda_sq_inv, z, closeness, n_columns, tau_sq_inv, index, sweep, key):
        """Some lambda_j are drawn from the products of their columns with one another; then P follows all of them."""
        which, forms = closest(closeness, n_columns), self._forms(self.P, z, self._times_each(z))
        for first in range(0, n_columns, _TOGETHER):
            some = cp.ascontiguousarray(which[:, first : first + _TOGETHER])
            columns = self._columns(some)
            G = columns @ self.P
            A, C = G @ columns.swapaxes(1, 2), G @ G.swapaxes(1, 2)
            r, factors, U = (G @ z[:, :, None]).reshape(some.shape), cp.empty(some.shape), cp.empty_like(A)
            b = some.shape[1]
            given = lambda_sq_inv, self.w, some, A, C, r, self.square, forms, U, factors, tau_sq_inv
            sizes = np.float64(self.slab_precision), *map(i32, (z.shape[1], b, self.n_shrunk, self.w.shape[1]))
            random = np.uint32(index), *random_arguments(key, sweep)
            launch(self._kernel("scan_local_scales"), len(z), *given, *sizes, *random, shared_bytes=8 * 3 * b * (b + 1))
            T = U @ G
            cp.matmul(T.swapaxes(1, 2), factors[:, :, None] * T, out=self.spare)
            self.P -= self.spare
        self.log_det += forms[:, 2]
