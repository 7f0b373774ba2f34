"""BLAS on one thread during fits, and on those it had after them, whichever threads begin and end them."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace

import pytest
from joblib import Parallel, delayed
from threadpoolctl import threadpool_info, threadpool_limits

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._utils import threads as _blas
from skhorseshoe._utils.threads import open_threads


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_blas_has_one_thread_during_a_fit_and_those_it_had_after_it(problem, short_fit, watched_sampler):
    during = []
    watched_sampler(lambda sweep: during.append(blas_threads()))
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        short_fit(*problem)
        after = blas_threads()
    assert {n for threads in during for n in threads} == {1}
    assert before == after == [2] * len(before)


def test_blas_threads_are_given_back_after_a_fit_that_fails(problem, short_fit, watched_sampler):
    def fail(sweep):
        if sweep == 3:
            raise ZeroDivisionError

    watched_sampler(fail)
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError):
            short_fit(*problem)
        assert set(blas_threads()) == {2}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_blas_threads_are_given_back_after_fits_at_once(problem, seed):
    def fit():
        HorseshoeProbitClassifier(n_iter=5, burn_in=2, n_jobs=2, random_state=seed).fit(*problem)

    with threadpool_limits(2, user_api="blas"):
        Parallel(n_jobs=4, backend="threading")(delayed(fit)() for _ in range(8))
        assert set(blas_threads()) == {2}


class Person:
    """A thread that lives on, enters contexts, and leaves them in reverse."""

    def __init__(self, stack):
        self.thread, self.contexts = stack.enter_context(ThreadPoolExecutor(1)), []

    def begins(self, make, *args):
        def enter():
            context = make(*args)
            context.__enter__()
            self.contexts.append(context)

        self.thread.submit(enter).result()

    def ends(self):
        self.thread.submit(self.contexts.pop().__exit__, None, None, None).result()


@pytest.fixture
def people():
    """Two threads that fit and one that sets limits, in a process whose BLAS has four threads."""

    def set_by_a_thread_that_ends(limits):  # one that lives on may keep others from setting anything
        setter = threading.Thread(target=threadpool_limits, args=[limits])
        setter.start()
        setter.join()

    before = threadpool_info()
    set_by_a_thread_that_ends({"blas": 4})
    with ExitStack() as stack:
        yield [Person(stack) for _ in range(3)]
    set_by_a_thread_that_ends(before)


def test_of_two_threads_that_live_on_the_first_to_begin_may_be_the_first_to_end(people):
    one, two, _ = people
    one.begins(open_threads, 1)
    two.begins(open_threads, 1)
    one.ends()
    assert set(blas_threads()) == {1}
    two.ends()
    assert set(blas_threads()) == {4}


@pytest.mark.parametrize("limit", [1, 2])
def test_within_the_limit_of_another_thread_blas_has_one_thread_and_that_limit_afterwards(people, limit):
    one, _, other = people
    other.begins(threadpool_limits, limit, "blas")
    one.begins(open_threads, 1)
    assert set(blas_threads()) == {1}
    one.ends()
    assert set(blas_threads()) == {limit}
    other.ends()
    assert set(blas_threads()) == {4}


def test_a_limit_of_another_thread_within_a_fit_leaves_nothing_behind(people):
    one, two, other = people
    one.begins(open_threads, 1)
    other.begins(threadpool_limits, 2, "blas")
    two.begins(open_threads, 1)
    assert set(blas_threads()) == {1}, "a fit has one thread whatever was set while another one was under way"
    two.ends()
    other.ends()
    one.ends()
    assert set(blas_threads()) == {4}


def test_a_limit_of_another_thread_that_ends_during_a_fit_leaves_nothing_behind(people):
    """As of scikit-learn's estimators, which set one thread."""
    one, _, other = people
    other.begins(threadpool_limits, 1, "blas")
    one.begins(open_threads, 1)
    other.ends()
    one.ends()
    assert set(blas_threads()) == {4}


def test_where_each_thread_has_its_own_number_each_gets_its_own_back(people, monkeypatch):
    """As of OpenBLAS over OpenMP."""

    class Library(threading.local):
        internal_api, threading_layer, num_threads = "openblas", "openmp", 4

        def set_num_threads(self, n):
            self.num_threads = n

    library, ranges = Library(), []
    blas = SimpleNamespace(lib_controllers=[library])
    monkeypatch.setattr(_blas, "_CLEAR", lambda force: None)
    monkeypatch.setattr(_blas, "_controller", lambda: SimpleNamespace(select=lambda user_api: blas))

    def seen(person):
        return person.thread.submit(lambda: library.num_threads).result()

    one, two, other = people
    one.begins(open_threads, 1)
    two.begins(open_threads, 1)
    assert (seen(one), seen(two), seen(other)) == (1, 1, 4)
    one.ends()
    assert (seen(one), seen(two), seen(other)) == (4, 1, 4)
    two.ends()
    assert (seen(one), seen(two), seen(other)) == (4, 4, 4)
    with open_threads(3) as threads:
        threads.run(lambda first, last: ranges.append((library.num_threads, time.sleep(0.01))), 3)
    assert {n for n, _ in ranges} == {1}, "our own threads too"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_is_forked_during_a_fit_has_the_threads_of_before(people):
    people[0].begins(open_threads, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if set(blas_threads()) == {4} else 1)
    people[0].ends()
    assert os.waitpid(child, 0)[1] == 0
