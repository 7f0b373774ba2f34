"""Log-likelihoods along lines, and the moves that ask for them, against NumPy, SciPy and the CPU.

In the emulator, or on a card with ``pytest -m gpu``.
"""

import importlib
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from card import sparse_rows
from cuda_emulator import COMPILER, fake_cupy
from scipy.special import log_ndtr

from skhorseshoe._backends import lines as _lines
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._backends._gpu import cuda
from skhorseshoe._data.rows import Rows
from skhorseshoe._mcmc.prior import FixedPrior
from skhorseshoe._utils.threads import Threads

KEY = (np.uint32(0x12345678), np.uint32(0x9ABCDEF0))
ALONE = Threads(1)
NONE = np.empty(0)  # for no weights
K = 1 + _lines.PROPOSALS


def module(name):
    return importlib.import_module(f"skhorseshoe._backends._gpu.{name}")


def asked(n_chains, q, k=K):
    """Coefficients, directions and steps."""
    rng = np.random.default_rng(q)
    coef, direction = rng.standard_normal((2, n_chains, q)) / np.sqrt(q)
    steps = rng.standard_normal((n_chains, k))
    steps[:, 0] = 0.0
    return coef, direction, steps


def labelled(n, weighted):
    rng = np.random.default_rng(n)
    return rng.integers(0, 2, n).astype(np.uint8), rng.exponential(size=n) if weighted else NONE


def by_formula(X, y, weight, coef, direction, steps):
    """sum_i w_i log Phi(s_i (eta_i + step change_i)) in float64; X : rows in full, of numbers as they are stored."""
    rows = X.astype(np.float64)
    if coef.shape[1] > X.shape[1]:
        rows = np.column_stack([rows, np.ones(len(rows))])
    eta, change = coef @ rows.T, direction @ rows.T
    t = (2.0 * y - 1.0) * (eta[:, None] + steps[:, :, None] * change[:, None])
    return log_ndtr(t) @ (weight if len(weight) else np.ones(len(y)))


def answer(ops, X, y, weight, *given):
    return ops.to_host(ops.line(*ops.hold(X, y, weight), *map(ops.to_device, given), None, None))


# Rows, columns, chains, steps and type: one row, one column, rows that end inside a tile, tiles with two buffers, with
# one and none, more chains than a launch has, one step, as many as threads, a thread in each step or several.
PASSES = [
    (1, 1, 1, K, "float32"),
    (300, 1, 1, 1, "float32"),
    (3, 2, 4, K, "float64"),
    (65, 7, 3, K, "float32"),
    (133, 7, 8, 32, "float16"),
    (40, 9, 16, K, "float64"),
    (41, 9, 17, K, "float32"),
    (700, 141, 4, K, "float32"),
    (23, 1900, 4, K, "float32"),
    (23, 4000, 4, 5, "float32"),
    (19, 5000, 2, K, "float16"),
    (13, 1300, 3, K, "float64"),
    (13, 2500, 4, K, "float64"),
    (5, 20_000, 3, K, "float32"),
]

LIMITS = 113 * 1024, 227 * 1024  # of an H200


def test_the_passes_have_tiles_of_all_kinds():
    kinds = set()
    for _, p, n_chains, _, dtype in PASSES:
        cut = cuda.layout(p, p + 1, min(2 * n_chains, cuda.MAX_CHAINS), dtype, LIMITS, 0, sums=False)
        kinds.add(cut.buffers if cut.staged else 0)
        assert cut.shared_bytes >= 8 * cuda.THREADS
    assert kinds == {0, 1, 2}


def test_every_step_of_a_launch_has_a_thread(gpu):
    assert module("line_moves").TOGETHER * K <= cuda.THREADS


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "n_chains", "k", "dtype"), PASSES)
def test_the_pass_along_lines_has_the_log_likelihoods(n, p, n_chains, k, dtype, weighted, fit_intercept, gpu):
    X = np.random.default_rng(2).standard_normal((n, p)).astype(dtype)
    y, weight = labelled(n, weighted)
    given = asked(n_chains, p + fit_intercept, k)
    got = answer(gpu, X, y, weight, *given)
    assert got.shape == (n_chains, k)
    close = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(got, by_formula(X, y, weight, *given), **close)
    if dtype != "float16":
        want = cpu.line(X, y, weight, *given, np.array([0, n]), ALONE)
        np.testing.assert_allclose(got, want, **close)


# Of sparse rows: rows, columns, share that is stored, chains, types.
SPARSE = [
    (1, 1, 1.0, 1, "float32", "int32"),
    (130, 1, 0.5, 2, "float64", "int64"),
    (700, 5, 0.3, 4, "float32", "int32"),
    (65, 300, 0.02, 4, "float64", "int64"),
    (300, 9, 0.2, 9, "float64", "int32"),
    (90, 4, 0.5, 17, "float32", "int64"),
]


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "p", "density", "n_chains", "dtype", "index"), SPARSE)
def test_sparse_rows_have_the_same_in_one_part_and_in_several(
    n, p, density, n_chains, dtype, index, weighted, fit_intercept, gpu, monkeypatch
):
    X, y = sparse_rows(n, p, density, dtype, index)
    weight = labelled(n, weighted)[1]
    given = asked(n_chains, p + fit_intercept)
    ops = importlib.import_module("skhorseshoe._backends._gpu.sparse")
    got = answer(ops, X, y, weight, *given)
    close = {"rtol": 1e-12} if dtype == "float64" else {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(got, by_formula(X.toarray(), y, weight, *given), **close)
    np.testing.assert_allclose(got, sparse.line(X, y, weight, *given, np.array([0, n]), ALONE), **close)
    for name in ("csr_chunks", "sparse_passes"):
        monkeypatch.setattr(module(name), "PART", max(1, X.nnz // 3))
    on_card = answer(ops, X, y, weight, *given)
    np.testing.assert_allclose(on_card, got, rtol=1e-12)
    streamed = module("csr_chunks").HostCsr((X.data, X.indices, X.indptr), shape=X.shape)
    if len(module("csr_chunks").cut(X.indptr)) > 1:
        np.testing.assert_array_equal(answer(ops, streamed, y, weight, *given), on_card)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_chains", [1, 4, 17])
def test_rows_on_the_host_have_the_bits_of_rows_on_the_card(n_chains, dtype, one_gpu, monkeypatch):
    monkeypatch.setattr(module("host_streaming"), "PART", 1)
    monkeypatch.setattr(module("host_streaming"), "_BLOCKS", 1)
    X = np.random.default_rng(0).standard_normal((1200, 9)).astype(dtype)
    y, weight = labelled(1200, True)
    given = asked(n_chains, 10)
    np.testing.assert_array_equal(
        *(answer(one_gpu, held, y, weight, *given) for held in (X, X.view(module("host_streaming").HostRows)))
    )


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_far_out_and_in_the_tails_it_is_finite_and_accurate(kind, one_gpu):
    """Where a step leads is not known beforehand."""
    at = np.array([-1e5, -40.0, -3.0, 0.0, 3.0, 1e5])
    X, y = np.ones((1, 1)), np.ones(1, np.uint8)
    ops = one_gpu if kind == "dense" else importlib.import_module("skhorseshoe._backends._gpu.sparse")
    given = np.zeros((1, 1)), np.ones((1, 1)), at[None]
    got = answer(ops, X if kind == "dense" else sp.csr_array(X), y, NONE, *given)
    np.testing.assert_allclose(got[0], log_ndtr(at), rtol=1e-11, atol=1e-300)


def rows_and_lines(ops, X, y, n_columns, settings):
    rows = Rows(X, y, True, ops, ALONE, **settings)
    rows.is_near = False
    widths = np.linspace(_lines.LOG_WIDTH, 2.0, 2 + X.shape[1])
    return rows, rows.lines(FixedPrior(rows.columns, 2.0), widths, n_splits=2, n_columns=n_columns)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("settings", ["plain", "other columns"])
def test_moves_are_those_of_the_cpu(settings, kind, gpu):
    X, y = sparse_rows(300, 9, 0.3)
    back_ends = importlib.import_module("skhorseshoe._backends._gpu.sparse"), sparse
    if kind == "dense":
        X, back_ends = X.toarray(), (gpu, cpu)
    settings = {} if settings == "plain" else {"unpenalized": np.arange(9) == 4, "standardize": True}
    p, rng = 8 if settings else 9, np.random.default_rng(0)
    state = rng.standard_normal((3, 10)) / 4, np.exp(rng.standard_normal((3, p))), np.exp(rng.standard_normal(3))
    both = [(ops, *rows_and_lines(ops, X, y, 4, settings)) for ops in back_ends]
    for sweep in range(6):
        ours, theirs = (
            ops.to_host(tuple(ops.move_along_lines(*map(ops.to_device, state), rows, lines, 0.7, KEY, sweep)))
            for ops, rows, lines in both
        )
        for got, want, before in zip(ours, theirs, state, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)
            assert (got != before).any()
        state = theirs


def test_proposals_and_the_first_of_them_are_those_of_the_cpu(gpu):
    rng = np.random.default_rng(0)
    first, k = np.arange(300)[:, None] % K, np.arange(K)  # the first of the steps that is inside
    uniform, value = rng.uniform(size=(300, _lines.EACH)), np.where((k == 0) | ((k >= first) & (first > 0)), 1.0, -99.0)
    value[:3] = np.array([np.nan, -np.inf, 0.0])[:, None]
    value[3, 1:], value[4, 0] = -1e3, np.nan
    for width in (np.array([3.0]), rng.uniform(1, 9, 300)):
        got = gpu.proposals(*map(gpu.to_device, (uniform, width)))
        steps = cpu.proposals(uniform, width)
        np.testing.assert_allclose(gpu.to_host(got), steps, rtol=1e-12, atol=1e-14)
        given = value, steps, uniform[:, 0]
        found = gpu.to_host(gpu.first_inside(*map(gpu.to_device, given)))
        np.testing.assert_array_equal(found, cpu.first_inside(*given))
    assert len(np.unique((found[:, None] == steps).argmax(axis=1))) == K


@pytest.mark.skipif(not COMPILER, reason="needs g++")
def test_the_host_reads_nothing_in_a_move():
    X, y = sparse_rows(300, 9, 0.3)
    with fake_cupy.installed():
        ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
        rows, lines = rows_and_lines(ops, X.toarray(), y, 3, {})
        state = ops.to_device((np.ones((2, 10)), np.ones((2, 9)), np.ones(2)))
        before = sys.modules["cupy"].ndarray.reads
        ops.move_along_lines(*state, rows, lines, 1.0, KEY, 0)
        assert sys.modules["cupy"].ndarray.reads == before
