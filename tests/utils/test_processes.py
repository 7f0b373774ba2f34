"""Threads, processes, forks and interrupts: the same draws, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data import row_blocks, rows
from skhorseshoe._utils import signals
from skhorseshoe._utils.threads import Threads, count_threads, open_threads
from skhorseshoe.datasets import make_sparse_probit

short_chains = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
posix = pytest.mark.skipif(os.name != "posix", reason="signals and forks are those of POSIX")


def bits(model):
    return b"".join(d.tobytes() for d in (model.coef_draws_, model.intercept_draws_, model.global_scale_draws_))


def copies(classifier, n):
    return [clone(classifier) for _ in range(n)]


@pytest.fixture(scope="module")
def classifier(seed):
    return HorseshoeProbitClassifier(n_iter=5, burn_in=2, n_jobs=2, random_state=seed)


@pytest.fixture(scope="module")
def serial(long_problem, short_fit):
    return short_fit(*long_problem, n_iter=5, burn_in=2, n_jobs=1)


@pytest.fixture
def free_of_thread_settings(monkeypatch):
    for name in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)


def test_the_long_problem_is_several_blocks(long_problem):
    assert len(rows.Rows(*long_problem, True, cpu, Threads(1)).bounds) > 4


@pytest.mark.parametrize("shape", [(20_000, 10), (300, 150)], ids=["blocks of rows", "chains"])
def test_the_tuned_sampler_has_the_same_bits_for_any_number_of_threads(shape, short_fit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(shape)
    y = X[:, 0] + rng.standard_normal(len(X)) > 0
    one, two = (short_fit(X, y, n_iter=5, burn_in=40, sampler="hmc", n_jobs=n_jobs) for n_jobs in (1, 2))
    assert bits(one) == bits(two)
    assert one.tuning_ == two.tuning_


@pytest.mark.parametrize("n_jobs", [2, 3, None, -1])
def test_draws_have_the_same_bits_for_any_number_of_threads(long_problem, serial, short_fit, n_jobs):
    assert bits(short_fit(*long_problem, n_iter=5, burn_in=2, n_jobs=n_jobs)) == bits(serial)


def test_chains_that_are_shared_out_have_the_same_bits(seed, short_fit):
    X, y, _ = make_sparse_probit(300, 130, random_state=seed)
    alone, shared, one_each = (short_fit(X, y, n_iter=5, burn_in=2, n_jobs=n) for n in (1, 2, 4))
    assert bits(alone) == bits(shared) == bits(one_each)


@pytest.mark.parametrize("most", [1, 3])
def test_the_layout_of_the_blocks_changes_only_the_rounding(long_problem, short_fit, monkeypatch, most):
    def fit():
        return short_fit(*long_problem, n_iter=5, burn_in=0)

    expected = fit()
    monkeypatch.setattr(row_blocks, "_MAX_BLOCKS", most)
    assert len(rows.Rows(*long_problem, True, cpu, Threads(1)).bounds) == most + 1
    np.testing.assert_allclose(fit().coef_draws_, expected.coef_draws_, rtol=1e-6)


@short_chains
def test_fits_from_four_threads_at_once_have_the_draws_of_serial_fits(long_problem, serial, seed, short_fit):
    seeds = [seed, seed + 1, seed + 2, seed + 3]
    expected = [bits(serial)] + [bits(short_fit(*long_problem, n_iter=5, burn_in=2, random_state=s)) for s in seeds[1:]]
    models = [HorseshoeProbitClassifier(n_iter=5, burn_in=2, n_jobs=2, random_state=s) for s in seeds]
    together = threading.Barrier(4)

    def fit(model):
        together.wait()
        model.fit(*long_problem)

    threads = [threading.Thread(target=fit, args=[model]) for model in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bits(model) for model in models] == expected


@short_chains
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_fits_in_workers_of_joblib_have_the_same_bits(long_problem, serial, classifier, backend):
    fits = [delayed(model.fit)(*long_problem) for model in copies(classifier, 2)]
    models = Parallel(n_jobs=2, backend=backend)(fits)
    assert [bits(model) for model in models] == 2 * [bits(serial)]


@posix
@short_chains
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
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


FRESH = """
import hashlib, sys, warnings
from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe.datasets import make_sparse_probit

warnings.simplefilter("ignore")
seed = int(sys.argv[1])
X, y, _ = make_sparse_probit(20_000, 10, random_state=seed)
model = HorseshoeProbitClassifier(n_iter=5, burn_in=2, random_state=seed).fit(X, y)
for draws in model.coef_draws_, model.intercept_draws_, model.global_scale_draws_:
    print(draws.tobytes().hex())
"""


def test_a_fresh_process_draws_the_same_bits(serial, seed, run_python):
    assert bytes.fromhex(run_python(FRESH, seed)) == bits(serial)


@pytest.mark.slow
def test_a_fit_survives_that_no_kernel_can_be_cached(serial, seed, run_python, tmp_path):
    refuse = """
from numba.core import caching

def refuse(self):
    raise OSError("read-only")

caching._CacheLocator.ensure_cache_path = refuse
"""
    drawn = run_python(refuse + FRESH, seed, NUMBA_CACHE_DIR=str(tmp_path))
    assert bytes.fromhex(drawn) == bits(serial)
    assert not list(tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 8), (1, 1), (3, 3), (20, 20), (-1, 8), (-3, 6), (-99, 1)])
def test_number_of_threads_of_a_fit_of_its_own(free_of_thread_settings, monkeypatch, n_jobs, threads):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    assert count_threads(n_jobs) == threads


@pytest.mark.parametrize("name", ["OMP_NUM_THREADS", "NUMBA_NUM_THREADS"])
def test_the_environment_limits_the_threads_unless_told_otherwise(free_of_thread_settings, monkeypatch, name):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setenv(name, "3")
    assert count_threads(None) == 3
    assert count_threads(5) == 5


def test_nested_teams_of_openmp_are_counted_by_the_outermost(free_of_thread_settings, monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")
    assert count_threads(None) == 4


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_the_number_that_joblib_is_configured_with_is_the_default(free_of_thread_settings, monkeypatch, backend):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert count_threads(None) == 2
        assert count_threads(5) == 5
    with joblib.parallel_config(backend=backend):
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
def test_a_task_in_a_thread_of_joblib_has_one_thread(free_of_thread_settings, monkeypatch, omp):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 8)
    if omp:
        monkeypatch.setenv("OMP_NUM_THREADS", omp)
    counts = Parallel(n_jobs=2, backend="threading")(delayed(count_threads)(n) for n in (None, 1, 4, -1))
    assert counts == [1, 1, 1, 1]


def test_a_task_in_a_process_of_joblib_has_its_share_of_the_cores(free_of_thread_settings):
    share = max(1, joblib.cpu_count() // 2)
    counts = Parallel(n_jobs=2, backend="loky")(delayed(count_threads)(n) for n in (None, 1, 99, -1))
    assert counts == [share, 1, share, share]


def interrupt_at(sweep):
    def interrupt(t):
        if t == sweep:
            raise KeyboardInterrupt

    return interrupt


@short_chains
def test_an_interrupted_fit_holds_the_first_draws_of_the_whole_one(problem, short_fit, seed, watched_sampler):
    params = {"n_iter": 40, "burn_in": 10, "thin": 2, "random_state": seed}
    whole = short_fit(*problem, **params)
    watched_sampler(interrupt_at(10 + 23))
    with pytest.warns(UserWarning, match="interrupted after 23 of 40 sweeps: the model holds the 11 draws") as caught:
        model = HorseshoeProbitClassifier(**params).fit(*problem)
    assert caught[0].filename == __file__
    assert model.n_iter_ == 23
    assert model.coef_draws_.shape == (4, 11, 8)
    for name in ("coef_draws_", "intercept_draws_", "global_scale_draws_"):
        assert np.array_equal(getattr(model, name), getattr(whole, name)[:, :11])
    assert ((model.shrinkage_ >= 0) & (model.shrinkage_ <= 1)).all()
    assert model.coef_draws_.base is None, "the room for the draws not made is given up"


@pytest.mark.parametrize("sweep", [1, 5, 10, 11], ids=["first", "burn-in", "its end", "before any draw"])
def test_an_interrupt_before_the_first_draw_is_raised(problem, watched_sampler, sweep):
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10, thin=2)
    watched_sampler(interrupt_at(sweep))
    with pytest.raises(KeyboardInterrupt):
        model.fit(*problem)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


INTERRUPTED = """
import json, signal, sys, warnings
import numpy as np
from sklearn.utils.validation import check_is_fitted
from skhorseshoe import HorseshoeProbitClassifier; from skhorseshoe._utils import progress as _progress
from skhorseshoe.datasets import make_sparse_probit

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
burn_in, n_iter = int(sys.argv[1]), int(sys.argv[2])

def tell(*args):
    return lambda t: print("now", flush=True) if t == 20 else None

_progress.reporter = tell
X, y, _ = make_sparse_probit(20_000, 10, random_state=0)
model = HorseshoeProbitClassifier(burn_in=burn_in, n_iter=n_iter, n_jobs=2, random_state=0)
seen = {}
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    try:
        model.fit(X, y)
        seen["finite"] = bool(np.isfinite(model.coef_draws_).all() and np.isfinite(model.predict_proba(X[:9])).all())
        seen["n_iter_"], seen["shape"] = model.n_iter_, model.coef_draws_.shape
    except KeyboardInterrupt:
        seen["raised"] = True
seen["warnings"] = [str(w.message) for w in caught]
print(json.dumps(seen))
"""


def interrupt(burn_in, n_iter):
    """What a process saw whose fit was sent SIGINT after 20 sweeps."""
    command = [sys.executable, "-c", INTERRUPTED, str(burn_in), str(n_iter)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "now\n", process.stderr.read()
            process.send_signal(signal.SIGINT)
            output, error = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, error
    return json.loads(output)


@posix
def test_ctrl_c_during_sampling_keeps_what_was_drawn():
    seen = interrupt(burn_in=10, n_iter=100_000)
    assert 10 <= seen["n_iter_"] < 100_000
    assert seen["shape"] == [4, seen["n_iter_"], 10]
    assert seen["finite"]
    assert f"the model holds the {seen['n_iter_']} draws" in seen["warnings"][0]


@posix
def test_ctrl_c_during_burn_in_ends_the_fit():
    assert interrupt(burn_in=100_000, n_iter=10) == {"raised": True, "warnings": []}


@pytest.mark.parametrize(("apart", "ends"), [(0.5, True), (60, False)])
def test_the_second_of_two_ctrl_c_ends_a_search_whose_next_fit_has_begun(
    problem, watched_sampler, monkeypatch, apart, ends
):
    """However short the sweeps are: nobody can press it twice within a millisecond."""
    now = [0.0]
    monkeypatch.setattr(signals, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(signals._Ear, "last", -np.inf)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    watched_sampler(lambda t: signal.raise_signal(signal.SIGINT) if t == 10 + 23 else None)
    model = HorseshoeProbitClassifier(n_iter=40, burn_in=10)
    try:
        with pytest.warns(UserWarning, match="interrupted after 2"):
            model.fit(*problem)
        now[0] += apart
        with pytest.raises(KeyboardInterrupt) if ends else pytest.warns(UserWarning, match="interrupted after 2"):
            model.fit(*problem)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_too_large_a_column_is_refused_without_noise_from_other_threads(n_jobs, long_problem):
    X, y = long_problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="too large"):
            HorseshoeProbitClassifier(n_jobs=n_jobs).fit(X * np.append(np.ones(9), 1e200), y)
