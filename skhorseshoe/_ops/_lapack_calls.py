"""LAPACK and BLAS called from compiled kernels, at the addresses that SciPy exports."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

# Cached kernels cannot hold addresses, which differ from process to process: they are arguments.
POTRF, TRSM = range(2)
ROUTINES = np.array(
    [
        get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf"),
        get_cython_function_address("scipy.linalg.cython_blas", "dtrsm"),
    ]
)


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
