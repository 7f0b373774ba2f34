"""The compiled core: which level is loaded, what is refused, and that all levels draw the same numbers."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import build_core
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import built, library
from skhorseshoe.datasets import make_sparse_probit

ROOT = Path(build_core.__file__).parent

LIBRARIES = ROOT / build_core.HOME


def draws_of(level, monkeypatch):
    """What the core of this level draws, and the probabilities that it answers with, as bytes."""
    monkeypatch.setenv("SKHORSESHOE_LEVEL", level)
    loaded, *_ = library.load_best_level(LIBRARIES)
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


def test_a_level_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("SKHORSESHOE_LEVEL", "sse")
    with pytest.raises(ImportError, match="SKHORSESHOE_LEVEL is 'sse': it may be baseline, avx2, avx512"):
        library.load_best_level(LIBRARIES)


def change(folder, **of_note):
    note = json.loads((folder / "built.json").read_text())
    (folder / "built.json").write_text(json.dumps(note | of_note))


def cut(path):
    path.write_bytes(path.read_bytes()[:-5000])


NOT_BUILT = r"core-baseline.* is not the library that was built: that had \d+ bytes with the checksum \d+, and this has"
FAULTS = {
    "not compiled": (shutil.rmtree, "no compiled core in"),
    "no note": (lambda folder: (folder / "built.json").unlink(), "no compiled core in .* what it was built from"),
    "the note is cut": (lambda folder: cut(folder / "built.json"), "no compiled core in"),
    "another note": (lambda folder: (folder / "built.json").write_text("[1]"), "no compiled core in"),
    "no baseline": (lambda folder: change(folder, files={}), "no compiled core in"),
    "other sources": (lambda folder: change(folder, sources=1), "older or newer than its sources.* checksum 1, and"),
    "cut short": (lambda folder: cut(next(folder.glob("core-baseline.*"))), NOT_BUILT),
    "foreign": (lambda folder: shutil.copy(sys.executable, next(folder.glob("core-baseline.*"))), NOT_BUILT),
    "gone": (lambda folder: next(folder.glob("core-baseline.*")).unlink(), r"core-baseline.* cannot be read \(No such"),
    "one level gone": (lambda folder: next(folder.glob(f"core-{library.level}.*")).unlink(), "cannot be read"),
}


@pytest.fixture
def copied(tmp_path):
    return Path(shutil.copytree(LIBRARIES, tmp_path / "lib"))


@pytest.mark.parametrize("how", FAULTS)
def test_a_core_that_is_not_as_it_was_built_is_refused(how, copied):
    """Else the process would end when it is loaded or called."""
    assert library.load_best_level(copied)[0] == library.level
    fault, message = FAULTS[how]
    fault(copied)
    with pytest.raises(ImportError, match=rf"{message}.* In {ROOT} run `python build_core\.py`"):
        library.load_best_level(copied)


def test_an_edited_source_is_noticed(monkeypatch, tmp_path):
    """As after a pull into a checkout that is installed by ``pip install -e``."""
    shutil.copytree(build_core.BACKENDS, tmp_path / "_backends", ignore=shutil.ignore_patterns("lib"))
    monkeypatch.setattr(built, "_BACKENDS", tmp_path / "_backends")
    library.load_best_level(LIBRARIES)
    with built.sources()[-1].open("a") as file:
        file.write("//")
    with pytest.raises(ImportError, match="older or newer than its sources, as after a `git pull`"):
        library.load_best_level(LIBRARIES)


def test_outside_a_checkout_the_cure_is_to_install_anew(monkeypatch, tmp_path):
    monkeypatch.setattr(built, "_ROOT", tmp_path)
    with pytest.raises(ImportError, match="Install it anew: `pip install --force-reinstall"):
        library.load_best_level(tmp_path)


REFUSED = {
    "another machine": ({"machine": "amiga-68k"}, 0, f"was built for amiga-68k, and this is {build_core.here()}"),
    "a noexec mount": ({}, getattr(os, "ST_NOEXEC", 0), "from which nothing may be run .* another file system"),
    "else": ({}, 0, "is as it was built.* limits of memory"),
}


@pytest.mark.parametrize("why", REFUSED)
def test_a_core_that_the_system_does_not_load_says_why(why, copied, monkeypatch):
    of_note, flags, message = REFUSED[why]
    if why == "a noexec mount" and not flags:
        pytest.skip("mounts are told on Linux")
    (file,) = copied.glob("core-baseline.*")
    file.write_bytes(b"MZ of another system")
    built.write_note(copied, [file], json.loads((copied / "built.json").read_text()) | of_note)
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=flags), raising=False)
    with pytest.raises(ImportError, match=rf"does not load the compiled core of skhorseshoe in .*{message}"):
        library.load_best_level(copied)


def test_a_build_that_was_interrupted_is_done_again(copied, monkeypatch):
    done = []
    monkeypatch.setattr(build_core, "HOME", copied)
    monkeypatch.setattr(build_core, "build", lambda *where: done.append(where))
    build_core.refresh()
    assert done == []
    cut(next(copied.glob("core-*.*")))
    build_core.refresh()
    change(copied, flags=1)
    build_core.refresh()
    assert done == [(build_core.here(), copied)] * 2


HOMES = {
    "none": {"HOME": None},
    "not there": {"HOME": "/proc/nowhere"},
    "no folder": {"HOME": "{file}"},
    "relative": {"HOME": "here"},
    "of the cache alone": {"HOME": None, "XDG_CACHE_HOME": "{folder}"},
    "neither": {"HOME": "{file}", "XDG_CACHE_HOME": "{file}"},
}


@pytest.mark.parametrize("home", HOMES)
def test_the_compiler_needs_no_home(home, tmp_path, monkeypatch):
    """It would end without a place for its cache: it is always given one that can be written."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path.replace("~", os.environ.get("HOME", "~")))
    for name, value in HOMES[home].items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value.format(file=tmp_path / "file", folder=tmp_path / "cached"))
    given = build_core._cache(tmp_path / "build")
    assert given == tmp_path / ("cached/zig" if "cache alone" in home else "build/cache")
    assert {path.name for path in tmp_path.iterdir()} <= {"file", "cached"}


def test_a_cache_with_parts_of_another_user_is_not_taken(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "usual"))
    (tmp_path / "usual" / "zig" / "h").mkdir(parents=True)
    assert build_core._cache(tmp_path) == tmp_path / "usual" / "zig"
    monkeypatch.setattr(os, "access", lambda path, mode: path.name != "h")
    monkeypatch.setattr(os.path, "expanduser", lambda path: "~")
    assert build_core._cache(tmp_path) == tmp_path / "cache"


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
    """It is known that the compiler takes their best level. One that ``.ci/aarch64`` runs is optimised too: the
    instructions of the others are those of that one and of here."""
    flags = [] if name == "linux-aarch64" else ["-O0"]
    (made,) = build_core.compile_libraries(name, tmp_path, flags=flags, only=list(build_core.PLATFORMS[name][2])[-1])
    magic = {"so": b"\x7fELF", "dylib": b"\xcf\xfa\xed\xfe", "dll": b"MZ"}
    assert made.read_bytes().startswith(magic[made.suffix[1:]])


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("g++") or sys.platform != "linux", reason="needs g++, whose sanitizers these are")
def test_sanitizers_find_nothing(tmp_path, monkeypatch):
    """The tests of the kernels with a core that looks at every access and every operation, but for those of selections
    and of memory, which call none that others do not."""
    monkeypatch.setenv("CXX", "g++")
    flags = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", "-O1"]
    (file,) = build_core.compile_libraries(build_core.here(), tmp_path, flags=flags, only=library.level)
    preload = subprocess.run(["g++", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    env = {
        **os.environ,
        "LD_PRELOAD": preload.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",
        "SKHORSESHOE_TEST_CORE": str(file),
    }
    of_chains = "test_line_moves.py", "test_hmc.py", "test_hmc_prior_coordinates.py"
    tests = ["tests/backends/cpu", *(f"tests/mcmc/{name}" for name in of_chains)]
    options = "-n", "0", "-q", "-x", "--ignore", __file__, "-k", "not selection and not nothing_of_the_size"
    command = [sys.executable, "-m", "pytest", *options, *tests]
    together = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=ROOT, env=env, text=True, **together)
    assert done.returncode == 0, done.stdout[-5000:]
