"""The addresses of SciPy's LAPACK and BLAS, which the core calls: SciPy's own wrappers hold the GIL or copy."""

import ctypes

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

_name, _pointer = ctypes.pythonapi["PyCapsule_GetName"], ctypes.pythonapi["PyCapsule_GetPointer"]
_name.argtypes, _name.restype = [ctypes.py_object], ctypes.c_char_p
_pointer.argtypes, _pointer.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p


def _routine(module, name):
    capsule = module.__pyx_capi__[name]
    return _pointer(capsule, _name(capsule))


# In the order of ``Routines`` in exports/lapack.hpp.
ROUTINES = np.array(
    [_routine(cython_lapack, "dpotrf"), _routine(cython_blas, "dsyrk"), _routine(cython_blas, "dtrsm")], np.int64
)
