"""Threads of our own, around kernels and LAPACK calls that release the GIL, and BLAS on one thread meanwhile.

A pool lives as long as one fit, so there is nothing to go wrong after a fork or between fits that run at once.
While a pool lives, BLAS runs on one thread: the chains and the blocks of rows are shared out here, which makes
results independent of the number of threads and leaves no core with two masters.
"""

import functools
import os
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import pairwise

import joblib
import numpy as np
import threadpoolctl
from joblib.parallel import get_active_backend

from .shared_context import Shared

_TRIES = 5  # against others that set a limit in the same microsecond
_CLEAR = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)  # none before threadpoolctl 3.8
_controller = functools.cache(threadpoolctl.ThreadpoolController)


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
    """A context with ``n`` threads and BLAS on one, whoever has set what before; what was found is set again."""
    with _limit as limit, _Limit(_is_of_a_thread) as own:
        limit.hold()
        own.hold()
        # A thread of the pool ends before what it sets would have to be set back.
        with ThreadPoolExecutor(max(1, n - 1), "skhorseshoe", lambda: _Limit(_is_of_a_thread).hold()) as pool:
            yield Threads(n, pool)


def count_threads(n_jobs):
    """Threads for ``n_jobs``: None is all that may be used, negative counts from the last core backwards.

    Inside a task of joblib's it is never more than that task's share of the machine: joblib states the share in
    the environment of its processes, and in its threads it is one.
    """
    n_jobs = None if n_jobs is None else int(n_jobs)
    cores = joblib.cpu_count()
    share = cores
    stated = os.environ.get("OMP_NUM_THREADS", "")
    outermost = stated.partition(",")[0].strip()  # of nested teams
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
    """The limit, and what it replaces.

    Most builds of BLAS have one number of threads for the whole process, so contexts of other threads that set it may
    begin and end in any order with ours. They lower it, as ours does, and set it back to what they found: so the
    largest number seen is the one that no context is behind, and a number that is not ours at the end was set
    meanwhile, and stays.

    which : function of a library, whether it is one that this is for.
    """

    def __init__(self, which):
        self.libraries = list(filter(which, _controller().select(user_api="blas").lib_controllers))
        self.found = [1] * len(self.libraries)

    def __enter__(self):
        return self

    def hold(self):
        """Set one thread; again where somebody else has set another number since."""
        for i, library in enumerate(self.libraries):
            n = library.num_threads
            if n is not None and n > 1:
                self.found[i] = max(self.found[i], n)
                _set(library, 1)

    def __exit__(self, *error):
        for library, n in zip(self.libraries, self.found, strict=True):
            if n > 1 and library.num_threads == 1:
                _set(library, n)


def _set(library, n):
    """Set a library's number of threads from this thread.

    From threadpoolctl 3.8 on a thread that has set a limit keeps all others from it while it lives: their calls do
    nothing. Ours is a limit of the process, which one thread begins and another ends, so nobody may be that thread.
    """
    clear = functools.partial(_CLEAR, force=True) if _CLEAR else lambda: None
    for _ in range(_TRIES):
        clear()
        library.set_num_threads(n)
        if library.num_threads == n:
            break
    clear()


def _is_of_a_thread(library):
    """Whether each thread has a number of its own: OpenBLAS over OpenMP, as threadpoolctl sets it from 3.8 on."""
    of_openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
    return of_openmp and _CLEAR is not None


_limit = Shared(lambda: _Limit(lambda library: not _is_of_a_thread(library)))
