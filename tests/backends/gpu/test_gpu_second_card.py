"""Everything happens on the GPU that is asked for, or that X is on, and nothing on the first one by mistake.

In the emulator an array of another GPU than the current one is refused wherever it is computed with.
"""

import sys
import warnings

import numpy as np
import pytest
from cuda_emulator import COMPILER, fake_cupy
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs g++")
SHORT = {"n_chains": 2, "burn_in": 12, "n_iter": 4, "random_state": 1}


@pytest.fixture
def cards():
    with fake_cupy.installed(count=2) as cards:
        yield cards


def on_second(X):
    """X on the second card: CuPy's array or CSR matrix."""
    place = sys.modules["cupyx.scipy.sparse"].csr_matrix if hasattr(X, "indptr") else sys.modules["cupy"].asarray
    with sys.modules["cupy"].cuda.Device(1):
        return place(X)


def fitted(X, y, weight=None, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return HorseshoeProbitClassifier(**{**SHORT, **params}).fit(X, y, sample_weight=weight)


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
@pytest.mark.parametrize("kind", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_it_is_used_where_it_is_asked_for_or_x_is_there(kind, sampler, cards, problem):
    (X, y), given = problem, {"sampler": sampler}
    X = kind(X)
    weight = np.arange(len(y)) % 3  # rows of weight 0 are left out, those of weight 2 repeated or weighted
    model = fitted(X, y, weight, device="cuda:1", **given)
    for labels in (y, on_second(y)):
        beside = fitted(on_second(X), labels, weight, **given)
        assert (model.device_, beside.device_) == ("cuda:1", "cuda:1")
        np.testing.assert_array_equal(beside.coef_draws_, model.coef_draws_)
    assert beside.tuning_ == model.tuning_
    proba = beside.predict_proba(on_second(X))
    assert proba.device.id == 1
    np.testing.assert_array_equal(sys.modules["cupy"].asnumpy(proba), model.predict_proba(X))
    assert cards.used == {1}


def test_a_card_at_odds_with_that_of_x_is_refused(cards, problem):
    X, y = problem
    with pytest.raises(ValueError, match=r"on 'cuda:1' and device='cuda' is asked for"):
        HorseshoeProbitClassifier(device="cuda").fit(on_second(X), y)


def test_it_is_used_for_more_columns_than_rows(cards):
    X, y = np.random.default_rng(0).standard_normal((12, 20)), np.arange(12) % 2
    models = fitted(X, y, device="cuda:1", n_chains=1), fitted(on_second(X), y, n_chains=1)
    for model in models:
        assert (model.sampler_, model.device_) == ("collapsed", "cuda:1")
    np.testing.assert_array_equal(*(model.coef_draws_ for model in models))
    assert cards.used == {1}
