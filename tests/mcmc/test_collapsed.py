"""The sampler with the coefficients integrated out: its algebra against dense formulas, whole runs against
the other samplers."""

import numpy as np
import pytest
from laws import ALONE, KEY, TAU_0, peak_memory, same_draws
from scipy.special import log_ndtr

from skhorseshoe._backends import collapsed_base
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu.collapsed import closest
from skhorseshoe._mcmc import collapsed
from skhorseshoe._utils.threads import open_threads
from skhorseshoe.datasets import make_correlated_probit


class Problem:
    """Scaled and centred columns in an order of their own, the last of them not shrunk, and an intercept."""

    def __init__(self, n, p, n_chains, slab_precision=0.25, dtype=np.float64, threads=ALONE):
        rng = np.random.default_rng(n + p)
        self.X = rng.standard_normal((n, p)).astype(dtype)
        self.y = rng.integers(0, 2, n).astype(np.uint8)
        self.order = rng.permutation(p)
        self.centre, self.scale, self.anchor = rng.standard_normal((3, p))
        self.scale = np.exp(self.scale)
        self.lambda_sq_inv, self.tau_sq_inv = np.exp(rng.standard_normal((n_chains, p - 1))), np.full(n_chains, 2.0)
        self.slab_precision = slab_precision
        self.rows = cpu.CollapsedRows(
            *(self.X, self.y, self.order, self.centre, self.scale, self.anchor),
            *(np.array([3.0, 100.0]), slab_precision, n_chains, threads),
        )
        self.columns = np.column_stack([((self.X - self.centre) / self.scale)[:, self.order], np.ones(n)])

    def variances(self, c):
        shrunk = 1 / (self.tau_sq_inv[c] * self.lambda_sq_inv[c] + self.slab_precision)
        return np.concatenate([shrunk, [3.0, 100.0]])

    def V(self, c):
        return np.eye(len(self.X)) + (self.columns * self.variances(c)) @ self.columns.T

    def set(self):
        self.rows.set(self.lambda_sq_inv, self.tau_sq_inv)
        return self


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "p"), [(2, 1), (5, 3), (7, 40), (70, 3000)])
def test_inverse_and_determinant_equal_dense_ones(n, p, dtype):
    problem = Problem(n, p, 2, dtype=dtype).set()
    for c in range(2):
        np.testing.assert_allclose(problem.rows.P[c], np.linalg.inv(problem.V(c)), rtol=1e-7, atol=1e-12)
        np.testing.assert_allclose(problem.rows.log_det[c], np.linalg.slogdet(problem.V(c))[1], rtol=1e-9)


def test_huge_weights_do_not_cost_the_others_their_digits():
    """In the limit of infinite weights P is the inverse on the space that is orthogonal to these columns."""
    problem = Problem(12, 30, 1, slab_precision=0.0)
    problem.lambda_sq_inv[0, [3, 8, 20]] = 1e-30, 1e-40, 1e-24
    P = problem.set().rows.P[0]
    light = problem.variances(0)
    light[[3, 8, 20]] = 0.0
    V = np.eye(12) + (problem.columns * light) @ problem.columns.T
    basis = np.linalg.svd(problem.columns[:, [3, 8, 20]])[0][:, 3:]
    np.testing.assert_allclose(P, basis @ np.linalg.inv(basis.T @ V @ basis) @ basis.T, atol=1e-12)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 4, 6])
def test_of_equally_close_columns_the_first_are_taken(n_columns):
    closeness = np.array([3.0, 1.0, 3.0, 2.0, 3.0, 0.0])
    want = np.sort(np.argsort(-closeness, kind="stable")[:n_columns])
    np.testing.assert_array_equal(closest(closeness, n_columns), want)


@pytest.mark.parametrize("slab_precision", [0.0, 0.25])
@pytest.mark.parametrize("held", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("heavy", [[], [1e-10, 1e-12]])
def test_density_of_tau_is_that_of_fresh_matrices(slab_precision, held, heavy):
    """Columns that are held keep lambda_j tau, whatever is known of V from before; the heavy ones are of both kinds."""
    n, rng = 12, np.random.default_rng(3)
    problem = Problem(n, 40, 2, slab_precision)
    problem.lambda_sq_inv[:, : len(heavy)] = heavy
    z, chances = rng.standard_normal((2, n)), np.full(problem.lambda_sq_inv.shape, 1.0 - held)
    chances[:, 0] = 0.0
    problem.set()
    density = collapsed_base.DensityOfTau(problem.rows, z, problem.lambda_sq_inv, problem.tau_sq_inv, 0.5, chances)
    for shift in [0.7, -1.3], [0.0, 0.4]:
        shift = np.array(shift)
        density(shift, range(2))
        P, log_det, growth = problem.rows.spare.copy(), problem.rows.log_det.copy(), np.exp(2 * shift)
        moved = Problem(n, 40, 2, slab_precision)
        moved.tau_sq_inv = problem.tau_sq_inv / growth
        moved.lambda_sq_inv = np.where(density.held, growth[:, None], 1.0) * problem.lambda_sq_inv
        moved.set()
        np.testing.assert_allclose(P, moved.rows.P, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(log_det, moved.rows.log_det, rtol=1e-9)


@pytest.mark.parametrize(("n_threads", "kept"), [(1, 0), (1, 2**20), (3, 0), (3, 2**20)])
def test_coefficients_have_the_mean_of_their_law(n_threads, kept, monkeypatch):
    monkeypatch.setattr(cpu.CollapsedRows, "kept", kept)
    n, p = 70, 2100
    with open_threads(n_threads) as threads:
        problem = Problem(n, p, 3, threads=threads).set()
        z = np.random.default_rng(1).standard_normal((3, n))
        mean = problem.rows.coefficients(z, np.zeros((3, p + 1)), np.zeros((3, n)))
    for c in range(3):
        Q = problem.columns.T @ problem.columns + np.diag(1 / problem.variances(c))
        want = np.linalg.solve(Q, problem.columns.T @ z[c])
        want[-1] -= want[:-1] @ problem.anchor
        np.testing.assert_allclose(mean[c], want, rtol=1e-6, atol=1e-8)


def mean_and_covariance(problem, n, p):
    """Of the coefficients, which are linear in z and in their noise: chains with a unit vector each tell all."""
    m = 2 * n + p + 1
    units = np.eye(m)
    A = problem.set().rows.coefficients(units[:, :n], units[:, n:-n], units[:, -n:])
    A[:, -1] += A[:, :-1] @ problem.anchor
    return A[:n].T, A[n:].T @ A[n:]


@pytest.mark.parametrize("heavy", [[], [1e-9, 1e-7, 1e-8]])
def test_coefficients_have_the_covariance_of_their_law(heavy):
    n, p = 5, 7
    problem = Problem(n, p, 2 * n + p + 1, slab_precision=0.0 if heavy else 0.25)
    problem.lambda_sq_inv[:] = problem.lambda_sq_inv[0]
    problem.lambda_sq_inv[:, 1 : 1 + len(heavy)] = heavy
    mean, covariance = mean_and_covariance(problem, n, p)
    w, x = problem.variances(0), problem.columns
    want = np.linalg.inv(x.T @ x + np.diag(1 / w))
    np.testing.assert_allclose(mean, want @ x.T, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(covariance, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("weights", [(1e8, 1e9), (1e15, 1e16), (1e14, 1e40)])
def test_coefficients_of_equal_heavy_columns_share_their_sum(weights):
    """Their sum is that of one such column, and none is larger than its weight lets it be; where rounding cannot tell
    the columns apart, it is less."""
    n, p = 5, 7
    problem = Problem(n, p, 2 * n + p + 1, slab_precision=0.0)
    problem.lambda_sq_inv[:] = problem.lambda_sq_inv[0]
    rows, (first, second) = problem.rows, problem.order[[1, 2]]
    problem.X[:, second] = problem.X[:, first]
    problem.centre[second], problem.scale[second] = problem.centre[first], problem.scale[first]
    rows.root[2], rows.square[2] = rows.root[1], rows.square[1]
    rows.blocks.clear()
    problem.lambda_sq_inv[:, 1], problem.lambda_sq_inv[:, 2] = 0.5 / np.array(weights)
    mean, covariance = mean_and_covariance(problem, n, p)
    columns, w = np.delete(problem.columns, 2, axis=1), np.delete(problem.variances(0), 2)
    columns[:, 1], w[1] = rows._columns(np.array([1]))[0], sum(weights)
    want = np.linalg.inv(columns.T @ columns + np.diag(1 / w))[1]
    np.testing.assert_allclose(mean[1] + mean[2], want @ columns.T, rtol=1e-5)
    alone = weights[0] * weights[1] / sum(weights)  # the variance of each while their sum is known
    variances = covariance[[1, 2], [1, 2]]
    assert (variances > 1e6).all()
    assert (variances < 1.001 * alone).all()
    if max(weights) < 1e12:
        np.testing.assert_allclose(variances, alone, rtol=1e-5)


@pytest.mark.parametrize("heavy", [[], [1e-6, 1e-9, 1e-14]])
def test_shrinkage_equals_that_of_the_matrix_over_the_columns(heavy):
    """Also where it is 1e-15, which a difference from 1 would lose."""
    problem = Problem(30, 50, 2, slab_precision=0.0 if heavy else 0.25)
    problem.lambda_sq_inv[:, 7 : 7 + len(heavy)] = heavy
    beta = np.random.default_rng(2).standard_normal((3, 51)) / 5
    kappa = problem.rows.shrinkage(problem.lambda_sq_inv, problem.tau_sq_inv, problem.rows.information(beta))
    eta = problem.columns[:, :-1] @ beta[:, :-1].T + beta[:, -1] + beta[:, :-1] @ problem.anchor
    weight = np.exp(-(eta**2) - np.log(2 * np.pi) - log_ndtr(eta) - log_ndtr(-eta)).mean(axis=1)
    for c in range(2):
        precision = 1 / problem.variances(c)
        inverse = np.linalg.inv((problem.columns.T * weight) @ problem.columns + np.diag(precision))
        np.testing.assert_allclose(kappa[c], (precision * inverse.diagonal())[:49], rtol=1e-7)


def test_updates_of_the_scales_take_the_matrices_along():
    problem = Problem(20, 60, 2).set()
    rows = problem.rows
    z = rows.some_latent(np.random.default_rng(3).standard_normal((2, 61)))
    assert ((z > 0) == problem.y).all()
    before = problem.lambda_sq_inv
    problem.lambda_sq_inv = rows.local_scales(z, before, problem.tau_sq_inv, 20, 0, 1, KEY)
    assert ((problem.lambda_sq_inv != before).sum(axis=1) == 20).all()
    uniform, chances = np.random.default_rng(4).uniform(size=(2, 60)), np.full((2, 59), 0.3)
    after_local = [problem.V(c) for c in range(2)], rows.P.copy(), rows.log_det.copy()
    scales = rows.global_scale(z, problem.lambda_sq_inv, problem.tau_sq_inv, TAU_0, uniform, chances)
    assert (scales[0] != problem.tau_sq_inv).all()
    problem.tau_sq_inv, problem.lambda_sq_inv = scales
    after_global = [problem.V(c) for c in range(2)], rows.P, rows.log_det
    for V, P, log_det in after_local, after_global:
        np.testing.assert_allclose(P, np.linalg.inv(V), rtol=1e-7, atol=1e-10)
        np.testing.assert_allclose(log_det, np.linalg.slogdet(V)[1], rtol=1e-9)


def test_no_random_number_is_used_twice_in_a_sweep(monkeypatch):
    problem, used = Problem(6, 100, 2), []
    rows, beta = problem.rows, np.random.default_rng(5).standard_normal((2, 101))

    def watch(name, numbers):
        original = getattr(rows, name)

        def watched(z, *given):
            used.extend((name, number) for number in numbers(*given))
            return original(z, *given)

        monkeypatch.setattr(rows, name, watched)

    watch("latent", lambda n_scans, index, *rest: range(n_scans * index, n_scans * (index + 1)))
    watch("length", lambda index, *rest: [index])
    watch("local_scales", lambda lambda_sq_inv, tau_sq_inv, n_columns, index, *rest: [index])
    state = collapsed.CollapsedState(beta, rows.some_latent(beta), problem.lambda_sq_inv, problem.tau_sq_inv, 0)
    collapsed.sweep(state, rows, TAU_0, cpu, KEY)
    assert len(set(used)) == len(used)
    assert all(sum(name == question for name, _ in used) > 1 for question in ("latent", "length", "local_scales"))


def test_auto_takes_it_where_there_are_more_columns_than_rows(short_fit, seed):
    data, y = np.random.default_rng(seed).standard_normal((20, 30)), np.arange(20) % 2
    assert short_fit(data, y).sampler_ == "collapsed"
    assert short_fit(data[:, :20], y).sampler_ != "collapsed"
    assert short_fit(data, y, burn_in=0).sampler_ == "collapsed"


def test_draws_have_the_same_bits_for_any_number_of_threads(short_fit):
    data, y, _ = make_correlated_probit(100, 3000, random_state=0)
    one, *others = (short_fit(data, y, n_iter=3, burn_in=2, n_jobs=n_jobs) for n_jobs in (1, 2, 5))
    assert all(same_draws(other, one) for other in others)


@pytest.mark.parametrize("dtype", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_memory_is_that_of_the_rows_times_the_columns(dtype, short_fit):
    data, y, _ = make_correlated_probit(20, 20_000, dtype=dtype, random_state=0)
    peak = peak_memory(lambda: short_fit(data, y, n_iter=5, burn_in=2))
    assert peak < 30 * 8 * data.size  # a matrix over the columns alone has 1000 times the size of X


def degenerate(kind, rng):
    if kind == "tiny":
        return rng.standard_normal((2, 9)), np.array([0, 1])
    if kind == "all columns are the same":
        return np.repeat(rng.standard_normal((10, 1)), 40, axis=1), np.arange(10) % 2
    if kind == "one positive":
        return rng.standard_normal((30, 60)), np.arange(30) == 3
    data = rng.standard_normal((15, 40))
    y = data[:, 1] > 0
    if kind == "zero columns":
        data[:, 5:25] = 0.0
    return data * {"zero columns": 1, "very different scales": [1e6, 1.0, 1e-6, 1e3] * 10, "huge columns": 1e6}[kind], y


@pytest.mark.parametrize("params", [{}, {"fit_intercept": False}, {"global_scale": 1e100}, {"global_scale": 1e-100}])
@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "kind",
    ["tiny", "all columns are the same", "one positive", "zero columns", "very different scales", "huge columns"],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_degenerate_data_give_finite_draws(kind, dtype, params, short_fit):
    data, y = degenerate(kind, np.random.default_rng(0))
    model = short_fit(data.astype(dtype), y, sampler="collapsed", n_iter=40, burn_in=20, **params)
    for values in model.coef_draws_, model.intercept_draws_, model.shrinkage_, model.predict_proba(data):
        assert np.isfinite(values).all()
    assert np.isfinite(np.log(model.global_scale_draws_)).all()
