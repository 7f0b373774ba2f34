"""An X that the GPU has no room for is read from the host in every sweep, and nothing else changes."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from card import KEY, NONE, left_on_host, module, sparse_rows
from laws import ALONE, resident, same_draws

from skhorseshoe._backends import limits
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._backends._gpu.cuda import MAX_CHAINS
from skhorseshoe._utils import memmap
from skhorseshoe.datasets import make_sparse_probit


@pytest.fixture
def small_parts(one_gpu, monkeypatch):
    """A back end whose parts are of one block or two."""
    monkeypatch.setattr(module("host_streaming"), "PART", 1)
    monkeypatch.setattr(module("host_streaming"), "_BLOCKS", 1)
    return one_gpu


@pytest.mark.parametrize(
    ("n", "p", "n_chains", "dtype"),
    [
        *((1200, 9, *one) for one in ((4, "float16"), (17, "float32"), (1, "float64"))),
        *((*shape, 4, "float32") for shape in ((1, 1), (5, 2000), (300, 4000))),
    ],
)
def test_passes_over_parts_have_the_bits_of_passes_over_all(n, p, n_chains, dtype, small_parts):
    """Also of a single row, of tiles with one buffer, and of tiles that stay in global memory."""
    ops, rng, weight = small_parts, np.random.default_rng(n), np.linspace(0.5, 2.0, n)
    X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
    coef, steps = ops.to_device(rng.standard_normal((n_chains, p + 1)) / p), rng.standard_normal((n_chains, 17))
    here, there = ops.hold(X, y, weight), ops.hold(left_on_host(X), y, weight)
    asked = {
        "score": lambda held: ops.score(*held, coef, None, None),
        "latent": lambda held: ops.latent(*held[:2], coef, None, 3, KEY, None),
        "line": lambda held: ops.line(*held, coef, coef / 2, ops.to_device(steps), None, None),
    }
    for name in (*asked, "score"):  # at last with buffers that have been used
        for all_at_once, in_parts in zip(asked[name](here), asked[name](there), strict=True):
            np.testing.assert_array_equal(ops.to_host(in_parts), ops.to_host(all_at_once))


@pytest.fixture
def small_card(card, monkeypatch):
    """A card and a back end that are made for little memory, with windows of a file to match."""
    monkeypatch.setattr(module("memory"), "working_set", lambda *sizes: 0)
    for name in ("memory", "dense_passes"):
        monkeypatch.setattr(module(name), "WIDENED", 2**12)
    monkeypatch.setattr(module("predict"), "ANSWERED", 256)
    monkeypatch.setattr(module("host_streaming"), "PART", 20_000)
    monkeypatch.setattr(module("host_streaming"), "_BLOCKS", 1)
    monkeypatch.setattr(module("host_streaming"), "WINDOW", 3000)
    card.properties |= {"multiProcessorCount": 8}
    return card


def fit_without_room(place, room, card, monkeypatch, fit):
    """A fit of rows for whose parts alone there is room; what ``place`` said, and whether the fit kept to it."""
    seen, free = [], card.free

    def scarce(X, n_chains, sampler):
        needed, parts = room(X, n_chains, sampler)
        card.free = needed + 1
        seen.append((*place(X, n_chains, sampler), needed + parts))
        card.free, card.memory.most = free, card.memory.held
        return seen[-1][:2]

    for name in ("dense", "sparse"):
        monkeypatch.setattr(module(name), "place", scarce)
    model = fit()
    ((placed, words, promised),) = seen
    assert "is read from the host in every sweep" in words
    assert card.memory.most < promised
    return model, placed


# Rows in a file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_comes_to_the_card_a_window_at_a_time(order, card, monkeypatch):
    """CuPy would make a copy in pinned memory."""
    X, ops = np.asarray(np.random.default_rng(0).standard_normal((300, 7)), order=order), module("dense")
    monkeypatch.setattr(module("host_streaming"), "WINDOW", 1000)
    held, y, weight = ops.hold(X, np.arange(300), np.ones(300))
    np.testing.assert_array_equal(ops.to_host(held), X)
    np.testing.assert_array_equal(ops.to_host(y), np.arange(300).astype(np.uint8))
    np.testing.assert_array_equal(ops.to_host(weight), np.ones(300))
    assert held.flags.c_contiguous
    assert card.staged == 0


def in_a_file(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@pytest.mark.parametrize(
    ("where", "sampler", "free", "words"),
    [
        ("a file", "pxda", 2**34, "X is read from its file once and stays there"),
        ("a file", "pxda", 60_000, "is read from its file in every sweep"),
        ("memory", "hmc", 60_000, "does not fit into the 1 MiB that are free on the GPU and is read from the host"),
    ],
)
def test_auto_reads_x_once_if_there_is_room(
    where, sampler, free, words, small_card, short_fit, tmp_path, monkeypatch, caplog
):
    """With the same draws. No array on the card is larger than what is free there; X has 86,400 bytes."""
    X, y, _ = make_sparse_probit(1200, 9, random_state=0)
    params = {"device": "auto", "sampler": sampler, "burn_in": 6, "n_iter": 4, "n_chains": 2, "verbose": 1}
    monkeypatch.setattr("skhorseshoe._backends.device._WORTH_A_GPU", 1)
    monkeypatch.setattr("skhorseshoe._data.weights._SORTED_SIZE", 1)  # whose rows are sorted, in memory
    want = short_fit(X, y, **params)
    small_card.free = free
    with caplog.at_level("INFO", logger="skhorseshoe"):
        got = short_fit(in_a_file(X, tmp_path) if where == "a file" else X, y, **params)
    assert got.device_ == "cuda:0"
    assert words in caplog.text
    assert same_draws(got, want)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process in /proc")
@pytest.mark.parametrize("whole", [True, False])
def test_the_pages_of_a_file_leave_the_process_behind_the_copy(whole, one_gpu, tmp_path, monkeypatch):
    for of in (module("host_streaming"), memmap):
        monkeypatch.setattr(of, "WINDOW", 2**20)
    X = in_a_file(np.ones((2**14, 1024), np.float32), tmp_path)  # 64 MiB
    before, y = resident("RssFile"), np.zeros(len(X), np.uint8)
    held, _, _ = one_gpu.hold(X if whole else left_on_host(X), y, NONE)
    for _ in [] if whole else held.parts([0, 2**13, 2**14]):
        pass
    assert resident("RssFile") - before < 2**24


# Sparse rows of more than a part --------------------------------------------------------------------------------------


@pytest.fixture
def parts(card, monkeypatch):
    """The back end for sparse rows, with small parts."""
    for name in ("csr_chunks", "sparse"):
        monkeypatch.setattr(module(name), "PART", 200)
    monkeypatch.setattr(module("sparse"), "WIDENED", 60)  # so that information is that of several blocks of rows
    return module("sparse")


@pytest.fixture(scope="module")
def gaps():
    """Rows and columns that are empty, a column that is full, and one that is constant."""
    X = sparse_rows(300, 9, 0.3)[0].tolil()
    X[100:160] = 0.0
    X[:, 3], X[:, 4], X[:, 5] = 0.0, np.arange(300.0)[:, None] + 1, 7.0
    return sp.csr_array(X), np.random.default_rng(0).integers(0, 2, 300).astype(np.uint8)


def in_parts(ops, X, y, weight):
    """The rows on the GPU in parts, and those that stay on the host."""
    on_gpu, y, weight = ops.hold(X, y, weight)
    on_host, *_ = ops.hold(left_on_host(X), y, weight)
    assert type(on_gpu) is not type(on_host)
    assert len(on_gpu.slices) == len(on_host.slices) > 3
    return (on_gpu, on_host), y, weight


BOUNDS = np.array([0, 130, 300])
QUESTIONS = {
    "latent": lambda ops, X, y, w, beta, move: ops.latent(X, y, move(beta), BOUNDS, 5, KEY, ALONE, 1000),
    "score": lambda ops, X, y, w, beta, move: ops.score(X, y, w, move(beta), BOUNDS, ALONE),
    "moments": lambda ops, X, y, w, beta, move: ops.moments(X, w),
    "gram": lambda ops, X, y, w, beta, move: (ops.gram(X, w, np.arange(9.0), np.full(9, 2.0), True, ALONE),),
    "information": lambda ops, X, y, w, beta, move: (
        ops.gram(X, w, np.ones(9), np.ones(9), True, ALONE, beta[:2] / 9),
        ops.information_weights(X, beta[:3, :9] / 99, beta[:3, 9]),
    ),
    "gram_product": lambda ops, X, y, w, beta, move: (ops.gram_product(X, w, move(beta), BOUNDS, ALONE),),
    "gram_noise": lambda ops, X, y, w, beta, move: (ops.gram_noise(X, w, beta.shape, BOUNDS, 1, 5, 7, KEY, ALONE),),
}


@pytest.mark.parametrize(("dtype", "weighted"), [("float32", False), ("float64", True)])
@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_has_the_same_answer_in_parts(question, dtype, weighted, parts, gaps):
    """The same bits on the GPU and from the host, and to rounding those of the CPU."""
    (X, y), rng, ask = gaps, np.random.default_rng(1), QUESTIONS[question]
    X, weight = X.astype(dtype), rng.exponential(size=300) if weighted else NONE
    beta = rng.standard_normal((MAX_CHAINS + 1, 10)) / 30
    both, labels, weights = in_parts(parts, X, y, weight)
    answers = [parts.to_host(ask(parts, rows, labels, weights, beta, parts.to_device)) for rows in (*both, both[1])]
    theirs = ask(sparse, X, y, weight, beta, np.asarray)
    tolerance = {"rtol": 2e-4, "atol": 2e-3} if dtype == "float32" else {"rtol": 1e-5, "atol": 2e-5}
    for ours, from_host, once_more, want in zip(*answers, theirs, strict=True):
        np.testing.assert_array_equal(ours, from_host)
        np.testing.assert_array_equal(once_more, from_host)
        np.testing.assert_allclose(ours, want, **tolerance)


def test_a_constant_column_has_no_variance_in_parts(parts, gaps):
    for rows in in_parts(parts, *gaps, NONE)[0]:
        mean, variance = parts.moments(rows, parts.to_device(NONE))
        assert (mean[5], variance[5]) == (7.0, 0.0)


def test_a_buffer_is_free_again_when_its_readers_are_queued(parts, gaps, monkeypatch):
    """The pinned half of a buffer is filled when what was there has left it, the other when its readers are queued."""
    (_, X), y, weight = in_parts(parts, *gaps, NONE)
    log = []

    def watched(owner, name, word):
        plain = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *given, **more: log.append(word) or plain(*given, **more))

    for number, slot in enumerate(X.conveyor.slots):
        watched(slot.copied, "synchronize", f"left {number}")
        watched(slot.copied, "record", f"copied {number}")
        watched(slot.used, "record", f"used {number}")
    watched(module("sparse"), "launch", "kernel")
    parts.score(X, y, weight, parts.to_device(np.zeros((2, 10))), None, ALONE)
    # The stream waits for the copy as the host does.
    turns = [(X.conveyor.turn + len(X.slices) + k) % 2 for k in range(1, len(X.slices) + 1)]
    waits = "left {0}", "copied {0}", "left {0}", "kernel", "kernel", "kernel", "used {0}"
    assert log == [wait.format(number) for number in turns for wait in waits]


def test_rows_of_parts_are_taken_where_they_are(parts, gaps):
    for X in in_parts(parts, *gaps, NONE)[0]:
        for rows in (slice(3, 50), slice(0, 300)):
            got = []
            parts.each_block(X[rows], np.ones((5, 9)) / 99, None, 64, lambda eta, _, got=got: got.append(eta))
            want = gaps[0][rows] @ np.ones((9, 5)) / 99
            np.testing.assert_allclose(np.concatenate(list(map(parts.to_host, got))), want, atol=1e-12)


@pytest.mark.parametrize("index", ["int32", "int64"])
def test_parts_are_cut_by_the_rows_alone(index, parts, gaps):
    cut, starts = module("csr_chunks").cut, gaps[0].indptr.astype(index)
    slices = cut(starts)
    assert [rows.start for rows in slices[1:]] == [rows.stop for rows in slices[:-1]]
    assert (slices[0].start, slices[-1].stop) == (0, 300)
    sizes = [starts[rows.stop] - starts[rows.start] for rows in slices]
    assert max(sizes) <= 200 + np.diff(starts).max()
    assert cut(np.array([0, 1000, 1000, 2000])) == [slice(0, 1), slice(1, 3)]  # rows of more than a part


FITS = {
    "gibbs": {"sampler": "gibbs", "standardize": True},
    "pxda": {"sampler": "pxda", "fit_intercept": False},
    "hmc": {"sampler": "hmc", "unpenalized": [1], "class_weight": {0: 0.5, 1: 1.7}},
    "conjugate gradients": {"sampler": "pxda", "slab_scale": 1.0},
}


@pytest.mark.parametrize("fit", FITS)
def test_sparse_rows_without_room_are_read_from_the_host(fit, parts, card, gaps, short_fit, monkeypatch):
    """With the same draws, in the memory that was promised."""
    if fit == "conjugate gradients":
        monkeypatch.setattr(limits, "LARGEST_FACTOR", 0)
    params = {"device": "cuda", "n_chains": 2, "burn_in": 12, "n_iter": 6, **FITS[fit]}
    on_card, memory = short_fit(*gaps, **params), module("memory")
    room_for_parts = memory.room_for_sparse_parts

    def room(X, n_chains, sampler):
        """For all but the columns of X."""
        buffers, *part = room_for_parts(X)
        monkeypatch.setattr(memory, "room_for_sparse_parts", lambda X: (0, *part))
        return memory.sparse_working_set(X, n_chains, sampler, part), buffers

    def fit_again():
        return short_fit(*gaps, **params)

    streamed, placed = fit_without_room(memory.place_sparse, room, card, monkeypatch, fit_again)
    assert isinstance(placed, module("csr_chunks").HostCsr)
    assert same_draws(streamed, on_card)


def test_the_host_must_have_room_for_the_columns(parts, card, gaps, monkeypatch):
    memory, X = module("memory"), gaps[0]
    _, *part = memory.room_for_sparse_parts(X)
    monkeypatch.setattr(memory, "room_for_sparse_parts", lambda X: (0, *part))
    card.free = memory.sparse_working_set(X, 1, "pxda", part) + 1
    monkeypatch.setattr("skhorseshoe._utils.memory.available", lambda: 100)
    with pytest.raises(MemoryError, match=r"need their columns on the host too: that copies 1 MiB of X, but only"):
        memory.place_sparse(X, 1, "pxda")
