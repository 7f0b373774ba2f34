"""The shrinkage factors of more columns than rows, from a matrix over the rows.

kappa_j = var(beta_j | y, scales) / var(beta_j | scales). With the prior variances w, the columns x_j at their means and
the Fisher information F of the rows, a diagonal, it is 1 - w_j x_j' (F^-1 + X W X')^-1 x_j by Woodbury's identity.
"""

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk, dtrsm
from scipy.sparse import issparse

from ..._utils.memmap import cut
from ..device import to_host
from .library import function
from .passes import rows_of

_quadratic_forms = function("quadratic_forms")
_NUMBERS_AT_A_TIME = 2**20  # of X, in a block of rows or columns


class ShrinkageByRows:
    """kappa given the scales, with the Fisher information averaged over coefficients beta (m, q).

    rows : ``Rows``. information : (n,) of rows, times their weights, if it is known otherwise, or None. shared : of
    each factor the group of each row (n,) and values v_i (n, k), and v_i v_j' is a further covariance of rows of one
    group; or None. variances :
    of the prior of coefficients that are not shrunk. size : numbers of X in a block of rows or columns.
    """

    def __init__(self, rows, beta, information, shared, variances, size=_NUMBERS_AT_A_TIME):
        X, columns, p = to_host(rows.X), rows.columns, rows.shape[1]
        points = columns.of_X(beta)
        intercept = points[:, p] if columns.fit_intercept else 0.0
        if information is None:
            blocks = (X[block] for block in cut(0, X.shape[0], max(1, size // p)))
            etas = (block @ points[:, :p].T + intercept for block in blocks)
            information = np.concatenate([rows.likelihood.information(eta).mean(axis=1) for eta in etas])
            weight = to_host(rows.weight)
            information = information * weight if len(weight) else information
        self.root, self.shared = np.sqrt(information), shared
        made = (X, columns, self.root)
        self.columns = _SparseColumns(*made) if issparse(X) else _DenseColumns(*made, size)
        self.n_shrunk, self.variances, self.threads = columns.n_shrunk, variances, rows.threads

    def __call__(self, precision):
        """kappa (n_chains, n_shrunk). precision : of the prior given the scales, slab included; the same shape."""
        out = np.empty(precision.shape)

        def compute(first, last):
            for c in range(first, last):
                out[c] = self._kappa(1.0 / precision[c], c)

        self.threads.run(compute, len(out))
        return out

    def _kappa(self, w, c):
        root = self.root
        V = self.columns.outer(np.append(w, self.variances))
        for codes, values in self.shared or ():
            values = values * root[:, None]
            V += (codes[:, None] == codes) * (values @ values.T)
        V[np.diag_indices_from(V)] += 1.0
        L = np.linalg.cholesky(V)  # reads the lower triangle
        return np.clip(1.0 - w * self.columns.forms(L)[: self.n_shrunk], 0.0, 1.0)


class _DenseColumns:
    """Z = F^(1/2) times the centred columns of X, in the sampler's order and unit, and that of the intercept."""

    def __init__(self, X, columns, root, size):
        self.X, self.columns, self.root, self.size = X, columns, root, size
        self.mean = columns.mean_of_X if columns.fit_intercept else np.zeros(X.shape[1])
        self.blocks = list(self._blocks()) if X.size <= size else None

    def _blocks(self):
        """Blocks of columns: a slice, and these columns of Z, transposed (k, n)."""
        (n, p), c = self.X.shape, self.columns
        for columns in cut(0, p, max(1, self.size // n)):
            of_X = c.order[columns] if c.reorders else columns
            block = (self.X[:, of_X] - self.mean[of_X]) / c.unit[of_X]
            yield columns, np.ascontiguousarray((block * self.root[:, None]).T)
        if c.fit_intercept:
            yield slice(p, p + 1), self.root[None]

    def outer(self, w):
        """Z W Z' (n, n), of which the lower triangle is valid. w : (q,)."""
        total = np.zeros((len(self.X), len(self.X)), order="F")
        for columns, block in self.blocks or self._blocks():
            scaled = block * np.sqrt(w[columns])[:, None]
            total = dsyrk(1.0, scaled.T, beta=1.0, c=total, lower=1, overwrite_c=1)
        return total

    def forms(self, L):
        """The squared lengths of L^-1 z_j; (q,)."""
        out = np.empty(len(self.columns.q_order))
        for columns, block in self.blocks or self._blocks():
            solved = dtrsm(1.0, L.T, block.T, lower=0, trans_a=1).T
            out[columns] = np.einsum("jk,jk->j", solved, solved)
        return out


class _SparseColumns:
    """As ``_DenseColumns``, for a CSR matrix; means are subtracted from the results."""

    def __init__(self, X, columns, root):
        self.root = root
        unit = columns.unit[columns.order]
        self.X = X.astype(np.float64).tocsc()[:, columns.order].multiply(1.0 / unit).tocsc()
        mean = columns.mean_of_X if columns.fit_intercept else np.zeros(len(unit))
        self.mean, self.fit_intercept = mean[columns.order] / unit, columns.fit_intercept

    def outer(self, w):
        p = len(self.mean)
        scaled = self.X.multiply(w[:p]).tocsr()
        across = scaled @ self.mean
        total = (scaled @ self.X.T).toarray() - across[:, None] - across
        total += self.mean @ (w[:p] * self.mean) + (w[p] if self.fit_intercept else 0.0)
        return total * (self.root[:, None] * self.root)

    def forms(self, L):
        inverse = solve_triangular(L, np.diag(self.root), lower=True, check_finite=False)
        P = inverse.T @ inverse
        out = np.empty(len(self.mean))
        _quadratic_forms(rows_of(self.X.T), P, out)
        ones = P.sum(axis=0)
        return out - 2.0 * self.mean * (self.X.T @ ones) + self.mean**2 * ones.sum()
