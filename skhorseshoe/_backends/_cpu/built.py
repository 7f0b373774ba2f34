"""What the core was built from and what came out, noted beside its libraries, and whether that still holds.

A library that is not of these sources, or not as it was built, would end the process when it is loaded or called. The
build runs this file without the package, so it imports the standard library alone.
"""

import json
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from zlib import crc32

_BACKENDS = Path(__file__).parents[1]
_ROOT = _BACKENDS.parents[1]
_NOTE = "built.json"


def sources():
    """All files that the libraries are made of."""
    core, exports = _BACKENDS / "core", _BACKENDS / "_cpu" / "exports"
    return [_BACKENDS / "constants.py", *sorted(core.rglob("*.hpp")), *sorted(exports.glob("*.[ch]pp"))]


def interface():
    """By name, the parameters of each export and the fields of each struct that Python fills, as declared."""
    text = "\n".join(path.read_text() for path in sources())
    exports = re.findall(r"^EXPORT i32 (\w+)\(([^)]*)\)", text, re.MULTILINE)
    structs = re.findall(r"^struct (\w+) {  // filled by Python\n(.*?)^};", text, re.MULTILINE | re.DOTALL)
    fields = {name: re.findall(r"^\s+([^/\n]+);", body, re.MULTILINE) for name, body in structs}
    return {name: parameters.split(",") if parameters else [] for name, parameters in exports}, fields


def crc_of(*paths):
    return crc32(b"".join(path.read_bytes() for path in paths))


def write_note(folder, files, what):
    """Note the files that were built, and ``what`` they were built from and for; returns the note."""
    made = {path.stem.removeprefix("core-"): [path.name, path.stat().st_size, crc_of(path)] for path in files}
    (folder / _NOTE).write_text(json.dumps({**what, "files": made}))
    return folder / _NOTE


def what_was_built(folder):
    """The note; an ImportError if there is none, or it is of other sources."""
    try:
        note = json.loads((folder / _NOTE).read_bytes())
        built_from, _, _ = note["sources"], note["files"]["baseline"], note["interface"]
    except (OSError, ValueError, LookupError, TypeError):
        raise ImportError(
            f"skhorseshoe has no compiled core in {folder}, or none that says what it was built from. {_cure()}"
        ) from None
    if built_from != (now := crc_of(*sources())):
        raise ImportError(
            f"The compiled core of skhorseshoe in {folder} is older or newer than its sources, as after a `git pull`: "
            f"it was built from sources with the checksum {built_from}, and theirs is {now}. {_cure()}"
        )
    return note


def as_built(folder, note, level):
    """The library of a level; an ImportError if it is not what was built."""
    name, *expected = note["files"][level]
    path, wanted = folder / name, "{} bytes with the checksum {}".format(*expected)
    try:
        found = [path.stat().st_size, crc_of(path)]
    except OSError as error:
        raise ImportError(f"{path} cannot be read ({error.strerror}); it should have {wanted}. {_cure()}") from None
    if found != expected:
        raise ImportError(
            f"{path} is not the library that was built: that had {wanted}, and this has {found[0]} bytes with the "
            f"checksum {found[1]}. It was cut short, replaced or changed, as by strip or patchelf. {_cure()}"
        )
    return path


def why_refused(folder, note, error):
    """Words on why the system does not load a library that is as it was built."""
    said = f"The system does not load the compiled core of skhorseshoe in {folder} ({error}). "
    if note["machine"] != here():
        return said + f"It was built for {note['machine']}, and this is {here()}. {_cure()}"
    if hasattr(os, "ST_NOEXEC") and os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return said + (
            "The folder lies on a file system from which nothing may be run (mounted with noexec). Install into an "
            "environment on another file system, or have it mounted with exec."
        )
    return said + (
        "The file is as it was built, and for this kind of machine: look for limits of memory (ulimit -v), rules of "
        f"this system on what may be run, or another C library. Else: {_cure()}"
    )


def here():
    """The name of the platform that runs this."""
    machine = {"amd64": "x86_64", "arm64": "aarch64"}.get(platform.machine().lower(), platform.machine().lower())
    if sys.platform == "darwin":
        return "macos-" + ("arm64" if machine == "aarch64" else machine)
    if sys.platform == "win32":
        return f"windows-{machine}"
    is_musl = "musl" in (sysconfig.get_config_var("HOST_GNU_TYPE") or "")
    return f"{'musl' if is_musl else 'linux'}-{machine}"


def _cure():
    if (_ROOT / "build_core.py").exists():
        return f"In {_ROOT} run `python build_core.py`, or `pip install -e .`, which brings a compiler along."
    return "Install it anew: `pip install --force-reinstall --no-deps --no-cache-dir skhorseshoe`."
