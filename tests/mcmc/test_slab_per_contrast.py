"""A slab of 4 per contrast of each column: its density, and the draws of fits that have it."""

import numpy as np
import pytest
from laws import all_draws, same_draws
from scipy import sparse, stats

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.columns import Columns
from skhorseshoe._mcmc.prior import FixedPrior, slabs_of
from skhorseshoe._model.horseshoe import describe_prior
from skhorseshoe.diagnostics import mcse_mean

SD = np.array([1.0, 0.02, 0.0, 30.0, 0.5])  # the third column is constant, the fourth is not shrunk
MEAN = np.array([0.1, 0.0, 7.0, -80.0, 3.0])


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_its_density_is_that_of_each_coefficient(fit_intercept, seed):
    free = np.arange(5) == 3
    columns = Columns(MEAN, SD, SD == 0, free, fit_intercept, False)
    size = (SD if fit_intercept else np.hypot(MEAN, SD))[columns.order]
    rng = np.random.default_rng(seed)
    slabs = slabs_of(2 * size[:4] * [1.0, 3.0, 1.0, 1.3])
    fixed = FixedPrior(columns, slabs)
    beta = rng.standard_normal((2, len(fixed.anchor)))

    def log_density(b):
        kept = size[:4] > 0
        slab = stats.norm.logpdf(b[:4][kept], scale=slabs[kept]).sum()
        at_mean = stats.norm.logpdf(b[5] + columns.mean @ b[:5], scale=100) if fit_intercept else 0.0
        return slab + stats.norm.logpdf(b[4], scale=100 / size[4]) + at_mean

    energy = [fixed.energy(b) for b in beta]
    assert energy[1] - energy[0] == pytest.approx(log_density(beta[0]) - log_density(beta[1]), rel=1e-9)
    slope = [(log_density(beta[0] + h) - log_density(beta[0] - h)) / 2e-4 for h in 1e-4 * np.eye(len(beta[0]))]
    np.testing.assert_allclose(-fixed.force(beta)[0], slope, rtol=1e-5, atol=1e-7)
    q = len(fixed.anchor)
    np.testing.assert_allclose(beta @ fixed.add_to(np.zeros((q, q))), fixed.force(beta), rtol=1e-9)


@pytest.mark.parametrize("params", [
    {}, {"unpenalized": [3]}, {"sampler": "gibbs"}, {"sampler": "pxda"}, {"fit_intercept": False}
])  # fmt: skip
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_of_columns_of_1_and_minus_1_it_is_a_slab_of_2(kind, params, seed):
    """To the bit, in their own units and where they are scaled."""
    rng = np.random.default_rng(seed)
    X = np.array([rng.permutation(np.repeat([1.0, -1.0], 8)) for _ in range(20)]).T
    y = np.arange(16) % 3 == 0
    fits = [
        HorseshoeProbitClassifier(n_iter=10, burn_in=20, random_state=seed, **how, **params).fit(kind(X), y)
        for how in ({"slab_scale": 2}, {}, {"standardize": True})
    ]
    assert same_draws(*fits[:2])
    assert same_draws(*fits[::2])
    own = fits[1].prior_
    assert own["slab_scale"].tolist() == [np.inf if j in params.get("unpenalized", ()) else 2.0 for j in range(20)]
    one = {name: value for name, value in fits[0].prior_.items() if name != "slab_scale"}
    assert {name: own[name] for name in one} == pytest.approx(one, rel=1e-7)


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_with_it_two_rows_give_what_integration_gives(sampler):
    """Three columns of different units; without an intercept deviations from zero are what counts."""
    X, y = np.array([[1.0, 0.3, -4.0], [-1.2, 0.1, 9.0]]), np.array([1, 0])
    settings = {"n_iter": 5000, "burn_in": 300, "fit_intercept": False, "global_scale": 0.7, "random_state": 0}
    model = HorseshoeProbitClassifier(sampler=sampler, **settings).fit(X, y)
    slab, rng = 2 * abs(X).mean(axis=0) / (X**2).mean(axis=0), np.random.default_rng(1)
    np.testing.assert_allclose(model.prior_["slab_scale"], slab, rtol=1e-12)
    size = 200_000, 3
    tau = 0.7 * abs(rng.standard_cauchy((size[0], 1)))
    scale = tau * abs(rng.standard_cauchy(size))
    sd = 1 / np.sqrt(scale**-2.0 + slab**-2.0)
    beta = sd * rng.standard_normal(size)
    weight = (sd / scale).prod(axis=1) * stats.norm.cdf(beta @ X.T * [1, -1]).prod(axis=1)
    parts = [(np.tanh(b[..., j] / slab[j])) ** k for j in range(3) for k in (1, 2) for b in (beta, model.coef_draws_)]
    pairs = [*zip(parts[::2], parts[1::2], strict=True), (tau[:, 0] < 0.3, model.global_scale_draws_ < 0.3)]
    for ours, got in pairs:
        want = np.average(ours, weights=weight)
        error = np.sqrt(np.average((ours - want) ** 2 * weight, weights=weight) / weight.sum())
        assert abs(got.mean() - want) < 4.5 * np.hypot(mcse_mean(got * 1.0), error)


def test_the_unit_of_all_columns_together_does_not_matter(seed):
    """With tau_0 in it, too. Rounding grows from sweep to sweep, by 100 to 1000 in ten."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 18)) * np.exp(rng.standard_normal(18))
    y, draws, expected = X[:, 0] + rng.standard_normal(12) > 0, [], []
    for unit in (1.0, 250.0):
        model = HorseshoeProbitClassifier(n_iter=2, burn_in=10, global_scale=0.5 / unit, random_state=seed)
        model.fit(X * unit, y)
        draws.append(all_draws(model) * np.append(np.full(18, unit), [1, 1]) + np.append(np.zeros(19), np.log(unit)))
        expected.append([model.prior_["m_eff"], model.prior_["m_eff_at_tau_0"], model.prior_["tau_median"] * unit])
    np.testing.assert_allclose(*draws, rtol=1e-3, atol=1e-3)
    assert expected[0] == pytest.approx(expected[1], rel=1e-4)


def test_constant_columns_have_no_slab_and_no_say(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 18))
    y, plain = X[:, 0] + rng.standard_normal(12) > 0, {"n_iter": 60, "burn_in": 100, "random_state": seed}
    X[:, 5], X[:, 9] = 0.0, 1e3
    for how in ({}, {"sampler": "gibbs"}, {"fit_intercept": False}, {"sampler": "pxda", "unpenalized": [9]}):
        model = HorseshoeProbitClassifier(**plain, **how).fit(X, y)
        for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"):
            assert np.isfinite(getattr(model, name)).all()
        assert not model.coef_draws_[..., 5].any()
        assert model.prior_["slab_scale"][5] == np.inf
    some = np.array([1.0, 0.0, 3.0])
    with_one, without = (describe_prior(1.0, slabs_of(2.5 * sd), sd, 50, 0.4) for sd in (some, some[some > 0]))
    for name in ("m_eff", "tau_median"):
        assert with_one[name] == pytest.approx(without[name])
