"""CuPy arrays in and out, and answers that are computed on the GPU; in the emulator, or on a card."""

import sys

import numpy as np
import pandas as pd
import pytest
from card import SHORT, assert_same_model, check_answer, check_any_batch, held_by_fits, on_host
from cuda_emulator import COMPILER

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.inspection import contributions, marginal_effects

needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")
ANSWERS = (
    "predict",
    "predict_proba",
    "predict_log_proba",
    "decision_function",
    "predict_interval",
    "predict_proba_samples",
)


def on_card(values):
    return sys.modules["cupy"].asarray(values)


@pytest.fixture(scope="module")
def fitted(one_gpu, problem, short_fit):
    """A model fitted on the GPU, and other rows than those of the fit."""
    X, y = problem
    return short_fit(X, y, device="cuda", burn_in=20, n_iter=300), X[:90]


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_a_fit_of_cupy_arrays_gives_the_draws_of_numpy_arrays(sampler, one_gpu, problem, short_fit):
    X, y = problem
    weight = np.arange(len(y)) % 3  # rows of weight 0 are left out, those of weight 2 repeated or weighted
    models = []
    for place in (on_card, np.asarray):
        model = HorseshoeProbitClassifier(device="cuda", sampler=sampler, random_state=1, **SHORT)
        with pytest.warns(UserWarning, match="not converged"):
            models.append(model.fit(place(X), place(y), place(weight)))
    assert_same_model(*models)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_large_x_on_the_card_is_read_where_it_is(dtype, one_gpu, problem, short_fit, monkeypatch):
    X, y = np.tile(problem[0], (42, 1)).astype(dtype), np.tile(problem[1], 42)
    X, held = on_card(X), held_by_fits(monkeypatch)
    model = short_fit(X, y, sampler="gibbs", burn_in=0, n_iter=1, n_chains=1)  # device="auto" is where X is
    assert model.device_ == "cuda:0"
    assert held[0].data.ptr == X.data.ptr
    assert model.predict_proba(X[:3]).shape == (3, 2)


def test_warm_start_goes_on_with_the_same_rows_wherever_they_are(one_gpu, problem, short_fit):
    X, y = problem
    whole = short_fit(X, y, device="cuda", **{**SHORT, "n_iter": 10})
    parts = short_fit(X, y, device="cuda", warm_start=True, **SHORT)
    with pytest.warns(UserWarning, match="not converged"):
        parts.fit(on_card(X), y)
    np.testing.assert_allclose(parts.coef_draws_, whole.coef_draws_, rtol=1e-9)


@pytest.mark.parametrize("answer", ANSWERS)
def test_answers_are_those_of_the_cpu_and_are_where_x_is(answer, fitted):
    model, X = fitted
    check_answer(model, answer, X, on_card)


def test_a_row_has_the_same_answer_in_any_batch(fitted):
    check_any_batch(*fitted)


def test_answers_are_computed_in_blocks_of_rows(fitted, monkeypatch):
    model, X = fitted
    whole = model.predict_proba(X), model.predict_interval(X)
    blocks = sys.modules["skhorseshoe._backends._gpu.predict"]
    monkeypatch.setattr(blocks, "_TOGETHER", 7 * 1200)  # rows times draws
    np.testing.assert_allclose(model.predict_proba(X), whole[0], rtol=1e-11)
    np.testing.assert_allclose(model.predict_interval(X), whole[1], rtol=1e-11)


def test_labels_that_cupy_cannot_hold_come_as_numpy(one_gpu, problem, short_fit):
    X, y = problem
    model = short_fit(on_card(X), np.array(["no", "yes"])[y], **SHORT)
    labels = model.predict(on_card(X))
    assert type(labels) is np.ndarray
    assert set(labels) == {"no", "yes"}


def test_log_likelihoods_for_arviz_are_those_of_the_cpu(fitted):
    model, X = fitted
    y = np.arange(len(X)) % 2
    ours = model.to_arviz(on_card(X), on_card(y), max_draws=40)
    try:
        theirs = model.set_params(device="cpu").to_arviz(X, y, max_draws=40)
    finally:
        model.set_params(device="cuda")
    np.testing.assert_allclose(ours.log_likelihood["y"], theirs.log_likelihood["y"], rtol=1e-10)


def test_effects_and_contributions_are_those_of_the_cpu(fitted):
    model, X = fitted
    weight = np.arange(len(X)) % 3

    def tables(X):
        return marginal_effects(model, X), marginal_effects(model, X, sample_weight=weight), contributions(model, X[:3])

    ours = tables(on_card(X))
    try:
        model.set_params(device="cpu")
        theirs = tables(X)
    finally:
        model.set_params(device="cuda")
    for one, other in zip(ours, theirs, strict=True):
        pd.testing.assert_frame_equal(one, other, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[0], "Expected 2D array, got 1D array"),
        (lambda X: X[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 8\)\)"),
        (lambda X: X[:, :0], r"Found array with 0 feature\(s\)"),
        (lambda X: X.astype(complex), "dtype complex128; real numbers are needed"),
        (lambda X: np.where(X > 2, np.nan, X), "X contains NaN or infinity"),
        (lambda X: np.where(X > 2, -np.inf, X).astype(np.float32), "X contains NaN or infinity"),
        (lambda X: X[:, :5], "X has 5 features, but HorseshoeProbitClassifier is expecting 8 features"),
    ],
)
def test_bad_cupy_arrays_are_refused(spoil, message, fitted, problem):
    model, _ = fitted
    X, y = problem
    bad = on_card(spoil(X))
    with pytest.raises(ValueError, match=message):
        model.predict(bad)
    if "features, but" not in message:
        with pytest.raises(ValueError, match=message):
            HorseshoeProbitClassifier().fit(bad, y)


def test_labels_and_rows_must_be_as_many(one_gpu, problem):
    X, y = problem
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        HorseshoeProbitClassifier().fit(on_card(X), on_card(y[:-1]))
    with pytest.raises(ValueError, match="requires y to be passed"):
        HorseshoeProbitClassifier().fit(on_card(X), None)


def test_integers_and_columns_first_are_converted_on_the_card(fitted):
    model, X = fitted
    whole = np.rint(X)
    for given in (whole.astype(np.int32), np.asfortranarray(whole), (whole > 0)):
        np.testing.assert_array_equal(on_host(model.predict_proba(on_card(given))), model.predict_proba(given))


def test_a_cupy_x_and_another_device_are_at_odds(fitted, problem, short_fit):
    model, X = fitted
    message = (
        r"X is a CuPy array on 'cuda:0' and device='cpu' is asked for. Use device='cuda:0' or 'auto', or give X as"
    )
    with pytest.raises(ValueError, match=message):
        HorseshoeProbitClassifier(device="cpu").fit(on_card(problem[0]), problem[1])
    try:
        with pytest.raises(ValueError, match=message):
            model.set_params(device="cpu").predict(on_card(X))
    finally:
        model.set_params(device="cuda")


def test_a_model_of_the_cpu_answers_on_the_card_that_x_is_on(one_gpu, problem, short_fit):
    X, y = problem
    model = short_fit(X, y, device="auto", **SHORT)
    assert model.device_ == "cpu"
    np.testing.assert_allclose(on_host(model.predict_proba(on_card(X))), model.predict_proba(X), rtol=1e-10)
