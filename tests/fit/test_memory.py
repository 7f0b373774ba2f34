"""What has no room is refused with numbers, before anything is computed."""

import logging
import re
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from laws import peak_memory

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector
from skhorseshoe._fit.memory_forecast import forecast
from skhorseshoe._mcmc.run import DIAGONAL, PRIOR_COORDINATES
from skhorseshoe._utils import memory

X = np.random.default_rng(0).standard_normal((30, 3))
Y = np.arange(30) % 2


@pytest.mark.parametrize("n_iter", [10**12, np.int64(10**12), np.int32(2 * 10**9)], ids=["int", "int64", "int32"])
def test_draws_that_cannot_fit_are_refused_with_a_cure(n_iter, free_memory):
    free_memory(2**30)
    with pytest.raises(MemoryError, match=r"GiB for draws .* GiB are available.*max_draws"):
        HorseshoeProbitClassifier(n_iter=n_iter, n_chains=16).fit(X, Y)


CGROUPS = {
    "version 2": ("memory.max", "memory.current", "", "0::{}\n"),
    "version 1": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_", "9:cpu:/other\n3:cpu,memory:{}\n"),
}


@pytest.mark.parametrize("version", CGROUPS)
def test_the_limits_of_containers_and_jobs_count(version, tmp_path):
    """Those of the process's own group, and of each around it, as a scheduler such as SLURM sets them; what is kept of
    files can be had."""
    limit, used, prefix, membership = CGROUPS[version]
    base = tmp_path / "memory" if "1" in version else tmp_path
    step = base / "slurm" / "job_7" / "step"
    step.mkdir(parents=True)
    for folder, most in ((base, "9000"), (step.parent, "800"), (step, "max")):
        (folder / limit).write_text(f"{most}\n")
        (folder / used).write_text("700\n")
        (folder / "memory.stat").write_text(f"anon 100\n{prefix}inactive_file 30\n{prefix}active_file 20\n")
    (tmp_path / "cgroup").write_text(membership.format("/slurm/job_7/step"))
    assert sorted(memory._left_by_container(tmp_path, tmp_path / "cgroup")) == [150, 8350]
    assert memory._left_by_container(tmp_path, tmp_path / "nowhere") == [8350]  # as the names are those outside


@pytest.mark.parametrize(("p", "cure"), [(3, "Even a small fit"), (500, "The 500 x 500 matrices")])
def test_matrices_that_cannot_fit_are_refused_with_another_cure(p, cure, free_memory):
    free_memory(2**20)
    with pytest.raises(MemoryError, match=rf"only 1 MiB are available\. {cure}"):
        HorseshoeProbitClassifier(n_iter=10, sampler="hmc", slab_scale=None).fit(np.zeros((30, p)), Y)


def test_rows_are_to_be_fewer_where_a_matrix_over_them_has_no_room(free_memory):
    X = sp.random(400, 9000, density=0.02, format="csr", random_state=0)
    free_memory(60 * 2**20)
    with pytest.raises(MemoryError, match="The 400 x 400 matrices are what takes the room: select rows first"):
        HorseshoeProbitClassifier(n_iter=10).fit(X, np.arange(400) % 2)


def test_the_draws_are_twice_in_the_forecast_with_a_checkpoint(free_memory, tmp_path):
    """A file of all is written, or read, at a time."""
    free_memory(350 * 2**20)
    model = HorseshoeProbitClassifier(n_iter=10**6, checkpoint=tmp_path / "run", random_state=0)
    with pytest.raises(MemoryError, match=r"needs (183 MiB) for draws .* 24 MiB .* and \1 to write or read the draws"):
        model.fit(X, Y)


def test_the_draws_of_earlier_fits_are_in_the_forecast(caplog, free_memory):
    caplog.set_level(logging.INFO, logger="skhorseshoe")
    model = HorseshoeProbitClassifier(n_iter=30, burn_in=10, warm_start=True, verbose=1, random_state=0)
    for _ in range(3):
        model.fit(X, Y)
    said = re.findall(r"4 chains x (\d+) draws", caplog.text)
    assert said == ["30", "60", "90"]
    assert model.coef_draws_.shape[1] == 90
    free_memory(10**8)
    with pytest.raises(MemoryError, match="4 chains x 10000090 draws"):
        model.set_params(n_iter=10_000_000).fit(X, Y)


@pytest.mark.parametrize("sizes", [
    [(300, 1300, 1), (1000, 1300, 1)],
    pytest.param([(4, 20_000, 1), (4, 50_000, 1)], marks=pytest.mark.slow),
])  # fmt: skip
def test_the_forecast_grows_with_rows_and_columns(sizes, short_fit):
    """Threads have matrices of the size of the rows, and columns what vectors have of them."""
    given, taken = {"slab_scale": 2.0, "n_iter": 1, "burn_in": 1, "n_jobs": 1}, []
    for n, p, n_chains in (sizes[0], *sizes):  # the first loads modules and kernels
        data = np.random.default_rng(0).standard_normal((n, p))
        taken.append(peak_memory(partial(short_fit, data, np.arange(n) % 2, n_chains=n_chains, **given)))
    few, many = (sum(forecast(*size, 1, 1, PRIOR_COORDINATES)) for size in sizes)
    assert taken[2] - taken[1] < many - few < 2 * (taken[2] - taken[1])


@pytest.mark.slow
def test_the_forecast_grows_with_the_numbers_of_sparse_rows(short_fit):
    """They are held by columns too, with the row of each."""
    taken, forecasts = [], []
    for n in (300, 3000, 6000):  # the first loads modules and kernels
        data = sp.random_array((n, 300), density=0.9, format="csr", rng=np.random.default_rng(0))
        length = {"n_iter": 1, "burn_in": 1, "n_jobs": 1, "n_chains": 1, "sampler": "hmc"}
        taken.append(peak_memory(partial(short_fit, data, np.arange(n) % 2, **length)))
        forecasts.append(sum(forecast(n, 300, 1, 1, 1, DIAGONAL, stored=data.nnz)))
    assert taken[2] - taken[1] < forecasts[2] - forecasts[1] < 4 * (taken[2] - taken[1])


@pytest.mark.slow
def test_many_sparse_rows_of_more_columns_take_no_matrix_over_the_rows(short_fit):
    n, p = 4500, 6000
    X = sp.random_array((n, p), density=0.002, format="csr", rng=np.random.default_rng(0))
    taken = peak_memory(partial(short_fit, X, np.arange(n) % 2, n_iter=2, burn_in=1, n_jobs=1, n_chains=1))
    needed = sum(forecast(n, p, 1, 2, 1, PRIOR_COORDINATES, no_matrix=True, stored=X.nnz))
    assert taken < min(needed, 8 * n * n)


def test_matrices_of_a_selection_without_room_are_refused(free_memory):
    for shape, matrix in (((30, 500), (30, 500)), ((30, 20), (20, 20))):  # the rows, if they are fewer than the columns
        free_memory(8 * 6 * matrix[0] * matrix[1] - 1)
        expected = rf"rule='dss' needs .* for matrices of {matrix[0]} x {matrix[1]}.*'interval' or 'fsr'"
        with pytest.raises(MemoryError, match=expected):
            HorseshoeSelector().fit(np.zeros(shape), Y)


def test_where_the_system_does_not_tell_itself_psutil_does(tmp_path, monkeypatch):
    """As on Windows and macOS."""
    told = SimpleNamespace(virtual_memory=lambda: SimpleNamespace(available=12_345))
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "nothing")
    monkeypatch.setitem(sys.modules, "psutil", told)
    assert memory.available() == 12_345
    with pytest.raises(MemoryError, match=r"only .* are available"):
        memory.check_result(1000, 1000)
    monkeypatch.setitem(sys.modules, "psutil", None)  # it is asked for there, but what is missing ends no fit
    memory.check_result(1000, 1000)


@pytest.mark.parametrize(("sampler", "advised"), [("hmc", True), ("pxda", False), ("gibbs", False)])
def test_a_sampler_that_has_no_matrices_is_not_advised_to_itself(sampler, advised, free_memory):
    free_memory(2**20)
    with pytest.raises(MemoryError) as error:
        HorseshoeProbitClassifier(n_iter=1, sampler=sampler, slab_scale=None).fit(sp.csr_array((30, 20_000)), Y)
    assert ("sampler='pxda' needs none" in str(error.value)) == advised
    assert "what takes the room" not in str(error.value)


FORMS = {
    "by columns": (lambda X: np.asfortranarray(X), "6 MiB"),
    "whole numbers": (lambda X: X.astype(np.int32), "6 MiB"),
    "small whole numbers": (lambda X: X.astype(np.int8), "3 MiB"),
    "float16": (lambda X: X.astype(np.float16), "3 MiB"),
    "a table of two types": (lambda X: pd.DataFrame(X).rename(columns=str).assign(more=1), "6 MiB"),
    "sparse by columns": (lambda X: sp.csc_array(X), "9 MiB"),
    "as it is used": (lambda X: X, None),
    "a view": (lambda X: X[:-1], None),
    "CSR": (lambda X: sp.csr_array(X), None),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_forecast_counts_the_copy_of_x(form, caplog):
    made, said = FORMS[form]
    caplog.set_level(logging.INFO, logger="skhorseshoe")
    given = made(np.random.default_rng(0).standard_normal((8000, 100)))
    y = np.arange(given.shape[0]) % 2
    HorseshoeProbitClassifier(n_iter=2, burn_in=1, verbose=1, sampler="gibbs", n_jobs=1).fit(given, y)
    (line,) = (record.getMessage() for record in caplog.records if "working space" in record.getMessage())
    assert (f"made a copy of X of {said}" in line) if said else ("copy" not in line)


@pytest.mark.parametrize("form", [form for form, (_, said) in FORMS.items() if said])
def test_a_copy_that_has_no_room_is_refused_before_it_is_made(form, free_memory):
    X = FORMS[form][0](np.ones((2000, 100)))
    free_memory(4 * 200_000 - 1)
    with pytest.raises(MemoryError, match=r"copies \d MiB of X, but only 1 MiB are available"):
        HorseshoeProbitClassifier(n_iter=2).fit(X, np.arange(2000) % 2)


LIMITED = """
import logging, resource, sys
import numpy as np
from skhorseshoe import HorseshoeProbitClassifier
logging.basicConfig(stream=sys.stdout)
X, n_jobs = np.random.default_rng(0).standard_normal((300, int(sys.argv[3]))), int(sys.argv[1])
y = np.arange(300) % 2
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**20 * int(sys.argv[2]),) * 2)
model = HorseshoeProbitClassifier(n_iter=1, burn_in=1, sampler="hmc", slab_scale=None, n_jobs=n_jobs, verbose=1)
try:
    print(model.fit(X, y).n_iter_, "sweep")
except MemoryError as error:
    print(error)
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="addresses are limited on Linux")
@pytest.mark.parametrize(
    ("n_jobs", "left", "p", "said"),
    [
        (1, 90, 1000, "This fit needs .* are available"),
        pytest.param(1, 200, 1000, "1 sweep", marks=pytest.mark.slow),
        (4, 200, 1000, "on 1 of 4 threads, since there is no room for more(.|\n)*1 sweep"),
        pytest.param(2, 120, 3, "on 1 of 2 threads(.|\n)*1 sweep", marks=pytest.mark.slow),
    ],
)
def test_where_addresses_are_limited_what_fits_runs(n_jobs, left, p, said, run_python):
    """Threads reserve far more than they use, so a fit takes as many as there is room for."""
    assert re.search(said, run_python(LIMITED, n_jobs, left, p, OMP_NUM_THREADS="1"))


@pytest.mark.filterwarnings("ignore:X has more columns")
@pytest.mark.parametrize("shape", [(30, 3), (60, 400)])
def test_a_small_fit_takes_little(shape, free_memory):
    """With one thread for each chain too: of 60 MiB that are free it takes 10."""
    free_memory(60 * 2**20)
    few = np.random.default_rng(0).standard_normal(shape)
    HorseshoeProbitClassifier(n_iter=2, burn_in=2, n_jobs=4).fit(few, np.arange(len(few)) % 2)


@pytest.mark.filterwarnings("ignore:X has more columns")
@pytest.mark.parametrize(("free", "threads"), [(145, 3), (130, 1), (200, None)])
def test_a_fit_takes_as_many_threads_as_have_room(free, threads, free_memory, caplog):
    """Here each has a matrix of 8 MiB of its own, beside the four chains'."""
    caplog.set_level(logging.INFO, logger="skhorseshoe")
    free_memory(free * 2**20)
    X = np.random.default_rng(0).standard_normal((30, 1000))
    HorseshoeProbitClassifier(n_iter=1, burn_in=1, sampler="hmc", slab_scale=None, n_jobs=4, verbose=1).fit(X, Y)
    assert ("no room for more" in caplog.text) == (threads is not None)
    assert threads is None or f"on {threads} of 4 threads" in caplog.text
