"""Line moves: their log-likelihoods, the law of one move, both texts alike, how often and how wide they are."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, KEY, along_lines, chains_of, grid_cdf, in_full
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe._backends import LINE_PURPOSE, line_moves
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse, variates
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import gibbs, hmc
from skhorseshoe._mcmc.adaptation_window import Window
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._utils.threads import open_threads

P_VALUE = 1e-4
NONE = np.empty(0)  # for no weights
NO_WIDTH = 1e-200  # of a slice that lets nothing move

# Log-likelihoods ------------------------------------------------------------------------------------------------------


def summed(t, weight=NONE):
    one, zero, y = np.ones((1, 1)), np.zeros((1, 1)), np.ones(len(t), np.uint8)
    return cpu.line(t[:, None], y, weight, one, zero, zero, np.array([0, len(t)]), ALONE)[0, 0]


@pytest.mark.parametrize("spread", [1.0, 30.0, 1e6])
def test_sum_of_log_cdf_equals_scipy(spread, seed):
    rng = np.random.default_rng(seed)
    for n in [*range(1, 70), *range(480, 550), 1000]:
        for t in (rng.uniform(-spread, spread, n), -rng.uniform(0, spread, n), np.geomspace(1e-6, spread, n)):
            for weight in (NONE, rng.exponential(size=n)):
                each = log_ndtr(t) * (weight if len(weight) else 1.0)
                rounding = 1e-15 * (weight.sum() if len(weight) else n)  # of a product of numbers near 1
                assert abs(summed(t, weight) - each.sum()) <= 1e-12 * abs(each.sum()) + rounding


def test_sum_of_log_cdf_is_right_in_the_far_tails():
    for t in (-1e6, -1e3, -38.0, -37.2):
        for n in (1, 16, 17, 1000):
            assert abs(summed(np.full(n, t)) / (n * log_ndtr(t)) - 1) < 1e-12
    assert summed(np.array([40.0, 1e3, 1e300])) == 0.0
    assert np.isfinite(summed(np.array([-1e140])))
    assert np.isnan(summed(np.array([np.nan, 1.0])))
    assert np.isnan(summed(np.array([40.0, 40.0, np.nan])))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64", "sparse", "float16 on disk"])
@pytest.mark.parametrize(("n", "p"), [(1, 1), (64, 5), (131, 33), (1030, 1), (7, 3000), (700, 2)])
def test_log_likelihoods_along_lines_equal_scipy(n, p, kind, weighted, seed, tmp_path):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)).astype(np.float64 if kind == "sparse" else kind.split()[0])
    y, each = rng.integers(0, 2, n).astype(np.uint8), rng.exponential(size=n) if weighted else np.ones(n)
    full, ops = X, cpu
    if kind == "sparse":
        full = np.where(rng.random(X.shape) < 0.3, X, 0.0)
        X, ops = sp.csr_array(full), sparse
    elif kind == "float16 on disk":
        X.tofile(tmp_path / "X")
        X = np.memmap(tmp_path / "X", np.float16, "r", shape=X.shape)
    coef, direction = rng.standard_normal((2, 3, p + 1)) / np.sqrt(p)
    steps = rng.standard_normal((3, 5))
    bounds = np.linspace(0, n, min(n, 3) + 1).astype(np.int64)
    with open_threads(2) as threads:
        got = ops.line(*ops.hold(X, y, each if weighted else NONE), coef, direction, steps, bounds, threads)
    want = along_lines(in_full(full, True), 2.0 * y - 1.0, each, coef, direction, steps)
    rounding = 1e-15 * each.sum()  # of a product of numbers near 1
    np.testing.assert_allclose(got, want, rtol=1e-11, atol=rounding)


# Fused calls and rows anywhere ----------------------------------------------------------------------------------------

COLUMNS = {
    "plain": {},
    "no intercept": {"fit_intercept": False},
    "unpenalised": {"unpenalized": [0, 2]},
    "standardised": {"standardize": True, "unpenalized": [1]},
    "all unpenalised": {"unpenalized": [0, 1, 2, 3]},
    "weights": {"weighted": True},
    "not near zero": {"shift": 1.0},
    "far from zero": {"shift": 1e5, "unpenalized": [2]},
    "far from zero, no intercept": {"shift": 1e5, "fit_intercept": False},
    "a constant column": {"constant": True},
}


def made(dtype=np.float64, fit_intercept=True, shift=0.0, constant=False, weighted=False, seed=0, **columns):
    rng, n = np.random.default_rng(seed), 150
    X = rng.standard_normal((n, 4)) * [1.0, 2.0, 0.3, 1.0] + shift
    X[:, 3] = 1.5 if constant else X[:, 3]
    y = (X[:, 0] - X[:, 0].mean() + rng.standard_normal(n) > 0).astype(np.uint8)
    if "unpenalized" in columns:
        columns["unpenalized"] = np.isin(np.arange(4), columns["unpenalized"])
    weight = rng.uniform(0.2, 3.0, n) if weighted else None
    return Rows(X.astype(dtype), y, fit_intercept, cpu, ALONE, weight=weight, **columns)


def some_state(rng, rows):
    n_chains, p, q = 20, rows.columns.n_shrunk, rows.shape[1] + rows.columns.fit_intercept
    beta = rng.standard_normal((n_chains, q)) * np.exp(rng.standard_normal((n_chains, q)))
    return beta, np.exp(2 * rng.standard_normal((n_chains, p))), np.exp(2 * rng.standard_normal(n_chains))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("how", COLUMNS)
def test_fused_line_moves_have_the_bits_of_moves_anywhere(how, dtype, seed):
    rng, rows = np.random.default_rng(seed), made(dtype, seed=seed, **COLUMNS[how])
    prior, moved = FixedPrior(rows.columns, 2.0, wide=0.5), 0  # so that it counts
    widths = line_moves.line_widths(rows.columns.n_shrunk, prior, rows.gram().diagonal())
    for sweep in range(15):
        lines = rows.lines(prior, widths, n_splits=4 * (sweep % 2))
        state = some_state(rng, rows)
        kept = [part.copy() for part in state]
        both = []
        for rows.takes_fused_calls in (True, False):
            both.append(cpu.move_along_lines(*state, rows, lines, 0.7, KEY, sweep))
        for fused, anywhere, was, before in zip(*both, state, kept, strict=True):
            np.testing.assert_array_equal(fused, anywhere)
            np.testing.assert_array_equal(was, before)  # it may be that of a sweep that is still needed
        moved += (fused != was).mean()
    assert moved / 15 > 0.3 or how == "all unpenalised"


# The law of one move --------------------------------------------------------------------------------------------------


def on_a_line(which, rng, n=6000):
    """Rows, lines that move nothing but ``which``, states whose place on the line has its law, that place as a function
    of the state, and its law on a grid."""
    unpenalized = [False, True] if which == "fixed" else [False]
    X = rng.standard_normal((5, len(unpenalized))) + 0.4
    y = np.array([1, 0, 1, 1, 0], np.uint8)
    rows = Rows(X, y, False, cpu, ALONE, unpenalized=np.array(unpenalized))
    prior, grid = FixedPrior(rows.columns, 2.0, wide=1.5), np.linspace(-40, 40, 20_001)  # in which the law ends
    widths = {"global": [8, NO_WIDTH], "local": [NO_WIDTH, 8], "fixed": [NO_WIDTH, NO_WIDTH, 6]}[which]
    beta, lam, tau = np.full((len(grid), len(unpenalized)), 0.8), 1.5, 0.6
    if which == "fixed":
        beta[:, 1] = grid
        log_prior = 0.0
    else:
        beta[:, 0] *= np.exp(grid)
        log_prior = grid - np.log1p(np.exp(2 * grid) * (tau / 0.7 if which == "global" else lam) ** 2)
    signs = 2.0 * y - 1
    log_density = log_ndtr(signs * (beta @ X.T)).sum(axis=1) + log_prior
    log_density -= np.array([prior.energy(row) for row in beta])
    cdf = grid_cdf(grid, log_density)
    place = np.interp(rng.uniform(size=n), cdf(grid), grid)
    grown = np.exp(place)
    beta = np.column_stack([np.full(n, 0.8), place]) if which == "fixed" else 0.8 * grown[:, None]
    lambdas = np.full((n, 1), lam) * (grown[:, None] if which == "local" else 1.0)
    taus = np.full(n, tau) * (grown if which == "global" else 1.0)
    lines = rows.lines(prior, np.array(widths, float))
    found = (lambda beta: beta[:, 1]) if which == "fixed" else (lambda beta: np.log(beta[:, 0] / 0.8))
    return rows, lines, (beta, lambdas**-2, taus**-2), found, cdf


@pytest.mark.parametrize("takes_fused_calls", [True, False])
@pytest.mark.parametrize("which", ["global", "local", "fixed"])
def test_one_move_leaves_its_law_as_it_is(which, takes_fused_calls, seed):
    rows, lines, state, place, cdf = on_a_line(which, np.random.default_rng(seed))
    rows.takes_fused_calls = takes_fused_calls
    parts = []
    for first in range(0, 6000, 250):  # a random number has 8 bits for its chain
        some = (part[first : first + 250] for part in state)
        parts.append(cpu.move_along_lines(*some, rows, lines, 0.7, KEY, first))
    beta, lambda_sq_inv, tau_sq_inv = (np.concatenate(part) for part in zip(*parts, strict=True))
    was, now = place(state[0]), place(beta)
    assert (abs(now - was) > 0.01).mean() > 0.5
    assert stats.kstest(now, cdf).pvalue > P_VALUE
    held = beta[:, 0] ** 2 * lambda_sq_inv[:, 0] * tau_sq_inv  # squared, beta_j / (lambda_j tau)
    np.testing.assert_allclose(held, (0.8 / (1.5 * 0.6)) ** 2, rtol=1e-9)


def test_a_move_without_a_proposal_in_the_slice_stays():
    steps = np.arange(17.0) * np.ones((3, 1))
    value = np.full((3, 17), -1e9)
    value[:, 0] = 0.0
    value[1, [5, 9]] = 0.0
    value[2] = np.nan
    np.testing.assert_array_equal(cpu.first_inside(value, steps, np.full(3, 0.5)), [0, 5, 0])


# How often and how wide -----------------------------------------------------------------------------------------------


@pytest.fixture
def given(monkeypatch):
    """The lines that each sweep was given, by its number; their widths are copies."""
    lines = {}
    for module in (hmc, gibbs):

        def recorded(state, *args, of=module.sweep, **rest):
            moves = rest.get("lines")
            lines[state.sweep] = moves and moves._replace(widths=moves.widths.copy())
            return of(state, *args, **rest)

        monkeypatch.setattr(module, "sweep", recorded)
    return lines


def had_lines(given, first=0):
    return {t for t, lines in given.items() if lines is not None and t >= first}


def separated_problem(rng, n=40):
    X = rng.standard_normal((n, 3))
    return X, (X[:, 0] > 0).astype(int)


def test_chains_that_a_reference_serves_move_seldom(given, short_fit, weak_problem):
    model = short_fit(*weak_problem, n_iter=60, burn_in=300, sampler="hmc")
    assert model.tuning_["n_steps"] == 1
    assert had_lines(given, 300) == set(range(304, 360, 8))
    assert had_lines(given) >= set(range(30, 75))  # of the first window; before it are sweeps of another kind


def test_chains_whose_matrices_cost_more_move_in_every_sweep(given, short_fit, seed):
    X = np.random.default_rng(seed).standard_normal((160, 40))  # 41^2 numbers to a matrix
    short_fit(X, np.arange(160) % 2, n_iter=60, burn_in=300, sampler="hmc")
    assert had_lines(given, 300) == set(range(300, 360))


def test_chains_on_separated_rows_have_moves_in_every_sweep(given, short_fit, seed):
    """As wide as burn-in has left them."""
    short_fit(*separated_problem(np.random.default_rng(seed)), n_iter=60, burn_in=300, sampler="hmc")
    assert had_lines(given) == set(range(30, 360))
    assert len({lines.widths.tobytes() for lines in given.values() if lines is not None}) >= 3
    assert len({given[t].widths.tobytes() for t in range(300, 360)}) == 1


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_many_rows_have_moves_in_one_of_eight_sweeps(sampler, given, short_fit, seed, sizes):
    sizes(few_rows=30)
    short_fit(*separated_problem(np.random.default_rng(seed)), n_iter=40, burn_in=60, sampler=sampler)
    assert had_lines(given) == set(range(8 if sampler == "hmc" else 0, 100, 8))
    assert {lines.n_columns for lines in given.values() if lines is not None} == {1}


def test_plain_data_augmentation_has_none(given, short_fit, weak_problem):
    short_fit(*weak_problem, sampler="gibbs")
    assert not had_lines(given)


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
@pytest.mark.parametrize("few_rows", [2**15, 30])
@pytest.mark.parametrize("data", ["weak", "separated"])
def test_chains_that_are_taken_up_have_the_same_moves(sampler, few_rows, data, weak_problem, seed, sizes):
    sizes(few_rows=few_rows)
    X, y = weak_problem if data == "weak" else separated_problem(np.random.default_rng(seed))
    rows = Rows(X, y.astype(np.uint8), True, cpu, ALONE, unpenalized=np.array([False, False, True]))
    whole = chains_of(rows, sampler, 60)
    chains, cuts = chains_of(rows, sampler, 60), {3, 7, 15, 16, 31, 45, 60, 65}
    for t in range(1, 75):
        whole.advance()
        chains.advance()
        if t in cuts:
            lines, chains = getattr(chains, "lines", None), chains_of(rows, sampler, 60, chains.arrays())
            assert sampler != "hmc" or chains.line_interval == whole.line_interval
            if lines is not None:
                np.testing.assert_array_equal(chains.lines.widths, lines.widths)
        for one, other in zip(chains.state, whole.state, strict=True):
            np.testing.assert_array_equal(one, other)


def test_spread_is_that_of_what_a_window_has_seen(seed):
    rng = np.random.default_rng(seed)
    window, seen = Window(64, hmc.Tuning(1.0, 1, 2, 1.0), cpu), []
    for t in range(64):
        beta = 5.0 + np.exp(rng.standard_normal((2, 1)) / 3) * np.array([3.0, -2.0, 1.0])
        window.add(hmc.HmcState(beta, None, None, None, beta, 0, np.ones(2), None))
        seen += [beta] * (t >= 32)
    information = np.diag([1.0, 4.0, 9.0])
    points, seen = np.concatenate(window.points), np.concatenate(seen)
    sizes = np.log(np.sqrt((points[:, :2] ** 2) @ [1.0, 4.0]))
    want = 20 * np.append(sizes.std(), seen[:, :2].std(axis=0) / abs(seen[:, :2].mean(axis=0)))
    np.testing.assert_allclose(window.spread(information, 2), want, rtol=1e-9)


def test_widths_are_neither_too_large_nor_none():
    rows = made(unpenalized=[2])
    prior = FixedPrior(rows.columns, 2.0)
    widths = line_moves.line_widths(3, prior, np.array([1.0, 1.0, 1.0, 99.0, 0.0]), np.array([50.0, 0.0, 0.5, np.inf]))
    np.testing.assert_array_equal(widths[:4], [line_moves.LOG_WIDTH, 1e-3, 0.5, line_moves.LOG_WIDTH])
    np.testing.assert_allclose(widths[4], 8 / np.sqrt(99 + prior.anchor[3] ** 2 + prior.diagonal[3]))
    np.testing.assert_allclose(widths[5], 8 / prior.anchor[4])


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_random_numbers_of_a_sweep_have_different_purposes(sampler, weak_problem, monkeypatch):
    drawn = []

    def told(fill):
        def filled(*args):
            drawn.append(args[-3:-1])  # purpose and sweep
            fill(*args)

        return filled

    for name in ("_fill_normal", "_fill_uniform", "_fill_exponential", "_fill_gamma"):
        monkeypatch.setattr(variates, name, told(getattr(variates, name)))
    X, y = weak_problem
    chains = chains_of(Rows(X, y.astype(np.uint8), True, cpu, ALONE), sampler, 20)
    for _ in range(40):
        chains.advance()
    assert len(set(drawn)) == len(drawn)
    assert sum(purpose == LINE_PURPOSE for purpose, _ in drawn) >= 5
