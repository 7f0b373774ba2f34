"""Split Hamiltonian Monte Carlo draws from the posterior: whole runs against other samplers, and what burn-in tunes."""

import copy

import numpy as np
import pytest
from laws import agrees_with_gold, draws_of, load_gold, same_law

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import gaussian
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import adaptation_window, hmc_burn_in
from skhorseshoe._mcmc import hmc as _hmc
from skhorseshoe._mcmc import run as _run
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._utils.threads import Threads
from skhorseshoe.diagnostics import rhat

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

ALONE = Threads(1)


def test_posterior_is_that_of_two_other_samplers():
    gold = load_gold()
    model = HorseshoeProbitClassifier(n_iter=10_000, thin=2, fit_intercept=False, sampler="hmc", random_state=1)
    agrees_with_gold(model.fit(gold["X"], gold["y"]), gold)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hmc_agrees_with_gibbs_where_there_is_an_intercept(dtype):
    rng = np.random.default_rng(3)
    data = rng.normal([0, 1, -2, 0], 1, (120, 4))
    y = data @ [1.0, 0.5, 0, 0] - 1 + rng.standard_normal(120) > 0
    data = data.astype(dtype)
    same_law(*(draws_of(*run, data, y, global_scale=0.5) for run in (("hmc", 8000), ("gibbs", 12_000))))


@pytest.mark.slow
def test_float32_agrees_with_float64():
    rng = np.random.default_rng(4)
    data = rng.standard_normal((300, 5))
    y = data @ [1.0, -0.5, 0.2, 0, 0] + 0.5 + rng.standard_normal(300) > 0
    same_law(draws_of("hmc", 8000, data.astype(np.float32), y), draws_of("hmc", 8000, data, y, random_state=1))


@pytest.mark.slow
def test_hmc_agrees_with_a_long_gibbs_run_on_rare_events():
    rng = np.random.default_rng(5)
    data = rng.standard_normal((400, 3))
    y = data @ [0.7, 0, 0] - 2.4 + rng.standard_normal(400) > 0
    assert 5 <= y.sum() <= 20
    hmc = draws_of("hmc", 8000, data, y, global_scale=0.5)
    for other in ("gibbs", 48_000), ("pxda", 24_000):
        same_law(hmc, draws_of(*other, data, y, global_scale=0.5))


def far_start(monkeypatch):
    """Chains that begin ten times as far away as they do, tau too."""
    initial_state = _run.initial_state

    def further(*args):
        start = initial_state(*args)
        return start._replace(beta=10 * start.beta, tau_sq_inv=start.tau_sq_inv**3)

    monkeypatch.setattr(_run, "initial_state", further)


def test_chains_that_start_far_apart_meet(monkeypatch):
    far_start(monkeypatch)
    rng = np.random.default_rng(8)
    data = rng.standard_normal((400, 3))
    y = data[:, 0] + rng.standard_normal(400) > 0
    model = HorseshoeProbitClassifier(n_chains=16, sampler="hmc", n_iter=1000, burn_in=300, random_state=0)
    model.fit(data, y)
    assert rhat(model.coef_draws_).max() < 1.01
    assert rhat(np.log(model.global_scale_draws_)) < 1.02


@pytest.fixture
def record(monkeypatch):
    """What each sweep was given, and the two rates of acceptance that it reports."""
    calls = []
    sweep = _hmc.sweep

    def recorded(state, *, reference, tuning, **rest):
        new = sweep(state, reference=reference, tuning=tuning, **rest)
        frozen = (
            reference.point.copy(),
            reference.score.copy(),
            reference.information.copy(),
            reference.whitening.b.copy(),
        )
        calls.append((tuning, reference, frozen, new.tau_acceptance, new.acceptance))
        return new

    monkeypatch.setattr(_hmc, "sweep", recorded)
    return calls


@pytest.mark.parametrize("data", ["synthetic", "breast cancer"])
def test_nothing_is_tuned_after_burn_in(data, record, short_fit, breast_cancer):
    gold = load_gold()
    X, y = (gold["X"], gold["y"]) if data == "synthetic" else breast_cancer
    model = short_fit(X, y, n_iter=150, burn_in=200, sampler="hmc", random_state=0)
    for name in ("step", "tau_step"):
        assert len({getattr(tuning, name) for tuning, *_ in record[:-150]}) > 50
    kept = record[-150:]
    assert len({tuning for tuning, *_ in kept}) == 1
    *numbers, _ = kept[0][0]
    assert numbers == [value for name, value in model.tuning_.items() if name != "acceptance"]
    assert len({id(reference) for _, reference, *_ in kept}) == 1
    for _, _, frozen, *_ in kept:
        for now, then in zip(frozen, kept[0][2], strict=True):
            np.testing.assert_array_equal(now, then)
    assert all(tuning.n_steps % 2 == 1 for tuning, *_ in record)
    assert all(0 < tuning.step <= np.pi / 2 + 1e-12 for tuning, *_ in record)


def test_local_scales_move_on_the_way_where_one_turn_is_enough(record, short_fit, weak_problem, breast_cancer):
    for data, slow, n_steps in ((weak_problem, (0, 1, 2), 1), (breast_cancer, (), 3)):
        short_fit(*data, n_iter=10, burn_in=200, sampler="hmc")
        tuning = record[-1][0]
        assert (tuning.slow, tuning.n_steps) == (slow, n_steps)


@pytest.mark.parametrize(("fair", "moves"), [(True, 4), (False, 0)])
def test_tau_moves_on_the_way_unless_proposals_suffer(fair, moves, short_fit, weak_problem, monkeypatch):
    monkeypatch.setattr(adaptation_window.Stage, "tau_may_move", lambda stage: fair)
    model = short_fit(*weak_problem, n_iter=10, burn_in=200, sampler="hmc")
    assert model.tuning_["tau_moves"] == moves


def test_tau_stays_already_while_the_last_stage_tunes_the_step_without_it(record, short_fit, weak_problem, monkeypatch):
    monkeypatch.setattr(adaptation_window.Stage, "tau_may_move", lambda stage: False)
    short_fit(*weak_problem, n_iter=10, burn_in=200, sampler="hmc")
    *_, before, end = adaptation_window.ends(200)
    of_tau = np.array([tuning.tau_moves for tuning, *_ in record[-(end - before) - 20 : -10]])
    assert of_tau[:10].max() > 0
    assert (of_tau[10:] == 0).all()


def test_a_small_step_makes_more_turns():
    assert [adaptation_window.enough_steps(step) for step in (1.5, 0.5, 0.3, 0.12, 1e-3)] == [1, 3, 5, 13, 15]


def test_each_move_of_tau_has_random_numbers_of_its_own(monkeypatch):
    given = []

    def move_scales(H, b, tau_0, steps, thresholds, *rest):
        given.append((steps, thresholds))
        return 0

    monkeypatch.setattr(gaussian, "move_scales", move_scales)
    gauss, key = cpu.Whitening(np.eye(2), np.zeros(2), 3, 2, ALONE), (np.uint32(1), np.uint32(2))
    for sweep in (5, 6):
        gauss.move_scales(np.ones((3, 2)), np.ones(3), 1.0, _hmc.Tuning(1.0, 1, 4, 0.5), sweep, key)
    assert len(np.unique(given)) == 2 * 2 * 3 * 4


def test_going_on_in_burn_in_leaves_what_was_saved_as_it_was(weak_problem):
    data, y = weak_problem
    rows = Rows(data, y.astype(np.uint8), True, cpu, ALONE)
    problem = _run.Problem(rows, FixedPrior(rows.columns, None), 1.0, np.array([1, 2], np.uint32))

    def chains(saved=None):
        start = _run.initial_state(2, rows.columns, rows.base_rate(), 1.0, problem.key)
        return hmc_burn_in.HmcChains(problem, start, 60, saved)

    first = chains()
    for _ in range(25):
        first.advance()
    saved = copy.deepcopy(first.arrays())
    ends = []
    for _ in range(2):
        going_on = chains(saved)
        for _ in range(40):
            going_on.advance()
        ends.append(going_on)
    one, other = ends
    np.testing.assert_array_equal(one.state.beta, other.state.beta)
    np.testing.assert_array_equal(saved["stage_rates"], first.stage.rates)


def test_the_slowest_coefficients_are_those_of_the_largest_autocorrelation():
    rng = np.random.default_rng(1)
    memory = np.where(np.arange(60) % 2, 0.2, 0.8)
    stage, beta = adaptation_window.Stage(4000, _hmc.Tuning(1.0, 1, 2, 1.0), cpu), rng.standard_normal((2, 61))
    stage.n = 2000  # in its second half
    for _ in range(2000):
        noise = rng.standard_normal((2, 61))
        beta[:, :60] = memory * beta[:, :60] + np.sqrt(1 - memory**2) * noise[:, :60]
        scaled = 100.0 + beta * np.arange(1, 62)
        stage.see(_hmc.HmcState(scaled, None, None, None, scaled, 0, np.ones(2), None))
    slow = stage.slowest(60)
    assert len(slow) == 32
    assert set(range(0, 60, 2)) < set(slow)
    assert stage.slowest(5) == tuple(range(5))


@pytest.mark.parametrize("start", ["usual", "far"])
@pytest.mark.parametrize("random_state", [0, 1, 2])
def test_burn_in_ends_with_a_fair_acceptance(start, random_state, record, short_fit, monkeypatch):
    if start == "far":
        far_start(monkeypatch)
    gold = load_gold()
    short_fit(gold["X"], gold["y"], n_iter=300, burn_in=500, sampler="hmc", random_state=random_state)
    of_tau, of_all = np.mean([rates for _, _, _, *rates in record[-300:]], axis=(0, 2))
    assert 0.6 < of_all < 0.99
    assert 0.25 < of_tau < 0.55
