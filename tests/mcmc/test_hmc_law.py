"""A sweep of split Hamiltonian Monte Carlo leaves the joint law of parameters and data alone (Geweke 2004), and what
says so catches planted errors."""

from functools import partial

import laws
import numpy as np
import pytest
from laws import ALONE, KEY, N_CHAINS, TAU_0, X, always_accepted, mostly_slow, planted, prior_draws

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import hmc
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import Problem

ANCHOR = np.array([0.4, 0.0, -0.3, 1.0])
ONE, THREE, FAR = hmc.Tuning(1.2, 1, 2, 0.8), hmc.Tuning(0.7, 3, 2, 0.8), hmc.Tuning(1.0, 3, 2, 0.8)
APART = THREE._replace(apart=True)


def imperfect_reference(ops, anchor=ANCHOR, share=1.0, push=1.5):
    """Some quadratic, right for no y, that leaves the Metropolis test something to do."""
    H = share * Rows(X, np.zeros(6, np.uint8), True, ops, ALONE).information(np.zeros((1, 4)))
    point, score = np.array([0.3, -0.2, 0.1, 0.2]), push * np.array([1.0, -1.0, 0.7, -0.8])
    gauss = ops.MassMatrix(H + np.outer(anchor, anchor), H @ point + score, N_CHAINS, 3, ALONE)
    return hmc.Reference(point, score, H, gauss)


def geweke(tuning, ops=cpu, n_batches=24, n_redraws=4, n_sweeps=2, **reference):
    """``laws.geweke`` for whole sweeps, whose proposals are neither all accepted nor all rejected.

    reference : as for ``imperfect_reference``.
    """
    rng, rows, acceptance = np.random.default_rng(5), laws.RowsOfManyDataSets(ops), []
    problem = Problem(rows, None, TAU_0, KEY)
    reference = imperfect_reference(ops, **reference)

    def advance(parameters, y, k):
        rows.y = y
        state = hmc.HmcState(*parameters, *rows.score(parameters[0]), k * n_sweeps, None, None)
        for _ in range(n_sweeps):
            state = hmc.sweep(state, problem, reference, tuning)
            acceptance.append(state.acceptance.mean())
        return state[:3]

    draws = partial(prior_draws, N_CHAINS, rng, ANCHOR), advance, partial(laws.redrawn, rng=rng), laws.bounded
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        change = laws.geweke(*draws, n_batches, n_redraws)
    assert 0.1 < np.mean(acceptance) < 0.9
    return change


def tau_as_it_was(beta, tau_sq_inv, *rest):
    """A valid update of tau given beta that does nothing: what the move on the way does is then all there is."""
    return tau_sq_inv


class EndKickTooSmall(cpu.MassMatrix):
    def kick(self, trajectory, angle, *rest):
        before = trajectory.v.copy()
        trajectory = super().kick(trajectory, angle, *rest)
        kicked = trajectory.v.copy()
        trajectory.v[:] = (before + kicked) / 2
        trajectory.energy[:] += ((trajectory.v**2).sum(axis=1) - (kicked**2).sum(axis=1)) / 2
        return trajectory


class MomentumKept(cpu.MassMatrix):
    def begin(self, reference, state, key, *rest):
        return super().begin(reference, state._replace(sweep=0), key, *rest)


class GaussianOfOldScales(cpu.MassMatrix):
    begun = False

    def begin(self, reference, state, key, same_scales=False):
        same_scales, self.begun = same_scales or self.begun, True
        return super().begin(reference, state, key, same_scales)


def metropolis_with(name, new):
    """A test that always takes the new or always the old value of a part of the state."""
    at = hmc.HmcState._fields.index(name)

    def metropolis(change, now, was, *rest):
        now, was = list(now), list(was)
        now[at] = was[at] = now[at] if new else was[at]
        return cpu.metropolis(change, tuple(now), tuple(was), *rest)

    return {"metropolis": metropolis}


def accepted_apart(change, new, old, key, sweep):
    """A test that takes the second proposal of a sweep always, and the first as it should."""
    test = cpu.metropolis if sweep < 2**31 else always_accepted
    return test(change, new, old, key, sweep)


def local_scales_with_old_tau():
    kept = {}

    def draw_tau_given_beta(beta, tau_sq_inv, *rest):
        kept["tau_sq_inv"] = tau_sq_inv
        return cpu.draw_tau_given_beta(beta, tau_sq_inv, *rest)

    def draw_lambda_given_beta(beta, tau_sq_inv, *rest):
        return cpu.draw_lambda_given_beta(beta, kept["tau_sq_inv"], *rest)

    return {"draw_tau_given_beta": draw_tau_given_beta, "draw_lambda_given_beta": draw_lambda_given_beta}


STEP_BY_STEP = {"fused_trajectories": lambda *given: None}  # so that all of a back end is asked
TAU_ON_THE_WAY = {"draw_tau_given_beta": tau_as_it_was}
LOOSE = {"share": 0.25, "push": 0.3}  # where what the reference leaves out is mostly the data's
ERRORS = {
    "tau of a rejected proposal": (ONE, {**metropolis_with("tau_sq_inv", True), **TAU_ON_THE_WAY}, {"n_batches": 32}),
    "tau left behind by an accepted proposal": (
        THREE._replace(tau_moves=6),
        {**metropolis_with("tau_sq_inv", False), **TAU_ON_THE_WAY},
        {"n_batches": 24},
    ),
    "last half-kick": (ONE, {"MassMatrix": EndKickTooSmall}, {}),
    "half-kicks at the ends of steps": (THREE, {"MassMatrix": EndKickTooSmall}, {"n_batches": 16}),
    "no Metropolis test": (ONE, {"metropolis": always_accepted}, {}),
    "no test of scales that move apart": (
        APART._replace(slow=(0, 1, 2)),
        {"metropolis": accepted_apart},
        {"share": 0.25},
    ),
    "momentum kept": (ONE, {"MassMatrix": MomentumKept}, {}),
    "the Gaussian of old scales": (APART, {"MassMatrix": GaussianOfOldScales}, {}),
    "log-likelihood not updated": (FAR, metropolis_with("loglik", False), {"n_redraws": 2, "n_sweeps": 4, "push": 0.3}),
    "b of lambda doubled": (
        ONE,
        {"draw_lambda_given_beta": lambda beta, t, *rest: cpu.draw_lambda_given_beta(beta, 2 * t, *rest)},
        {},
    ),
    "lambda given the old tau": (THREE, local_scales_with_old_tau(), LOOSE),
    "prior scale of tau": (
        ONE,
        {"draw_tau_given_beta": lambda b, t, t0, *r: cpu.draw_tau_given_beta(b, t, 1.5 * t0, *r)},
        {},
    ),
    "prior of the intercept": (ONE, {}, {"anchor": 0 * ANCHOR}),
}
SLOW = ONE._replace(slow=(0, 1, 2))
PLANTED = {  # in the core, and what is replaced beside
    "NORM_WITHOUT_M": (ONE, {}),
    "NORM_WITHOUT_D": (ONE, {}),
    "NORM_WITHOUT_PRODUCT": (ONE, TAU_ON_THE_WAY),  # m'Mm
    "LARGER_MEAN": (SLOW, {}),
    "SMALLER_TAU": (SLOW, {}),
    "GAUSSIAN_FORGOTTEN": (SLOW, {}),
    "NO_PRIOR_OF_HELD": (ONE, TAU_ON_THE_WAY),
    "NO_CHOICE_OF_HELD": (ONE, TAU_ON_THE_WAY),
    "NO_PRIOR_OF_TAU": (ONE, TAU_ON_THE_WAY),
    "PRIOR_OF_TAU_TWICE": (ONE, TAU_ON_THE_WAY),
    "NO_JACOBIAN_OF_TAU": (ONE, TAU_ON_THE_WAY),
}


SOME_SCALES = pytest.param(2, (1,), marks=pytest.mark.slow)


@pytest.mark.parametrize(("tau_moves", "slow"), [(0, ()), (2, ()), (2, (0, 1, 2)), SOME_SCALES])
@pytest.mark.parametrize("tuning", [ONE, THREE, APART], ids=["1 step", "3 steps", "apart"])
def test_hmc_passes_geweke(tuning, tau_moves, slow):
    assert geweke(tuning._replace(tau_moves=tau_moves, slow=slow)) < 4


def test_hmc_passes_geweke_with_tau_moved_on_the_way_only():
    assert geweke(THREE, planted(**TAU_ON_THE_WAY)) < 4


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_geweke_catches_errors_in_hmc(error):
    tuning, replaced, settings = ERRORS[error]
    assert geweke(tuning, planted(**replaced), **{"n_batches": 12, **settings}) > 6


@pytest.mark.parametrize("error", mostly_slow(PLANTED))
def test_geweke_catches_errors_in_moves_of_tau_and_lambda(error, plant):
    tuning, replaced = PLANTED[error]
    plant(error)
    assert geweke(tuning, planted(**replaced), n_batches=24) > 6


def few_sweeps(ops, n, with_lines=False, tuning=THREE):
    """Rows, and the states of the first n sweeps of four chains, of whose proposals a part is rejected."""
    rows = Rows(X, np.array([0, 1, 0, 1, 1, 0], dtype=np.uint8), True, ops, ALONE)
    H = rows.information(np.zeros((1, 4))) + np.outer(ANCHOR, ANCHOR)
    point, score = np.zeros(4), np.array([1.5, -1.5, 1.0, -1.0])
    reference = hmc.Reference(point, score, H, ops.MassMatrix(H, score, 4, 3, ALONE))
    beta, lines = np.zeros((4, 4)), rows.lines(FixedPrior(rows.columns, None), np.full(5, 4.0)) if with_lines else None
    state = hmc.HmcState(beta, np.ones((4, 3)), np.ones(4), *rows.score(beta), 0, None, None)
    states = []
    for _ in range(n):
        state = hmc.sweep(state, Problem(rows, None, TAU_0, KEY), reference, tuning, lines)
        states.append(state)
    return rows, states


def is_fresh(ops, with_lines=False):
    """Whether the log-likelihood and the score of every state are those at its beta."""
    rows, states = few_sweeps(ops, 50, with_lines)
    pairs = [(rows.score(state.beta), (state.loglik, state.score)) for state in states]
    return all(np.allclose(want, got) for pair in pairs for want, got in zip(*pair, strict=True))


@pytest.mark.parametrize("name", ["loglik", "score"])
@pytest.mark.parametrize("new", [False, True])
def test_state_has_the_log_likelihood_and_the_score_at_its_beta(name, new):
    assert is_fresh(cpu)
    assert is_fresh(cpu, with_lines=True)
    assert not is_fresh(planted(**metropolis_with(name, new), **STEP_BY_STEP))


def test_scales_that_move_apart_have_random_numbers_of_their_own():
    given = []

    def metropolis(*args):
        given.append(args[-1])
        return cpu.metropolis(*args)

    few_sweeps(planted(metropolis=metropolis, **STEP_BY_STEP), 5, tuning=APART)
    assert len(set(given)) == len(given) == 2 * 5


def test_hmc_redraws_every_unknown_in_every_sweep():
    """What is never drawn leaves the joint law alone, so Geweke's test would not see it."""
    _, states = few_sweeps(cpu, 200, tuning=ONE)
    for name in ("lambda_sq_inv", "tau_sq_inv"):
        values = np.array([getattr(state, name) for state in states])
        assert len(np.unique(values)) == values.size
    moved = np.diff([state.beta for state in states], axis=0) != 0
    assert (moved.all(axis=2) == moved.any(axis=2)).all()
    rate = np.mean([state.acceptance for state in states[1:]])
    assert 0.1 < rate < 0.95
    assert abs(moved.any(axis=2).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / moved.any(axis=2).size)
