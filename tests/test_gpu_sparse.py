"""Sparse rows on a GPU: passes, matrices, fits and answers against NumPy and the CPU; in the emulator, or on a card."""

import importlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from card import SHORT, assert_same_model, check_answer, held_by_fits, on_host
from cuda_emulator import COMPILER, fake_cupy
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector, _adapt, _iterative
from skhorseshoe._design import Rows
from skhorseshoe._ops import cpu, sparse
from skhorseshoe._stage import MAX_STEPS
from skhorseshoe._threads import Threads

KEY = (np.uint32(0x12345678), np.uint32(0x9ABCDEF0))
ALONE = Threads(1)
NONE = np.empty(0)  # for no weights
SHORTEST = {"burn_in": 1, "n_iter": 1}
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")


def ops():
    """The back end, in the emulator or on the card that a fixture has set up."""
    return importlib.import_module("skhorseshoe._ops.gpu_sparse")


def pieces():
    return sys.modules["skhorseshoe._ops._gpu_csr"]


def made(n, p, density=0.2, dtype="float64", index="int32", whole=None):
    """Rows, some of them empty; the last column is empty; zeros are stored too.

    The first column is stored in all other rows, or has this number in all.
    """
    rng = np.random.default_rng(2)
    X = np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)) + 1, 0.0)
    X[:, 0], X[:, max(1, p - 1) :] = 1.0 + rng.random(n), 0.0
    X[::7] = 0.0
    X[:, 0] = X[:, 0] if whole is None else whole
    X = sp.csr_array(X.astype(dtype))
    X.data[(rng.random(X.nnz) < 0.1) & (X.indices > 0)] = 0.0
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = rng.integers(0, 2, n).astype(np.uint8)
    return X, y


def on_card(X):
    """A CSR matrix of CuPy's."""
    return sys.modules["cupyx.scipy.sparse"].csr_matrix(X)


# Rows, columns, share that is stored, chains, types: one row, one column, ragged blocks and tiles, rows of many lanes
# and of one, columns of several pieces, columns without a number, nothing stored, more chains than a launch has.
PASSES = [
    (1, 1, 1.0, 1, "float32", "int32"),
    (130, 1, 0.5, 2, "float64", "int64"),
    (1, 40, 0.5, 3, "float64", "int32"),
    (700, 5, 0.3, 4, "float32", "int32"),
    pytest.param(300, 33, 0.8, 5, "float32", "int64", marks=pytest.mark.slow),
    (65, 300, 0.02, 4, "float64", "int64"),
    pytest.param(129, 7, 0.2, 8, "float32", "int32", marks=pytest.mark.slow),
    pytest.param(90, 4, 0.5, 17, "float64", "int32", marks=pytest.mark.slow),
    (20, 6, 0.0, 2, "float64", "int32"),
]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("n", "p", "density", "n_chains", "dtype", "index"), PASSES)
def test_passes_give_the_sums_of_the_rows_in_full(
    n, p, density, n_chains, dtype, index, fit_intercept, gpu, monkeypatch
):
    held, y = made(n, p, density, dtype, index)
    if density == 0.0:
        held = sp.csr_array((n, p), dtype=dtype)
    coef = np.random.default_rng(n).standard_normal((n_chains, p + fit_intercept)) / np.sqrt(p * density + 1)
    given = ops().to_device(coef)
    monkeypatch.setattr(pieces(), "_PIECE", 8)
    X, labels, _ = ops().hold(held, y, NONE)
    single = dtype == "float32"

    got = map(ops().to_host, ops().latent(X, labels, given, None, 9, KEY, None, 100))
    want = sparse.latent(held, y, coef, np.array([0, n]), 9, KEY, ALONE, 100)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5 * np.sqrt(n) if single else 1e-6)

    rows, sign = held.toarray().astype(np.float64), 2.0 * y - 1.0
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(n)])
    t = sign * (coef @ rows.T)
    ratio = np.exp(stats.norm.logpdf(t) - log_ndtr(t))
    for weight in (NONE, np.random.default_rng(n).exponential(size=n)):
        w = weight if len(weight) else np.ones(n)
        loglik, score = map(ops().to_host, ops().score(X, labels, ops().to_device(weight), given, None, None))
        np.testing.assert_allclose(loglik, log_ndtr(t) @ w, rtol=1e-6 if single else 1e-12)
        tolerance = {"rtol": 1e-5, "atol": 1e-5 * np.sqrt(n)} if single else {"rtol": 1e-11, "atol": 1e-11}
        np.testing.assert_allclose(score, (w * sign * ratio) @ rows, **tolerance)
        got = ops().to_host(ops().gram_product(X, ops().to_device(weight), given, None, None))
        np.testing.assert_allclose(got, coef @ ((rows.T * w) @ rows), rtol=1e-11, atol=1e-11)
        shape = n_chains, p + fit_intercept
        got = ops().to_host(ops().gram_noise(X, ops().to_device(weight), shape, None, 3, 4, 5, KEY, None))
        want = sparse.gram_noise(held, weight, shape, np.array([0, n]), 3, 4, 5, KEY, ALONE)
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)


def test_a_very_long_column_is_cut_into_pieces_and_summed_in_float64(one_gpu):
    n = 3000
    X, y = sp.csr_array(np.full((n, 1), 1.0, np.float32)), np.ones(n, np.uint8)
    held, labels, _ = ops().hold(X, y, NONE)
    assert held.by_column.n_pieces == 3
    coef = np.full((1, 2), 500.0)
    totals = ops().latent(held, labels, ops().to_device(coef), None, 0, KEY, None)
    exact = sparse.latent(X.astype(np.float64), y, coef, np.array([0, n]), 0, KEY, ALONE)
    for ours, theirs in zip(map(ops().to_host, totals), exact, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-7)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_the_copy_by_columns_is_that_of_scipy(index, one_gpu, monkeypatch):
    monkeypatch.setattr(pieces(), "_PIECE", 16)
    X, _ = made(200, 30, 0.2, index=index)
    columns, want = ops().hold(X, np.zeros(200), NONE)[0].by_column, X.tocsc()
    data, rows, starts, cuts, firsts = map(ops().to_host, columns[:5])
    np.testing.assert_array_equal(data, want.data)
    np.testing.assert_array_equal(rows, want.indices)
    np.testing.assert_array_equal(starts, want.indptr)
    np.testing.assert_array_equal(cuts[firsts[:31]], want.indptr)
    assert (np.diff(cuts) <= 16).all()
    assert (np.diff(cuts) > 0).all()
    np.testing.assert_array_equal(columns.stored, np.diff(want.indptr))


@needs_compiler
def test_the_cut_of_the_rows_does_not_depend_on_the_card():
    X, y = made(900, 12)
    coef, answers = np.random.default_rng(0).standard_normal((3, 13)), []
    for multiprocessors in (1, 132):
        with fake_cupy.installed() as card:
            card.properties["multiProcessorCount"] = multiprocessors
            held, labels, weight = ops().hold(X, y, NONE)
            answers.append(ops().to_host(ops().score(held, labels, weight, ops().to_device(coef), None, None)))
    for one, other in zip(*answers, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize(
    ("dtype", "index"), [("float32", "int64"), pytest.param("float64", "int32", marks=pytest.mark.slow)]
)
def test_every_question_has_the_answer_of_the_rows_in_full(dtype, index, standardize, weighted, gpu):
    X, y = made(400, 20, dtype=dtype, index=index, whole=2.5)  # one column is centred before it is summed
    rng = np.random.default_rng(0)
    weight = rng.random(400) + 0.5 if weighted else None
    settings = {"weight": weight, "unpenalized": np.arange(20) == 5, "standardize": standardize}
    full, ours = (
        Rows(rows, y, True, back_end, ALONE, **settings) for rows, back_end in ((X.toarray(), cpu), (X, ops()))
    )
    np.testing.assert_allclose(ours.columns.mean, full.columns.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.columns.sd, full.columns.sd, rtol=1e-12)
    assert np.flatnonzero(~ours.columns.informative).tolist() == [0, 19]  # without spread, not even by rounding
    assert ours.checksums()["y"] == full.checksums()["y"]
    np.testing.assert_allclose(ours.gram(), full.gram(), rtol=1e-10, atol=1e-9)
    beta = 0.3 * rng.standard_normal((5, 21))
    information = ours.information(ops().to_device(beta))
    np.testing.assert_allclose(information, full.information(beta), rtol=1e-9, atol=1e-8)
    assert ours.separated_by(ops().to_device(beta)) is full.separated_by(beta) is False
    separable = Rows(sp.csr_array(2.0 * y[:, None] - 1), y, False, ops(), ALONE)
    assert separable.separated_by(ops().to_device(np.array([[1.0], [-1.0]])))


def test_a_column_of_one_number_has_no_variance_not_even_by_rounding(one_gpu):
    for seed in range(5):
        weight = np.random.default_rng(seed).exponential(size=999)
        held = ops().hold(sp.csr_array(np.full((999, 1), 0.1)), np.zeros(999), weight)
        (mean,), (variance,) = ops().moments(held[0], held[2])
        assert (mean, variance) == (0.1, 0.0)


def test_a_matrix_of_more_columns_than_a_strip_has(one_gpu, monkeypatch):
    X = sp.random(60, 1100, density=0.05, format="csr", random_state=0)
    held, _, weight = ops().hold(X, np.zeros(60), NONE)
    H = ops().gram(held, weight, np.zeros(1100), np.ones(1100), False, None)
    np.testing.assert_allclose(H, (X.T @ X).toarray(), rtol=1e-12, atol=1e-12)


def test_a_column_far_from_zero_keeps_its_digits_when_it_is_centred(one_gpu):
    rng = np.random.default_rng(0)
    X = np.column_stack([1e6 + rng.standard_normal(500), rng.random(500) < 0.1])
    centre, scale = X.mean(axis=0), X.std(axis=0)
    held, _, weight = ops().hold(sp.csr_array(X), np.zeros(500), NONE)
    H = ops().gram(held, weight, centre, scale, True, None)
    np.testing.assert_allclose(H, cpu.gram(X, NONE, centre, scale, True, ALONE), rtol=1e-9, atol=1e-6)
    mean, variance = ops().moments(held, weight)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(variance, X.var(axis=0), rtol=1e-9)


FITS = {
    "gibbs": {"sampler": "gibbs", "standardize": True},
    "pxda": {"sampler": "pxda", "fit_intercept": False},
    "hmc": {"sampler": "hmc", "standardize": True, "unpenalized": [1, 4], "slab_scale": 2.0},
    "hmc, weights": {"sampler": "hmc", "class_weight": {0: 0.5, 1: 1.7}, "n_chains": 5, "n_iter": 5},
    "hmc, float32": {"sampler": "hmc", "burn_in": 20, "n_iter": 10},
}


@pytest.fixture(scope="module")
def data():
    X, _ = made(300, 9, 0.3)
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
    monkeypatch.setattr(_iterative, "LARGEST_FACTOR", 0)
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
    X, y = made(11_000, 6, 0.1, "float32")  # a small X would be sorted
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
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[40:42]), proba[40:42])
    monkeypatch.setattr(sys.modules["skhorseshoe._ops._gpu_answers"], "_ROWS", 7)
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


def test_rows_can_be_taken_by_a_slice_a_mask_and_numbers(one_gpu):
    X, _ = made(200, 12)
    rows, rng = ops().hold(X, np.zeros(200), NONE)[0], np.random.default_rng(0)
    for some in (slice(3, 150), rng.random(200) < 0.5, rng.integers(0, 200, 300), np.zeros(200, bool)):
        got, want = ops().to_host(rows[some]), X[some]
        assert got.shape == want.shape
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    assert rows[3:150][2:40].data.data.ptr == rows.data.data.ptr
    np.testing.assert_array_equal(ops().to_host(rows[3:150][2:40]).toarray(), X[5:43].toarray())


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
        ("pxda", 12_000, 40, 0.02, 2, False),
        ("pxda", 6000, 20, 1.0, 1, False),
        ("pxda", 100, 120, 0.02, 9, True),
        pytest.param("hmc, recorded", 12_000, 20, 0.02, 2, False, marks=pytest.mark.slow),
    ],
)
def test_the_forecast_is_enough_and_memory_is_given_back(
    sampler, n, p, density, n_chains, iterative, card, short_fit, monkeypatch
):
    monkeypatch.setattr(_iterative, "LARGEST_FACTOR", 8000 * (1 - iterative))
    X = sp.random(n, p, density=density, format="csr", random_state=0)
    sampler, recorded = sampler.split(",")[0], "recorded" in sampler
    length = {"burn_in": 40, "n_iter": 3} if recorded else SHORTEST
    monkeypatch.setattr(_adapt, "enough_steps", lambda step: MAX_STEPS)  # a recording keeps what each takes
    short_fit(X, np.arange(n) % 2, device="cuda", sampler=sampler, n_chains=n_chains, slab_scale=1.0, **length)
    assert card.held_when_freed == 0
    taken = card.memory.most - X.data.nbytes - X.indices.nbytes - X.indptr.nbytes
    forecast = sys.modules["skhorseshoe._ops._gpu_sparse_memory"].working_set(X, n_chains, sampler)
    assert taken < forecast < 3 * taken + 2**22  # with what answers to rows take, and what is always there
    if density < 0.1 and not iterative:
        assert card.memory.most < 8 * n * p + 2**21  # X is never made dense


@needs_compiler
def test_a_fit_without_room_is_refused_before_it_starts(card, data, short_fit):
    card.free = 2**16
    with pytest.raises(MemoryError, match=r"1 MiB for X and \d+ MiB of working set.*device='cpu'"):
        short_fit(*data, device="cuda")
