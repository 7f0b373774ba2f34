"""More than two classes on a cluster: the draws of a fit in memory, to the bit, and lazy answers."""

import numpy as np
import pandas as pd
import pytest
from faults import arrays, at_question, bits, da, dd, frames, kill, staff
from sklearn.base import clone

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._data.row_blocks import Segment
from skhorseshoe._fit import memory_forecast
from skhorseshoe._mcmc import hmc_burn_in

N, LEVELS = 8_000, ["poor", "fair", "good"]  # so many rows of 9 columns are three segments, and are not sorted


@pytest.fixture(scope="module")
def X(seed):
    return np.random.default_rng(seed).standard_normal((N, 9))


@pytest.fixture(scope="module")
def labels(X, seed):
    """By the number of classes."""
    utilities = X[:, :4] + 0.2 + np.random.default_rng(seed + 1).standard_normal((N, 4))
    return {k: np.array(["ash", "elm", "fir", "oak"])[utilities[:, :k].argmax(axis=1)] for k in (3, 4)}


@pytest.fixture(scope="module")
def grades(X, seed):
    z = X[:, 0] - 0.5 * X[:, 1] + np.random.default_rng(seed + 1).standard_normal(N)
    return np.array(LEVELS)[np.digitize(z, [-0.5, 0.8])]


@pytest.fixture(scope="module")
def weight(seed):
    return np.random.default_rng(seed).integers(1, 4, N) / 2


def model(**how):
    return HorseshoeProbitClassifier(**{"n_iter": 4, "burn_in": 12, "n_chains": 2, "random_state": 0, **how})


def check_same(ours, theirs):
    assert bits(ours) == bits(theirs)
    assert ours.classes_.tolist() == theirs.classes_.tolist()
    for name in ("size", "share", "paired_means"):  # by which scores of the rows of the fit know them
        np.testing.assert_allclose(ours._fitted_rows[name], theirs._fitted_rows[name], rtol=1e-10, atol=1e-14)
    if hasattr(theirs, "ordered_classes_"):
        assert ours.ordered_classes_.tolist() == theirs.ordered_classes_.tolist()
        np.testing.assert_array_equal(ours.cut_points_draws_, theirs.cut_points_draws_)


HOW = {
    "three": (3, {}),
    "four, weighted": (4, {"class_weight": {"ash": 0.5, "elm": 2.0, "fir": 1.0, "oak": 3.0}, "standardize": True}),
    "by latents": (3, {"sampler": "gibbs", "unpenalized": [2]}),
}


@pytest.mark.parametrize("name", HOW)
def test_classes_without_an_order_have_the_draws_of_memory(client, X, labels, weight, name, monkeypatch):
    """Also on trajectories of several steps, of which all but the last ask what stands for the likelihood."""
    k, how = HOW[name]
    w = weight if "weighted" in name else None
    monkeypatch.setattr(hmc_burn_in, "steps_for_angle", lambda step, angle: 3)
    ours = model(**how).fit(*arrays(X, labels[k], rows=1_500), sample_weight=w)
    theirs = model(**how).fit(X, labels[k], sample_weight=w)
    check_same(ours, theirs)
    assert ours.sampler_ == how.get("sampler", "hmc")
    assert ours.coef_.shape == (k, 9)


ORDERED = {
    "a list": (LEVELS, lambda y: da.from_array(y, chunks=3_000), {"class_weight": {"poor": 3, "fair": 0.5, "good": 1}}),
    "a Categorical": (True, lambda y: dd.from_pandas(pd.Series(categorical(y)), npartitions=4), {"standardize": True}),
    "a Categorical in memory": (True, lambda y: categorical(y), {"unpenalized": [0], "fit_intercept": False}),
}


def categorical(y):
    """Whose order is not that of the alphabet, with a level that no row has."""
    return pd.Categorical(y, ["none", *LEVELS], ordered=True)


@pytest.mark.parametrize("given", ORDERED)
def test_ordered_classes_have_the_draws_of_memory(client, X, grades, weight, given):
    ordered, lazy, how = ORDERED[given]
    w = weight if given == "a list" else None
    ours = model(ordered=ordered, **how).fit(arrays(X, grades)[0], lazy(grades), sample_weight=w)
    theirs = model(ordered=ordered, **how).fit(X, categorical(grades) if ordered is True else grades, sample_weight=w)
    check_same(ours, theirs)
    assert ours.ordered_classes_.tolist() == LEVELS


@pytest.mark.parametrize("k", [3, "ordered"])
def test_a_class_may_be_in_few_partitions(client, X, labels, grades, k):
    """Neither the first nor the last has all of them."""
    y = labels[3] if k == 3 else grades
    order = np.argsort(y == np.unique(y)[1], kind="stable")
    how = {"ordered": LEVELS if k == "ordered" else False, "n_iter": 2, "burn_in": 8}
    ours = model(**how).fit(*frames(X[order], y[order], n=5))
    check_same(ours, model(**how).fit(X[order], y[order]))


def test_whole_numbers_that_are_nullable_are_ordered_and_keep_their_type(client, X, grades):
    y = pd.Series([LEVELS.index(label) for label in grades], dtype="Int64")
    ours = model(ordered=True, n_iter=2, burn_in=8).fit(arrays(X, grades)[0], dd.from_pandas(y, npartitions=4))
    check_same(ours, model(ordered=True, n_iter=2, burn_in=8).fit(X, y))
    assert ours.classes_.dtype == np.int64


@pytest.mark.parametrize("ordered", [pytest.param(False, marks=pytest.mark.slow), LEVELS])
def test_draws_are_those_without_a_fault(cluster, client, X, labels, grades, ordered, monkeypatch):
    """The question after the fault is one of information, which takes the likelihood and cut points with it."""
    y, how = grades if ordered else labels[3], {"n_iter": 2, "burn_in": 12, "ordered": ordered}
    with at_question(monkeypatch, 1, lambda shards: None) as asked:
        expected = bits(model(**how).fit(*arrays(X, y)))
    assert bits(model(**how).fit(X, y)) == expected
    number = asked.index(Segment.class_information) + 1
    with at_question(monkeypatch, number, lambda shards: kill(client, shards.holders[1].worker)):
        assert bits(model(**how).fit(*arrays(X, y))) == expected
    staff(cluster, client, 3)


@pytest.mark.parametrize("name", ["predict_proba", "predict", "decision_function", "predict_interval"])
@pytest.mark.parametrize("ordered", [False, LEVELS])
def test_predictions_stay_lazy_and_are_those_of_memory(fitted, X, name, ordered):
    one = fitted[bool(ordered)]
    want, lazy = getattr(one, name)(X), getattr(one, name)(da.from_array(X, chunks=(3_000, 5)))
    assert isinstance(lazy, da.Array)
    assert (lazy.shape, lazy.dtype) == (want.shape, want.dtype)
    np.testing.assert_array_equal(lazy.compute(scheduler="threads"), want)


@pytest.fixture(scope="module")
def fitted(X, labels, grades):
    how = {"n_iter": 4, "burn_in": 8}
    return {False: model(**how).fit(X, labels[3]), True: model(ordered=LEVELS, **how).fit(X, grades)}


@pytest.mark.parametrize(("ordered", "p"), [(False, 19), (LEVELS, 10)])
def test_the_forecast_of_memory_counts_the_coefficients_of_a_column(client, X, labels, grades, ordered, p, monkeypatch):
    asked = []
    monkeypatch.setattr(memory_forecast, "forecast", lambda n, p, *more: asked.append(p) or (2.0**60, 0.0))
    with pytest.raises(MemoryError):
        model(ordered=ordered).fit(*arrays(X, grades if ordered else labels[3]))
    assert {*asked} == {p}


def test_a_score_of_collections_is_that_of_memory(fitted, X, grades):
    assert fitted[True].score(*arrays(X, grades)) == fitted[True].score(X, grades)


BAD = {
    "gibbs of ordered": ({"ordered": LEVELS, "sampler": "gibbs"}, "not take an ordered probit .*Use sampler='hmc'"),
    "pxda": ({"sampler": "pxda"}, "does not take a multinomial probit .*Use sampler='hmc'"),
    "gibbs with weights": ({"sampler": "gibbs", "class_weight": "balanced"}, "does not take weights"),
    "a card": ({"device": "cuda"}, "runs on the CPU, and 'cuda' is asked for: set device='cpu'"),
    "no order": ({"ordered": True}, "y holds text, which has no order of its own: give the list"),
    "a class without a place": ({"ordered": ["poor", "good"]}, "y holds the class 'fair', which ordered="),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_not_there_says_what_to_do(client, X, grades, what):
    how, says = BAD[what]
    with pytest.raises(ValueError, match=says):
        model(**how).fit(*arrays(X, grades))


def test_an_order_that_dask_does_not_know_is_asked_for(client, X, grades):
    """As of categories in parquet files."""
    y = dd.from_pandas(pd.Series(categorical(grades)), npartitions=4).cat.as_unknown()
    few = model(ordered=True, n_iter=2, burn_in=8)
    with pytest.raises(ValueError, match=r"Dask does not know its categories, .*: give the list of the classes"):
        few.fit(arrays(X, grades)[0], y)
    few.set_params(ordered=LEVELS)
    check_same(clone(few).fit(arrays(X, grades)[0], y), few.fit(X, grades))


def test_labels_that_come_anew_each_time_are_refused(client, X, labels):
    y = labels[3]

    def more(block):
        import numpy as np
        from distributed import get_worker

        worker = get_worker()
        worker.counted = getattr(worker, "counted", 0) + 1
        return np.where(np.arange(len(block)) == 7, f"new {worker.counted}", block)

    lazy = da.from_array(y, chunks=3_000).map_blocks(more, dtype="<U8", meta=np.empty(0, "<U8"))
    with pytest.raises(ValueError, match="labels that were not there when the classes were counted"):
        model().fit(arrays(X, y)[0], lazy)
