"""The compiled core: which level is loaded, what is refused, and that all levels draw the same numbers."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import build_core
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import library
from skhorseshoe.datasets import make_sparse_probit

ROOT = Path(build_core.__file__).parent

LIBRARIES = ROOT / build_core.HOME


def draws_of(level, monkeypatch):
    """What the core of this level draws, and the probabilities that it answers with, as bytes."""
    monkeypatch.setenv("SKHORSESHOE_LEVEL", level)
    loaded, _ = library.load_best_level(LIBRARIES)
    if loaded != level:
        pytest.skip(f"this processor does not run the level {level}")
    (file,), drawn = LIBRARIES.glob(f"core-{level}.*"), []
    with library.use(file):
        for n, p, more in ((600, 7, {}), (3000, 20, {"sampler": "gibbs"}), (40, 90, {"slab_scale": 2.0})):
            for dtype in ("float32", "float64"):
                X, y, _ = make_sparse_probit(n, p, dtype=dtype, random_state=0)
                model = HorseshoeProbitClassifier(n_iter=20, burn_in=20, n_jobs=1, random_state=0, **more).fit(X, y)
                drawn += [model.coef_draws_, model.global_scale_draws_, model.predict_proba(X)]
    return [values.tobytes() for values in drawn]


@pytest.mark.filterwarnings("ignore:X has more columns")
def test_levels_draw_the_same_numbers(monkeypatch):
    assert draws_of("avx512", monkeypatch) == draws_of("avx2", monkeypatch)


def test_the_library_is_of_these_sources():
    assert library.core_checksum() == build_core.checksum()


def test_a_level_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("SKHORSESHOE_LEVEL", "sse")
    with pytest.raises(ImportError, match="SKHORSESHOE_LEVEL is 'sse': it may be baseline, avx2, avx512"):
        library.load_best_level(LIBRARIES)


def test_a_package_without_a_core_says_what_to_do(tmp_path):
    with pytest.raises(ImportError, match=r"no compiled core.*Install it by pip.*python build_core\.py"):
        library.load_best_level(tmp_path)


def test_the_core_of_another_machine_is_refused(tmp_path):
    (tmp_path / "core-baseline.so").write_bytes(b"MZ of another system")
    with pytest.raises(ImportError, match="built for another machine: install it anew"):
        library.load_best_level(tmp_path)


def test_arrays_that_a_kernel_would_misread_are_refused():
    fill, out = library.function("fill_normal"), np.empty((4, 6))
    for wrong in (out.astype(np.float32), out.T, out[:, ::2]):
        with pytest.raises(TypeError, match="an array of type d in C order is needed"):
            fill(wrong, wrong.shape, 0, 1, 2, np.array([3, 4], np.uint32))


def test_a_call_with_too_few_arguments_is_an_error():
    with pytest.raises(ValueError, match="zip"):
        library.function("fill_normal")(np.empty((4, 6)), 4)


def test_a_compiler_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler -O1")
    with pytest.raises(SystemExit, match=r"'no-such-compiler' could not be started.*CXX to a C\+\+17 compiler"):
        build_core.compile_libraries(build_core.here(), tmp_path)


def test_a_platform_without_a_target_is_named(tmp_path):
    with pytest.raises(SystemExit, match="knows no platform 'amiga'"):
        build_core.compile_libraries("amiga", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*build_core.PLATFORMS} - {build_core.here()}))
def test_every_other_platform_is_compiled(name, tmp_path):
    """It is known that the compiler takes their best level; of these, ``.ci/aarch64`` runs one."""
    (made,) = build_core.compile_libraries(name, tmp_path, only=list(build_core.PLATFORMS[name][2])[-1])
    magic = {"so": b"\x7fELF", "dylib": b"\xcf\xfa\xed\xfe", "dll": b"MZ"}
    assert made.read_bytes().startswith(magic[made.suffix[1:]])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++") or sys.platform != "linux", reason="needs g++, whose sanitizers these are")
def test_sanitizers_find_nothing(tmp_path, monkeypatch):
    """The tests of the kernels with a core that looks at every access and every operation."""
    monkeypatch.setenv("CXX", "g++")
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1"]
    (file,) = build_core.compile_libraries(build_core.here(), tmp_path, flags=flags, only=library.level)
    preload = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    env = {**os.environ, "LD_PRELOAD": preload.strip(), "ASAN_OPTIONS": "detect_leaks=0", "SKHORSESHOE_TEST_CORE": file}
    tests = [
        "tests/backends/cpu",
        "tests/mcmc/test_line_moves.py",
        "tests/mcmc/test_hmc.py",
        "tests/mcmc/test_hmc_prior_coordinates.py",
    ]
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-x", "--deselect", __file__, *tests]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={key: str(value) for key, value in env.items()},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert done.returncode == 0, done.stdout[-5000:]
