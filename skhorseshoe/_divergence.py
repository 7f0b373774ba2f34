"""The quadratic form v'Sv, S = X'WX, by which rule "dss" measures distances: held as S, or as the rows of W^(1/2) X.

Rows serve where they are fewer than the columns: 100 rows of 20,000 columns take 16 MB, their S takes 3.2 GB.
"""

from functools import cached_property

import numpy as np
from scipy.sparse import issparse
from sklearn.linear_model import lars_path, lars_path_gram

JITTER = 1e-12  # relative, for columns that others can stand in for


class ByMatrix:
    """S itself, (q, q)."""

    def __init__(self, S):
        self.S = S

    @cached_property
    def diagonal(self):
        """That of S; (q,)."""
        return self.S.diagonal()

    def profiled(self, out):
        """The form of the others where the coefficients of the columns ``out`` (q,) take whatever values suit best."""
        if not out.any():
            return self
        rest = self.S[np.ix_(~out, ~out)]
        inner, cross = self.S[np.ix_(out, out)], self.S[np.ix_(out, ~out)]
        scale = _scale(inner.diagonal())[:, None]
        best = np.linalg.lstsq(inner / scale / scale.T, cross / scale, rcond=None)[0]
        left = rest - (cross / scale).T @ best
        nothing = left.diagonal() <= JITTER * rest.diagonal()
        left[nothing], left[:, nothing] = 0.0, 0.0
        return ByMatrix(left)

    def scaled(self, units, columns, size):
        """The form of coefficients in these units, of some columns alone, over size."""
        return ByMatrix((units[:, None] * self.S * units)[np.ix_(columns, columns)] / size)

    def of(self, v):
        """v'Sv for each row of v (m, q)."""
        return np.einsum("ij,ij->i", v @ self.S, v)

    @cached_property
    def times_ones(self):
        """S 1; (q,)."""
        return self.S.sum(axis=1)

    def block(self, columns):
        """S of some columns, a copy."""
        return self.S[np.ix_(columns, columns)]

    def path(self, steps):
        """The lasso path towards coefficients that are all 1; (q, k)."""
        return lars_path_gram(self.times_ones, self.S, n_samples=1, max_iter=steps, method="lasso")[2]


class ByRows:
    """R (n, q) with R'R = S. The methods are those of ``ByMatrix``."""

    def __init__(self, R):
        self.R = R

    @cached_property
    def diagonal(self):
        return _squares(self.R)

    def profiled(self, out):
        if not out.any():
            return self
        rest, given = self.R[:, ~out], self.R[:, out]
        given /= _scale(_squares(given))
        left = rest - given @ np.linalg.lstsq(given, rest, rcond=None)[0]
        left[:, _squares(left) <= JITTER * _squares(rest)] = 0.0
        return ByRows(left)

    def scaled(self, units, columns, size):
        return ByRows(self.R[:, columns] * (units[columns] / np.sqrt(size)))

    def of(self, v):
        return _squares((v @ self.R.T).T)

    @cached_property
    def times_ones(self):
        return self.R.T @ self.R.sum(axis=1)

    def block(self, columns):
        return self.R[:, columns].T @ self.R[:, columns]

    def path(self, steps):
        return lars_path(self.R, self.R.sum(axis=1), Gram=None, max_iter=steps, method="lasso")[2]


def weighted_rows(ops, X, weight, centre, points, fit_intercept):
    """W^(1/2) (X - centre), with a column for the intercept if there is one; (n, q) float64.

    weight : (n,) or (0,) for none. points : (m, q), at which the Fisher information of a row is averaged.
    """
    n, p = X.shape
    R = np.ones((n, p + fit_intercept))
    R[:, :p] = X.toarray() if issparse(X) else X
    R[:, :p] -= centre
    information = ops.information_weights(R, points, 0.0)
    R *= np.sqrt(information * weight if len(weight) else information)[:, None]
    return R


def _squares(R):
    """The sum of squares of each column."""
    return np.einsum("ij,ij->j", R, R)


def _scale(squares):
    return np.sqrt(np.where(squares == 0, 1.0, squares))
