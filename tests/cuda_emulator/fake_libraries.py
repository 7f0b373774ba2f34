"""The few calls of cuBLAS and cuSOLVER that the back end makes, by BLAS and LAPACK from SciPy."""

import ctypes
from itertools import count
from types import SimpleNamespace

import numpy as np
from scipy.linalg import blas, lapack

from . import EmulatorError
from .fake_streams import Stream, later

USUAL = 1  # the handle that CuPy has, for whatever stream is the current one


def _matrix(pointer, leading, columns):
    flat = np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_double)), (columns * leading,))
    return flat.reshape((leading, columns), order="F")


def _dtrsm(handle, side, uplo, operation, diagonal, m, n, alpha, a, lda, b, ldb):
    right = _matrix(b, ldb, n)
    factor = ctypes.cast(alpha, ctypes.POINTER(ctypes.c_double))[0]
    kind = {"side": side, "lower": int(uplo == 0), "trans_a": operation, "diag": diagonal}
    right[:m] = blas.dtrsm(factor, _matrix(a, lda, m)[:m], right[:m], **kind)


def _dsyrk(handle, uplo, operation, n, k, alpha, a, lda, beta, c, ldc):
    one, other = (ctypes.cast(factor, ctypes.POINTER(ctypes.c_double))[0] for factor in (alpha, beta))
    total, given = _matrix(c, ldc, n), _matrix(a, lda, n if operation else k)
    total[:n] = blas.dsyrk(one, given[: k if operation else n], other, total[:n], trans=operation, lower=int(uplo == 0))


def _dpotrf(handle, uplo, n, a, lda, workspace, size, info):
    matrix = _matrix(a, lda, n)
    factor, verdict = lapack.dpotrf(matrix[:n], lower=int(uplo == 0), clean=0)
    matrix[:n] = factor
    if np.isnan(matrix).any():
        verdict = 0  # as cuSOLVER has it
    ctypes.cast(info, ctypes.POINTER(ctypes.c_int))[0] = verdict


def libraries():
    """The fake modules by name. A handle of one's own is for one stream: the memory behind it serves no two."""
    handles, streams, alive = count(USUAL + 1), {}, set()

    def create():
        alive.add(handle := next(handles))
        return handle

    def library(name, routine):
        def call(handle, *arguments):
            if streams.setdefault((name, handle), Stream.current) is not Stream.current and handle != USUAL:
                raise EmulatorError("a handle, and the memory behind it, on two streams")
            later(lambda: routine(handle, *arguments))

        return call

    cublas = SimpleNamespace(
        CUBLAS_FILL_MODE_LOWER=0,
        CUBLAS_OP_N=0,
        CUBLAS_OP_T=1,
        CUBLAS_SIDE_LEFT=0,
        CUBLAS_DIAG_NON_UNIT=0,
        create=create,
        destroy=alive.remove,
        alive=alive,
        dtrsm=library("cuBLAS", _dtrsm),
        dsyrk=library("cuBLAS", _dsyrk),
        getVersion=lambda handle: 0,
    )
    cusolver = SimpleNamespace(
        create=create,
        destroy=alive.remove,
        dpotrf=library("cuSOLVER", _dpotrf),
        dpotrf_bufferSize=lambda *arguments: 32,
    )
    return {"cublas": cublas, "cusolver": cusolver}
