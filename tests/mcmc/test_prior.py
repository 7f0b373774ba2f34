"""The prior's parameters: the slab, the expected number of nonzero coefficients, and stopping at a wanted precision."""

import numpy as np
import pytest
from laws import ALONE
from scipy import sparse, stats

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.columns import Columns
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.prior import FixedPrior, slabs_of
from skhorseshoe._model.horseshoe import describe_prior, draws_of_prior, scale_of_tau_prior


def separable(n=60, p=4):
    X = np.random.default_rng(0).standard_normal((n, p))
    return X, X[:, 0] > 0


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.005])
def test_expected_nonzero_is_m_eff_at_the_median_of_tau(rate):
    prior = describe_prior(scale_of_tau_prior(None, 5, 50, 2000, rate), None, np.ones(50), 2000, rate)
    assert prior["m_eff_at_tau_0"] == pytest.approx(5)
    assert prior["m_eff"] > 5


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"expected_nonzero": 2, "global_scale": 1.0}, "give one of them"),
        ({"expected_nonzero": 1e-300}, "makes the scale of the prior .*: it must be from 1e-100 to 1e"),
        ({"expected_nonzero": 4}, "must be below the number of columns that are shrunk, which is 4"),
    ],
)
def test_contradictory_priors_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        HorseshoeProbitClassifier(**given).fit(*separable())


@pytest.mark.parametrize("wrong", [None, 0, 4095, 4096, 8999])
def test_separation_is_looked_for_in_every_row(wrong):
    X, y = separable(n=9000)
    if wrong is not None:
        y[wrong] = ~y[wrong]
    rows = Rows(X, y.astype(np.uint8), False, cpu, ALONE)
    assert rows.separated_by(np.array([[-1.0, 0, 0, 0], [1.0, 0, 0, 0]])) == (wrong is None)


def test_an_offset_is_part_of_what_separates_rows():
    X, y = separable()
    offset = np.full(len(X), 2 * abs(X[:, 0]).max())
    rows = Rows(X, y.astype(np.uint8), True, cpu, ALONE, offset=offset)
    assert not rows.separated_by(np.array([[1.0, 0, 0, 0, 0]]))
    assert rows.separated_by(np.array([[1.0, 0, 0, 0, -offset[0]]]))


@pytest.mark.parametrize("slab_scale", [None, 0.5, "each"])
def test_m_eff_is_the_mean_over_scales_whose_prior_the_slab_tilts(slab_scale, seed):
    """Of sum_j (1 - kappa_j), kappa_j the share of the prior in the precision, the likelihood a Gaussian."""
    sd, n, rate, tau_0 = np.array([1.0, 0.3, 2.0, 0.0]), 50, 0.3, 0.1
    information = n * sd**2 * stats.norm.pdf(stats.norm.ppf(rate)) ** 2 / (rate * (1 - rate))
    rng = np.random.default_rng(seed)
    tau, lam = tau_0 * abs(rng.standard_cauchy((200_000, 1))), abs(rng.standard_cauchy((200_000, 4)))
    slab_scale = slabs_of(sd * [2.0, 30.0, 2.5, 1.0]) if slab_scale == "each" else slab_scale
    prior = describe_prior(tau_0, slab_scale, sd, n, rate)
    slab_precision = 0.0 if slab_scale is None else slab_scale**-2.0
    for name, scale in {"m_eff": tau * lam, "m_eff_at_tau_0": tau_0 * lam}.items():
        m_eff = (information / (information + scale**-2.0 + slab_precision)).sum(axis=1)
        weight = np.sqrt(1 / (1 + scale**2 * slab_precision)).prod(axis=1)  # what the slab is to the scales
        mean = np.average(m_eff, weights=weight)
        error = np.sqrt(np.average((m_eff - mean) ** 2 * weight, weights=weight) / weight.sum())
        assert abs(prior[name] - mean) < 5 * error
        if name == "m_eff":
            below = np.average(tau[:, 0] < prior["tau_median"], weights=weight)
            assert abs(below - 0.5) < 5 * np.sqrt(0.25 * (weight**2).sum()) / weight.sum()


@pytest.mark.parametrize(
    ("tau_0", "slab_scale", "spread", "p", "expected"),
    [
        (1.0, 1.0, 0.0, 300, (0.0036526, 10.767, 245.63)),
        (3.0, 0.01, 0.0, 300, (3.6528e-5, 0.0063525, 1.6018)),
        (1.0, "each", 1.0, 300, (0.0035997, 15.557, 243.70)),
        (1e-3, 2.0, 2.0, 50, (0.00093928, 2.504, 1.7761)),
    ],
)
def test_the_prior_of_many_columns_is_that_by_convolutions(tau_0, slab_scale, spread, p, expected):
    """On grids of both scales, where draws from the prior without slabs would have no weight."""
    sd = np.exp(spread * stats.norm.ppf((np.arange(p) + 0.5) / p))
    slab_scale = slabs_of(2.5 * sd) if slab_scale == "each" else slab_scale
    found = describe_prior(tau_0, slab_scale, sd, 100, 0.5)
    assert [found[name] for name in ("tau_median", "m_eff", "m_eff_at_tau_0")] == pytest.approx(expected, rel=1e-3)


@pytest.mark.filterwarnings("error")
def test_a_prior_with_the_smallest_slab_is_described():
    """Far below tau_0 a slab alone says how large tau is. The square of this ratio is beyond float64."""
    extreme, usual = (describe_prior(*scales, np.ones(3), 50, 0.5) for scales in ((1e100, 1e-100), (1e9, 1.0)))
    assert extreme["tau_median"] == pytest.approx(1e-100 * usual["tau_median"], rel=1e-3)
    assert 0 < extreme["m_eff"] < extreme["m_eff_at_tau_0"] < 1e-100


@pytest.mark.parametrize("tau_0", [1e-100, 1e100])
def test_prior_m_eff_is_between_none_and_all(tau_0):
    prior = describe_prior(tau_0, None, np.array([1.0, 1.0, 0.0]), 10**6, 1e-6)
    assert prior["m_eff"] == pytest.approx(2.0 if tau_0 > 1 else 0.0, abs=1e-6)


@pytest.mark.parametrize("sd", [1.0, 1e4])  # so that the columns are centred, or stay where they are
def test_the_intercepts_prior_holds_at_the_mean_of_the_columns(sd, seed):
    """With a standard deviation of 100."""
    rng = np.random.default_rng(seed)
    mean, coef = rng.uniform(-500, 500, 3), rng.standard_normal(3)
    columns = Columns(mean, np.full(3, sd), np.zeros(3, bool), np.zeros(3, bool), True, False)
    fixed = FixedPrior(columns, None)
    for at_mean, energy in ((0.0, 0.0), (100.0, 0.5)):
        intercept = at_mean - coef @ (mean - columns.centre)
        assert fixed.energy(np.append(coef, intercept)) == pytest.approx(energy, abs=1e-9)


def test_a_model_remembers_its_prior(short_fit):
    """That of the shrunk columns, on the scale on which it holds."""
    X, y = separable()
    X, n, rate = X * [1, 2, 3, 4], len(y), y.mean()
    model = short_fit(X, y, expected_nonzero=2, slab_scale=3.0)
    want = describe_prior(scale_of_tau_prior(None, 2, 4, n, rate), 3.0, X.std(axis=0), n, rate)
    assert {name: model.prior_[name] for name in want} == pytest.approx(want)
    odd = short_fit(X, y, slab_scale=1.0, standardize=True, unpenalized=[1])
    want = describe_prior(1.0, 1.0, np.ones(3), n, rate)
    assert {name: odd.prior_[name] for name in want} == pytest.approx(want)
    assert f"{odd.inclusion_score_[[0, 2, 3]].sum():.1f} of 3 shrunk coefficients" in odd.summary().attrs["header"]


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize(("tau_0", "slabs"), [(0.5, [0.3, np.inf, 2.0]), (40.0, [1.0, 1.0, 5.0]), (1.0, [np.inf] * 3)])
def test_draws_of_the_prior_have_its_law(tau_0, slabs, d, seed):
    """That of half-Cauchy scales, of which the slab keeps d coefficients of a column with probability
    exp(-|beta|^2 / 2 c^2)."""
    rng, n = np.random.default_rng(seed), 400_000
    tau = tau_0 * abs(rng.standard_cauchy((n, 1)))
    beta = tau * rng.standard_cauchy((n, 3)) * rng.standard_normal((d, n, 3))
    theirs = abs(beta[0][rng.random(n) < np.exp(-((beta / slabs) ** 2).sum(axis=(0, 2)) / 2)])
    ours = abs(np.vstack(list(draws_of_prior(tau_0, np.array(slabs), 20_000, rng, d))))
    for one, two in zip((*ours.T, ours.max(axis=1)), (*theirs.T, theirs.max(axis=1)), strict=True):
        error = np.sqrt(0.25 / len(one) + 0.25 / len(two))
        for at in np.quantile(one, [0.1, 0.5, 0.9]):
            assert abs((one < at).mean() - (two < at).mean()) < 4.5 * error


def test_before_data_the_slab_bounds_every_contrast_of_several_classes(short_fit, seed):
    rng, n = np.random.default_rng(seed), 200_000
    X, y = rng.standard_normal((300, 3)), rng.integers(0, 5, 300)
    tau, scales = abs(rng.standard_cauchy((n, 1))), rng.standard_cauchy((n, 3))
    beta = (tau * scales)[..., None] * rng.standard_normal((n, 3, 4))
    beta = beta[rng.random(n) < np.exp(-(beta**2).sum(axis=(1, 2)) / 2)][:4000, :, 0]
    prior = short_fit(X, y, slab_scale=1.0).prior_
    assert prior["share_certain"] == pytest.approx((abs(X @ beta.T) > stats.norm.isf(0.01)).mean(), abs=0.008)


def test_before_data_the_default_says_that_most_rows_are_certain(short_fit, seed, tmp_path):
    """By simulation 0.8 of rows of 20 columns; wherever rows are, whatever the seed, and in any unit of the prior."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((500, 20)), rng.random(500) < 0.5
    model = short_fit(X, y)
    prior = model.prior_
    tau = abs(rng.standard_cauchy((4000, 1)))
    beta = tau * rng.standard_cauchy((4000, 20)) * rng.standard_normal((4000, 20))
    assert prior["share_certain"] == pytest.approx((abs(X @ beta.T) > stats.norm.isf(0.01)).mean(), abs=0.04)
    assert prior["n_relevant"] == pytest.approx(np.median((abs(beta) > 0.1).sum(axis=1)), abs=1.5)
    header = " ".join(model.summary().attrs["header"].split())
    assert f"a median of {prior['n_relevant']:.0f} of 20 effects are above 0.1" in header
    assert "most rows are certain; where data are few, slab_scale or expected_nonzero says less" in header
    on_disk = np.memmap(tmp_path / "X", dtype=float, mode="w+", shape=X.shape)
    on_disk[:] = X
    same = [short_fit(sparse.csr_array(X), y), short_fit(on_disk, y), short_fit(X, y, random_state=seed + 1)]
    scales = np.exp(rng.standard_normal(20))
    same.append(short_fit(X / scales, y, prior_scale=scales))
    for other in same:
        assert other.prior_["share_certain"] == pytest.approx(prior["share_certain"], abs=1e-9)
        assert other.prior_["n_relevant"] == prior["n_relevant"]
    bounded = short_fit(X, y, slab_scale="per_contrast")
    assert bounded.prior_["share_certain"] < 0.3
    assert "most rows are certain" not in bounded.summary().attrs["header"]
