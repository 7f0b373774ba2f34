"""Threads for kernels and LAPACK calls, which release the GIL, and BLAS on one thread meanwhile.

A pool lives as long as one fit, so nothing can go wrong after a fork, or between fits that run at once. While a pool
lives, BLAS runs on one thread. Chains and blocks of rows are distributed here, so results do not depend on the number
of threads, and threads do not compete for cores.
"""

import functools
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from itertools import pairwise

import joblib
import numpy as np
import threadpoolctl
from joblib.parallel import get_active_backend

from .shared_context import Shared

_TRIES = 5  # attempts to set a limit, since another thread may set one in the same microsecond
_LEAST_SHARED = 2**11  # least size of arrays that threads share
_CLEAR = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)  # None before threadpoolctl 3.8
_controller = functools.cache(threadpoolctl.ThreadpoolController)


class cached_property(functools.cached_property):
    """That of functools, without the one lock that Python 3.11 has for all objects: while a thread computes, others
    would wait, and a child that is forked then for ever."""

    def __init__(self, compute):
        super().__init__(compute)
        self.lock = nullcontext()


class Threads:
    """``n`` threads, the calling one included."""

    def __init__(self, n, pool=None):
        self.n = n
        self._pool, self._most = pool, n

    def run(self, function, n_tasks):
        """Call function(first, last) on contiguous ranges that cover range(n_tasks), one for each thread. Waits for
        all, also if one raises. If a thread is late or cannot be started, another one takes its range."""
        n_ranges = min(self.n, n_tasks)
        if n_ranges <= 1:
            function(0, n_tasks)
            return
        edges = [n_tasks * i // n_ranges for i in range(n_ranges + 1)]
        ranges, error_settings = deque(pairwise(edges)), np.geterr()

        def work():
            with np.errstate(**error_settings):  # NumPy has one for each thread
                while ranges:
                    try:
                        first, last = ranges.popleft()
                    except IndexError:  # another thread has taken the last range
                        return
                    function(first, last)

        futures = self._start(work, n_ranges - 1)
        try:
            work()
        finally:
            wait(futures)
        for future in futures:
            future.result()

    def _start(self, work, n):
        """Start ``work`` in n other threads, or in as many as the system allows; none while the interpreter ends."""
        futures = []
        try:
            for _ in range(min(n, self._most)):
                futures.append(self._pool.submit(work))
        except RuntimeError:  # another attempt would leave its work in the queue of the pool
            self._most = len(futures)
        return futures


ONE_THREAD = Threads(1)


def share_ranges(threads, shape, task):
    """Call task(first, last) for ranges of the first axis, chains or columns, of arrays of this shape."""
    if shape[0] * shape[1] < _LEAST_SHARED:
        task(0, shape[0])
    else:
        threads.run(task, shape[0])


@contextmanager
def open_threads(n):
    """A context with ``n`` threads and BLAS on one; afterwards BLAS has its earlier number of threads."""
    with _limit as limit, _Limit(_is_of_a_thread) as thread_limit:
        limit.hold()
        thread_limit.hold()
        # A limit of a thread of the pool ends with that thread.
        with ThreadPoolExecutor(max(1, n - 1), "skhorseshoe", lambda: _Limit(_is_of_a_thread).hold()) as pool:
            yield Threads(n, pool)


def count_threads(n_jobs):
    """Threads for ``n_jobs``: None for all that may be used; a negative number counts back from the last core.

    Inside a joblib task it is at most that task's share of the machine. In a process joblib states the share in the
    environment; in a thread it is 1.
    """
    n_jobs = None if n_jobs is None else int(n_jobs)
    cores = joblib.cpu_count()
    share = cores
    stated = os.environ.get("OMP_NUM_THREADS", "")
    outermost = stated.partition(",")[0].strip()  # of nested teams of threads
    if outermost.isdigit():
        share = min(share, max(1, int(outermost)))
    backend, configured = get_active_backend()
    nested = backend.nesting_level > 0
    if nested and (not stated or threading.current_thread() is not threading.main_thread()):
        share = 1
    n_jobs = configured if n_jobs is None else n_jobs
    if n_jobs is None:
        return share
    wanted = n_jobs if n_jobs > 0 else max(1, cores + 1 + n_jobs)
    return min(wanted, share) if nested else wanted


class _Limit:
    """A limit of one thread for BLAS, and the numbers of threads that it replaces.

    Most builds of BLAS have one number of threads for the whole process. Other threads may set it in contexts that
    begin and end in any order relative to ours. Like ours, they lower the number and set it back to what it was before.
    So the largest number seen is the original one. If the number is not ours at the end, it was set meanwhile and
    stays.

    applies : function of a library, True if the limit is for this library.
    """

    def __init__(self, applies):
        self.libraries = list(filter(applies, _controller().select(user_api="blas").lib_controllers))
        self.previous = [1] * len(self.libraries)

    def __enter__(self):
        return self

    def hold(self):
        """Set one thread, also if another number has been set since the last call."""
        for i, library in enumerate(self.libraries):
            n = library.num_threads
            if n is not None and n > 1:
                self.previous[i] = max(self.previous[i], n)
                _set(library, 1)

    def __exit__(self, *error):
        for library, n in zip(self.libraries, self.previous, strict=True):
            if n > 1 and library.num_threads == 1:
                _set(library, n)


def _set(library, n):
    """Set a library's number of threads.

    From threadpoolctl 3.8 on, a thread that has set a limit controls it while it lives: other threads' calls do
    nothing. Our limit is one of the process, which one thread sets and another ends, so no thread may control it.
    """
    clear = functools.partial(_CLEAR, force=True) if _CLEAR else lambda: None
    for _ in range(_TRIES):
        clear()
        library.set_num_threads(n)
        if library.num_threads == n:
            break
    clear()


def _is_of_a_thread(library):
    """Whether each thread has its own limit, as threadpoolctl 3.8 and later set it for OpenBLAS with OpenMP."""
    of_openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
    return of_openmp and _CLEAR is not None


_limit = Shared(lambda: _Limit(lambda library: not _is_of_a_thread(library)))
