"""Rows of several classes without an order, as samplers see them, and the law of their draws."""

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from whole_runs import check_uniform, ended, of_prior, ranks

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import device
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc import hmc_burn_in
from skhorseshoe._mcmc.class_contrasts import RowsOfContrasts
from skhorseshoe._mcmc.cut_points import RowsWithCutPoints
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._mcmc.run import PRIOR_COORDINATES
from skhorseshoe._model.multinomial_probit import MultinomialProbit, simplex
from skhorseshoe._model.ordered_probit import OrderedProbit
from skhorseshoe._utils.threads import Threads
from skhorseshoe.diagnostics import ess_bulk

ALONE = Threads(1)
SLAB, WIDE, N_CHAINS = 2.0, 1.5, 4
NAMES = "column 0 of class 0", "column 1 of class 2", "size of column 0", "tau", "intercept of class 1"


def rows_of(seed, n=14, k=3, p=2, weight=None):
    rng = np.random.default_rng(seed)
    return Rows(
        rng.standard_normal((n, p)) + np.arange(p), rng.integers(0, k, n).astype(np.uint8), True,
        device.resolve("cpu").ops, ALONE, likelihood=MultinomialProbit(k), weight=weight,
    )  # fmt: skip


def run_of(rows, n_iter, kind="hmc", n_chains=N_CHAINS):
    """The draws of a run of the sampler on these rows."""
    return ended(rows, kind, n_iter, SLAB, WIDE, n_chains=n_chains, key=np.array([0, 1], np.uint32)).draws


@pytest.mark.parametrize("offset", [None, np.random.default_rng(2).normal(0, 3, (24, 2))], ids=["plain", "offset"])
def test_points_separate_several_classes_where_each_row_has_the_largest_utility_in_its_class(offset):
    y = np.repeat([0, 1, 2], 8).astype(np.uint8)
    X = np.eye(3)[y] + 0.3 * np.random.default_rng(0).standard_normal((24, 3))
    inner = Rows(X, y, True, device.resolve("cpu").ops, ALONE, likelihood=MultinomialProbit(3), offset=offset)
    rows = RowsOfContrasts(inner)
    points = np.random.default_rng(1).standard_normal((40, 8))
    points[::2, :6] += 9 * simplex(3).T.ravel()  # the coefficient of a class on its own column, by contrast
    coef, intercept = rows.columns.coefficients(points)
    utilities = np.einsum("ij,mkj->imk", X, coef) + intercept
    utilities += 0.0 if offset is None else (offset @ simplex(3))[:, None]
    apart = (utilities.argmax(axis=2) == y[:, None]).all(axis=0)
    assert 0 < apart.sum() < len(apart)
    assert [rows.separated_by(point[None]) for point in points] == apart.tolist()
    assert rows.separated_by(points[apart])
    assert not rows.separated_by(points)


@pytest.mark.parametrize("k", [3, 5])
def test_the_score_of_contrasts_is_the_gradient_and_lines_are_its_integral(k):
    rows, rng = RowsOfContrasts(rows_of(k, k=k)), np.random.default_rng(1)
    beta, step = rng.standard_normal((2, 3 * (k - 1))), rng.standard_normal((2, 3 * (k - 1))) * 1e-5
    (up, _), (down, _), (at, score) = rows.score(beta + step), rows.score(beta - step), rows.score(beta)
    np.testing.assert_allclose((up - down) / 2, (score * step).sum(axis=1), rtol=1e-6)
    np.testing.assert_allclose(rows.line(beta, step, np.array([[0.0, 1.0]] * 2)), np.column_stack([at, up]), rtol=1e-10)


def test_the_information_of_contrasts_is_the_mean_square_of_scores():
    k, d, rng = 3, 2, np.random.default_rng(2)
    inner = rows_of(3, n=5)
    rows, beta = RowsOfContrasts(inner), rng.standard_normal((1, 6))
    eta = inner.predictors(beta.reshape(3, d).T.copy())
    total = np.zeros((6, 6))
    for i, p in enumerate(inner.likelihood.probabilities(eta)):
        for label in range(k):
            one = Rows(
                inner.X, np.full(5, label, np.uint8), True, inner.ops, ALONE, likelihood=inner.likelihood,
                weight=(np.arange(5) == i) + 0.0,
            )  # fmt: skip
            one.columns = one._translate = inner.columns
            score = RowsOfContrasts(one).score(beta)[1]
            total += p[label] * score.T @ score
    np.testing.assert_allclose(rows.information(beta), total, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("likelihood", [MultinomialProbit(4), OrderedProbit(4)])
def test_the_information_of_many_segments_is_that_of_one(likelihood):
    """With weights and offsets, which go with their rows."""
    rng, n, p, d = np.random.default_rng(0), 8_000, 9, likelihood.n_predictors
    X, y, weight = rng.standard_normal((n, p)) + 1, rng.integers(0, 4, n).astype(np.uint8), rng.random(n)
    offset = rng.standard_normal((n, d)) if d > 1 else rng.standard_normal(n)
    offset *= np.linspace(0, 1, n)[:, None] if d > 1 else np.linspace(0, 1, n)
    how = {"weight": weight, "offset": offset, "likelihood": likelihood, "unpenalized": np.arange(p) == 2}
    beta, found = rng.standard_normal((3, (p + 1) * d + likelihood.n_own)) / 3, []
    for is_whole in (False, True):
        inner = Rows(X, y, True, device.resolve("cpu").ops, ALONE, **how)
        assert len(inner.edges) > 3
        inner.edges = inner.edges[[0, -1]] if is_whole else inner.edges
        rows = RowsOfContrasts(inner) if d > 1 else RowsWithCutPoints(inner, FixedPrior(inner.columns, SLAB))
        found.append(rows.information(beta))
        np.testing.assert_allclose(inner.shares(), np.bincount(y, weight) / weight.sum(), rtol=1e-12)
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-7)


def test_one_call_of_the_core_has_the_draws_of_many():
    draws = [run_of(rows_of(4), 60)]
    rows = rows_of(4)
    rows.fit_fused_calls = False
    draws.append(run_of(rows, 60))
    np.testing.assert_array_equal(draws[0].coef, draws[1].coef)
    np.testing.assert_array_equal(draws[0].global_scale, draws[1].global_scale)


@pytest.mark.parametrize(
    ("n", "p"), [(3000, 4), (90, 200), pytest.param(3000, 70, marks=pytest.mark.slow)]
)  # a sweep, a path, a score
def test_chains_that_threads_share_have_the_draws_of_one(n, p):
    rng = np.random.default_rng(n)
    x = rng.standard_normal((n, p))
    y = (x[:, :3] + rng.standard_normal((n, 3))).argmax(axis=1)
    how = {"n_iter": 10, "burn_in": 45, "random_state": 0, "target_ess": None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two, three = (HorseshoeProbitClassifier(**how, n_jobs=n_jobs).fit(x, y) for n_jobs in (1, 2, 3))
    for other in (two, three):
        np.testing.assert_array_equal(other.coef_draws_, one.coef_draws_)
        np.testing.assert_array_equal(other.global_scale_draws_, one.global_scale_draws_)


@pytest.mark.parametrize(
    "how",
    [
        {"n": 3, "k": 3, "p": 1},
        *(pytest.param(how, marks=pytest.mark.slow) for how in ({}, {"n": 6, "k": 5}, {"n": 30, "k": 4, "p": 8})),
    ],
)
def test_utilities_as_latents_give_the_same_posterior(how):
    """Also of classes without a row and of a row for each class."""
    draws = [run_of(rows_of(6, **how), n_iter, kind=kind) for kind, n_iter in (("hmc", 1500), ("gibbs", 3000))]
    for of in (lambda d: d.coef[..., 0, 0], lambda d: d.intercept[..., -1], lambda d: np.log(d.global_scale)):
        a, b = map(of, draws)
        for x, y in ((a, b), ((a - a.mean()) ** 2, (b - a.mean()) ** 2)):
            assert abs(x.mean() - y.mean()) < 4.5 * np.sqrt(sum(v.var() / ess_bulk(v) for v in (x, y)))


@pytest.mark.slow
def test_what_stands_for_the_likelihood_does_not_change_the_posterior(monkeypatch):
    """Rows that count as half, with a likelihood that is far from theirs: tests correct trajectories and line moves."""
    rows, half, right = rows_of(5), rows_of(5, weight=np.full(14, 0.5)), run_of(rows_of(5), 1000, n_chains=16)
    rows.fit_fused_calls = False
    monkeypatch.setattr(RowsOfContrasts, "quick", property(lambda self: RowsOfContrasts(half)))
    monkeypatch.setattr(hmc_burn_in, "line_interval", lambda rows, help_little=False: 1)
    ours = run_of(rows, 1000, n_chains=16)
    for of in (lambda d: d.coef[..., 0, 0], lambda d: d.coef[..., 1, 1], lambda d: np.log(d.global_scale)):
        a, b = of(right), of(ours)
        error = np.sqrt(sum(x.var() / ess_bulk(x) for x in (a, b)))
        assert abs(a.mean() - b.mean()) < 4.5 * error


@pytest.mark.parametrize("as_stored", [np.asarray, csr_array])
@pytest.mark.parametrize("k", [3, 6])
def test_an_offset_is_a_column_with_known_coefficients(k, as_stored):
    """Also for rows that the offset makes sure of a class, or of none."""
    rng, d = np.random.default_rng(k), k - 1
    A, y = rng.standard_normal((20, 2)), rng.integers(0, k, 20).astype(np.uint8)
    z, known = rng.standard_normal(20) * 4, rng.standard_normal(d)
    z -= z.mean()
    ops = device.resolve("cpu", sparse=as_stored is csr_array).ops
    how = {"likelihood": MultinomialProbit(k), "weight": np.arange(20) / 10}
    z -= z @ how["weight"] / how["weight"].sum()  # columns are centred
    whole = RowsOfContrasts(Rows(as_stored(np.column_stack([A, z])), y, True, ops, ALONE, **how))
    rows = RowsOfContrasts(Rows(as_stored(A), y, True, ops, ALONE, offset=z[:, None] * known, **how))
    beta, step = rng.standard_normal((2, 3 * d)), rng.standard_normal((2, 3 * d)) / 3
    both, along = (
        np.insert(values, [2 * d] * d, added, axis=1) for values, added in ((beta, known), (step, 0 * known))
    )
    own = np.delete(np.arange(4 * d), np.arange(2 * d, 3 * d))
    for ours, wanted in zip(rows.score(beta), whole.score(both), strict=True):
        np.testing.assert_allclose(ours, wanted if wanted.ndim == 1 else wanted[:, own], rtol=1e-9, atol=1e-10)
    steps = np.array([[-1.0, 0.5], [0.0, 2.0]])
    np.testing.assert_allclose(rows.line(beta, step, steps), whole.line(both, along, steps), rtol=1e-11)
    information = whole.information(both)[np.ix_(own, own)]
    np.testing.assert_allclose(rows.information(beta), information, rtol=1e-9, atol=1e-10)
    assert rows.separated_by(beta) == whole.separated_by(both)


def ranks_of(seed, kind, k=3):
    """Where in (0, 1) the truth from which few rows of k classes are made is among its draws, for each of ``NAMES``."""
    rng, C = np.random.default_rng(seed), simplex(k)
    X = rng.standard_normal((14, 2))
    X -= X.mean(axis=0)
    tau, gamma = of_prior(rng, SLAB, k - 1)
    intercept = rng.standard_normal(k - 1) * WIDE
    y = ((X @ gamma + intercept) @ C + rng.standard_normal((14, k))).argmax(axis=1).astype(np.uint8)
    rows = Rows(X, y, True, device.resolve("cpu").ops, ALONE, likelihood=MultinomialProbit(k))
    key, coef, offset = rng.integers(2**32, size=2, dtype=np.uint32), gamma @ C, intercept @ C
    n_chains, n_iter = (4, 1500) if kind == "gibbs" else (16, 250)  # whose draws depend far less on one another
    draws = ended(rows, kind, n_iter, SLAB, WIDE, n_chains=n_chains, key=key).draws
    ours = [draws.coef[..., 0, 0], draws.coef[..., 2, 1], np.linalg.norm(draws.coef, axis=2)[..., 0]]
    ours += [draws.global_scale, draws.intercept[..., 1]]
    return ranks(ours, [coef[0, 0], coef[1, 2], np.linalg.norm(coef[0]), tau, offset[1]], 80 // n_chains, rng)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "n_sets"), [("hmc", 40), (PRIOR_COORDINATES, 40), ("gibbs", 40)])
def test_ranks_of_the_truth_are_uniform(kind, n_sets):
    check_uniform([ranks_of(seed, kind) for seed in range(n_sets)], NAMES)
