"""Threads of our own, around kernels and LAPACK calls that release the GIL.

A pool lives as long as one fit, so there is nothing to go wrong after a fork or between fits that run at once.
While a pool lives, BLAS runs on one thread: the chains and the blocks of rows are shared out here, which makes
results independent of the number of threads and leaves no core with two masters.
"""

import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise

import joblib
import numpy as np
from joblib.parallel import get_active_backend

from .blas import blas_on_one, set_one_in_this_thread


class Threads:
    """``n`` threads, the calling one included."""

    def __init__(self, n, pool=None):
        self.n = n
        self._pool, self._most = pool, n

    def run(self, function, n_tasks):
        """Call function(first, last) on contiguous ranges that cover range(n_tasks), as many as threads; wait for all,
        also where one of them raises. Where a thread is late or cannot be started, another one takes its range."""
        shares = min(self.n, n_tasks)
        if shares <= 1:
            function(0, n_tasks)
            return
        edges = [n_tasks * i // shares for i in range(shares + 1)]
        left, quiet = deque(pairwise(edges)), np.geterr()

        def work():
            with np.errstate(**quiet):  # which NumPy has for each thread
                while left:
                    try:
                        share = left.popleft()
                    except IndexError:  # another thread has taken the last one
                        return
                    function(*share)

        others = self._start(work, shares - 1)
        try:
            work()
        finally:
            wait(others)
        for other in others:
            other.result()

    def _start(self, work, n):
        """Begin ``work`` in n other threads, or in as many as can be started: none at the end of the interpreter, nor
        where the system's limit is reached."""
        others = []
        try:
            for _ in range(min(n, self._most)):
                others.append(self._pool.submit(work))
        except RuntimeError:  # each further try would leave its work in the queue of the pool
            self._most = len(others)
        return others


@contextmanager
def open_threads(n):
    """A context with ``n`` threads and BLAS on one."""
    with blas_on_one():
        if n == 1:
            yield Threads(1)
        else:
            with ThreadPoolExecutor(n - 1, "skhorseshoe", initializer=set_one_in_this_thread) as pool:
                yield Threads(n, pool)


def count_threads(n_jobs):
    """Threads for ``n_jobs``: None is all that may be used, negative counts from the last core backwards.

    Inside a task of joblib's it is never more than that task's share of the machine: joblib states the share in
    the environment of its processes, and in its threads it is one.
    """
    n_jobs = None if n_jobs is None else int(n_jobs)
    cores = joblib.cpu_count()
    share = cores
    stated = [os.environ.get(name, "") for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")]
    for value in stated:
        outermost = value.partition(",")[0].strip()  # of nested teams
        if outermost.isdigit():
            share = min(share, max(1, int(outermost)))
    backend, configured = get_active_backend()
    nested = backend.nesting_level > 0
    if nested and (not any(stated) or threading.current_thread() is not threading.main_thread()):
        share = 1
    n_jobs = configured if n_jobs is None else n_jobs
    if n_jobs is None:
        return share
    wanted = n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
    return min(wanted, share) if nested else wanted
