"""Fits of rows in a file: the draws of the same rows in memory, and no copy of them."""

import mmap
import sys

import numpy as np
import pandas as pd
import pytest
from laws import peak_memory, resident

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import passes
from skhorseshoe._data.rows import Rows
from skhorseshoe._utils import memory
from skhorseshoe._utils.memmap import cut, is_on_disk, read_ahead, taken
from skhorseshoe._utils.threads import Threads

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of the process in /proc")


def on_disk(X, folder, mode="r"):
    path = folder / "X.bin"
    X.tofile(path)
    return np.memmap(path, X.dtype, mode, shape=X.shape)


@pytest.fixture
def small_windows(sizes):
    """Many windows in a small file, not of whole rows, pages or blocks."""
    sizes(window=5000)


@pytest.mark.parametrize(("dtype", "params"), [
    ("float32", {"sampler": "hmc", "class_weight": "balanced", "standardize": True, "unpenalized": [1], "burn_in": 10,
                 "prior_scale": {0: 0.5, 1: 3.0}}),
    ("float64", {"sampler": "pxda", "n_jobs": 3}),
    ("float16", {"sampler": "gibbs", "fit_intercept": False, "n_jobs": 1}),
])  # fmt: skip
def test_the_draws_are_those_of_rows_in_memory(dtype, params, long_problem, small_windows, short_fit, tmp_path):
    X, y = long_problem[0][:9000].astype(dtype), long_problem[1][:9000]
    assert len(Rows(X, y, True, cpu, Threads(1)).bounds) > 3
    file = on_disk(X, tmp_path)
    params = {"n_iter": 2, "burn_in": 3, **params}
    want, got = short_fit(X, y, **params), short_fit(file, y, **params)
    np.testing.assert_array_equal(got.coef_draws_, want.coef_draws_)
    np.testing.assert_array_equal(got.shrinkage_, want.shrinkage_)
    np.testing.assert_array_equal(got.predict_proba(file), want.predict_proba(X))


def test_more_columns_than_rows(seed, short_fit, tmp_path):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((40, 2000)).astype(np.float32), rng.integers(0, 2, 40)
    how = {"n_iter": 3, "burn_in": 1, "slab_scale": 2.0}
    want, got = short_fit(X, y, **how), short_fit(on_disk(X, tmp_path), y, **how)
    assert "exchanged" in got.tuning_
    np.testing.assert_array_equal(got.coef_draws_, want.coef_draws_)
    np.testing.assert_array_equal(got.shrinkage_, want.shrinkage_)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("p", [1, 7, 300])
def test_a_block_may_be_cut_where_its_sums_are_flushed(p, dtype, seed, tmp_path, sizes):
    """To the bit, whatever the number of rows in a tile."""
    rng = np.random.default_rng(seed)
    n, key = 1100, np.array([1, 2], np.uint32)
    X, y = rng.standard_normal((n, p)).astype(dtype), rng.integers(0, 2, n).astype(np.uint8)
    coef, bounds = rng.standard_normal((2, p + 1)) / np.sqrt(p), np.array([0, 530, 1100])
    sizes(window=1)  # the shortest pieces there are
    held, file = cpu.hold(X, y, np.empty(0)), cpu.hold(on_disk(X, tmp_path), y, np.empty(0))
    assert len(list(passes.pieces_of_X(file[0], bounds, 0, 2))) >= 6

    def answers(rows):
        return *cpu.latent(*rows[:2], coef, bounds, 3, key, Threads(1)), *cpu.score(*rows, coef, bounds, Threads(1))

    for want, got in zip(answers(held), answers(file), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("value", "dtype", "says"), [(np.nan, "float64", "NaN"), (np.inf, "float16", "infinity")])
def test_what_is_not_finite_is_found_in_any_block(value, dtype, says, long_problem, small_windows, short_fit, tmp_path):
    X, y = long_problem[0].astype(dtype), long_problem[1]
    model = short_fit(X, y, n_iter=2)
    X[-1, 3] = value
    file = on_disk(X, tmp_path)
    for use in (lambda: short_fit(file, y), lambda: model.predict(file)):
        with pytest.raises(ValueError, match=f"{says}.*row {len(X) - 1} of column 3"):
            use()


@LINUX
def test_rows_are_read_ahead_and_leave_the_process(tmp_path, sizes):
    sizes(window=2**20)
    file = on_disk(np.zeros((4096, 4096), np.float32), tmp_path)  # 64 MiB
    X, before = np.asarray(file), resident("RssFile")
    most, rows_seen = 0, 0
    for rows in read_ahead(X, cut(0, len(X), 64), len(X)):
        assert rows.start == rows_seen
        rows_seen = rows.stop
        most = max(most, resident("RssFile") - before)
    assert rows_seen == len(X)
    assert 2**20 <= most < 8 * 2**20
    assert resident("RssFile") - before < 2**20


@LINUX
def test_rows_from_all_over_a_file_leave_the_process_too(tmp_path):
    values = np.random.default_rng(0).standard_normal((4096, 4096), np.float32)  # 64 MiB
    X, rows = np.asarray(on_disk(values, tmp_path)), np.arange(3, 4096, 7)
    before = resident("RssFile")
    np.testing.assert_array_equal(taken(X, rows), values[rows])
    assert resident("RssFile") - before < 2**20


def test_a_private_page_is_not_given_up(tmp_path):
    file = on_disk(np.zeros((3000, 40)), tmp_path, mode="c")
    file[1500] = 7.0  # only in memory
    for _ in read_ahead(np.asarray(file), cut(0, 3000, 100), 3000):
        pass
    assert (file[1500] == 7.0).all()


def test_what_is_a_file_and_what_is_not(tmp_path):
    file = on_disk(np.ones((30, 4)), tmp_path)
    frame = pd.DataFrame(file, columns=list("abcd"), copy=False)
    for view in (file, file[3:], np.asarray(file)[3:], frame.to_numpy(), frame[5:9].to_numpy()):
        assert is_on_disk(view)
    for other in (np.ones(3), file.copy(), file[:, ::2] + 1, np.frombuffer(mmap.mmap(-1, 4096))):
        assert not is_on_disk(other)


def test_a_fit_copies_no_rows_of_a_file_or_says_so(tmp_path, free_memory, seed):
    X = on_disk(np.random.default_rng(seed).standard_normal((200_000, 60), np.float32), tmp_path)
    y = np.arange(len(X)) % 2
    clf = HorseshoeProbitClassifier(n_iter=1, burn_in=1, n_chains=2, standardize=True, sampler="hmc", n_jobs=1)
    assert peak_memory(lambda: clf.fit(X, y).predict_proba(X)) < X.nbytes / 3
    free_memory(X.nbytes // 2)
    with pytest.raises(MemoryError, match="Dropping the rows of weight 0 copies 46 MiB of X, but only"):
        clf.fit(X, y, sample_weight=(y + 1) * (np.arange(len(X)) > 0))


CUT = """
import os, sys, warnings
from pathlib import Path
import numpy as np
import pandas as pd
from skhorseshoe import HorseshoeProbitClassifier, disk
from skhorseshoe._utils import progress

warnings.simplefilter("ignore")
folder, (dtype, sampler) = Path(sys.argv[1]), sys.argv[2:]
rng = np.random.default_rng(0)
X = rng.standard_normal((240, 300) if sampler == "auto" else (40_000, 4)).astype(dtype)
y = X[:, 0] > rng.standard_normal(len(X))
y[:2] = 0, 1
params = {"n_iter": 3, "burn_in": 1, "n_chains": 2, "n_jobs": 2, "sampler": sampler, "slab_scale": 2}
uses = {
    "fit": lambda X: HorseshoeProbitClassifier(**params).fit(X, y),
    "checkpoint": lambda X: HorseshoeProbitClassifier(**params, checkpoint=folder / f"run-{len(said)}").fit(X, y),
    "predict_proba": lambda X: model.predict_proba(X),
    "score": lambda X: model.score(X, y),
}
said, moments = [], []


def cut(t):
    if t in moments:
        os.truncate(file, os.path.getsize(file) // 2 // 4096 * 4096)


progress.reporter = lambda *args: cut
for use, now in [(use, now) for use in uses for now in (0, 1, 3)[: 1 if use in ("predict_proba", "score") else 3]]:
    moments.clear()
    rows, _ = disk.convert(pd.DataFrame(X).add_prefix("x"), folder / f"{use}-{now}", dtype=dtype)
    (file,) = folder.glob(f"{use}-{now}/X-*")
    model = HorseshoeProbitClassifier(**params)
    if use in ("predict_proba", "score"):
        model.fit(rows, y)
    moments.append(now)
    cut(0)
    try:
        uses[use](rows)
        said.append("nothing")
    except ValueError as error:
        said.append(all(words in str(error) for words in (str(file), "was cut to", "while it was in use")))
print(set(said), len(said))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cuts no file that is mapped")
@pytest.mark.parametrize(
    ("dtype", "sampler"),
    [
        ("float32", "hmc"),
        pytest.param("float16", "gibbs", marks=pytest.mark.slow),
        pytest.param("float64", "auto", marks=pytest.mark.slow),
    ],
)
def test_a_file_that_is_cut_while_it_is_mapped_is_an_error(dtype, sampler, run_python, tmp_path):
    """Before a call, or between two sweeps: to touch what is gone would end the process."""
    assert run_python(CUT, tmp_path, dtype, sampler) == "{True} 8\n"


def test_what_was_put_in_the_place_of_a_mapped_file_is_no_matter(long_problem, short_fit, tmp_path):
    """The map keeps the file that it was made of; also one that begins within it."""
    X, y = long_problem[0].astype(np.float32), long_problem[1]
    file = on_disk(X, tmp_path)
    part = np.memmap(
        tmp_path / "X.bin", np.float32, "r", offset=5000 * X.shape[1] * 4, shape=(len(X) - 5000, X.shape[1])
    )
    (tmp_path / "new").write_text("short")
    (tmp_path / "new").replace(tmp_path / "X.bin")
    for rows, want in ((file, X), (part, X[5000:]), (file[9:], X[9:])):
        labels = y[len(X) - len(rows) :]
        model = short_fit(rows, labels, n_iter=3, burn_in=1)
        np.testing.assert_array_equal(model.coef_draws_, short_fit(want, labels, n_iter=3, burn_in=1).coef_draws_)


@LINUX
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_the_forecast_knows_the_limits_of_the_process(kind, monkeypatch):
    import resource

    free = memory.available()
    kind, used = getattr(resource, kind), resident("RssAnon")
    limits = {kind: used + 2**20}
    monkeypatch.setattr(resource, "getrlimit", lambda asked: (limits.get(asked, resource.RLIM_INFINITY),) * 2)
    assert memory.available() <= 2**20 < free  # what is there is no more than what is mapped
    limits.clear()
    assert memory.available() > 2**20
