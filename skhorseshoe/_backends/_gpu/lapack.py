"""cuSOLVER and cuBLAS in place. Calls are queued, and the host does not wait.

Matrices are row-major here and column-major for the libraries: their lower triangle, L, is our upper one. Whether all
factorisations have succeeded is noted on the GPU, and checked when other values come to the host.
"""

import threading
from contextlib import suppress

import cupy as cp
import numpy as np
from cupy.cuda import device
from cupy_backends.cuda.libs import cublas, cusolver

from .. import MAX_CHAINS, not_definite

_LOWER = cublas.CUBLAS_FILL_MODE_LOWER
_ONE = np.ones(1)  # a factor that the libraries read on the host
_MOST_LANES = 8  # largest number of matrices that are computed side by side
_FILLS_A_CARD = 4096  # least number of columns with which the Cholesky factor of one chain fills a card


class _Lane:
    """A stream with its own handles, since the memory of a handle serves one stream at a time."""

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.solver, self.blas = cusolver.create(), cublas.create()

    def __del__(self, cusolver=cusolver, cublas=cublas):  # at exit the globals may be gone
        with suppress(Exception):  # and the driver too
            cusolver.destroy(self.solver)
            cublas.destroy(self.blas)


class _Lanes(threading.local):
    """The lanes of this thread by device. They stay until it ends, as CuPy's own handles do."""

    def __init__(self):
        self.by_device = {}

    def first(self, n):
        lanes = self.by_device.setdefault(cp.cuda.runtime.getDevice(), [])
        lanes += (_Lane() for _ in range(min(n, _MOST_LANES) - len(lanes)))
        return lanes[:n]


_LANES = _Lanes()


def side_by_side(work, n, q):
    """Call work(i, lane) for i < n, with the same work on n matrices of q columns.

    lane : None for the handles of CuPy and the current stream.

    The Cholesky factor of a thousand columns is a chain of small steps that leave most of a card idle. So each matrix
    has a stream of its own. Whatever is queued afterwards waits for all of them.
    """
    if n == 1 or q >= _FILLS_A_CARD:
        for i in range(n):
            work(i, None)
        return
    current, lanes, begins = cp.cuda.get_current_stream(), _LANES.first(n), cp.cuda.Event(disable_timing=True)
    begins.record(current)
    for lane in lanes:
        lane.stream.wait_event(begins)
    for i in range(n):
        lane = lanes[i % len(lanes)]
        with lane.stream:
            work(i, lane)
    for lane in lanes:
        done = cp.cuda.Event(disable_timing=True)
        done.record(lane.stream)
        current.wait_event(done)


def workspaces_for(matrix):
    """Memory of ``potrf`` for matrices of this shape, for each lane."""
    q = len(matrix)
    size = cusolver.dpotrf_bufferSize(device.get_cusolver_handle(), _LOWER, q, matrix.data.ptr, q)
    return [cp.empty(size) for _ in range(1 if q >= _FILLS_A_CARD else _MOST_LANES)]


def potrf(matrix, workspace, info, lane=None):
    """The Cholesky factor in place of a matrix (q, q). info : (1,) int32, the minor that is not positive, or 0."""
    q, memory = len(matrix), workspace.data.ptr
    handle = lane.solver if lane else device.get_cusolver_handle()
    cusolver.dpotrf(handle, _LOWER, q, matrix.data.ptr, q, memory, workspace.size, info.data.ptr)


def solve_lower(factor, rows, transposed=False, lane=None):
    """L^-1 x or L^-T x in place for each of the rows x (m, q), or for one x (q,); contiguous."""
    q, handle = len(factor), lane.blas if lane else device.get_cublas_handle()
    side, diagonal = cublas.CUBLAS_SIDE_LEFT, cublas.CUBLAS_DIAG_NON_UNIT
    operation = cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N
    one, L, x = _ONE.ctypes.data, factor.data.ptr, rows.data.ptr
    cublas.dtrsm(handle, side, _LOWER, operation, diagonal, q, rows.size // q, one, L, q, x, q)


class _Verdict(threading.local):
    """Whether factorisations have succeeded in the fit of this thread."""

    minors = None

    def place(self):
        """Where kernels note failures: (MAX_CHAINS, 2) int32, for each chain the failed minor, or 0, and the size."""
        if self.minors is None:
            self.minors = cp.zeros((MAX_CHAINS, 2), cp.int32)
        return self.minors

    def raise_if_bad(self):
        """Raise the LinAlgError of a failure, and clear it."""
        bad = [] if self.minors is None else [pair for pair in cp.asnumpy(self.minors).tolist() if pair[0]]
        if bad:
            self.minors, (minor, size) = None, bad[0]
            raise not_definite(size, minor)


VERDICT = _Verdict()
