"""Columns that are not shrunk, and are principal components of the shrunk ones or sums of them."""

import numpy as np
from scipy.sparse import csr_array, issparse

_FEWEST = 10  # shrunk columns, of which components are told
_SAME = 0.98  # least cosine between a column and its product with the Gram matrix of the rows
_LEADING = 2.0  # least variance along it, as a multiple of that along a usual direction
_MOST_COLUMNS = 200  # for a regression on all of them
_LEFT = 1e-6  # largest share of the variance of a column that such a regression leaves


def spanned(X, free, shrunk, unit, n):
    """The numbers among ``free`` of such columns, according to a sample of the rows.

    A component is an eigenvector of the Gram matrix K of the rows, K = X X', with a variance above that of most
    directions: with more columns than rows all columns of this length are sums of the others, and of many columns of
    noise all are nearly eigenvectors.

    X : (m, p), dense or sparse. shrunk : numbers of the columns. unit : (p,) divisors of these in the prior. n : number
    of the user's rows that X stands for, of which equal ones may be one row of X.
    """
    if not len(free) or len(shrunk) < _FEWEST or len(free) >= X.shape[0]:
        return free[:0]
    U, S = (X[:, columns].astype(np.float64) for columns in (free, shrunk))
    U = U.toarray() if issparse(U) else U
    S = csr_array(S) if issparse(S) else S  # of a matrix * would be the matrix product
    U -= U.mean(axis=0)
    mean, squares = np.asarray(S.mean(axis=0)).ravel(), np.asarray((S * S).mean(axis=0)).ravel()
    weight = unit[shrunk] ** -2.0
    KU = S @ ((S.T @ U) * weight[:, None])
    KU = np.asarray(KU) - KU.mean(axis=0)
    length, total = np.linalg.norm(U, axis=0), float(np.maximum(squares - mean**2, 0) @ weight)
    with np.errstate(all="ignore"):  # of constant columns
        along = (U * KU).sum(axis=0) / length**2
        found = (along * length / np.linalg.norm(KU, axis=0) >= _SAME) & (along >= _LEADING * total)
    if not issparse(S) and 2 * len(shrunk) + 2 <= n and len(shrunk) <= _MOST_COLUMNS:
        some = slice(2 * len(shrunk) + 2)
        own, others = U[some], np.column_stack([S[some] - mean, np.ones(len(S[some]))])
        left = np.linalg.norm(own - others @ np.linalg.lstsq(others, own, rcond=None)[0], axis=0)
        found |= (left <= np.sqrt(_LEFT) * np.linalg.norm(own, axis=0)) & (length > 0)
    return free[found]
