"""LAPACK and BLAS in place, called by kernels, which hold no GIL: threads work side by side.

SciPy's and NumPy's own wrappers hold the GIL or copy. What is row by row here is column by column there.
"""

import numpy as np
from llvmlite import ir
from numba import int32, types, uint8
from numba.core import cgutils
from numba.extending import get_cython_function_address, intrinsic

from .. import JITTERS
from .jit import device, kernel

# At these addresses SciPy has the routines. Cached kernels cannot hold them, which differ from process to process: they
# are arguments.
_POTRF, _POTRI, _SYRK, _TRSM = range(4)
_NAMES = ("lapack", "dpotrf"), ("lapack", "dpotri"), ("blas", "dsyrk"), ("blas", "dtrsm")
ROUTINES = np.array([get_cython_function_address(f"scipy.linalg.cython_{module}", name) for module, name in _NAMES])

# Letters by which routines are told what to do. A triangle is "upper" there and lower here, or the other way round.
_PLAIN, _TRANSPOSED, _RIGHT, UPPER, LOWER = map(ord, "NTRUL")


@intrinsic
def _call(typing, address, given):
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


@kernel
def add_products(A, total, of_columns, routines):
    """Lower triangle of total += A'A if of_columns, else A A'; float64, C-contiguous."""
    m, n = int32(A.shape[0]), int32(A.shape[1])
    letter, order, inner = (_PLAIN, n, m) if of_columns else (_TRANSPOSED, m, n)
    product = uint8(UPPER), uint8(letter), order, inner, 1.0, A.ctypes.data, n
    _call(routines[_SYRK], (*product, 1.0, total.ctypes.data, order))


@kernel
def cholesky(A, triangle, routines):
    """The Cholesky factor of A, in place in one triangle; the number of a minor that is not positive, or 0."""
    q = int32(A.shape[0])
    minor = _call(routines[_POTRF], (uint8(triangle), q, A.ctypes.data, q, int32(0)))
    if minor == 0 and not A[q - 1, q - 1] > 0.0:  # OpenBLAS lets NaN pass, which reaches the last
        return q
    return minor


@kernel
def factorise(H, d, triangle, routines, factor):
    """That of H + diag(d). Rounding can make a nearly singular matrix indefinite: then the diagonal is raised by as
    little as helps. The number of a minor where nothing does, or 0."""
    minor = int32(0)
    for jitter in JITTERS:
        for i in range(d.shape[0]):
            for j in range(d.shape[0]):
                factor[i, j] = H[i, j]
            factor[i, i] = (factor[i, i] + d[i]) * (1.0 + jitter)
        minor = cholesky(factor, triangle, routines)
        if minor == 0:
            break
    return minor


@device
def solve_all(L, B, routines):
    """B = L^-1 B in place; B (q, k)."""
    q, k = int32(B.shape[0]), int32(B.shape[1])
    letters = uint8(_RIGHT), uint8(UPPER), uint8(_PLAIN), uint8(_PLAIN)  # B' (L')^-1
    _call(routines[_TRSM], (*letters, k, q, 1.0, L.ctypes.data, q, B.ctypes.data, k))
