"""The scales where several coefficients of a column share one lambda_j, against quadrature."""

import numpy as np
import pytest
from laws import ALONE, KEY, N_CHAINS, TAU_0, mostly_slow
from scipy import stats

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._mcmc.hmc import HmcState, Reference, Tuning

P_VALUE = 1e-4


def log_density_of_shared_scale(log_x, b, d):
    """Of log x, x = lambda^-2, given d coefficients of half the square tau^2 b."""
    with np.errstate(over="ignore"):
        return (d + 1) / 2 * log_x - b * np.exp(log_x) - np.logaddexp(0, log_x)


def of_law(log_x, log_density):
    """A distribution function from log-densities on a grid."""
    total = np.append(0.0, np.cumsum(np.exp(np.logaddexp(log_density[1:], log_density[:-1]) - log_density.max())))
    return lambda at: np.interp(at, log_x, total / total[-1])


@pytest.mark.parametrize("b", [1e-290, 1e-20, 0.1, 0.6, 2.1, 30.0, 1e20, 1e290])
@pytest.mark.parametrize("d", [2, 3, 9, 200])
def test_a_shared_local_scale_has_its_law(d, b):
    gamma = np.random.default_rng(d).standard_normal((100, 20, d))
    gamma *= np.sqrt(2 * b / 0.3) / np.linalg.norm(gamma, axis=2, keepdims=True)
    x = cpu.draw_lambda_given_beta(gamma.reshape(100, -1), np.full(100, 0.3), KEY, 4, d).reshape(gamma.shape)
    assert (x == x[..., :1]).all()
    assert (x > 0).all()
    log_x = np.linspace(-np.log(max(b, 1.0)) - 60, np.log(d) - np.log(b) + 10, 100_001)
    law = of_law(log_x, log_density_of_shared_scale(log_x, b, d))
    assert stats.kstest(np.log(x[..., 0]).ravel(), law).pvalue > P_VALUE


@pytest.mark.parametrize("d", [2, *mostly_slow([9, 3])])
@pytest.mark.parametrize("sizes", [[1e-12], [0.3], [1e6], [1e-9, 1e-3, 0.02, 0.5, 1.0, 40.0, 1e4], [0.1] * 8])
def test_tau_given_coefficients_that_share_scales_has_its_law(d, sizes):
    """Slice steps leave it invariant, and are nearly independent of where they start: far away."""
    log_tau = np.linspace(np.log(min([*sizes, TAU_0])) - 25, np.log(max([*sizes, TAU_0])) + 25, 1001)
    density = log_tau - np.log1p((np.exp(log_tau) / TAU_0) ** 2) - d * len(sizes) * log_tau
    log_x = np.arange(-150.0, 150.0, 0.2)
    for size in np.unique(sizes):
        b = size**2 / (2 * np.exp(2 * log_tau[:, None]))
        density += sizes.count(size) * np.logaddexp.reduce(log_density_of_shared_scale(log_x, b, d), axis=1)
    gamma = np.random.default_rng(d).standard_normal((N_CHAINS, len(sizes), d))
    gamma *= np.array(sizes)[:, None] / np.linalg.norm(gamma, axis=2, keepdims=True)
    beta, tau_sq_inv, drawn = gamma.reshape(N_CHAINS, -1), np.full(N_CHAINS, max(sizes) ** -2.0), []
    for t in range(60):
        tau_sq_inv = cpu.draw_tau_given_beta(beta, tau_sq_inv, TAU_0, KEY, t, d)
        if t >= 30 and t % 10 == 0:
            drawn.append(-0.5 * np.log(tau_sq_inv))
    assert stats.kstest(np.ravel(drawn), of_law(log_tau, density)).pvalue > P_VALUE


def test_moves_of_tau_with_u_held_leave_the_law_of_shared_scales_invariant():
    """With one column of two coefficients: from |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau) p(log lambda)."""
    H, b = np.array([[9.0, 2.0], [2.0, 4.0]]), np.array([3.0, -1.0])
    log_tau, log_lambda = np.linspace(-12, 10, 441), np.linspace(-14, 14, 561)
    d = np.exp(-2 * np.add.outer(log_tau, log_lambda))[..., None]
    values, vectors = np.linalg.eigh(H)
    density = (np.log(d / (values + d)) + (vectors.T @ b) ** 2 / (values + d)).sum(axis=-1) / 2
    density += (log_tau - np.log1p(np.exp(2 * log_tau) / TAU_0**2))[:, None]
    density += log_lambda - np.log1p(np.exp(2 * log_lambda))
    share = np.exp(density - density.max())
    rng, drawn, zero = np.random.default_rng(1), [], np.zeros((N_CHAINS, 2))
    gauss = cpu.MassMatrix(H, b, N_CHAINS, 2, ALONE, n_contrasts=2)
    for t in range(16):
        at = np.unravel_index(rng.choice(share.size, N_CHAINS, p=share.ravel() / share.sum()), share.shape)
        within = rng.uniform(-0.025, 0.025, (2, N_CHAINS))
        tau_sq_inv, x = np.exp(-2 * (log_tau[at[0]] + within[0])), np.exp(-2 * (log_lambda[at[1]] + within[1]))
        state = HmcState(zero, np.column_stack([x, x]), tau_sq_inv, zero[:, 0], zero, t, None, None)
        gauss.begin(Reference(np.zeros(2), np.zeros(2), 0 * H, None), state, KEY)
        lambdas, taus, _ = gauss.move_scales(*state[1:3], TAU_0, Tuning(1.0, 1, 200, 1.5), t, KEY)
        assert (lambdas[:, 0] == lambdas[:, 1]).all()
        drawn.append([-0.5 * np.log(taus), -0.5 * np.log(lambdas[:, 0])])
    drawn = np.concatenate(drawn, axis=1)
    for axis, grid in enumerate((log_tau, log_lambda)):
        marginal = of_law(grid, np.log(share.sum(axis=1 - axis)))
        assert stats.kstest(drawn[axis], marginal).pvalue > P_VALUE


GRID = np.linspace(-18, 18, 193)  # of log lambda


def drawn_scales(H, b, tau, d):
    """log lambda of both columns after moves with u held, tau fixed; (2, n). The last coefficient is not shrunk."""
    q, drawn, x = len(b), [], np.ones((N_CHAINS, 2 * d))
    gauss, zero = cpu.MassMatrix(H, b, N_CHAINS, 2 * d, ALONE, n_contrasts=d), np.zeros((N_CHAINS, q))
    for t in range(120):
        state = HmcState(zero, x, np.full(N_CHAINS, tau**-2.0), zero[:, 0], zero, t, None, None)
        gauss.begin(Reference(np.zeros(q), np.zeros(q), 0 * H, None), state, KEY)
        x, taus, _ = gauss.move_scales(*state[1:3], TAU_0, Tuning(1.0, 1, 2, 0.0, slow=(0, 1)), t, KEY)
        np.testing.assert_allclose(taus, tau**-2.0, rtol=1e-12)
        assert (x.reshape(N_CHAINS, 2, d) == x.reshape(N_CHAINS, 2, d)[..., :1]).all()
        if t >= 20 and t % 10 == 0:
            drawn.append(-0.5 * np.log(x[:, ::d].T))
    return np.concatenate(drawn, axis=1)


def grid_of_scales(H, b, tau, d):
    """The log-density of both on the grid, by determinants: |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log lambda)."""
    one, two = np.meshgrid(GRID, GRID, indexing="ij")
    log_d = -2 * np.repeat(np.dstack([one, two]) + np.log(tau), d, axis=-1)
    M = H + np.eye(len(b)) * np.concatenate([np.exp(log_d), np.zeros((*one.shape, 1))], axis=-1)[..., None]
    density = (log_d.sum(axis=-1) - np.linalg.slogdet(M)[1] + np.linalg.solve(M, b[:, None])[..., 0] @ b) / 2
    return density + sum(each - np.log1p(np.exp(2 * each)) for each in (one, two))


def shared_problem(d, strength, seed=0):
    """H and b of two correlated columns and an intercept, one contrast of the first of which is less informed."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((2 * d + 1, 2 * d + 1))
    A[:, 0] *= 0.05
    return A.T @ A + 1e-9 * np.eye(len(A)), strength * A.T @ rng.standard_normal(len(A))


@pytest.mark.parametrize("tau", [0.1, 1e3])
@pytest.mark.parametrize(("d", "strength"), [(2, 0.1), (2, 5.0), (3, 1.5), (5, 0.0)])
def test_moves_of_shared_scales_with_u_held_have_their_law(d, strength, tau):
    H, b = shared_problem(d, strength)
    share = np.exp((density := grid_of_scales(H, b, tau, d)) - density.max())
    for axis, drawn in enumerate(drawn_scales(H, b, tau, d)):
        assert stats.kstest(drawn, of_law(GRID, np.log(share.sum(axis=1 - axis)))).pvalue > P_VALUE


@pytest.mark.parametrize("error", ["LARGER_MEAN", pytest.param("SMALLER_TAU", marks=pytest.mark.slow)])
def test_quadrature_catches_errors_in_moves_of_shared_scales(error, plant):
    H, b = shared_problem(3, 1.5)
    share = np.exp((density := grid_of_scales(H, b, 0.3, 3)) - density.max())
    plant(error)
    marginals = [of_law(GRID, np.log(share.sum(axis=1 - axis))) for axis in range(2)]
    found = [stats.kstest(*given).pvalue for given in zip(drawn_scales(H, b, 0.3, 3), marginals, strict=True)]
    assert min(found) < 1e-8
