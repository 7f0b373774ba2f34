"""CuPy's arrays and CSR matrices in and out, and answers that are computed on the GPU."""

import sys
from copy import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from card import SHORT, assert_same_model, held_by_fits, on_card, on_host
from cuda_emulator import fake_cupy

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe.inspection import contributions, marginal_effects


@pytest.fixture(scope="module")
def fitted(one_gpu, problem, short_fit):
    """A model fitted on the GPU, and other rows than those of the fit."""
    return short_fit(*problem, device="cuda", burn_in=10, n_iter=30), problem[0][:90]


def fitted_there(X, y, weight=None, **params):
    return HorseshoeProbitClassifier(**{**SHORT, "random_state": 1, **params}).fit(X, y, weight)


def on_cpu(model):
    """A copy that answers there."""
    return copy(model).set_params(device="cpu")


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_cupy_rows_give_the_draws_of_rows_of_the_host(sampler, one_gpu, problem):
    X, y = problem
    weight = np.arange(len(y)) % 3  # rows of weight 0 are left out, those of weight 2 repeated or weighted
    models = []
    for place in (on_card, lambda values: values):
        models.append(fitted_there(*map(place, (X, y, weight)), device="cuda", sampler=sampler))
    assert_same_model(*models)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_large_x_on_the_card_is_read_where_it_is(dtype, one_gpu, problem, short_fit, monkeypatch, sizes):
    X, y = problem[0].astype(dtype), problem[1]
    sizes(numbers_sorted=1)  # so small an X would be sorted
    given, held = on_card(X), held_by_fits(monkeypatch)
    model = short_fit(given, y, sampler="gibbs", burn_in=0, n_iter=1, n_chains=1)  # device="auto" is where X is
    assert model.device_ == "cuda:0"
    assert held[0].data.ptr == given.data.ptr
    assert model.predict_proba(given).shape == (len(y), 2)


ANSWERS = "predict", "predict_proba", "predict_log_proba", "decision_function", "predict_interval"


@pytest.mark.parametrize("answer", [*ANSWERS, "predict_proba_samples"])
def test_answers_are_those_of_the_cpu_and_are_where_x_is(answer, fitted):
    model, X = fitted
    ask = getattr(model, answer)
    ours, beside_x, theirs = ask(X), on_host(ask(on_card(X))), getattr(on_cpu(model), answer)(X)
    assert type(ours) is np.ndarray
    np.testing.assert_array_equal(ours, beside_x)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


def test_effects_and_contributions_are_those_of_the_cpu(fitted):
    model, X = fitted
    weight = np.arange(X.shape[0]) % 3

    def tables(model, X, few):
        return marginal_effects(model, X), marginal_effects(model, X, sample_weight=weight), contributions(model, few)

    ours, theirs = tables(model, on_card(X), on_card(X[:3])), tables(on_cpu(model), X, X[:3])
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("few", [{"predictors_of_a_block": 7 * 360}, {"predicted_rows": 7}], ids=str)
def test_a_row_has_the_same_answer_in_any_batch(few, fitted, sizes):
    model, X = fitted
    proba, interval = model.predict_proba(X), model.predict_interval(X)
    np.testing.assert_array_equal(model.predict_proba(X[40:42]), proba[40:42])
    sizes(**few)
    np.testing.assert_allclose(model.predict_proba(X), proba, rtol=1e-11)
    np.testing.assert_allclose(model.predict_interval(X), interval, rtol=1e-11)


def test_labels_that_cupy_cannot_hold_come_as_numpy(one_gpu, problem, short_fit):
    X, y = problem
    labels = short_fit(on_card(X), np.array(["no", "yes"])[y], **SHORT).predict(on_card(X))
    assert type(labels) is np.ndarray
    assert set(labels) == {"no", "yes"}


def test_log_likelihoods_for_arviz_are_those_of_the_cpu(fitted, problem):
    model, (X, y) = fitted[0], problem
    ours = model.to_arviz(on_card(X), on_card(y), max_draws=40)
    theirs = on_cpu(model).to_arviz(X, y, max_draws=40)
    np.testing.assert_allclose(ours.log_likelihood["y"], theirs.log_likelihood["y"], rtol=1e-10)


@pytest.mark.parametrize("rule", ["dss", "shrinkage"])
def test_columns_are_selected_as_from_rows_of_the_host(rule, fitted, problem):
    X, y = problem
    selectors = [HorseshoeSelector(fitted[0], rule=rule, prefit=True).fit(rows, y) for rows in (X, on_card(X))]
    np.testing.assert_array_equal(*(selector.support_ for selector in selectors))


SPOILT = {
    r"0 sample\(s\)": lambda X: X[:0],
    "complex128": lambda X: X.astype(complex),
    "NaN or infinity": lambda X: X * np.nan,
    "5 features|inconsistent": lambda X: X[:-1, :5],
    "Expected 2D array, got 1D array": lambda X: X[0],
    r"0 feature\(s\)": lambda X: X[:, :0],
}


@pytest.mark.parametrize("says", SPOILT)
def test_bad_cupy_rows_are_refused(says, fitted, problem):
    X = on_card(SPOILT[says](problem[0]))
    for use in (lambda: fitted[0].predict(X), lambda: HorseshoeProbitClassifier().fit(X, problem[1])):
        with pytest.raises(ValueError, match=says):
            use()
    with pytest.raises(ValueError, match="requires y to be passed"):
        HorseshoeProbitClassifier().fit(on_card(problem[0]), None)


def test_a_cupy_x_and_another_device_are_at_odds(fitted, problem):
    message = r"on 'cuda:0' and device='cpu' is asked for.*X\.get\(\)"
    with pytest.raises(ValueError, match=message):
        HorseshoeProbitClassifier(device="cpu").fit(on_card(problem[0]), problem[1])
    with pytest.raises(ValueError, match=message):
        on_cpu(fitted[0]).predict(on_card(fitted[1]))


def test_integers_and_columns_first_are_converted_on_the_card(one_gpu, problem, short_fit):
    model, whole = short_fit(*problem, device="cuda", **SHORT), np.rint(problem[0])
    for given in (whole.astype(np.int32), np.asfortranarray(whole), (whole > 0)):
        np.testing.assert_array_equal(on_host(model.predict_proba(on_card(given))), model.predict_proba(given))


def test_sparse_rows_are_refused_with_what_to_do(card, problem, short_fit, sizes):
    """With "auto" they are the CPU's, as are predictions for them."""
    X, y = sp.csr_array(problem[0]), problem[1]
    for device in ("cuda", "cuda:0"):
        with pytest.raises(ValueError, match=rf"X is sparse and device='{device}'.*device='cpu' or.*X\.toarray\(\)"):
            fitted_there(X, y, device=device)
    sizes(numbers_on_a_gpu=0)
    assert fitted_there(X, y).device_ == "cpu"
    model = short_fit(*problem, device="cuda", **SHORT)
    np.testing.assert_allclose(model.predict_proba(X), model.predict_proba(problem[0]), rtol=1e-10)
    there, message = sys.modules["cupyx.scipy.sparse"].csr_matrix(), r"sparse CuPy matrix.*X\.get\(\).*X\.toarray\(\)"
    for use in (model.predict, lambda X: fitted_there(X, y), lambda X: marginal_effects(model, X)):
        with pytest.raises(ValueError, match=message):
            use(there)


def test_a_model_of_the_cpu_answers_on_the_card_that_x_is_on(one_gpu, problem, short_fit):
    X, y = problem
    model = short_fit(X, y, device="auto", **SHORT)
    assert model.device_ == "cpu"
    np.testing.assert_allclose(on_host(model.predict_proba(on_card(X))), model.predict_proba(X), rtol=1e-10)


# Two cards: in the emulator an array of another one than the current one is refused wherever it is computed with.


@pytest.fixture
def cards(compiler):
    with fake_cupy.installed(count=2) as cards:
        yield cards


def on_second(X):
    """X on the second card."""
    with sys.modules["cupy"].cuda.Device(1):
        return on_card(X)


@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_the_second_card_is_used_if_named_or_x_is_there(sampler, cards, problem):
    X, y = problem
    weight = np.arange(len(y)) % 3
    model = fitted_there(X, y, weight, device="cuda:1", sampler=sampler)
    beside = fitted_there(on_second(X), on_second(y), weight, sampler=sampler)
    assert (model.device_, beside.device_) == ("cuda:1", "cuda:1")
    np.testing.assert_array_equal(beside.coef_draws_, model.coef_draws_)
    proba = beside.predict_proba(on_second(X))
    assert proba.device.id == 1
    np.testing.assert_array_equal(sys.modules["cupy"].asnumpy(proba), model.predict_proba(X))
    assert cards.used == {1}
    with pytest.raises(ValueError, match=r"on 'cuda:1' and device='cuda' is asked for"):
        HorseshoeProbitClassifier(device="cuda").fit(on_second(X), y)


@pytest.mark.filterwarnings("ignore:X has more columns")
def test_the_second_card_is_used_for_more_columns_than_rows(cards):
    X, y = np.random.default_rng(0).standard_normal((12, 20)), np.arange(12) % 2
    how = {"n_chains": 1, "slab_scale": 2.0}
    models = fitted_there(X, y, device="cuda:1", **how), fitted_there(on_second(X), y, **how)
    assert {(model.sampler_, model.device_) for model in models} == {("hmc", "cuda:1")}
    np.testing.assert_array_equal(*(model.coef_draws_ for model in models))
    assert cards.used == {1}
