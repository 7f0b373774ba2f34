"""``CollapsedRows`` on the GPU: products by cuBLAS, factors by cuSOLVER, kernels for what goes row by row.

All arrays of size n x n, n x p and p stay on the GPU, and so does what is decided by them: the numbers of heavy columns
begin with those of as many others as there may be, whose weights are 0. The host only hears, one attempt late, that the
slice steps of tau have come to their ends. An X that the GPU has no room for stays on the host: its columns come from
there, block by block.
"""

import cupy as cp
import numpy as np

from ..._utils.threads import Threads
from .. import JITTERS, rows_not_definite
from ..collapsed_base import Collapsed, diagonal, times_each
from .async_copy import Watch
from .cuda import THREADS
from .dense_passes import element, information_of
from .gaussian import Precision
from .host_streaming import Streamed, brought
from .lapack import VERDICT, add_products, potrf, solve_lower, workspace_for
from .launch import blocks_for, i32, i64, kernel, launch
from .memory import WIDENED
from .sweep_counter import random_arguments

_TOGETHER = 32  # lambda_j that are drawn before P follows
_SUMS = {"shared_bytes": 8 * THREADS // 32}  # of a block


class CollapsedRows(Collapsed):
    """As ``Collapsed``; X : (n, p) of a type that the kernels read, C-contiguous on the current device."""

    xp = cp
    Precision = Precision
    block, kept = WIDENED, 0
    _add_products = staticmethod(add_products)

    def __init__(self, X, *others):
        n = len(X)
        self.scratch = cp.empty((n, n))
        self.workspace, self.info = workspace_for(self.scratch), cp.zeros(1, cp.int32)
        self.no_diagonal, self.jitters = cp.zeros(n), cp.asarray(np.array(JITTERS))
        self.verdict, self.watch = VERDICT.place(rows_not_definite), Watch()
        super().__init__(X, *others[:-1], Threads(1))
        self.most_heavy = min(n - 1, len(self.root))
        self.products = cp.zeros((self.n_chains, self.most_heavy, n))

    def _heaviest(self, heavy, weight):
        return cp.where(heavy, weight, 0.0).argsort()[len(weight) - self.most_heavy :]

    def _unfinished(self, flags, attempt):
        return range(self.n_chains) if self.watch.any_left(flags, attempt) else ()

    def _kernel(self, name):
        return kernel("collapsed", name, element(self.X))

    # Columns of X ----------------------------------------------------------------------------------------------------

    def _fill(self, first, block):
        self._launch_fill(self.X, self.order, self.centre, self.root[first:], first, block)

    def _launch_fill(self, X, order, centre, root, first, block):
        sizes = i64(block.size), i32(block.shape[1]), i32(len(order))
        function = self._kernel("fill_columns")
        launch(function, blocks_for(block.size), X, order, centre, root, i64(first), block, *sizes)

    def _columns(self, which):
        """As ``Collapsed._columns``, for which of any shape."""
        n = len(self.X)
        out = cp.empty((*which.shape, n))
        sizes = i64(out.size), i32(n), i32(len(self.order))
        given = self.X, self.order, self.centre, self.root, which, out
        launch(self._kernel("gather_columns"), blocks_for(out.size), *given, *sizes)
        return out

    # The n x n matrices ----------------------------------------------------------------------------------------------

    def _invert(self, P, build):
        self._factorise(P, build)
        log_det = 2.0 * np.log(diagonal(P)).sum()
        inverse = self.scratch
        inverse[...] = 0.0
        diagonal(inverse)[...] = 1.0
        solve_lower(P, inverse)  # row j is column j of L^-1
        cp.matmul(inverse, inverse.T, out=P)
        return log_det

    def _factorise(self, P, build):
        V = self.scratch
        V[...] = P
        potrf(P, self.workspace, self.info)
        n = i32(len(P))
        again = self.info, self.jitters, i32(len(self.jitters)), self.verdict
        launch(kernel("scales", "repair"), 1, V, self.no_diagonal, P, n, *again, shared_bytes=16)

    def _add_heavy(self, c, P, columns, weights):
        factors, precision, rise = cp.empty_like(weights), cp.empty_like(weights), cp.empty(1)
        out = factors, precision, self.products[c], rise
        sizes = i32(len(P)), i32(len(weights))
        launch(self._kernel("add_heavy"), 1, P, diagonal(P).copy(), columns, weights, *out, *sizes, **_SUMS)
        return rise[0], factors, precision, self.products[c]

    def _draw_heavy(self, joined, rest, noise):
        coef = cp.empty_like(noise)
        given = self._columns(joined.which), joined.weights, joined.precision, joined.products, noise
        sizes = i32(len(rest)), i32(len(coef))
        launch(self._kernel("draw_heavy"), 1, *given, rest, coef, *sizes, **_SUMS)
        return coef

    def quadratic_form(self, P, z):
        return self._forms(P, z, times_each(P, z))[:, 0]

    def _forms(self, P, z, Pz):
        """z'Pz, the trace of P and 0 for each chain."""
        out = cp.empty((len(P), 3))
        function = self._kernel("quadratic_forms")
        launch(function, len(P), P, z, Pz, out, i32(z.shape[1]), **_SUMS)
        return out

    @staticmethod
    def _information(eta):
        """phi(eta)^2 / (Phi(eta) Phi(-eta)); (n,)."""
        return information_of(eta, cp.empty_like(eta))

    # Draws -----------------------------------------------------------------------------------------------------------

    def latent(self, z, n_scans, index, sweep, key):
        z = z.copy()
        sizes = i32(z.shape[1]), i32(n_scans), i32(n_scans * index)
        given = z, times_each(self.P, z), self.P, self.y, *sizes, *random_arguments(key, sweep)
        launch(self._kernel("scan_latent"), len(z), *given, shared_bytes=8 * 4)
        return z

    def _draw_latent(self, mean, scan, sweep, key):
        mean, z = cp.ascontiguousarray(mean), cp.empty(mean.shape)
        sizes = i64(z.size), i32(z.shape[1]), i32(scan)
        launch(self._kernel("draw_latent"), blocks_for(z.size), mean, self.y, z, *sizes, *random_arguments(key, sweep))
        return z

    def length(self, z, index, sweep, key):
        z = z.copy()
        given = z, self._forms(self.P, z, times_each(self.P, z)), i32(z.shape[1]), np.uint32(index)
        launch(self._kernel("scale_latent"), len(z), *given, *random_arguments(key, sweep))
        return z

    def _scan_local_scales(self, lambda_sq_inv, z, closeness, n_columns, tau_sq_inv, index, sweep, key):
        """Some lambda_j are drawn from the products of their columns with one another; then P follows all of them."""
        which, forms = closest(closeness, n_columns), self._forms(self.P, z, times_each(self.P, z))
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


def closest(closeness, n_columns):
    """As the CPU's, of each chain."""
    which = (-closeness).argsort(axis=-1, kind="stable")[..., :n_columns].copy()
    which.sort()
    return which


def collapsed_rows(X, *others):
    """``CollapsedRows`` of an X on the GPU, or of a ``Streamed``."""
    return (_StreamedRows if isinstance(X, Streamed) else CollapsedRows)(X, *others)


class _StreamedRows(CollapsedRows):
    """X : ``Streamed``. Its columns are on the GPU in the order of the coefficients."""

    def __init__(self, X, y, order, centre, scale, *others):
        self.on_host = order, centre
        super().__init__(X, y, np.arange(len(order)), centre[order], scale[order], *others)

    def _fill(self, first, block):
        some = slice(first, first + block.shape[1])
        numbers = self.on_host[0][some]

        def read(part):
            self._launch_fill(part, self.order[: part.shape[1]], self.centre[some], self.root[first:], 0, block)

        self.X.columns(_neighbours(numbers), read)

    def _columns(self, which):
        """The host waits for the numbers."""
        asked, (order, centre) = cp.asnumpy(which).ravel(), self.on_host
        out = np.ones((len(asked), len(self.X)))
        inside = asked < len(order)
        j = order[asked[inside]]
        out[inside] = (self.X[:, j] - centre[j]).T
        return (brought(out) * self.root[which.reshape(-1)][:, None]).reshape(*which.shape, -1)


def _neighbours(numbers):
    """Numbers of columns, as a slice if they are those of neighbours: these are copied many times as fast."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return slice(int(numbers[0]), int(numbers[-1]) + 1)
    return numbers
