"""cuSOLVER and cuBLAS in place; what is queued, and the host does not wait.

What is row by row here is column by column for the libraries: their lower triangle, L, is our upper one. Whether all
factorisations have succeeded is noted on the GPU, and looked at when something else comes to the host.
"""

import threading
from contextlib import suppress

import cupy as cp
import numpy as np
from cupy.cuda import device
from cupy_backends.cuda.libs import cublas, cusolver

from .. import MAX_CHAINS, not_definite

_LOWER = cublas.CUBLAS_FILL_MODE_LOWER
_ONE = np.ones(1)  # which the libraries read on the host
_MOST_LANES = 8
_FILLS_A_CARD = 4096  # columns from which the factor of one chain keeps all of a card busy


class _Lane:
    """A stream and handles of its own: the memory behind a handle serves one stream at a time."""

    def __init__(self):
        self.stream = cp.cuda.Stream(non_blocking=True)
        self.solver, self.blas = cusolver.create(), cublas.create()

    def __del__(self, cusolver=cusolver, cublas=cublas):  # at exit the names of this module may be gone
        with suppress(Exception):  # as when the driver has gone before
            cusolver.destroy(self.solver)
            cublas.destroy(self.blas)


class _Lanes(threading.local):
    """Of this thread, by device; they stay until it ends, as CuPy's own handles do."""

    def __init__(self):
        self.of = {}

    def first(self, n):
        lanes = self.of.setdefault(cp.cuda.runtime.getDevice(), [])
        lanes += (_Lane() for _ in range(min(n, _MOST_LANES) - len(lanes)))
        return lanes[:n]


_LANES = _Lanes()


def side_by_side(work, n, q):
    """Call work(i, lane) for i < n, where matrices of q columns are worked on in the same way for each. lane : None for
    the handles of CuPy, on whatever stream is the current one.

    The factor of a thousand columns is a chain of small steps, which leave most of a card idle. So each has a stream of
    its own, which what is queued afterwards waits for.
    """
    if n == 1 or q >= _FILLS_A_CARD:
        for i in range(n):
            work(i, None)
        return
    here, lanes, begins = cp.cuda.get_current_stream(), _LANES.first(n), cp.cuda.Event(disable_timing=True)
    begins.record(here)
    for lane in lanes:
        lane.stream.wait_event(begins)
    for i in range(n):
        lane = lanes[i % len(lanes)]
        with lane.stream:
            work(i, lane)
    for lane in lanes:
        done = cp.cuda.Event(disable_timing=True)
        done.record(lane.stream)
        here.wait_event(done)


def workspaces_for(matrix):
    """Memory for ``potrf`` of matrices of this shape, for each of those that are worked on side by side."""
    q = len(matrix)
    size = cusolver.dpotrf_bufferSize(device.get_cusolver_handle(), _LOWER, q, matrix.data.ptr, q)
    return [cp.empty(size) for _ in range(1 if q >= _FILLS_A_CARD else _MOST_LANES)]


def potrf(matrix, workspace, info, lane=None):
    """The Cholesky factor in place of a matrix (q, q). info : (1,) int32, the minor that is not positive, or 0."""
    q, where = len(matrix), (workspace.data.ptr, workspace.size, info.data.ptr)
    handle = lane.solver if lane else device.get_cusolver_handle()
    cusolver.dpotrf(handle, _LOWER, q, matrix.data.ptr, q, *where)


def solve_lower(factor, rows, transposed=False, lane=None):
    """L^-1 x or L^-T x in place for each of the rows x (m, q), or for one x (q,); contiguous."""
    q = len(factor)
    operation = cublas.CUBLAS_OP_T if transposed else cublas.CUBLAS_OP_N
    kind = cublas.CUBLAS_SIDE_LEFT, _LOWER, operation, cublas.CUBLAS_DIAG_NON_UNIT
    sizes = q, rows.size // q, _ONE.ctypes.data, factor.data.ptr, q, rows.data.ptr, q
    cublas.dtrsm(lane.blas if lane else device.get_cublas_handle(), *kind, *sizes)


class _Verdict(threading.local):
    """Of the fit that this thread is making."""

    minors = None

    def place(self):
        """Where kernels note it: (MAX_CHAINS, 2) int32, for each chain the minor that failed, or 0, and the size."""
        if self.minors is None:
            self.minors = cp.zeros((MAX_CHAINS, 2), cp.int32)
        return self.minors

    def raise_if_bad(self):
        """Raise the LinAlgError if one has failed, and forget it."""
        bad = [] if self.minors is None else [pair for pair in cp.asnumpy(self.minors).tolist() if pair[0]]
        if bad:
            self.minors, (minor, size) = None, bad[0]
            raise not_definite(size, minor)


VERDICT = _Verdict()
