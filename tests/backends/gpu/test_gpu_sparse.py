"""Sparse rows on a GPU: passes and matrices against NumPy and the CPU; in the emulator, or on a card."""

import importlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from card import sparse_rows
from cuda_emulator import COMPILER, fake_cupy
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils.threads import Threads

KEY = (np.uint32(0x12345678), np.uint32(0x9ABCDEF0))
ALONE = Threads(1)
NONE = np.empty(0)  # for no weights
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")


def ops():
    """The back end, in the emulator or on the card that a fixture has set up."""
    return importlib.import_module("skhorseshoe._backends._gpu.sparse")


def pieces():
    return sys.modules["skhorseshoe._backends._gpu.csr"]


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
    held, y = sparse_rows(n, p, density, dtype, index)
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
    X, _ = sparse_rows(200, 30, 0.2, index=index)
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
    X, y = sparse_rows(900, 12)
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
    X, y = sparse_rows(400, 20, dtype=dtype, index=index, whole=2.5)  # one column is centred before it is summed
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


def test_rows_can_be_taken_by_a_slice_a_mask_and_numbers(one_gpu):
    X, _ = sparse_rows(200, 12)
    rows, rng = ops().hold(X, np.zeros(200), NONE)[0], np.random.default_rng(0)
    for some in (slice(3, 150), rng.random(200) < 0.5, rng.integers(0, 200, 300), np.zeros(200, bool)):
        got, want = ops().to_host(rows[some]), X[some]
        assert got.shape == want.shape
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    assert rows[3:150][2:40].data.data.ptr == rows.data.data.ptr
    np.testing.assert_array_equal(ops().to_host(rows[3:150][2:40]).toarray(), X[5:43].toarray())
