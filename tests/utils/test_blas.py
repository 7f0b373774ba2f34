"""BLAS on one thread during fits, and on those it had after them, whichever threads begin and end them."""

import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from skhorseshoe._utils import threads as _threads
from skhorseshoe._utils.threads import open_threads


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("fails", [False, True])
def test_blas_has_one_thread_during_a_fit(fails, problem, short_fit, watched_sampler):
    during = []

    def watch(sweep):
        during.extend(blas_threads())
        if fails and sweep == 3:
            raise ZeroDivisionError

    watched_sampler(watch)
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            short_fit(*problem)
        assert set(during) == {1}
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


# Who begins (+) a fit, or a limit of so many threads, who ends it (-), and how many threads BLAS then has.
ORDERS = {
    "the first to begin is the first to end": "one+ two+ one- =1 two- =4",
    "a fit within a limit of 1": "limit+1 one+ =1 one- =1 limit- =4",
    "a fit within a limit of 2": "limit+2 one+ =1 one- =2 limit- =4",
    "a limit within a fit, and another fit in it": "one+ limit+2 two+ =1 two- limit- one- =4",
    "a limit that ends during a fit": "limit+1 one+ limit- one- =4",  # as of scikit-learn's estimators
}


@pytest.mark.parametrize("order", ORDERS)
def test_in_whatever_order_threads_begin_and_end(order, people):
    by_name = dict(zip(("one", "two", "limit"), people, strict=True))
    for step in ORDERS[order].split():
        name, does, n = re.match(r"(\w*)([+=-])(\d*)", step).groups()
        if does == "=":
            assert set(blas_threads()) == {int(n)}
        elif does == "-":
            by_name[name].ends()
        else:
            by_name[name].begins(*((threadpool_limits, int(n), "blas") if name == "limit" else (open_threads, 1)))


def test_each_thread_gets_its_own_number_back(people, monkeypatch):
    """As of OpenBLAS over OpenMP."""

    class Library(threading.local):
        internal_api, threading_layer, num_threads = "openblas", "openmp", 4

        def set_num_threads(self, n):
            self.num_threads = n

    library, ranges = Library(), []
    blas = SimpleNamespace(lib_controllers=[library])
    monkeypatch.setattr(_threads, "_CLEAR", lambda force: None)
    monkeypatch.setattr(_threads, "_controller", lambda: SimpleNamespace(select=lambda user_api: blas))

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
def test_a_child_forked_during_a_fit_has_the_threads_of_before(people):
    people[0].begins(open_threads, 1)
    child = os.fork()
    if child == 0:
        os._exit(0 if set(blas_threads()) == {4} else 1)
    people[0].ends()
    assert os.waitpid(child, 0)[1] == 0
