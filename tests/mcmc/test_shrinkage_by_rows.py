"""kappa from a matrix over the rows is that of its definition, a ratio of two variances."""

import numpy as np
import pytest
import scipy.sparse as sp

from skhorseshoe._backends._cpu import dense, sparse
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._model import PROBIT
from skhorseshoe._utils.threads import Threads

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")
N, P = 200, 30  # so many rows that NumPy computes in place, in the order of columns
RNG = np.random.default_rng(5)
X = np.where(RNG.random((N, P)) < 0.4, RNG.standard_normal((N, P)) + 1.0, 0.0)
X[:, 7] = 0.0  # a constant column, of which the data tell nothing
Y = (np.arange(N) % 2).astype(np.uint8)
WEIGHT = RNG.integers(1, 4, N).astype(float)


def by_definition(rows, fixed, beta, precision):
    """From X'F X and the prior, all p x p."""
    c, dense_X = rows.columns, rows.X.toarray() if sp.issparse(rows.X) else rows.X
    points = c.of_X(beta)
    eta = dense_X @ points[:, :P].T + (points[:, P] if c.fit_intercept else 0.0)
    information = PROBIT.information(eta).mean(axis=1) * (rows.weight if len(rows.weight) else 1.0)
    Z = ((dense_X - c.centre) / c.unit)[:, c.order]
    Z = np.column_stack([Z, np.ones(N)]) if c.fit_intercept else Z
    H = fixed.add_to(Z.T @ (information[:, None] * Z))
    n_shrunk = c.n_shrunk
    out = []
    for d in precision:  # with the slab's
        Q = H.copy()
        Q[np.arange(n_shrunk), np.arange(n_shrunk)] += d - fixed.diagonal[:n_shrunk]
        out.append(d * np.linalg.inv(Q).diagonal()[:n_shrunk])
    return np.array(out)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["no weights", "weights"])
@pytest.mark.parametrize("form", [np.asarray, np.float32, sp.csr_array], ids=["dense", "float32", "sparse"])
def test_shrinkage_by_rows_is_a_ratio_of_variances(form, weight, standardize, fit_intercept):
    unpenalized = np.arange(P) == 3
    ops = sparse if form is sp.csr_array else dense
    how = {"weight": weight, "unpenalized": unpenalized, "standardize": standardize}
    rows = Rows(form(X), Y, fit_intercept, ops, Threads(1), **how)
    fixed, q = FixedPrior(rows.columns, 2.0), P + fit_intercept
    beta = RNG.standard_normal((5, q)) * 0.3
    precision = 0.25 + np.exp(3 * RNG.standard_normal((2, P - 1)))
    several = 1000  # blocks of rows, and of columns
    kappa = ops.ShrinkageByRows(*rows.information_by_rows(beta), fixed.variances, size=several)(precision)
    np.testing.assert_allclose(
        kappa, by_definition(rows, fixed, beta, precision), rtol=2e-4 if form is np.float32 else 1e-8
    )
    assert kappa.min() < 0.5 < kappa.max()
