"""Questions to rows on a GPU beside the passes, dense and sparse, against NumPy and the CPU."""

import numpy as np
import pytest
import scipy.sparse as sp
from card import NONE, module, sparse_rows
from laws import ALONE
from scipy.special import ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.rows import Rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_dense_matrices_and_moments_are_those_of_the_cpu(dtype, weighted, one_gpu, monkeypatch):
    """Of columns that are moved and scaled, in one block of rows or in several."""
    rng = np.random.default_rng(0)
    X, y, beta = rng.standard_normal((300, 6)).astype(dtype), np.ones(300, np.uint8), rng.standard_normal((3, 7)) / 2
    weight = rng.exponential(size=300) if weighted else NONE

    def answers(ops, X, weight, threads):
        centre, scale = np.linspace(-1, 1, 6), np.linspace(0.5, 2, 6)
        plain = ops.gram(X, weight, np.zeros(6), np.ones(6), True, threads)
        return [plain, ops.gram(X, weight, centre, scale, True, threads, beta), *ops.moments(X, weight)]

    as_computed = X.astype(np.float32) if dtype == "float16" else X
    want, (X, _, weight) = answers(cpu, as_computed, weight, ALONE), one_gpu.hold(X, y, weight)
    for elements in (2**25, 7 * 40):
        monkeypatch.setattr(module("dense_passes"), "WIDENED", elements)
        for ours, theirs in zip(answers(one_gpu, X, weight, None), want, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-10)


def test_averages_of_probabilities_sum_both_tails(one_gpu):
    eta = np.random.default_rng(0).standard_normal((150, 300)) * np.linspace(1, 20, 300)
    got = one_gpu.to_host(one_gpu.average_phi(one_gpu.to_device(eta)))
    np.testing.assert_allclose(got, np.column_stack([ndtr(-eta).mean(axis=1), ndtr(eta).mean(axis=1)]), rtol=1e-11)


def test_quantiles_are_those_of_the_cpu(one_gpu):
    """Of numbers, and of a function of them."""
    eta, levels = np.random.default_rng(0).standard_normal((20, 301)), [0.05, 0.5, 0.97]
    for of, theirs in ((None, None), (one_gpu.ndtr, ndtr)):
        got = one_gpu.to_host(one_gpu.quantiles(one_gpu.to_device(eta), levels, of))
        np.testing.assert_allclose(got, cpu.quantiles(eta.copy(), levels, theirs), rtol=1e-12)


@pytest.mark.parametrize(
    ("dtype", "index", "standardize", "weighted"),
    [("float32", "int64", True, False), ("float64", "int32", False, True)],
)
def test_every_question_has_the_answer_of_the_rows_in_full(dtype, index, standardize, weighted, gpu):
    X, y = sparse_rows(400, 20, dtype=dtype, index=index, whole=2.5)  # one column is centred before it is summed
    rng, ops = np.random.default_rng(0), module("sparse")
    weight = rng.random(400) + 0.5 if weighted else None
    settings = {"weight": weight, "unpenalized": np.arange(20) == 5, "standardize": standardize}
    full, ours = (Rows(rows, y, True, back_end, ALONE, **settings) for rows, back_end in ((X.toarray(), cpu), (X, ops)))
    np.testing.assert_allclose(ours.columns.mean, full.columns.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.columns.sd, full.columns.sd, rtol=1e-12)
    assert np.flatnonzero(~ours.columns.informative).tolist() == [0, 19]  # without spread, not even by rounding
    assert ours.checksums()["y"] == full.checksums()["y"]
    np.testing.assert_allclose(ours.gram(), full.gram(), rtol=1e-10, atol=1e-9)
    beta = 0.3 * rng.standard_normal((5, 21))
    np.testing.assert_allclose(ours.information(ops.to_device(beta)), full.information(beta), rtol=1e-9, atol=1e-8)
    assert ours.separated_by(ops.to_device(beta)) is full.separated_by(beta) is False
    separable = Rows(sp.csr_array(2.0 * y[:, None] - 1), y, False, ops, ALONE)
    assert separable.separated_by(ops.to_device(np.array([[1.0], [-1.0]])))


def test_a_column_of_one_number_has_no_variance(one_gpu):
    for seed in range(5):
        weight, ops = np.random.default_rng(seed).exponential(size=999), module("sparse")
        X, _, weight = ops.hold(sp.csr_array(np.full((999, 1), 0.1)), np.zeros(999), weight)
        (mean,), (variance,) = ops.moments(X, weight)
        assert (mean, variance) == (0.1, 0.0)


def test_a_matrix_of_more_columns_than_a_strip_has(one_gpu):
    X, ops = sp.random(60, 1100, density=0.05, format="csr", random_state=0), module("sparse")
    held, _, weight = ops.hold(X, np.zeros(60), NONE)
    H = ops.gram(held, weight, np.zeros(1100), np.ones(1100), False, None)
    np.testing.assert_allclose(H, (X.T @ X).toarray(), rtol=1e-12, atol=1e-12)


def test_a_centred_column_far_from_zero_keeps_its_digits(one_gpu):
    rng, ops = np.random.default_rng(0), module("sparse")
    X = np.column_stack([1e6 + rng.standard_normal(500), rng.random(500) < 0.1])
    centre, scale = X.mean(axis=0), X.std(axis=0)
    held, _, weight = ops.hold(sp.csr_array(X), np.zeros(500), NONE)
    H = ops.gram(held, weight, centre, scale, True, None)
    np.testing.assert_allclose(H, cpu.gram(X, NONE, centre, scale, True, ALONE), rtol=1e-9, atol=1e-6)
    mean, variance = ops.moments(held, weight)
    np.testing.assert_allclose(mean, X.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose(variance, X.var(axis=0), rtol=1e-9)


def test_rows_can_be_taken_by_a_slice_a_mask_and_numbers(one_gpu):
    X, _ = sparse_rows(200, 12)
    rows, rng = module("sparse").hold(X, np.zeros(200), NONE)[0], np.random.default_rng(0)
    for some in (slice(3, 150), rng.random(200) < 0.5, rng.integers(0, 200, 300), np.zeros(200, bool)):
        got, want = one_gpu.to_host(rows[some]), X[some]
        assert got.shape == want.shape
        for name in ("data", "indices", "indptr"):
            np.testing.assert_array_equal(getattr(got, name), getattr(want, name))
    assert rows[3:150][2:40].data.data.ptr == rows.data.data.ptr
    np.testing.assert_array_equal(one_gpu.to_host(rows[3:150][2:40]).toarray(), X[5:43].toarray())
