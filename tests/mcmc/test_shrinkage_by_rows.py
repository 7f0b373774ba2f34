"""kappa from a matrix over the rows is that of its definition, a ratio of two variances."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import KEY

from skhorseshoe._backends._cpu import dense, sparse
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem
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


def with_groups(kind):
    """``Groups`` of these rows, and by factor the values by which rows multiply effects and the codes of rows."""
    first, second = (np.arange(N) % 5).astype(np.int32), RNG.integers(0, 3, N).astype(np.int32)
    ones, slope = np.ones(N), (X[:, 3] - X[:, 3].mean()) / X[:, 3].std()
    if kind == "one factor":
        return Groups(first, 5, 1.0), [(ones, first)]
    if kind == "two factors":
        levels, codes = np.unique(np.stack([first, second], axis=1), axis=0, return_inverse=True)
        names = "first", "second"
        groups = Groups(codes.ravel().astype(np.int32), len(levels), (1.0, 0.5), levels.astype(np.int32), names)
        return groups, [(ones, first), (ones, second)]
    levels, names = np.stack([first, first, second], axis=1), ("first", "first:x", "second")
    groups = Groups(np.arange(N, dtype=np.int32), N, (1.0, 0.5, 0.7), levels, names, (None, 3, None))
    return groups, [(ones, first), (slope, first), (ones, second)]


@pytest.mark.parametrize("kind", ["one factor", "two factors", "slopes"])
def test_with_groups_effects_are_integrated_out_of_both_forms(kind):
    """By rows and by columns kappa is a ratio of variances in one Gaussian of coefficients and effects."""
    (groups, factors), m = with_groups(kind), 4
    rows = Rows(X, Y, True, dense, Threads(1), groups=groups)
    fixed, beta = FixedPrior(rows.columns, 2.0), RNG.standard_normal((m, P + 1)) * 0.3
    block = GroupEffects(Problem(rows, fixed, 1.0, KEY), m)
    for family in block.families:
        family.root[1, 0] = -0.8 * family.root[1, 1]
        family._tell()
    block.mark(beta)

    places = np.cumsum([0, *(codes.max() + 1 for _, codes in factors)])
    of_effects = np.zeros((N, places[-1]))
    for k, (slope, codes) in enumerate(factors):
        of_effects[np.arange(N), places[k] + codes] = slope
    prior = np.diag(np.exp(-2 * np.log(np.atleast_2d(block.scale)).mean(axis=1)).repeat(np.diff(places)))
    for family in block.families:
        root = np.sqrt(np.einsum("kkc->kc", family.precision))
        partial = (family.precision / root[:, None] / root).mean(axis=2)
        off = partial[0, 1] * np.exp(np.log(root).mean(axis=1)).prod() * np.eye(5)
        prior[:5, 5:10], prior[5:10, :5] = off, off
    c = rows.columns
    points = c.of_X(beta)
    eta = X @ points[:, :P].T + points[:, P] + of_effects @ block.effects
    design = np.column_stack([((X - c.centre) / c.unit)[:, c.order], np.ones(N), of_effects])
    (precision,) = of_chain = 0.25 + np.exp(3 * RNG.standard_normal((1, P)))

    def with_prior(H):
        fixed.padded(len(H) - P - 1).add_to(H)
        H[np.arange(P), np.arange(P)] += precision - fixed.diagonal[:P]
        return precision * np.linalg.inv(H).diagonal()[:P]

    def of_joint(information):
        joint = design.T @ (information[:, None] * design)
        joint[P + 1 :, P + 1 :] += prior
        return with_prior(joint)

    expected = of_joint(PROBIT.information(eta).mean(axis=1))
    by_rows = dense.ShrinkageByRows(*block.rows.information_by_rows(beta), fixed.variances)(of_chain)[0]
    np.testing.assert_allclose(by_rows, expected, rtol=1e-6)
    toward, h = np.where(Y[:, None], eta, -eta), 1e-3
    second = sum(k * PROBIT.log_density(toward + by) for k, by in ((1, h), (-2, 0.0), (1, -h))) / h**2
    of_y = -second.mean(axis=1)
    np.testing.assert_allclose(with_prior(block.rows.information(beta)), of_joint(of_y), rtol=1e-2)
    assert expected.min() < 0.5 < expected.max()
