"""X with more elements, and with more rows, than 32 bits can count. Only the pages that are touched take memory."""

import mmap
import sys

import numpy as np
import pytest
from card import KEY, NONE, log_phi_and_ratio, module, truncated_normals


def zeros(shape, dtype):
    """Zeros of the fake CuPy that nobody has written yet."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0))
    return sys.modules["cupy"].ndarray(np.frombuffer(pages, dtype).reshape(shape))


def last_block(name, n, p, X, columns, coef, chains_of, random=()):
    """Sums over the rows of the last tile, by a pass of one tile to a block, and how many rows these are."""
    rows = module("dense_passes")
    plan = rows._Plan.__wrapped__(0, name, (n, p), X.dtype.name, 1, p)
    tiles = -(-n // plan.layout.tile)
    sums = sys.modules["cupy"].empty((1, p + 1, 1))
    sizes = np.int64(n), np.int32(p), np.int32(p), *chains_of
    cut = np.int32(plan.layout.tile), np.int64(0), np.int32(tiles - 1), np.int32(tiles)
    by_column = rows.padded(coef, plan.layout.chains, plan.real)
    given = X, *columns, by_column, sums, *sizes, *cut, *random
    rows.launch(plan.function, 1, *given, shared_bytes=plan.layout.shared_bytes)
    return sums._host[0, :, 0], n - (tiles - 1) * plan.layout.tile


@pytest.mark.parametrize(("n", "p"), [(2**19 + 5, 4100), (2**32 + 77, 1)])
def test_the_end_of_a_very_large_x_is_found(n, p, card):
    ops, rng = module("dense"), np.random.default_rng(p)
    X, y, coef = zeros((n, p), np.float16), zeros(n, np.uint8), rng.standard_normal((1, p)) / np.sqrt(p)
    end = rng.standard_normal((300, p)).astype(np.float16)
    X._host[-300:] = end
    y._host[-300:] = ones = rng.integers(0, 2, 300, dtype=np.uint8)
    weight, on_card = ops.to_device(NONE), ops.to_device(coef)

    sums, m = last_block("score_pass", n, p, X, (y, weight), on_card, (np.int32(1), np.int32(0)))
    x, sign = end[-m:].astype(float), 2.0 * ones[-m:] - 1.0
    t = sign * (x @ coef[0])
    log_phi, ratio = log_phi_and_ratio(t)
    np.testing.assert_allclose(sums[-1], log_phi.sum(), rtol=1e-5)
    np.testing.assert_allclose(sums[:-1], (sign * ratio) @ x, rtol=1e-3, atol=1e-4)

    random = module("launch").random_arguments(KEY, 7)
    sums, m = last_block("latent_pass", n, p, X, (y,), on_card, (np.int32(1), np.int32(0), np.int64(0)), random)
    z = truncated_normals(t.astype(np.float32), 7, n - m, KEY).astype(float)
    np.testing.assert_allclose(sums[-1], np.square(z).sum(), rtol=1e-4)
    np.testing.assert_allclose(sums[:-1], (sign * z) @ x, rtol=1e-3, atol=1e-3)
