"""The passes over rows, against SciPy and the CPU, and how rows are cut."""

from functools import partial

import numpy as np
import pytest
from card import KEY, NONE, assert_all_close, log_phi_and_ratio
from laws import ALONE, along_lines, in_full
from scipy.special import log_ndtr

from skhorseshoe._backends import line_moves
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._gpu import cuda

K = 1 + line_moves.LINE_PROPOSALS
slow = partial(pytest.param, marks=pytest.mark.slow)
# Rows, columns, chains and type: one row, one column, ragged tiles of all kinds, several times as many blocks as run at
# a time (p = 300), more chains than one launch carries.
DENSE = [
    (1, 1, 1, "float32"),
    (65, 7, 2, "float32"),
    (40, 9, 16, "float64"),
    (40, 9, 12, "float16"),
    (700, 141, 4, "float32"),
    (1100, 300, 1, "float32"),
    (23, 600, 4, "float32"),
    (23, 1100, 4, "float32"),
    (23, 1900, 4, "float32"),
    (9, 2500, 4, "float32"),
    (17, 3000, 4, "float32"),
    (19, 4000, 4, "float32"),
    (9, 5000, 4, "float32"),
    (13, 3000, 4, "float16"),
    (5, 20_000, 3, "float32"),
    (131, 33, 4, "float64"),
    (30, 1001, 3, "float16"),
]
MORE_DENSE = [(65, 7, 8, "float32"), (13, 2500, 4, "float64"), (131, 33, 17, "float32")]
SETTINGS = (True, False), (False, True)  # with an intercept or with weights


def check_passes(ops, X, as_computed, y, n_chains, fit_intercept, weighted):
    """Latents are the CPU's; log-likelihoods, their gradients and those along lines are SciPy's.

    as_computed : X as the CPU takes it.
    """
    (n, _), rows, rng = X.shape, in_full(X, fit_intercept), np.random.default_rng(X.shape[0])
    coef, direction = rng.standard_normal((2, n_chains, rows.shape[1])) / np.sqrt(rows.shape[1])
    weight, steps = rng.exponential(size=n) if weighted else NONE, rng.standard_normal((n_chains, K))
    single, w, sign = X.dtype != np.float64, weight if weighted else np.ones(n), 2.0 * y - 1.0
    (held, labels, weights), given = ops.hold(X, y, weight), ops.to_device(coef)

    got = ops.to_host(ops.latent(held, labels, given, None, 9, KEY, None, 100))
    want = cpu.latent(as_computed, y, coef, np.array([0, n]), 9, KEY, ALONE, 100)
    assert_all_close(got, want, rtol=1e-5, atol=1e-5 * np.sqrt(n) if single else 1e-6)

    log_phi, ratio = log_phi_and_ratio(sign * (coef @ rows.T))
    loglik, score = ops.to_host(ops.score(held, labels, weights, given, None, None))
    np.testing.assert_allclose(loglik, log_phi @ w, rtol=1e-6 if single else 1e-12)
    close = {"rtol": 1e-5, "atol": 1e-5 * np.sqrt(n)} if single else {"rtol": 1e-10, "atol": 1e-10}
    np.testing.assert_allclose(score, (w * sign * ratio) @ rows, **close)

    got = ops.to_host(ops.line(held, labels, weights, given, *ops.to_device((direction, steps)), None, None))
    close = {"rtol": 1e-5, "atol": 1e-5} if single else {"rtol": 1e-12}
    np.testing.assert_allclose(got, along_lines(rows, sign, w, coef, direction, steps), **close)


@pytest.mark.parametrize(("n", "p", "n_chains", "dtype"), [*DENSE, *(slow(*size) for size in MORE_DENSE)])
def test_passes_over_dense_rows(n, p, n_chains, dtype, gpu):
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
    as_computed = X.astype(np.float32 if dtype == "float16" else dtype)
    as_computed.flags.writeable = False
    for settings in SETTINGS:
        check_passes(gpu, X, as_computed, y, n_chains, *settings)


@pytest.mark.parametrize(
    ("n", "p", "n_chains", "k", "dtype"), [(133, 7, 8, 32, "float16"), (23, 4000, 4, 1, "float32")]
)
def test_a_line_may_have_any_number_of_steps(n, p, n_chains, k, dtype, gpu):
    """As many as there are threads for a launch, or one."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
    coef, direction = rng.standard_normal((2, n_chains, p)) / np.sqrt(p)
    given = coef, direction, rng.standard_normal((n_chains, k))
    got = gpu.to_host(gpu.line(*gpu.hold(X, y, NONE), *map(gpu.to_device, given), None, None))
    want = along_lines(in_full(X, False), 2.0 * y - 1.0, np.ones(n), *given)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_far_out_and_in_the_tails_sums_are_finite_and_accurate(one_gpu):
    """Where a step along a line leads is not known beforehand."""
    ops, held = one_gpu, one_gpu.hold(np.ones((1, 1)), np.ones(1, np.uint8), NONE)
    for t in (-1e5, -40.0, -20.0, -3.0, -1e-9, 0.0, 3.0, 37.0, 1e5):
        loglik, score = ops.to_host(ops.score(*held, ops.to_device(np.full((1, 1), t)), None, None))
        given = map(ops.to_device, (np.zeros((1, 1)), np.ones((1, 1)), np.full((1, 1), t)))
        along = ops.to_host(ops.line(*held, *given, None, None))
        assert np.isfinite(score).all()
        for value in (loglik[0], along[0, 0]):
            np.testing.assert_allclose(value, log_ndtr(t), rtol=1e-11, atol=1e-15)
        if t < 40:
            ratio = log_phi_and_ratio(t)[1] if t >= -40 else -t - 1 / t
            np.testing.assert_allclose(score[0, 0], ratio, rtol=1e-11)


def test_float32_rows_are_summed_in_float64(one_gpu):
    totals = []
    for dtype in (np.float32, np.float64):
        X, y, _ = one_gpu.hold(np.ones((20_000, 1), dtype), np.ones(20_000, np.uint8), NONE)
        given = X, y, one_gpu.to_device(np.full((1, 1), 1000.0))
        totals.append(one_gpu.to_host(one_gpu.latent(*given, None, 0, KEY, None)))
    assert_all_close(*totals, rtol=2e-7)


def test_rows_begin_at_a_multiple_of_16_bytes(one_gpu):
    flat = one_gpu.to_device(np.arange(22, dtype=np.float32))
    X, *_ = one_gpu.hold(flat[1:].reshape(7, 3), np.ones(7, np.uint8), NONE)
    assert X.data.ptr % 16 == 0


def test_float16_rows_stay_in_16_bits(one_gpu):
    X, *_ = one_gpu.hold(np.ones((8, 3), np.float16), np.ones(8, np.uint8), NONE)
    assert (X.dtype, X.nbytes) == (np.float16, 48)


# How rows are cut -----------------------------------------------------------------------------------------------------

LIMITS, CACHED = (113 * 1024, 227 * 1024), 0.7 * 50 * 2**20 // 132  # of an H200


def test_the_passes_have_tiles_of_all_kinds():
    kinds, of_lines = set(), set()
    for _, p, n_chains, dtype in DENSE:
        cut = cuda.layout(p, p + 1, min(n_chains, cuda.PASS_CHAINS), dtype, LIMITS, CACHED)
        kinds.add((cut.tile, cut.staged, cut.shared_bytes <= LIMITS[0]))
        cut = cuda.layout(p, p + 1, min(2 * n_chains, cuda.PASS_CHAINS), dtype, LIMITS, 0, sums=False)
        of_lines.add(cut.staged)
        assert cut.shared_bytes >= 8 * cuda.THREADS
    staged = {(rows, True, two_blocks) for rows in (8, 4) for two_blocks in (True, False)}
    assert kinds >= staged | {(rows, False, True) for rows in (16, 8, 4)}
    assert of_lines == {True, False}


@pytest.mark.parametrize(("dtype", "n_chains"), [("float16", 4), ("float32", 1), ("float32", 16), ("float64", 4)])
@pytest.mark.parametrize("limits", [LIMITS, (31 * 1024, 64 * 1024)])
def test_a_tile_is_as_large_as_there_is_room_for(limits, dtype, n_chains):
    """First for two blocks on a multiprocessor, if their registers have room there, then for one."""
    _, _, element, real = cuda.TYPES[dtype]
    rows = [2**k for k in range(9) if 2**k >= (8 if dtype == "float16" else 4)]
    for p in range(1, 12_000, 7):
        sizes = {m: [m * p * element, (max(1, 32 // m) + 1) * m * n_chains * real] for m in rows}
        rest = 16 * sum(-(-size * (p + 1) * n_chains // 16) for size in (8, real))  # sums and coefficients
        some = [m for m in rows if m <= 8 or sizes[m][0] <= 2**15]
        fitting = [[m for m in some if rest + 2 * sizes[m][0] + sizes[m][1] <= limit] for limit in limits]
        if n_chains * real > 32:
            fitting[0] = []
        tiles = fitting[0] or fitting[1]
        cut = cuda.layout(p, p + 1, n_chains, dtype, limits, CACHED)
        assert cut.staged == bool(tiles)
        assert not tiles or cut.tile == max(tiles)
        assert cut.shared_bytes <= limits[1]
        assert cut.staged <= (cut.tile * p * element % 16 == 0)
