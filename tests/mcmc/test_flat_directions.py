"""Moves along directions in which the likelihood is flat: their law, the predictors, and what they are for."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from laws import ALONE, KEY, always_accepted, mostly_slow, planted, repeated
from scipy.integrate import quad
from scipy.stats import ks_2samp
from whole_runs import check_uniform, ranks_of_coefficients

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_cpu
from skhorseshoe._data.collinear_sets import CollinearSets, collinear_sets
from skhorseshoe._data.indicator_sets import IndicatorSet
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import flat_directions
from skhorseshoe._mcmc.class_contrasts import contrasted, side_by_side
from skhorseshoe._mcmc.flat_directions import FlatDirections, Round
from skhorseshoe._mcmc.hmc import HmcState
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import DIAGONAL, PRIOR_COORDINATES, Problem
from skhorseshoe._model.horseshoe import log_marginal
from skhorseshoe._model.multinomial_probit import MultinomialProbit
from skhorseshoe.diagnostics import ess_bulk, mcse_mean, rhat

# The law --------------------------------------------------------------------------------------------------------------

N_CHAINS, N_BLOCKS, N_COLUMNS = 500, 8, 5  # more chains would have the same random numbers
SETS = [
    IndicatorSet(np.array([3, 0]), np.zeros(2), np.array([1.0, 1.0]), np.array([0.3, 0.7])),
    IndicatorSet(np.array([1, 2, 4]), np.array([0.0, 1.0, 2.0]), np.array([0.2, -3.0, 40.0]), np.zeros(3)),
    IndicatorSet(np.array([0, 1]), np.zeros(2), np.array([1.0, -1.0]), np.zeros(2)),  # with columns of both
]


def problem_of(d, slab, pull=0.0, ops=cpu):
    """A ``Problem`` of rows that tell the first coefficient with this precision, or nothing."""
    one = SimpleNamespace(place=np.array([4, 0, 3, 1, 2]), unit=np.array([1.0, 2.0, 1.0, 0.5, 1.0]), n_shrunk=5)
    one.centre = np.zeros(N_COLUMNS)
    columns = SimpleNamespace(of_one=one, n_contrasts=d)
    told = lambda beta: (-pull * beta[:, 0] ** 2 / 2, np.zeros(beta.shape))  # noqa: E731
    rows = SimpleNamespace(ops=ops, n=20_000, columns=columns, threads=ALONE, score=told)
    fixed = SimpleNamespace(diagonal=np.r_[np.full(d * N_COLUMNS, slab**-2.0), np.zeros(d)])
    return Problem(rows, fixed, 1.0, KEY)


def of_prior(rng, tau, d, slab):
    """lambda_j (m, columns) and beta_j (m, d (columns + 1)) given tau (m,), with a slab."""
    log_lambda = np.linspace(-25, 45, 7001)
    square = np.exp(2 * log_lambda)
    lam = np.empty((len(tau), N_COLUMNS))
    for one, own in zip(lam, tau, strict=True):
        below = np.cumsum(np.exp(log_lambda) / (1 + square) * (1 + square * (own / slab) ** 2) ** (-d / 2))
        one[:] = np.exp(np.interp(rng.random(N_COLUMNS) * below[-1], below, log_lambda))
    sd = 1 / np.sqrt((tau[:, None] * lam) ** -2 + slab**-2.0)
    beta = sd[..., None] * rng.standard_normal((*lam.shape, d))
    return lam, np.column_stack([beta.reshape(len(tau), -1), rng.standard_normal((len(tau), d))])


def of_posterior(rng, tau, d, slab, pull):
    """The same, where rows tell the first coefficient with a precision ``pull``: by rejection."""
    lam, beta = of_prior(rng, tau, d, slab)
    again = rng.random(len(tau)) > np.exp(-pull * beta[:, 0] ** 2 / 2)
    if again.any():
        lam[again], beta[again] = of_posterior(rng, tau[again], d, slab, pull)
    return lam, beta


def least_p(rng, d, slab, tau, directions=FlatDirections, n_sweeps=12, pull=0.0, ops=cpu, near=False):
    """The least p-value of tests that moves leave the law as it is. tau : its two ends. pull : as in ``problem_of``.
    near : whether sets come one at a time."""
    tau, problem = np.exp(rng.uniform(*np.log(tau), N_BLOCKS * N_CHAINS)), problem_of(d, slab, pull, ops)
    problem = problem._replace(key=rng.integers(2**32, size=2, dtype=np.uint32))
    sets = CollinearSets(near=SETS) if near else CollinearSets(SETS[:1], SETS[1:])
    flat, start, zero = directions(sets, problem), of_posterior(rng, tau, d, slab, pull), np.zeros(N_CHAINS)
    moved, shares = [], []
    for k in range(N_BLOCKS):
        lam, beta, own = (values[k * N_CHAINS : (k + 1) * N_CHAINS] for values in (*start, tau))
        scales, at = (np.repeat(lam**-2, d, axis=1), own**-2), problem.rows.score(beta)
        state = HmcState(beta, *scales, *at, k * n_sweeps, zero, zero)
        for _ in range(n_sweeps):
            before = state.beta
            state = flat.sweep(state, lambda state: state._replace(sweep=state.sweep + 1), problem)
            shares.append((state.beta != before)[:, 0].mean())
        moved.append((state.lambda_sq_inv[:, ::d] ** -0.5, state.beta))
    assert np.mean(shares) > 0.002  # where tau is large few draws are within the slab
    moved = [np.concatenate(parts) for parts in zip(*moved, strict=True)]
    laws = zip(*(statistics(law, d, tau) for law in (moved, of_posterior(rng, tau, d, slab, pull))), strict=True)
    return min(ks_2samp(*of_law).pvalue for of_law in laws)


def statistics(law, d, tau):
    lam, beta = law
    vectors = beta[:, : d * N_COLUMNS].reshape(len(beta), N_COLUMNS, d) / tau[:, None, None]
    length = np.linalg.norm(vectors, axis=2)
    each = length, vectors[:, :, 0], lam, lam / length
    return [*np.concatenate(each, axis=1).T, length[:, [1, 4]].min(axis=1), length[:, [0, 2, 3]].min(axis=1)]


TAUS = {"small": (1e-6, 1e-6), "of the slab": (0.3, 3.0), "large": (50.0, 1e3), "any": (1e-8, 1e4)}
CASES = [(1, "of the slab"), (2, "any"), (3, "large")]
CASES += [
    pytest.param(*case, marks=pytest.mark.slow) for case in [(1, "any"), (1, "small"), (1, "large"), (2, "of the slab")]
]


@pytest.mark.parametrize(("d", "tau"), CASES)
def test_moves_leave_the_law_as_it_is(d, tau, seed):
    assert least_p(np.random.default_rng(seed), d, 2.0, TAUS[tau]) > 1e-5


class NoChoice(Round):
    """Without the density of the proposals."""

    def __init__(self, *args):
        super().__init__(*args)
        self.log_units = np.full(len(self.units), -1e6)
        self.log_units[self.firsts] = 0.0


class NoUnits(Round):
    """Without the units of the shifts in the density of the proposals."""

    def __init__(self, *args):
        super().__init__(*args)
        self.log_units = np.zeros(len(self.units))


class NoSlab(Round):
    def __init__(self, *args):
        super().__init__(*args)
        self.slab = 0.0


class NoScales(FlatDirections):
    """Without draws of lambda."""

    def sweep(self, state, law, problem):
        return super().sweep(state, law, problem)._replace(lambda_sq_inv=state.lambda_sq_inv)


@pytest.mark.parametrize("error", mostly_slow([NoSlab, NoChoice, NoUnits, NoScales]))
def test_errors_are_seen(error, seed, monkeypatch):
    of_rounds = issubclass(error, Round)
    if of_rounds:
        monkeypatch.setattr(flat_directions, "Round", error)
    directions = FlatDirections if of_rounds else error
    assert least_p(np.random.default_rng(seed), 1, 2.0, TAUS["of the slab"], directions) < 1e-6


UNTESTED = planted(metropolis=always_accepted)


@pytest.mark.parametrize(
    ("ops", "near"),
    [(cpu, False), (cpu, True), (UNTESTED, False), pytest.param(UNTESTED, True, marks=pytest.mark.slow)],
    ids=["together", "one at a time", "together without the test", "one at a time without the test"],
)
def test_rows_that_notice_a_shift_are_asked(ops, near, seed):
    how = {"pull": 4.0, "ops": ops, "near": near, "n_sweeps": 48 if near else 12}
    p = least_p(np.random.default_rng(seed), 1, 2.0, TAUS["of the slab"], **how)
    assert p > 1e-5 if ops is cpu else p < 1e-6


@pytest.mark.parametrize("d", [1, 2, 3, 6])
def test_the_density_is_that_of_quadrature(d):
    """In units of that at 1."""

    def density(square):
        top = np.log(square) / 2  # of the integrand about there, or below 1
        law = lambda x: np.exp(-d * (x - top) - square * np.exp(-2 * x) / 2) / np.cosh(x)  # noqa: E731
        places = sorted({top - 4, top, top + 4, 0.0, 20.0, max(top, 20.0) + 40})
        parts = [quad(law, *ends, epsabs=0, epsrel=1e-11, limit=500)[0] for ends in pairwise(places)]
        return np.log(sum(parts)) - d * top

    squares = np.array([1e-60, 1e-12, 1e-4, 0.3, 2.0, 50.0, 1e4, 1e30])
    found, want = log_marginal(squares, d), [density(square) for square in squares]
    np.testing.assert_allclose(found - found[4], np.array(want) - want[4], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("d", [2, 5])
def test_the_density_beyond_its_table_is_a_power(d):
    far, near = log_marginal(np.array([1e60, 1e62]), d), log_marginal(np.array([1e-62, 1e-60, 0.0]), d)
    np.testing.assert_allclose(np.diff(far), -(d + 1) / 2 * np.log(100), rtol=1e-9)
    np.testing.assert_allclose(near[0] - near[1], (d - 1) / 2 * np.log(100), rtol=1e-9)
    assert np.isfinite(near).all()


# The rows -------------------------------------------------------------------------------------------------------------


def table(seed, n=60):
    """A category and one of which it has parts, levels of both apart, a column and its copy in another unit, and two of
    noise."""
    rng = np.random.default_rng(seed)
    four, number = rng.integers(0, 4, n), rng.standard_normal(n) + 30
    two, levels = four < 2, np.eye(4)[four]
    X = np.column_stack([levels[:, :2], two, number, ~two, levels[:, 2:], 5 - 3 * number, rng.standard_normal((n, 2))])
    return X, (rng.random(n) < 0.5).astype(np.uint8)


WAYS = {
    "as it is": {},
    "standardised": {"standardize": True},
    "in other units": {"prior_scale": np.array([1.0, 2.0, 0.1, 1.0, 3.0, 1.0, 0.5, 4.0, 1.0, np.inf])},
    "weighted": {"weight": np.linspace(0.2, 3.0, 60)},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["array", "sparse", "three classes"])
def test_no_predictor_moves(way, kind, seed):
    """Those of all sets are moved, in two rounds, and their rows stay."""
    (X, y), rng = table(seed), np.random.default_rng(seed)
    given = {"unpenalized": np.arange(10) == 9, **WAYS[way]}
    likelihood = {"likelihood": MultinomialProbit(3)} if kind == "three classes" else {}
    y = np.arange(60, dtype=np.uint8) % 3 if likelihood else y
    X, ops = (sp.csr_array(X), sparse_cpu) if kind == "sparse" else (X, cpu)
    rows = Rows(X, y, True, ops, ALONE, **likelihood, **given)
    sets = collinear_sets(rows, 60)
    found = [len(levels.columns) for levels in (*sets.levels, *sets.dependent)]
    assert found == [2, 4, 3, 3, 2]
    problem = Problem(rows, FixedPrior(rows.columns, 2.0), 1.0, KEY)
    problem = contrasted(problem) if likelihood else problem
    flat = FlatDirections(sets, problem).flat
    assert len(flat.rounds) == 2
    moved = beta = rng.normal(0, 0.1, (50, flat.d * 11))

    def predictors(beta):
        return rows.predictors(side_by_side(beta, flat.d))

    for t in range(30):
        moved = flat.shifted(moved, np.full(50, 0.3**-2), ops, KEY, t)
    places = np.concatenate([each.places.ravel() for each in flat.rounds])
    is_moved, of_sets = (moved != beta).any(axis=0), np.isin(np.arange(beta.shape[1]), places)
    assert is_moved[: -flat.d][of_sets[: -flat.d]].all()
    assert not is_moved[: -flat.d][~of_sets[: -flat.d]].any()
    assert abs(predictors(moved) - predictors(beta)).max() < 1e-7 * abs(moved).max()


def test_a_set_with_a_column_that_is_not_shrunk_is_left_out(seed):
    X, y = table(seed)
    rows = Rows(X, y, True, cpu, ALONE, unpenalized=np.arange(10) == 2)
    sets = collinear_sets(rows, 60)
    problem = Problem(rows, FixedPrior(rows.columns, 2.0), 1.0, KEY)
    assert [len(levels.columns) for levels in (*sets.levels, *sets.dependent)] == [2, 4, 2]
    assert len(FlatDirections(sets, problem).flat) == 2


# Whole fits -----------------------------------------------------------------------------------------------------------


def clinic(seed, n=600, p=40):
    """A frame with two sexes, a column each, and columns of noise; and the score of its rows."""
    rng = np.random.default_rng(seed)
    female, noise = rng.random(n) < 0.4, rng.standard_normal((n, p))
    frame = pd.DataFrame(noise, columns=[f"x{j}" for j in range(p)])
    return frame.assign(f=female * 1.0, m=~female * 1.0), 1.2 * female - 0.6 + noise[:, 0] * 0.5, rng


def fitted(kind, seed):
    frame, eta, rng = clinic(seed, *((60, 90) if kind == "more columns than rows" else ()))
    how, given = {"n_iter": 600, "burn_in": 300, "random_state": seed, "n_jobs": 1}, {}
    u = eta + rng.standard_normal(len(eta))
    y = (u > 0).astype(int)
    if kind == "grades in order":
        y, how = np.digitize(u, [-0.5, 0.7]), how | {"ordered": True}
    if kind == "groups":
        given = {"groups": rng.integers(0, 15, len(y))}
    if kind == "sparse":
        rare = sp.random_array((len(y), 60), density=0.02, rng=rng)
        frame = sp.csr_array(sp.hstack([rare, frame[["f", "m"]]]))
    if kind == "more columns than rows":
        how |= {"slab_scale": "per_contrast"}
    return HorseshoeProbitClassifier(**how).fit(frame, y, **given)


@pytest.mark.parametrize(
    "kind", mostly_slow(["plain", "grades in order", "groups", "sparse", "more columns than rows"])
)
def test_two_levels_are_alike(kind, seed):
    """Of two levels the coefficients have the same law but for the sign, and chains pass from one mode to the other."""
    f, m = np.moveaxis(fitted(kind, seed).coef_draws_[..., -2:], 2, 0)
    both, sizes = np.tanh(3 * (f + m)), np.abs([f, m]).mean(axis=(1, 2))
    assert rhat(both) < 1.05
    assert ess_bulk(both) > 250
    assert abs(both.mean()) < 4.5 * mcse_mean(both)
    assert 0.7 < sizes[0] / sizes[1] < 1.4


@pytest.mark.parametrize("kind", ["array", "sparse"])
def test_a_column_and_what_is_nearly_its_copy_share_an_effect(kind, seed):
    """Chains pass from the one to the other, and the rows tell the sum."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((3000, 10)) if kind == "array" else sp.random(3000, 100, 0.05, rng=rng).toarray()
    if kind == "array":
        X[:, 1] = X[:, 0] + 0.005 * rng.standard_normal(3000)
    else:  # the levels of two categories, say, that differ in three rows
        X[:, 0] = X[:, 1] = rng.random(3000) < 0.2
        X[:3, 1] = 1 - X[:3, 0]
    y = 0.8 * X[:, 0] + rng.standard_normal(3000) > 0
    X = X if kind == "array" else sp.csr_array(X)
    model = HorseshoeProbitClassifier(n_iter=600, burn_in=300, random_state=seed, n_jobs=1, slab_scale=2.0).fit(X, y)
    both = model.coef_draws_[..., :2]
    assert rhat(both).max() < 1.05
    assert ess_bulk(both).min() > 250
    assert ess_bulk(both.sum(axis=2)) > 1000


# Simulation-based calibration (Talts et al. 2018) ---------------------------------------------------------------------


def ranks_of(seed, kind, n, blur=0.0):
    """Where in (0, 1) the truth is among draws: of two levels, three within them, a number and its copy, and others.
    blur : of the copy."""
    rng = np.random.default_rng(seed)
    two, number = np.arange(n) % 2, rng.standard_normal(n) + 1
    three = np.where(two, 2, np.arange(n) // 2 % 2)  # two levels of it are parts of one
    copy = -2 * number + blur * rng.standard_normal(n)
    found = [2, 2, 0] if n < 7 else [2, 2, 1] if blur else [2, 3, 0]

    def rows_of(X, y):
        rows = Rows(X, y, True, cpu, ALONE)
        assert [len(sets) for sets in collinear_sets(rows, n)] == found
        return rows

    X = np.column_stack([np.eye(2)[two], np.eye(3)[three], number, copy])
    return ranks_of_coefficients(rng, X, rows_of, kind, 0.3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "n", "blur"), [("hmc", 14, 0.0), ("hmc", 14, 0.1), (DIAGONAL, 14, 0.1), (PRIOR_COORDINATES, 6, 0.0)]
)
def test_ranks_are_uniform(kind, n, blur):
    names = "intercept", *range(7), "tau", "predictor"
    check_uniform([ranks_of(seed, kind, n, blur) for seed in range(repeated(40, 200))], names)
