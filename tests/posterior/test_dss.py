"""Decoupled shrinkage and selection, on draws that are made for it."""

from copy import copy
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import norm

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._model import PROBIT
from skhorseshoe._posterior import dss
from skhorseshoe._utils.threads import open_threads


def follow(draws, moments, level, given=None):
    given = np.zeros(draws.shape[2], bool) if given is None else given
    return dss.follow(draws, dss.factor(moments), level, given, np.arange(len(given)))


def sparsest(draws, moments, level):
    """Columns of the first summary on the path that is good enough; (p,) bool."""
    path = follow(draws, moments, level)
    return path.supports[path.chosen]


def posterior(seed, p, n_draws=400):
    """Draws (2, n_draws, p) about a mean, and moments of correlated columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((50, p)) @ rng.standard_normal((p, p))
    moments = X.T @ X
    spread = np.linalg.inv(np.linalg.cholesky(moments))
    mean = 1.5 * rng.standard_normal(p) * np.sqrt(np.diag(spread.T @ spread))
    draws = rng.standard_normal((2, n_draws, p)) @ spread + mean
    return draws, moments


def distance(draws, moments, support):
    """Of the posterior mean from the best coefficients on a support, and the 90 % quantile of that of the draws."""
    mean = draws.mean(axis=(0, 1))
    root = np.linalg.cholesky(moments).T
    best = np.linalg.lstsq(root[:, support], root @ mean, rcond=None)[0]
    radius = np.quantile((((draws - mean) @ root.T) ** 2).sum(axis=2), 0.9)
    return ((root @ mean - root[:, support] @ best) ** 2).sum(), radius


@pytest.mark.parametrize("k", range(4))
def test_the_summary_is_hardly_larger_than_the_smallest(seed, k):
    draws, moments = posterior(seed + k, 6)
    ours = np.flatnonzero(sparsest(draws, moments, 0.9))
    distances = {s: distance(draws, moments, list(s)) for m in range(7) for s in combinations(range(6), m)}
    reached, radius = distances[tuple(ours)]
    assert reached <= radius * (1 + 1e-9)
    smallest = next(len(s) for s, (reached, radius) in distances.items() if reached <= radius)
    assert smallest <= len(ours) <= smallest + 2


def test_a_higher_level_never_keeps_more(seed):
    draws, moments = posterior(seed, 12)
    draws[0, 0] *= 1e4  # a region that holds it holds zero
    sizes = [sparsest(draws, moments, level).sum() for level in (0.01, 0.5, 0.9, 0.9999)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == 0


def test_units_order_and_the_zero_of_the_columns_do_not_matter(seed):
    draws, moments = posterior(seed, 12)
    chosen = sparsest(draws, moments, 0.9)
    assert 0 < chosen.sum() < 12
    rng = np.random.default_rng(seed)
    units, order = 10.0 ** rng.integers(-6, 7, 12), rng.permutation(12)
    assert np.array_equal(sparsest(draws / units, moments * np.outer(units, units), 0.9), chosen)
    for scale in (1e8, 1e-250, 1e250):
        assert np.array_equal(sparsest(draws, scale * moments, 0.9), chosen)
    assert np.array_equal(sparsest(draws[..., order], moments[np.ix_(order, order)], 0.9), chosen[order])
    # Columns with means m, seen by 50 rows, and the intercept beside them.
    m = 3 * rng.standard_normal(12)
    bordered = np.block([[moments + 50 * np.outer(m, m), 50 * m[:, None]], [50 * m, 50]])
    assert np.array_equal(sparsest(draws, bordered, 0.9), chosen)


def test_constant_columns_are_never_selected(seed):
    draws, moments = posterior(seed, 4)
    moments[1] = moments[:, 1] = 0.0
    draws[..., 1] = 1e6
    assert not sparsest(draws, moments, 0.01)[1]


@pytest.mark.parametrize("p", [1, 6, 40])
def test_the_path_says_how_far_each_summary_is(seed, p):
    draws, moments = posterior(seed, p)
    path = follow(draws, moments, 0.9)
    assert not path.supports[0].any()
    for support, reached in zip(path.supports, path.distances, strict=True):
        expected, radius = distance(draws, moments, np.flatnonzero(support))
        assert 2 * reached == pytest.approx(expected, rel=1e-6, abs=1e-6 * radius)
    assert 2 * path.radius == pytest.approx(radius)
    assert (path.distances[: path.chosen] > path.radius).all()
    assert path.distances[path.chosen] <= path.radius


def test_the_path_where_nothing_or_everything_is_selected(seed):
    noise, mean = np.random.default_rng(seed).standard_normal((2, 400, 30)), np.linspace(0.1, 1, 30)
    nothing, everything = follow(noise + mean, np.eye(30), 0.9999), follow(1e-6 * noise + mean, np.eye(30), 0.5)
    assert not nothing.supports[nothing.chosen].any()
    assert len(nothing.supports) > 10
    assert everything.supports[everything.chosen].all()
    for path in (nothing, everything):  # of orthogonal columns none leaves the path
        assert (np.diff(path.distances) < 0).all()
    assert follow(np.zeros((2, 5, 3)), np.eye(3), 0.5).distances.tolist() == [0.0]
    opposite = np.array([1.0, -1.0]) + 0.1 * noise[..., :2]  # of two columns that are one: nothing is predicted
    assert not follow(opposite, np.ones((2, 2)), 0.5).supports[0].any()


def test_the_path_goes_as_far_by_many_rows_as_by_few(seed):
    draws = np.random.default_rng(seed).standard_normal((2, 400, 30)) + np.linspace(0.1, 1, 30) ** 2
    few, many = (dss.follow(draws, np.eye(n, 30), 0.5, np.zeros(30, bool), np.arange(30), 30) for n in (30, 20_000))
    assert np.array_equal(few.supports, many.supports)
    assert few.supports[-1].all()


def test_columns_of_every_summary_are_as_an_intercept(seed):
    """What they can stand in for is no reason to keep others, and their own draws say nothing about the others."""
    draws, moments = posterior(seed, 12)
    given = np.arange(12) < 4
    path = follow(draws, moments, 0.9, given)
    assert path.supports[:, given].all()
    assert not path.supports[0, ~given].any()
    left = moments[4:, 4:] - moments[4:, :4] @ np.linalg.solve(moments[:4, :4], moments[:4, 4:])
    alone = follow(draws[..., 4:], left, 0.9)
    assert np.array_equal(path.supports[:, 4:], alone.supports)
    np.testing.assert_allclose(path.distances, alone.distances, rtol=1e-6, atol=1e-9)
    assert path.radius == pytest.approx(alone.radius)


@pytest.mark.parametrize("kind", [np.asarray, np.float32, sp.csr_array])
@pytest.mark.parametrize(("fit_intercept", "weighted"), [(True, False), (False, True)])
def test_rows_and_their_matrix_give_one_path(kind, fit_intercept, weighted, seed):
    rng = np.random.default_rng(seed)
    n, p = 12, 30
    X = kind(rng.standard_normal((n, p)) * (rng.uniform(size=(n, p)) < 0.5))
    weight = rng.exponential(size=n) if weighted else np.empty(0)
    centre = np.asarray(X.mean(axis=0), np.float64) if fit_intercept else np.zeros(p)
    points = 0.3 * rng.standard_normal((5, p + fit_intercept))
    dense = np.asarray(X.toarray() if sp.issparse(X) else X, np.float64)
    with open_threads(1) as threads:
        matrix = cpu.gram(dense, weight, centre, np.ones(p), fit_intercept, threads, points)
    rows = dss.weighted_rows(X, weight, centre, points, fit_intercept, PROBIT)
    np.testing.assert_allclose(rows.T @ rows, matrix, rtol=1e-9, atol=1e-12)

    draws = rng.standard_normal((2, 50, p)) + 3.0 * (np.arange(p) < 4)
    given = np.arange(p) == 2
    ours, other = (dss.follow(draws, R, 0.5, given, np.arange(p)) for R in (rows, dss.factor(matrix)))
    assert np.array_equal(ours.supports[: ours.chosen + 1], other.supports[: other.chosen + 1])
    np.testing.assert_allclose(ours.distances[: ours.chosen + 1], other.distances[: other.chosen + 1], rtol=1e-6)
    assert ours.radius == pytest.approx(other.radius)


def test_distances_where_columns_leave_the_path(seed):
    X = np.random.default_rng(seed).standard_normal((20, 5))
    supports = np.array([[0, 0, 0, 0, 0], [1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 1]], bool)
    got = dss._projected_distances(dss.factor(X.T @ X), supports)
    want = [distance(np.ones((1, 1, 5)), X.T @ X, np.flatnonzero(support))[0] for support in supports]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_the_information_is_that_of_the_draws_wherever_columns_have_their_zero(fitted, problem):
    X = np.asarray(problem[0], float)
    coef, intercept = fitted.coef_draws_[:, :10], fitted.intercept_draws_[:, :10]
    moved = copy(fitted)
    moved.coef_draws_, moved.intercept_draws_ = coef, intercept - 3.0 * coef.sum(axis=-1)
    R, centre = dss.weighted_root(moved, X + 3.0, np.empty(0))
    eta = X @ coef.reshape(-1, X.shape[1]).T + intercept.ravel()
    weight = (norm.pdf(eta) ** 2 / (norm.cdf(eta) * norm.sf(eta))).mean(axis=1)
    columns = np.column_stack([X + 3.0 - centre, np.ones(len(X))])
    np.testing.assert_allclose(R.T @ R, columns.T @ (columns * weight[:, None]), rtol=1e-8, atol=1e-8)
