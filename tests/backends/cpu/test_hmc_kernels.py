"""The kernels of split Hamiltonian Monte Carlo: against SciPy, dense formulas and laws on a grid."""

import copy
from functools import partial

import numpy as np
import pytest
from laws import TAU_0, from_python
from scipy import stats
from scipy.special import erfcx, exp1, log_ndtr, ndtr

from skhorseshoe._backends import MOMENTUM
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import normal_tail, scales
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning
from skhorseshoe._utils.threads import Threads, open_threads

KEY = (np.uint32(7), np.uint32(1))
P_VALUE = 1e-4
N_CHAINS = 250  # at once: a random number has 8 bits for its chain
ALONE = Threads(1)

log_cdf, scaled_exponential_integral = map(from_python, (normal_tail.log_cdf, scales.scaled_exponential_integral))


def log_cdf_and_ratio(t):
    scratch, log_phi, ratio = np.empty((3, len(t)))
    log_cdf(t, scratch, log_phi, ratio)
    return log_phi, ratio


def test_log_cdf_and_its_derivative_are_accurate_to_1e_12():
    t = np.concatenate([np.linspace(-37, 37, 30_001), np.geomspace(1e-300, 1, 500), -np.geomspace(1e-300, 1, 500)])
    log_phi, ratio = log_cdf_and_ratio(t)
    np.testing.assert_allclose(log_phi, log_ndtr(t), rtol=1e-12)
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    want = np.where(t < 0, np.sqrt(2 / np.pi) / erfcx(np.maximum(-t, 0) / np.sqrt(2)), density / ndtr(t))
    np.testing.assert_allclose(ratio, want, rtol=1e-12)


def test_log_cdf_is_finite_and_right_far_beyond():
    t = np.array([38.0, 40, 1e3, 1e8, 1e150, 1e300, np.inf])
    log_phi, ratio = log_cdf_and_ratio(np.concatenate([-t, t]))
    assert np.isfinite(log_phi).all()
    assert np.isfinite(ratio).all()
    np.testing.assert_allclose(log_phi[:5], log_ndtr(-t[:5]), rtol=1e-12)
    np.testing.assert_allclose(ratio[:5], np.sqrt(2 / np.pi) / erfcx(t[:5] / np.sqrt(2)), rtol=1e-12)
    assert (abs(log_phi[7:]) < 1e-300).all()
    assert (ratio[7:] < 1e-300).all()


def test_exponential_integral_is_accurate_to_1e_12():
    b = np.concatenate([np.geomspace(1e-290, 700, 20_000), np.linspace(0.9, 1.1, 2001)])
    got = np.array([scaled_exponential_integral(x) for x in b])
    np.testing.assert_allclose(got, np.exp(b) * exp1(b), rtol=1e-12)
    for b in (1e6, 1e100, 1e300):
        assert abs(scaled_exponential_integral(b) * b - (1 - 1 / b)) < 1e-11


@pytest.mark.parametrize("b", [1e-6, 1e-3, 0.1, 0.9, 1.0, 1.1, 5.0, 50.0])
def test_local_scales_have_their_law(b):
    tau_sq_inv = np.full(100, 0.3)
    beta = np.full((100, 200), np.sqrt(2 * b / 0.3))
    x = cpu.local_scales(beta, tau_sq_inv, KEY, 4).ravel()
    assert (x > 0).all()
    assert stats.kstest(x, lambda x: 1 - exp1(b * (1 + x)) / exp1(b)).pvalue > P_VALUE


def test_global_scale_leaves_the_joint_law_of_tau_and_beta_alone():
    rng = np.random.default_rng(0)
    n, before, after, betas = 250, [], [], []
    for t in range(80):
        tau = TAU_0 * abs(rng.standard_cauchy(n))
        beta = rng.standard_normal((n, 5)) * abs(rng.standard_cauchy((n, 5))) * tau[:, None]
        before.append(tau)
        betas.append(beta)
        after.append(cpu.global_scale(beta, tau**-2, TAU_0, KEY, t) ** -0.5)
    before, after, beta = (np.concatenate(part) for part in (before, after, betas))
    assert stats.kstest(after, stats.halfcauchy(scale=TAU_0).cdf).pvalue > P_VALUE
    fresh = abs(rng.standard_normal(len(beta)) * rng.standard_cauchy(len(beta)))
    for j in range(5):
        assert stats.ks_2samp(abs(beta[:, j]) / after, fresh).pvalue > P_VALUE
    assert abs(stats.spearmanr(beta[:, 0] / after, after).statistic) < 4 / np.sqrt(len(after))
    assert (after != before).all()


def test_global_scale_finds_its_law_from_any_start():
    beta = np.array([0.5, -3.0, 0.02])
    grid = np.linspace(-12, 12, 4001)
    b = beta**2 / 2 * np.exp(-2 * grid[:, None])
    with np.errstate(invalid="ignore"):
        integral = np.where(b < 600, np.exp(np.minimum(b, 600)) * exp1(b), 1 / b)
    log_density = np.log(integral).sum(axis=1) - 2 * grid - np.log1p(np.exp(2 * grid) / TAU_0**2)
    tau_sq_inv = np.geomspace(1e-8, 1e8, 250)
    many, kept = np.tile(beta, (250, 1)), []
    for t in range(800):
        tau_sq_inv = cpu.global_scale(many, tau_sq_inv, TAU_0, KEY, t)
        if t % 10 == 9:
            kept.append(-np.log(tau_sq_inv) / 2)
    assert stats.kstest(np.ravel(kept), grid_cdf(grid, log_density)).pvalue > P_VALUE


@pytest.mark.parametrize("p", [1, 5])
def test_global_scale_ends_where_all_coefficients_are_zero(p):
    tau_sq_inv = np.array([1.0, 1e-6])
    for t in range(50):
        tau_sq_inv = cpu.global_scale(np.zeros((2, p)), tau_sq_inv, TAU_0, KEY, t)
        assert np.isfinite(tau_sq_inv).all()


def grid_cdf(grid, log_density):
    density = np.exp(log_density - log_density.max())
    cdf = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
    return partial(np.interp, xp=grid, fp=cdf / cdf[-1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (64, 5), (65, 7), (131, 33), (1030, 1), (7, 3000)])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("n_chains", [1, 3])
def test_score_pass_equals_plain_scipy(shape, fit_intercept, n_chains, dtype):
    rng = np.random.default_rng(2)
    data = rng.standard_normal(shape).astype(dtype)
    data.flags.writeable = False
    y = rng.integers(0, 2, len(data)).astype(np.uint8)
    coef = 2 * rng.standard_normal((n_chains, shape[1] + fit_intercept)) / np.sqrt(shape[1])
    bounds = np.linspace(0, len(data), min(len(data), 3) + 1).astype(np.int64)
    loglik, score = cpu.score(data, y, np.empty(0), coef, bounds, ALONE)
    bordered = np.hstack([data.astype(np.float64), np.ones((len(data), int(fit_intercept)))])
    sign = 2.0 * y - 1
    t = coef.astype(dtype).astype(np.float64) @ bordered.T * sign
    slope = np.exp(-(t**2) / 2 - log_ndtr(t)) / np.sqrt(2 * np.pi) * sign
    tolerance = {"rtol": 2e-5, "atol": 2e-5 * np.sqrt(len(data))} if dtype == np.float32 else {"rtol": 1e-11}
    np.testing.assert_allclose(loglik, log_ndtr(t).sum(axis=1), **tolerance)
    tolerance["atol"] = tolerance.get("atol", 1e-11)
    np.testing.assert_allclose(score, slope @ bordered, **tolerance)


def test_score_does_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(3)
    data, y = rng.standard_normal((20_000, 20)), rng.integers(0, 2, 20_000).astype(np.uint8)
    beta = rng.standard_normal((2, 21))
    one = Rows(data, y, True, cpu, ALONE).score(beta)
    with open_threads(3) as threads:
        three = Rows(data, y, True, cpu, threads).score(beta)
    for got, want in zip(three, one, strict=True):
        np.testing.assert_array_equal(got, want)


def whitening(n_chains, p=2, q=3, threads=ALONE):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((q + 3, q))
    b = 2 * rng.standard_normal(q)
    return A.T @ A, b, cpu.Whitening(A.T @ A, b, n_chains, p, threads)


def quadratic(rng, q):
    """Of a reference: the point, the slope and the information, which need not be those of the Gaussian."""
    A = rng.standard_normal((q, q))
    return Reference(rng.standard_normal(q), rng.standard_normal(q), A @ A.T / q, None)


def begun(gauss, lambda_sq_inv, tau_sq_inv, sweep=0):
    """The path of chains whose coefficients do not matter."""
    zero, q = np.zeros((len(tau_sq_inv), len(gauss.b))), len(gauss.b)
    state = HmcState(zero, lambda_sq_inv, tau_sq_inv, zero[:, 0], zero, sweep, None, None)
    return gauss.begin(Reference(np.zeros(q), np.zeros(q), np.zeros((q, q)), None), state, KEY)


def precisions(lambda_sq_inv, tau_sq_inv, q):
    d = np.zeros((len(tau_sq_inv), q))
    d[:, : lambda_sq_inv.shape[1]] = tau_sq_inv[:, None] * lambda_sq_inv
    return d


def dense(H, b, d, p):
    """Mean, matrix and log_norm, with other routines."""
    M = H + np.diag(d)
    mean = np.linalg.solve(M, b)
    return mean, M, np.log(d[:p]).sum() / 2 - np.linalg.slogdet(M)[1] / 2 + mean @ M @ mean / 2


def energy_and_force(reference, beta, loglik, score, L, u, v):
    """U + (u'u + v'v) / 2 and L^-1 grad U of one chain."""
    point, slope, information, _ = reference
    offset = beta - point
    energy = slope @ offset - offset @ information @ offset / 2 - loglik
    return energy + (u @ u + v @ v) / 2, np.linalg.solve(L, slope - information @ offset - score)


@pytest.mark.parametrize(("p", "q", "n_threads"), [(2, 3, 1), (3, 3, 2), (139, 140, 1), (139, 140, 2), (139, 140, 5)])
def test_a_path_equals_dense_formulas(p, q, n_threads):
    rng = np.random.default_rng(5)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, p))), np.array([0.1, 1.0, 10.0])
    beta, score, there = rng.standard_normal((3, 3, q))
    loglik, reference, angle = rng.standard_normal(3), quadratic(rng, q), 0.7
    close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-9)
    with open_threads(n_threads) as threads:
        H, b, gauss = whitening(3, p, q, threads)
        begun(gauss, np.ones((3, p)), np.ones(3))  # which is overwritten
        state = HmcState(beta, lambda_sq_inv, tau_sq_inv, loglik, score, 9, None, None)
        start = gauss.begin(reference, state, KEY)
        turned = gauss.turn(copy.deepcopy(start), angle)
        placed = gauss.place(turned)
        kicked = gauss.kick(copy.deepcopy(turned), angle, reference, there, loglik, 2 * score)
    np.testing.assert_array_equal(start[1], cpu.normal((3, q), KEY, 9, MOMENTUM))
    for c, d in enumerate(precisions(lambda_sq_inv, tau_sq_inv, q)):
        mean, M, log_norm = dense(H, b, d, p)
        L = np.linalg.cholesky(M)
        u, v, force, total = (part[c] for part in start)
        close(gauss.mean[c], mean)
        close(gauss.log_norm[c], log_norm)
        close(u, L.T @ (beta[c] - mean))
        energy, pull = energy_and_force(reference, beta[c], loglik[c], score[c], L, u, v)
        close(force, pull)
        close(total, energy)
        v = v - angle / 2 * force
        u, v = u * np.cos(angle) + v * np.sin(angle), v * np.cos(angle) - u * np.sin(angle)
        close(turned.u[c], u)
        close(turned.v[c], v)
        close(placed[c], mean + np.linalg.solve(L.T, u))
        _, pull = energy_and_force(reference, there[c], loglik[c], 2 * score[c], L, u, v)
        v = v - angle / 2 * pull
        close(kicked.u[c], u)
        close(kicked.v[c], v)
        close(kicked.force[c], pull)
        close(kicked.total[c], energy_and_force(reference, there[c], loglik[c], 2 * score[c], L, u, v)[0])


def assert_is_that_of(gauss, path, H, b, precisions):
    """Mean, factor and log_norm of each chain are those of its prior precisions (n_chains, q)."""
    q = len(b)
    columns = gauss.place(path._replace(u=np.eye(len(precisions), q)))
    for c, d in enumerate(precisions):
        mean, M, log_norm = dense(H, b, d, q - 1)
        np.testing.assert_allclose(gauss.mean[c], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gauss.log_norm[c], log_norm, rtol=1e-9)
        np.testing.assert_allclose(columns[c] - mean, np.linalg.inv(np.linalg.cholesky(M)).T[:, c], atol=1e-9)


def tuned(tau_moves, tau_step, slow=()):
    return Tuning(1.0, 1, tau_moves, tau_step, slow)


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("slow", [(), (3, 4, 77, 138)])
@pytest.mark.parametrize("tau_step", [0.1, 0.0])
def test_moves_of_the_scales_take_the_gaussian_along(n_threads, slow, tau_step):
    rng = np.random.default_rng(6)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, 139))), np.array([0.1, 1.0, 10.0])
    with open_threads(n_threads) as threads:
        H, b, gauss = whitening(3, 139, 140, threads)
        path = begun(gauss, lambda_sq_inv, tau_sq_inv)
        given = lambda_sq_inv.copy(), tau_sq_inv.copy()
        lambdas, taus, share = gauss.move_scales(*given, TAU_0, tuned(4, tau_step, slow), 0, KEY)
        assert_is_that_of(gauss, path, H, b, precisions(lambdas, taus, 140))
    np.testing.assert_array_equal(given[0], lambda_sq_inv)  # they may be those of a state that stays
    np.testing.assert_array_equal(given[1], tau_sq_inv)
    assert tuple(np.flatnonzero((lambdas != lambda_sq_inv).any(axis=0))) == slow
    if tau_step:
        assert (taus != tau_sq_inv).any()
        assert ((share > 0) == (taus != tau_sq_inv)).all()
        np.testing.assert_allclose(share * 4, np.round(share * 4), atol=1e-12)
    else:
        np.testing.assert_array_equal(taus, tau_sq_inv)


def moved_scales(gauss, log_lambda, log_tau, tuning, rounds=1):
    """Scales (n, p) and (n,) after rounds of moves, in logarithms, and the share of accepted moves of tau of the last;
    so many chains at once as there are random numbers for."""
    lambdas, taus, shares = log_lambda.copy(), log_tau.copy(), np.empty(len(log_tau))
    for first in range(0, len(log_tau), N_CHAINS):
        some = slice(first, first + N_CHAINS)
        x, tau_sq_inv = np.exp(-2 * lambdas[some]), np.exp(-2 * taus[some])
        begun(gauss, x, tau_sq_inv)
        for t in range(rounds):
            x, tau_sq_inv, shares[some] = gauss.move_scales(x, tau_sq_inv, TAU_0, tuning, first * rounds + t, KEY)
        lambdas[some], taus[some] = -np.log(x) / 2, -np.log(tau_sq_inv) / 2
    return lambdas, taus, shares


@pytest.mark.parametrize("start", ["from its law", "from far away"])
def test_move_of_the_global_scale_has_its_stated_law(start):
    """|D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau), normalised on a grid."""
    rng = np.random.default_rng(7)
    n, n_steps = (8000, 4) if start == "from its law" else (1000, 60)
    H, b, gauss = whitening(N_CHAINS)
    log_lambda = -np.log(np.tile([0.5, 30.0], (n, 1))) / 2
    grid = np.linspace(-12, 12, 4001)
    d = precisions(np.array([[0.5, 30.0]]), np.exp(-2 * grid), 3)
    prior = stats.halfcauchy(scale=TAU_0).logpdf(np.exp(grid)) + grid
    cdf = grid_cdf(grid, np.array([dense(H, b, row, 2)[2] for row in d]) + prior)
    exact = np.interp(rng.uniform(size=n), cdf(grid), grid)
    log_tau = exact if start == "from its law" else rng.choice([-6.0, 6.0], n)
    _, moved, share = moved_scales(gauss, log_lambda, log_tau, tuned(n_steps, 1.5))
    assert (abs(moved - log_tau) > 1e-9).mean() > 0.5
    assert ((share > 0) == (abs(moved - log_tau) > 1e-9)).all()
    assert stats.kstest(moved, cdf).pvalue > P_VALUE


@pytest.mark.parametrize("start", ["from its law", "from far away"])
@pytest.mark.parametrize("tau_sq_inv", [0.3, 100.0])
def test_moves_of_local_scales_have_their_stated_law(start, tau_sq_inv):
    """|D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log lambda_1, log lambda_2), normalised on a grid of two dimensions."""
    rng = np.random.default_rng(9)
    n, rounds = (8000, 1) if start == "from its law" else (1000, 30)
    H, b, gauss = whitening(N_CHAINS)
    grid = np.linspace(-10, 10, 201)
    first, second = (axis.ravel() for axis in np.meshgrid(grid, grid, indexing="ij"))
    lambda_sq_inv = np.exp(-2 * np.column_stack([first, second]))
    rows = precisions(lambda_sq_inv, np.full(len(first), tau_sq_inv), 3)
    prior = stats.halfcauchy().logpdf(np.exp(first)) + first + stats.halfcauchy().logpdf(np.exp(second)) + second
    M = H + rows[:, :, None] * np.eye(3)
    mean_M_mean = np.einsum("i,nij,j->n", b, np.linalg.inv(M), b)
    law = np.log(rows[:, :2]).sum(axis=1) / 2 - np.linalg.slogdet(M)[1] / 2 + mean_M_mean / 2 + prior
    weight = np.exp(law - law.max())
    if start == "from its law":
        at = rng.choice(len(weight), n, p=weight / weight.sum())
        jitter = rng.uniform(-0.05, 0.05, (n, 2))
        log_lambda = np.column_stack([first[at], second[at]]) + jitter
    else:
        log_lambda = rng.choice([-6.0, 6.0], (n, 2))
    log_tau = np.full(n, -np.log(tau_sq_inv) / 2)
    moved, _, _ = moved_scales(gauss, log_lambda, log_tau, tuned(2, 0.0, (0, 1)), rounds)  # tau stays
    assert (abs(moved - log_lambda) > 0.1).mean() > 0.5
    weight = weight.reshape(201, 201)
    for values, density in zip(moved.T, (weight.sum(axis=1), weight.sum(axis=0)), strict=True):
        assert stats.kstest(values, grid_cdf(grid, np.log(density))).pvalue > P_VALUE
    difference = np.sort(np.unique(np.round(first - second, 6)))
    of_difference = np.array([weight[abs(first - second - d).reshape(201, 201) < 1e-6].sum() for d in difference])
    assert stats.kstest(moved[:, 0] - moved[:, 1], grid_cdf(difference, np.log(of_difference))).pvalue > P_VALUE
