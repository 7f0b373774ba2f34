"""Weights of rows and classes: a row of weight w counts as w rows."""

import numpy as np
import pandas as pd
import pytest
from laws import all_draws

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.labels import encode_labels
from skhorseshoe._data.rows import Rows
from skhorseshoe._data.weights import is_wide
from skhorseshoe._utils.threads import Threads


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 3))
    y = X @ [1.0, -0.5, 0] + 0.3 + rng.standard_normal(80) > 0
    return X, y, rng.integers(0, 4, 80)


def short_model(**params):
    return HorseshoeProbitClassifier(**{"n_iter": 20, "burn_in": 20, "random_state": 0, **params})


@pytest.mark.parametrize("sampler", ["hmc", "gibbs", "pxda"])
def test_whole_weights_are_repeated_rows_to_the_bit(data, sampler):
    X, y, weight = data
    model = short_model(sampler=sampler)
    weighted = all_draws(model.fit(X, y, sample_weight=weight))
    assert np.array_equal(weighted, all_draws(model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))))


def test_the_log_likelihood_of_the_passes_is_weighted(data):
    X, y, _ = data
    X = np.column_stack([X, np.ones(len(X))])  # in place of an intercept, beside which a row alone is constant
    weight = np.random.default_rng(1).uniform(0.1, 3, len(X))
    coef = np.random.default_rng(2).standard_normal((2, 4))
    everything = Rows(X, y.astype(np.uint8), False, cpu, Threads(1), weight=weight)
    loglik, score = everything.score(coef)
    one_by_one = [Rows(X[[i]], y[[i]].astype(np.uint8), False, cpu, Threads(1)) for i in range(len(X))]
    np.testing.assert_allclose(loglik, sum(w * r.score(coef)[0] for w, r in zip(weight, one_by_one, strict=True)))
    np.testing.assert_allclose(score, sum(w * r.score(coef)[1] for w, r in zip(weight, one_by_one, strict=True)))
    for ask in (lambda r: r.gram(), lambda r: r.information(coef)):
        want = sum(w * ask(r) for w, r in zip(weight, one_by_one, strict=True))
        np.testing.assert_allclose(ask(everything), want, rtol=1e-10)
    assert everything.size() == pytest.approx(weight.sum())
    assert everything.share() == pytest.approx(weight[y].sum() / weight.sum())


def test_rows_count_as_often_as_they_weigh_beside_the_columns():
    X = np.zeros((20, 60))
    assert is_wide(X, None)
    assert is_wide(X, np.full(20, 2.0))
    assert not is_wide(X, np.full(20, 10.0))


def test_the_order_of_rows_does_not_matter(data):
    X, y, _ = data
    order = np.random.default_rng(3).permutation(len(X))
    model = short_model()
    assert np.array_equal(all_draws(model.fit(X, y)), all_draws(model.fit(X[order], y[order])))


def test_class_weights_multiply_those_of_the_rows(data):
    X, y, weight = data
    by_row = all_draws(short_model(sampler="hmc").fit(X, y, sample_weight=weight * np.where(y, 0.5, 2.0)))
    by_class = short_model(sampler="hmc", class_weight={False: 2.0, True: 0.5}).fit(X, y, sample_weight=weight)
    assert np.array_equal(all_draws(by_class), by_row)
    factor = np.where(y, weight.sum() / weight[y].sum() / 2, weight.sum() / weight[~y].sum() / 2)
    same_total = all_draws(short_model(sampler="hmc").fit(X, y, sample_weight=weight * factor))
    balanced = all_draws(short_model(sampler="hmc", class_weight="balanced").fit(X, y, sample_weight=weight))
    np.testing.assert_allclose(balanced[:, :3], same_total[:, :3])


def test_weights_that_leave_no_row_are_told():
    """Where scikit-learn does not tell it, as before 1.8."""
    with pytest.raises(ValueError, match="y has no rows without"):
        encode_labels(np.empty(0, int), " without the rows of weight 0")


@pytest.mark.parametrize("sampler", ["gibbs", "pxda"])
def test_weights_that_make_too_many_rows_are_refused(sampler, data):
    X, y, _ = data
    with pytest.raises(MemoryError, match=r"copies .* of X, but only .* are available. Use sampler='hmc'"):
        short_model(sampler=sampler).fit(X, y, sample_weight=np.full(len(y), 1e12))


@pytest.mark.parametrize(("n", "make", "told"), [
    (300, lambda y: np.full(300, 1 / 300), True),  # as AdaBoost passes them
    (300, lambda y: np.where(y, 3, 1) / np.where(y, 3, 1).sum(), True),
    (3000, lambda y: np.where(y, 0.001, 0.05), True),  # of the rarer class there is less than a row
    (300, lambda y: np.full(300, 1 / 3), False),
    (3000, lambda y: np.full(3000, 1 / 20), False),  # twenty rows of each of 150 patients
    (20, lambda y: np.full(20, 0.5), False),
    (300, lambda y: np.full(300, 1e3), False),
])  # fmt: skip
def test_weights_that_leave_few_rows_are_told_with_their_cure(n, make, told, said):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 3))
    y = X[:, 0] + rng.standard_normal(n) > (0 if n < 3000 else 2.5)
    weight, model = make(y), short_model()
    texts = said(model, X, y, f"sample_weight the {n} rows count as {weight.sum():.3g}", sample_weight=weight)
    assert len(texts) == told
    if told:
        cured = "w * len(w) / w.sum()"
        assert cured in texts[0]
        assert not said(model, X, y, "rows count as", sample_weight=eval(cured, {"w": weight, "len": len}))


@pytest.mark.parametrize(("sampler", "times", "used"), [
    ("auto", 2, "pxda"), ("auto", 2.5, "hmc"), ("auto", 50, "hmc"), ("pxda", 50, "pxda"),
])  # fmt: skip
def test_auto_repeats_no_row_many_times(sampler, times, used, data, said):
    """With a short burn-in it takes a sampler that needs none, unless that would have many times the rows."""
    X, y, _ = data
    model = short_model(sampler=sampler, n_iter=4, burn_in=0)
    texts = said(model, X, y, "repeats each row as often", sample_weight=np.full(len(y), times))
    assert model.sampler_ == used
    assert ["80 rows become 4000. sampler='hmc'" in text for text in texts] == [True] * (sampler == "pxda")


@pytest.mark.parametrize(("params", "weight", "says"), [
    ({}, None, None),
    ({}, 0.5, "sample_weight: 80 rows count as 40"),
    ({"class_weight": "balanced"}, None, "class_weight='balanced': 80 rows count as 80"),
    ({"sampler": "gibbs"}, 3, "sample_weight: 80 rows count as 240"),
])  # fmt: skip
def test_the_summary_says_that_rows_were_weighted(params, weight, says, data):
    X, y, _ = data
    model = short_model(**params).fit(X, y, sample_weight=weight and np.full(len(y), weight))
    header = model.summary().attrs["header"]
    assert f"Weights:     {says}\n" in header if says else "Weights" not in header


def test_rows_that_are_merged_are_rows_to_the_summary(data):
    X, y, _ = data
    model = short_model(sampler="hmc").fit(np.tile(X, (2, 1)), np.tile(y, 2), sample_weight=np.full(160, 0.5))
    assert "160 rows count as 80" in model.summary().attrs["header"]


@pytest.mark.parametrize("kind", [np.asarray, pd.Series, list])
@pytest.mark.parametrize("dtype", ["m8[s]", "M8[s]"])
def test_times_are_no_weights(data, kind, dtype):
    X, y, _ = data
    with pytest.raises(TypeError, match=r"sample_weight must be numbers.* dates or durations"):
        short_model().fit(X, y, sample_weight=kind(np.arange(1, 81).astype(dtype)))
