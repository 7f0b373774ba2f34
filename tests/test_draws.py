"""What is kept of a run: evenly spaced draws in bounded memory, in either precision."""

import numpy as np
import pytest

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._memory import forecast

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
STORED = "coef_draws_", "intercept_draws_", "global_scale_draws_", "acceptance_draws_"


def classifier(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 100, "burn_in": 20, "random_state": 0, **params})


@pytest.fixture(scope="module")
def whole(problem):
    return classifier().fit(*problem)


@pytest.mark.parametrize(
    ("room", "stride"), [(100, 1), (99, 2), (64, 2), (50, 2), (49, 4), (25, 4), (13, 8), (7, 16), (2, 64), (1000, 1)]
)
def test_kept_draws_are_evenly_spaced_and_never_more_than_the_room(problem, whole, room, stride):
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
    assert model.coef_draws_.dtype == model.intercept_draws_.dtype == np.float32
    assert np.array_equal(model.coef_draws_, whole.coef_draws_.astype(np.float32))
    np.testing.assert_allclose(model.predict_proba(problem[0]), whole.predict_proba(problem[0]), atol=1e-6)
    np.testing.assert_allclose(model.summary().to_numpy(), whole.summary().to_numpy(), rtol=1e-2, atol=1e-5)


def test_bounded_draws_go_on_from_a_checkpoint_and_a_warm_start(problem, tmp_path):
    params = {"max_draws": 8, "thin": 2}
    want = classifier(n_iter=150, **params).fit(*problem)
    warm = classifier(n_iter=61, warm_start=True, **params).fit(*problem).set_params(n_iter=89).fit(*problem)
    for n_iter in (30, 61, 100, 150):
        saved = classifier(n_iter=n_iter, checkpoint=tmp_path, checkpoint_interval=0.0, **params).fit(*problem)
    for name in STORED:
        assert np.array_equal(getattr(warm, name), getattr(want, name))
        assert np.array_equal(getattr(saved, name), getattr(want, name))


def test_target_ess_is_looked_at_where_draws_are_bounded(weak_problem):
    model = classifier(n_iter=20_000, burn_in=200, target_ess=150, max_draws=500).fit(*weak_problem)
    assert model.stopped_by_ == "target_ess"
    assert model.coef_draws_.shape[1] <= 500


def test_the_forecast_knows_what_is_kept():
    few, _ = forecast(1000, 50, 4, 100, 1, "hmc", 4)
    many, _ = forecast(1000, 50, 4, 1000, 1, "hmc", 8)
    assert few < many / 15
