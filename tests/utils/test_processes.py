"""Threads, processes and forks: the same draws, and nothing left behind."""

import os
import re
import signal
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed

import skhorseshoe
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data import rows
from skhorseshoe._utils import memmap
from skhorseshoe._utils.threads import Threads, cached_property, count_threads, open_threads
from skhorseshoe.datasets import make_sparse_probit

posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks are those of POSIX")


def bits(model):
    return b"".join(d.tobytes() for d in (model.coef_draws_, model.intercept_draws_, model.global_scale_draws_))


@pytest.fixture(scope="module")
def classifier(seed):
    return HorseshoeProbitClassifier(n_iter=5, burn_in=2, n_jobs=2, random_state=seed)


@pytest.fixture(scope="module")
def serial(long_problem, short_fit):
    return short_fit(*long_problem, n_iter=5, burn_in=2, n_jobs=1)


@pytest.fixture
def free_of_thread_settings(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_the_long_problem_is_several_blocks(long_problem):
    assert len(rows.Rows(*long_problem, True, cpu, Threads(1)).bounds) > 4


@pytest.mark.parametrize(
    "params", [{"sampler": "gibbs"}, {"sampler": "hmc", "burn_in": 40}], ids=lambda params: params["sampler"]
)
@pytest.mark.parametrize("shape", [(20_000, 10), (300, 150)], ids=["blocks of rows", "chains"])
def test_draws_have_the_same_bits_for_any_number_of_threads(shape, params, seed, short_fit):
    X, y, _ = make_sparse_probit(*shape, random_state=seed)
    one, two, all_of_them = (short_fit(X, y, n_iter=5, n_jobs=n_jobs, **params) for n_jobs in (1, 2, None))
    assert bits(one) == bits(two) == bits(all_of_them)
    assert one.tuning_ == two.tuning_


@pytest.mark.parametrize("most", [1, 3])
def test_the_layout_of_the_blocks_changes_only_the_rounding(long_problem, short_fit, sizes, most):
    def fit():
        return short_fit(*long_problem, n_iter=5, burn_in=0)

    expected = fit()
    sizes(row_blocks=most)
    assert len(rows.Rows(*long_problem, True, cpu, Threads(1)).bounds) == most + 1
    np.testing.assert_allclose(fit().coef_draws_, expected.coef_draws_, rtol=1e-6)


def test_fits_from_four_threads_at_once_have_the_same_bits(long_problem, serial, seed, short_fit):
    seeds = [seed, seed + 1, seed + 2, seed + 3]
    expected = [bits(serial)] + [bits(short_fit(*long_problem, n_iter=5, burn_in=2, random_state=s)) for s in seeds[1:]]
    models = [HorseshoeProbitClassifier(n_iter=5, burn_in=2, n_jobs=2, random_state=s) for s in seeds]
    with ThreadPoolExecutor(4) as people:
        list(people.map(lambda model: model.fit(*long_problem), models))
    assert [bits(model) for model in models] == expected


def test_what_one_thread_computes_once_holds_up_no_other():
    """Nor for ever a child that is forked meanwhile: in Python 3.11 functools.cached_property has a lock of its own."""
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        @cached_property
        def value(self):
            if not begun.is_set():
                begun.set()
                go_on.wait(60)
            return 1

    with ThreadPoolExecutor(2) as pool:
        try:
            pool.submit(lambda: Slow().value)
            begun.wait(60)
            assert pool.submit(lambda: Slow().value).result(10) == 1
        finally:
            go_on.set()
    package = Path(skhorseshoe.__file__).parent
    assert not [path for path in package.rglob("*.py") if re.search(r"from functools .*cached_p", path.read_text())]


@posix
def test_a_child_forked_after_a_fit_can_fit(long_problem, serial, classifier):
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        same = False
        try:
            model = classifier.fit(*long_problem)
            same = bits(model) == bits(serial)
            model.predict_proba(long_problem[0][:200])
        finally:
            os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def eight_cores(free_of_thread_settings, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 8), (20, 20), (-1, 8), (-3, 6), (-99, 1)])
def test_number_of_threads_of_a_fit_of_its_own(eight_cores, n_jobs, threads):
    assert count_threads(n_jobs) == threads


@pytest.mark.parametrize(("value", "threads"), [("4,2", 4), ("3", 3)])
def test_the_environment_limits_the_threads_unless_told(eight_cores, monkeypatch, value, threads):
    """Nested teams of OpenMP are counted by the outermost."""
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert count_threads(None) == threads
    assert count_threads(5) == 5


def test_the_number_joblib_is_configured_with_is_the_default(eight_cores):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert count_threads(None) == 2
        assert count_threads(5) == 5
    with joblib.parallel_config(backend="loky"):
        assert count_threads(None) == 8


def test_where_one_thread_fails_the_others_are_waited_for():
    failed, done = threading.Event(), []

    def task(first, last):
        if first == 1:
            failed.set()
            raise ZeroDivisionError
        if first == 2:
            failed.wait(10)
            time.sleep(0.1)
            done.append(first)

    with open_threads(3) as threads:
        with pytest.raises(ZeroDivisionError):
            threads.run(task, 3)
        assert done == [2]


@pytest.mark.parametrize("omp", [None, "3"])
def test_a_task_in_a_thread_of_joblib_has_one_thread(eight_cores, monkeypatch, omp):
    if omp:
        monkeypatch.setenv("OMP_NUM_THREADS", omp)
    counts = Parallel(n_jobs=2, backend="threading")(delayed(count_threads)(n) for n in (None, 1, 4, -1))
    assert counts == [1, 1, 1, 1]


def test_a_task_in_a_process_of_joblib_has_its_share(free_of_thread_settings):
    share = max(1, joblib.cpu_count() // 2)
    counts = Parallel(n_jobs=2, backend="loky")(delayed(count_threads)(n) for n in (None, 1, 99, -1))
    assert counts == [share, 1, share, share]


def fit_and_see(X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HorseshoeProbitClassifier(n_iter=5, burn_in=100, n_jobs=1, random_state=0).fit(X, y)
    return isinstance(X, np.memmap), sorted(model.tuning_), bits(model)


def test_draws_are_the_same_where_joblib_shares_the_rows_with_its_processes(seed):
    """It maps large arrays into memory. Columns hardly correlate, which are not sampled on disk as in memory."""
    rng = np.random.default_rng(seed)
    X = (rng.random((300, 210)) < 0.5).astype(float)
    y = X[:, 0] + rng.standard_normal(300) > 0.5
    *_, here, want = fit_and_see(X, y)
    for is_mapped, tuned, got in Parallel(n_jobs=2, backend="loky", max_nbytes=1000)([delayed(fit_and_see)(X, y)] * 2):
        assert is_mapped
        assert tuned == here == ["acceptance", "n_steps", "step"]
        assert got == want


@pytest.mark.filterwarnings("error")
def test_too_large_a_column_is_refused_without_noise(long_problem):
    """NumPy's way with errors is set for each thread."""
    X, y = long_problem
    with pytest.raises(ValueError, match="too large"):
        HorseshoeProbitClassifier(n_jobs=2).fit(X * np.append(np.ones(9), 1e200), y)


# No thread can be started any more: the calling one does what is left -------------------------------------------------


@pytest.fixture(params=["end of the interpreter", "limit after one"])
def no_more_threads(request, monkeypatch):
    starts, start = iter([True]), threading.Thread.start

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


def test_without_threads_a_fit_has_the_same_bits(no_more_threads, long_problem, serial, short_fit):
    model = short_fit(*long_problem, n_iter=5, burn_in=2, n_jobs=2)
    assert bits(model) == bits(serial)
    rows = long_problem[0][:200]
    assert np.array_equal(model.predict_proba(rows), serial.predict_proba(rows))


def test_rows_on_disk_are_read_by_the_pass_itself(no_more_threads, tmp_path, sizes):
    sizes(window=2**12)
    np.save(tmp_path / "X.npy", np.arange(8000.0).reshape(1000, 8))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    seen = [X[rows].sum() for rows in memmap.read_ahead(X, memmap.cut(0, 1000, 100), 1000)]
    assert np.array_equal(seen, np.arange(8000.0).reshape(10, 800).sum(axis=1))
