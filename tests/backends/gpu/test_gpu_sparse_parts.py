"""Sparse rows that are more than a part, on the GPU or on the host because it has no room for them."""

import importlib

import numpy as np
import pytest
import scipy.sparse as sp
from card import sparse_rows
from cuda_emulator import COMPILER, fake_cupy

from skhorseshoe._backends import limits
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._backends._gpu.cuda import MAX_CHAINS
from skhorseshoe._utils.threads import Threads

pytestmark = pytest.mark.skipif(not COMPILER, reason="needs g++")

KEY = np.array([3, 4], np.uint32)
ALONE = Threads(1)


@pytest.fixture
def card():
    with fake_cupy.installed() as card:
        yield card


@pytest.fixture
def parts(card, monkeypatch):
    """The modules of the back end and of the parts, which are small."""
    module = importlib.import_module("skhorseshoe._backends._gpu.csr_chunks")
    for name in ("csr_chunks", "sparse_passes"):
        monkeypatch.setattr(importlib.import_module(f"skhorseshoe._backends._gpu.{name}"), "PART", 200)
    return importlib.import_module("skhorseshoe._backends._gpu.sparse"), module


@pytest.fixture
def data():
    """With rows and columns that are empty, a column that is full, and one that is constant."""
    X, _ = sparse_rows(300, 9, 0.3)
    X = X.tolil()
    X[100:160] = 0.0
    X[:, 3], X[:, 4], X[:, 5] = 0.0, np.arange(300.0)[:, None] + 1, 7.0
    return sp.csr_array(X), np.random.default_rng(0).integers(0, 2, 300).astype(np.uint8)


def held(parts, X, y, weight):
    """The rows on the GPU in parts, and those that stay on the host."""
    ops, module = parts
    on_gpu, y, weight = ops.hold(X, y, weight)
    on_host, *_ = ops.hold(module.HostCsr((X.data, X.indices, X.indptr), shape=X.shape), y, weight)
    assert isinstance(on_gpu, module.HeldParts)
    assert isinstance(on_host, module.StreamedParts)
    assert len(on_gpu.slices) == len(on_host.slices) > 3
    return (on_gpu, on_host), y, weight


QUESTIONS = {
    "latent": lambda ops, X, y, w, beta, move: ops.latent(X, y, move(beta), None, 5, KEY, ALONE, 1000),
    "score": lambda ops, X, y, w, beta, move: ops.score(X, y, w, move(beta), None, ALONE),
    "moments": lambda ops, X, y, w, beta, move: ops.moments(X, w),
    "gram": lambda ops, X, y, w, beta, move: ops.gram(X, w, np.arange(9.0), np.full(9, 2.0), True, ALONE),
    "information": lambda ops, X, y, w, beta, move: ops.gram(X, w, np.ones(9), np.ones(9), True, ALONE, beta[:2] / 9),
    "weights": lambda ops, X, y, w, beta, move: ops.information_weights(X, beta[:3, :9] / 99, beta[:3, 9]),
    "gram_product": lambda ops, X, y, w, beta, move: ops.gram_product(X, w, move(beta), None, ALONE),
    "gram_noise": lambda ops, X, y, w, beta, move: ops.gram_noise(X, w, beta.shape, None, 1, 5, 7, KEY, ALONE),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_the_same_answer_in_parts(question, weighted, dtype, parts, data):
    """The same bits on the GPU and from the host, and to rounding those of the CPU."""
    (X, y), rng = data, np.random.default_rng(1)
    X, weight = X.astype(dtype), rng.exponential(size=300) if weighted else np.empty(0)
    beta = rng.standard_normal((MAX_CHAINS + 1, 10)) / 30
    ops, ask = parts[0], QUESTIONS[question]
    both, on_device, weights = held(parts, X, y, weight)
    answers = [ops.to_host(ask(ops, rows, on_device, weights, beta, ops.to_device)) for rows in both]
    again = ops.to_host(ask(ops, both[1], on_device, weights, beta, ops.to_device))
    bounds = np.array([0, 130, 300])
    given = {"latent", "score", "gram_product", "gram_noise"}
    theirs = ask(_WithBounds(bounds) if question in given else sparse, X, y, weight, beta, np.asarray)
    tolerance = {"rtol": 2e-4, "atol": 2e-3} if dtype == "float32" else {"rtol": 1e-5, "atol": 2e-5}
    for ours, same, once_more, want in zip(*map(_arrays, (*answers, again, theirs)), strict=True):
        np.testing.assert_array_equal(ours, same)
        np.testing.assert_array_equal(once_more, same)
        np.testing.assert_allclose(ours, want, **tolerance)


def _arrays(answer):
    return answer if isinstance(answer, tuple) else (answer,)


class _WithBounds:
    """The CPU's back end, told how rows are cut where a GPU is told nothing."""

    def __init__(self, bounds):
        self.bounds = bounds

    def __getattr__(self, name):
        return lambda *given: getattr(sparse, name)(*(self.bounds if value is None else value for value in given))


def test_weights_of_rows_in_several_blocks(card, data, monkeypatch):
    ops, rows = (
        importlib.import_module(f"skhorseshoe._backends.{name}") for name in ("_gpu.sparse", "_gpu.sparse_passes")
    )
    X, y = data
    beta = np.random.default_rng(1).standard_normal((20, 10)) / 99
    placed, *_ = ops.hold(X, y, np.empty(0))
    monkeypatch.setattr(rows, "WIDENED", 1000)  # 50 rows of 20 points
    got = ops.to_host(ops.information_weights(placed, beta[:, :9], beta[:, 9]))
    np.testing.assert_allclose(got, sparse.information_weights(X, beta[:, :9], beta[:, 9]), rtol=1e-4)


def test_a_constant_column_has_no_variance_in_parts(parts, data):
    ops, _ = parts
    for rows in held(parts, *data, np.empty(0))[0]:
        mean, variance = ops.moments(rows, ops.to_device(np.empty(0)))
        assert (mean[5], variance[5]) == (7.0, 0.0)


def test_a_buffer_is_free_again_when_what_reads_it_has_been_queued(parts, data, monkeypatch):
    """The pinned half of a buffer is filled when what was there has left it, the other when its readers are queued."""
    ops, _ = parts
    (_, X), y, weight = held(parts, *data, np.empty(0))
    rows, log = importlib.import_module("skhorseshoe._backends._gpu.sparse_passes"), []

    def watched(owner, name, word):
        plain = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **more: log.append(word) or plain(*given, **more))

    for number, slot in enumerate(X.conveyor.slots):
        watched(slot.copied, "synchronize", f"left {number}")
        watched(slot.copied, "record", f"copied {number}")
        watched(slot.used, "record", f"used {number}")
    watched(rows, "launch", "kernel")
    ops.score(X, y, weight, ops.to_device(np.zeros((2, 10))), None, ALONE)
    # The stream waits for the copy as the host does.
    turns = [(X.conveyor.turn + len(X.slices) + k) % 2 for k in range(1, len(X.slices) + 1)]
    waits = (
        "left {0}",
        "copied {0}",
        "left {0}",
        "kernel",
        "kernel",
        "kernel",
        "used {0}",
    )
    assert log == [wait.format(number) for number in turns for wait in waits]


@pytest.mark.parametrize("rows", [slice(3, 50), slice(0, 300)])
def test_rows_are_taken_where_they_are(rows, parts, data):
    ops, _ = parts
    for X in held(parts, *data, np.empty(0))[0]:
        got = []
        ops.each_block(X[rows], np.ones((5, 9)) / 99, None, 64, lambda eta, _, got=got: got.append(ops.to_host(eta)))
        np.testing.assert_allclose(np.concatenate(got), data[0][rows] @ np.ones((9, 5)) / 99, atol=1e-12)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_parts_are_cut_by_the_rows_alone(index, parts, data):
    _, module = parts
    starts = data[0].indptr.astype(index)
    slices = module.cut(starts)
    assert [rows.start for rows in slices[1:]] == [rows.stop for rows in slices[:-1]]
    assert (slices[0].start, slices[-1].stop) == (0, 300)
    sizes = [starts[rows.stop] - starts[rows.start] for rows in slices]
    assert max(sizes) <= 200 + np.diff(starts).max()
    assert module.cut(np.array([0, 1000, 1000, 2000])) == [slice(0, 1), slice(1, 3)]  # rows of more than a part
    assert module.cut(np.array([0])) in ([], [slice(0, 0)])


FITS = {
    "gibbs": {"sampler": "gibbs", "standardize": True},
    "pxda": {"sampler": "pxda", "fit_intercept": False},
    "hmc": {"sampler": "hmc", "unpenalized": [1], "class_weight": {0: 0.5, 1: 1.7}},
    "conjugate gradients": {"sampler": "pxda", "slab_scale": 1.0},
}


@pytest.mark.parametrize("fit", FITS)
def test_an_x_without_room_on_the_card_is_read_from_the_host(fit, parts, card, data, short_fit, monkeypatch, caplog):
    """With the same draws, in the memory that was promised."""
    if fit == "conjugate gradients":
        monkeypatch.setattr(limits, "LARGEST_FACTOR", 0)
    params = {"device": "cuda", "n_chains": 2, "burn_in": 12, "n_iter": 6, **FITS[fit]}
    (X, y), memory = data, importlib.import_module("skhorseshoe._backends._gpu.sparse_memory")
    on_card = short_fit(X, y, **params)
    seen, place = [], memory.place
    room_for_parts, free = memory.room_for_parts, card.free

    def scarce(X, n_chains, sampler):
        """Room for all but the columns of X."""
        room, *part = room_for_parts(X)
        monkeypatch.setattr(memory, "room_for_parts", lambda X: (0, *part))
        card.free = memory.working_set(X, n_chains, sampler, part) + 1
        seen.append((place(X, n_chains, sampler), card.free + room))
        card.free, card.memory.most = free, card.memory.held
        return seen[-1][0]

    monkeypatch.setattr(parts[0], "place", scarce)
    streamed = short_fit(X, y, **params)
    (((placed, words), promised),) = seen
    assert isinstance(placed, parts[1].HostCsr)
    assert "are read from the host in every pass" in words
    assert card.memory.most < promised
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"):
        np.testing.assert_array_equal(getattr(streamed, name), getattr(on_card, name))


def test_the_host_must_have_room_for_the_columns(parts, card, data, monkeypatch):
    memory, X = importlib.import_module("skhorseshoe._backends._gpu.sparse_memory"), data[0]
    _, *part = memory.room_for_parts(X)
    monkeypatch.setattr(memory, "room_for_parts", lambda X: (0, *part))
    card.free = memory.working_set(X, 1, "pxda", part) + 1
    monkeypatch.setattr("skhorseshoe._utils.memory.available", lambda: 100)
    with pytest.raises(MemoryError, match=r"need their columns on the host too: that copies 1 MiB of X, but only"):
        memory.place(X, 1, "pxda")
