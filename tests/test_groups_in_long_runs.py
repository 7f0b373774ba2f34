"""Fits with groups that are stopped and go on are, to the bit, those that were never stopped, and take the memory that
is forecast."""

from contextlib import suppress
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from laws import peak_memory
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._mcmc import effects_integrated_out, group_draws
from skhorseshoe._mcmc.draws import Draws
from skhorseshoe._mcmc.group_draws import forecast_of_groups

FITTED = "coef_draws_", "group_effect_draws_", "group_scale_draws_", "global_scale_draws_", "shrinkage_"
SAMPLERS = [
    {"sampler": "hmc", "burn_in": 100},
    {"sampler": "gibbs", "burn_in": 20},
    {"sampler": "gibbs", "burn_in": 20, "n_chains": 1},
    {"sampler": "hmc", "burn_in": 60, "n_columns": 70},  # in the coordinates of the prior
]


def rows_of_groups(seed, n_columns):
    """X, y and groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 15, 60)
    X = rng.standard_normal((60, n_columns))
    return X, X[:, 0] + rng.standard_normal(15)[group] + rng.standard_normal(60) > 0, group


@pytest.fixture(scope="module", params=SAMPLERS, ids=["hmc", "gibbs", "gibbs-alone", "prior-coordinates"])
def whole(request, seed):
    """A classifier that has 20 draws, and the X, y and groups that they are of."""
    params = dict(request.param)
    X, y, group = rows_of_groups(seed, params.pop("n_columns", 3))
    model = HorseshoeProbitClassifier(**{"n_iter": 20, "n_chains": 3, "random_state": 0, **params})
    return model.fit(X, y, groups=group), X, y, group


@pytest.fixture
def fit(whole):
    """The same before its fit."""
    return clone(whole[0]), *whole[1:]


def assert_same(one, other):
    for name in FITTED:
        assert np.array_equal(getattr(one, name), getattr(other, name)), name


@pytest.mark.parametrize("after", [-15, 1, 7])
def test_a_run_that_was_killed_goes_on(whole, fit, after, stop_at, tmp_path):
    model, X, y, group = fit
    model.set_params(checkpoint=tmp_path / "run")  # which is written where an error ends the run
    stop_at(model.burn_in + after, RuntimeError("killed"))
    with pytest.raises(RuntimeError, match="killed"):
        model.fit(X, y, groups=group)
    assert_same(model.fit(X, y, groups=group), whole[0])


@pytest.mark.filterwarnings("ignore:max_time has passed")
@pytest.mark.parametrize("n_chains", [1, 4])
def test_a_run_may_be_stopped_after_any_sweep(n_chains, seed, tmp_path):
    """Where its chains look at the rows for the next map, and where a sweep of line moves has ended."""
    X, y, group = rows_of_groups(seed, 3)
    model = HorseshoeProbitClassifier(n_chains=n_chains, n_iter=40, burn_in=100, sampler="hmc", random_state=0)
    whole = clone(model).fit(X, y, groups=group)
    model.set_params(checkpoint=tmp_path / "run", max_time=1e-9)  # which is one sweep
    for _ in range(140):
        with suppress(TimeoutError):
            model.fit(X, y, groups=group)
    assert_same(model, whole)


def test_without_burn_in_there_is_a_map(fit):
    model, X, y, group = fit
    model.set_params(burn_in=0, n_iter=30).fit(X, y, groups=group)
    assert np.isfinite(model.coef_draws_).all()
    assert np.isfinite(model.group_effect_draws_).all()


@pytest.mark.parametrize("more", [{}, {"max_draws": 7}, {"thin": 2}])
def test_warm_start_adds_draws(whole, fit, more):
    model, X, y, group = fit
    expected = clone(model).set_params(**more).fit(X, y, groups=group) if more else whole[0]
    model.set_params(warm_start=True, n_iter=8, **more).fit(X, y, groups=group)
    assert_same(model.set_params(n_iter=12).fit(X, y, groups=group), expected)


def test_products_that_are_not_kept_are_computed(seed, sizes):
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(30), np.append(np.full(20, 2), np.arange(1, 11)))
    X = rng.standard_normal((len(group), 6))
    y = X[:, 0] + rng.standard_normal(30)[group] + rng.standard_normal(len(group)) > 0
    model = HorseshoeProbitClassifier(sampler="gibbs", n_iter=5, burn_in=0, random_state=0)
    expected = clone(model).fit(X, y, groups=group).coef_draws_
    sizes(numbers_of_products=0)
    assert effects_integrated_out.products_kept(30, 7) < 10  # the number of sizes
    np.testing.assert_allclose(model.fit(X, y, groups=group).coef_draws_, expected, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "n", "p", "n_groups"),
    [("hmc", 100_000, 3, 300), ("gibbs", 20_000, 200, 500)],
)
def test_memory_is_as_forecast(sampler, n, p, n_groups, seed):
    """Beside what it is without groups."""
    rng = np.random.default_rng(seed)
    group = np.minimum(rng.zipf(1.2, n), 10**6) % n_groups  # of many sizes
    X = rng.standard_normal((n, p))
    y = X[:, 0] + rng.standard_normal(n) > 0
    model = HorseshoeProbitClassifier(sampler=sampler, n_iter=10, burn_in=20, random_state=0)
    with_groups, without = (peak_memory(partial(clone(model).fit, X, y, groups=one)) for one in (group, None))
    more, forecast = with_groups - without, sum(forecast_of_groups(n, p, 4, 10, n_groups, sampler))
    assert forecast / 4 < more < forecast


@pytest.mark.parametrize("n", [2, 3])
def test_effects_are_copied_only_where_room_is_given_up(n):
    draws = group_draws.GroupDraws(2, 3, [4])
    effects = draws.effects
    draws.trim(n, n)
    assert draws.effects.shape == (2, n, 4)
    assert np.shares_memory(draws.effects, effects) == (n == 3)


def test_effects_that_an_interrupt_has_torn_are_not_kept(sizes, monkeypatch):
    """Two draws of u have room: the third gives up the first, and the interrupt comes in the middle of that."""
    columns = SimpleNamespace(order=np.zeros(1, int), n_shrunk=1, n_contrasts=1, fit_intercept=False)
    columns.coefficients = lambda beta: (beta, np.zeros(len(beta)))

    def torn(values, n):
        raise KeyboardInterrupt

    sizes(draws_of_groups=2 * 4 * 2 * 3)
    draws = Draws(2, 10, columns, blocks=[SimpleNamespace(draws_of=partial(group_draws.GroupDraws, sizes=[3]))])
    taken = [(np.full((2, 1), k), np.ones(2), np.ones(2), (np.full((3, 2), k), np.full(2, 1.0 + k))) for k in range(4)]
    for one in taken[:2]:
        draws.add(*one)
    assert not draws.torn
    with monkeypatch.context() as broken:
        broken.setattr(group_draws, "keep_every_second", torn)
        with pytest.raises(KeyboardInterrupt):
            draws.add(*taken[2])
    assert draws.torn
    for one in taken[2:]:
        draws.add(*one)
    assert not draws.torn
    assert draws.of_blocks[0].effects[0, :, 0].tolist() == [1.0, 3.0]
