"""Compiles the core, C++ without a library of its own, into shared libraries: one for each level of the processor.

    python build_core.py            # for this machine, into the package: what an editable install runs
    python build_core.py wheels     # a wheel for every platform, into dist/

The compiler is Clang as the package ``ziglang`` brings it, pinned, so that all builds of a version draw the same
numbers; or ``CXX`` of the environment, whose draws may differ in their last bits.
"""

import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

ROOT = Path(__file__).parent
BACKENDS = ROOT / "skhorseshoe" / "_backends"
built = SimpleNamespace(**runpy.run_path(str(BACKENDS / "_cpu" / "built.py")))
CORE, EXPORTS = BACKENDS / "core", BACKENDS / "_cpu" / "exports"
HOME = "skhorseshoe/_backends/_cpu/lib"  # of the libraries in the package

# Nothing may assume that inf or NaN cannot occur, nor reorder a sum, nor round a b + c once but where the text says so:
# so all levels that have the instruction draw the same numbers.
COMMON_FLAGS = [
    *("-std=c++17", "-O2", "-g0", "-shared", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-psabi"),
    *("-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"),
    *("-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
]

# The levels and their processors. A further one is also in ``_LEVELS`` of _cpu/library.py and in ``core_level`` of
# _cpu/exports/processor.cpp, which says what a processor runs.
X86_LEVELS = {"baseline": "x86_64", "avx2": "x86_64_v3", "avx512": "x86_64_v4"}
# By platform: the compiler's target, the tag of a wheel, and the levels, of which the last that runs is used.
PLATFORMS = {
    "linux-x86_64": ("x86_64-linux-gnu.2.17", "manylinux_2_17_x86_64", X86_LEVELS),
    "linux-aarch64": ("aarch64-linux-gnu.2.17", "manylinux_2_17_aarch64", {"baseline": "generic"}),
    "musl-x86_64": ("x86_64-linux-musl", "musllinux_1_1_x86_64", X86_LEVELS),
    "musl-aarch64": ("aarch64-linux-musl", "musllinux_1_1_aarch64", {"baseline": "generic"}),
    "macos-arm64": ("aarch64-macos.11.0", "macosx_11_0_arm64", {"baseline": "apple_m1"}),
    "macos-x86_64": ("x86_64-macos.11.0", "macosx_11_0_x86_64", X86_LEVELS),
    "windows-x86_64": ("x86_64-windows-gnu", "win_amd64", X86_LEVELS),
}
here = built.here
SUFFIX = {"linux": "so", "musl": "so", "macos": "dylib", "windows": "dll"}


def compile_libraries(name, folder, macros=(), flags=(), only=None):
    """Compile for a platform into a folder; returns the files. macros : "NAME" or "NAME=value", of planted errors.
    flags : of the compiler, beside those of ``COMMON_FLAGS``. only : a level; all by default."""
    if name not in PLATFORMS:
        raise SystemExit(f"skhorseshoe knows no platform {name!r}; it is built for {', '.join(PLATFORMS)}.")
    target, _, levels = PLATFORMS[name]
    folder.mkdir(parents=True, exist_ok=True)

    def compile_level(level):
        made = folder.absolute() / f"core-{level}.{SUFFIX[name.partition('-')[0]]}"
        aside = made.with_suffix(".part")  # and renamed: a process that has the old one loaded keeps it
        command = [*_compiler(target, levels[level]), *COMMON_FLAGS, *flags, f"-I{CORE}", "-I.", *files]
        _run([*command, "-o", str(aside)], generated)
        return aside.replace(made)

    with tempfile.TemporaryDirectory() as generated, ThreadPoolExecutor() as pool:
        constants = runpy.run_path(str(BACKENDS / "constants.py"))
        Path(generated, "constants.hpp").write_text(constants["cpp_header"]())
        files = [_with_macros(file, macros, Path(generated)) for file in sorted(EXPORTS.glob("*.cpp"))]
        return list(pool.map(compile_level, [level for level in levels if only in (None, level)]))


def _with_macros(file, macros, folder):
    """The path of a source that defines those of the macros that it or what it includes names: the compiler then has
    the other sources in its cache."""
    values = dict(macro.partition("=")[::2] for macro in macros)
    text = "".join(path.read_text() for path in _included(file))
    defined = [f"#define {name} {value}\n" for name, value in values.items() if name in text]
    if not defined:
        return str(file)
    Path(folder, file.name).write_text(f'{"".join(defined)}#include "{file.as_posix()}"\n')
    return file.name


def _included(file):
    """A source, and all files of the core that it includes."""
    names = re.findall('#include "(.+)"', file.read_text())
    found = [path for name in names for path in (CORE / name, EXPORTS / name) if path.exists()]
    return {file}.union(*map(_included, found))


def build(name, folder):
    """Compile for a platform into a folder, with a note of what was built; returns the files."""
    what = {**_made_from(), "machine": name, "interface": built.interface()}  # before: a source may change meanwhile
    made = compile_libraries(name, folder)
    return [*made, built.write_note(folder, made, what)]


def refresh():
    """Compile into the checkout where the libraries that are there are not of these sources, or not as they were
    built."""
    folder = ROOT / HOME
    with suppress(ImportError):
        note = built.what_was_built(folder)
        if _made_from().items() <= note.items() and all(built.as_built(folder, note, level) for level in note["files"]):
            return
    build(here(), folder)


def _made_from():
    """Checksums of the sources, and of the files that have the flags and read the interface."""
    return {"sources": built.crc_of(*built.sources()), "flags": built.crc_of(Path(__file__), Path(built.__file__))}


def _compiler(target, cpu):
    if cxx := os.environ.get("CXX"):
        level = cpu.replace("_v", "-v").replace("x86_64", "x86-64")  # as GCC names it, and Clang by itself
        return [*shlex.split(cxx), *([f"-march={level}"] if cpu.startswith("x86_64") else [])]
    zig = [sys.executable, "-m", "ziglang", "c++", "-target", target, f"-mcpu={cpu}"]
    runtime = [] if "windows" in target else ["-rtlib=none"]  # which would be compiled for 5 s, and others do not need
    return [*zig, "-nostdlib++", *runtime, "-fno-sanitize=undefined"]


def _run(command, folder):
    cache = dict.fromkeys(("ZIG_GLOBAL_CACHE_DIR", "ZIG_LOCAL_CACHE_DIR"), str(_cache(folder)))
    try:
        done = subprocess.run(command, cwd=folder, env={**cache, **os.environ}, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        raise SystemExit(f"skhorseshoe: the compiler {command[0]!r} could not be started ({error}). {_CURE}") from None
    if done.returncode:
        raise SystemExit(f"skhorseshoe: the core could not be compiled by {command[0]!r}. {_CURE}\n{done.stderr}")


def _cache(folder):
    """Where the compiler keeps its own libraries: the usual place, or the folder where there is none that can be
    written, as in some containers."""
    for base in os.environ.get("XDG_CACHE_HOME", ""), os.path.expanduser(os.path.join("~", ".cache")):
        usual = Path(base, "zig")
        with suppress(OSError):
            if not usual.is_absolute():
                continue
            usual.mkdir(parents=True, exist_ok=True)
            if all(os.access(path, os.W_OK) for path in (usual, *usual.iterdir())):
                return usual
    return Path(folder, "cache")


_CURE = (
    "Install a wheel, for which nothing is compiled; or the build requirement `ziglang` of pyproject.toml, which "
    "brings a compiler; or set CXX to a C++17 compiler."
)


def build_wheels():
    """A wheel for every platform."""
    for name in PLATFORMS:
        env = {**os.environ, "SKHORSESHOE_PLATFORM": name}
        subprocess.run([sys.executable, "-m", "build", "--wheel", str(ROOT)], env=env, check=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["wheels"]:
        build_wheels()
    else:
        refresh()
