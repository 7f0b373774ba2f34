"""An X that the GPU has no room for is read from the host in every sweep, and nothing else changes."""

import sys

import numpy as np
import pytest
from card import KEY, NONE, left_on_host, module
from laws import resident, same_draws

from skhorseshoe.datasets import make_sparse_probit


@pytest.fixture
def small_parts(one_gpu, sizes):
    """A back end whose parts are of one block or two."""
    sizes(bytes_of_a_part=1, blocks_of_a_part=1)
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
def small_card(card, sizes, monkeypatch):
    """A card and a back end that are made for little memory, with windows of a file to match."""
    monkeypatch.setattr(module("memory"), "working_set", lambda *sizes: 0)
    for name in ("memory", "dense_passes"):
        monkeypatch.setattr(module(name), "WIDENED_NUMBERS", 2**12)
    sizes(predicted_rows=256, bytes_of_a_part=20_000, blocks_of_a_part=1, window=3000)
    card.properties |= {"multiProcessorCount": 8}
    return card


# Rows in a file -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_comes_to_the_card_a_window_at_a_time(order, card, sizes):
    """CuPy would make a copy in pinned memory."""
    X, ops = np.asarray(np.random.default_rng(0).standard_normal((300, 7)), order=order), module("dense")
    sizes(window=1000)
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
    where, sampler, free, words, small_card, short_fit, tmp_path, sizes, caplog
):
    """With the same draws. No array on the card is larger than what is free there; X has 86,400 bytes."""
    X, y, _ = make_sparse_probit(1200, 9, random_state=0)
    params = {"device": "auto", "sampler": sampler, "burn_in": 5, "n_iter": 2, "n_chains": 2, "verbose": 1}
    sizes(numbers_on_a_gpu=1, numbers_sorted=1)  # rows of so few are sorted, in memory
    want = short_fit(X, y, **params)
    small_card.free = free
    with caplog.at_level("INFO", logger="skhorseshoe"):
        got = short_fit(in_a_file(X, tmp_path) if where == "a file" else X, y, **params)
    assert got.device_ == "cuda:0"
    assert words in caplog.text
    assert same_draws(got, want)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process in /proc")
@pytest.mark.parametrize("whole", [True, False])
def test_the_pages_of_a_file_leave_the_process_behind_the_copy(whole, one_gpu, tmp_path, sizes):
    sizes(window=2**20)
    X = in_a_file(np.ones((2**14, 1024), np.float32), tmp_path)  # 64 MiB
    before, y = resident("RssFile"), np.zeros(len(X), np.uint8)
    held, _, _ = one_gpu.hold(X if whole else left_on_host(X), y, NONE)
    for _ in [] if whole else held.parts([0, 2**13, 2**14]):
        pass
    assert resident("RssFile") - before < 2**24
