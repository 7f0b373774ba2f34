"""A sweep of data augmentation leaves the joint law of parameters and data alone (Geweke 2004), and what says so
catches planted errors."""

from functools import partial

import laws
import numpy as np
import pytest
from laws import ALONE, KEY, N_CHAINS, TAU_0, RowsOfManyDataSets, X, bounded, mostly_slow, planted, prior_draws, redrawn

from skhorseshoe._backends import EXPAND_PURPOSE, LAMBDA_PURPOSE, NU_PURPOSE
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.gibbs import State, sweep
from skhorseshoe._mcmc.run import Problem

pytestmark = pytest.mark.usefixtures("blas_as_in_a_fit")
ROWS = Rows(X, np.array([0, 1, 0, 1, 1, 0], np.uint8), True, cpu, ALONE)
INTERCEPT_PRIOR = np.diag([0.0, 0.0, 0.0, 1.0])  # precision; N(0, 1)


def joint_draws(rng):
    """Independent draws of the state and the data."""
    beta, lambda_sq_inv, tau_sq_inv, y = prior_draws(N_CHAINS, rng)
    # lambda^-2 | nu ~ Gamma(1/2, nu^-1) and nu^-1 ~ Gamma(1/2, 1) give nu^-1 | lambda ~ Exp(1 + lambda^-2).
    nu_inv = rng.standard_exponential((N_CHAINS, 3)) / (1 + lambda_sq_inv)
    xi_inv = rng.standard_exponential(N_CHAINS) / (TAU_0**-2 + tau_sq_inv)
    return beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, y


def functions(beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, y):
    return bounded(beta, lambda_sq_inv, tau_sq_inv, y, nu_inv, xi_inv)


def geweke(ops, expand=False, n_batches=24, n_sweeps=2):
    """``laws.geweke`` for whole sweeps."""
    rng, rows = np.random.default_rng(5), RowsOfManyDataSets(ops)
    precision, problem = ops.Precision(ROWS.gram() + INTERCEPT_PRIOR, ALONE), Problem(rows, None, TAU_0, KEY)

    def advance(parameters, y, k):
        rows.y, state = y, State(*parameters, k * n_sweeps)
        for _ in range(n_sweeps):
            state = sweep(state, problem, precision, expand)
        return state[:5]

    return laws.geweke(partial(joint_draws, rng), advance, partial(redrawn, rng=rng), functions, n_batches, 4)


def scaled_rate(purpose, factor):
    def exponential(rate, key, t, which):
        return cpu.exponential(rate * factor if which == purpose else rate, key, t, which)

    return planted(exponential=exponential)


def side_forgotten(X, y, *rest):
    return cpu.latent(X, np.ones_like(y), *rest)


class NoiseForgotten(cpu.Precision):
    def draw(self, b, d, noise):
        return super().draw(b, d, 0.7 * noise)


class PriorTwice(cpu.Precision):
    def draw(self, b, d, noise):
        return super().draw(b, 2 * d, noise)


ERRORS = {
    "shape of tau p/2 instead of (p+1)/2": planted(gamma=lambda shape, *rest: cpu.gamma(shape - 0.5, *rest)),
    "shape of tau of the paper's unscaled count": planted(gamma=lambda shape, *rest: cpu.gamma(shape + 0.5, *rest)),
    "rate of lambda without its half": scaled_rate(LAMBDA_PURPOSE, 2.0),
    "rate of nu": scaled_rate(NU_PURPOSE, 1.5),
    "rate of tau": planted(gamma=lambda shape, rate, *rest: cpu.gamma(shape, 1.3 * rate, *rest)),
    "side of y": planted(latent=side_forgotten),
    "noise of beta": planted(Precision=NoiseForgotten),
    "prior of beta counted twice": planted(Precision=PriorTwice),
}


@pytest.mark.parametrize("expand", [False, True])
def test_gibbs_and_pxda_pass_geweke(expand):
    assert geweke(cpu, expand) < 4


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_geweke_catches_wrong_laws_in_gibbs(error):
    assert geweke(ERRORS[error], n_batches=12) > 6


def factor_with(shape=0.0, size=1.0):
    """The gamma variate of the factor of z, with another shape or multiplied."""

    def gamma(a, *rest):
        of_factor = rest[-1] == EXPAND_PURPOSE
        return cpu.gamma(a + shape * of_factor, *rest) * (size if of_factor else 1.0)

    return planted(gamma=gamma)


class WholeSquare(cpu.Precision):
    def draw(self, b, d, noise, total, gamma):
        return super().draw(b, d, noise, total + np.einsum("cq,cq->c", b, b) / 8, gamma)


FACTORS = {"size": factor_with(size=0.8), "shape": factor_with(-1.0), "square": planted(Precision=WholeSquare)}


@pytest.mark.parametrize("error", mostly_slow(FACTORS))
def test_geweke_catches_a_wrong_factor_of_z_in_pxda(error):
    assert geweke(FACTORS[error], expand=True) > 6


@pytest.mark.parametrize("frozen", ["beta", "lambda_sq_inv", "nu_inv", "tau_sq_inv", "xi_inv"])
def test_gibbs_redraws_every_unknown_in_every_sweep(frozen):
    """A conditional that is never drawn leaves the joint law alone, so Geweke's test would not see it."""
    one = np.ones((2, 3))
    state, values = State(np.zeros((2, 4)), one, one, np.ones(2), np.ones(2), 0), []
    precision = cpu.Precision(ROWS.gram() + INTERCEPT_PRIOR, ALONE)
    for _ in range(5):
        state = sweep(state, Problem(ROWS, None, TAU_0, KEY), precision)
        values.append(getattr(state, frozen).ravel())
    assert len(np.unique(np.concatenate(values))) == 5 * len(values[0])
