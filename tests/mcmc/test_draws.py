"""What is kept of a run: evenly spaced draws in bounded memory, in either precision."""

import numpy as np
import pytest
from laws import peak_memory, plain_columns
from scipy.special import ndtri

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._fit.memory_forecast import forecast
from skhorseshoe._mcmc import draws as _draws
from skhorseshoe._mcmc.draws import Draws, Moments
from skhorseshoe.plotting import CoefficientsDisplay

STORED = "coef_draws_", "intercept_draws_", "global_scale_draws_", "acceptance_draws_"


def classifier(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 100, "burn_in": 20, "random_state": 0, **params})


@pytest.fixture(scope="module")
def whole(problem):
    return classifier().fit(*problem)


@pytest.mark.parametrize(("room", "stride"), [(1000, 1), (100, 1), (99, 2), (50, 2), (49, 4), (7, 16), (2, 64)])
def test_kept_draws_are_evenly_spaced_and_within_the_room(problem, whole, room, stride):
    model = classifier(max_draws=room).fit(*problem)
    for name in STORED:
        assert np.array_equal(getattr(model, name), getattr(whole, name)[:, stride - 1 :: stride])
    assert 0 < model.coef_draws_.shape[1] <= room
    np.testing.assert_array_equal(model.shrinkage_, whole.shrinkage_)
    assert model.n_iter_ == 100


def test_thinning_comes_first(problem, whole):
    model = classifier(max_draws=10, thin=3).fit(*problem)
    assert np.array_equal(model.coef_draws_, whole.coef_draws_[:, 2::3][:, 3::4])


def test_float32_rounds_the_coefficients(problem, whole):
    model = classifier(draws_dtype="float32").fit(*problem)
    assert model.coef_draws_.dtype == np.float32
    assert np.array_equal(model.coef_draws_, whole.coef_draws_.astype(np.float32))
    np.testing.assert_allclose(model.predict_proba(problem[0]), whole.predict_proba(problem[0]), atol=1e-6)
    np.testing.assert_allclose(model.summary().to_numpy(), whole.summary().to_numpy(), rtol=1e-2, atol=1e-5)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_float32_has_no_infinity(short_fit):
    X, y = 1e-39 * np.random.default_rng(1).standard_normal((5, 3)), [0, 1, 0, 1, 1]
    whole, model = (short_fit(X, y, standardize=True, draws_dtype=d) for d in ("float64", "float32"))
    largest = np.finfo(np.float32).max
    assert abs(whole.coef_draws_).max() > largest
    assert largest / 5 < abs(model.coef_draws_).max() < largest / 3
    described = model.summary()[["mean", "sd", "5%", "95%"]].to_numpy()
    for values in model.coef_, model.predict_proba(X), model.predict_interval(X), described:
        assert np.isfinite(values).all()


def test_bounded_draws_go_on_from_a_checkpoint_and_a_warm_start(problem, tmp_path):
    params = {"max_draws": 8, "thin": 2}
    want = classifier(n_iter=150, **params).fit(*problem)
    warm = classifier(n_iter=61, warm_start=True, **params).fit(*problem).set_params(n_iter=89).fit(*problem)
    for n_iter in (30, 61, 100, 150):
        saved = classifier(n_iter=n_iter, checkpoint=tmp_path, checkpoint_interval=0.0, **params).fit(*problem)
    for name in STORED:
        assert np.array_equal(getattr(warm, name), getattr(want, name))
        assert np.array_equal(getattr(saved, name), getattr(want, name))
    for model in (warm, saved):
        assert all(np.array_equal(model.moments_[name], want.moments_[name]) for name in want.moments_)
        assert np.array_equal(model.coef_, want.coef_)


def test_target_ess_is_looked_at_where_draws_are_bounded(weak_problem):
    model = classifier(n_iter=20_000, burn_in=200, target_ess=150, max_draws=500).fit(*weak_problem)
    assert model.stopped_by_ == "target_ess"
    assert model.coef_draws_.shape[1] <= 500


def apart(draws, rng):
    return draws + np.arange(4)[:, None]


def lasting(draws, rng):
    """Each value stays for four sweeps; all halves of chains have the same ones."""
    values = ndtri((np.arange(50) + 0.5) / 50)
    return np.stack([np.repeat(rng.permutation(values), 4) for _ in range(8)]).reshape(4, 400)


@pytest.mark.parametrize("quantity", ["coef", "intercept", "global_scale"])
@pytest.mark.parametrize(("fault", "target"), [(None, 800), (lasting, 800), (apart, 2)])
def test_target_ess_and_convergence_are_those_of_every_quantity(fault, target, quantity, seed):
    rng, draws = np.random.default_rng(seed), Draws(4, 400, plain_columns(2))
    draws.n_offered = 400
    for name in ("coef", "intercept", "global_scale"):
        values = getattr(draws, name)
        values[...] = rng.standard_normal(values.shape)
    if fault is not None:
        values = getattr(draws, quantity).reshape(4, 400, -1)[..., -1]
        values[...] = fault(values, rng)
    assert draws.suffice(target) == (fault is None)
    assert (draws.times_longer is None) == (fault is None)
    if fault is lasting:  # each value is there four times
        assert 1 < draws.times_longer < 10


def test_the_forecast_knows_what_is_kept():
    few, _ = forecast(1000, 50, 4, 100, 1, "hmc", 4)
    many, _ = forecast(1000, 50, 4, 1000, 1, "hmc", 8)
    assert few < many / 15


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_moments_are_those_of_every_draw_kept_or_not(problem, fit_intercept):
    whole = classifier(fit_intercept=fit_intercept).fit(*problem)
    model = classifier(fit_intercept=fit_intercept, max_draws=10).fit(*problem)
    assert whole.moments_ is None
    assert model.moments_["n_draws"] == 100
    assert model.coef_draws_.shape[1] <= 10
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, whole.intercept_, rtol=1e-12)
    columns = ["mean", "sd", "prob_positive"]
    np.testing.assert_allclose(model.summary()[columns], whole.summary()[columns], rtol=1e-12)
    assert "kept of 100" in model.summary().attrs["header"]
    assert "kept of" not in whole.summary().attrs["header"]
    np.testing.assert_array_equal(CoefficientsDisplay.from_estimator(model).mean, model.coef_[0])


def test_moments_keep_their_digits_far_from_zero(seed):
    draws = 1e8 + np.random.default_rng(seed).standard_normal((3, 1000, 2))
    moments = Moments((3, 2))
    for draw in draws.swapaxes(0, 1):
        moments.add(draw)
    pooled = moments.pooled()
    np.testing.assert_allclose(pooled["mean"], draws.mean(axis=(0, 1)), rtol=1e-14)
    np.testing.assert_allclose(pooled["sd"], draws.std(axis=(0, 1), ddof=1), rtol=1e-7)


def test_giving_up_draws_takes_little_more_memory(seed):
    """Of a thousandth of the draws, not of all of them again."""
    p, room = 500, 1000
    draws, beta = (
        Draws(1, 4 * room, plain_columns(p, fit_intercept=False), room),
        np.random.default_rng(seed).standard_normal((1, p)),
    )
    for _ in range(room):
        draws.add(beta, np.ones(1), 1.0)
    peak = peak_memory(lambda: draws.add(beta, np.ones(1), 1.0))
    assert draws.stride == 2
    assert peak < draws.coef.nbytes / 10


@pytest.mark.parametrize(("max_draws", "told"), [(40, True), (400, False)])
def test_the_warning_says_that_few_draws_are_kept(max_draws, told, weak_problem, said):
    texts = said(classifier(n_iter=2000, burn_in=200, max_draws=max_draws), *weak_problem)
    assert ["max_draws=40" in text for text in texts] == [True] * told


def test_rounded_draws_predict_as_well_far_from_zero(seed, short_fit):
    """What is rounded off the coefficients is large times the columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((100, 3)) + np.array([1e6, -1e7, 0])
    y = X[:, 0] - 1e6 + rng.standard_normal(100) > 0
    whole, rounded = (short_fit(X, y, draws_dtype=dtype) for dtype in ("float64", "float32"))
    assert rounded.coef_draws_.dtype == np.float32
    np.testing.assert_allclose(rounded.predict_proba_samples(X), whole.predict_proba_samples(X), atol=1e-5)


def test_draws_that_an_interrupt_has_torn_are_not_kept(problem, monkeypatch):
    """A handler that is not Python's own may raise anywhere, here while half of the draws are given up."""

    def torn():
        yield "coef"
        raise KeyboardInterrupt

    monkeypatch.setattr(_draws, "STORED", torn())
    with pytest.raises(KeyboardInterrupt):
        classifier(max_draws=10).fit(*problem)


def test_room_for_draws_to_come_takes_no_memory(monkeypatch):
    """Room for 100,000 draws of 100 columns is 320 MB; 100 of them are there when target_ess first looks at them."""
    X, peaks, suffice = np.random.default_rng(0).standard_normal((60, 100)), [], Draws.suffice

    def watched(draws, *args):
        peaks.append(peak_memory(lambda: suffice(draws, *args)))
        return True

    monkeypatch.setattr(Draws, "suffice", watched)
    model = classifier(n_iter=100_000, burn_in=0, sampler="gibbs", target_ess=1).fit(X, np.arange(60) % 2)
    assert (model.n_iter_, len(peaks)) == (100, 1)
    assert peaks[0] < 1e7
