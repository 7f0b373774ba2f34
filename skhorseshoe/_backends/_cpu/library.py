"""The core as a shared library: the level for this processor, and its exports as functions of Python.

Prototypes are read from the sources, which are installed with the library, so that Python cannot disagree with them. A
call releases the GIL. Arrays are passed by address, after a check of their type and order; a tuple, such as a shape or
a key, is passed as its members.
"""

import ctypes
import os
import re
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from weakref import WeakSet

from .. import flat
from .built import as_built, sources, what_was_built, why_refused
from .lapack import ROUTINES

_FOLDER = Path(__file__).parent
_NO_MEMORY = -1000  # status of an export without memory, as in exports/export.hpp
# Builds of the core, by the instructions that they need: those of ``X86_LEVELS`` in build_core.py, in the order of
# ``core_level`` in exports/processor.cpp.
_LEVELS = "baseline", "avx2", "avx512"
_SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "double": ctypes.c_double}
_ARRAYS = {"double": "d", "float": "f", "u8": "B", "u32": "I", "i32": "i", "i64": "q"}  # type codes of NumPy
_PROTOTYPE = re.compile(r"^EXPORT i32 (\w+)\(([^)]*)\)", re.MULTILINE)
_RECORD = re.compile(r"^struct (\w+) {  // filled by Python\n(.*?)^};", re.MULTILINE | re.DOTALL)


def load_best_level(folder):
    """The best level for this processor, or that of SKHORSESHOE_LEVEL, and its library."""
    note = what_was_built(folder)
    try:
        baseline = _open_library(as_built(folder, note, "baseline"))
        wanted = os.environ.get("SKHORSESHOE_LEVEL")
        if wanted not in (None, *_LEVELS):
            raise ImportError(f"SKHORSESHOE_LEVEL is {wanted!r}: it may be {', '.join(_LEVELS)}, or not be set.")
        best = baseline.core_level() if wanted is None else min(_LEVELS.index(wanted), baseline.core_level())
        level = [name for name in _LEVELS[: best + 1] if name in note["files"]][-1]
        return level, baseline if level == "baseline" else _open_library(as_built(folder, note, level))
    except OSError as error:
        raise ImportError(why_refused(folder, note, error)) from None


def _open_library(file):
    library = ctypes.CDLL(str(file))
    library.set_routines(ctypes.c_void_p(ROUTINES.ctypes.data))
    return library


level, _library = load_best_level(_FOLDER / "lib")


_text = "\n".join(path.read_text() for path in sources())
_prototypes = {name: parameters.split(",") for name, parameters in _PROTOTYPE.findall(_text)}
_records = {name: re.findall(r"^\s+([^/\n]+);", fields, re.MULTILINE) for name, fields in _RECORD.findall(_text)}


_functions = WeakSet()


class function:
    """An export as a function of Python. It returns the integer of the core, or raises MemoryError."""

    def __init__(self, name):
        declared = [_declared(parameter, name) for parameter in _prototypes[name] if parameter.strip()]
        self.name = name
        self._types, self._convert = [kind for _, kind, _ in declared], [convert for _, _, convert in declared]
        _functions.add(self)
        self._find()

    def _find(self):
        self._raw = getattr(_library, self.name)
        self._raw.argtypes, self._raw.restype = self._types, ctypes.c_int32

    def __call__(self, *values):
        status = self._raw(*[convert(value) for convert, value in zip(self._convert, flat(values), strict=True)])
        if status == _NO_MEMORY:
            raise MemoryError(f"no memory for the working space of {self.name}")
        return status


@contextmanager
def use(file):
    """A context in which every ``function`` is that of another library with the same prototypes, by which tests plant
    errors in the core."""
    current = _library
    _take(_open_library(file))
    try:
        yield
    finally:
        _take(current)


def _take(library):
    global _library
    _library = library
    for export in _functions:
        export._find()


def record(name, values):
    """A ``Record`` of the struct with this name, from the values of its fields."""
    structure, fields = _structure(name)
    return Record(structure(*[convert(values[field]) for field, convert in fields]), values)


@cache
def _structure(name):
    declared = [_declared(field, name) for field in _records[name]]
    structure = type(name, (ctypes.Structure,), {"_fields_": [(field, kind) for field, kind, _ in declared]})
    return structure, [(field, convert) for field, _, convert in declared]


class Record:
    """A struct that exports take by address, and the arrays that it points to, which must live as long."""

    def __init__(self, structure, values):
        self.structure, self.values = structure, values
        self.address = ctypes.addressof(structure)


def _declared(text, name):
    """Name, type for ctypes, and conversion of a parameter or a field."""
    *kind, field = text.replace("*", " * ").replace("const ", "").split()
    if kind[-1] == "*":
        return field, ctypes.c_void_p, partial(_address, _ARRAYS.get(kind[0], ""), f"{name}, {field}")
    return field, _SCALARS[kind[0]], float if kind[0] == "double" else int


def _address(code, name, array):
    """The address of an array or a record, after a check of its type; None for None."""
    if array is None:
        return None
    if type(array) is Record:
        return array.address
    char = array.dtype.char
    try:
        if code and char != code and char not in _SAME.get(code, ()):
            raise TypeError
        if array.flags.writeable:  # takes a third of the time; fails for arrays in another order
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
_SAME = {"q": "lpn", "B": "?"}  # further type codes of arrays that may be passed
