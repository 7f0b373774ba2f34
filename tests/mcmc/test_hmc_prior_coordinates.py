"""Chains in the coordinates of the prior: where they are chosen, how they go on, and what they have learnt."""

from types import SimpleNamespace

import numpy as np
import pytest
from laws import ALONE, chains_of, same_draws
from scipy import sparse

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import Trajectory
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu.prior_coordinates import PriorCoordinates
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.run import PRIOR_COORDINATES


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(3)
    X = rng.normal(0.5, 1, (20, 30))
    return X, (X[:, 0] + rng.standard_normal(20) > 0.5).astype(int)


def model(**params):
    params = {"n_iter": 31, "burn_in": 40, "slab_scale": 2.0, "random_state": 0, **params}
    return HorseshoeProbitClassifier(**params)


def chosen(X, y, **params):
    """The sampler, and whether its coordinates are those of the prior."""
    fitted = model(burn_in=100, n_iter=4, **params).fit(X, y)
    return fitted.sampler_, "exchanged" in fitted.tuning_


@pytest.mark.filterwarnings("ignore:X has more columns")
def test_more_columns_than_rows_and_a_slab_choose_them(wide):
    X, y = wide
    assert chosen(X, y) == chosen(sparse.csr_array(X), y) == chosen(X, y, sampler="hmc") == ("hmc", True)
    assert chosen(X, y, slab_scale=None) == chosen(X[:, :20], y) == ("hmc", False)
    assert "exchanged" in model(burn_in=3).fit(X, y).tuning_  # which even untuned are the better ones


@pytest.mark.parametrize("sweeps", [1, 3, 9, 14, 30, 40, 45])
def test_a_run_that_ended_early_goes_on_to_the_same_draws(wide, tmp_path, sweeps, ended_at):
    how = {"checkpoint": tmp_path / "run", "sampler": "hmc"}
    with ended_at(sweeps, tmp_path / "run"):
        model(checkpoint_interval=0, **how).fit(*wide)
    resumed, whole = model(**how).fit(*wide), model(sampler="hmc").fit(*wide)
    assert same_draws(resumed, whole)
    assert resumed.tuning_ == whole.tuning_


def test_an_automatic_burn_in_ends(wide):
    fitted = model(n_iter=100, burn_in="auto").fit(*wide)
    assert fitted.burn_in_ >= 240
    assert 0.6 < fitted.tuning_["acceptance"] < 0.99
    assert 0.05 < fitted.tuning_["exchanged"] < 0.9


def test_nothing_is_learnt_after_burn_in(wide):
    """Of the last sweep of burn-in and of the last of all, step, centres and sizes are the same."""
    X, y = wide
    rows, seen = Rows(X, y.astype(np.uint8), True, cpu, ALONE), []
    chains = chains_of(rows, PRIOR_COORDINATES, 40, n_chains=4, slab=2.0, tau_0=0.1)
    for _ in range(71):
        chains.advance()
        seen.append((chains.step, *chains.centre, *chains.size))
    assert len(set(seen[:40])) > 20
    assert len(set(seen[39:])) == 1


@pytest.mark.parametrize("weighted", [pytest.param(False, marks=pytest.mark.slow), True])
def test_the_shrinkage_of_many_sparse_rows_needs_no_matrix_over_them(weighted, sizes, monkeypatch):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((60, 130)) < np.where(np.arange(130) < 2, 0.4, 0.1), 1.0, 0.0)
    y = (4 * X[:, 0] - 4 * X[:, 1] + rng.standard_normal(60) > 0).astype(int)
    X = sparse.csr_array(X)
    weight = rng.integers(1, 4, 60) / 2 if weighted else None
    by_rows = model(n_iter=150, burn_in=60).fit(X, y, weight)
    sizes(rows_factored=20)
    monkeypatch.setattr("skhorseshoe._backends._cpu.sparse.ShrinkageByRows", None)
    by_products = model(n_iter=150, burn_in=60).fit(X, y, weight)
    np.testing.assert_array_equal(by_products.coef_draws_, by_rows.coef_draws_)
    assert by_rows.shrinkage_.min() < 0.7
    np.testing.assert_allclose(by_products.shrinkage_, by_rows.shrinkage_, atol=0.05)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.filterwarnings("ignore:X has more columns")
def test_a_prior_scale_far_above_the_posterior_leaves_the_step_large(wide, seed):
    """Chains begin with values of tau about that scale, of which no step may be learnt that holds them there."""
    fitted = model(burn_in=100, n_iter=20, global_scale=50.0, random_state=seed).fit(*wide)
    assert fitted.tuning_["step"] > 0.05


@pytest.mark.parametrize("d", [1, 2, 3, 10])
def test_a_trajectory_is_driven_by_the_gradient_of_its_energy(d):
    """Columns are placed in tiles, most of them alike and a few, far from zero or at it, in another way. d coefficients
    of a column share a lambda."""
    p, rng = 300, np.random.default_rng(1)
    q = p + 1
    fixed = SimpleNamespace(anchor=rng.random(q) / 10, diagonal=rng.random(q))
    centre, size = np.append(rng.standard_normal(q) / 9, -3.0), np.append(rng.uniform(0.1, 1, q), 0.5)
    coordinates = PriorCoordinates(fixed, rng.uniform(0.1, 2, p // d), 0.05, centre, size, 1, ALONE, d)
    u, pull = rng.standard_normal((1, q + 1)), rng.standard_normal((1, q))
    u[0, :9] *= 30
    w = centre + size * u[0]
    u[0, :p] += (np.sign(w) * 0.2 / size)[:p]  # the force has no second derivative of the quantile near its pole
    u[0, 9] = -centre[9] / size[9]  # w = 0, where beta is
    trajectory = Trajectory(u, 0 * u, 0 * u, np.zeros(1))

    def energy():
        beta, _ = coordinates.to_beta(trajectory)
        coordinates.kick(trajectory, 0.0, beta, (pull * beta).sum(axis=1), pull)
        return trajectory.energy[0]

    energy()
    force = trajectory.force[0] + u[0]
    steps = np.array([*range(9), *range(10, 14), 127, 128, 255, 256, *range(297, q + 1)])
    for j in steps:
        ends = []
        for side in (1e-5, -1e-5):
            u[0, j] += side
            ends.append(energy())
            u[0, j] -= side
        slope = (ends[0] - ends[1]) / 2e-5
        assert abs(slope - force[j]) < 1e-3 * (1 + abs(slope)), j
    beta, tau_sq_inv = coordinates.to_beta(trajectory)
    np.testing.assert_allclose(coordinates.from_beta(beta, tau_sq_inv)[0], centre + size * u[0], rtol=1e-6, atol=1e-9)


# Rows, columns, chains; dtype; what else ``Rows`` is told.
FUSED_ROWS = {
    "an intercept": (20, 40, 4, np.float64, {"fit_intercept": True}),
    "two columns": (20, 2, 3, np.float64, {"fit_intercept": True}),  # of which none are exchanged
    "float32, weights": (20, 30, 1, np.float32, {"fit_intercept": True, "weight": np.linspace(0.5, 2.0, 20)}),
    "reordered": (30, 150, 5, np.float64, {"fit_intercept": True, "unpenalized": np.arange(150) % 40 == 0}),
    "standardised": (60, 300, 4, np.float64, {"fit_intercept": True, "standardize": True}),
    "no intercept": (60, 1000, 3, np.float32, {"fit_intercept": False, "standardize": True}),
}


@pytest.mark.parametrize("name", FUSED_ROWS)
def test_a_sweep_of_fused_calls_has_the_bits_of_its_steps(name):
    n, p, n_chains, dtype, told = FUSED_ROWS[name]
    rng = np.random.default_rng(p)
    X, y = (rng.standard_normal((n, p)) + np.linspace(-1, 1, p)).astype(dtype), (rng.random(n) < 0.4).astype(np.uint8)
    rows, states = Rows(X, y, ops=cpu, threads=ALONE, **told), []
    for rows.takes_fused_calls in (True, False):
        chains = chains_of(rows, PRIOR_COORDINATES, 12, n_chains=n_chains, slab=2.0, tau_0=0.1)
        start = chains.state
        for _ in range(15):
            chains.advance()
        states.append(chains.state)
    for fused, step_by_step in zip(*states, strict=True):
        np.testing.assert_array_equal(fused, step_by_step)
    assert (states[0].beta != start.beta).any(axis=1).all()
    assert p < 3 or states[0].exchanged.max() > 0


@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("where", [np.nan, np.inf, -np.inf, 1e300])
def test_a_trajectory_that_has_diverged_is_rejected(where, d):
    """No place of the table is beyond its ends."""
    fixed = SimpleNamespace(anchor=np.zeros(31), diagonal=np.ones(31))
    coordinates = PriorCoordinates(fixed, np.ones(30 // d), 0.05, np.zeros(32), np.ones(32), 1, ALONE, d)
    for j in (3, 31):  # a coefficient, and log tau
        u = np.zeros((1, 32))
        u[0, j] = where
        trajectory = Trajectory(u, 0 * u, 0 * u, np.zeros(1))
        beta, _ = coordinates.to_beta(trajectory)
        coordinates.kick(trajectory, 0.3, beta, np.zeros(1), np.zeros((1, 31)))
        assert not trajectory.energy[0] < 1e100
