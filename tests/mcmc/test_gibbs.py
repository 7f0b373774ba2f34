"""The sampler draws from the posterior: Geweke's joint test, with planted errors, and independent long runs."""

import numpy as np
import pytest
from laws import TAU_0, X, agree, agrees_with_gold, bounded, load_gold, mostly_slow, planted, prior_draws
from scipy.special import ndtr

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import EXPAND, LOCAL, LOCAL_AUX
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.gibbs import State, sweep
from skhorseshoe._utils.threads import Threads
from skhorseshoe.diagnostics import mcse_mean, rhat

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

INTERCEPT_PRIOR = np.diag([0.0, 0.0, 0.0, 1.0])  # precision; N(0, 1)
KEY = (np.uint32(7), np.uint32(1))


def marginal_draws(n, rng):
    """Independent draws of everything from its prior, as ``bounded`` functions."""
    beta, lambda_sq_inv, tau_sq_inv, y = prior_draws(n, rng)
    # lambda^-2 | nu ~ Gamma(1/2, nu^-1) and nu^-1 ~ Gamma(1/2, 1) give nu^-1 | lambda ~ Exp(1 + lambda^-2).
    nu_inv = rng.standard_exponential((n, 3)) / (1 + lambda_sq_inv)
    xi_inv = rng.standard_exponential(n) / (TAU_0**-2 + tau_sq_inv)
    return bounded(beta, lambda_sq_inv, tau_sq_inv, y, nu_inv, xi_inv)


def successive_draws(n, rng, ops, expand):
    """Draws of everything by sweeps given y and draws of y given the state, in turn."""
    y = np.array([0, 1, 0, 1, 1, 0], dtype=np.uint8)
    rows = Rows(X, y, True, ops, Threads(1))
    precision = ops.Precision(rows.gram() + INTERCEPT_PRIOR, Threads(1))
    one = np.ones((1, 3))
    state = State(np.zeros((1, 4)), one, one, np.ones(1), np.ones(1), 0)
    kept = []
    for noise in rng.standard_normal((n, 6)):
        state = sweep(state, rows, precision, TAU_0, ops, KEY, expand)
        y[:] = X @ state.beta[0, :3] + state.beta[0, 3] + noise > 0
        kept.append([*(np.ravel(part) for part in state[:5]), y.astype(float)])
    beta, lambda_sq_inv, nu_inv, tau_sq_inv, xi_inv, y = (np.array(part) for part in zip(*kept, strict=True))
    return bounded(beta, lambda_sq_inv, tau_sq_inv.ravel(), y, nu_inv, xi_inv.ravel())


def geweke(ops, n, expand=False):
    """Largest difference of the two ways to draw from the joint law, in standard errors."""
    rng = np.random.default_rng(5)
    marginal, successive = marginal_draws(400_000, rng), successive_draws(n, rng, ops, expand)
    error = np.hypot(marginal.std(axis=0) / np.sqrt(len(marginal)), mcse_mean(successive[None]))
    return abs((marginal.mean(axis=0) - successive.mean(axis=0)) / error).max()


def scaled_rate(purpose, factor):
    def exponential(rate, key, t, which):
        return cpu.exponential(rate * factor if which == purpose else rate, key, t, which)

    return exponential


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
    "rate of lambda without its half": planted(exponential=scaled_rate(LOCAL, 2.0)),
    "rate of nu": planted(exponential=scaled_rate(LOCAL_AUX, 1.5)),
    "rate of tau": planted(gamma=lambda shape, rate, *rest: cpu.gamma(shape, 1.3 * rate, *rest)),
    "side of y": planted(latent=side_forgotten),
    "noise of beta": planted(Precision=NoiseForgotten),
    "prior of beta counted twice": planted(Precision=PriorTwice),
}


@pytest.mark.parametrize("expand", [False, True])
def test_sweep_passes_gewekes_joint_test(expand):
    assert geweke(cpu, 40_000, expand) < 4


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_gewekes_joint_test_catches(error):
    assert geweke(ERRORS[error], 15_000) > 6


def expanded_by(change):
    def gamma(*args):
        drawn = cpu.gamma(*args)
        return change(drawn) if args[-1] == EXPAND else drawn

    return planted(gamma=gamma)


class WholeSquare(cpu.Precision):
    def draw(self, b, d, noise, total, gamma):
        return super().draw(b, d, noise, total + np.einsum("cq,cq->c", b, b) / 8, gamma)


@pytest.mark.parametrize(
    "ops",
    [
        pytest.param(expanded_by(lambda g: 0.8 * g), id="rate"),
        pytest.param(
            planted(gamma=lambda shape, *rest: cpu.gamma(shape - (rest[-1] == EXPAND), *rest)),
            id="shape",
            marks=pytest.mark.slow,
        ),
        pytest.param(planted(Precision=WholeSquare), id="quadratic form", marks=pytest.mark.slow),
    ],
)
def test_gewekes_joint_test_catches_a_wrong_factor(ops):
    assert geweke(ops, 40_000, expand=True) > 6


@pytest.mark.parametrize("frozen", ["beta", "lambda_sq_inv", "nu_inv", "tau_sq_inv", "xi_inv"])
def test_every_unknown_is_redrawn_in_every_sweep(frozen):
    """A conditional that is never drawn leaves the joint law alone, so Geweke's test would not see it."""
    one = np.ones((2, 3))
    state = State(np.zeros((2, 4)), one, one, np.ones(2), np.ones(2), 0)
    rows = Rows(X, np.array([0, 1, 0, 1, 1, 0], dtype=np.uint8), True, cpu, Threads(1))
    precision = cpu.Precision(rows.gram() + INTERCEPT_PRIOR, Threads(1))
    values = []
    for _ in range(5):
        state = sweep(state, rows, precision, TAU_0, cpu, KEY)
        values.append(getattr(state, frozen).ravel())
    assert len(np.unique(np.concatenate(values))) == 5 * len(values[0])


def test_posterior_is_that_of_two_other_samplers():
    gold = load_gold()
    model = HorseshoeProbitClassifier(n_iter=40_000, thin=10, fit_intercept=False, sampler="gibbs", random_state=1)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_posterior_with_intercept_is_that_of_the_plain_reference_sampler(dtype):
    from reference_gibbs import reference_gibbs

    rng = np.random.default_rng(3)
    data = rng.normal([0, 1, -2, 0], 1, (120, 4))
    y = (data @ [1.0, 0.5, 0, 0] - 1 + rng.standard_normal(120) > 0).astype(int)
    coef, intercept, tau = reference_gibbs(data, y, n_iter=8000, burn_in=1000, n_chains=4, rng=rng, global_scale=0.5)
    model = HorseshoeProbitClassifier(n_iter=8000, global_scale=0.5, sampler="gibbs", random_state=0).fit(
        data.astype(dtype), y
    )
    agree(model.coef_draws_, coef)
    agree(model.intercept_draws_, intercept)
    agree(np.log(model.global_scale_draws_), np.log(tau))


def test_chains_that_start_far_apart_meet():
    rng = np.random.default_rng(8)
    data = rng.standard_normal((400, 3))
    y = data[:, 0] + rng.standard_normal(400) > 0
    early = HorseshoeProbitClassifier(n_iter=4, burn_in=0, n_chains=16, sampler="gibbs", random_state=0).fit(data, y)
    late = HorseshoeProbitClassifier(n_iter=2000, burn_in=500, n_chains=16, sampler="gibbs", random_state=0).fit(
        data, y
    )
    spread = early.coef_draws_[:, 0].std(axis=0)
    assert (spread > late.coef_draws_.std(axis=(0, 1))).all()
    assert rhat(late.coef_draws_).max() < 1.01


@pytest.mark.slow
def test_moving_the_columns_far_from_zero_moves_only_the_intercept():
    rng = np.random.default_rng(11)
    data = rng.standard_normal((200, 3))
    y = data[:, 0] + rng.standard_normal(200) > 0.5
    model = HorseshoeProbitClassifier(n_iter=4000, random_state=0)
    ours, moved = model.fit(data, y).coef_draws_, model.fit(data + 1000.0, y).coef_draws_
    agree(ours, moved)


@pytest.mark.slow
def test_swapping_the_classes_negates_the_posterior():
    rng = np.random.default_rng(9)
    data = rng.standard_normal((150, 3))
    y = (data[:, 0] + rng.standard_normal(150) > 0.5).astype(int)
    model = HorseshoeProbitClassifier(n_iter=6000, random_state=0)
    ours, swapped = model.fit(data, y).coef_draws_, model.fit(data, 1 - y).coef_draws_
    agree(ours, -swapped)


def test_probabilities_are_calibrated_on_data_from_the_model():
    rng = np.random.default_rng(10)
    data = rng.standard_normal((3000, 5))
    p = ndtr(data @ [1.5, -1, 0, 0, 0] + 0.5)
    y = rng.uniform(size=3000) < p
    model = HorseshoeProbitClassifier(n_iter=2000, random_state=0).fit(data[:1000], y[:1000])
    predicted = model.predict_proba(data[1000:])[:, 1]
    z = (y[1000:] - predicted).sum() / np.sqrt((predicted * (1 - predicted)).sum())
    assert abs(z) < 4
    assert abs(predicted - p[1000:]).mean() < 0.03
