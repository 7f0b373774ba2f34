"""A diagonal mass matrix and moves of single columns: the joint law of parameters and data (Geweke 2004), that of the
dense reference, and what a run keeps."""

from functools import partial
from types import SimpleNamespace

import laws
import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, KEY, N_CHAINS, TAU_0, always_accepted, mostly_slow, planted, prior_draws, same_draws
from whole_runs import check_uniform, ranks_of_coefficients

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_cpu
from skhorseshoe._backends._cpu.diagonal_mass_matrix import DiagonalMassMatrix
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import hmc, hmc_diagonal
from skhorseshoe._mcmc.hmc_diagonal import DiagonalReference
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import DIAGONAL, Problem
from skhorseshoe._mcmc.shrinkage_by_products import ShrinkageByProducts
from skhorseshoe._utils.threads import Threads
from skhorseshoe.diagnostics import mcse_mean

ANCHOR = np.array([0.4, 0.0, -0.3, 1.0])
PLAIN = laws.Given(2 * laws.X, 2 * laws.X)  # so that the data have something to say
SOME = np.array([[0, 2, -1], [1.5, -2, 0], [0, 0, 1], [-1.5, 1, 0], [2, 0, 2], [-2, -1, -2]])
SPARSE = laws.Given(sp.csr_array(SOME), SOME, sparse_cpu)
TAU_ON_THE_WAY = planted(draw_tau_given_beta=lambda beta, tau_sq_inv, *rest: tau_sq_inv)
REFERENCE = DiagonalReference(
    np.array([0.3, -0.2, 0.1, 0.2]), np.array([1.0, -0.8, 0.5, -0.6]), np.array([1.5, 2.0, 2.5, 3.0]),
    np.array([0.3, -0.1, 0.2, 0.0]), 2.5,
)  # fmt: skip
UNBOUNDED = np.array([1.0, 1.0, 0.0, 0.0])


def prior_of(columns):
    """The fixed prior of which ``prior_draws`` are."""
    fixed = FixedPrior(columns, None)
    fixed.anchor, fixed.diagonal = ANCHOR, np.zeros(4)
    return fixed


class MovesOfManyDataSets:
    """``ColumnMoves`` where each chain has its own y: one chain after the other, with numbers of its own."""

    def __init__(self, rows, ops):
        self.rows = rows
        self.moves = ops.ColumnMoves(rows.whole, prior_of(rows.columns))
        self.moves.rates[:] = 0.8
        self.moves.set_reference(REFERENCE)

    def move(self, state, key):
        beta, lambda_sq_inv, y = state.beta.copy(), state.lambda_sq_inv.copy(), self.moves.rows.held[1]
        for c in range(len(beta)):
            y[:] = self.rows.y[c]
            of_chain = {name: getattr(state, name)[c : c + 1] for name in ("beta", "lambda_sq_inv", "tau_sq_inv")}
            one = state._replace(**of_chain, sweep=4 * (N_CHAINS * state.sweep + c) + state.sweep % 4)
            (beta[c],), (lambda_sq_inv[c],) = self.moves.move(one, key)
        return beta, lambda_sq_inv


def geweke(ops=cpu, given=PLAIN, n_batches=8, mass_matrix=DiagonalMassMatrix):
    """``laws.geweke`` for whole sweeps, whose proposals are neither all accepted nor all rejected."""
    rng, rows, acceptance = np.random.default_rng(5), laws.RowsOfManyDataSets(given.ops, given), []
    assert not rows.columns.centre.any()  # else y would have another intercept
    fixed = prior_of(rows.columns)
    both = (mass_matrix(REFERENCE, fixed, N_CHAINS, 3, ALONE, unbounded) for unbounded in (UNBOUNDED, None))
    references = [hmc.Reference(None, None, None, matrix) for matrix in both]
    tuning, moved = hmc.Tuning(0.5, 3, 4, 0.5), MovesOfManyDataSets(rows, ops)
    rows.ops, problem = ops, Problem(rows, fixed, TAU_0, KEY)

    def advance(parameters, y, k):
        rows.y = y
        state = hmc.HmcState(*parameters, *rows.score(parameters[0]), 2 * k, None, None)
        for _ in range(2):
            state = hmc_diagonal.sweep(state, problem, references, tuning, moved)
            acceptance.append(state.acceptance.mean())
        return state[:3]

    def start():
        *parameters, _ = prior_draws(N_CHAINS, rng, ANCHOR)
        return *parameters, given.redrawn(parameters[0], rng)

    draws = start, advance, partial(given.redrawn, rng=rng), laws.bounded
    with np.errstate(over="ignore", invalid="ignore"):  # as in a run
        change = laws.geweke(*draws, n_batches, 4)
    assert 0.1 < np.mean(acceptance) < 0.95
    return change


@pytest.mark.parametrize("given", mostly_slow([PLAIN, SPARSE]))
def test_sweeps_pass_geweke(given):
    assert geweke(given.ops, given) < 4


class NoForceOfThePrior(DiagonalMassMatrix):
    """The energy without the fixed prior."""

    def __init__(self, reference, fixed, *rest):
        super().__init__(reference, SimpleNamespace(anchor=0.0 * fixed.anchor, diagonal=0.0 * fixed.diagonal), *rest)


class EnergyOfTheIntercept(DiagonalMassMatrix):
    """An energy that the gradient does not have."""

    def begin(self, reference, state, *rest):
        return self._with_more(super().begin(reference, state, *rest), state.beta)

    def kick(self, trajectory, angle, beta, *rest):
        return self._with_more(super().kick(trajectory, angle, beta, *rest), beta)

    def _with_more(self, trajectory, beta):
        trajectory.energy[:] += 0.3 * (beta[:, -1] + beta @ REFERENCE.centre)
        return trajectory


class AnotherGaussianOnTheWay(DiagonalMassMatrix):
    """The information of unbounded columns changes in a trajectory."""

    def to_beta(self, trajectory):
        beta = super().to_beta(trajectory)
        whole, soft = (self.own.given[name] for name in ("whole", "soft"))
        if soft is not None:
            f = 1 / (1 + 0.3 * UNBOUNDED * (whole / (1 + 9 * abs(beta))) ** 0.5)
            soft[:] = f * whole
        return beta


PLANTED = {"LIKELIHOOD_OF_COLUMN_REVERSED": cpu, "NO_JACOBIAN_OF_COLUMN": cpu, "NO_JACOBIAN_OF_TAU": TAU_ON_THE_WAY}
ERRORS = {
    "the fixed prior": (cpu, {"mass_matrix": NoForceOfThePrior}),
    "no Metropolis test": (planted(metropolis=always_accepted), {"n_batches": 24}),
    "the energy of the intercept": (cpu, {"mass_matrix": EnergyOfTheIntercept}),
    "the information of unbounded columns": (cpu, {"mass_matrix": AnotherGaussianOnTheWay}),
}


@pytest.mark.parametrize("error", mostly_slow(ERRORS))
def test_geweke_catches_errors(error):
    ops, settings = ERRORS[error]
    assert geweke(ops, **settings) > 6


@pytest.mark.parametrize("error", mostly_slow(PLANTED))
def test_geweke_catches_errors_in_the_core(error, plant):
    plant(error)
    assert geweke(PLANTED[error], n_batches=24 if error == "NO_JACOBIAN_OF_TAU" else 12) > 6


# The Gaussian ---------------------------------------------------------------------------------------------------------


def one_hot(seed, n=500):
    """Rows of two categories, the levels of the second not next to each other, and a column of numbers."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, 3, n), rng.integers(0, 4, n)]
    levels = [codes[0] == 0, codes[1] == 1, codes[0] == 1, codes[0] == 2, codes[1] == 0, codes[1] == 2, codes[1] == 3]
    X = np.column_stack([*levels, rng.standard_normal(n) + 2]).astype(float)
    y = (X[:, 0] - X[:, 1] - 0.5 + rng.standard_normal(n) > 0).astype(np.uint8)
    return X, y


def check_root(matrix, state, H):
    """u'u is what M = H + D makes of the distance from its mean, and u leads back to beta."""
    trajectory, d = matrix.begin(None, state, KEY), np.zeros(9)
    np.testing.assert_allclose(matrix.to_beta(trajectory), state.beta, rtol=1e-9, atol=1e-9)
    p = state.lambda_sq_inv.shape[1]
    for c, (beta, mean) in enumerate(zip(state.beta, matrix.own.given["mean"], strict=True)):
        d[:p] = state.tau_sq_inv[c] * state.lambda_sq_inv[c]
        away = beta + (matrix.own.given["centre"] @ beta) * np.eye(9)[8] - mean
        np.testing.assert_allclose((trajectory.u[c] ** 2).sum(), away @ (H + np.diag(d)) @ away, rtol=1e-9)


@pytest.mark.parametrize("settings", [{}, {"standardize": True}, {"unpenalized": np.arange(8) == 2}])
def test_the_root_is_that_of_the_matrix(settings, seed):
    X, y = one_hot(seed)
    rows = Rows(X, y, True, cpu, ALONE, **settings)
    chains, beta = laws.chains_of(rows, "diagonal", 0, slab=1.0), np.random.default_rng(seed).normal(0, 0.3, (3, 9))
    H = np.diag(chains.reference.information)
    check_root(chains.references[0].mass_matrix, chains.state._replace(beta=beta), H)


def test_the_information_of_unbounded_columns_falls_with_their_scales(seed):
    """To a half where d is .09 of it."""
    X, y = one_hot(seed)
    rows = Rows(X, y, True, cpu, ALONE)
    fixed, unbounded = FixedPrior(rows.columns, None), np.r_[1.0, 1.0, np.zeros(5), 1.0, 0.0]
    chains = laws.chains_of(rows, "diagonal", 0, n_chains=1)
    matrix = DiagonalMassMatrix(chains.reference, fixed, 1, 8, ALONE, unbounded)
    d, beta = 0.09 * matrix.own.given["whole"], np.random.default_rng(seed).normal(0, 0.3, (1, 9))
    state = chains.state._replace(beta=beta, tau_sq_inv=np.ones(1), lambda_sq_inv=d[None, :8])
    check_root(matrix, state, np.diag((1.0 - 0.5 * unbounded) * matrix.own.given["whole"]))


def test_burn_in_does_not_wait_for_what_the_data_do_not_bound(seed):
    """The coefficient of a level without events, which sampling does not wait for either."""
    X, y = one_hot(seed)
    y[X[:, 1] == 1] = 0
    chains = laws.chains_of(Rows(X, y, True, cpu, ALONE), "diagonal", 0)
    chains.advance()
    (place,) = chains.problem.rows.columns.place[[1]]
    np.testing.assert_array_equal(chains._judged(), np.delete(chains.state.beta, place, axis=1))


def test_the_diagonal_is_that_of_the_information(seed):
    X, y = one_hot(seed)
    weight, offset = np.random.default_rng(seed).uniform(0.5, 2, (2, len(y)))
    beta = np.random.default_rng(seed).normal(0, 0.3, (3, 9))
    for given in ({}, {"weight": weight}, {"weight": weight, "offset": offset, "standardize": True}):
        for kind, ops in ((np.asarray, cpu), (sp.csr_array, sparse_cpu)):
            rows = Rows(kind(X), y, True, ops, ALONE, **given)
            diagonal, centre, size = rows.information_diagonal(beta)
            shear = np.eye(9) - np.outer(np.eye(9)[8], centre)
            want = shear.T @ rows.information(beta) @ shear
            np.testing.assert_allclose(diagonal, want.diagonal(), rtol=1e-6)
            np.testing.assert_allclose(want[8, :8], 0.0, atol=1e-6 * size)


# Moves of columns -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_sparse_rows_and_arrays_move_alike_on_any_number_of_threads(n_jobs, seed):
    """Where no column has a mean, about which those of an array move."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((300, 9)) < 0.2, rng.choice([-1.0, 1.0], (300, 9)), 0.0)
    y, moved = (rng.random(300) < 0.3).astype(np.uint8), []
    for kind, ops in ((np.asarray, cpu), (sp.csr_array, sparse_cpu)):
        rows = Rows(kind(X), y, False, ops, Threads(1))
        chains = laws.chains_of(rows, "diagonal", 0, n_chains=5)
        chains.moves.rates[:] = 1.0
        moved.append(chains.moves.move(chains.state._replace(sweep=1), KEY))
    for ours, theirs in zip(*moved, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    assert (moved[0][0] != chains.state.beta).any()


def test_columns_with_many_rows_take_turns(seed):
    X = sp.random_array((2000, 40), density=0.02, rng=np.random.default_rng(seed), format="lil")
    X[:, :4] = 1.0 + np.arange(2000)[:, None] % 3
    rows = Rows(sp.csr_array(X), np.arange(2000, dtype=np.uint8) % 2, True, sparse_cpu, ALONE)
    moves = sparse_cpu.ColumnMoves(rows, FixedPrior(rows.columns, 1.0))
    turns = np.array([np.bincount(moves.due(t), minlength=40) for t in range(100)])
    sizes = np.diff(sp.csc_array(X).indptr)
    assert (turns[:, 4:] == 1).all()
    assert (abs(turns.mean(axis=0) - moves.rates) < 0.03).all()
    assert 0.3 < (turns @ sizes).mean() / sizes.sum() < 0.5


# Whole runs -----------------------------------------------------------------------------------------------------------


def rare(seed, n=600, p=120):
    """Sparse columns with frequencies by a power law, two of which nearly agree, one empty and one constant."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < np.minimum(0.4, 0.03 * (rng.pareto(1.2, p) + 0.3))).astype(float)
    X[:, 1], X[:, 2], X[:, 3] = np.where(rng.random(n) < 0.9, X[:, 0], X[:, 1]), 0.0, 1.0
    eta = X[:, :8] @ rng.choice([-1.2, 1.2], 8) - 0.6
    return sp.csr_array(X), (eta + rng.standard_normal(n) > 0).astype(int)


@pytest.fixture
def kinds(sizes):
    """A function that fits with a diagonal mass matrix, or not."""

    def fit(is_diagonal, X, y, **params):
        sizes(columns_of_a_diagonal=(0, 0) if is_diagonal else (10**9, 10**9), work_of_a_factor=0)
        model = HorseshoeProbitClassifier(sampler="hmc", **params).fit(X, y)
        assert ("tau_step" in model.tuning_) != is_diagonal
        return model

    return fit


def test_a_fit_of_many_sparse_columns_takes_it_and_of_few_does_not(seed):
    """Many columns for the stored numbers, or few numbers stored."""
    (X, y), rng = rare(seed), np.random.default_rng(seed)
    fit = HorseshoeProbitClassifier(n_iter=4, burn_in=100, slab_scale=1.0, random_state=seed).fit
    assert "tau_step" not in fit(X, y).tuning_
    assert fit(X, y).sampler_ == "hmc"
    assert "tau_step" in fit(X[:, :40], y).tuning_
    assert "tau_step" in fit(X.toarray(), y).tuning_
    for share in (0.08, 0.3):
        X = sp.random_array((4000, 60), density=share, rng=rng, format="csr")
        assert ("tau_step" in fit(X, np.arange(4000) % 2).tuning_) == (share > 0.1)


def test_hundreds_of_columns_of_an_array_take_it_if_they_hardly_correlate(seed):
    rng, fit = np.random.default_rng(seed), HorseshoeProbitClassifier(n_iter=4, burn_in=100, random_state=seed).fit
    X = rng.standard_normal((600, 220))
    X[:, 1], X[:, 2] = 3.0, 1e30 * X[:, 2]  # a constant, and one whose squares no float32 holds
    for common in (0.0, 1.0):
        given = X + common * X[:, :1] * np.where(np.arange(220) % 2, 1.0, -1.0)
        assert ("tau_step" in fit(given, np.arange(600) % 2).tuning_) == (common > 0)


@pytest.mark.parametrize("sweeps", [7, 31, pytest.param(55, marks=pytest.mark.slow), 70])
def test_a_run_that_ended_early_goes_on_to_the_same_draws(sweeps, kinds, ended_at, tmp_path, seed):
    X, y = rare(seed, 200, 30)
    settings = {"n_iter": 40, "burn_in": 50, "random_state": seed, "thin": 2}
    with ended_at(sweeps, tmp_path / "run"):
        kinds(True, X, y, **settings, checkpoint=tmp_path / "run", checkpoint_interval=0)
    resumed = kinds(True, X, y, **settings, checkpoint=tmp_path / "run", n_jobs=2)
    whole = kinds(True, X, y, **settings)
    assert same_draws(resumed, whole)
    assert resumed.tuning_ == whole.tuning_


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "params", "dense"),
    [
        (12, {"slab_scale": 1.0}, False),
        (12, {"slab_scale": 1.0, "standardize": True, "unpenalized": [4]}, True),
        (200, {"slab_scale": 2.0}, False),
    ],
)
def test_the_posterior_is_that_of_the_dense_reference(p, params, dense, kinds, seed):
    X, y = rare(seed, 600, p)
    X, length = X.toarray() if dense else X, {"n_iter": 3000, "burn_in": 300}
    ours, theirs = (kinds(diagonal, X, y, **length, random_state=int(diagonal), **params) for diagonal in (True, False))

    def values(model):
        scaled = model.coef_draws_ / abs(theirs.coef_draws_).mean(axis=(0, 1)).clip(1e-12)
        of_all = np.log(model.global_scale_draws_)[..., None], model.intercept_draws_[..., None]
        return np.concatenate([np.tanh(scaled), np.tanh(scaled**2), *of_all], axis=2)

    ours_, theirs_ = values(ours), values(theirs)
    error = np.hypot(mcse_mean(ours_), mcse_mean(theirs_))
    assert (abs(ours_.mean(axis=(0, 1)) - theirs_.mean(axis=(0, 1))) <= 4.5 * error).all()
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=0.12)


@pytest.mark.slow
def test_many_sparse_rows_of_a_few_more_columns_have_the_posterior_of_fewer(sizes, seed):
    """Of the probabilities of the rows, tau and the intercept."""
    (X, y), fits = rare(seed, 50, 58), []
    for most in (4000, 20):
        sizes(rows_factored=most)
        model = HorseshoeProbitClassifier(n_iter=3000, burn_in=400, random_state=most).fit(X, y)
        assert ("tau_moves" in model.tuning_) == (most > 50)  # the dense reference has them in its report
        assert model.sampler_ == "hmc"
        eta = model.intercept_draws_[..., None] + model.coef_draws_ @ X.toarray().T
        fits.append(np.concatenate([np.tanh(eta / 2), np.log(model.global_scale_draws_)[..., None]], axis=2))
    error = np.hypot(*(mcse_mean(fit) for fit in fits))
    ours, theirs = (fit.mean(axis=(0, 1)) for fit in fits)
    assert (abs(ours - theirs) <= 4.5 * error).all()


# Simulation-based calibration (Talts et al. 2018) ---------------------------------------------------------------------

NAMES = "intercept", *range(6), "tau", "predictor"


def ranks_of(seed, tau_0):
    """Where in (0, 1) the truth is among draws of ``NAMES``."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((14, 6)) < 0.35, rng.choice([-1.0, 1.0, 2.0], (14, 6)), 0.0)
    X[0], X[:, 1], X[:, 2] = 1.0, X[:, 0], rng.standard_normal(14) + 1
    X[1, 1] += 1.0  # all but the same as its neighbour
    return ranks_of_coefficients(
        rng, X, lambda X, y: Rows(sp.csr_array(X), y, True, sparse_cpu, ALONE), DIAGONAL, tau_0
    )


@pytest.mark.slow
@pytest.mark.parametrize("tau_0", [0.02, 2.0])
def test_ranks_are_uniform(tau_0):
    check_uniform([ranks_of(seed, tau_0) for seed in range(laws.repeated(40, 200))], NAMES)


def test_the_shrinkage_is_that_of_the_matrix(seed):
    X, y = rare(seed, 600, 30)
    rows = Rows(X, y.astype(np.uint8), True, sparse_cpu, ALONE)
    fixed, beta = FixedPrior(rows.columns, 1.0), np.zeros((1, 31))
    d = np.random.default_rng(seed).exponential(size=(1, 30)) ** 3 * 30
    shrink = ShrinkageByProducts(rows, fixed, beta, KEY)
    found = np.mean([shrink(np.tile(np.append(d, 0.0), (50, 1)), sweep).mean(axis=0) for sweep in range(20)], axis=0)
    H = rows.information(beta) + np.diag(fixed.diagonal + np.append(d[0], 0.0))
    want = (d[0] + fixed.slab_precision) * np.linalg.inv(H).diagonal()[:30]
    np.testing.assert_allclose(found, want, rtol=0.12)


def test_a_log_likelihood_with_weights_and_an_offset_moves_as_it_should(seed):
    """Weights of a row count it so often: chains with one row twice are those with its weight 2."""
    X, y = rare(seed, 120, 20)
    y, offset = y.astype(np.uint8), np.linspace(-1, 1, 120)
    given = X, y, offset, np.r_[2.0, np.ones(119)]
    repeated = sp.csr_array(sp.vstack([X, X[:1]])), np.r_[y, y[:1]], np.r_[offset, offset[:1]], None
    moved = []
    for data, labels, more, weight in (given, repeated):
        rows = Rows(data, labels, True, sparse_cpu, ALONE, weight=weight, offset=more)
        chains = laws.chains_of(rows, "diagonal", 0)
        chains.moves.rates[:] = 1.0
        moved.append(chains.moves.move(chains.state._replace(sweep=1, beta=0.1 + 0 * chains.state.beta), KEY)[0])
    assert (moved[0] != 0.1).any()
    assert np.isclose(*moved, rtol=1e-3).mean() > 0.9
