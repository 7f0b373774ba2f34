"""What the burn-in of split Hamiltonian Monte Carlo tunes, and that it stops."""

import copy

import numpy as np
import pytest
from laws import ALONE, KEY, chains_of, load_gold, mostly_slow, planted, start_further

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import hmc as _hmc
from skhorseshoe._mcmc.adaptation_window import Window, phase_ends, steps_for_angle
from skhorseshoe._mcmc.run import Problem


@pytest.fixture
def record(monkeypatch):
    """What each sweep was given, with a copy of the reference, and the rates of acceptance of tau and of all."""
    calls, sweep = [], _hmc.sweep

    def recorded(state, problem, reference, tuning, **rest):
        new = sweep(state, problem, reference, tuning, **rest)
        frozen = [part.copy() for part in (*reference[:3], reference.mass_matrix.b)]
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
    *numbers, _, _ = kept[0][0]
    assert numbers == [value for name, value in model.tuning_.items() if name != "acceptance"]
    assert len({id(reference) for _, reference, *_ in kept}) == 1
    for now, then in zip(kept[-1][2], kept[0][2], strict=True):
        np.testing.assert_array_equal(now, then)
    assert all(tuning.n_steps % 2 == 1 for tuning, *_ in record)
    assert all(0 < tuning.step <= np.pi / 2 + 1e-12 for tuning, *_ in record)


def test_local_scales_of_the_slow_columns_move(record, short_fit, weak_problem, breast_cancer):
    """Within the trajectory where one step is enough, and else with a test of their own: a sweep counts both."""
    for data, n_columns, n_steps in ((weak_problem, 3, 1), (breast_cancer, 30, 3)):
        short_fit(*data, n_iter=10, burn_in=200, sampler="hmc")
        tuning = record[-1][0]
        assert (tuning.slow, tuning.n_steps, tuning.apart) == (tuple(range(n_columns)), n_steps, n_steps > 1)


@pytest.mark.parametrize("fair", [True, False])
def test_tau_moves_on_the_way_unless_proposals_suffer(fair, record, short_fit, weak_problem, monkeypatch):
    """It stays already while the last window tunes the step without it."""
    monkeypatch.setattr(Window, "scales_move_well", lambda window: fair)
    model = short_fit(*weak_problem, n_iter=10, burn_in=200, sampler="hmc")
    assert model.tuning_["tau_moves"] == (4 if fair else 0)
    *_, before, end = phase_ends(200)
    of_tau = np.array([tuning.tau_moves for tuning, *_ in record[before - end - 20 : -10]])
    assert of_tau[:10].max() > 0
    assert of_tau[10:].any() == fair


def test_a_small_step_makes_more_turns():
    assert [steps_for_angle(step, 1.335) for step in (1.5, 0.5, 0.3, 0.04, 1e-3)] == [1, 3, 5, 35, 47]


# Rows, columns, chains; dtype; what else ``Rows`` is told. The reordered ones have unpenalised columns.
FUSED_ROWS = {
    "plain": (40, 7, 4, np.float64, {"fit_intercept": False}),
    "an intercept": (40, 7, 3, np.float64, {"fit_intercept": True}),
    "float32, weights": (40, 12, 1, np.float32, {"fit_intercept": True, "weight": np.linspace(0.5, 2.0, 40)}),
    "reordered": (60, 100, 5, np.float64, {"fit_intercept": True, "unpenalized": np.arange(100) % 3 == 0}),
    "standardised": (60, 60, 4, np.float64, {"fit_intercept": True, "standardize": True}),
    "three blocks of rows": (8000, 5, 3, np.float64, {"fit_intercept": True}),
}
FUSED_TUNINGS = {
    "tau alone": _hmc.Tuning(0.7, 3, 4, 0.8),
    "lambda too": _hmc.Tuning(1.2, 1, 2, 0.5, (0, 1)),
    "apart": _hmc.Tuning(0.7, 3, 2, 0.8, (1, 3), True),
    "given beta": _hmc.Tuning(0.5, 5, 0, 0.5),
}


@pytest.mark.parametrize("tuning", FUSED_TUNINGS)
@pytest.mark.parametrize("name", FUSED_ROWS)
def test_a_fused_sweep_has_the_bits_of_its_steps(name, tuning):
    """Every second sweep has a move between the trajectories and the draws of the scales, as line moves are."""
    n, p, m, dtype, told = FUSED_ROWS[name]
    rng = np.random.default_rng(p)
    X, y = (rng.standard_normal((n, p)) + np.linspace(-1, 1, p)).astype(dtype), (rng.random(n) < 0.4).astype(np.uint8)
    rows, states = Rows(X, y, ops=cpu, threads=ALONE, **told), []
    q, n_shrunk = p + told["fit_intercept"], rows.columns.n_shrunk
    H, point, score = rows.information(np.zeros((1, q))), np.zeros(q), 0.1 * rng.standard_normal(q)
    gauss = cpu.MassMatrix(H + np.eye(q), score, m, n_shrunk, ALONE)
    rows.ops = planted(move_along_lines=lambda beta, *scales_and_others: (1.01 * beta, *scales_and_others[:2]))
    problem = Problem(rows, None, 0.3, KEY)
    for rows.takes_fused_calls in (True, False):
        beta = 0.1 * np.ones((m, q))
        state = _hmc.HmcState(beta, np.ones((m, n_shrunk)), np.ones(m), *rows.score(beta), 0, *np.zeros((2, m)))
        for t in range(10):
            reference = _hmc.Reference(point, score, H, gauss)
            state = _hmc.sweep(state, problem, reference, FUSED_TUNINGS[tuning], t % 2 or None)
        states.append(state)
    for fused, step_by_step in zip(*states, strict=True):
        np.testing.assert_array_equal(fused, step_by_step)
    assert (states[0].beta != beta).any()


def test_a_start_without_burn_in_has_random_numbers_of_its_own(weak_problem, monkeypatch):
    X, y = weak_problem
    drawn, draw_lambda_given_beta = [], cpu.draw_lambda_given_beta
    monkeypatch.setattr(
        cpu, "draw_lambda_given_beta", lambda *given: drawn.append(given[3]) or draw_lambda_given_beta(*given)
    )
    chains_of(Rows(X, y.astype(np.uint8), True, cpu, ALONE), "hmc", 0).advance()
    assert len(set(drawn)) == len(drawn) == 2


def test_going_on_in_burn_in_leaves_what_was_saved_as_it_was(weak_problem):
    X, y = weak_problem
    rows = Rows(X, y.astype(np.uint8), True, cpu, ALONE)
    first = chains_of(rows, "hmc", 60)
    for _ in range(25):
        first.advance()
    saved, states = copy.deepcopy(first.arrays()), []
    for _ in range(2):
        chains = chains_of(rows, "hmc", 60, saved)
        for _ in range(40):
            chains.advance()
        states.append(chains.state)
    np.testing.assert_array_equal(states[0].beta, states[1].beta)
    for name, value in first.arrays().items():
        np.testing.assert_array_equal(saved[name], value)


def test_a_burn_in_of_one_sweep_is_taken_up_with_the_same_moves(weak_problem):
    X, y = weak_problem
    rows = Rows(X, y.astype(np.uint8), True, cpu, ALONE)
    chains = chains_of(rows, "hmc", 1)
    chains.advance()
    assert chains_of(rows, "hmc", 1, chains.arrays()).lines.n_columns == chains.lines.n_columns


def test_the_slowest_have_the_largest_autocorrelation():
    rng = np.random.default_rng(1)
    memory = np.where(np.arange(60) % 2, 0.2, 0.8)
    window, beta = Window(4000, _hmc.Tuning(1.0, 1, 2, 1.0), cpu), rng.standard_normal((2, 61))
    window.n = 2000  # in its second half
    for _ in range(2000):
        noise = rng.standard_normal((2, 61))
        beta[:, :60] = memory * beta[:, :60] + np.sqrt(1 - memory**2) * noise[:, :60]
        scaled = 100.0 + beta * np.arange(1, 62)
        window.add(_hmc.HmcState(scaled, None, None, None, scaled, 0, np.ones(2), None))
    slow = window.slowest(60)
    assert len(slow) == 32
    assert set(range(0, 60, 2)) < set(slow)
    assert window.slowest(5) == tuple(range(5))
    assert window.slowest(60, 3) == tuple(range(20))  # of columns with several coefficients, as many as are cheap


@pytest.mark.parametrize("start", ["usual", "far"])
@pytest.mark.parametrize("random_state", mostly_slow([0, 1, 2]))
def test_burn_in_ends_with_a_fair_acceptance(start, random_state, record, short_fit, monkeypatch):
    if start == "far":
        start_further(monkeypatch)
    gold = load_gold()
    short_fit(gold["X"], gold["y"], n_iter=300, burn_in=500, sampler="hmc", random_state=random_state)
    of_tau, of_all = np.mean([rates for _, _, _, *rates in record[-300:]], axis=(0, 2))
    assert 0.6 < of_all < 0.99
    assert 0.25 < of_tau < 0.55
