"""What the tests share: data, seeds, devices."""

import importlib
import os
import shutil
import signal
import subprocess
import sys
import warnings
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from cuda_emulator import COMPILER, fake_cupy
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import build_core

if "PYTEST_XDIST_WORKER" not in os.environ:  # the checkout's own core, before anything imports it
    build_core.refresh()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # in processes that share the cores: threads that wait spin

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import device
from skhorseshoe._backends._cpu import library
from skhorseshoe._mcmc.burn_in import Halves
from skhorseshoe._utils import interrupts, memory, progress
from skhorseshoe._utils.threads import open_threads
from skhorseshoe.datasets import make_sparse_probit

if core := os.environ.get("SKHORSESHOE_TEST_CORE"):  # another build of the core, as with a sanitizer
    _other_core = library.use(core)  # a context that nobody holds ends at once
    _other_core.__enter__()


def pytest_configure(config):
    """Short chains, forks and known groups are meant here; tests of the warnings see them nevertheless."""
    config.addinivalue_line("filterwarnings", "ignore::sklearn.exceptions.ConvergenceWarning")
    config.addinivalue_line("filterwarnings", "ignore:.*fork:DeprecationWarning")
    config.addinivalue_line("filterwarnings", "ignore:Labels in groups that fit has seen:UserWarning")


@pytest.fixture(scope="session")
def seed():
    """Every test holds for any seed: SKHORSESHOE_TEST_SEED=7 pytest."""
    return int(os.environ.get("SKHORSESHOE_TEST_SEED", "42"))


@pytest.fixture(scope="session")
def problem(seed):
    """200 rows of 8 columns, six of which matter, four of them much."""
    X, y, _ = make_sparse_probit(200, 8, random_state=seed)
    return X, y


@pytest.fixture(scope="session")
def weak_problem(seed):
    """200 rows of 3 columns with weak signals: the chains mix within a few sweeps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, 3))
    y = (0.2 + X @ [0.4, -0.2, 0.0] + rng.standard_normal(200) > 0).astype(int)
    return X, y


@pytest.fixture(scope="session")
def long_problem(seed):
    """Enough rows that a pass over them is several blocks, which threads share."""
    X, y, _ = make_sparse_probit(20_000, 10, random_state=seed)
    return X, y


@pytest.fixture(scope="session")
def breast_cancer():
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return StandardScaler().set_output(transform="pandas").fit_transform(X), y


@pytest.fixture(scope="session")
def short_fit(seed):
    """A function that fits with few draws."""

    def fit(X, y, **params):
        return HorseshoeProbitClassifier(**{"n_iter": 40, "burn_in": 20, "random_state": seed, **params}).fit(X, y)

    return fit


@pytest.fixture(scope="session")
def said():
    """A function that fits, and returns the texts of the warnings with some words in them."""

    def fit(model, X, y, words="", **of_rows):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, y, **of_rows)
        found = [w for w in caught if words in str(w.message)]
        assert all(w.filename == __file__ for w in found)  # they point to the call of fit
        return [str(w.message) for w in found]

    return fit


@pytest.fixture(scope="module")
def fitted(problem, short_fit):
    return short_fit(*problem, n_iter=300, burn_in=100, n_chains=3, thin=2)


@pytest.fixture(scope="session")
def visits(seed):
    """600 rows of 60 patients in any order: a table, labels, and the patients' names. Age is one number for each."""
    rng = np.random.default_rng(seed)
    patient = rng.permutation(np.repeat(np.arange(60), rng.multinomial(540, np.full(60, 1 / 60)) + 1))
    X = pd.DataFrame(rng.standard_normal((600, 4)), columns=["pulse", "dose", "age", "noise"])
    X["age"] = rng.standard_normal(60)[patient]
    score = X["pulse"] - 0.5 * X["dose"] + 0.5 * X["age"] + rng.standard_normal(60)[patient]
    return X, (score + rng.standard_normal(600) > 0).to_numpy(), np.array([f"p{k:02d}" for k in patient])


@pytest.fixture(scope="session")
def of_patients(visits, seed):
    """A model that was fitted with groups."""
    X, y, groups = visits
    model = HorseshoeProbitClassifier(n_iter=120, burn_in=100, n_chains=3, random_state=seed)
    return model.fit(X, y, groups=groups)


@pytest.fixture(scope="module")
def patients(seed):
    """A table of three columns, and texts for classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.normal(50, 12, 300), "dose": rng.gamma(2, 3, 300), "sex": rng.integers(0, 2, 300)})
    score = 0.06 * (X["age"] - 50) - 0.1 * (X["dose"] - 6) + 0.8 * X["sex"] - 0.4
    return X, np.where(score + rng.standard_normal(300) > 0, "ill", "well")


@pytest.fixture(scope="module")
def model(patients, short_fit):
    """A Pipeline for ``patients``, whose classifier was given an array, without names."""
    X, y = patients
    scaler = StandardScaler().fit(X)
    return make_pipeline(scaler, short_fit(scaler.transform(X), y, n_iter=200, burn_in=100))


@pytest.fixture(scope="module")
def blas_as_in_a_fit():
    """On one thread: two wait for each other, 0.6 ms for the inverse of each matrix of six rows."""
    with open_threads(1):
        yield


# What large data, little memory or much time reach, and the place of each in skhorseshoe; see ``sizes``.
SIZES = {
    "blocks_of_a_part": "_backends._gpu.host_streaming._LEAST_BLOCKS_OF_A_PART",
    "bytes_of_a_part": "_backends._gpu.host_streaming.PART_BYTES",
    "bytes_of_draws": "_fit.plan._DEFAULT_BYTES_OF_DRAWS",
    "bytes_of_cholesky_factors": "_backends._gpu.memory._FACTOR_BYTES",
    "bytes_to_a_manifest": "disk._folder.BYTES_TO_A_MANIFEST",
    "columns_of_a_cholesky_factor": "_backends.limits.MOST_CHOLESKY_COLUMNS",
    "columns_of_a_diagonal": "_fit.plan._FEWEST_DIAGONAL_COLUMNS",
    "columns_of_one_block": "_backends._gpu.gaussian.THREADS",
    "correlations_of_a_block": "_posterior.correlations._CORRELATIONS_AT_A_TIME",
    "draws_of_groups": "_mcmc.group_draws.ROOM_BYTES",
    "extensions": "_mcmc.burn_in.MOST_EXTENSIONS",
    "few_rows": "_backends.line_moves.CHEAP_LINE_ROWS",
    "losses": "_data.dask_rows._TRIES",
    "numbers_of_a_check": "_data.column_checks._NUMBERS_AT_A_TIME",
    "numbers_of_contrasts": "_utils.memmap.NUMBERS_AT_A_TIME",
    "numbers_of_a_part": "disk._sources._NUMBERS_AT_A_TIME",
    "numbers_of_products": "_mcmc.effects_integrated_out._PRODUCT_NUMBERS",
    "numbers_on_a_gpu": "_backends.device._NUMBERS_WORTH_A_GPU",
    "numbers_sorted": "_data.weights._SORTED_SIZE",
    "predicted_rows": "_backends._gpu.predict.PREDICTED_ROWS",
    "predictors_of_a_block": "_backends._gpu.predict._BLOCK_NUMBERS",
    "row_blocks": "_data.row_blocks._MAX_BLOCKS",
    "seconds_paused": "_data.dask_rows._PAUSED",
    "seconds_silent": "_data.dask_rows._HUNG",
    "tuned_burn_in": "_mcmc.burn_in._TUNED_SWEEPS",
    "untuned_burn_in": "_mcmc.burn_in._UNTUNED_SWEEPS",
    "window": "_utils.memmap.WINDOW",
    "work_of_a_factor": "_fit.plan._FACTOR_WORK",
    "rows_factored": "_backends.limits.MOST_FACTORED_ROWS",
}


@pytest.fixture
def sizes(monkeypatch):
    """A function that gives some of ``SIZES`` other values, so that little data reach them."""

    def set_to(**values):
        for name, value in values.items():
            module, _, attribute = f"skhorseshoe.{SIZES[name]}".rpartition(".")
            monkeypatch.setattr(importlib.import_module(module), attribute, value)

    return set_to


@pytest.fixture
def extended(sizes, monkeypatch):
    """A function that has automatic burn-in extended once, whatever it sees, from so many sweeps, with tuning and
    without. Returns the set of what was seen, as bytes."""

    def extend(tuned, untuned):
        sizes(tuned_burn_in=tuned, untuned_burn_in=untuned, extensions=1)
        looks = set()
        monkeypatch.setattr(Halves, "agree", lambda seen, *_: looks.add(b"".join(map(np.ndarray.tobytes, seen))))
        return looks

    return extend


@pytest.fixture
def free_memory(monkeypatch):
    """A function that leaves so many bytes of memory available."""
    return lambda n_bytes: monkeypatch.setattr(memory, "available", lambda: n_bytes)


@pytest.fixture
def clock(monkeypatch):
    """A function that has a module of skhorseshoe take the seconds from another function."""
    return lambda module, now: monkeypatch.setattr(f"skhorseshoe.{module}.time", SimpleNamespace(monotonic=now))


@pytest.fixture
def disk_fails(monkeypatch):
    """A function that has another one, which may raise an error, called where bytes are to be brought to the disk."""
    return lambda function: monkeypatch.setattr(os, "fsync", function)


@pytest.fixture
def no_ctrl_c_before(monkeypatch):
    """As if none had come for long, in handlers that are Python's, whatever a shell has set."""
    monkeypatch.setattr(interrupts._CtrlC, "last", -np.inf)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def watched_sampler(monkeypatch):
    """Calls a function with the number of sweeps done after each of them; returns the setter of that function."""

    def watch(function):
        monkeypatch.setattr(progress, "reporter", lambda *args: function)

    return watch


@pytest.fixture
def stop_at(watched_sampler):
    """A function that lets the sampler raise an error after so many sweeps, once."""

    def stop(sweep, error):
        def watch(t):
            if t == sweep:
                watched_sampler(lambda t: None)
                raise error

        watched_sampler(watch)

    return stop


class _Ended(Exception):
    """Stands for the end of the process."""


@pytest.fixture
def ended_at(watched_sampler, tmp_path_factory):
    """A function of a sweep and of the folder of a checkpoint. In its context a fit ends after that sweep; then the
    folder is as if the process had ended there. Until then the fit calls ``watch``."""

    @contextmanager
    def ended(sweep, folder, watch=lambda t: None):
        left = tmp_path_factory.mktemp("left") / "folder"

        def end(t):
            watch(t)
            if t == sweep:
                shutil.copytree(folder, left, ignore=shutil.ignore_patterns("*.lock"))
                raise _Ended

        watched_sampler(end)
        with pytest.raises(_Ended):
            yield
        watched_sampler(lambda t: None)
        shutil.rmtree(folder)
        left.rename(folder)

    return ended


@pytest.fixture
def plant(tmp_path):
    """A function that has the core run with an error that its sources hold in ``#ifdef PLANT_...``, to the end of the
    test; it takes what follows ``PLANT_``. The core has the same bits without optimisation, and is compiled sooner."""
    with ExitStack() as until_the_end:

        def planted(name):
            folder, level = tmp_path / name, library.level  # a path that is loaded already would not be loaded again
            macros, flags = [f"PLANT_{name}"], ["-O0"]
            (file,) = build_core.compile_libraries(build_core.here(), folder, macros, flags, only=level)
            until_the_end.enter_context(library.use(file))

        yield planted


@pytest.fixture
def compiler():
    """Without one the emulator has no kernels, and the test is skipped."""
    if not COMPILER:
        pytest.skip("needs g++")


@pytest.fixture
def card(compiler):
    """The card of the emulator, whatever machine the test runs on."""
    with fake_cupy.installed() as card:
        yield card


_NEEDS_COMPILER = pytest.mark.skipif(not COMPILER, reason="needs g++")
_EMULATED = [
    pytest.param(order, id=f"emulator-{order}", marks=[_NEEDS_COMPILER, *[pytest.mark.slow] * (order != "forward")])
    for order in ("forward", "reverse", "random")
]
_CARD = pytest.param("card", marks=pytest.mark.gpu)


@pytest.fixture(scope="module", params=[*_EMULATED, _CARD])
def gpu(request):
    """The back end for GPUs: in the emulator, if slow for three orders of the threads of a block, or on a card."""
    with _gpu(request.param) as ops:
        yield ops


@pytest.fixture(scope="module", params=[_EMULATED[0], _CARD])
def one_gpu(request):
    """As ``gpu``, where one order will do."""
    with _gpu(request.param) as ops:
        yield ops


@pytest.fixture(params=["one block", "library"])
def cholesky_factors(request, sizes):
    """Who computes them: a block for each chain, in shared memory, or the library, as where they are large."""
    if request.param == "library":
        sizes(columns_of_one_block=0)


@contextmanager
def _gpu(where):
    if where == "card":
        works, why = device.gpu_status()
        if not works:
            pytest.skip(f"no GPU: {why}")
        if "SKHORSESHOE_TEST_NO_POOL" in os.environ:  # a sanitizer then sees where each array ends
            importlib.import_module("cupy").cuda.set_allocator(None)
        yield importlib.import_module("skhorseshoe._backends._gpu.dense")
    else:
        with fake_cupy.installed(where):
            yield importlib.import_module("skhorseshoe._backends._gpu.dense")


@pytest.fixture(scope="session")
def run_python():
    """A function that runs code in a fresh process and returns what it printed."""

    def run(code, *args, **env):
        command = [sys.executable, "-c", code, *map(str, args)]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
