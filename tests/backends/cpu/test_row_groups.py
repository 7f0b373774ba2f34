"""Groups of rows: sums, log-likelihoods and slice steps of the kernels, and rows as a sampler asks them."""

import numpy as np
import pytest
from group_laws import check_density_and_score, let_follow
from laws import ALONE, KEY
from scipy.sparse import csr_array
from scipy.special import log_ndtr
from whole_runs import ended

from skhorseshoe._backends import device
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.row_groups import Groups
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.group_effects import GroupEffects
from skhorseshoe._mcmc.group_map import Followed
from skhorseshoe._mcmc.known_predictors import Given
from skhorseshoe._mcmc.run import PRIOR_COORDINATES, Problem
from skhorseshoe._utils.threads import open_threads

N, P, N_GROUPS, N_CHAINS = 700, 3, 9, 4
DTYPES = np.float32, np.float64


def make_rows(seed, dtype=np.float64, sparse=False, **more):
    """Rows of groups of 1 to some hundred rows, in any order, with weights and offsets; and what they are."""
    rng = np.random.default_rng(seed)
    codes = np.append(np.arange(N_GROUPS), rng.choice(N_GROUPS, N - N_GROUPS, p=rng.dirichlet(np.ones(N_GROUPS))))
    codes = rng.permutation(codes).astype(np.int32)
    X = rng.standard_normal((N, P)).astype(dtype) + codes[:, None].astype(dtype) / 5
    y, offset, weight = rng.integers(0, 2, N).astype(np.uint8), rng.standard_normal(N), rng.uniform(0.5, 2, N)
    given = csr_array(X) if sparse else X
    ops = device.resolve("cpu", X.size, sparse).ops
    how = {"weight": weight, "offset": offset, "groups": Groups(codes, N_GROUPS, 1.0), **more}
    return Rows(given, y, True, ops, ALONE, **how), (X.astype(float), y, codes, offset, how["weight"])


@pytest.mark.parametrize(("weighted", "sloped"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_log_likelihoods_of_groups_are_those_of_their_rows(dtype, weighted, sloped, seed):
    rows, (X, y, codes, offset, _) = make_rows(seed, dtype, weight=None if not weighted else np.full(N, 1.5))
    rng = np.random.default_rng(seed)
    kept = rows.dtype
    how = rows.y, rows.weight, offset, codes, N_GROUPS, kept, rows.bounds, ALONE
    slope = rng.standard_normal(N) if sloped else np.ones(N)
    groups = cpu.RowGroups(*how, slope=slope if sloped else None)
    values, effects = rng.standard_normal((N, N_CHAINS)).astype(kept), rng.standard_normal((N_GROUPS, N_CHAINS))
    member = np.eye(N_GROUPS)[codes]
    close = {"rtol": 1e-10, "atol": 1e-9}
    np.testing.assert_allclose(groups.sums(values), (slope[:, None] * member).T @ values.astype(float), **close)
    factor, asked = rng.uniform(0.5, 2, N_CHAINS), np.array([True, False, True, True])
    eta = factor * values.astype(float) + slope[:, None] * effects[codes] + offset[:, None]
    want = (log_ndtr(np.where(y[:, None] == 1, eta, -eta)) * (1.5 if weighted else 1.0)).sum(axis=0)
    np.testing.assert_allclose(
        groups.logliks(Given(values, factor), effects, asked), np.where(asked, want, 0.0), **close
    )
    w, bordered = rng.standard_normal(N), np.column_stack([X, np.ones(N)])
    for kind in (rows.held[0], csr_array(rows.held[0])):
        np.testing.assert_allclose(
            cpu.sums_by_group(kind, codes, N_GROUPS, w), member.T @ (w[:, None] * bordered), **close
        )


@pytest.mark.parametrize(("slope", "mean"), [((1.0, 1.0, 1.0), 0.0), ((0.5, -2.0, 1.0), 0.8)])
def test_slice_steps_leave_the_law_of_an_effect_as_it_is(slope, mean):
    """Of many groups that are alike: draws from the law by a grid, and after ten steps they have it still."""
    n_groups, sizes = 4000, 3
    rng = np.random.default_rng(1)
    eta, y, scale = np.array([0.4, -1.0, 1.5]), np.array([1, 1, 0], np.uint8), 1.3
    grid = np.linspace(-8, 8, 4001)
    log = -((grid - mean) ** 2) / (2 * scale**2) + sum(
        log_ndtr((2.0 * one - 1) * (at + z * grid)) for at, one, z in zip(eta, y, slope, strict=True)
    )
    share = np.cumsum(np.exp(log - log.max()))
    share /= share[-1]
    codes = np.repeat(np.arange(n_groups), sizes).astype(np.int32)
    how = np.tile(y, n_groups), np.empty(0), None, codes, n_groups, np.dtype(float), np.array([0, len(codes)]), ALONE
    groups, predictors = cpu.RowGroups(*how, slope=np.tile(slope, n_groups)), np.tile(eta, n_groups)[:, None]
    precision, own = np.array([scale**-2.0]), None
    if mean:
        precision, own = np.full((n_groups, 1), scale**-2.0), np.full((n_groups, 1), mean)
    for start in (np.interp(rng.uniform(size=(n_groups, 1)), share, grid), np.zeros((n_groups, 1))):
        effects = start.copy()
        for sweep in range(25):
            given = Given(predictors, np.ones(1))
            groups.move_effects(effects, given, precision, np.ones(n_groups), sweep, KEY, own)
        places = np.sort(np.interp(effects[:, 0], grid, share))
        assert abs(places - (np.arange(n_groups) + 0.5) / n_groups).max() < 1.95 / np.sqrt(n_groups)
        assert (effects != start).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_what_a_sampler_is_told_is_a_density_with_its_gradient_along_the_map(sparse, seed):
    rows, (X, y, codes, offset, weight) = make_rows(seed, sparse=sparse)
    grouped = GroupEffects(Problem(rows, None, 1.0, KEY), N_CHAINS)
    rng = np.random.default_rng(seed)
    beta = 0.3 * rng.standard_normal((N_CHAINS, P + 1))
    H = let_follow(grouped, beta)
    np.testing.assert_allclose(grouped.at(beta), grouped.effects, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(H, H.T, rtol=1e-12)

    def density(at):
        effects, coef = grouped.at(at), rows.columns.of_X(at)
        eta = X @ coef[:, :P].T + coef[:, P] + offset[:, None] + effects[codes]
        loglik = (weight[:, None] * log_ndtr(np.where(y[:, None] == 1, eta, -eta))).sum(axis=0)
        return loglik - (effects**2).sum(axis=0) / (2 * grouped.scale**2)

    there = beta + 0.1 * rng.standard_normal(beta.shape)
    direction = check_density_and_score(grouped.rows, density, there, rng, rtol=2e-3, atol=0.2)
    steps = np.array([[0.0, 0.5, -1.0]] * N_CHAINS)
    want = np.stack([density(there + k * direction) for k in steps[0]], axis=1)
    np.testing.assert_allclose(grouped.rows.line(there, direction, steps), want, rtol=1e-6)
    known, coef = grouped.predictors(there), rows.columns.of_X(there)
    np.testing.assert_allclose(known.factor * known.values, X @ coef[:, :P].T + coef[:, P])


@pytest.mark.parametrize("how", ["fused", "in steps", "sparse"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_sweep_begins_as_if_everything_was_computed_anew(dtype, how, seed):
    """With the predictors of the last pass, of a trajectory that some chains accepted, and beta grown since; or by rows
    along the map, which steps know to 24 digits."""
    rows, _ = make_rows(seed, dtype, how == "sparse")
    rows.takes_fused_calls &= how == "fused"
    grouped, rng = GroupEffects(Problem(rows, None, 1.0, KEY), N_CHAINS), np.random.default_rng(seed)
    beta = 0.3 * rng.standard_normal((N_CHAINS, P + 1))
    grouped.begin_sweep(beta)
    grouped.follows = True
    grouped.rows.information(beta)
    grouped.set_reference(beta.mean(axis=0))
    for _ in range(2):
        grouped.begin_sweep(beta)
        there = beta + 0.1 * rng.standard_normal(beta.shape)
        grouped.rows.score(there)
        there[1:3] = beta[1:3]
        grouped.predictors(there)
        c = rng.uniform(0.8, 1.2, N_CHAINS)
        beta, grouped.effects = c[:, None] * there, grouped.effects + rng.standard_normal(grouped.effects.shape)
        grouped.known.grow(c, beta)
        found, score = grouped.begin_sweep(beta), grouped.reference_score
        close = {"rtol": 1e-9, "atol": 1e-8} if dtype == np.float64 else {"rtol": 1e-4, "atol": 1e-3}
        close = {"rtol": 1e-5, "atol": 1e-4} if how == "fused" and dtype == np.float64 else close
        for one, other in zip(found, grouped.rows.score(beta), strict=True):
            np.testing.assert_allclose(one, other, **close)
        points = np.tile(grouped.point, (N_CHAINS, 1))
        np.testing.assert_allclose(score, grouped.rows.score(points)[1], **close)


FACTORS = "one factor", "two factors", "slopes"


def run_with_maps(kind, factors, seed):
    """A run at its end, with one factor or two, of which the first may have slopes."""
    codes, all_rows = make_rows(seed)[1][2], np.arange(N, dtype=np.int32)
    groups = Groups(codes, N_GROUPS, 1.0)
    if factors == "two factors":
        levels = np.stack([np.arange(N_GROUPS), np.arange(N_GROUPS) % 2], axis=1).astype(np.int32)
        groups = Groups(codes, N_GROUPS, (1.0, 1.0), levels, ("first", "second"))
    if factors == "slopes":
        levels, names = np.stack([codes, codes, codes % 2], axis=1), ("first", "first:x", "second")
        groups = Groups(all_rows, N, (1.0, 1.0, 1.0), levels, names, (None, 1, None))
    rows, _ = make_rows(seed, groups=groups, unpenalized=np.array([True, False, False]))
    run = ended(rows, kind, 5, 2.0, burn_in=60, n_chains=N_CHAINS)
    assert run.blocks[0].along is not None
    return rows, run


@pytest.mark.parametrize("factors", FACTORS)
@pytest.mark.parametrize("kind", ["hmc", PRIOR_COORDINATES])
def test_a_fused_call_ends_where_steps_end(kind, factors, seed):
    """With maps, along which effects follow all coefficients or those that are not shrunk; but for rounding of maps."""
    rows, run = run_with_maps(kind, factors, seed)
    (block,), chains, ends = run.blocks, run.chains, []
    for rows.takes_fused_calls in (True, False):
        loglik, score = block.begin_sweep(chains.state.beta)
        state = chains.state._replace(loglik=loglik, score=score)
        new = chains._law(state, *((chains.reference, chains.tuning) if kind == "hmc" else ()))
        ends.append((loglik, score, new.beta, new.tau_sq_inv, new.loglik))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)
    assert (ends[0][2] != chains.state.beta).any()


@pytest.mark.parametrize("factors", FACTORS)
def test_fused_moves_along_lines_end_where_passes_end(factors, seed):
    """But for few proposals that rounding of maps puts inside or outside the slice."""
    rows, run = run_with_maps("hmc", factors, seed)
    (block,), chains, rng, alike, moved = run.blocks, run.chains, np.random.default_rng(seed), [], []
    for factor in block.factors:  # so that their density counts
        factor.scale = 0.1 * factor.scale
    for sweep in range(40):
        state, ends = [*chains.state[:3]], []
        state[0] = state[0] * np.exp(0.5 * rng.standard_normal(state[0].shape))
        for rows.takes_fused_calls in (True, False):
            block.begin_sweep(state[0])
            ends.append(cpu.move_along_lines(*state, block.rows, chains.lines, 1.0, KEY, sweep)[0])
        alike.append(np.isclose(*ends, rtol=1e-12).all(axis=1))
        moved.append((ends[0] != state[0]).any(axis=1))
    assert np.mean(alike) > 0.98
    assert np.mean(moved) > 0.5


def test_curvature_of_rows_is_the_derivative_of_what_they_are_weighted_by(seed):
    rows, (_, y, codes, offset, weight) = make_rows(seed)
    how = y, weight, offset, codes, N_GROUPS, np.dtype(float), rows.bounds, ALONE
    rng, h, z = np.random.default_rng(seed), 1e-5, np.random.default_rng(seed + 1).standard_normal((N, 1))
    groups = cpu.RowGroups(*how, slope=z[:, 0].copy())
    values, effects = rng.standard_normal((N, N_CHAINS)), rng.standard_normal((N_GROUPS, N_CHAINS))
    factor = rng.uniform(0.5, 2, N_CHAINS)
    eta, sign = factor * values + z * effects[codes] + offset[:, None], np.where(y == 1, 1.0, -1.0)[:, None]

    def slope(by):
        return (
            sign * np.exp(-((eta + by) ** 2) / 2 - log_ndtr(sign * (eta + by))) / np.sqrt(2 * np.pi) * weight[:, None]
        )

    curvature, terms = groups.curvature(Given(values, factor), effects)
    np.testing.assert_allclose(curvature, (slope(-h) - slope(h)).mean(axis=1) / (2 * h), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(terms, np.bincount(codes, (z * slope(0.0)).mean(axis=1)), rtol=1e-9)


def test_what_is_known_of_effects_is_their_law_where_the_map_was_made(seed):
    """Mean and deviation of each u_g given s, beside integrals; groups of one row and of hundreds, weights, offsets."""
    rows, (X, y, codes, offset, weight) = make_rows(seed)
    grouped, rng = GroupEffects(Problem(rows, None, 1.0, KEY), N_CHAINS), np.random.default_rng(seed)
    beta = 0.3 * rng.standard_normal((N_CHAINS, P + 1))
    (factor,) = grouped.factors
    factor.scale = 0.7 * np.exp(0.1 * np.linspace(-1, 1, N_CHAINS))  # that of many groups is known as well as this
    for sweep in range(200):  # that move the effects alone
        grouped.begin_sweep(beta)
        known, width = grouped.predictors(beta), np.ones(N_GROUPS)
        precision = factor.scale**-2.0
        given = grouped.given_others(factor, known, grouped.effects)
        factor.row_groups.move_effects(grouped.effects, given, precision, width, sweep, KEY)
        grouped.see(1)
    grouped.follows = True
    grouped.rows.information(beta)
    point = beta.mean(axis=0)
    grouped.set_reference(point)
    coef = rows.columns.of_X(point[None])[0]
    eta, sign = X @ coef[:P] + coef[P] + offset, np.where(y == 1, 1.0, -1.0)
    scale = factor.map.scale * np.exp(np.linspace(-0.9, 0.9, N_CHAINS) * factor.map.reach)
    residuals = [residuals_of(factor, np.full((N_GROUPS, N_CHAINS), u), scale) for u in (0.0, 1.0)]
    sd_of_map = 1 / (residuals[1] - residuals[0])
    mean = -residuals[0] * sd_of_map
    grid = np.linspace(-12, 12, 8001)
    for g in range(N_GROUPS):
        here = codes == g
        row_logliks = weight[here] @ log_ndtr(sign[here, None] * (eta[here, None] + grid))
        for c in range(N_CHAINS):
            log = row_logliks - grid**2 / (2 * scale[c] ** 2)
            share = np.exp(log - log.max())
            share /= share.sum()
            centre = share @ grid
            sd = np.sqrt(share @ (grid - centre) ** 2)
            assert abs(mean[g, c] - centre) < 0.005 * sd
            assert abs(sd_of_map[g, c] / sd - 1) < 0.005


def residuals_of(factor, effects, scale):
    """What lines of scales hold of these effects, where beta is at the point of the map."""
    factor.lines.hold(Followed(0.0, 0.0), effects, scale)
    return factor.lines.standard.copy()


def test_effects_have_the_same_bits_for_any_number_of_threads(monkeypatch):
    monkeypatch.setattr("skhorseshoe._backends._cpu.row_groups._GROUPS_AT_A_TIME", 2)
    rng, found = np.random.default_rng(3), []
    predictors, start = rng.standard_normal((N, N_CHAINS)), rng.standard_normal((N_GROUPS, N_CHAINS))
    for n in (1, 3):
        with open_threads(n) as threads:
            rows, (_, y, codes, offset, _) = make_rows(0)
            how = y, rows.weight, offset, codes, N_GROUPS, np.dtype(float), np.array([0, 300, N]), threads
            groups, effects = cpu.RowGroups(*how), start.copy()
            one = np.ones(N_CHAINS)
            given = Given(predictors, one)
            groups.move_effects(effects, given, one, np.ones(N_GROUPS), 4, KEY)
            found.append((effects, groups.sums(predictors), groups.logliks(given, effects, one > 0)))
    for one, other in zip(*found, strict=True):
        assert (one == other).all()
