"""Weights of rows and classes: a row of weight w counts as w rows."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from laws import all_draws
from sklearn.utils.class_weight import compute_sample_weight

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.labels import encode_labels
from skhorseshoe._data.rows import Rows
from skhorseshoe._data.weights import arrange, excess, is_wide, sums_by_class
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
    of_text = short_model(sampler="hmc", class_weight={"0": 2.0, "1": 0.5}).fit(X, np.where(y, "1", "0"), weight)
    assert np.array_equal(all_draws(of_text), all_draws(by_class))
    balanced = all_draws(short_model(sampler="hmc", class_weight="balanced").fit(X, y, sample_weight=weight))
    np.testing.assert_allclose(balanced[:, :3], same_total[:, :3])


def test_score_takes_weights_as_fit_does(data):
    X, y, weight = data
    model = short_model().fit(X, y)
    assert model.score(X, y, 2) == pytest.approx(model.score(X, y))
    for bad, words in ((weight - 1.5, "Negative values"), (np.ma.array(weight, mask=y), "masked array")):
        with pytest.raises(ValueError, match=words):
            model.score(X, y, bad)


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


SURVEY = np.random.default_rng(1).uniform(100, 5000, 2000)
HEAVY = {  # weights of 2000 rows with labels y, and the cure that the warning has; "" for no warning
    "survey": (lambda y: SURVEY, "Divide sample_weight by"),
    "survey, rounded": (lambda y: np.rint(SURVEY), "Divide sample_weight by"),
    "survey, of mean 1": (lambda y: SURVEY / SURVEY.mean(), ""),
    "survey, of Kish's sum": (lambda y: SURVEY * SURVEY.sum() / (SURVEY**2).sum(), ""),
    "of mean 1, very different": (lambda y: SURVEY**3 / (SURVEY**3).mean(), "Divide sample_weight by"),
    "ten each": (lambda y: np.full(2000, 10), "Divide sample_weight by 10;"),
    "counts": (lambda y: 1 + np.arange(2000) % 9, ""),
    "a bootstrap": (lambda y: np.random.default_rng(2).multinomial(2000, np.full(2000, 1 / 2000)), ""),
    "recent rows more": (lambda y: 0.998 ** np.arange(2000), ""),
    "balanced": (lambda y: compute_sample_weight("balanced", y), "Leave sample_weight out"),
    "rare class more": (lambda y: np.where(y, 50, 1), "Leave sample_weight out"),
    "others thrown away": (lambda y: np.where(y, 1, 30), ""),  # the events bound what is known
    "a share of the events": (lambda y: np.where(y, 0.1, 1.5), ""),
}


@pytest.mark.parametrize(("make", "cure"), HEAVY.values(), ids=HEAVY)
def test_weights_that_make_rows_more_than_they_are_are_told_with_their_cure(make, cure, said):
    X = np.random.default_rng(0).standard_normal((2000, 2))
    y = X[:, 0] + np.random.default_rng(3).standard_normal(2000) > 2.5
    weight, model = make(y), short_model(n_iter=4, burn_in=4)
    texts = said(model, X, y, "intervals are about", sample_weight=weight)
    assert [cure in text for text in texts] == [True] * bool(cure)
    assert ("too narrow" in model.summary().attrs["header"].replace("\n", " ")) == bool(cure)
    if "Divide" in cure:
        cured = weight / float(re.search(r"by ([\d.]+)", texts[0])[1].rstrip("."))
        assert not said(model, X, y, "intervals are about", sample_weight=cured)


@pytest.mark.parametrize("class_weight", ["balanced", {False: 1, True: 20}, {False: 9, True: 9}])
@pytest.mark.parametrize("weight", [None, 1 + np.arange(2000) % 9])
def test_weights_of_classes_are_told_too(class_weight, weight, said):
    X = np.random.default_rng(0).standard_normal((2000, 2))
    y = X[:, 0] + np.random.default_rng(3).standard_normal(2000) > 2.5
    model = short_model(n_iter=4, burn_in=4, class_weight=class_weight)
    (text,) = said(model, X, y, "Leave class_weight out, and where an event", sample_weight=weight)
    times = float(re.search(r"about ([\d.]+) times", text)[1])
    counts = np.ones(2000) if weight is None else weight
    of_rows = (
        counts
        * compute_sample_weight(class_weight, np.repeat(y, counts.astype(int)))[np.cumsum(counts).astype(int) - 1]
    )
    assert times == pytest.approx(np.sqrt(log_odds_variance(counts, y) / log_odds_variance(of_rows, y)), rel=0.05)


def log_odds_variance(counts, y):
    return 1 / counts[y].sum() + 1 / counts[~y].sum()


@pytest.mark.parametrize("rate", [0.5, 0.1])
def test_the_excess_is_that_of_the_variance_of_weighted_log_odds(rate):
    """Among data sets that might have been: their rows with their weights are drawn anew."""
    rng = np.random.default_rng(0)
    weight, y = rng.lognormal(2, 0.7, (3000, 1000)), rng.random((3000, 1000)) < rate
    ones, zeros = (weight * y).sum(axis=1), (weight * ~y).sum(axis=1)
    seen = np.log(ones / zeros).var()
    times = [excess(sums_by_class(y[i], weight[i]), np.ones(2)).times for i in range(100)]
    assert np.median(times) == pytest.approx(seen / np.median(1 / ones + 1 / zeros), rel=0.15)


def test_intervals_are_right_after_the_cure():
    """By squares of what the coefficients are off, in posterior standard deviations, over 15 data sets."""
    off = {}
    for i in range(15):
        rng = np.random.default_rng(i)
        X = rng.standard_normal((300, 3))
        y, weight = X @ [0.5, -0.3, 0.0] + rng.standard_normal(300) > 0, rng.lognormal(6, 1, 300)
        times = excess(sums_by_class(y, weight), np.ones(2)).times
        for name, given in (("as they are", weight), ("cured", weight / times)):
            model = short_model(unpenalized=[0, 1], n_iter=50, burn_in=100).fit(X, y, given)
            draws = model.coef_draws_[..., :2].reshape(-1, 2)
            off.setdefault(name, []).append(((draws.mean(axis=0) - [0.5, -0.3]) / draws.std(axis=0)) ** 2)
    assert np.mean(off["as they are"]) > 100
    assert 0.3 < np.mean(off["cured"]) < 1.8  # of 30 squares of standard normal numbers, whose mean has the sd 0.26


def of_weight_0(X, y):
    """60 rows, 35 of them of weight 0, which would each change something."""
    Z, far = X.copy(), np.arange(60) >= 25
    Z[far, 1], Z[~far, 2] = 1e7, 0.5  # far out; constant
    return Z


ZEROS = {
    "more columns than rows that count": (lambda X, y: X, {}, {}),
    "far out and constant": (of_weight_0, {"standardize": True}, {}),
    "sparse": (lambda X, y: sp.csr_array(np.where(abs(X) > 1, X, 0)), {}, {}),
    "one-sided": (lambda X, y: np.c_[X[:, :3], np.where(np.arange(60) < 25, y, 1 - y)], {}, {}),
    "an expected number": (lambda X, y: X[:, :4], {"expected_nonzero": 1, "class_weight": "balanced"}, {}),
    "a table, with groups": (
        lambda X, y: pd.DataFrame(X[:, :4], columns=list("abcd")), {"sampler": "gibbs"}, {"groups": np.arange(60) // 3},
    ),
    "offset": (lambda X, y: X[:, :4], {}, {"offset": np.arange(60) / 60}),
}  # fmt: skip


@pytest.mark.parametrize(("make", "params", "more"), ZEROS.values(), ids=ZEROS)
def test_rows_of_weight_0_do_not_count(make, params, more, said):
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((60, 40)), np.where(np.arange(60) < 25, 1 + (np.arange(60) % 5 == 0), 0)
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    rows, found, texts = make(X, y), [], []
    for n in (60, 25):
        model, of_rows = short_model(**params), {"sample_weight": weight[:n]}
        of_rows |= {name: values[:n] for name, values in more.items()}
        told = said(model, rows[:n], y[:n], **of_rows)
        texts.append([re.sub(r": (about )?(\d+ s|a second)", "", text) for text in told])
        found.append(model)
    assert np.array_equal(*map(all_draws, found))
    assert texts[0] == texts[1]
    headers = [model.summary().attrs["header"] for model in found]
    assert headers[0] == headers[1]
    assert ("chosen because columns outnumber rows" in headers[0].replace("\n", " ")) == (rows.shape[1] > 25)


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
    (
        {"sampler": "gibbs"}, 4,
        "sample_weight: 80 rows count as 320; intervals are about 2 times too narrow, unless these are counts of",
    ),
    ({"class_weight": {0: 1, 1: 9}}, None, "class_weight={0: 1, 1: 9}: 80 rows count as "),
])  # fmt: skip
def test_the_summary_says_that_rows_were_weighted(params, weight, says, data):
    X, y, _ = data
    model = short_model(**params).fit(X, y, sample_weight=weight and np.full(len(y), weight))
    header = model.summary().attrs["header"]
    assert f"Weights: {says}" in " ".join(header.split()) if says else "Weights" not in header


def test_rows_that_are_merged_are_rows_to_the_summary(data):
    X, y, _ = data
    model = short_model(sampler="hmc").fit(np.tile(X, (2, 1)), np.tile(y, 2), sample_weight=np.full(160, 0.5))
    assert "160 rows count as 80" in model.summary().attrs["header"]


def test_rows_are_merged_where_all_of_them_is_equal():
    X, y, offset = np.ones((3, 2)), np.zeros(3, np.uint8), np.array([[0.5, 1.0], [0.5, 1.0], [0.5, 2.0]])
    for n, weights in ((1, [3.0]), (2, [6.0]), (3, [6.0, 3.0])):
        _, _, weight, left = arrange(X[:n], y[:n], np.full(n, 3.0), "hmc", (offset[:n],))
        assert weight.tolist() == weights
        assert np.array_equal(left, offset[[0, 2]][: len(weights)])


@pytest.mark.parametrize("kind", [np.asarray, pd.Series, list])
@pytest.mark.parametrize("dtype", ["m8[s]", "M8[s]"])
def test_times_are_no_weights(data, kind, dtype):
    X, y, _ = data
    with pytest.raises(TypeError, match=r"sample_weight must be numbers.* dates or durations"):
        short_model().fit(X, y, sample_weight=kind(np.arange(1, 81).astype(dtype)))
