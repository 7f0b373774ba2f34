"""Conjugate gradients in place of Cholesky factors: the same solutions and the same laws."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.conjugate_gradients import GramByPasses, GramMatrix, IterativePrecision
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._utils.threads import open_threads
from skhorseshoe.selection import HorseshoeSelector

KEY = np.array([5, 6], dtype=np.uint32)
FORMS = ["rows", "matrix"]
SETTINGS = {}, {"standardize": True, "unpenalized": np.arange(9) == 4}, {"fit_intercept": False}
CASES = [*product(FORMS, SETTINGS), ("rows", {"weight": np.linspace(0.5, 2.0, 300)})]


@pytest.fixture
def everywhere(sizes):
    """Conjugate gradients for any number of columns."""
    sizes(columns_of_a_cholesky_factor=0)


def made(seed, n=300, p=9):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, p)) < 0.3, rng.standard_normal((n, p)) + 1, 0.0)
    X[:, 1] += 0.9 * X[:, 0]  # two columns that stand in for each other
    X[:, 5] = 0.0
    y = 0.7 * X[:, 0] - X[:, 2] + rng.standard_normal(n) > 0
    return sp.csr_array(X), y.astype(np.uint8)


def both(seed, form, *, slab=0.1, weight=None, fit_intercept=True, **settings):
    """The solver, the matrix H that it stands for, and its prior precisions d for 200 chains."""
    X, y = made(seed)
    X, ops = (X, sparse) if form == "rows" else (X.toarray(), cpu)
    rows = Rows(X, y, fit_intercept, ops, ALONE, weight=weight, **settings)
    fixed = FixedPrior(rows.columns, slab)
    if form == "rows":
        solver = IterativePrecision(GramByPasses(rows, fixed, KEY, () if weight is None else weight))
    else:
        solver = IterativePrecision(GramMatrix(rows.gram(), rows, fixed, KEY))
    d = np.random.default_rng(seed).exponential(size=(200, len(fixed.anchor))) ** 3 * 10
    d[:, rows.columns.n_shrunk :] = 0.0
    return solver, fixed.add_to(rows.gram()), d


def matrices(H, d):
    return H + d[:, :, None] * np.eye(len(H))


@pytest.mark.parametrize(("form", "settings"), CASES)
def test_it_solves_the_equations(form, settings, seed):
    solver, H, d = both(seed, form, **settings)
    b = 30 * np.random.default_rng(seed).standard_normal(d.shape)
    Q = matrices(H, d)
    np.testing.assert_allclose(solver.form.times(b), b @ H, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(solver.form.diagonal, np.diag(H), rtol=1e-9)
    want = np.linalg.solve(Q, b[:, :, None])[:, :, 0]
    # In units of the posterior's standard deviations.
    np.testing.assert_array_less(abs(solver.solve(b, d) - want) / np.sqrt(np.linalg.inv(Q).diagonal(0, 1, 2)), 1e-4)


@pytest.mark.parametrize("form", FORMS)
def test_a_chain_is_solved_as_if_it_were_alone(form, seed):
    solver, _, d = both(seed, form)
    b = np.random.default_rng(seed).standard_normal(d.shape)
    b[3] = 0.0  # this one is done before it starts
    together = solver.solve(b, d)
    for c in (0, 3, 150):
        np.testing.assert_allclose(solver.solve(b[[c]], d[[c]])[0], together[c], rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("form", "settings"), CASES)
def test_draws_have_the_mean_and_the_covariance_of_the_law(form, settings, seed):
    solver, H, d = both(seed, form, **settings)
    b = 30 * abs(np.random.default_rng(seed).standard_normal(d.shape))  # so that means do not cancel
    Q = matrices(H, d)
    factor, mean = np.linalg.cholesky(Q), np.linalg.solve(Q, b[:, :, None])[:, :, 0]
    white = []
    for sweep in range(20):
        offsets = solver.draw(b, d, solver.noise(sparse, d.shape, KEY, sweep)) - mean
        white.append(np.einsum("cji,cj->ci", factor, offsets))
    white = np.concatenate(white)
    n = len(white)
    assert (abs(white.mean(axis=0)) < 5 / np.sqrt(n)).all()
    np.testing.assert_allclose(white.T @ white / n, np.eye(len(H)), atol=5 * np.sqrt(2 / n))


@pytest.mark.parametrize("form", FORMS)
def test_the_scale_move_is_that_of_the_factorised_matrix(form, seed):
    solver, H, d = both(seed, form)
    rng = np.random.default_rng(seed)
    b, gamma = 30 * rng.standard_normal(d.shape), rng.gamma(50.0, size=len(d))
    total = 1e4 + rng.exponential(size=len(d))
    nothing = np.zeros_like(b), np.zeros_like(b)
    ours = solver.draw(b, d, nothing, total, gamma)
    theirs = sparse.Precision(H, ALONE).draw(b, d, np.zeros_like(b), total, gamma)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_diagonal_of_the_inverse_is_estimated_without_bias(form, seed):
    solver, H, d = both(seed, form)
    want = np.linalg.inv(matrices(H, d)).diagonal(0, 1, 2)
    ratios = np.array([(solver.inverse_diagonal(d, sweep) / want).mean(axis=0) for sweep in range(40)])
    error = ratios.std(axis=0, ddof=1) / np.sqrt(len(ratios))
    np.testing.assert_array_less(abs(ratios.mean(axis=0) - 1), 5 * error + 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_the_information_takes_the_place_of_the_likelihood_of_z(form, seed):
    solver, _, d = both(seed, form)
    rows, beta = solver.form.rows, np.random.default_rng(seed).uniform(-0.5, 0.5, (3, d.shape[1]))
    want = FixedPrior(rows.columns, 0.1).add_to(rows.information(beta))
    units = np.eye(len(want))
    np.testing.assert_allclose(solver.information(beta).form.times(units), want, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n_threads", [2, 3])
def test_products_have_the_same_bits_for_any_number_of_threads(n_threads, seed):
    rng = np.random.default_rng(seed)
    v, A = rng.standard_normal((4, 301)), rng.standard_normal((301, 301))
    M = A + A.T
    with open_threads(n_threads) as threads:
        ours = cpu.times_symmetric(v, M, threads)
    np.testing.assert_array_equal(ours, cpu.times_symmetric(v, M, ALONE))
    np.testing.assert_allclose(ours, v @ M, rtol=1e-12, atol=1e-12)


def test_more_columns_than_rows_have_a_root_too(seed):
    """X'X is singular then; its diagonal is raised by as little as helps."""
    A = np.random.default_rng(seed).standard_normal((5, 9))
    H = A.T @ A
    L = cpu.Root(H.copy()).times(np.eye(9)).T
    np.testing.assert_allclose(L @ L.T, H, rtol=1e-6, atol=1e-8 * np.trace(H))


def test_where_steps_do_not_end_a_held_matrix_is_factorised(seed):
    solver, H, d = both(seed, "matrix")
    b = 30 * np.random.default_rng(seed).standard_normal(d.shape)
    solver.form.most_steps = 2
    want = np.linalg.solve(matrices(H, d), b[:, :, None])[:, :, 0]
    np.testing.assert_allclose(solver.solve(b, d), want, rtol=1e-8, atol=1e-10)


def test_steps_that_do_not_end_are_an_error_with_a_cure(seed):
    solver, _, d = both(seed, "rows")
    solver.form.most_steps = 2
    with pytest.raises(np.linalg.LinAlgError, match=r"slab_scale='per_contrast' .*standardize=True"):
        solver.solve(np.ones_like(d), d)


def test_auto_takes_it_where_factors_take_too_long(everywhere, seed):
    X, y = made(seed)
    clf = HorseshoeProbitClassifier(n_iter=5, burn_in=10, slab_scale=None, random_state=seed)
    assert clf.fit(X, y).sampler_ == "pxda"
    assert clf.fit(X.toarray(), y).sampler_ == "pxda"
    assert clf.fit(X.toarray()[:7], y[:7] | (np.arange(7) < 2)).sampler_ == "pxda"  # more columns, but no slab
    clf.set_params(slab_scale=2.0)
    assert clf.fit(X[:7], y[:7] | (np.arange(7) < 2)).sampler_ == "hmc"
    clf.set_params(slab_scale=None)
    # Only "hmc" can have these weights.
    assert clf.fit(X, y, sample_weight=np.full(len(y), 0.5)).sampler_ == "hmc"
    with pytest.warns(UserWarning, match="repeats each row"):  # but for so many columns its matrices have no room
        assert clf.fit(X, y, sample_weight=np.full(len(y), 11.0)).sampler_ == "pxda"


def test_the_selector_names_the_rules_that_need_no_matrix(everywhere, monkeypatch, seed):
    X, y = made(seed)
    clf = HorseshoeProbitClassifier(n_iter=5, burn_in=5, random_state=seed)
    with monkeypatch.context() as patched:
        patched.delattr(HorseshoeProbitClassifier, "fit")  # it is not fitted for nothing
        with pytest.raises(ValueError, match="'interval' or 'fsr'"):
            HorseshoeSelector(clf, rule="dss").fit(X, y)
    assert HorseshoeSelector(clf, rule="shrinkage").fit(X, y).support_.shape == (9,)
