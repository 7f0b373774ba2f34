"""LAPACK and BLAS in place and without the GIL, so that threads work side by side.

From Python through ctypes, from compiled kernels at the addresses that SciPy exports.
"""

import ctypes

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic


def _address(module, name):
    return get_cython_function_address(f"scipy.linalg.cython_{module}", name)


def _routine(module, name, n_arguments):
    # SciPy's and NumPy's own wrappers hold the GIL or copy.
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * n_arguments)(_address(module, name))


potrf = _routine("lapack", "dpotrf", 5)
potri = _routine("lapack", "dpotri", 5)
_syrk = _routine("blas", "dsyrk", 10)


def add_products(A, total, of_columns):
    """Lower triangle of total += A'A if of_columns, else A A'; float64, C-contiguous."""
    m, n = (ctypes.c_int(size) for size in A.shape)
    one, n_at = ctypes.c_double(1.0), ctypes.byref(n)
    # What is row by row here is column by column for BLAS: the transposes, and its upper triangle.
    if of_columns:
        transposed, order, inner = b"N", n_at, ctypes.byref(m)
    else:
        transposed, order, inner = b"T", ctypes.byref(m), n_at
    arguments = b"U", transposed, order, inner, ctypes.byref(one), A.ctypes.data, n_at, ctypes.byref(one)
    _syrk(*arguments, total.ctypes.data, order)


# Cached kernels cannot hold addresses, which differ from process to process: they are arguments.
POTRF, TRSM = range(2)
ROUTINES = np.array([_address("lapack", "dpotrf"), _address("blas", "dtrsm")])


@intrinsic
def call(typing, address, given):
    """Call the routine at an address. given : a tuple of pointers (intp or uintp) and of values, to which it gets one.

    The last is a value (int32), and what the routine has made of it is returned.
    """

    def generate(context, builder, signature, arguments):
        byte, places = ir.IntType(8).as_pointer(), []
        for i, kind in enumerate(given):
            value = builder.extract_value(arguments[1], i)
            if kind in (types.intp, types.uintp):
                places.append(builder.inttoptr(value, byte))
            else:
                places.append(cgutils.alloca_once_value(builder, value))
        function = ir.FunctionType(ir.VoidType(), [byte] * len(places))
        pointers = [builder.bitcast(place, byte) for place in places]
        builder.call(builder.inttoptr(arguments[0], function.as_pointer()), pointers)
        return builder.load(places[-1])

    return types.int32(types.intp, given), generate
