"""The core as a shared library: the level for this processor, and its exports as functions of Python.

Prototypes and structs are those that the build has noted (``built.interface``). A call releases the GIL. Arrays are
passed by address, after a check of their type and order. Where the core takes a struct, a call takes a tuple of its
fields, or a ``record`` of them, which is made once for many calls.
"""

import ctypes
import os
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from weakref import WeakSet

from .built import as_built, what_was_built, why_refused
from .lapack import ROUTINES

_FOLDER = Path(__file__).parent
_NO_MEMORY = -1000  # status of an export without memory, as in exports/export.hpp
# Builds of the core, by the instructions that they need: those of ``X86_LEVELS`` in build_core.py, in the order of
# ``core_level`` in exports/processor.cpp.
_LEVELS = "baseline", "avx2", "avx512"
_SCALARS = {"i64": ctypes.c_int64, "i32": ctypes.c_int32, "u32": ctypes.c_uint32, "double": ctypes.c_double}
_ARRAYS = {"double": "d", "float": "f", "u8": "B", "u32": "I", "i32": "i", "i64": "q"}  # type codes of NumPy


def load_best_level(folder):
    """The best level for this processor, or that of SKHORSESHOE_LEVEL, its library, and the interface of the core."""
    note = what_was_built(folder)
    try:
        baseline = _open_library(as_built(folder, note, "baseline"))
        wanted = os.environ.get("SKHORSESHOE_LEVEL")
        if wanted not in (None, *_LEVELS):
            raise ImportError(f"SKHORSESHOE_LEVEL is {wanted!r}: it may be {', '.join(_LEVELS)}, or not be set.")
        best = baseline.core_level() if wanted is None else min(_LEVELS.index(wanted), baseline.core_level())
        level = [name for name in _LEVELS[: best + 1] if name in note["files"]][-1]
        library = baseline if level == "baseline" else _open_library(as_built(folder, note, level))
        return level, library, note["interface"]
    except OSError as error:
        raise ImportError(why_refused(folder, note, error)) from None


def _open_library(file):
    library = ctypes.CDLL(str(file))
    library.set_routines(ctypes.c_void_p(ROUTINES.ctypes.data))
    return library


level, _library, (_prototypes, _records) = load_best_level(_FOLDER / "lib")
_functions = WeakSet()


class function:
    """An export as a function of Python. It returns the integer of the core, or raises MemoryError."""

    def __init__(self, name):
        declared = [one for parameter in _prototypes[name] for one in _declared(parameter, name, of_call=True)]
        self.name = name
        self._types, self._convert = [kind for _, kind, _ in declared], [convert for _, _, convert in declared]
        _functions.add(self)
        self._find()

    def _find(self):
        self._raw = getattr(_library, self.name)
        self._raw.argtypes, self._raw.restype = self._types, ctypes.c_int32

    def __call__(self, *values):
        status = self._raw(*[convert(value) for convert, value in zip(self._convert, values, strict=True)])
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
    """A struct of the core, from its fields in order or by name; it keeps the arrays that it points to."""
    made = _maker(name)(values)
    made.given = values
    return made


@cache
def _maker(name):
    """A function from the fields of a struct of the core, in order or by name, to a structure of ctypes."""
    fields, kinds, conversions = zip(*[one for text in _records[name] for one in _declared(text, name)], strict=True)
    structure = type(name, (ctypes.Structure,), {"_fields_": list(zip(fields, kinds, strict=True))})

    def make(values):
        values = [values[field] for field in fields] if type(values) is dict else values
        return structure(*[convert(value) for convert, value in zip(conversions, values, strict=True)])

    def refer(values):
        """A record, or one that is made of its fields for the time of a call, by reference; None for None."""
        return None if values is None else byref(values if type(values) is structure else make(values))

    make.structure, make.fields, make.refer, byref = structure, fields, refer, ctypes.byref
    return make


def _declared(text, where, of_call=False):
    """Name, type for ctypes and conversion of each field or parameter of a declaration."""
    kind, names = text.replace("const ", "").replace("*", " *").split(maxsplit=1)
    for name in names.split(","):
        field = name.strip("* ")
        if "*" in name and kind in _records:
            yield field, ctypes.c_void_p, _maker(kind).refer if of_call else _address_of_record
        elif "*" in name:
            yield field, ctypes.c_void_p, partial(_address, _ARRAYS.get(kind, ""), f"{where}, {field}")
        elif kind in _records:
            yield field, _maker(kind).structure, _maker(kind)
        else:
            yield field, _SCALARS[kind], float if kind == "double" else int


def _address_of_record(made):
    return None if made is None else ctypes.addressof(made)


def _address(code, name, array):
    """The address of an array, after a check of its type; None for None."""
    if array is None:
        return None
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
