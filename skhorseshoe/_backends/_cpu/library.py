"""The core as a shared library: which level this processor runs, and its functions for Python.

The prototypes are read from the sources that stand beside the library, so that Python cannot disagree with them. A
call releases the GIL. Arrays are passed by their address: their type and their order are looked at before.
"""

import ctypes
import os
import re
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from weakref import WeakSet

_FOLDER = Path(__file__).parent
_NO_MEMORY = -1000
_LEVELS = "baseline", "avx2", "avx512"
_SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "double": ctypes.c_double}
_ARRAYS = {"double": "d", "float": "f", "u8": "B", "u32": "I", "i32": "i", "i64": "q"}  # type codes of NumPy
_PROTOTYPE = re.compile(r"^EXPORT (i32|u32) (\w+)\(([^)]*)\)", re.MULTILINE)


def _load():
    """The library of the best level that this processor runs. SKHORSESHOE_LEVEL names a lower one."""
    files = {path.stem.removeprefix("core-"): path for path in (_FOLDER / "lib").glob("core-*.*")}
    if "baseline" not in files:
        raise ImportError(
            f"skhorseshoe has no compiled core for this machine in {_FOLDER / 'lib'}. Install it by pip, which compiles "
            "it or fetches a wheel; in a checkout run `python build_core.py`."
        )
    try:
        baseline = ctypes.CDLL(str(files["baseline"]))
        wanted = os.environ.get("SKHORSESHOE_LEVEL")
        if wanted not in (None, *_LEVELS):
            raise ImportError(f"SKHORSESHOE_LEVEL is {wanted!r}: it may be {', '.join(_LEVELS)}, or not be set.")
        best = baseline.core_level() if wanted is None else min(_LEVELS.index(wanted), baseline.core_level())
        level = [name for name in _LEVELS[: best + 1] if name in files][-1]
        return level, baseline if level == "baseline" else ctypes.CDLL(str(files[level]))
    except OSError as error:
        raise ImportError(
            f"skhorseshoe cannot load its compiled core ({error}). It was built for another machine: install it anew "
            "with `pip install --force-reinstall --no-cache-dir skhorseshoe`."
        ) from None


level, _library = _load()


def _prototypes():
    text = "\n".join(path.read_text() for path in sorted((_FOLDER / "exports").glob("*.cpp")))
    return {name: (result, parameters) for result, name, parameters in _PROTOTYPE.findall(text)}


_known = _prototypes()


def checksum():
    """Of the sources that the library was made of."""
    _library.core_checksum.restype = ctypes.c_uint32
    return _library.core_checksum()


_functions = WeakSet()


class function:
    """An exported function as one of Python; it returns what the core returns, an integer, and raises MemoryError."""

    def __init__(self, name):
        self.name, self._convert, self._types = name, [], []
        for parameter in filter(None, map(str.strip, _known[name][1].split(","))):
            *kind, _ = parameter.replace("*", " * ").replace("const ", "").split()
            is_array = kind[-1] == "*"
            self._types.append(ctypes.c_void_p if is_array else _SCALARS[kind[0]])
            number = float if kind[0] == "double" else int
            self._convert.append(partial(_address, _ARRAYS.get(kind[0], ""), name) if is_array else number)
        _functions.add(self)
        self._find()

    def _find(self):
        self._raw = getattr(_library, self.name)
        self._raw.argtypes, self._raw.restype = self._types, ctypes.c_int32

    def __call__(self, *values):
        status = self._raw(*[of(value) for of, value in zip(self._convert, values, strict=True)])
        if status == _NO_MEMORY:
            raise MemoryError(f"no memory for the working space of {self.name}")
        return status


@contextmanager
def use(file):
    """A context in which every ``function`` is that of another library of the same prototypes: so tests plant errors in
    the core."""
    kept = _library
    _take(ctypes.CDLL(str(file)))
    try:
        yield
    finally:
        _take(kept)


def _take(library):
    global _library
    _library = library
    for one in _functions:
        one._find()


def _address(code, name, array):
    """Of an array, whose type is looked at; an integer is an address already, and None is none."""
    if array is None or type(array) is int:
        return array
    char = array.dtype.char
    if (code and char != code and char not in _SAME.get(code, ())) or not array.flags.c_contiguous:
        raise TypeError(
            f"{name}: an array of type {code or 'any'} in C order is needed, not one of {array.dtype}, shape "
            f"{array.shape}, strides {array.strides}."
        )
    return array.ctypes.data


_SAME = {"q": "lpn", "B": "?"}  # other names of a type, where it has as many bytes
