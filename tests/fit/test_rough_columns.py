"""Where columns outnumber rows a fit ends when what people act on has converged; single columns may then be rough."""

import warnings

import numpy as np
import pytest
from laws import ALONE, plain_columns
from scipy.sparse import csr_array
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier, sets
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_ops
from skhorseshoe._data.rows import Rows
from skhorseshoe._fit import opened_rows
from skhorseshoe._fit.watched import Watched, Worst
from skhorseshoe._mcmc.draws import Draws
from skhorseshoe.diagnostics import convergence

N, P = 30, 45


@pytest.fixture
def twins(seed):
    """The first two columns are the same one."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 18))
    X[:, 1] = X[:, 0]
    return X, (X[:, 2] + rng.standard_normal(12) > 0).astype(int)


@pytest.fixture
def slow(monkeypatch):
    """A function that makes twins move slowly: apart, so that nothing else does, or together."""

    add = Draws.add

    def make(together, rng):
        noise = np.zeros(4)

        def slowly(draws, beta, *others):
            noise[:] = 0.8 * noise + rng.standard_normal(4)
            beta = beta.copy()
            beta[:, 0] += noise
            beta[:, 1] += noise if together else -noise
            add(draws, beta, *others)

        monkeypatch.setattr(Draws, "add", slowly)

    return make


def classifier(seed, **params):
    return HorseshoeProbitClassifier(slab_scale=2, random_state=seed, **params)


def header(model):
    return " ".join(model.summary().attrs["header"].split())


@pytest.mark.filterwarnings("error")
def test_a_fit_whose_predictions_have_converged_ends_and_says_so(twins, slow, seed):
    slow(False, np.random.default_rng(seed))
    X, y = twins
    model = classifier(seed).fit(X, y)
    assert model.stopped_by_ == "target_ess"
    assert 200 <= model.ess_[0] < 400
    assert model.rhat_.max() <= 1.05
    sums = sets.correlated_sets(X)
    members = next(one for one in sums.values() if len(one) > 1)
    score = model.coef_draws_ @ X.T + model.intercept_draws_[..., None]
    total = model.coef_draws_[..., list(members)] @ np.array(list(members.values()))
    for draws in (ndtr(score), total, model.intercept_draws_, model.global_scale_draws_):
        checks = convergence(draws)
        assert np.max(checks.rhat) <= 1.01
        assert np.min(checks.ess_bulk) >= 400
    assert "draws, converged for predictions and sets; single columns are rough (R-hat 1.0" in header(model)
    assert "Stricter: single columns are as sure as the rest with target_ess=400, about " in header(model)


@pytest.mark.filterwarnings("error")
def test_target_ess_asks_for_single_columns_too(twins, slow, seed):
    slow(False, np.random.default_rng(seed))
    model = classifier(seed, target_ess=400).fit(*twins)
    assert model.ess_.min() >= 400
    assert model.rhat_.max() <= 1.01
    assert "draws, converged; " in header(model)
    assert "Stricter" not in header(model)


@pytest.mark.filterwarnings("error")
def test_a_fit_whose_sums_and_predictions_are_slow_goes_on(twins, slow, seed):
    """Although all single columns are as good as they need to be long before."""
    slow(True, np.random.default_rng(seed))
    model = classifier(seed).fit(*twins)
    assert convergence(model.coef_draws_[..., 0] + model.coef_draws_[..., 1]).ess_bulk >= 400
    assert model.ess_.min() >= 350  # of the columns, which are as slow as their sum


def test_a_length_in_numbers_is_judged_alike(twins, slow, seed):
    slow(False, np.random.default_rng(seed))
    rough = classifier(seed).fit(*twins)
    slow(False, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        clone(rough).set_params(n_iter=rough.n_iter_).fit(*twins)
    with pytest.warns(ConvergenceWarning, match=r"'\(predictions and sets\)'|'x\d+'|\(global scale\)|\(intercept\)"):
        clone(rough).set_params(n_iter=20).fit(*twins)


def test_the_header_says_what_the_warning_says_of_predictions(twins, seed, monkeypatch):
    """Where nothing else has failed to converge."""
    monkeypatch.setattr(Watched, "worst", lambda *_: Worst("(predictions)", 1.2, 30.0, True))
    with pytest.warns(ConvergenceWarning, match=r"worst is '\(predictions\)'"):
        model = classifier(seed).fit(*twins)
    assert model.rhat_.max() <= 1.05
    assert "NOT converged" in header(model)
    assert "worst R-hat 1.200 ((predictions)), smallest ess 30 ((predictions))" in header(model)


@pytest.mark.filterwarnings("ignore")
def test_with_as_many_rows_as_columns_nothing_is_watched(seed, monkeypatch):
    monkeypatch.setattr(opened_rows, "Watched", lambda *_: pytest.fail("it was"))
    X = np.random.default_rng(seed).standard_normal((20, 20))
    HorseshoeProbitClassifier(n_iter=5, burn_in=5, random_state=seed).fit(X, np.arange(20) % 2)


def watched(X, is_rough=True, ops=cpu):
    return Watched(Rows(X, (np.arange(X.shape[0]) % 2).astype(np.uint8), True, ops, ALONE), is_rough)


def draws_of(rng, n=800, p=P):
    """Independent draws."""
    draws = Draws(4, n, plain_columns(p))
    draws.n_offered = n
    for name in ("coef", "intercept", "global_scale"):
        values = getattr(draws, name)
        values[...] = 0.1 * rng.standard_normal(values.shape)
    return draws


@pytest.mark.parametrize("kind", ["predictions", "sets"])
def test_what_is_watched_has_to_agree_between_chains(kind, seed):
    """Each column alone differs by so little that nobody sees it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) if kind == "predictions" else rng.standard_normal((N, 1)) * np.ones(P)
    draws, moved = draws_of(rng), np.sign(X[0]) if kind == "predictions" else 1.0
    X += 0.1 * rng.standard_normal((N, P))
    looks = [watched(X), watched(X)]
    for look in looks:
        assert bool(look.weights.shape[1]) == (kind == "sets")
        if kind == "sets":
            look.X[:] = 0.0  # so that the sums alone can tell
    assert draws.suffice(400, watched=looks[0])
    draws.coef += 0.006 * np.array([-1, -1, 1, 1])[:, None, None] * moved
    assert draws.suffice(400)  # as single columns are judged
    assert not draws.suffice(400, watched=looks[1])
    assert looks[1].worst(draws).rhat > 1.01


@pytest.mark.parametrize("sparse", [False, True])
def test_what_is_watched_is_what_is_said(sparse, seed):
    """Also in looks that come one after another, with the same bits, and when half of the draws have been given up."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.5) + 100 * (not sparse)
    X[:, 1] = 2 * X[:, 0]
    draws = draws_of(rng)
    draws.intercept -= draws.coef @ X.mean(axis=0)
    rows = (csr_array(X), sparse_ops) if sparse else (X, cpu)
    whole, often = (watched(rows[0], ops=rows[1]) for _ in range(2))
    for n in (100, 125, 313, 799):
        draws.n_offered = n
        often.draws(draws)
    got = whole.draws(draws)
    np.testing.assert_array_equal(often.draws(draws), got)
    score = draws.coef[:, :799] @ X.T + draws.intercept[:, :799, None]
    np.testing.assert_allclose(got[..., :N], ndtr(score), atol=1e-5)
    sums = draws.coef[:, :799, :2] @ X[:, :2].std(axis=0)
    np.testing.assert_allclose(got[..., N], sums, atol=1e-5)
    draws._halve()
    draws.n_offered = 2 * (draws.n // 2)
    np.testing.assert_allclose(often.draws(draws), got[:, 1::2][:, : draws.n], atol=1e-6)


def test_at_most_so_many_rows_are_watched(seed):
    assert 500 <= watched(np.random.default_rng(seed).standard_normal((1500, P))).X.shape[0] <= 1000


@pytest.mark.parametrize(("p", "name"), [(P, "(predictions and sets)"), (4100, "(predictions)")])
def test_too_many_correlations_are_not_computed(p, name, seed):
    X = np.ones(p) * np.random.default_rng(seed).standard_normal((N, 1))
    assert watched(X).worst(draws_of(np.random.default_rng(seed), 20, p)).name == name


def test_coefficients_without_a_bound_end_no_fit(seed):
    rng = np.random.default_rng(seed)
    draws = draws_of(rng)
    draws.coef *= 1e200
    with np.errstate(all="ignore"):  # as fits have it
        assert np.isfinite(watched(rng.standard_normal((N, P))).draws(draws)).all()
