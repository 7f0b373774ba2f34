"""What a fitted model answers to Dask collections: predictions that stay lazy, scores, selections."""

import numpy as np
import pandas as pd
import pytest
from faults import da, dd, frames, sparse_chunks, words
from sklearn.base import clone

from skhorseshoe import HorseshoeSelector


@pytest.mark.parametrize(
    "name", ["predict_proba", "predict", "decision_function", "predict_log_proba", "predict_interval"]
)
def test_predictions_stay_lazy_and_are_those_of_memory(data, classifier, name):
    X, y = data
    model = clone(classifier).set_params(n_iter=4).fit(X, np.where(y, "yes", "no"))
    lazy = getattr(model, name)(da.from_array(X, chunks=(6_000, 5)))
    assert isinstance(lazy, da.Array)
    want = getattr(model, name)(X)
    assert lazy.shape == want.shape
    assert lazy.dtype == want.dtype
    np.testing.assert_array_equal(lazy.compute(scheduler="threads"), want)


def test_predictions_of_a_frame_check_its_names(data, classifier):
    X = pd.DataFrame(data[0], columns=[f"c{j}" for j in range(10)])
    model = clone(classifier).set_params(n_iter=4).fit(X, data[1])
    lazy = dd.from_pandas(X, npartitions=3)
    np.testing.assert_array_equal(model.predict_proba(lazy).compute(scheduler="threads"), model.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict_proba(lazy.rename(columns={"c3": "other"}))


def test_predictions_of_sparse_chunks_are_those_of_sparse_rows(data, classifier):
    model = clone(classifier).set_params(n_iter=4).fit(*data)
    lazy, _ = sparse_chunks(*data)
    got = model.predict_proba(lazy).compute(scheduler="threads")
    np.testing.assert_allclose(got, model.predict_proba(data[0]), rtol=1e-12)


def test_a_score_of_collections_is_that_of_memory(data, classifier):
    X, y = pd.DataFrame(data[0]).rename(columns="c{}".format), words(data[1], "str")
    model = clone(classifier).set_params(n_iter=4).fit(X, y)
    want, weight = model.score(X, y), np.where(model.predict(X) == y, 1.0, 3.0)
    lazy_X, lazy_y = dd.from_pandas(X, npartitions=3), dd.from_pandas(y, npartitions=2)
    assert model.score(lazy_X, y, sample_weight=weight) == model.score(X, y, sample_weight=weight) < want
    assert model.score(lazy_X, lazy_y) == want
    assert model.score(X, lazy_y) == want


@pytest.mark.parametrize("rule", ["interval", "shrinkage"])
def test_a_selector_knows_the_columns_of_a_collection(data, classifier, rule):
    """And reads none of its rows."""
    X, y = data
    frame, _ = frames(X, y)
    model = clone(classifier).fit(frame.compute(), y)
    selector = HorseshoeSelector(model, rule=rule, prefit=True).fit(frame)
    assert list(selector.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="same order"):
        HorseshoeSelector(model, rule=rule, prefit=True).fit(frame[frame.columns[::-1]])
    with pytest.raises(ValueError, match="now missing"):
        HorseshoeSelector(model, rule=rule, prefit=True).fit(frame[["c0"]])
    with pytest.raises(ValueError, match="rule='dss' reads the rows in memory"):
        HorseshoeSelector(model, prefit=True).fit(frame)
