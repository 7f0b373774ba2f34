"""Decoupled shrinkage and selection of more than two classes: loss, projections and scores, on draws made for it."""

from copy import copy
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from scipy.special import xlogy

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._model import PROBIT
from skhorseshoe._model.multinomial_probit import MultinomialProbit
from skhorseshoe._model.ordered_probit import OrderedProbit
from skhorseshoe._posterior import dss, dss_cv
from skhorseshoe._posterior.projections import Projection, _RowsOfMore, _RowsOfTwo

OWN = np.array([0.7, 1.6])  # of four classes in order


def model_of(kind, X, coef, seed, spread=0.1, offset=None):
    """A model fitted to rows X whose few draws are about these coefficients; (p + 1, K) of "several", the last of the
    intercept, or (p + 1,) of "ordered" classes, of which there are four."""
    rng = np.random.default_rng(seed)
    n, ordered = X.shape[0], kind == "ordered"
    y = np.arange(n) % (4 if ordered else coef.shape[1])
    short = HorseshoeProbitClassifier(n_iter=5, burn_in=10, n_chains=2, random_state=0, ordered=ordered, n_jobs=1)
    model = copy(short.fit(X, y, offset=offset))
    draws = coef.T + spread * rng.standard_normal((2, 5, *coef.T.shape))
    if not ordered:
        draws -= draws.mean(axis=2, keepdims=True)
    else:
        model._own_draws = OWN + spread / 4 * rng.standard_normal((2, 5, 2))
    model.coef_draws_, model.intercept_draws_ = draws[..., :-1], draws[..., -1]
    return model


def probabilities(model, X, offset=0.0):
    """Of the classes in their order, under each draw; (n, m, K)."""
    coef, intercept = model.coef_draws_, model.intercept_draws_
    if coef.ndim == 3:
        eta = X @ coef.reshape(-1, X.shape[1]).T + intercept.ravel()
        return OrderedProbit(4).probabilities(eta, model._own_draws.reshape(-1, 2))
    K = coef.shape[2]
    eta = np.einsum("ij,mkj->imk", X, coef.reshape(-1, K, X.shape[1])) + intercept.reshape(-1, K)
    law = MultinomialProbit(K)
    return law.probabilities((eta + offset) @ law.contrasts.T)


def skewed(seed, n, p):
    return np.exp(0.7 * np.random.default_rng(seed).standard_normal((n, p)))


COEF = {
    "several": np.array([[0.8, -0.8, 0.0], [-0.5, 0.2, 0.3], [0.3, 0.3, -0.6], [0.0, 0.4, -0.4], [0.2, -0.4, 0.2]]),
    "ordered": np.array([0.8, -0.8, 0.5, 0.3, 0.4]),
}


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("n", "with_offset"), [(60, False), (60, True), (4, False)])
def test_the_loss_of_several_classes_is_the_divergence_of_their_probabilities(seed, make, n, with_offset):
    """To second order, of all rows and whatever the intercept, by which the classes may change."""
    rng = np.random.default_rng(seed)
    X, K, weight = skewed(seed, n, 5), 4, rng.uniform(0.5, 2, n)
    offset = rng.standard_normal((n, K)) if with_offset else None
    model = model_of("several", X, 0.5 * rng.standard_normal((6, K)), seed, spread=0.0, offset=offset)
    R, centre = dss.weighted_root(model, make(X), weight, offset=offset)
    other = copy(model)
    step = 1e-3 * rng.standard_normal((6, K))
    step -= step.mean(axis=1, keepdims=True)
    other.coef_draws_ = model.coef_draws_ + step[:-1].T
    other.intercept_draws_ = model.intercept_draws_ + step[-1]
    p, q = (probabilities(one, X, 0.0 if offset is None else offset[:, None])[:, 0] for one in (model, other))
    divergence = weight @ (xlogy(p, p) - xlogy(p, q)).sum(axis=1)
    step[-1] += centre @ step[:-1]  # of the intercept of centred columns
    moved = R @ (step @ MultinomialProbit(K).contrasts.T).ravel()  # the contrasts of a column side by side
    assert moved @ moved / 2 == pytest.approx(divergence, rel=0.02)


@pytest.mark.parametrize("kind", ["dense", "wide"])
def test_the_path_has_the_smallest_summaries_of_several_classes(seed, kind):
    """Beside all supports of a table, with the distance of the best coefficients on each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80 if kind == "dense" else 4, 5))
    coef = np.vstack([COEF["several"][:3], 0.02 * COEF["several"][:2], COEF["several"][4:]])
    model = model_of("several", X, coef, seed, spread=0.3)
    path = dss_cv.search(model, X, np.empty(0), 0.5, 5, np.arange(5))
    assert path.supports.shape == (len(path.supports), 5)
    R, _ = dss.weighted_root(model, X, np.empty(0))
    law = MultinomialProbit(3)
    mean = np.append(model.coef_draws_.mean(axis=(0, 1)), np.zeros((3, 1)), axis=1).T @ law.contrasts.T  # (p + 1, d)

    def distance(support):
        inside = R.reshape(len(R), 6, 2)[:, [*support, 5]].reshape(len(R), -1)
        left = R @ mean.ravel()
        residual = left - inside @ np.linalg.lstsq(inside, left, rcond=None)[0]
        return residual @ residual / 2

    for support, reached in zip(path.supports, path.distances, strict=True):
        assert reached == pytest.approx(distance(np.flatnonzero(support)), rel=1e-5, abs=1e-5)
    good = [len(s) for k in range(6) for s in combinations(range(5), k) if distance(s) <= path.radius]
    assert min(good) <= path.supports[path.chosen].sum() <= min(good) + 1
    always = model.shrinkage_.copy()
    always[3] = 0.0
    model.shrinkage_ = always
    assert dss_cv.search(model, X, np.empty(0), 0.5, 5, np.arange(5)).supports[:, 3].all()


def test_the_order_of_the_classes_does_not_matter(seed):
    X, order = np.random.default_rng(seed).standard_normal((80, 4)), [2, 0, 1]
    model = model_of("several", X, COEF["several"], seed)
    other = copy(model)
    other.coef_draws_, other.intercept_draws_ = model.coef_draws_[:, :, order], model.intercept_draws_[..., order]
    one, other = (dss_cv.search(m, X, np.empty(0), 0.5, 4, np.arange(4)) for m in (model, other))
    assert np.array_equal(one.supports, other.supports)
    np.testing.assert_allclose(one.distances, other.distances, rtol=1e-6, atol=1e-9)
    assert one.radius == pytest.approx(other.radius)


def test_a_column_of_one_class_joins_as_a_whole(seed):
    X = np.random.default_rng(seed).standard_normal((200, 6))
    coef = np.zeros((7, 4))
    coef[2] = [1.5, -0.5, -0.5, -0.5]
    path = dss_cv.search(model_of("several", X, coef, seed), X, np.empty(0), 0.5, 6, np.array([0, 1, 2, 3, 2, 5]))
    first = path.supports[path.supports.any(axis=1)][0]
    assert first.tolist() == [False, False, True, False, True, False]  # with the other column of its term


@pytest.mark.parametrize("kind", COEF)
def test_no_coefficients_predict_more_alike(seed, kind):
    """With skewed columns, of which least squares is off; intercept and cut points are free."""
    X = skewed(seed, 300, 4)
    model, columns = model_of(kind, X, COEF[kind], seed), np.array([0, 2])
    weight = np.random.default_rng(seed).uniform(0.5, 2, 300)
    projection, p = Projection(model, X, weight), probabilities(model, X)
    free = np.column_stack([X - np.average(X, axis=0, weights=weight), np.ones(300)])[:, [0, 2, 4]]

    def divergence(gamma, p):
        if kind == "ordered":
            q = OrderedProbit(4).probabilities(free @ gamma[:3], gamma[3:])
        else:
            q = MultinomialProbit(3).probabilities(free @ gamma.reshape(2, 3).T)
        return weight @ (xlogy(p, p) - xlogy(p, np.maximum(q, 1e-300))).sum(axis=1)

    projected, start = projection.onto(columns)[::3], projection._latent(columns)[::3]
    found, first = ([divergence(g, p[:, 3 * i]) for i, g in enumerate(coef)] for coef in (projected, start))
    least = [minimize(divergence, g, args=(p[:, 3 * i],)).fun for i, g in enumerate(projected)]
    np.testing.assert_allclose(found, least, atol=0.1)
    assert sum(first) > sum(least) + 0.2


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kind", COEF)
def test_all_columns_are_the_model_itself(seed, kind, make):
    X, n = skewed(seed, 90, 4), 60
    model = model_of(kind, X[:n], COEF[kind], seed)
    place = np.arange(30) % 3
    scores = dss_cv._fold_scores(model, make(X[:n]), np.empty(0), np.arange(5), make(X[n:]), place, np.arange(4))
    expected = np.log(probabilities(model, X[n:])[np.arange(30), :, place].mean(axis=1))
    np.testing.assert_allclose(scores[:, -1], expected)
    np.testing.assert_allclose(scores[:, -2], expected, rtol=1e-4)
    projection = Projection(model, make(X[:n]), np.empty(0))
    np.testing.assert_allclose(projection.onto(np.arange(4)), projection.draws, atol=1e-6)
    assert np.ptp(scores[:, 0].reshape(-1, 3), axis=0).max() < 1e-12  # without a column all rows of a class are alike


@pytest.mark.parametrize("kind", COEF)
def test_columns_left_out_are_noise_of_the_latent_variable(seed, kind):
    """Of independent Gaussian columns they add their variance, by whose root cut points are divided too."""
    X, ordered = np.random.default_rng(seed).standard_normal((20_000, 4)), kind == "ordered"
    model = model_of(kind, X[:40], 1.5 * COEF[kind], seed, spread=0.0)
    contrasts = 1.5 * (COEF[kind][:, None] if ordered else COEF[kind] @ MultinomialProbit(3).contrasts.T).T
    s = np.sqrt(1 + (contrasts[:, [1, 3]] ** 2).sum(axis=1).mean())
    expected = np.append(contrasts[:, [0, 2, 4]], OWN[: 2 * ordered]) / s
    projection = Projection(model, X, np.empty(0))
    np.testing.assert_allclose(projection._latent(np.array([0, 2])), np.tile(expected, (10, 1)), atol=0.05)
    if ordered:  # of one latent variable with normal noise it is the projection
        np.testing.assert_allclose(projection.onto(np.array([0, 2])), np.tile(expected, (10, 1)), atol=0.06)


def test_a_column_of_some_classes_has_a_place_among_the_sizes(seed):
    X = np.random.default_rng(seed).standard_normal((40, 3))
    coef = np.array([[0.5, -0.5, 0.0], [0.0, 0.0, 0.0], [0.2, 0.2, -0.4], [0.0, 0.0, 0.0]])
    assert dss_cv.sizes_of(model_of("several", X, coef, seed, spread=0.0)).tolist() == [0, 1, 2]


def test_cut_points_out_of_order_are_no_step():
    eta, target = np.zeros((5, 3, 3)), np.full((5, 3, 4), 0.25)
    eta[..., 1:] = [[0.7, 1.6], [1.6, 0.7], [-0.1, 1.6]]
    near = _RowsOfMore(OrderedProbit(4)).nearness(target, eta, np.ones(5))[0]
    assert np.isfinite(near).tolist() == [True, False, False]


def test_two_classes_are_a_case_of_several(seed):
    rng = np.random.default_rng(seed)
    eta, weight, p = 1.5 * rng.standard_normal((40, 6, 1)), rng.uniform(0.5, 2, 40), rng.uniform(size=(40, 6))
    two, more = _RowsOfTwo(PROBIT), _RowsOfMore(MultinomialProbit(2))
    np.testing.assert_allclose(more.target(eta)[..., 1], two.target(eta), rtol=1e-6)
    place = np.arange(40) % 2
    np.testing.assert_allclose(more.probability(eta, place), two.probability(eta, place), rtol=1e-6)
    ours = more.nearness(np.stack([1 - p, p], axis=2), eta, weight)
    for given, right in zip(ours, two.nearness(p, eta, weight), strict=True):
        np.testing.assert_allclose(given, right, rtol=2e-3, atol=2e-3)
    X, information = rng.standard_normal((40, 3)), PROBIT.information(eta[..., 0]).mean(axis=1)
    of_two = dss.weighted_rows(X, information, X.mean(axis=0), None, True, PROBIT)
    of_more = dss.weighted_rows(X, information[:, None, None], X.mean(axis=0), None, True, PROBIT)
    np.testing.assert_allclose(of_more, of_two)


@pytest.mark.parametrize("K", [3, 5])
@pytest.mark.parametrize("law", [OrderedProbit, MultinomialProbit])
def test_slopes_of_probabilities_are_differences(seed, law, K):
    rng, law = np.random.default_rng(seed), law(K)
    at = rng.standard_normal((20, 2, K - 1))
    if law.n_own:
        at[..., 1:] = np.cumsum(rng.uniform(0.3, 1, (K - 2,)))
    parts = (lambda eta: (eta[..., 0], eta[..., 1:])) if law.n_own else (lambda eta: (eta,))
    p, slopes = law.slopes(*parts(at))
    np.testing.assert_allclose(p, law.probabilities(*parts(at)), atol=1e-5)
    for a, step in enumerate(1e-5 * np.eye(K - 1)):
        above, below = (law.probabilities(*parts(at + sign * step)) for sign in (1, -1))
        np.testing.assert_allclose(slopes[..., a], (above - below) / 2e-5, atol=1e-4)
