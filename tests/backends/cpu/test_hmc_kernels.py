"""The kernels of split Hamiltonian Monte Carlo: against SciPy, dense formulas and laws."""

import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from laws import ALONE, KEY, TAU_0
from scipy import stats
from scipy.special import erfcx, exp1, log_ndtr, ndtr

from skhorseshoe._backends import HOLD_PURPOSE, MOMENTUM_PURPOSE, TAU_ACCEPT_PURPOSE, TAU_MOVE_PURPOSE
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu.prior_coordinates import Exchange
from skhorseshoe._backends.constants import TAU_HALF_HELD
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning
from skhorseshoe._utils.threads import open_threads

P_VALUE = 1e-4


def log_cdf_and_ratio(t):
    """log Phi(t) and phi(t) / Phi(t): the log-likelihood of a row, and its score."""
    loglik, score = cpu.score(np.ones((1, 1)), np.ones(1, np.uint8), np.empty(0), t[:, None], np.array([0, 1]), ALONE)
    return loglik, score[:, 0]


def test_log_cdf_and_its_derivative_are_accurate_to_1e_12():
    t = np.concatenate([np.linspace(-37, 37, 30_001), np.geomspace(1e-300, 1, 500), -np.geomspace(1e-300, 1, 500)])
    log_phi, ratio = log_cdf_and_ratio(t)
    np.testing.assert_allclose(log_phi, log_ndtr(t), rtol=1e-12, atol=1e-15)
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    want = np.where(t < 0, np.sqrt(2 / np.pi) / erfcx(np.maximum(-t, 0) / np.sqrt(2)), density / ndtr(t))
    np.testing.assert_allclose(ratio, want, rtol=1e-12)


def test_log_cdf_is_finite_and_right_far_beyond():
    t = np.array([38.0, 40, 1e3, 1e8, 1e150, 1e300, np.inf])
    (log_phi, ratio), (log_phi_above, ratio_above) = log_cdf_and_ratio(-t), log_cdf_and_ratio(t)
    assert np.isfinite([log_phi, ratio]).all()
    np.testing.assert_allclose(log_phi[:5], log_ndtr(-t[:5]), rtol=1e-12)
    np.testing.assert_allclose(ratio[:5], np.sqrt(2 / np.pi) / erfcx(t[:5] / np.sqrt(2)), rtol=1e-12)
    assert (abs(np.array([log_phi_above, ratio_above])) < 1e-300).all()


def test_log_horseshoe_is_accurate_to_1e_12():
    """By what tau changes in the ratio of an exchange, to which a coefficient 1 brings e^b E1(b), b = tau^-2 / 2."""
    b = np.concatenate([np.geomspace(1e-290, 700, 20_000), np.linspace(0.9, 1.1, 2001), [1e100, 1e300]])
    none, n = np.zeros(len(b)), len(b)
    beta, new, score = np.zeros((n, 2)), np.tile([0.0, 1.0], (n, 1)), np.ones((n, 2))
    swaps = cpu.Exchanges(SimpleNamespace(anchor=np.zeros(2), diagonal=np.ones(2)), np.ones(2), np.ones(2), ALONE)
    exchange = Exchange(*np.full((2, n), [[0], [1]]), none, none, new, beta)

    def change(tau_sq_inv):
        state = SimpleNamespace(beta=beta, tau_sq_inv=tau_sq_inv, loglik=none)
        return swaps.minus_log_ratio(state, exchange, none, score)

    log_integral = change(np.full(n, 2.0)) - change(2 * b) + np.log(np.e * exp1(1.0))
    expected = np.log(np.append(np.exp(b[:-2]) * exp1(b[:-2]), 1 / b[-2:]))
    np.testing.assert_allclose(log_integral, expected, rtol=1e-12, atol=2e-12)


@pytest.mark.parametrize("b", [1e-6, 1e-3, 0.1, 0.9, 1.0, 1.1, 5.0, 50.0])
def test_local_scales_have_their_law(b):
    tau_sq_inv = np.full(100, 0.3)
    beta = np.full((100, 200), np.sqrt(2 * b / 0.3))
    x = cpu.draw_lambda_given_beta(beta, tau_sq_inv, KEY, 4).ravel()
    assert (x > 0).all()
    assert stats.kstest(x, lambda x: 1 - exp1(b * (1 + x)) / exp1(b)).pvalue > P_VALUE


def test_global_scale_ends_where_all_coefficients_are_zero():
    tau_sq_inv = np.array([1.0, 1e-6])
    for t in range(50):
        tau_sq_inv = cpu.draw_tau_given_beta(np.zeros((2, 5)), tau_sq_inv, TAU_0, KEY, t)
        assert np.isfinite(tau_sq_inv).all()


def mass_matrix(n_chains, p=2, q=3, threads=ALONE, n_contrasts=1):
    rng = np.random.default_rng(4)
    A = rng.standard_normal((q + 3, q))
    b = 2 * rng.standard_normal(q)
    return A.T @ A, b, cpu.MassMatrix(A.T @ A, b, n_chains, p, threads, n_contrasts=n_contrasts)


def quadratic(rng, q):
    """Of a reference: the point, the score and the information, which need not be those of the Gaussian."""
    A = rng.standard_normal((q, q))
    return Reference(rng.standard_normal(q), rng.standard_normal(q), A @ A.T / q, None)


def begun(gauss, lambda_sq_inv, tau_sq_inv, sweep=0):
    """The trajectory of chains whose coefficients do not matter."""
    q = len(gauss.H)
    zero = np.zeros((len(tau_sq_inv), q))
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
    point, reference_score, information, _ = reference
    offset = beta - point
    energy = reference_score @ offset - offset @ information @ offset / 2 - loglik
    return energy + (u @ u + v @ v) / 2, np.linalg.solve(L, reference_score - information @ offset - score)


@pytest.mark.parametrize(("p", "q", "n_threads"), [(2, 3, 1), (3, 3, 2), (139, 140, 2), (139, 140, 5)])
def test_a_trajectory_equals_dense_formulas(p, q, n_threads):
    rng = np.random.default_rng(5)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, p))), np.array([0.1, 1.0, 10.0])
    beta, score, there = rng.standard_normal((3, 3, q))
    loglik, reference, angle = rng.standard_normal(3), quadratic(rng, q), 0.7
    close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-9)
    with open_threads(n_threads) as threads:
        H, b, gauss = mass_matrix(3, p, q, threads)
        begun(gauss, np.ones((3, p)), np.ones(3))  # which is overwritten
        state = HmcState(beta, lambda_sq_inv, tau_sq_inv, loglik, score, 9, None, None)
        start = gauss.begin(reference, state, KEY)
        turned = gauss.kick_and_rotate(copy.deepcopy(start), angle)
        placed = gauss.to_beta(turned)
        kicked = gauss.kick(copy.deepcopy(turned), angle, there, loglik, 2 * score)
    np.testing.assert_array_equal(start[1], cpu.normal((3, q), KEY, 9, MOMENTUM_PURPOSE))
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
        close(kicked.energy[c], energy_and_force(reference, there[c], loglik[c], 2 * score[c], L, u, v)[0])


def assert_is_that_of(gauss, trajectory, H, b, precisions):
    """Mean, factor and log_norm of each chain are those of its prior precisions (n_chains, q)."""
    q = len(b)
    columns = gauss.to_beta(trajectory._replace(u=np.eye(len(precisions), q)))
    for c, d in enumerate(precisions):
        mean, M, log_norm = dense(H, b, d, q - 1)
        np.testing.assert_allclose(gauss.mean[c], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(gauss.log_norm[c], log_norm, rtol=1e-9)
        np.testing.assert_allclose(columns[c] - mean, np.linalg.inv(np.linalg.cholesky(M)).T[:, c], atol=1e-9)


def tuned(tau_moves, tau_step, slow=()):
    return Tuning(1.0, 1, tau_moves, tau_step, slow)


@pytest.mark.parametrize(("n_threads", "slow", "tau_step"), [(1, (), 0.1), (2, (3, 4, 77, 138), 0.1), (2, (5,), 0.0)])
def test_moves_of_the_scales_take_the_gaussian_along(n_threads, slow, tau_step):
    rng = np.random.default_rng(6)
    lambda_sq_inv, tau_sq_inv = np.exp(rng.standard_normal((3, 139))), np.array([0.1, 1.0, 10.0])
    with open_threads(n_threads) as threads:
        H, b, gauss = mass_matrix(3, 139, 140, threads)
        trajectory = begun(gauss, lambda_sq_inv, tau_sq_inv)
        given = lambda_sq_inv.copy(), tau_sq_inv.copy()
        lambdas, taus, share = gauss.move_scales(*given, TAU_0, tuned(4, tau_step, slow), 0, KEY)
        assert_is_that_of(gauss, trajectory, H, b, precisions(lambdas, taus, 140))
    np.testing.assert_array_equal(given[0], lambda_sq_inv)  # they may be those of a state that stays
    np.testing.assert_array_equal(given[1], tau_sq_inv)
    others = np.setdiff1d(np.arange(139), slow)
    assert (lambdas != lambda_sq_inv)[:, list(slow)].any(axis=0).all()
    if tau_step:
        growth = lambdas[:, others] / lambda_sq_inv[:, others]
        assert 2 <= max(len(np.unique(row.round(9))) for row in growth) <= 2**4  # held in some of four moves
        assert (taus != tau_sq_inv).any()
        assert ((share > 0) == (taus != tau_sq_inv)).all()
        np.testing.assert_allclose(share * 4, np.round(share * 4), atol=1e-12)
    else:
        np.testing.assert_array_equal(taus, tau_sq_inv)
        np.testing.assert_array_equal(lambdas[:, others], lambda_sq_inv[:, others])


def _log_half_cauchy(precision):
    """log p(log s) of a half-Cauchy s, up to a constant; precision = s^-2, in units of its scale."""
    return 0.5 * np.log(precision) - np.log1p(precision)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_moves_of_tau_equal_dense_formulas(d):
    """Each with random numbers of its own, and an answer of its own to which columns are held. Each lambda_j is shared
    by d coefficients."""
    rng, tau_step, n_moves = np.random.default_rng(8), 0.8, 6
    start = np.repeat(np.exp(rng.standard_normal((5, 2))), d, axis=1), np.exp(rng.standard_normal(5))
    H, b, gauss = mass_matrix(5, 2 * d, 2 * d + 1, n_contrasts=d)
    information = H.diagonal()[: 2 * d].reshape(2, d).mean(axis=1)
    begun(gauss, *start)
    got = gauss.move_scales(*start, TAU_0, tuned(n_moves, tau_step), 3, KEY)
    step = cpu.normal((5, n_moves), KEY, 3, TAU_MOVE_PURPOSE)
    level = cpu.exponential(np.ones((5, n_moves)), KEY, 3, TAU_ACCEPT_PURPOSE)
    uniform = cpu.uniform((5, 2 * n_moves), KEY, 3, HOLD_PURPOSE).reshape(5, n_moves, 2)

    def log_law(x, tau_sq_inv, free):
        """The log-density of the scales and of the choice of columns."""
        odds = information / (tau_sq_inv * x * TAU_HALF_HELD)
        choice = np.where(free, -np.log1p(odds), np.log(odds) - np.log1p(odds)).sum()
        prior = _log_half_cauchy(tau_sq_inv * TAU_0**2) + _log_half_cauchy(x).sum()
        return dense(H, b, np.append(np.repeat(tau_sq_inv * x, d), 0.0), 2 * d)[2] + prior + choice

    accepted = np.zeros(5)
    for c, (x, tau_sq_inv) in enumerate(zip(start[0][:, ::d], start[1], strict=True)):
        for k in range(n_moves):
            odds = information / (tau_sq_inv * x * TAU_HALF_HELD)
            free = uniform[c, k] * (1 + odds) >= odds
            proposed = tau_sq_inv * np.exp(-2 * tau_step * step[c, k])
            new = np.where(free, x, x * tau_sq_inv / proposed)
            if log_law(new, proposed, free) > log_law(x, tau_sq_inv, free) - level[c, k]:
                x, tau_sq_inv, accepted[c] = new, proposed, accepted[c] + 1 / n_moves
        np.testing.assert_allclose(got[0][c], np.repeat(x, d), rtol=1e-12)
        np.testing.assert_allclose(got[1][c], tau_sq_inv, rtol=1e-12)
    np.testing.assert_allclose(got[2], accepted, rtol=1e-12)
    assert 0.2 < accepted.mean() < 0.8
