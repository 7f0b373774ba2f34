"""X with more elements, and with more rows, than 32 bits can count. Only the pages that are touched take memory."""

import mmap
import sys

import numpy as np
import pytest
from card import truncated_normals
from cuda_emulator import COMPILER, fake_cupy
from scipy import stats
from scipy.special import log_ndtr

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs g++")
KEY = np.uint32(3), np.uint32(4)
SIZES = [(2**19 + 5, 4100), (2**32 + 77, 1)]  # rows and columns


@pytest.fixture(scope="module")
def ops():
    import importlib

    with fake_cupy.installed():
        yield importlib.import_module("skhorseshoe._backends._gpu.dense")


def zeros(shape, dtype):
    """Zeros of the fake CuPy that nobody has written yet."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
    return sys.modules["cupy"].ndarray(np.frombuffer(pages, dtype).reshape(shape))


def last_block(name, n, p, X, columns, coef, chains_of, random=()):
    """Sums over the rows of the last tile, by a pass of one tile to a block, and how many rows these are."""
    rows = sys.modules["skhorseshoe._backends._gpu.dense_passes"]
    plan = rows._Plan.__wrapped__(0, name, (n, p), X.dtype.name, 1, p)
    tiles = -(-n // plan.layout.tile)
    sums = sys.modules["cupy"].empty((1, p + 1, 1))
    sizes = np.int64(n), np.int32(p), np.int32(p), *chains_of
    cut = np.int32(plan.layout.tile), np.int32(plan.layout.buffers), np.int64(0), np.int32(tiles - 1), np.int32(tiles)
    by_column = rows.padded(coef, plan.layout.chains, plan.real)
    given = X, *columns, by_column, sums, *sizes, *cut, *random
    rows.launch(plan.function, 1, *given, shared_bytes=plan.layout.shared_bytes)
    return sums._host[0, :, 0], n - (tiles - 1) * plan.layout.tile


@pytest.mark.parametrize(("n", "p"), SIZES)
def test_the_end_of_a_very_large_x_is_found(n, p, ops):
    rng = np.random.default_rng(p)
    X, y, coef = zeros((n, p), np.float16), zeros(n, np.uint8), rng.standard_normal((1, p)) / np.sqrt(p)
    end = rng.standard_normal((300, p)).astype(np.float16)
    X._host[-300:] = end
    y._host[-300:] = ones = rng.integers(0, 2, 300, dtype=np.uint8)
    weight, on_card = ops.to_device(np.empty(0)), ops.to_device(coef)

    sums, m = last_block("score_pass", n, p, X, (y, weight), on_card, (np.int32(1), np.int32(0)))
    x, sign = end[-m:].astype(float), 2.0 * ones[-m:] - 1.0
    t = sign * (x @ coef[0])
    np.testing.assert_allclose(sums[-1], log_ndtr(t).sum(), rtol=1e-5)
    ratio = np.exp(stats.norm.logpdf(t) - log_ndtr(t))
    np.testing.assert_allclose(sums[:-1], (sign * ratio) @ x, rtol=1e-3, atol=1e-4)

    random = sys.modules["skhorseshoe._backends._gpu.sweep_counter"].random_arguments(KEY, 7)
    sums, m = last_block("latent_pass", n, p, X, (y,), on_card, (np.int32(1), np.int32(0), np.int64(0)), random)
    z = truncated_normals(t.astype(np.float32), 7, n - m, *KEY).astype(float)
    np.testing.assert_allclose(sums[-1], np.square(z).sum(), rtol=1e-4)
    np.testing.assert_allclose(sums[:-1], (sign * z) @ x, rtol=1e-3, atol=1e-3)
