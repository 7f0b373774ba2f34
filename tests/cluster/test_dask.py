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
from scipy.special import ndtr
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data import row_blocks
from skhorseshoe._mcmc import draws
from skhorseshoe._utils.sklearn_compat import HAS_CALLBACKS
from skhorseshoe.diagnostics import convergence
from skhorseshoe.inspection import loo

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


@pytest.mark.parametrize("n_workers", [*(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2)), 3])
def test_draws_are_those_of_memory_for_any_number_of_workers(
    cluster, client, data, classifier, expected, n_workers, monkeypatch
):
    staff(cluster, client, n_workers)
    workers, copies = set(), []

    def look(shards):
        workers.update(holder.worker for holder in shards.holders)
        copies.extend(key for keys in client.run(lambda dask_worker: list(dask_worker.data)).values() for key in keys)

    with at_question(monkeypatch, 40, look):
        assert bits(classifier.fit(*arrays(*data))) == expected
    assert len(workers) == n_workers
    assert not copies  # of the rows, beside those that the actors hold


@pytest.mark.parametrize("sampler", ["gibbs", "pxda"])
def test_data_augmentation_draws_what_it_draws_in_memory(client, data, seed, sampler, sizes):
    """With conjugate gradients, where no factor of the matrix has room."""
    if sampler == "pxda":
        sizes(columns_of_a_cholesky_factor=0)
    model = HorseshoeProbitClassifier(
        n_iter=5, burn_in=3, sampler=sampler, standardize=sampler == "gibbs", prior_scale={1: 0.5}, random_state=seed
    )
    assert bits(model.fit(*arrays(*data))) == bits(model.fit(*data))


def test_weights_are_those_of_memory(client, data, seed):
    """In the slabs of the columns too."""
    X, y = data
    weight = np.random.default_rng(seed).integers(1, 4, len(y)) / 2
    params = {"class_weight": "balanced", "slab_scale": "per_contrast", "random_state": seed}
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=9, sampler="hmc", **params)
    expected = bits(model.fit(X, y, sample_weight=weight))
    assert bits(model.fit(*arrays(X, y), sample_weight=da.from_array(weight, chunks=4_000))) == expected
    assert bits(model.fit(*arrays(X, y), sample_weight=pd.Series(weight, dtype=object))) == expected


def test_what_tells_the_rows_of_a_fit_is_that_of_memory(client, data, few_questions, said):
    """Whose weights are too heavy here, and whose labels go with them."""
    X, y = data
    weight = np.random.default_rng(0).uniform(100, 5000, len(y))
    here, there = (clone(few_questions).set_params(n_iter=60, sampler="hmc") for _ in range(2))
    told = said(here, X, y, "too narrow", sample_weight=weight)
    assert said(there, *arrays(X, y), "too narrow", sample_weight=weight) == told
    assert "Divide sample_weight by 3" in told[0]
    np.testing.assert_allclose(here._fitted_rows.pop("paired_means"), there._fitted_rows["paired_means"], rtol=1e-12)
    assert loo(there, X, y, weight, max_draws=100).n_rows == len(y)
    with pytest.raises(ValueError, match="in the fit"):
        loo(there, X[::-1], y, weight, max_draws=100)


def unknown_chunks(X, y):
    X, y = arrays(X, y)
    keep = da.ones(len(y), chunks=y.chunks, dtype=bool)
    return X[keep], y[keep]


def made_dense(X, y):
    """As the error for sparse chunks says."""
    X, y = sparse_chunks(X, y)
    return X.map_blocks(lambda block: block.toarray(), dtype=X.dtype, meta=np.empty((0, 0))), y


def without_some_rows(X, y):
    """A frame with partitions that are empty."""
    X, y = frames(X, y)
    X["label"] = y
    none = X[X["c0"] > 1e9]
    X = dd.concat([none, X, none])
    return X.drop(columns="label"), X["label"]


UNUSUAL = {
    "a frame": frames,
    "labels that are categories": lambda X, y: (arrays(X, y)[0], words(y, "category")),
    "a series of nullable labels": lambda X, y: (arrays(X, y)[0], dd.from_pandas(words(y, "string"), npartitions=4)),
    "nullable columns": lambda X, y: (frames(X, y)[0].astype("Float64"), y),
    "sparse chunks made dense": made_dense,
    "columns split over chunks": lambda X, y: (da.from_array(X, chunks=(3_000, 4)), da.from_array(y, chunks=7_000)),
    "fewer partitions than workers": lambda X, y: arrays(X, y, rows=len(X)),
    "unknown chunk sizes": unknown_chunks,
    "labels in memory": lambda X, y: (arrays(X, y)[0], y),
    "empty partitions": without_some_rows,
}


@pytest.mark.filterwarnings("ignore")
def test_with_more_columns_than_rows_predictions_are_waited_for(client, seed, monkeypatch):
    monkeypatch.setattr(draws, "MAX_RHAT", 1.2)  # so that they come soon
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((12, 18)), np.arange(12) % 2
    model = HorseshoeProbitClassifier(sampler="hmc", burn_in=100, target_ess=40, slab_scale=2, random_state=seed)
    model.fit(*arrays(X, y, rows=5))
    assert model.stopped_by_ == "target_ess"
    checks = convergence(ndtr(model.coef_draws_ @ X.T + model.intercept_draws_[..., None]))
    assert checks.ess_bulk.min() >= 40
    assert checks.rhat.max() <= 1.2


@pytest.mark.parametrize("kind", [arrays, frames])
def test_small_whole_numbers_take_no_more_room_than_in_memory(client, data, few_questions, kind):
    whole = data[0].clip(-9, 9).astype(np.int8), data[1]
    assert bits(few_questions.fit(*kind(*whole))) == bits(few_questions.fit(*whole))


@pytest.mark.parametrize("how", UNUSUAL)
def test_unusual_collections_give_the_same_draws(client, data, few_questions, how):
    expected = bits(few_questions.fit(*data))
    model = few_questions.fit(*UNUSUAL[how](*data))
    assert bits(model) == expected
    if how == "a frame":
        assert model.feature_names_in_.tolist() == [f"c{j}" for j in range(10)]


@pytest.mark.parametrize("labels", [pd.Series.to_frame, pd.Series.copy], ids=["frame", "series"])
def test_nullable_labels_keep_their_type(client, data, few_questions, labels):
    expected, y = bits(few_questions.fit(*data)), labels(pd.Series(data[1]).astype("boolean").rename("y"))
    model = few_questions.fit(arrays(*data)[0], dd.from_pandas(y, npartitions=4))
    assert bits(model) == expected
    assert model.classes_.dtype == bool


def test_columns_to_warn_of_are_named(client, data, few_questions):
    """No worker has all of their rows."""
    X, y = data[0].copy(), data[1]
    X[:, 2] = np.isin(np.arange(len(y)), np.flatnonzero(y)[::1000])
    X[[100, 2000], 1] = 1e7
    with pytest.warns(UserWarning, match="Column 'x1' has values far out") as caught:
        few_questions.fit(*arrays(X, y))
    assert any("Column 'x2': all values in one class lie on one side" in str(w.message) for w in caught)


def test_target_ess_stops_where_it_stops_in_memory(client, seed, monkeypatch):
    monkeypatch.setattr(draws, "MAX_RHAT", 1.2)  # so that the stop comes soon, as it does with weak effects
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((17_000, 4))  # more numbers than are sorted in memory
    y = X @ [0.4, -0.2, 0.1, 0.3] + rng.standard_normal(len(X)) > 0
    model = HorseshoeProbitClassifier(n_iter=2000, burn_in=30, sampler="gibbs", target_ess=20, random_state=seed)
    lazy = clone(model).fit(*arrays(X, y))
    assert (lazy.stopped_by_, bits(lazy)) == ("target_ess", bits(model.fit(X, y)))
    assert lazy.n_iter_ == model.n_iter_ < 2000


class Recorder:
    """A callback: notes the draws that there are after each block, and what X is; stops the fit when there are some."""

    max_propagation_depth = None

    def __init__(self, stop_after=np.inf):
        self.stop_after, self.draws, self.given = stop_after, [], set()

    def setup(self, estimator, context):
        pass

    teardown = on_fit_task_begin = setup

    def on_fit_task_end(self, estimator, context, *, X, y, fitted_estimator=None):
        self.given.add((id(X), id(y)))
        self.draws.append(None if fitted_estimator is None else fitted_estimator.coef_draws_.tobytes())
        return fitted_estimator is not None and fitted_estimator.coef_draws_.shape[1] >= self.stop_after


@needs_callbacks
def test_callbacks_stop_where_they_stop_in_memory(client, data, classifier):
    local, remote = Recorder(stop_after=4), Recorder(stop_after=4)
    want = clone(classifier).set_callbacks(local).fit(*data)
    X, y = arrays(*data)
    got = clone(classifier).set_callbacks(remote).fit(X, y)
    assert got.stopped_by_ == want.stopped_by_ == "callback"
    assert bits(got) == bits(want)
    assert remote.draws == local.draws
    assert remote.given == {(id(X), id(y))}  # as they were given, lazy


@needs_callbacks
@pytest.mark.parametrize("make", [arrays, unknown_chunks, without_some_rows])
def test_scores_while_the_chains_run_are_those_of_memory(client, data, few_questions, make):
    from sklearn.callback import ScoringMonitor

    def scores(X, y):
        monitor = ScoringMonitor(scoring="neg_log_loss")
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)  # of names that X does not have
            warnings.simplefilter("ignore", ConvergenceWarning)
            clone(few_questions).set_callbacks(monitor).fit(X, y)
        return monitor.get_logs(select="most_recent").data_as_pandas["neg_log_loss"].tolist()

    want = scores(*data)
    assert len(want) >= 5
    assert scores(make(*data)[0], data[1]) == want


ROW, COLUMN = 11_111, 3


def with_nan(X, y):
    X = X.copy()
    X[ROW, COLUMN] = np.nan
    return arrays(X, y)


def with_na(X, y):
    X = pd.DataFrame(X).rename(columns="c{}".format).astype("Float64")
    X.loc[ROW, f"c{COLUMN}"] = pd.NA
    return dd.from_pandas(X, npartitions=4), y


def missing_label(X, y):
    labels = words(y, "string")
    labels[ROW] = None
    return arrays(X, y)[0], dd.from_pandas(labels, npartitions=4)


BAD = {
    "NaN": (with_nan, "contains NaN: .*row 11111 of column 3"),
    "NA in a frame": (with_na, "contains NaN: .*row 11111 of column 'c3'"),
    "X under a mask": (
        lambda X, y: (da.ma.masked_equal(arrays(X, y)[0], X[ROW, COLUMN]), y),
        "contains NaN: .*row 11111 of column 3",
    ),
    "labels under a mask": (
        lambda X, y: (arrays(X, y)[0], da.ma.masked_array(arrays(X, y)[1], da.arange(len(y), chunks=3_000) == ROW)),
        "label of row 11111 is missing",
    ),
    "labels in memory under a mask": (
        lambda X, y: (arrays(X, y)[0], np.ma.masked_array(y, np.arange(len(y)) == 7)),
        "y is a masked array, .* row 7",
    ),
    "a missing label": (missing_label, "label of row 11111 is missing"),
    "columns not counted": (
        lambda X, y: (da.from_delayed(delayed(np.asarray)(X), (np.nan, np.nan), X.dtype), y),
        r"how many columns it has.*X.compute_chunk_sizes\(\)",
    ),
    "labels too short": (lambda X, y: (arrays(X, y)[0], y[:-1]), r"y has shape \(19999,\), but X has 20000 rows"),
    "one class": (lambda X, y: arrays(X, 0 * y), "one class"),
    "no rows": (lambda X, y: arrays(X[:0], y[:0]), "0 rows"),
    "X in memory": (lambda X, y: (X, arrays(X, y)[1]), "y or sample_weight is .*, but X is not.*standardize=True"),
    "sparse chunks": (sparse_chunks, r"of csr_matrix.*block.toarray\(\), dtype=X.dtype"),
    "words": (
        lambda X, y: (frames(X, y)[0].assign(word="yes"), y),
        r"Column 'word' is not numeric: its dtype is (str|object|string).*\.",
    ),
    "levels": (
        lambda X, y: (frames(X, y)[0].assign(word="yes").astype({"word": "category"}), y),
        r"Column 'word' is not numeric: its dtype is category\. .* dask\.dataframe\.get_dummies\(X\.categorize",
    ),
    "words in an array": (
        lambda X, y: (arrays(np.where(X[ROW, COLUMN] == X, "yes", X.astype(object)), y)[0], y),
        f"Column {COLUMN} is not numeric: .*'yes'.*get_dummies",
    ),
    "an array of text": (lambda X, y: (arrays(X.astype(str), y)[0], y), "Column 0 is not numeric: its dtype is <U"),
}


@pytest.mark.parametrize("how", BAD)
def test_bad_collections_are_refused_with_the_reason(client, data, classifier, how):
    make, says = BAD[how]
    with pytest.raises(ValueError, match=says):
        classifier.fit(*make(*data))


def test_weights_need_the_sampler_that_takes_them(client, data):
    X, y = arrays(*data)
    with pytest.raises(ValueError, match="sampler='gibbs' does not take weights"):
        HorseshoeProbitClassifier(sampler="gibbs", class_weight="balanced").fit(X, y)
    with pytest.raises(ValueError, match=r"sample_weight is 0.0 in row 7.*Leave out those of weight 0"):
        HorseshoeProbitClassifier(sampler="hmc").fit(X, y, sample_weight=(np.arange(len(y)) != 7) * 1.0)
    weight = da.ma.masked_equal(da.arange(len(y), chunks=y.chunks) + 1.0, 8.0)
    with pytest.raises(ValueError, match=r"sample_weight is nan in row 7"):
        HorseshoeProbitClassifier(sampler="hmc").fit(X, y, sample_weight=weight)


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
    assert "pip install 'dask[array,dataframe]' distributed" in run_python(code)


@pytest.mark.slow
def test_the_examples_of_the_page_run(data, tmp_path):
    X, y = data
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]).assign(label=y)
    dd.from_pandas(table, npartitions=4).to_parquet(tmp_path / "table")
    page = (Path(__file__).parents[2] / "docs/user_guide/cluster.rst").read_text()
    page = page.replace("Classifier(random_state=0)", "Classifier(random_state=0, n_iter=10, burn_in=10)")
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
