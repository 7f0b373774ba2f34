"""Rows held by the workers of a Dask cluster: the same bits whoever holds which, whatever happens to them."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier, _iterative, _segments
from skhorseshoe._compat import HAS_CALLBACKS
from skhorseshoe.datasets import make_sparse_probit

needs = "needs Dask: pip install 'skhorseshoe[dask]'"
da = pytest.importorskip("dask.array", reason=needs)
dd = pytest.importorskip("dask.dataframe", reason=needs)
distributed = pytest.importorskip("distributed", reason=needs)

from dask_faults import arrays, at_question, bits, check_that_nothing_is_left, frames, kill, staff  # noqa: E402

from skhorseshoe import _dask, _dask_rows  # noqa: E402 - import Dask

pytestmark = [
    pytest.mark.skipif(os.name != "posix", reason="signals are those of POSIX"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="callbacks are new in scikit-learn 1.9")
SETTINGS = {"n_iter": 10, "burn_in": 30, "n_chains": 2, "sampler": "hmc"}


@pytest.fixture(scope="module")
def cluster():
    options = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(n_workers=3, **options) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """In scope, with three workers; afterwards there must be nothing left on them."""
    with distributed.Client(cluster, direct_to_workers=True) as client:
        staff(cluster, client, 3)
        yield client
        check_that_nothing_is_left(client)


@pytest.fixture(scope="module")
def data(seed):
    X, y, _ = make_sparse_probit(20_000, 10, random_state=seed)
    return X, y


@pytest.fixture(scope="module")
def classifier(seed):
    return HorseshoeProbitClassifier(**SETTINGS, random_state=seed)


@pytest.fixture(scope="module")
def expected(data, classifier):
    """The bits of the draws of a fit in memory."""
    return bits(classifier.fit(*data))


def test_sums_of_a_tree_do_not_depend_on_who_adds_which_leaves():
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        leaves = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)
        whole = _segments.collapse({(0, i): leaf for i, leaf in enumerate(leaves)}, n, lambda a, b: a + b)
        owner = rng.integers(0, 4, n)
        nodes = {}
        for k in range(4):
            mine = {(0, i): leaf for i, leaf in enumerate(leaves) if owner[i] == k}
            nodes |= _segments.collapse(mine, n, lambda a, b: a + b)
        assert list(_segments.collapse(nodes, n, lambda a, b: a + b).values()) == list(whole.values())
        np.testing.assert_allclose(next(iter(whole.values())), leaves.sum(), rtol=1e-6)


@pytest.mark.parametrize("n_workers", [1, 2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_draws_are_those_of_memory_for_any_number_of_workers(
    cluster, client, data, classifier, expected, n_workers, monkeypatch
):
    staff(cluster, client, n_workers)
    held, copies = [], []

    def look(shards):
        held.extend(shards.held)
        copies.extend(key for keys in client.run(lambda dask_worker: list(dask_worker.data)).values() for key in keys)

    with at_question(monkeypatch, 40, look):
        assert bits(classifier.fit(*arrays(*data))) == expected
    assert len({one.worker for one in held}) == n_workers
    assert not copies  # of the rows, beside those that the actors hold


@pytest.mark.parametrize("sampler", ["gibbs", pytest.param("pxda", marks=pytest.mark.slow)])
def test_data_augmentation_draws_what_it_draws_in_memory(client, data, seed, sampler):
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=3, sampler=sampler, standardize=True, random_state=seed)
    assert bits(model.fit(*arrays(*data))) == bits(model.fit(*data))


def test_conjugate_gradients_draw_what_they_draw_in_memory(client, data, seed, monkeypatch):
    monkeypatch.setattr(_iterative, "LARGEST_FACTOR", 0)
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=3, random_state=seed)
    lazy = model.fit(*arrays(*data))
    assert lazy.sampler_ == "pxda"
    assert bits(lazy) == bits(model.fit(*data))


def test_a_frame_gives_the_draws_of_an_array_and_its_names(client, data, classifier, expected):
    model = classifier.fit(*frames(*data))
    assert bits(model) == expected
    assert model.feature_names_in_.tolist() == [f"c{j}" for j in range(10)]


@pytest.mark.parametrize("class_weight", [pytest.param(None, marks=pytest.mark.slow), "balanced"])
def test_weights_are_those_of_memory(client, data, seed, class_weight):
    X, y = data
    weight = np.random.default_rng(seed).integers(1, 4, len(y)) / 2
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=9, sampler="hmc", class_weight=class_weight, random_state=seed)
    lazy = bits(model.fit(*arrays(X, y), sample_weight=da.from_array(weight, chunks=4_000)))
    assert lazy == bits(model.fit(X, y, sample_weight=weight))


def unknown_chunks(X, y):
    X, y = arrays(X, y)
    keep = da.ones(len(y), chunks=y.chunks, dtype=bool)
    return X[keep], y[keep]


def sparse_chunks(X, y):
    from scipy.sparse import csr_matrix

    X, y = arrays(X, y)
    return X.map_blocks(csr_matrix, meta=csr_matrix((0, 0))), y


def made_dense(X, y):
    """As the error for sparse chunks says."""
    X, y = sparse_chunks(X, y)
    return X.map_blocks(lambda block: block.toarray(), dtype=X.dtype, meta=np.empty((0, 0))), y


UNUSUAL = {
    "sparse chunks made dense": made_dense,
    "columns split over chunks": lambda X, y: (da.from_array(X, chunks=(3_000, 4)), da.from_array(y, chunks=7_000)),
    "fewer partitions than workers": lambda X, y: arrays(X, y, rows=len(X)),
    "unknown chunk sizes": unknown_chunks,
    "labels in memory": lambda X, y: (arrays(X, y)[0], y),
    "an empty chunk": lambda X, y: (
        da.concatenate([arrays(X, y)[0][:3_000], da.zeros((0, X.shape[1])), arrays(X, y)[0][3_000:]]),
        y,
    ),
}


@pytest.mark.parametrize("how", UNUSUAL)
def test_unusual_collections_give_the_same_draws(client, data, classifier, expected, how):
    assert bits(classifier.fit(*UNUSUAL[how](*data))) == expected


def test_partitions_of_a_frame_without_rows_do_not_count(client, data, classifier, expected):
    X, y = frames(*data)
    X["label"] = y
    some = X[X["c0"] > 1e9]  # none
    both = dd.concat([some, X, some])
    assert bits(classifier.fit(both.drop(columns="label"), both["label"])) == expected


@pytest.mark.parametrize("number", [2, 20, 60])
def test_a_killed_worker_changes_nothing(client, data, classifier, expected, number, monkeypatch, caplog):
    with at_question(monkeypatch, number, lambda shards: kill(client, shards.held[number % 3].worker)):
        assert bits(classifier.fit(*arrays(*data))) == expected
    assert "its rows are loaded again" in caplog.text


@pytest.mark.slow
def test_twenty_killed_workers_change_nothing(cluster, client, data, seed):
    rng = np.random.default_rng(seed)
    classifier = HorseshoeProbitClassifier(n_iter=100, burn_in=100, n_chains=2, random_state=seed)
    expected = bits(classifier.fit(*data))
    for _ in range(20):
        staff(cluster, client, 3)
        pids = list(client.run(os.getpid, on_error="ignore").values())
        timer = threading.Timer(rng.uniform(0.0, 4.0), os.kill, (rng.choice(pids).item(), signal.SIGKILL))
        timer.start()
        assert bits(classifier.fit(*arrays(*data))) == expected
        timer.join()


def test_a_worker_killed_while_it_loads_changes_nothing(client, data, classifier, expected, tmp_path):
    def die_once(block, folder):
        with open(folder / "died", "a") as file:
            file.write("x")
            first = file.tell() == 1
        if first:
            os.kill(os.getpid(), signal.SIGKILL)
        return block

    X, y = arrays(*data)
    assert bits(classifier.fit(X.map_blocks(die_once, tmp_path, dtype=X.dtype, meta=X._meta), y)) == expected
    assert (tmp_path / "died").exists()


def test_a_worker_killed_as_soon_as_it_has_loaded_changes_nothing(client, data, classifier, expected, monkeypatch):
    settle, killed = _dask.settle, []

    def settle_and_kill(client, futures, *args):
        settle(client, futures, *args)
        if not killed:
            killed.extend(next(iter(client.who_has(futures).values())))
            kill(client, killed[0])
            end = time.monotonic() + 60
            while futures[0].status != "error":
                assert time.monotonic() < end
                time.sleep(0.01)

    monkeypatch.setattr(_dask_rows, "settle", settle_and_kill)
    assert bits(classifier.fit(*arrays(*data))) == expected
    assert killed


def test_a_stopped_worker_is_replaced(client, data, classifier, expected, monkeypatch, caplog):
    monkeypatch.setattr(_dask_rows, "_HUNG", 3.0)
    stopped = []
    try:
        with at_question(
            monkeypatch, 30, lambda shards: stopped.append(kill(client, shards.held[0].worker, signal.SIGSTOP))
        ):
            assert bits(classifier.fit(*arrays(*data))) == expected
    finally:
        with suppress(ProcessLookupError):  # its nanny may have ended it already
            os.kill(stopped[0], signal.SIGKILL)
    assert "no sign of life" in caplog.text


def test_workers_that_are_lost_again_and_again_are_an_error(client, data, classifier, monkeypatch):
    monkeypatch.setattr(_dask_rows, "_TRIES", 1)
    with (
        at_question(monkeypatch, 30, lambda shards: kill(client, shards.held[0].worker)),
        pytest.raises(RuntimeError, match=r"lost 1 times in a row, the last at tcp://.*more memory"),
    ):
        classifier.fit(*arrays(*data))


@pytest.mark.slow
def test_rows_that_change_when_they_are_loaded_again_are_an_error(client, data, classifier, monkeypatch):
    X, y = arrays(*data)
    noisy = X.map_blocks(lambda block: block + np.random.default_rng().standard_normal(block.shape), meta=X._meta)
    with (
        at_question(monkeypatch, 30, lambda shards: kill(client, shards.held[0].worker)),
        pytest.raises(ValueError, match="gives other rows each time"),
    ):
        classifier.fit(noisy, y)


@pytest.fixture
def ctrl_c():
    """Sends one to this process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have had it ignored
    yield lambda _: signal.raise_signal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_keeps_the_draws_made_so_far(client, data, classifier, monkeypatch, ctrl_c):
    whole = classifier.fit(*data).coef_draws_
    model = HorseshoeProbitClassifier(**{**SETTINGS, "n_iter": 1000}, random_state=classifier.random_state)
    with (
        at_question(monkeypatch, 100, ctrl_c) as asked,
        pytest.warns(UserWarning, match="interrupted"),
    ):
        model.fit(*arrays(*data))
    n = min(len(model.coef_draws_[0]), len(whole[0]))
    assert model.stopped_by_ == "interrupt"
    assert len(asked) < 1000
    np.testing.assert_array_equal(model.coef_draws_[:, :n], whole[:, :n])


def test_an_interrupt_in_burn_in_is_raised_and_leaves_nothing(client, data, classifier, monkeypatch, ctrl_c):
    with at_question(monkeypatch, 20, ctrl_c), pytest.raises(KeyboardInterrupt):
        classifier.fit(*arrays(*data))


KILLED = """
import sys, distributed, dask.array as da, numpy as np
from skhorseshoe import HorseshoeProbitClassifier
address, folder, file, seed = sys.argv[1:]
if __name__ == "__main__":
    data = np.load(file)
    with distributed.Client(address):
        X, y = da.from_array(data["X"], chunks=(3000, -1)), da.from_array(data["y"], chunks=3000)
        settings = {"n_iter": 100_000, "burn_in": 30, "n_chains": 2, "sampler": "hmc", "random_state": int(seed)}
        HorseshoeProbitClassifier(**settings, checkpoint=folder, checkpoint_interval=0).fit(X, y)
"""


def saved_draws(folder):
    """How many draws of each chain a checkpoint holds."""
    manifest = folder / "manifest.json"
    draws = json.loads(manifest.read_text())["body"]["draws"] if manifest.exists() else []
    return draws[-1][-1] if draws else 0


def test_a_killed_root_leaves_a_checkpoint_that_goes_on_and_a_clean_cluster(cluster, client, data, seed, tmp_path):
    X, y = data
    np.savez(tmp_path / "data.npz", X=X, y=y)
    folder = tmp_path / "checkpoint"
    arguments = cluster.scheduler_address, folder, tmp_path / "data.npz", seed
    root = subprocess.Popen([sys.executable, "-c", KILLED, *map(str, arguments)])
    end = time.monotonic() + 120
    while not saved_draws(folder):
        assert root.poll() is None, "the fit ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.02)
    root.kill()
    root.wait()
    settings = {**SETTINGS, "n_iter": saved_draws(folder) + 10, "random_state": seed}
    resumed = HorseshoeProbitClassifier(**settings, checkpoint=folder).fit(*arrays(X, y))
    assert bits(resumed) == bits(HorseshoeProbitClassifier(**settings).fit(X, y))


def test_a_checkpoint_made_in_memory_goes_on_on_a_cluster(client, data, classifier, expected, seed, tmp_path):
    HorseshoeProbitClassifier(**{**SETTINGS, "n_iter": 10}, random_state=seed, checkpoint=tmp_path).fit(*data)
    model = HorseshoeProbitClassifier(**SETTINGS, random_state=seed, checkpoint=tmp_path)
    assert bits(model.fit(*arrays(*data))) == expected
    assert bits(model.fit(*data)) == expected


def test_two_clients_at_once_have_the_draws_of_one(cluster, client, data, classifier, expected):
    results = {}

    def fit(name):
        model = HorseshoeProbitClassifier(**classifier.get_params())
        with distributed.Client(cluster, set_as_default=False) as own, own.as_current():
            results[name] = bits(model.fit(*arrays(*data)))

    threads = [threading.Thread(target=fit, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert results == {"a": expected, "b": expected}


@pytest.mark.slow
def test_an_encrypted_cluster_gives_the_same_draws_and_recovers(data, classifier, expected, monkeypatch):
    pytest.importorskip("cryptography", reason="makes the certificates: pip install cryptography")
    security = distributed.security.Security.temporary()
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "security": security}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, security=security) as client:
        assert all(address.startswith("tls://") for address in _dask_rows.survey(client))
        with at_question(monkeypatch, 20, lambda shards: kill(client, shards.held[0].worker)):
            assert bits(classifier.fit(*arrays(*data))) == expected
        check_that_nothing_is_left(client)


def test_target_ess_stops_where_it_stops_in_memory(client, data, seed):
    model = HorseshoeProbitClassifier(n_iter=500, burn_in=100, n_chains=4, target_ess=20, random_state=seed)
    lazy = clone(model).fit(*arrays(*data))
    assert (lazy.stopped_by_, bits(lazy)) == ("target_ess", bits(model.fit(*data)))
    assert lazy.n_iter_ == model.n_iter_ < 500


class Recorder:
    """A callback: notes the draws that there are after each block, and what X is; stops the fit when there are some."""

    max_propagation_depth = None

    def __init__(self, stop_after=np.inf):
        self.stop_after, self.draws, self.given = stop_after, [], set()

    def setup(self, estimator, context):
        pass

    teardown = setup

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator=None):
        self.given.add((id(X), id(y)))
        self.draws.append(None if fitted_estimator is None else fitted_estimator.coef_draws_.tobytes())
        return fitted_estimator is not None and fitted_estimator.coef_draws_.shape[1] >= self.stop_after


@needs_callbacks
@pytest.mark.parametrize("stop_after", [np.inf, 4])
def test_callbacks_see_the_draws_of_memory_and_stop_where_they_stop_there(client, data, classifier, stop_after):
    local, remote = Recorder(stop_after), Recorder(stop_after)
    want = clone(classifier).set_callbacks(local).fit(*data)
    X, y = arrays(*data)
    got = clone(classifier).set_callbacks(remote).fit(X, y)
    assert (got.stopped_by_, bits(got)) == (want.stopped_by_, bits(want))
    assert got.stopped_by_ == ("n_iter" if stop_after == np.inf else "callback")
    assert remote.draws == local.draws
    assert remote.given == {(id(X), id(y))}  # as they were given, lazy


def frame_with_empty_partitions(X, y):
    X, _ = frames(X, y)
    return dd.concat([X[X["c0"] > 1e9], X]), y


SCORED = {
    "arrays": arrays,
    "unknown chunk sizes": lambda X, y: (unknown_chunks(X, y)[0], y),
    "a frame with empty partitions": frame_with_empty_partitions,
}


@needs_callbacks
@pytest.mark.parametrize("how", SCORED)
def test_scores_while_the_chains_run_are_those_of_memory(client, data, classifier, how):
    from sklearn.callback import ScoringMonitor

    def scores(X, y):
        monitor = ScoringMonitor(scoring="neg_log_loss")
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # of names that X does not have
            warnings.simplefilter("ignore", ConvergenceWarning)
            clone(classifier).set_callbacks(monitor).fit(X, y)
        return monitor.get_logs(select="most_recent").data_as_pandas["neg_log_loss"].tolist()

    want = scores(*data)
    assert len(want) >= 5
    assert scores(*SCORED[how](*data)) == want


@needs_callbacks
def test_a_progress_bar_is_drawn(client, data, classifier, capsys):
    pytest.importorskip("rich", reason="scikit-learn's bar is drawn by rich")
    from sklearn.callback import ProgressBar

    clone(classifier).set_callbacks(ProgressBar()).fit(*arrays(*data))
    shown = capsys.readouterr().out
    assert "burn-in, 30 sweeps" in shown
    assert shown.count("100%") >= 4  # the fit, and its three parts


def nan_in_the_middle(X, y):
    X = X.copy()
    X[11_111, 3] = np.nan
    return arrays(X, y)


def with_words(X, y):
    X, y = frames(X, y)
    return X.assign(word="yes"), y


BAD = {
    "NaN": (nan_in_the_middle, "contains NaN: row 11111, column 3"),
    "labels too short": (lambda X, y: (arrays(X, y)[0], y[:-1]), r"y has shape \(19999,\), but X has 20000 rows"),
    "one class": (lambda X, y: arrays(X, 0 * y), "one class"),
    "three classes": (lambda X, y: arrays(X, np.arange(len(y)) % 3), "Only binary"),
    "no rows": (lambda X, y: arrays(X[:0], y[:0]), "0 rows"),
    "X in memory": (lambda X, y: (X, arrays(X, y)[1]), "y or sample_weight is a Dask collection, but X is not"),
    "sparse chunks": (
        sparse_chunks,
        r"of csr_matrix. Make such chunks .*block.toarray\(\), dtype=X.dtype",
    ),
    "words": (with_words, "Column 'word' is not numeric"),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_collections_are_refused_with_the_reason(client, data, classifier, how):
    make, message = BAD[how]
    with pytest.raises(ValueError, match=message):
        classifier.fit(*make(*data))


def test_weights_need_the_sampler_that_takes_them(client, data):
    X, y = arrays(*data)
    with pytest.raises(ValueError, match="sampler='gibbs' does not take weights"):
        HorseshoeProbitClassifier(sampler="gibbs", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight is 0.0 in row 7"):
        HorseshoeProbitClassifier(sampler="hmc").fit(X, y, sample_weight=(np.arange(len(y)) != 7) * 1.0)


def test_workers_too_small_for_their_rows_are_named_before_anything_is_loaded(client, data, classifier, monkeypatch):
    survey = _dask_rows.survey
    monkeypatch.setattr(
        _dask_rows, "survey", lambda client: {w: {**s, "memory": 2**19} for w, s in survey(client).items()}
    )
    with pytest.raises(MemoryError, match=r"Worker tcp://.* would have to hold .* Add workers"):
        classifier.fit(*arrays(*data))


def test_without_a_client_the_error_says_how_to_make_one(data, classifier):
    with pytest.raises(ValueError, match=r"distributed\.Client"):
        classifier.fit(*arrays(*data))


@pytest.mark.parametrize(
    "name", ["predict_proba", "predict", "decision_function", "predict_log_proba", "predict_interval"]
)
def test_predictions_stay_lazy_and_are_those_of_memory(data, classifier, name):
    X, y = data
    model = HorseshoeProbitClassifier(**{**SETTINGS, "n_iter": 4}, random_state=0).fit(X, np.where(y, "yes", "no"))
    lazy = getattr(model, name)(da.from_array(X, chunks=(6_000, 5)))
    assert isinstance(lazy, da.Array)
    want = getattr(model, name)(X)
    assert lazy.shape == want.shape
    assert lazy.dtype == want.dtype
    np.testing.assert_array_equal(lazy.compute(scheduler="threads"), want)


def test_predictions_of_a_frame_check_its_names(data, seed):
    X = pd.DataFrame(data[0], columns=[f"c{j}" for j in range(10)])
    model = HorseshoeProbitClassifier(**{**SETTINGS, "n_iter": 4}, random_state=0).fit(X, data[1])
    lazy = dd.from_pandas(X, npartitions=3)
    np.testing.assert_array_equal(model.predict_proba(lazy).compute(scheduler="threads"), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(lazy.rename(columns={"c3": "other"}))


def test_dask_is_asked_for_where_it_is_missing(run_python):
    code = """
import sys
sys.modules["distributed"] = None
import dask.array as da
from skhorseshoe import HorseshoeProbitClassifier
try:
    HorseshoeProbitClassifier().fit(da.zeros((9, 2)), da.zeros(9))
except ImportError as error:
    print(error)
"""
    assert "pip install 'skhorseshoe[dask]'" in run_python(code)


@pytest.mark.slow
def test_the_examples_of_the_page_run(data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y)
    dd.from_pandas(table, npartitions=4).to_parquet(tmp_path / "table")
    page = (Path(__file__).parents[1] / "docs/user_guide/cluster.rst").read_text()
    printed = []
    for i, block in enumerate(re.findall(r"code-block:: python\n\n((?:   .*\n|\n)+)", page)):
        script = tmp_path / f"example_{i}.py"
        script.write_text(textwrap.dedent(block))
        done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    local_cluster, memory_map, parquet = printed
    assert "dask.array" in local_cluster
    assert memory_map == parquet != ""
