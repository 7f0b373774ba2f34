"""Convergence diagnostics: against ArviZ, and against what is known without it."""

import logging

import numpy as np
import pytest
from laws import peak_memory
from scipy.signal import lfilter

from skhorseshoe.diagnostics import Convergence, autocorrelation, convergence, ess_bulk, ess_tail, mcse_mean, rhat

FUNCTIONS = {"rhat": rhat, "ess_bulk": ess_bulk, "ess_tail": ess_tail, "mcse_mean": mcse_mean}


def autoregressive(rho, shape, seed=0):
    """Stationary AR(1) chains along axis 1, with innovations of variance 1."""
    noise = np.random.default_rng(seed).standard_normal(shape)
    noise[:, 0] /= np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=1)


def iid(shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape)


CASES = {
    "iid": iid,
    "slow": lambda shape: autoregressive(0.9, shape),
    "very slow": lambda shape: autoregressive(0.995, shape),
    "anticorrelated": lambda shape: autoregressive(-0.5, shape),
    "strongly anticorrelated": lambda shape: autoregressive(-0.95, shape),
    "different means": lambda shape: iid(shape) + np.arange(shape[0])[:, None, None],
    "different scales": lambda shape: iid(shape) * np.arange(1, shape[0] + 1)[:, None, None],
    "heavy tails": lambda shape: np.random.default_rng(0).standard_cauchy(shape),
    "heavy tail, one side": lambda shape: np.exp(5 * autoregressive(0.7, shape)),
    "trend": lambda shape: iid(shape) + np.linspace(0, 3, shape[1])[:, None],
    "one decimal": lambda shape: np.round(autoregressive(0.5, shape), 1),
    "integers": lambda shape: np.round(autoregressive(0.9, shape)),
    "0/1": lambda shape: (autoregressive(0.5, shape) > 0.3).astype(float),
    "0/1, rarely 1": lambda shape: (autoregressive(0.5, shape) > 2.2).astype(float),
    "one chain stuck": lambda shape: np.concatenate([iid(shape)[:-1], np.full((1, *shape[1:]), 0.3)]),
    "one chain": lambda shape: autoregressive(0.5, (1, *shape[1:])),
    "two chains": lambda shape: autoregressive(0.5, (2, *shape[1:])),
}


def arviz_values(name, draws):
    """One diagnostic of ArviZ, 0.x or 1.x, of each parameter in draws of shape (n_chains, n_draws, n_parameters)."""
    az = pytest.importorskip("arviz")
    logging.getLogger("arviz").setLevel(logging.ERROR)
    call = {
        "rhat": lambda one: az.rhat(one, method="rank"),
        "ess_bulk": lambda one: az.ess(one, method="bulk"),
        "ess_tail": lambda one: az.ess(one, method="tail", prob=(0.05, 0.95)),
        "mcse_mean": lambda one: az.mcse(one, method="mean"),
    }[name]
    # 0.x returns an array of one value in some environments.
    return [float(np.squeeze(call(np.ascontiguousarray(one)))) for one in np.moveaxis(draws, -1, 0)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning:arviz")
@pytest.mark.parametrize("n_draws", [401, 400, 4, 5, 7, 10])
@pytest.mark.parametrize("case", CASES)
def test_equals_arviz(case, n_draws):
    # At other sizes ArviZ 0.x can miss ties, by rounding in its interpolated quantiles; 1.x does not.
    draws = CASES[case]((4, n_draws, 5))
    ours = convergence(draws)
    for name in Convergence._fields:
        if name == "rhat" and len(draws) == 1:
            continue
        expected = arviz_values(name, draws)
        np.testing.assert_allclose(getattr(ours, name), expected, rtol=1e-8, err_msg=name)
        np.testing.assert_array_equal(FUNCTIONS[name](draws), getattr(ours, name))


def test_scale_and_shift():
    draws = autoregressive(0.8, (4, 200, 5))
    for moved in (draws * 2.0**-70, draws * -(2.0**70)):
        np.testing.assert_array_equal(rhat(moved), rhat(draws))
    np.testing.assert_allclose(rhat(draws + 10), rhat(draws), rtol=1e-12)
    for factor in (2.0**-70, 2.0**-600, 2.0**600):  # the squares of the latter are beyond float64
        np.testing.assert_allclose(mcse_mean(draws * factor), mcse_mean(draws) * factor, rtol=1e-12)
        np.testing.assert_allclose(autocorrelation(draws * factor, 20), autocorrelation(draws, 20), rtol=1e-12)
    np.testing.assert_allclose(mcse_mean(draws + 1e6), mcse_mean(draws), rtol=1e-8)


@pytest.mark.parametrize("n_draws", [1000, 99])
def test_parameter_alone_or_among_others(n_draws):
    draws = autoregressive(0.5, (4, n_draws, 100))
    draws[..., 3] = 1
    draws[..., 5] = np.round(draws[..., 5])
    together = convergence(draws)
    for j in (0, 3, 5, 7, 8, 99):
        for name in Convergence._fields:
            np.testing.assert_array_equal(FUNCTIONS[name](draws[..., j]), getattr(together, name)[j])


def test_draws_stay_as_they_were():
    # Parameters first in memory: the blocks are then the draws themselves.
    draws = iid((6, 2, 20)).transpose(1, 2, 0)
    draws.flags.writeable = False
    expected = convergence(draws.copy())
    np.testing.assert_array_equal(convergence(draws), expected)


def test_one_chain_is_compared_with_itself():
    draws = iid((1, 400, 5))
    assert rhat(draws).max() < 1.05
    draws[:, 200:] += 2
    assert rhat(draws).min() > 1.3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("value", [0.0, 0.1, -1e300])
@pytest.mark.parametrize("shape", [(4, 11, 2), (1, 4, 2)])
def test_constant(value, shape):
    result = convergence(np.full(shape, value))
    size = shape[0] * (shape[1] // 2) * 2
    assert np.isnan(result.rhat).all()
    np.testing.assert_array_equal(result.ess_bulk, [size, size])
    np.testing.assert_array_equal(result.ess_tail, [size, size])
    np.testing.assert_array_equal(result.mcse_mean, [0, 0])


@pytest.mark.filterwarnings("error")
def test_chains_stuck_apart():
    draws = np.repeat([[0.1], [0.7], [0.3]], 100, axis=1)
    result = convergence(draws)
    assert result.rhat == np.inf
    assert result.ess_bulk < 4
    # Two values: the folded draws are all equal, and the bulk part alone decides.
    assert rhat(draws[:2]) == np.inf


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_draws", [0, 3])
def test_too_few_draws(n_draws):
    for value in convergence(iid((4, n_draws, 2))):
        assert value.shape == (2,)
        assert np.isnan(value).all()


def test_shapes_and_types():
    draws = np.round(4 * iid((2, 20, 3, 4)))
    result = convergence(draws)
    assert isinstance(result, Convergence)
    for name, function in FUNCTIONS.items():
        value = getattr(result, name)
        assert value.shape == (3, 4)
        np.testing.assert_array_equal(function(draws.astype(np.int8)), value)
        assert isinstance(function(draws[:, :, 0, 0].tolist()), float)
        assert function(draws[:, :, :0]).shape == (0, 4)


@pytest.mark.parametrize("function", [convergence, lambda draws: autocorrelation(draws, 3)])
def test_errors(function):
    draws = iid((2, 20, 3, 4))
    draws[0, 2:4, 1, 2] = np.nan
    draws[1, 0, 1, 2] = -np.inf
    with pytest.raises(ValueError, match=r"3 NaN or infinite of 40 at parameter \(1, 2\)"):
        function(draws)
    with pytest.raises(ValueError, match=r"3 NaN or infinite of 40$"):
        function(draws[:, :, 1, 2])
    with pytest.raises(ValueError, match=r"shape \(20,\)"):
        function(draws[0, :, 0, 0])
    with pytest.raises(ValueError, match="at least one chain"):
        function(draws[:0])
    with pytest.raises(TypeError, match="complex128"):
        function(np.ones((2, 20)) * 1j)


def test_memory_beyond_the_draws_is_small():
    draws = iid((4, 500, 2000)).astype(np.float32)
    assert peak_memory(lambda: convergence(draws)) < 0.25 * draws.nbytes


@pytest.mark.parametrize("rho", [0.9, 0.0, -0.6])
def test_autocorrelation_of_an_autoregression(rho, seed):
    """rho^lag, for every parameter on its own, and what the effective sample size is made from."""
    draws = np.stack([autoregressive(rho, (4, 20_000), seed), iid((4, 20_000), seed + 1)], axis=-1)
    curves = autocorrelation(draws, 100)
    assert curves.shape == (101, 2)
    # The standard error is at most sqrt((1 + rho^2) / (1 - rho^2) / 80000) = 0.011 (Bartlett).
    np.testing.assert_allclose(curves, np.array([rho, 0.0]) ** np.arange(101)[:, None], atol=0.05)
    ess = draws[..., 0].size / (2 * curves[:30, 0].sum() - 1)
    assert ess_bulk(draws[..., 0]) == pytest.approx(ess, rel=0.2)


@pytest.mark.filterwarnings("error")
def test_autocorrelation_where_nothing_moves():
    stuck = np.repeat([[0.1], [0.7], [0.3]], 100, axis=1)
    stuck.flags.writeable = False
    np.testing.assert_allclose(autocorrelation(stuck, 30), 1)  # a draw tells which chain it is from
    assert np.isnan(autocorrelation(np.ones((2, 10)), 3)[1:]).all()


def test_autocorrelation_needs_draws():
    for n_draws, max_lag, needed in [(3, 0, 4), (10, 5, 12)]:
        with pytest.raises(ValueError, match=rf"max_lag={max_lag} needs {needed} draws .* got {n_draws}\.$"):
            autocorrelation(np.ones((2, n_draws)), max_lag)
        autocorrelation(np.ones((2, needed)), max_lag)
    with pytest.raises(ValueError, match="max_lag must be at least 0; got -1"):
        autocorrelation(np.ones((2, 10)), -1)
    for max_lag in (2.5, True):
        with pytest.raises(TypeError, match=rf"max_lag .* got {max_lag!r}"):
            autocorrelation(np.ones((2, 10)), max_lag)


def test_draws_under_a_mask_are_refused():
    draws = np.ma.masked_equal(np.arange(40.0).reshape(2, 20), 7)
    for diagnose in (convergence, lambda draws: autocorrelation(draws, 2)):
        with pytest.raises(ValueError, match="mask"):
            diagnose(draws)
        diagnose(np.ma.masked_equal(draws.data, -1))
