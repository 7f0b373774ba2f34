"""Rows held by the workers of a Dask cluster: the same draws, to the bit, whoever holds which."""

import re
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from faults import (
    SHORT_CHAINS,
    arrays,
    at_question,
    bits,
    check_that_nothing_is_left,
    da,
    dd,
    delayed,
    distributed,
    frames,
    sparse_chunks,
    staff,
    words,
)
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends import limits
from skhorseshoe._data import dask_rows, row_blocks
from skhorseshoe._utils.sklearn_compat import HAS_CALLBACKS

pytestmark = SHORT_CHAINS
needs_callbacks = pytest.mark.skipif(not HAS_CALLBACKS, reason="callbacks are new in scikit-learn 1.9")


def test_sums_of_a_tree_do_not_depend_on_who_adds_which_leaves():
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        leaves = rng.standard_normal(n) * 10.0 ** rng.integers(-8, 8, n)
        whole = row_blocks.collapse({(0, i): leaf for i, leaf in enumerate(leaves)}, n, lambda a, b: a + b)
        owner = rng.integers(0, 4, n)
        nodes = {}
        for k in range(4):
            mine = {(0, i): leaf for i, leaf in enumerate(leaves) if owner[i] == k}
            nodes |= row_blocks.collapse(mine, n, lambda a, b: a + b)
        assert list(row_blocks.collapse(nodes, n, lambda a, b: a + b).values()) == list(whole.values())
        np.testing.assert_allclose(next(iter(whole.values())), leaves.sum(), rtol=1e-6)


@pytest.mark.parametrize("n_workers", [1, 2, 3, pytest.param(5, marks=pytest.mark.slow)])
def test_draws_are_those_of_memory_for_any_number_of_workers(
    cluster, client, data, classifier, expected, n_workers, monkeypatch
):
    staff(cluster, client, n_workers)
    held, copies = [], []

    def look(shards):
        held.extend(shards.holders)
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
    monkeypatch.setattr(limits, "LARGEST_FACTOR", 0)
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
    expected = bits(model.fit(X, y, sample_weight=weight))
    assert bits(model.fit(*arrays(X, y), sample_weight=da.from_array(weight, chunks=4_000))) == expected
    assert bits(model.fit(*arrays(X, y), sample_weight=pd.Series(weight, dtype=object))) == expected


def unknown_chunks(X, y):
    X, y = arrays(X, y)
    keep = da.ones(len(y), chunks=y.chunks, dtype=bool)
    return X[keep], y[keep]


def made_dense(X, y):
    """As the error for sparse chunks says."""
    X, y = sparse_chunks(X, y)
    return X.map_blocks(lambda block: block.toarray(), dtype=X.dtype, meta=np.empty((0, 0))), y


UNUSUAL = {
    "labels that are objects": lambda X, y: (arrays(X, y)[0], words(y, object)),
    "labels that are categories": lambda X, y: (arrays(X, y)[0], words(y, "category")),
    "a series of nullable labels": lambda X, y: (arrays(X, y)[0], dd.from_pandas(words(y, "string"), npartitions=4)),
    "nullable columns": lambda X, y: (frames(X, y)[0].astype("Float64"), y),
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


def test_a_level_of_one_class_is_named(client, data, classifier):
    """No worker has all of its rows."""
    X, y = data
    X = X.copy()
    X[:, 2] = 0.0
    X[np.flatnonzero(y)[::1000], 2] = 1.0
    with pytest.warns(ConvergenceWarning, match=r"Column 'x2': all values in one class lie on one side"):
        classifier.fit(*arrays(X, y))


def test_values_far_out_are_named(client, data, classifier):
    X, y = data
    X = X.copy()
    X[[100, 2000], 1] = 1e7
    with pytest.warns(UserWarning, match=r"Column 'x1' has values far out: .* Clip them"):
        classifier.fit(*arrays(X, y))


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


def missing_label(X, y, dtype):
    labels = words(y, dtype)
    labels[11_111] = None
    return arrays(X, y)[0], labels


def missing_label_in_a_series(X, y):
    X, y = missing_label(X, y, "str")
    return X, dd.from_pandas(y, npartitions=4)


def missing_in_a_nullable_column(X, y):
    X = pd.DataFrame(X).rename(columns="c{}".format).astype("Float64")
    X.loc[11_111, "c3"] = pd.NA
    return dd.from_pandas(X, npartitions=4), y


def unknown_number_of_columns(X, y):
    return da.from_delayed(delayed(np.asarray)(X), (np.nan, np.nan), X.dtype), y


def with_words(X, y):
    X, y = frames(X, y)
    return X.assign(word="yes"), y


def under_a_mask(which):
    """What stands there, in X, y or the weights, is no data."""

    def make(X, y):
        X, y = arrays(X, y)
        given = {"X": X, "y": y}
        at = da.arange(len(y), chunks=given[which].chunks[0]) == 11_111
        mask = at[:, None] & (np.arange(X.shape[1]) == 3) if which == "X" else at
        given[which] = da.ma.masked_array(given[which], mask)
        return given["X"], given["y"]

    return make


BAD = {
    "X under a mask": (under_a_mask("X"), "contains NaN: row 11111, column 3"),
    "labels under a mask": (under_a_mask("y"), "The label of row 11111 is missing"),
    "labels in memory under a mask": (
        lambda X, y: (arrays(X, y)[0], np.ma.masked_array(y, np.arange(len(y)) == 7)),
        "y is a masked array, .* in row 7",
    ),
    "NaN": (nan_in_the_middle, "contains NaN: row 11111, column 3"),
    "NA in a frame": (missing_in_a_nullable_column, "contains NaN: row 11111, column 'c3'"),
    "columns not counted": (unknown_number_of_columns, r"how many columns it has.*X.compute_chunk_sizes\(\)"),
    "a label is None": (lambda X, y: missing_label(X, y, object), "The label of row 11111 is missing"),
    "a label is NA": (lambda X, y: missing_label(X, y, "string"), "The label of row 11111 is missing"),
    "a label is NaN, far away": (missing_label_in_a_series, "The label of row 11111 is missing"),
    "labels too short": (lambda X, y: (arrays(X, y)[0], y[:-1]), r"y has shape \(19999,\), but X has 20000 rows"),
    "one class": (lambda X, y: arrays(X, 0 * y), "one class"),
    "three classes": (lambda X, y: arrays(X, np.arange(len(y)) % 3), "Only binary"),
    "no rows": (lambda X, y: arrays(X[:0], y[:0]), "0 rows"),
    "X in memory": (
        lambda X, y: (X, arrays(X, y)[1]),
        "y or sample_weight is a Dask collection, but X is not.*standardize=True",
    ),
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
    weight = da.ma.masked_equal(da.arange(len(y), chunks=y.chunks) + 1.0, 8.0)
    with pytest.raises(ValueError, match=r"sample_weight is nan in row 7"):
        HorseshoeProbitClassifier(sampler="hmc").fit(X, y, sample_weight=weight)


def test_workers_too_small_for_their_rows_are_named_before_anything_is_loaded(client, data, classifier, monkeypatch):
    survey = dask_rows.survey
    monkeypatch.setattr(
        dask_rows, "survey", lambda client: {w: {**s, "memory": 2**19} for w, s in survey(client).items()}
    )
    with pytest.raises(MemoryError, match=r"Worker tcp://.* would have to hold .* Add workers"):
        classifier.fit(*arrays(*data))


def test_without_a_client_the_error_says_how_to_make_one(data, classifier):
    with pytest.raises(ValueError, match=r"distributed\.Client"):
        classifier.fit(*arrays(*data))


def test_a_fit_in_a_task_leaves_its_thread_to_the_rows(data, classifier, expected):
    """There is no other thread, and two such tasks."""
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        tasks = [client.submit(lambda _: bits(clone(classifier).fit(*arrays(*data))), i) for i in range(2)]
        assert [task.result(timeout=60) for task in tasks] == [expected] * 2
        del tasks
        check_that_nothing_is_left(client)


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
    page = (Path(__file__).parents[2] / "docs/user_guide/cluster.rst").read_text()
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
