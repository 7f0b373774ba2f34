"""The sanitizers of the compiler watch the kernels in the emulator, and a barrier that is left out is noticed."""

import functools
import json
import os
import subprocess
import sys

import pytest
from cuda_emulator import COMPILER
from cuda_emulator.cases import PARTS
from laws import repeated

from skhorseshoe._backends._gpu.cuda import layout

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILER, reason="needs g++")]

# Tiles in shared memory, also of four rows, and in global memory; of other shapes, as a plan is made once for each.
SIZES = [(70, 20, 4, "float32", 2**18), (37, 33, 3, "float64", 6000), (21, 30, 4, "float16", 2100)]
ORDERS = "forward", "reverse", "random"


def run(parts, flags=("-O1",), sizes=SIZES, orders=ORDERS[:1], *, left_out=0, preload=(), **environment):
    """The finished process. parts : of ``cases``. preload : libraries of sanitizers. left_out : bytes of shared memory
    not asked for."""
    preload = " ".join(map(library, preload))
    path = os.pathsep.join(entry for entry in sys.path if entry)
    command = [sys.executable, "-m", "cuda_emulator.cases", json.dumps([orders, flags, parts, sizes, left_out])]
    env = {**os.environ, "PYTHONPATH": path, "LD_PRELOAD": preload, "OPENBLAS_NUM_THREADS": "1", **environment}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=580)


def library(name):
    command = [COMPILER, f"-print-file-name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@functools.cache
def outcomes(part, *flags):
    """What was computed in each order of the threads, as text, or None where the emulator has complained."""
    done = run([part], ("-O1", *flags), orders=ORDERS)
    if done.returncode:
        assert "EmulatorError" in done.stderr or "LinAlgError" in done.stderr, done.stderr
        return None
    return list(map(json.dumps, json.loads(done.stdout)))


def test_the_cases_have_tiles_of_both_kinds():
    cuts = [layout(p, p + 1, n_chains, dtype, (shared, shared), 0) for _, p, n_chains, dtype, shared in SIZES]
    assert [(cut.staged, cut.tile) for cut in cuts[1:]] == [(True, 4), (False, 16)]
    assert cuts[0].staged


def address_sanitizer(part, sizes, left_out=0):
    """What it says about cases, with that of undefined behaviour."""
    flags = ("-O1", "-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined")
    options = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0"}
    return run([part], flags, sizes, left_out=left_out, preload=("libasan.so", "libubsan.so"), **options)


@pytest.mark.parametrize("part", PARTS)
def test_address_and_undefined_behaviour_sanitizers_are_silent(part):
    done = address_sanitizer(part, SIZES[: repeated(2, 4)])
    assert done.returncode == 0, done.stderr[-3000:]
    assert "runtime error" not in done.stderr


@pytest.mark.parametrize("size", SIZES[1 : 1 + repeated(1, 4)])
def test_address_sanitizer_notices_too_little_shared_memory(size):
    """Where tiles are full; that of the first size is larger than the rows need."""
    assert "heap-buffer-overflow" in address_sanitizer("passes", [size], left_out=16).stderr


def thread_sanitizer(part, *more):
    """What it says about cases, with a system thread for each CUDA thread."""
    flags = ("-O1", "-g1", "-pthread", "-DEMULATOR_THREADS", "-fsanitize=thread", *more)
    options = "exitcode=66:report_signal_unsafe=0"
    sizes = [(9, 3, 1, "float32", 2**18), (17, 150, 1, "float32", 9000), (18, 150, 1, "float32", 3000)]
    return run([part], flags, sizes, preload=("libtsan.so",), TSAN_OPTIONS=options)


@pytest.mark.parametrize("part", PARTS)
def test_thread_sanitizer_is_silent(part):
    done = thread_sanitizer(part)
    assert "data race" not in done.stderr, done.stderr[-3000:]
    assert done.returncode == 0, done.stderr[-3000:]


# By the part that has them.
BARRIERS = {
    "scales": ("SUM_FREE", "SUM_READY"),
    "passes": (*("TILE_READY", "DOTS_READY", "WEIGHTS_READY"), *("TOTALS_READY", "LINES_FREE", "LINES_READY")),
    "gaussians": ("COPIED", "SQUARE_ADDED", "PIVOT_FREE", "PIVOT_READY", "COLUMN_READY", "ELEMENT_READY"),
}


LEFT_OUT = [(part, name) for part, names in BARRIERS.items() for name in names[: repeated(1, 8)]]


@pytest.mark.parametrize(("part", "barrier"), LEFT_OUT)
def test_a_barrier_that_is_left_out_is_noticed(part, barrier):
    """By another result or a complaint in one of the three orders, or by ThreadSanitizer."""
    flag = f"-DREMOVED={barrier}"
    if outcomes(part, flag) == [outcomes(part)[0]] * 3:
        assert "data race" in thread_sanitizer(part, flag).stderr


@pytest.mark.parametrize("part", PARTS)
def test_every_order_gives_the_same_bits(part):
    assert outcomes(part) == [outcomes(part)[0]] * 3
