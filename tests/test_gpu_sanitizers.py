"""The sanitizers of the compiler watch the kernels in the emulator, and a barrier that is left out is noticed."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from cuda_emulator import COMPILER

from skhorseshoe._ops.cuda import layout

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILER, reason="needs g++")]

# Tiles with two buffers, with one, and none; the scales; the Gaussians. Prints what was computed.
CASES = """
import importlib, json, sys
import numpy as np
import scipy.sparse
from cuda_emulator import fake_cupy
from skhorseshoe._ops import cuda

order, flags, sizes, left_out = json.loads(sys.argv[1])
layout = cuda.layout
cuda.layout = lambda *given: (cut := layout(*given))._replace(shared_bytes=cut.shared_bytes - left_out)
key = np.uint32(1), np.uint32(2)
rng = np.random.default_rng(3)
with fake_cupy.installed(order) as card:
    card.flags = flags
    ops = importlib.import_module("skhorseshoe._ops.gpu")
    gaussian = importlib.import_module("skhorseshoe._ops._gpu_gaussian")
    out = []
    for n, p, n_chains, dtype, shared in sizes:
        card.properties["sharedMemPerBlockOptin"] = shared
        X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
        beta = ops.to_device(rng.standard_normal((n_chains, p + 1)) / p)
        held = ops.hold(X, y, rng.exponential(size=n))
        out.extend(ops.latent(*held[:2], beta, None, 1, key, None))
        out.extend(ops.score(*held, beta, None, None))
    beta, tau = ops.to_device(rng.standard_normal((2, 70))), ops.to_device(np.ones(2))
    out += [ops.local_scales(beta, tau, key, 1), ops.global_scale(beta, tau, 1.0, key, 1)]
    out.append(ops.normal((2, 70), key, 1, 1))
    A = rng.standard_normal((90, 70))
    indefinite = np.ones((70, 70)) - 3e-9 * np.eye(70)
    indefinite[0, 1:] = indefinite[1:, 0] = 0.0
    card.properties["sharedMemPerBlockOptin"] = 2**18
    for gaussian.THREADS in (256, 0):  # factors by one block in shared memory, and by the library
        white = ops.Whitening(A.T @ A, A[0], 2, 70, None)
        white.set(beta**2)
        moved = white.move_local_scales(beta[:, :70] ** 2, tau, np.arange(1, 40, 3), 1, key)
        out += [moved, white.whiten(beta), ops.Precision(A.T @ A, None).inverse_diagonal(beta**2, 0)]
        out.append(ops.Precision(indefinite, None).draw(beta, 0 * beta, beta))
    draws = ops.to_device(rng.standard_normal((300, 4)))
    out.append(ops.to_device(ops.mean_probability(ops.to_device(A[:, :4]), draws, draws[:, 0].copy(), None, 64)))
    sparse = importlib.import_module("skhorseshoe._ops.gpu_sparse")
    X = scipy.sparse.random(40, 6, density=0.6, format="csr", random_state=1)
    held = sparse.hold(X, rng.integers(0, 2, 40).astype(np.uint8), rng.exponential(size=40))
    beta = ops.to_device(rng.standard_normal((4, 7)))
    out += [*sparse.latent(*held[:2], beta, None, 1, key, None), *sparse.score(*held, beta, None, None)]
    out.append(sparse.gram_product(held[0], held[2], beta, None, None))
    out.append(sparse.gram_noise(held[0], held[2], beta.shape, None, 1, 2, 3, key, None))
    matrix = sparse.gram(held[0], held[2], np.zeros(6), np.ones(6), True, None)
    moments = sparse.moments(held[0], held[2])
    products = sparse.mean_probability(held[0][np.array([4, 30, 4])], np.ones((300, 6)), np.ones(300), None, 64)
    out += map(ops.to_device, (matrix, *moments, products))
print(json.dumps([ops.to_host(values).ravel().tolist() for values in out]))
"""
SIZES = [(70, 20, 4, "float32", 2**18), (37, 33, 3, "float64", 6000), (21, 30, 4, "float16", 2000)]


def run(order, flags=("-O1",), sizes=SIZES, *, left_out=0, preload=(), **environment):
    """The finished process. preload : libraries of sanitizers. left_out : bytes of shared memory not asked for."""
    preload = " ".join(map(library, preload))
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-c", CASES, json.dumps([order, flags, sizes, left_out])]
    env = {**os.environ, "PYTHONPATH": path, "LD_PRELOAD": preload, "OPENBLAS_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=580)


def library(name):
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def outcome(*args, **kwargs):
    """What was computed, or None where the emulator has complained."""
    done = run(*args, **kwargs)
    if done.returncode:
        assert "EmulatorError" in done.stderr or "LinAlgError" in done.stderr, done.stderr
        return None
    return [np.array(values) for values in json.loads(done.stdout)]


def test_the_cases_have_two_buffers_one_and_none():
    cuts = [layout(p, p + 1, n_chains, dtype, shared) for _, p, n_chains, dtype, shared in SIZES]
    assert [(cut.staged, cut.buffers) for cut in cuts] == [(True, 2), (True, 1), (False, 1)]


ADDRESS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}


def test_address_and_undefined_behaviour_sanitizers_are_silent():
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    done = run("forward", flags, preload=("libasan.so", "libubsan.so"), **ADDRESS)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "runtime error" not in done.stderr


@pytest.mark.parametrize("size", SIZES)
def test_address_sanitizer_notices_shared_memory_that_is_too_small(size):
    flags = ("-O1", "-g", "-fsanitize=address")
    done = run("forward", flags, [size], left_out=16, preload=("libasan.so",), **ADDRESS)
    assert "buffer-overflow" in done.stderr


def thread_sanitizer(*more):
    """What it says about the cases, with a system thread for each CUDA thread."""
    flags = ("-O1", "-g", "-pthread", "-DEMULATOR_THREADS", "-fsanitize=thread", *more)
    options = "exitcode=66:report_signal_unsafe=0"
    sizes = [(9, 3, 1, "float32", 2**18), (17, 9, 1, "float32", 700)]
    return run("forward", flags, sizes, preload=("libtsan.so",), TSAN_OPTIONS=options)


def test_thread_sanitizer_is_silent():
    done = thread_sanitizer()
    assert "data race" not in done.stderr, done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]


BARRIERS = (
    "SUM_FREE",
    "SUM_READY",
    "TILE_FREE",
    "TILE_READY",
    "DOTS_READY",
    "WEIGHTS_READY",
    "TOTALS_READY",
    "STRIPS_READY",
    "MOVE_READ",
    "MOVE_WRITTEN",
    "PIVOT_FREE",
    "PIVOT_READY",
    "COLUMN_READY",
    "ELEMENT_READY",
    "TOTALS_FREE",
    "STRIP_EMPTY",
    "ROW_ADDED",
)


@pytest.fixture(scope="module")
def right():
    return outcome("forward")


@pytest.mark.parametrize("barrier", BARRIERS)
def test_a_barrier_that_is_left_out_is_noticed(barrier, right):
    """By another result or a complaint in one of the three orders, or by ThreadSanitizer."""
    flags = (f"-DREMOVED={barrier}",)
    for order in ("forward", "reverse", "random"):
        got = outcome(order, ("-O1", *flags))
        if got is None or not all(map(np.array_equal, got, right)):
            return
    assert "data race" in thread_sanitizer(*flags).stderr


def test_every_order_gives_the_same_bits(right):
    for order in ("reverse", "random"):
        assert all(map(np.array_equal, outcome(order), right))
