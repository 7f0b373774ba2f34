"""BLAS on one thread while any fit or prediction of this process computes."""

import functools
from contextlib import contextmanager

import threadpoolctl

from .shared_context import Shared

_TRIES = 5  # against others that set a limit in the same microsecond
_CLEAR = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)  # none before threadpoolctl 3.8


@contextmanager
def blas_on_one():
    """BLAS on one thread, whoever has set what before; at the end what was found is set again."""
    with _limit as limit, _Limit(_is_of_a_thread) as own:
        limit.hold()
        own.hold()
        yield


def set_one_in_this_thread():
    """As ``blas_on_one``, for a thread of ours that ends within it."""
    _Limit(_is_of_a_thread).__enter__().hold()


class _Limit:
    """The limit, and what it replaces.

    Most builds of BLAS have one number of threads for the whole process, so contexts of other threads that set it may
    begin and end in any order with ours. They lower it, as ours does, and set it back to what they found: so the
    largest number seen is the one that no context is behind, and a number that is not ours at the end was set
    meanwhile, and stays.

    which : function of a library, whether it is one that this is for.
    """

    def __init__(self, which):
        self.which = which

    def __enter__(self):
        self.libraries = list(filter(self.which, _controller().select(user_api="blas").lib_controllers))
        self.found = [1] * len(self.libraries)
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
    for _ in range(_TRIES):
        _let_anyone_set()
        library.set_num_threads(n)
        if library.num_threads == n:
            break
    _let_anyone_set()


def _let_anyone_set():
    if _CLEAR is not None:
        _CLEAR(force=True)


@functools.cache
def _controller():
    return threadpoolctl.ThreadpoolController()


def _is_of_a_thread(library):
    """Whether each thread has a number of its own: OpenBLAS over OpenMP, as threadpoolctl sets it from 3.8 on."""
    of_openmp = library.internal_api == "openblas" and library.threading_layer == "openmp"
    return of_openmp and _CLEAR is not None


_limit = Shared(lambda: _Limit(lambda library: not _is_of_a_thread(library)))
