"""Questions to rows on a GPU beside the passes, against NumPy and the CPU."""

import numpy as np
import pytest
from card import NONE, module
from laws import ALONE
from scipy.special import ndtr

from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._model import PROBIT


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
        monkeypatch.setattr(module("dense_passes"), "WIDENED_NUMBERS", elements)
        for ours, theirs in zip(answers(one_gpu, X, weight, None), want, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-10)


def test_averages_of_probabilities_sum_both_tails(one_gpu):
    eta = np.random.default_rng(0).standard_normal((150, 300)) * np.linspace(1, 20, 300)
    got = one_gpu.to_host(one_gpu.average_probabilities(one_gpu.to_device(eta), PROBIT))
    np.testing.assert_allclose(got, np.column_stack([ndtr(-eta).mean(axis=1), ndtr(eta).mean(axis=1)]), rtol=1e-11)


def test_quantiles_are_those_of_the_cpu(one_gpu):
    """Of numbers, and of a function of them."""
    eta, levels = np.random.default_rng(0).standard_normal((20, 301)), [0.05, 0.5, 0.97]
    for of, theirs in ((None, None), (one_gpu.special.ndtr, ndtr)):
        got = one_gpu.to_host(one_gpu.quantiles(one_gpu.to_device(eta), levels, of))
        np.testing.assert_allclose(got, cpu.quantiles(eta.copy(), levels, theirs), rtol=1e-12)
