"""cuSOLVER and cuBLAS in place; what is queued, and the host does not wait.

What is row by row here is column by column for the libraries: their lower triangle, L, is our upper one.
"""

import cupy as cp
import numpy as np
from cupy.cuda import device
from cupy_backends.cuda.libs import cublas, cusolver

_LOWER = cublas.CUBLAS_FILL_MODE_LOWER
_ONE = np.ones(1)  # which the libraries read on the host


def workspace_for(matrix):
    """Memory for ``potrf`` of matrices of this shape."""
    q = len(matrix)
    return cp.empty(cusolver.dpotrf_bufferSize(device.get_cusolver_handle(), _LOWER, q, matrix.data.ptr, q))


def potrf(matrix, workspace, info):
    """The Cholesky factor in place of a matrix (q, q). info : (1,) int32, the minor that is not positive, or 0."""
    q, where = len(matrix), (workspace.data.ptr, workspace.size, info.data.ptr)
    cusolver.dpotrf(device.get_cusolver_handle(), _LOWER, q, matrix.data.ptr, q, *where)


def solve_lower(factor, rows, transposed=False):
    """L^-1 x or L^-T x in place for each of the rows x (m, q), or for one x (q,); contiguous."""
    q = len(factor)
    operation = cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N
    kind = cublas.CUBLAS_SIDE_LEFT, _LOWER, operation, cublas.CUBLAS_DIAG_NON_UNIT
    sizes = q, rows.size // q, _ONE.ctypes.data, factor.data.ptr, q, rows.data.ptr, q
    cublas.dtrsm(device.get_cublas_handle(), *kind, *sizes)


def add_products(A, total):
    """The triangle of total (n, n) that ``potrf`` reads, plus that of A A'; A (n, m) is contiguous."""
    n, m = A.shape
    shape = _LOWER, cublas.CUBLAS_OP_T, n, m
    one = _ONE.ctypes.data
    cublas.dsyrk(device.get_cublas_handle(), *shape, one, A.data.ptr, m, one, total.data.ptr, n)
