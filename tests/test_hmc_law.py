"""A sweep of split Hamiltonian Monte Carlo leaves the joint law of parameters and data alone (Geweke 2004), and what
says so catches planted errors."""

from functools import partial

import numpy as np
import pytest
from laws import TAU_0, X, bounded, largest, mostly_slow, planted, prior_draws, redrawn, row_alone

from skhorseshoe import _hmc
from skhorseshoe._design import Rows
from skhorseshoe._ops import ACCEPT, MOMENTUM, _gaussian, cpu, log_half_cauchy
from skhorseshoe._threads import Threads

KEY = (np.uint32(7), np.uint32(1))
N_CHAINS = 250  # at once: a random number has 8 bits for its chain
ALONE = Threads(1)
ANCHOR = np.array([0.4, 0.0, -0.3, 1.0])
ONE, THREE, FAR = _hmc.Tuning(1.2, 1, 2, 0.8), _hmc.Tuning(0.7, 3, 2, 0.8), _hmc.Tuning(1.0, 3, 2, 0.8)


class RowsOfManyDataSets:
    """Each chain has its own y: the score of every row by the kernel, for both values of y."""

    def __init__(self, ops):
        self.rows = [[row_alone(X[i : i + 1], value, ops) for value in (0, 1)] for i in range(6)]

    def score(self, beta):
        loglik, score = np.zeros(len(beta)), np.zeros(beta.shape)
        for i, pair in enumerate(self.rows):
            (loglik_0, score_0), (loglik_1, score_1) = (rows.score(beta) for rows in pair)
            loglik += np.where(self.y[:, i] > 0, loglik_1, loglik_0)
            score += np.where(self.y[:, i, None] > 0, score_1, score_0)
        return loglik, score


def imperfect_reference(ops, anchor, share, push):
    """Some quadratic, right for no y, that leaves the Metropolis test something to do."""
    H = share * Rows(X, np.zeros(6, np.uint8), True, ops, ALONE).information(np.zeros((1, 4)))
    point, score = np.array([0.3, -0.2, 0.1, 0.2]), push * np.array([1.0, -1.0, 0.7, -0.8])
    gauss = ops.Whitening(H + np.outer(anchor, anchor), H @ point + score, N_CHAINS, 3, ALONE)
    return _hmc.Reference(point, score, H, gauss)


def geweke(tuning, ops=cpu, n_batches=24, n_redraws=4, n_sweeps=2, anchor=ANCHOR, share=1.0, push=1.5):
    """Largest change of the mean of a bounded function, in standard errors, along chains that start from the joint law.

    Each chain has a few rounds of sweeps given y and a draw of y given the parameters. Independent chains from exact
    draws have independent changes: nothing has to mix, and the functions at the start cancel most of the noise.
    """
    rng = np.random.default_rng(5)
    rows, reference = RowsOfManyDataSets(ops), imperfect_reference(ops, anchor, share, push)
    changes, acceptance, t = [], [], 0
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        for _ in range(n_batches):
            *parameters, rows.y = prior_draws(N_CHAINS, rng, ANCHOR)
            before = bounded(*parameters, rows.y)
            state = _hmc.HmcState(*parameters, None, None, t, None, None)
            for _ in range(n_redraws):
                loglik, score = rows.score(state.beta)
                state = state._replace(loglik=loglik, score=score)
                for _ in range(n_sweeps):
                    state = _hmc.sweep(state, rows, reference, tuning, TAU_0, ops, KEY)
                    acceptance.append(state.acceptance.mean())
                rows.y = redrawn(state.beta, rng)
            changes.append(bounded(state.beta, state.lambda_sq_inv, state.tau_sq_inv, rows.y) - before)
            t = state.sweep
    assert 0.1 < np.mean(acceptance) < 0.9
    return largest(changes)


def tau_as_it_was(beta, tau_sq_inv, *rest):
    """A valid update of tau given beta that does nothing: what the move on the way does is then all there is."""
    return tau_sq_inv


def whitening_with(change):
    """log_norm with something added."""

    class Changed(cpu.Whitening):
        def _moments(self, factor, d):
            mean, log_norm = super()._moments(factor, d)
            return mean, log_norm + change(factor, d[: self.p], self.b @ mean)

    return Changed


class LocalMovesWith(cpu.Whitening):
    """Moves of the local scales that read something else than they should."""

    def __init__(self, *args, mean=1.0, precision=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.change = mean, precision

    def move_local_scales(self, lambda_sq_inv, tau_sq_inv, *rest):
        mean, precision = self.change
        self.mean = self.mean * mean
        return super().move_local_scales(lambda_sq_inv, tau_sq_inv * precision, *rest)


class LocalMovesForgotten(cpu.Whitening):
    """The scales move, and the Gaussian stays."""

    def move_local_scales(self, lambda_sq_inv, tau_sq_inv, *rest):
        kept = self.mean.copy(), self.log_norm.copy()
        out = super().move_local_scales(lambda_sq_inv, tau_sq_inv, *rest)
        self.mean, self.log_norm = kept
        return out


class EndKickTooSmall(cpu.Whitening):
    calls = 0

    def force(self, gradient):
        self.calls += 1
        return super().force(gradient) * (0.5 if self.calls % 2 == 0 else 1.0)


class Where:
    """``where`` that takes always the new or always the old value in one of the six calls of a sweep."""

    def __init__(self, call, new):
        self.call, self.new, self.n = call, new, -1

    def __call__(self, condition, new, old):
        self.n += 1
        return cpu.where(self.new if self.n % 6 == self.call else condition, new, old)


class LocalScalesWithOldTau:
    def global_scale(self, beta, tau_sq_inv, *rest):
        self.old = tau_sq_inv
        return cpu.global_scale(beta, tau_sq_inv, *rest)

    def local_scales(self, beta, tau_sq_inv, *rest):
        return cpu.local_scales(beta, self.old, *rest)


def always_accepted(rate, key, t, purpose):
    return cpu.exponential(rate, key, t, purpose) + (1e9 if purpose == ACCEPT else 0.0)


def momentum_kept(shape, key, t, purpose):
    return cpu.normal(shape, key, 0 if purpose == MOMENTUM else t, purpose)


def old_tau():
    scales = LocalScalesWithOldTau()
    return {"global_scale": scales.global_scale, "local_scales": scales.local_scales}


TAU_ON_THE_WAY = {"global_scale": tau_as_it_was}
WITHOUT_M = whitening_with(lambda L, d, mMm: np.log(L.diagonal()).sum())
WITHOUT_D = whitening_with(lambda L, d, mMm: -np.log(d).sum() / 2)
WITHOUT_MEAN = whitening_with(lambda L, d, mMm: -mMm / 2)
LOOSE = {"share": 0.25, "push": 0.3}  # where what the reference leaves out is mostly the data's
ERRORS = {
    "move of tau without |M|": (ONE, {"Whitening": WITHOUT_M}, {}),
    "move of tau without |D|": (ONE, {"Whitening": WITHOUT_D}, {}),
    "move of tau without m'Mm": (ONE, {"Whitening": WITHOUT_MEAN, **TAU_ON_THE_WAY}, {}),
    "tau left behind by an accepted proposal": (
        THREE._replace(tau_moves=6),
        {"where": Where(1, False), **TAU_ON_THE_WAY},
        {"n_batches": 24},
    ),
    "tau of a rejected proposal": (ONE, {"where": Where(1, True), **TAU_ON_THE_WAY}, {}),
    "lambda moved as if the mean were larger": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": partial(LocalMovesWith, mean=3.0)},
        {},
    ),
    "lambda moved as if tau were smaller": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": partial(LocalMovesWith, precision=10.0)},
        {},
    ),
    "lambda moved without the mean": (
        ONE._replace(slow=(0, 1, 2)),
        {"Whitening": LocalMovesForgotten},
        {"n_batches": 24},
    ),
    "last half-kick": (ONE, {"Whitening": EndKickTooSmall}, {}),
    "half-kicks at the ends of turns": (THREE, {"Whitening": EndKickTooSmall}, {"n_batches": 16}),
    "no Metropolis test": (ONE, {"exponential": always_accepted}, {}),
    "momentum kept": (ONE, {"normal": momentum_kept}, {}),
    "log-likelihood not updated": (FAR, {"where": Where(2, False)}, {"n_redraws": 2, "n_sweeps": 4, "push": 0.3}),
    "b of lambda doubled": (ONE, {"local_scales": lambda beta, t, *rest: cpu.local_scales(beta, 2 * t, *rest)}, {}),
    "lambda given the old tau": (THREE, old_tau(), LOOSE),
    "prior scale of tau": (ONE, {"global_scale": lambda b, t, t0, *r: cpu.global_scale(b, t, 1.5 * t0, *r)}, {}),
}
PRIOR_ERRORS = {
    "left out": lambda precision: 0.0,
    "twice": lambda precision: 2 * log_half_cauchy(precision),
    "without its Jacobian": lambda precision: log_half_cauchy(precision) + np.log(precision) / 2,
}


SOME_SCALES = pytest.param(2, (1,), marks=pytest.mark.slow)


@pytest.mark.parametrize(("tau_moves", "slow"), [(0, ()), (2, ()), (2, (0, 1, 2)), SOME_SCALES])
@pytest.mark.parametrize("tuning", [ONE, THREE], ids=["1 turn", "3 turns"])
def test_sweep_passes_gewekes_joint_test(tuning, tau_moves, slow):
    assert geweke(tuning._replace(tau_moves=tau_moves, slow=slow)) < 4


def test_sweep_whose_tau_moves_on_the_way_only_passes_gewekes_joint_test():
    assert geweke(THREE, planted(**TAU_ON_THE_WAY)) < 4


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_gewekes_joint_test_catches(error):
    tuning, replaced, settings = ERRORS[error]
    assert geweke(tuning, planted(**replaced), **{"n_batches": 12, **settings}) > 6


@pytest.mark.parametrize("error", mostly_slow(PRIOR_ERRORS))
def test_gewekes_joint_test_catches_a_prior_of_tau(error, monkeypatch):
    monkeypatch.setattr(_gaussian, "log_half_cauchy", PRIOR_ERRORS[error])
    assert geweke(ONE, planted(**TAU_ON_THE_WAY), 12) > 6


def test_gewekes_joint_test_catches_a_forgotten_prior_of_the_intercept():
    assert geweke(ONE, n_batches=12, anchor=0 * ANCHOR) > 6


def few_sweeps(ops, n):
    """Rows, and the states of the first n sweeps of four chains, of whose proposals a part is rejected."""
    rows = Rows(X, np.array([0, 1, 0, 1, 1, 0], dtype=np.uint8), True, ops, ALONE)
    H = rows.information(np.zeros((1, 4))) + np.outer(ANCHOR, ANCHOR)
    point, score = np.zeros(4), np.array([1.5, -1.5, 1.0, -1.0])
    reference = _hmc.Reference(point, score, H, ops.Whitening(H, score, 4, 3, ALONE))
    beta = np.zeros((4, 4))
    state = _hmc.HmcState(beta, np.ones((4, 3)), np.ones(4), *rows.score(beta), 0, None, None)
    states = []
    for _ in range(n):
        state = _hmc.sweep(state, rows, reference, THREE, TAU_0, ops, KEY)
        states.append(state)
    return rows, states


def is_fresh(ops):
    """Whether the log-likelihood and the score of every state are those at its beta."""
    rows, states = few_sweeps(ops, 50)
    pairs = [(rows.score(state.beta), (state.loglik, state.score)) for state in states]
    return all(np.allclose(want, got) for pair in pairs for want, got in zip(*pair, strict=True))


@pytest.mark.parametrize("call", [2, 3])
@pytest.mark.parametrize("new", [False, True])
def test_state_has_the_log_likelihood_and_the_score_at_its_beta(call, new):
    assert is_fresh(cpu)
    assert not is_fresh(planted(where=Where(call, new)))


def test_every_unknown_is_redrawn_in_every_sweep():
    """What is never drawn leaves the joint law alone, so Geweke's test would not see it."""
    _, states = few_sweeps(cpu, 200)
    for name in ("lambda_sq_inv", "tau_sq_inv"):
        values = np.array([getattr(state, name) for state in states])
        assert len(np.unique(values)) == values.size
    moved = np.diff([state.beta for state in states], axis=0) != 0
    assert (moved.all(axis=2) == moved.any(axis=2)).all()
    rate = np.mean([state.acceptance for state in states[1:]])
    assert 0.1 < rate < 0.95
    assert abs(moved.any(axis=2).mean() - rate) < 4 * np.sqrt(rate * (1 - rate) / moved.any(axis=2).size)
