"""Where no thread can be started any more, the calling one does what is left, with the same bits."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from skhorseshoe._utils import memmap
from skhorseshoe._utils.threads import open_threads


@pytest.fixture(params=["end of the interpreter", "limit of the system", "limit after one"])
def no_more_threads(request, monkeypatch):
    starts = iter([True]) if request.param == "limit after one" else iter([])
    start = threading.Thread.start

    def start_or_fail(thread):
        if not next(starts, False):
            raise RuntimeError("can't start new thread")
        start(thread)

    def submit_or_fail(*args):
        raise RuntimeError("cannot schedule new futures after interpreter shutdown")

    if request.param == "end of the interpreter":
        monkeypatch.setattr(ThreadPoolExecutor, "submit", submit_or_fail)
    else:
        monkeypatch.setattr(threading.Thread, "start", start_or_fail)


def test_every_range_is_done_once(no_more_threads):
    done = []
    with open_threads(4) as threads:
        for _ in range(3):
            threads.run(lambda first, last: done.extend(range(first, last)), 10)
        waiting = threads._pool._work_queue.qsize()
    assert sorted(done) == sorted(3 * list(range(10)))
    assert waiting <= 1, "nothing piles up in a long fit"


@pytest.fixture(scope="module")
def draws_and_probability(problem, short_fit):
    model = short_fit(*problem, n_iter=5, burn_in=2, n_jobs=1)
    return model.coef_draws_, model.predict_proba(problem[0])


def test_a_fit_and_its_predictions_have_the_same_bits(draws_and_probability, no_more_threads, problem, short_fit):
    model = short_fit(*problem, n_iter=5, burn_in=2, n_jobs=2)
    assert np.array_equal(model.coef_draws_, draws_and_probability[0])
    assert np.array_equal(model.predict_proba(problem[0]), draws_and_probability[1])


def test_rows_on_disk_are_read_by_the_pass_itself(no_more_threads, tmp_path, monkeypatch):
    monkeypatch.setattr(memmap, "WINDOW", 2**12)
    np.save(tmp_path / "X.npy", np.arange(8000.0).reshape(1000, 8))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    seen = [X[rows].sum() for rows in memmap.ahead(X, memmap.cut(0, 1000, 100), 1000)]
    assert np.array_equal(seen, np.arange(8000.0).reshape(10, 800).sum(axis=1))
