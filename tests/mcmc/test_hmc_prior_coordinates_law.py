"""A sweep in the coordinates of the prior leaves the joint law of parameters and data alone (Geweke 2004), and what
says so catches planted errors."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import laws
import numpy as np
import pytest
from laws import ALONE, KEY, N_CHAINS, TAU_0, always_accepted, mostly_slow, planted, prior_draws
from scipy.integrate import quad
from scipy.special import exp1
from scipy.stats import beta as beta_law
from scipy.stats import halfcauchy, ks_2samp, kstest, norm

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._mcmc import hmc_prior_coordinates
from skhorseshoe._mcmc.run import Problem

ANCHOR, SLAB = np.array([0.4, 0.0, -0.3, 1.0]), 1.0
OWN_SLABS = np.array([0.3, 1.0, np.inf])  # as columns in their own units have them
PLAIN = laws.Given(2 * laws.X, 2 * laws.X)  # so that the data have something to say
SPARSE = laws.Given(laws.sparse.csr_array(2 * laws.SOME), 2 * laws.SOME, laws.sparse_cpu)


class RowsOfManyDataSets(laws.RowsOfManyDataSets):
    """Each chain has its own y, also where chains are asked for twice at once."""

    def score(self, beta):
        y = self.y
        self.y = np.tile(y, (len(beta) // len(y), 1))
        try:
            return super().score(beta)
        finally:
            self.y = y


def joint_draws(n, rng, slab_precision, given):
    """beta, tau^-2 and y; with a slab, of those by whose side a 0 was seen with its error."""
    parts = []
    while sum(len(part[0]) for part in parts) < n:
        beta, _, tau_sq_inv, _ = prior_draws(4 * n, rng, ANCHOR)
        keep = rng.uniform(size=len(beta)) < np.exp(-(slab_precision * beta[:, :3] ** 2).sum(axis=1) / 2)
        parts.append([part[keep] for part in (beta, tau_sq_inv)])
    beta, tau_sq_inv = (np.concatenate(part)[:n] for part in zip(*parts, strict=True))
    return beta, tau_sq_inv, given.redrawn(beta, rng)


def fixed_prior(slab_precision):
    return SimpleNamespace(anchor=ANCHOR, diagonal=np.append(np.full(3, slab_precision), 0.0))


def geweke(ops=cpu, given=PLAIN, slab=SLAB, sampler_slab=SLAB, n_batches=24, exchanges=True):
    """``laws.geweke`` for whole sweeps, whose proposals are neither all accepted nor all rejected.

    sampler_slab : the slab that the sampler has.
    """
    rng, rows = np.random.default_rng(5), RowsOfManyDataSets(given.ops, given)
    precision, sampler_precision = (0.0 if one is None else one**-2.0 for one in (slab, sampler_slab))
    fixed = fixed_prior(sampler_precision)
    centre, size = np.array([0.2, -0.1, 0.0, 0.1, np.log(TAU_0)]), np.array([0.8, 1.0, 1.1, 0.7, 0.9])
    coordinates = ops.PriorCoordinates(fixed, np.array([0.5, 1.0, 2.0]), TAU_0, centre, size, N_CHAINS, ALONE)
    swaps = ops.Exchanges(fixed, np.array([2.0, 3.0, 4.0]), np.array([1.0, 2.0, 1.5]), ALONE) if exchanges else None
    rows.ops, problem, accepted = ops, Problem(rows, fixed, TAU_0, KEY), []

    def advance(parameters, y, k):
        rows.y = y
        none = np.zeros(N_CHAINS)
        state = hmc_prior_coordinates.PriorCoordinateState(*parameters, *rows.score(parameters[0]), none, none, 2 * k)
        for i in range(2):
            state = hmc_prior_coordinates.sweep(state, problem, coordinates, swaps, 0.7, 2 + i)
            accepted.append([state.acceptance.mean(), state.exchanged.mean() if exchanges else 0.5])
        return state[:2]

    draws = partial(joint_draws, N_CHAINS, rng, precision, given), advance, partial(given.redrawn, rng=rng)
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        change = laws.geweke(*draws, laws.bounded_without_lambda, n_batches, 4)
    rates = np.mean(accepted, axis=0)
    assert rates.min() > 0.1
    assert rates.max() < 0.97
    return change


@pytest.mark.parametrize("slab", mostly_slow([OWN_SLABS, SLAB, None]))  # the first has all kinds
def test_prior_coordinates_pass_geweke(slab):
    assert geweke(slab=slab, sampler_slab=slab) < 4


@pytest.mark.slow
def test_prior_coordinates_pass_geweke_with_sparse_rows_and_without_exchanges():
    assert geweke(given=SPARSE) < 4
    assert geweke(exchanges=False, n_batches=48) < 4


class JacobianForgotten(cpu.PriorCoordinates):
    def begin(self, state, key):
        return self._without(super().begin(state, key), state.beta)

    def kick(self, trajectory, angle, beta, *rest):
        return self._without(super().kick(trajectory, angle, beta, *rest), beta)

    def _without(self, trajectory, beta):
        trajectory.energy[:] -= np.log(beta[:, :3] / self.own.given["carried"]).sum(axis=1)  # of w by v
        return trajectory


class PriorOfTauForgotten(cpu.PriorCoordinates):
    def begin(self, state, key):
        return self._without(super().begin(state, key), state.tau_sq_inv)

    def to_beta(self, trajectory):
        self.tau_sq_inv = (placed := super().to_beta(trajectory))[1]
        return placed

    def kick(self, *rest):
        return self._without(super().kick(*rest), self.tau_sq_inv)

    def _without(self, trajectory, tau_sq_inv):
        trajectory.energy[:] -= np.log1p(1 / (tau_sq_inv * TAU_0**2))
        return trajectory


class ExchangesWith(cpu.Exchanges):
    """Exchanges whose way there is not weighed in a part."""

    left_out = "log_probability"

    def minus_log_ratio(self, state, exchange, *rest):
        without = exchange._replace(**{self.left_out: 0.0 * exchange.log_density})
        return super().minus_log_ratio(state, without, *rest)


class DensityForgotten(ExchangesWith):
    left_out = "log_density"


class PriorForgotten(cpu.Exchanges):
    def minus_log_ratio(self, state, *rest):
        return super().minus_log_ratio(state._replace(tau_sq_inv=1e-12 * state.tau_sq_inv), *rest)


ERRORS = {
    "Jacobian of w": {"ops": planted(PriorCoordinates=JacobianForgotten), "n_batches": 8},
    "prior of tau": {"ops": planted(PriorCoordinates=PriorOfTauForgotten), "n_batches": 8},
    "which column goes out": {"ops": planted(Exchanges=ExchangesWith), "n_batches": 48},
    "density of what comes in": {"ops": planted(Exchanges=DensityForgotten), "n_batches": 48},
    "prior of what is exchanged": {"ops": planted(Exchanges=PriorForgotten), "n_batches": 8},
    "no Metropolis test": {"ops": planted(metropolis=always_accepted)},
    "slab": {"sampler_slab": None},
}


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_geweke_catches_errors_in_prior_coordinates(error):
    assert geweke(**ERRORS[error]) > 5


def test_quantiles_are_those_of_the_horseshoe():
    """The likelihood says so little that w is v: between two of them lies what lies between their coefficients."""
    v = np.array([0.001, 0.01, 0.12, 0.13, 0.6, 1.5, 3.0, 5.0, 7.0])
    fixed = SimpleNamespace(anchor=np.zeros(len(v)), diagonal=np.zeros(len(v)))
    far = cpu.PriorCoordinates(fixed, np.full(len(v), 1e300), 1.0, np.zeros(10), np.ones(10), 1, ALONE)
    x, _ = far.to_beta(SimpleNamespace(u=np.append(v, 0.0)[None]))

    def density(log_x):
        b = np.exp(2 * log_x) / 2
        return (np.exp(b) * exp1(b) if b < 300 else 1 / b - 1 / b**2) / np.sqrt(2 * np.pi**3) * np.exp(log_x)

    for ends, (low, high) in zip(pairwise(np.log(x[0])), pairwise(v), strict=True):
        assert quad(density, *ends, epsabs=0)[0] == pytest.approx(norm.sf(low) - norm.sf(high), rel=1e-5)


@pytest.mark.parametrize("d", [1, 2, 8, 40])
@pytest.mark.parametrize("size", [1e-8, 1e-3, 0.1, 1.0, 50.0, 1e6])
def test_coordinates_lead_back(size, d):
    rng = np.random.default_rng(0)
    beta, tau_sq_inv = size * rng.standard_cauchy((4, 41)), np.array([1e-4, 1.0, 1e4, 1e8])
    fixed = SimpleNamespace(anchor=np.zeros(41), diagonal=np.zeros(41))
    coordinates = cpu.PriorCoordinates(fixed, np.full(40 // d, 0.3), 0.1, np.zeros(42), np.ones(42), 4, ALONE, d)
    back, tau_back = coordinates.to_beta(SimpleNamespace(u=coordinates.from_beta(beta, tau_sq_inv)))
    np.testing.assert_allclose(back, beta, rtol=1e-4)
    np.testing.assert_allclose(tau_back, tau_sq_inv, rtol=1e-12)


class NoRows:
    """Of which nothing is learnt."""

    ops, takes_fused_calls = cpu, False
    quick = property(lambda self: self)

    def score(self, beta):
        return np.zeros(len(beta)), np.zeros_like(beta)


def without_rows(d, make=cpu.PriorCoordinates, n_sweeps=10):
    """Least p-value of the law of tau and of two columns, with d coefficients that share a lambda, after sweeps without
    rows from draws of it."""
    rng, zero, drawn, accepted = np.random.default_rng(d), np.zeros(N_CHAINS), [], []
    fixed = SimpleNamespace(anchor=np.zeros(2 * d), diagonal=np.zeros(2 * d))
    centre, size = rng.uniform(-0.3, 0.3, 2 * d + 1), rng.uniform(0.7, 1.2, 2 * d + 1)
    coordinates = make(fixed, np.array([0.4, 1.5]), TAU_0, centre, size, N_CHAINS, ALONE, d)
    problem = Problem(NoRows(), fixed, TAU_0, KEY)
    for k in range(8):
        tau, scale = abs(rng.standard_cauchy((N_CHAINS, 1))) * TAU_0, abs(rng.standard_cauchy((N_CHAINS, 2)))
        beta = rng.standard_normal((N_CHAINS, 2 * d)) * (tau * scale).repeat(d, axis=1)
        state = hmc_prior_coordinates.PriorCoordinateState(beta, tau[:, 0] ** -2.0, zero, 0 * beta, zero, zero, 100 * k)
        for i in range(n_sweeps):
            state = hmc_prior_coordinates.sweep(state, problem, coordinates, None, 0.5, 2 + i % 3)
            accepted.append(state.acceptance.mean())
        drawn.append(np.column_stack([state.tau_sq_inv**-0.5, state.beta]))
    assert 0.3 < np.mean(accepted) < 0.99
    tau, columns = np.split(np.concatenate(drawn), [1], axis=1)
    columns = columns.reshape(-1, 2, d)
    length = np.linalg.norm(columns, axis=2)
    lengths = abs(rng.standard_cauchy(10**5)) * np.sqrt(rng.chisquare(d, 10**5))
    tests = [kstest(tau[:, 0], halfcauchy(scale=TAU_0).cdf)]
    tests += [ks_2samp(values, lengths) for values in (length / tau).T]
    tests += [kstest(values, beta_law(0.5, (d - 1) / 2).cdf) for values in ((columns[:, :, 0] / length) ** 2).T]
    return min(test.pvalue for test in tests)


class DirectionsForgotten(cpu.PriorCoordinates):
    """Without the factor by which a direction is stretched."""

    def __init__(self, fixed, distance, tau_0, *rest):
        super().__init__(fixed, distance, tau_0, *rest)
        self.far, self.d = cpu.PriorCoordinates(fixed, np.full(2, 1e300), tau_0, *rest), rest[-1]

    def begin(self, state, key):
        return self._without(super().begin(state, key), state.beta, state.tau_sq_inv)

    def to_beta(self, trajectory):
        self.tau_sq_inv = (placed := super().to_beta(trajectory))[1]
        return placed

    def kick(self, trajectory, step, beta, *rest):
        return self._without(super().kick(trajectory, step, beta, *rest), beta, self.tau_sq_inv)

    def _without(self, trajectory, beta, tau_sq_inv):
        w, v = (one.from_beta(beta, tau_sq_inv)[:, :-1].reshape(len(beta), 2, -1) for one in (self, self.far))
        stretch = np.linalg.norm(w, axis=2) / np.linalg.norm(v, axis=2)
        trajectory.energy[:] -= (self.d - 1) * np.log(stretch).sum(axis=1)
        return trajectory


@pytest.mark.parametrize("d", [2, 3, 9])
def test_coefficients_that_share_a_lambda_have_the_law_of_the_prior(d):
    assert without_rows(d) > 1e-4


@pytest.mark.parametrize("d", [2, 9])
def test_a_direction_that_is_not_stretched_is_seen(d):
    assert without_rows(d, DirectionsForgotten) < 1e-6
