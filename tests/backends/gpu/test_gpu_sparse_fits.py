"""Fits and answers of sparse rows on a GPU against those of the CPU, and CuPy's CSR matrices in and out."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from card import SHORT, assert_same_model, check_answer, check_any_batch, held_by_fits, on_host, sparse_rows
from cuda_emulator import COMPILER, fake_cupy

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._backends import limits
from skhorseshoe._backends.limits import MAX_STEPS
from skhorseshoe._mcmc import hmc_burn_in

SHORTEST = {"burn_in": 1, "n_iter": 1}
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")


def on_card(X):
    """A CSR matrix of CuPy's."""
    return sys.modules["cupyx.scipy.sparse"].csr_matrix(X)


FITS = {
    "gibbs": {"sampler": "gibbs", "standardize": True},
    "pxda": {"sampler": "pxda", "fit_intercept": False},
    "hmc": {"sampler": "hmc", "standardize": True, "unpenalized": [1, 4], "slab_scale": 2.0},
    "hmc, weights": {"sampler": "hmc", "class_weight": {0: 0.5, 1: 1.7}, "n_chains": 5, "n_iter": 5},
    "hmc, float32": {"sampler": "hmc", "burn_in": 20, "n_iter": 10},
}


@pytest.fixture(scope="module")
def data():
    X, _ = sparse_rows(300, 9, 0.3)
    y = (X @ np.array([1.0, -1.5, 1, 0, 0, 0, 0, 0, 0]) + np.random.default_rng(0).standard_normal(300) > 1).astype(int)
    return X, y


def draws_of(model):
    log_tau = np.log(model.global_scale_draws_)[..., None]
    return np.concatenate([model.coef_draws_, model.intercept_draws_[..., None], log_tau], axis=2)


@pytest.mark.parametrize("fit", FITS)
def test_the_first_draws_are_those_of_the_cpu(fit, one_gpu, data, short_fit):
    X, y = data
    X = X.astype(np.float32) if "float32" in fit else X
    params = {"burn_in": 30, "n_iter": 10, **FITS[fit]}
    ours, theirs = (short_fit(X, y, device=device, **params) for device in ("cuda", "cpu"))
    assert (ours.device_, theirs.device_) == ("cuda:0", "cpu")
    tolerance = 1e-2 if "float32" in fit else 1e-4
    np.testing.assert_allclose(draws_of(ours), draws_of(theirs), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=tolerance)


@pytest.mark.parametrize(("sampler", "kind"), [("gibbs", "sparse"), ("pxda", "sparse"), ("pxda", "dense")])
def test_draws_by_conjugate_gradients_are_those_of_the_cpu(sampler, kind, one_gpu, data, short_fit, monkeypatch):
    monkeypatch.setattr(limits, "LARGEST_FACTOR", 0)
    X, y = data
    X = X.toarray() if kind == "dense" else X
    params = {"sampler": sampler, "standardize": True, "unpenalized": [1], "burn_in": 8, "n_iter": 6, "n_chains": 3}
    ours, theirs = (short_fit(X, y, device=device, **params) for device in ("cuda", "cpu"))
    np.testing.assert_allclose(draws_of(ours), draws_of(theirs), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.shrinkage_, theirs.shrinkage_, atol=1e-4)


@needs_compiler
@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_draws_have_the_same_bits_in_any_order_of_threads_and_every_time(sampler, data, short_fit):
    models = []
    for order in ("forward", "reverse", "random", "forward"):
        with fake_cupy.installed(order):
            models.append(short_fit(*data, device="cuda", sampler=sampler, burn_in=4, n_iter=4, n_chains=2))
    for other in models[1:]:
        np.testing.assert_array_equal(draws_of(models[0]), draws_of(other))


@pytest.mark.parametrize("sampler", ["hmc", "gibbs"])
def test_cupy_rows_give_the_draws_of_scipy_rows(sampler, one_gpu, data, short_fit):
    X, y = data
    weight = np.arange(len(y)) % 3  # rows of weight 0 are left out, those of weight 2 repeated or weighted
    models = []
    for rows, labels in ((X, y), (on_card(X), sys.modules["cupy"].asarray(y))):
        model = HorseshoeProbitClassifier(device="cuda", sampler=sampler, random_state=1, **SHORT)
        with pytest.warns(UserWarning, match="not converged"):
            models.append(model.fit(rows, labels, sample_weight=weight))
    assert_same_model(*models[::-1])


def test_cupy_rows_are_read_where_they_are(one_gpu, short_fit, monkeypatch):
    X, y = sparse_rows(11_000, 6, 0.1, "float32")  # a small X would be sorted
    X, held = on_card(X), held_by_fits(monkeypatch)
    model = short_fit(X, y, sampler="gibbs", burn_in=0, n_iter=1, n_chains=1)  # device="auto" is where X is
    assert model.device_ == "cuda:0"
    for name in ("data", "indices", "indptr"):
        assert getattr(held[0], name).data.ptr == getattr(X, name).data.ptr


@pytest.fixture(scope="module")
def fitted(one_gpu, data, short_fit):
    """A model fitted on the GPU, and other rows than those of the fit."""
    return short_fit(*data, device="cuda", burn_in=20, n_iter=100), data[0][:90]


@pytest.mark.parametrize(
    "answer", ["predict", "predict_proba", "decision_function", "predict_interval", "predict_proba_samples"]
)
def test_answers_are_those_of_the_cpu_and_are_where_x_is(answer, fitted):
    model, X = fitted
    check_answer(model, answer, X, on_card)


def test_a_row_has_the_same_answer_in_any_batch(fitted, monkeypatch):
    model, X = fitted
    proba = check_any_batch(model, X)
    monkeypatch.setattr(sys.modules["skhorseshoe._backends._gpu.predict"], "_ROWS", 7)
    np.testing.assert_array_equal(model.predict_proba(X), proba)
    np.testing.assert_array_equal(on_host(model.predict_proba(on_card(X))), proba)


def test_a_model_of_the_cpu_answers_on_the_card_that_x_is_on(one_gpu, data, short_fit):
    X, y = data
    model = short_fit(X, y, **SHORT)
    assert model.device_ == "cpu"
    np.testing.assert_allclose(on_host(model.predict_proba(on_card(X))), model.predict_proba(X), rtol=1e-10)


def test_other_numbers_and_numbers_stored_twice_are_converted_in_a_copy(fitted):
    model, X = fitted
    whole = X.copy()
    whole.data = np.rint(whole.data)
    np.testing.assert_array_equal(on_host(model.predict_proba(on_card(whole != 0))), model.predict_proba(whole != 0))
    starts = 2 * X.indptr
    twice = sp.csr_array((np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), starts), shape=X.shape)
    given = on_card(twice)
    np.testing.assert_array_equal(on_host(model.predict_proba(given)), model.predict_proba(X))
    assert given.data.size == 2 * X.nnz


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda X: X[:0], r"Found array with 0 sample\(s\) \(shape=\(0, 9\)\)"),
        (lambda X: X.astype(complex), "dtype complex128; real numbers are needed"),
        (lambda X: X * np.nan, "X contains NaN or infinity"),
        (lambda X: X[:, :5], "X has 5 features, but HorseshoeProbitClassifier is expecting 9 features"),
    ],
)
def test_bad_cupy_rows_are_refused(spoil, message, fitted, data):
    bad = on_card(spoil(fitted[1]))
    with pytest.raises(ValueError, match=message):
        fitted[0].predict(bad)
    if "features, but" not in message:
        with pytest.raises(ValueError, match=message):
            HorseshoeProbitClassifier().fit(bad, data[1])


def test_cupy_rows_in_another_format_are_refused(fitted):
    bad = sys.modules["cupyx.scipy.sparse"].csc_matrix(fitted[1].tocsc())
    with pytest.raises(ValueError, match=r"matrix in 'csc' format; sparse rows on a GPU are CSR: give X.tocsr\(\)"):
        fitted[0].predict(bad)


def test_a_device_or_a_sampler_that_such_rows_cannot_have_is_refused(one_gpu, data):
    X, y = data
    with pytest.raises(ValueError, match=r"on 'cuda:0' and device='cpu' is asked for.*X\.get\(\)"):
        HorseshoeProbitClassifier(device="cpu").fit(on_card(X), y)
    for rows in (X, on_card(X)):
        with pytest.raises(ValueError, match=r"sampler='collapsed' reads dense rows, and X is sparse"):
            HorseshoeProbitClassifier(sampler="collapsed", device="cuda").fit(rows, y)


def test_chains_can_be_gone_on_with_wherever_the_rows_are(one_gpu, data, short_fit):
    X, y = data
    whole = short_fit(X, y, device="cuda", **{**SHORT, "n_iter": 10})
    parts = short_fit(X, y, device="cuda", warm_start=True, **SHORT)
    with pytest.warns(UserWarning, match="not converged"):
        parts.fit(on_card(X), y)
    np.testing.assert_allclose(parts.coef_draws_, whole.coef_draws_, rtol=1e-9)


@pytest.mark.parametrize("rule", ["dss", "shrinkage"])
def test_columns_are_selected_as_from_rows_of_the_host(rule, one_gpu, data, short_fit):
    X, y = data
    model = short_fit(X, y, device="cuda", burn_in=20, n_iter=60)
    selectors = [HorseshoeSelector(model, rule=rule, prefit=True).fit(rows, y) for rows in (X, on_card(X))]
    np.testing.assert_array_equal(*(selector.support_ for selector in selectors))


@pytest.fixture
def card():
    with fake_cupy.installed() as card:
        yield card


@needs_compiler
@pytest.mark.parametrize(
    ("sampler", "n", "p", "density", "n_chains", "iterative"),
    [
        ("hmc", 200, 150, 0.02, 3, False),
        pytest.param("hmc, recorded", 200, 150, 0.02, 3, False, marks=pytest.mark.slow),
        ("pxda", 12_000, 40, 0.02, 2, False),
        ("pxda", 6000, 20, 1.0, 1, False),
        ("pxda", 100, 120, 0.02, 9, True),
        pytest.param("hmc, recorded", 12_000, 20, 0.02, 2, False, marks=pytest.mark.slow),
    ],
)
def test_the_forecast_is_enough_and_memory_is_given_back(
    sampler, n, p, density, n_chains, iterative, card, short_fit, monkeypatch
):
    monkeypatch.setattr(limits, "LARGEST_FACTOR", 8000 * (1 - iterative))
    X = sp.random(n, p, density=density, format="csr", random_state=0)
    sampler, recorded = sampler.split(",")[0], "recorded" in sampler
    length = {"burn_in": 40, "n_iter": 3} if recorded else SHORTEST
    monkeypatch.setattr(hmc_burn_in, "enough_steps", lambda *given: MAX_STEPS)  # a recording keeps what each takes
    short_fit(X, np.arange(n) % 2, device="cuda", sampler=sampler, n_chains=n_chains, slab_scale=1.0, **length)
    assert card.held_when_freed == 0
    taken = card.memory.most - X.data.nbytes - X.indices.nbytes - X.indptr.nbytes
    forecast = sys.modules["skhorseshoe._backends._gpu.sparse_memory"].working_set(X, n_chains, sampler)
    assert taken < forecast
    if recorded or sampler != "hmc":  # which keeps much where its sweeps are recorded
        assert forecast < 3 * taken + 2**22  # with what answers to rows take, and what is always there
    if density < 0.1 and not iterative and not recorded:
        assert card.memory.most < 8 * n * p + 2**21  # X is never made dense


@needs_compiler
def test_a_fit_without_room_is_refused_before_it_starts(card, data, short_fit):
    card.free = 2**16
    with pytest.raises(MemoryError, match=r"1 MiB for X and \d+ MiB of working set.*device='cpu'"):
        short_fit(*data, device="cuda")
