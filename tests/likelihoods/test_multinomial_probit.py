"""The symmetric multinomial probit likelihood: densities, derivatives, information, passes over rows of every kind."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, in_full, sparse_cpu
from scipy.special import log_ndtr, logsumexp
from scipy.stats import kstest

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._model import PROBIT
from skhorseshoe._model.multinomial_probit import MultinomialProbit

CLASSES = 2, 3, 5, 10, 30


def log_probabilities(above):
    """log P(y) from eta_y - eta_l (n, d), by thousands of nodes."""
    ends = np.linspace(-40, 40 + max(0.0, -above.min()), 2001)
    out = []
    for row in above:
        logs = -0.5 * ends**2 + log_ndtr(ends[:, None] + row).sum(axis=1)
        near = ends[logs > logs.max() - 60]
        width = ends[1] - ends[0]
        t = np.linspace(near[0] - 2 * width, near[-1] + 2 * width, 3001)
        logs = -0.5 * t**2 + log_ndtr(t[:, None] + row).sum(axis=1)
        out.append(logsumexp(logs) + np.log((t[1] - t[0]) / np.sqrt(2 * np.pi)))
    return np.array(out)


def extreme_places(K, rng):
    """eta_y - eta_l (n, d): ties, one class that dominates, far and near classes, probabilities of 1e-300 and less."""
    d = K - 1
    ties = np.repeat(np.array([0.0, 4.0, 2.0, -1.0, -3.0, -8.0, -37.0, -50.0, 50.0])[:, None], d, axis=1)
    far, near = rng.uniform(-50, 50, (30, d)), rng.standard_normal((30, d)) * 3
    mixed = np.where(rng.random((30, d)) < 0.5, rng.uniform(-50, 0, (30, d)), rng.uniform(-3, 8, (30, d)))
    return np.concatenate([ties, far, near, mixed, rng.uniform(1, 6) + rng.standard_normal((30, d)) * 0.3])


def predictors(law, above, y):
    """Contrasts (n, d) with which eta_y - eta_l are these."""
    eta = np.zeros((len(y), law.n_classes))
    eta[np.arange(law.n_classes) != y[:, None]] = -above.ravel()
    return eta @ law.contrasts.T


def by_the_core(law, eta, y, weight=None):
    """log P(y) of each row (n,) and its derivatives (n, d)."""
    X, weight = np.eye(len(y)), np.empty(0) if weight is None else weight
    y = y.astype(np.uint8)
    logs, slopes = [], cpu.score(X, y, weight, eta.T.copy(), np.array([0, len(y)]), ALONE, None, law)[1]
    for i in range(len(y)):
        one = X[:1, :1], y[i : i + 1], weight[i : i + 1], eta[i][:, None].copy(), np.array([0, 1])
        logs.append(cpu.score(*one, ALONE, None, law)[0][0])
    return np.array(logs), slopes.T


@pytest.mark.parametrize("K", CLASSES)
def test_log_probabilities_are_those_of_quadrature(K, seed):
    rng, law = np.random.default_rng(seed), MultinomialProbit(K)
    above = extreme_places(K, rng)
    y = rng.integers(0, K, len(above))
    eta, right = predictors(law, above, y), log_probabilities(above)
    close = {"rtol": 0, "atol": 1e-10 if K <= 10 else 1e-9}
    np.testing.assert_allclose(by_the_core(law, eta, y)[0], right, **close)
    np.testing.assert_allclose(law.log_density_of_class(eta, y), right, rtol=0, atol=1e-11)
    assert right.min() < (-690 if K > 2 else -600)
    p = law.probabilities(eta)
    np.testing.assert_allclose(p.sum(axis=1), 1, atol=1e-9)
    assert p.min() > 0
    assert p.max() <= 1
    np.testing.assert_allclose(p[np.arange(len(y)), y], np.maximum(np.exp(right), 1e-300), rtol=1e-7)


@pytest.mark.parametrize("K", CLASSES)
def test_laplace_is_near(K, seed):
    """As near as ``multinomial_probit.hpp`` says, where a class has a probability of 1e-300 too."""
    rng = np.random.default_rng(seed)
    above = extreme_places(K, rng)
    y = rng.integers(0, K, len(above))
    exact, laplace = (MultinomialProbit(K, by_laplace=by_laplace) for by_laplace in (False, True))
    eta = predictors(exact, above, y)
    (right, slopes), (near, near_slopes) = (by_the_core(law, eta, y) for law in (exact, laplace))
    np.testing.assert_allclose(near, right, rtol=1e-4, atol=0.04)
    np.testing.assert_allclose(near_slopes, slopes, rtol=0, atol=0.05)
    assert abs(near - right).mean() < 0.01
    assert abs(near_slopes - slopes).mean() < 0.01


@pytest.mark.parametrize("K", CLASSES)
def test_derivatives_are_differences(K, seed):
    rng, law = np.random.default_rng(seed), MultinomialProbit(K)
    above = extreme_places(K, rng)[::4]
    y = rng.integers(0, K, len(above))
    eta, weight = predictors(law, above, y), rng.exponential(size=len(above))
    slopes, h = by_the_core(law, eta, y)[1], 2e-3
    for a in range(0, K - 1, max(1, K // 3)):
        step = h * (np.arange(K - 1) == a)
        f = {i: law.log_density_of_class(eta + i * step, y) for i in (-3, -2, -1, 1, 2, 3)}
        right = (45 * (f[1] - f[-1]) - 9 * (f[2] - f[-2]) + (f[3] - f[-3])) / (60 * h)
        np.testing.assert_allclose(slopes[:, a], right, rtol=1e-9, atol=1e-9 if K <= 10 else 1e-8)
    np.testing.assert_allclose(by_the_core(law, eta, y, weight)[1], slopes * weight[:, None], rtol=1e-13, atol=1e-13)


def test_two_classes_are_probit(seed):
    law, eta = MultinomialProbit(2), np.linspace(-36, 36, 97)
    y = np.arange(97) % 2
    sign = np.where(y, 1.0, -1.0)
    loglik, slopes = by_the_core(law, eta[:, None], y)
    np.testing.assert_allclose(loglik, log_ndtr(sign * eta), rtol=1e-11, atol=1e-11)
    _, right = by_the_core(PROBIT, eta[:, None], y)
    np.testing.assert_allclose(slopes, right, rtol=1e-11, atol=1e-10)
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(law.log_density_of_class(eta[:, None], y), log_ndtr(sign * eta), **close)
    np.testing.assert_allclose(law.probabilities(eta[:, None])[:, 1], PROBIT.probability(eta), rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(law.fisher_information(eta[:, None])[:, 0, 0], PROBIT.information(eta), atol=1e-11)
    assert law.information_at(np.array([0.8, 0.2])) == pytest.approx(PROBIT.information_at(0.2), rel=1e-10)
    assert law.first_predictors(np.array([0.8, 0.2]))[0] == pytest.approx(PROBIT.predictor(0.2), rel=1e-10)


@pytest.mark.parametrize("K", [3, 5, 10])
def test_information_is_the_variance_of_the_score(K, seed):
    rng, law = np.random.default_rng(seed), MultinomialProbit(K)
    C = law.contrasts
    np.testing.assert_allclose(C @ np.column_stack([C.T, np.ones(K)]), np.eye(K - 1, K), atol=1e-14)
    eta = rng.standard_normal((8, K - 1)) * rng.exponential(size=(8, 1)) * 2
    right, p = np.zeros((8, K - 1, K - 1)), law.probabilities(eta)
    for k in range(K):
        score = by_the_core(law, eta, np.full(8, k))[1]
        right += p[:, k, None, None] * score[:, :, None] * score[:, None, :]
    H = law.fisher_information(eta)
    np.testing.assert_allclose(H, right, rtol=1e-8, atol=1e-9)
    assert np.linalg.eigvalsh(H).max() < law.largest_information
    shares = rng.dirichlet(np.ones(K))
    first = law.first_predictors(shares)
    np.testing.assert_allclose(law.probabilities(first), shares, rtol=1e-7)
    assert law.information_at(shares) == pytest.approx(np.trace(law.fisher_information(first[None])[0]) / (K - 1))
    assert np.isfinite(law.first_predictors(np.eye(K)[0])).all()


def test_predictors_without_bounds_give_finite_answers():
    law = MultinomialProbit(4)
    eta = np.array([[1e200, -1e200, 0.0], [1e9, 1e9, -1e9], [1e5, 0.0, 0.0], [0.0, 0.0, 0.0]])
    for k in range(4):
        for values in by_the_core(law, eta, np.full(4, k)):
            assert np.isfinite(values).all()


def drawn(law, eta, y, n_sweeps, n_chains=100):
    """Latent utilities of rows, in contrasts; (n_sweeps n_chains, n, d)."""
    X, y, key = np.eye(len(y)), y.astype(np.uint8), np.array([3, 4], np.uint32)
    coef, ends = np.tile(eta.T, (n_chains, 1)), np.array([0, len(y)])
    z = [cpu.latent(X, y, coef, ends, t, key, ALONE, likelihood=law)[0] for t in range(n_sweeps)]
    return np.reshape(z, (-1, law.n_predictors, len(y))).swapaxes(1, 2)


@pytest.mark.parametrize("K", [3, 5, 10])
def test_utilities_have_the_mean_that_the_score_tells(K, seed):
    """E[w | y] - m is the derivative of log P, and y has the largest utility."""
    rng, law = np.random.default_rng(seed), MultinomialProbit(K)
    above = extreme_places(K, rng)
    y = rng.integers(0, K, len(above))
    eta = predictors(law, above, y)
    w = drawn(law, eta, y, 20)
    assert ((w @ law.contrasts).argmax(axis=2) == y).all()
    moved = w - eta
    off = (moved.mean(axis=0) - by_the_core(law, eta, y)[1]) / (moved.std(axis=0) / np.sqrt(len(w)) + 1e-9 * abs(eta))
    assert abs(off).max() < 5.0


@pytest.mark.parametrize("K", [2, 3, 6])
def test_utilities_have_the_law_of_those_whose_largest_is_y(K, seed):
    rng, law, n = np.random.default_rng(seed), MultinomialProbit(K), 400_000
    eta = rng.standard_normal((4, K - 1))
    for m in eta:
        normal = m + rng.standard_normal((n, K - 1))
        first = (normal @ law.contrasts).argmax(axis=1)
        y = int(rng.choice(first))
        w = drawn(law, m[None], np.array([y]), 40)[:, 0]
        for a in range(K - 1):
            assert kstest(w[:, a], normal[first == y, a]).pvalue > 1e-4
        if K > 2:
            assert kstest(w[:, 0] * w[:, 1], normal[first == y, 0] * normal[first == y, 1]).pvalue > 1e-4


@pytest.fixture(params=["float64", "float32", "sparse", "on disk", "weights"])
def rows(request, tmp_path, seed):
    """``Rows`` of four classes, with X in full."""
    rng, kind, n = np.random.default_rng(seed), request.param, 300
    X, y = rng.standard_normal((n, 3)) + np.array([0, 1, -2]), rng.integers(0, 4, n).astype(np.uint8)
    X *= rng.random(X.shape) < 0.5
    X = X.astype(np.float32) if kind == "float32" else X
    given, ops = X, cpu
    if kind == "on disk":
        np.save(tmp_path / "X.npy", X)
        given = np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "sparse":
        given, ops = sp.csr_array(X), sparse_cpu
    weight = rng.exponential(size=n) if kind == "weights" else None
    made = Rows(given, y, True, ops, ALONE, weight=weight, likelihood=MultinomialProbit(4))
    return made, in_full(np.asarray(X, float), True)


def test_rows_give_log_likelihood_gradient_and_lines(rows):
    rows, full = rows
    rng, law, m, d = np.random.default_rng(1), rows.likelihood, 3, 3
    weight = rows.weight if len(rows.weight) else np.ones(rows.n)
    close = {"rtol": 1e-4, "atol": 1e-3} if rows.dtype == np.float32 else {"rtol": 1e-9, "atol": 1e-9}

    def loglik(beta):
        eta = (full @ rows.columns.of_X(beta).T).reshape(rows.n, m, d)
        return np.array([weight @ law.log_density_of_class(eta[:, c], rows.y.astype(int)) for c in range(m)])

    assert not rows.takes_fused_calls
    (beta, direction), steps = rng.standard_normal((2, m * d, 4)), rng.standard_normal((m, 2))
    value, gradient = rows.score(beta)
    np.testing.assert_allclose(value, loglik(beta), **close)
    assert gradient.shape == beta.shape
    lines, by_chain = rows.line(beta, direction, steps), np.repeat(steps, d, axis=0)
    for k in range(2):
        np.testing.assert_allclose(lines[:, k], loglik(beta + by_chain[:, k, None] * direction), **close)
    h = 1e-4
    ends = rows.line(beta, direction, np.tile([h, -h], (m, 1)))
    along = (gradient * direction).sum(axis=1).reshape(m, d).sum(axis=1)
    single = rows.dtype == np.float32
    np.testing.assert_allclose(along, (ends[:, 0] - ends[:, 1]) / (2 * h), rtol=1e-4 if single else 1e-6)
    for a in range(m * d):
        step = np.zeros_like(beta)
        step[a, a % 4] = h
        slope = (loglik(beta + step) - loglik(beta - step))[a // d] / (2 * h)
        assert gradient[a, a % 4] == pytest.approx(slope, rel=1e-4, abs=1e-2 if single else 1e-4)
    eta = rows.predictors(beta)
    np.testing.assert_allclose(eta, full @ rows.columns.of_X(beta).T, **close)


def test_rows_of_every_kind_have_the_same_answers(tmp_path, seed):
    rng, law = np.random.default_rng(seed), MultinomialProbit(3)
    X, y = rng.standard_normal((500, 4)), rng.integers(0, 3, 500).astype(np.uint8)
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    kinds = (X, cpu), (on_disk, cpu), (sp.csr_array(X), sparse_cpu)
    made = [Rows(x, y, True, ops, ALONE, likelihood=law) for x, ops in kinds]
    beta = rng.standard_normal((4, 5))
    of_memory, of_disk, of_sparse = (rows.score(beta) for rows in made)
    for ours, disk, sparse in zip(of_memory, of_disk, of_sparse, strict=True):
        np.testing.assert_array_equal(ours, disk)
        np.testing.assert_allclose(ours, sparse, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("K", CLASSES)
def test_the_core_has_probabilities_of_all_classes(K, seed):
    rng, law, n_draws = np.random.default_rng(seed), MultinomialProbit(K), 70
    above = extreme_places(K, rng)
    places = predictors(law, above, np.zeros(len(above), int))
    eta = places[rng.integers(0, len(places), (20, n_draws))]  # (rows, draws, d)
    eta[10:] = places[:10, None] + 0.1 * rng.standard_normal((10, n_draws, K - 1))
    each = cpu.class_probabilities(eta.reshape(20, -1), law)
    average = cpu.average_class_probabilities(eta.reshape(20, -1), law)
    logs = np.stack([law.log_density_of_class(eta, np.full((20, n_draws), k)) for k in range(K)], axis=1)
    right = np.maximum(np.exp(logs), 1e-300)
    np.testing.assert_allclose(each, right, rtol=1e-4, atol=1e-10)
    is_small = right < 1e-7
    np.testing.assert_allclose(each[is_small], right[is_small], rtol=1e-3)
    np.testing.assert_allclose(each.sum(axis=1), 1, rtol=0, atol=1e-9)
    right = right.mean(axis=2)
    np.testing.assert_allclose(average, right, rtol=1e-4, atol=1e-10)
    is_small = right < 1e-7
    np.testing.assert_allclose(average[is_small], right[is_small], rtol=1e-8 if K <= 10 else 1e-7)
    np.testing.assert_allclose(average.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert is_small.any()
    for p in each, average:
        assert p.min() > 0
        assert p.max() <= 1


@pytest.mark.parametrize("ops", [cpu, sparse_cpu])
def test_blocks_of_rows_have_the_probabilities_of_each_row(ops, seed):
    rng, law, m = np.random.default_rng(seed), MultinomialProbit(4), 9
    X, coef, out = rng.standard_normal((60, 5)), rng.standard_normal((m * 3, 5)), np.empty((60, 4))

    def use(eta, rows):
        out[rows] = ops.average_class_probabilities(eta, law)

    ops.each_block(sp.csr_array(X) if ops is sparse_cpu else X, coef, ALONE, 2**20, use)
    np.testing.assert_allclose(out, law.probabilities((X @ coef.T).reshape(60, m, 3)).mean(axis=1), rtol=1e-6)
