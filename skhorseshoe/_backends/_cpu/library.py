"""The core as a shared library: which level this processor runs, and its functions for Python.

The prototypes are read from the sources that stand beside the library, so that Python cannot disagree with them. A
call releases the GIL. Arrays are passed by their address: their type and their order are looked at before.
"""

import ctypes
import os
import re
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from weakref import WeakSet

from .lapack import ROUTINES

_FOLDER = Path(__file__).parent
_NO_MEMORY = -1000
_LEVELS = "baseline", "avx2", "avx512"
_SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "double": ctypes.c_double}
_ARRAYS = {"double": "d", "float": "f", "u8": "B", "u32": "I", "i32": "i", "i64": "q"}  # type codes of NumPy
_PROTOTYPE = re.compile(r"^EXPORT (i32|u32) (\w+)\(([^)]*)\)", re.MULTILINE)
_RECORD = re.compile(r"^struct (\w+) {  // filled by Python\n(.*?)^};", re.MULTILINE | re.DOTALL)


def load(folder):
    """The best level that this processor runs, and its library. SKHORSESHOE_LEVEL names a lower one."""
    files = {path.stem.removeprefix("core-"): path for path in folder.glob("core-*.*")}
    if "baseline" not in files:
        raise ImportError(
            f"skhorseshoe has no compiled core for this machine in {folder}. Install it by pip, which "
            "compiles it or fetches a wheel; in a checkout run `python build_core.py`."
        )
    try:
        baseline = _open(files["baseline"])
        wanted = os.environ.get("SKHORSESHOE_LEVEL")
        if wanted not in (None, *_LEVELS):
            raise ImportError(f"SKHORSESHOE_LEVEL is {wanted!r}: it may be {', '.join(_LEVELS)}, or not be set.")
        best = baseline.core_level() if wanted is None else min(_LEVELS.index(wanted), baseline.core_level())
        level = [name for name in _LEVELS[: best + 1] if name in files][-1]
        return level, baseline if level == "baseline" else _open(files[level])
    except OSError as error:
        raise ImportError(
            f"skhorseshoe cannot load its compiled core ({error}). It was built for another machine: install it anew "
            "with `pip install --force-reinstall --no-cache-dir skhorseshoe`."
        ) from None


def _open(file):
    library = ctypes.CDLL(str(file))
    library.set_routines(ctypes.c_void_p(ROUTINES.ctypes.data))
    return library


level, _library = load(_FOLDER / "lib")


def _sources():
    folders = _FOLDER / "exports", _FOLDER.parent / "core"
    return "\n".join(path.read_text() for folder in folders for path in sorted(folder.glob("*.?pp")))


_text = _sources()
_prototypes = {name: parameters.split(",") for _, name, parameters in _PROTOTYPE.findall(_text)}
_records = {name: re.findall(r"^\s+([^/\n]+);", fields, re.MULTILINE) for name, fields in _RECORD.findall(_text)}


def checksum():
    """Of the sources that the library was made of."""
    _library.core_checksum.restype = ctypes.c_uint32
    return _library.core_checksum()


_functions = WeakSet()


class function:
    """An exported function as one of Python; it returns what the core returns, an integer, and raises MemoryError."""

    def __init__(self, name):
        declared = [_declared(parameter, name) for parameter in _prototypes[name] if parameter.strip()]
        self.name = name
        self._types, self._convert = [kind for _, kind, _ in declared], [of for _, _, of in declared]
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
    _take(_open(file))
    try:
        yield
    finally:
        _take(kept)


def _take(library):
    global _library
    _library = library
    for one in _functions:
        one._find()


def record(name, **values):
    """What a function takes by address: a structure of the core with these fields, and the arrays that it points to."""
    made, convert = _structure(name)
    return Record(made(*[of(values[field]) for field, of in convert]), values)


@cache
def _structure(name):
    declared = [_declared(field, name) for field in _records[name]]
    made = type(name, (ctypes.Structure,), {"_fields_": [(field, kind) for field, kind, _ in declared]})
    return made, [(field, of) for field, _, of in declared]


class Record:
    """A structure, and what must live as long as it is used."""

    def __init__(self, structure, values):
        self.structure, self.values = structure, values
        self.address = ctypes.addressof(structure)


def _declared(text, name):
    """A parameter or a field: its name, its type for ctypes, and what makes a value one of the type."""
    *kind, own = text.replace("*", " * ").replace("const ", "").split()
    if kind[-1] == "*":
        return own, ctypes.c_void_p, partial(_address, _ARRAYS.get(kind[0], ""), f"{name}, {own}")
    return own, _SCALARS[kind[0]], float if kind[0] == "double" else int


def _address(code, name, array):
    """Of an array, whose type is looked at; None is none."""
    if array is None:
        return None
    if type(array) is Record:
        return array.address
    char = array.dtype.char
    try:
        if code and char != code and char not in _SAME.get(code, ()):
            raise TypeError
        if array.flags.writeable:  # a third of the time of the other way; no other order of an array has it
            return ctypes.addressof(_NOTHING.from_buffer(array))
        if not array.flags.c_contiguous:
            raise TypeError
    except TypeError:
        raise TypeError(
            f"{name}: an array of type {code or 'any'} in C order is needed, not one of {array.dtype}, shape "
            f"{array.shape}, strides {array.strides}."
        ) from None
    return array.ctypes.data


_NOTHING = ctypes.c_char * 0
_SAME = {"q": "lpn", "B": "?"}  # other names of a type, where it has as many bytes
