"""A cache of compiled kernels that cannot be used costs time, and never a fit."""

import os
import shutil
import subprocess
import sys

import numba
import pytest

from skhorseshoe._backends._cpu import jit
from skhorseshoe._backends._cpu.jit import kernel


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


def compiled():
    """The kernel as a process has it that has not called it yet."""

    def twice(x):
        return 2 * x

    return kernel(twice)


def is_loaded(x):
    """Whether a process computes the right thing, and has it from the cache."""
    function = compiled()
    assert function(x) == 2 * x
    return sum(function.stats.cache_hits.values()) == 1


def test_code_of_other_sources_is_compiled_anew(cache, monkeypatch):
    """A function that a kernel calls may have changed, in another file."""
    assert not is_loaded(1)
    assert is_loaded(1)
    monkeypatch.setattr(jit, "_SOURCES", jit._SOURCES + 1)
    assert not is_loaded(1)
    assert is_loaded(1)


@pytest.mark.parametrize(("ending", "size"), [("nbi", 0), ("nbi", 60), ("nbc", 10)])
def test_a_file_that_is_cut_off_is_replaced(cache, ending, size):
    assert not is_loaded(1)
    (path,) = cache.rglob(f"*.{ending}")
    path.write_bytes(path.read_bytes()[:size])
    assert not is_loaded(1)
    assert is_loaded(1)


def test_a_file_that_cannot_be_read_or_replaced_stays(cache):
    assert not is_loaded(1)
    (path,) = cache.rglob("*.nbi")
    path.unlink()
    path.mkdir()
    assert not is_loaded(1)


def test_a_full_disk_leaves_what_is_there(cache, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    assert not is_loaded(1)
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert not is_loaded(1.5)
        assert is_loaded(1)
    assert is_loaded(1)


def test_a_folder_that_is_gone_and_cannot_be_made_again(cache):
    function = compiled()
    shutil.rmtree(cache)
    cache.write_text("a file in its place")
    assert function(3) == 6


def test_a_cache_without_these_attributes_stays_numbas_own():
    function = object()
    assert jit.made_safe(function) is function


@pytest.mark.parametrize(("flags", "lines"), [((), 0), (("-i",), 1)])
def test_compiling_is_said_once_and_only_at_a_prompt(flags, lines, tmp_path):
    code = "from skhorseshoe._backends._cpu import dense as cpu; import numpy as np; key = np.ones(2, np.uint32); "
    code += "cpu.normal((1, 1), key, 0, 0); cpu.uniform((1, 1), key, 0, 0); raise SystemExit"
    command = [sys.executable, *flags, "-c", code]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHON_BASIC_REPL": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, input="", check=True)
    assert done.stderr.count("compiles its kernels") == lines


@pytest.mark.slow
def test_the_process_that_compiles_has_the_numbers_of_those_that_load(tmp_path):
    """Of two kernels that call the same function a process could run one's copy in both, which rounds otherwise."""
    code = "import hashlib, numpy as np; from skhorseshoe import HorseshoeProbitClassifier; "
    code += "X = np.random.default_rng(0).standard_normal((300, 8)); y = X.sum(axis=1) > X[:, 0] * X[:, 1]; "
    code += "model = HorseshoeProbitClassifier(n_iter=100, burn_in=200, random_state=0).fit(X, y); "
    code += "print(hashlib.md5(model.coef_draws_.tobytes()).hexdigest())"
    command, environment = (
        [sys.executable, "-W", "ignore", "-c", code],
        {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )
    first, second = (subprocess.run(command, capture_output=True, env=environment, check=True).stdout for _ in range(2))
    assert first == second
