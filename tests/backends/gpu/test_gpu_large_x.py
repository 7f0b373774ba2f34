"""An X that is larger than the GPU's memory is read from the host in every sweep, and nothing else changes."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
from cuda_emulator import COMPILER, fake_cupy

from skhorseshoe._utils import memmap
from skhorseshoe.datasets import make_sparse_probit

KEY = np.uint32(1), np.uint32(2)
needs_compiler = pytest.mark.skipif(not COMPILER, reason="needs g++")


@pytest.fixture(scope="module")
def rows():
    X, y, _ = make_sparse_probit(1200, 9, random_state=0)
    return X, y.astype(np.uint8)


def module(name):
    return sys.modules[f"skhorseshoe._backends._gpu.{name}"]


@pytest.fixture
def small_parts(one_gpu, monkeypatch):
    """Parts of one block or two, and a back end that has them."""
    monkeypatch.setattr(module("host_streaming"), "PART", 1)
    monkeypatch.setattr(module("host_streaming"), "_BLOCKS", 1)
    return one_gpu


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("n_chains", [1, 4, 17])
def test_passes_over_parts_have_the_bits_of_passes_over_all(n_chains, dtype, small_parts, rows):
    ops, (X, y) = small_parts, rows
    X = X.astype(dtype)
    weight = np.linspace(0.5, 2.0, len(y))
    coef = ops.to_device(np.random.default_rng(1).standard_normal((n_chains, 10)) / 3)
    here, there = ops.hold(X, y, weight), ops.hold(X.view(module("host_streaming").HostRows), y, weight)
    asked = {
        "score": lambda held: ops.score(*held, coef, None, None),
        "latent": lambda held: ops.latent(*held[:2], coef, None, 3, KEY, None),
    }
    for name in ("score", "latent", "score"):  # the third time with buffers that have been used
        for all_at_once, in_parts in zip(asked[name](here), asked[name](there), strict=True):
            np.testing.assert_array_equal(ops.to_host(in_parts), ops.to_host(all_at_once))


@pytest.mark.parametrize("sizes", [(1, 1), (5, 2000), (300, 4000)])
def test_shapes_that_are_cut_otherwise(sizes, small_parts):
    """A single row, tiles with one buffer, and tiles that stay in global memory."""
    ops, (n, p) = small_parts, sizes
    rng = np.random.default_rng(n)
    X, y = rng.standard_normal((n, p)).astype(np.float32), rng.integers(0, 2, n).astype(np.uint8)
    coef = ops.to_device(rng.standard_normal((4, p)) / np.sqrt(p))
    got = [
        ops.to_host(ops.score(*ops.hold(held, y, np.empty(0)), coef, None, None)[1])
        for held in (X, X.view(module("host_streaming").HostRows))
    ]
    np.testing.assert_array_equal(*got)


def make_small(card, monkeypatch):
    """A card and a back end that are made for little memory."""
    importlib.import_module("skhorseshoe._backends._gpu.dense")
    monkeypatch.setattr(module("memory"), "working_set", lambda *sizes: 0)
    for name in ("memory", "dense_passes"):
        monkeypatch.setattr(module(name), "WIDENED", 2**12)
    monkeypatch.setattr(module("predict"), "_ROWS", 256)
    monkeypatch.setattr(module("host_streaming"), "PART", 20_000)
    monkeypatch.setattr(module("host_streaming"), "_BLOCKS", 1)
    card.properties |= {"multiProcessorCount": 8}


@needs_compiler
@pytest.mark.parametrize("sampler", ["hmc", "pxda"])
def test_a_fit_with_less_memory_than_x_has_the_same_draws(sampler, rows, short_fit, monkeypatch, caplog):
    X, y = rows
    params = {"device": "cuda", "sampler": sampler, "burn_in": 6, "n_iter": 4, "n_chains": 2, "verbose": 1}
    models = []
    for free in (2**34, 60_000):
        with fake_cupy.installed() as card, caplog.at_level("INFO", logger="skhorseshoe"):
            make_small(card, monkeypatch)
            card.free = free  # no array is larger than that; X has 86,400 bytes
            models.append(short_fit(X, y, **params))
    assert "X, 1 MiB, does not fit into the 1 MiB that are free on the GPU and is read from the host" in caplog.text
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_", "shrinkage_"):
        np.testing.assert_array_equal(getattr(models[0], name), getattr(models[1], name))


@needs_compiler
def test_without_room_for_two_parts_the_fit_is_refused(rows, short_fit):
    X, y = rows
    with fake_cupy.installed() as card:
        card.free = 60_000
        with pytest.raises(MemoryError, match=r"only 60,000 of its .* bytes are free"):
            short_fit(X, y, device="cuda")


@pytest.mark.parametrize("order", ["C", "F"])
def test_x_comes_to_the_card_a_window_at_a_time(order, monkeypatch):
    """CuPy would make a copy in pinned memory."""
    X = np.asarray(np.random.default_rng(0).standard_normal((300, 7)), order=order)
    with fake_cupy.installed() as card:
        ops = importlib.import_module("skhorseshoe._backends._gpu.dense")
        monkeypatch.setattr(sys.modules["skhorseshoe._backends._gpu.host_streaming"], "WINDOW", 1000)
        held, y, weight = ops.hold(X, np.arange(300), np.ones(300))
        np.testing.assert_array_equal(ops.to_host(held), X)
        np.testing.assert_array_equal(ops.to_host(y), np.arange(300).astype(np.uint8))
        np.testing.assert_array_equal(ops.to_host(weight), np.ones(300))
        assert held.flags.c_contiguous
        assert card.staged == 0


# Rows in a file -------------------------------------------------------------------------------------------------------


def in_a_file(X, folder):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode="r")


@needs_compiler
@pytest.mark.parametrize(
    ("free", "words"),
    [
        (2**34, "on the GPU; X is read from its file once and stays there"),
        (60_000, "does not fit into the 1 MiB that are free on the GPU and is read from its file in every sweep"),
    ],
)
def test_auto_reads_a_file_once_if_the_gpu_has_room_for_it(free, words, rows, short_fit, tmp_path, monkeypatch, caplog):
    X, y = rows
    params = {"device": "auto", "sampler": "pxda", "burn_in": 2, "n_iter": 3, "n_chains": 2, "verbose": 1}
    monkeypatch.setattr("skhorseshoe._backends.device._WORTH_A_GPU", 1)
    monkeypatch.setattr("skhorseshoe._data.weights._SORTED_SIZE", 1)  # whose rows are sorted, in memory
    with fake_cupy.installed() as card, caplog.at_level("INFO", logger="skhorseshoe"):
        make_small(card, monkeypatch)
        monkeypatch.setattr(module("host_streaming"), "WINDOW", 3000)
        want = short_fit(X, y, **params)
        card.free = free
        caplog.clear()
        got = short_fit(in_a_file(X, tmp_path), y, **params)
    assert got.device_ == "cuda:0"
    assert words in caplog.text
    np.testing.assert_array_equal(got.coef_draws_, want.coef_draws_)


@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process in /proc")
@pytest.mark.parametrize("whole", [True, False])
def test_the_pages_of_a_file_leave_the_process_behind_the_copy(whole, one_gpu, tmp_path, monkeypatch):
    monkeypatch.setattr(module("host_streaming"), "WINDOW", 2**20)
    monkeypatch.setattr(memmap, "WINDOW", 2**20)
    X = in_a_file(np.ones((2**14, 1024), np.float32), tmp_path)  # 64 MiB
    before, y = pages_of_files(), np.zeros(len(X), np.uint8)
    held, _, _ = one_gpu.hold(X if whole else X.view(module("host_streaming").HostRows), y, np.empty(0))
    for _ in [] if whole else held.parts([0, 2**13, 2**14]):
        pass
    assert pages_of_files() - before < 2**24


def pages_of_files():
    """Bytes of files that are mapped by the process and in memory."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(status["RssFile"].split()[0]) * 1024
