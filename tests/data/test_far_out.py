"""Columns whose spread is that of a few values far out: found wherever the rows are, and named with a cure."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from scipy.sparse import csr_array, issparse

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._data.column_checks import far_out, sample, step_of
from skhorseshoe._data.row_blocks import Segment

N = 5000


def columns(rng):
    """By name; and those to be found."""
    usual = {
        "normal": rng.standard_normal(N),
        "skew": np.exp(2 * rng.standard_normal(N)),
        "heavy": rng.standard_t(3, N),
        "score": rng.integers(0, 5, N),
        "rare level": np.arange(N) == 17,
        "many zeros": np.where(rng.random(N) < 0.97, 0.0, np.exp(rng.standard_normal(N))),
        "constant": np.ones(N),
        "zeros": np.zeros(N),
        "far from zero": 1e9 + rng.standard_normal(N),
    }
    typed = {"typing errors": rng.standard_normal(N), "one": rng.random(N), "code": rng.integers(20, 90, N)}
    typed["typing errors"][[5, 80, 4000]] = 1e6
    typed["one"][3] = -1e5
    typed["code"] = np.where(np.arange(N) % 400 == 7, 999_999, typed["code"])
    return pd.DataFrame({**usual, **typed}).astype(float), set(typed)


def found_in(rows, X):
    return {X.columns[j] for j in far_out(rows, X.std().to_numpy())[0]}


def test_columns_of_all_kinds(seed):
    X, wanted = columns(np.random.default_rng(seed))
    assert found_in(sample(X.to_numpy(), 0, step_of(*X.shape)), X) == wanted
    assert found_in(X.to_numpy(), X) == wanted


@pytest.mark.parametrize("n", [20, 100])
def test_few_rows(n, seed):
    X = np.random.default_rng(seed).standard_normal((n, 50))
    X[3, 10] = 1e4
    which, usual = far_out(sample(X, 0, step_of(*X.shape)), X.std(axis=0))
    assert which.tolist() == [10]
    assert 1 < usual[0] < 6


def of_host(rows):
    return rows.toarray() if issparse(rows) else rows


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_the_sample_is_the_same_in_pieces(kind):
    X = np.column_stack([np.arange(1000.0), np.random.default_rng(0).standard_normal((1000, 3))])
    whole = sample(X, 0, 7)
    assert (whole[:, 0] // 7 == np.arange(len(whole))).all()  # one of each seven
    parts = [Segment(kind(X[a:b]), None, None, None, a) for a, b in ((0, 3), (3, 4), (4, 600), (600, 1000))]
    pieces = [of_host(part.sample(cpu, None, 7)[0]) for part in parts]
    np.testing.assert_array_equal(np.concatenate(pieces), whole)
    np.testing.assert_array_equal(of_host(sample(kind(X), 0, 1)), X)


def test_the_sample_of_a_gpu(one_gpu):
    X = np.random.default_rng(0).standard_normal((50, 3))
    np.testing.assert_array_equal(sample(one_gpu.to_device(X), 0, 4), sample(X, 0, 4))


@pytest.mark.parametrize("period", [5, 24, 64])
def test_the_sample_follows_no_period_of_the_rows(period):
    """As of hours in a day: a column that is flat in one of them has other values in the others."""
    t = np.arange(1000 * period)
    X = np.column_stack([np.where(t % period == 0, 0.0, 500.0), t])
    (rows,) = (sample(X, 0, step_of(*X.shape)),)
    shares = np.bincount((rows[:, 1] % period).astype(int), minlength=period) / len(rows)
    assert abs(shares - 1 / period).max() < 0.05
    assert not len(far_out(rows, X.std(axis=0))[0])


def test_many_sparse_columns_are_never_dense_together():
    X = scipy.sparse.random(80, 300_000, density=1e-5, format="csr", random_state=0)
    tracemalloc.start()
    try:
        found = far_out(sample(X, 0, step_of(*X.shape)), np.ones(300_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not len(found[0])
    assert peak < 64 * 300_000 * 8 / 2


def test_the_sample_is_small():
    assert step_of(10**9, 100) == 10**6
    assert step_of(999, 10) == 1
    assert 10_000 // step_of(10_000, 10**6) in range(60, 65)


@pytest.mark.parametrize("standardize", [True, False])
def test_they_are_named_once_with_a_cure(standardize, seed):
    """And scaling, which is none, is not what is advised."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.standard_normal((400, 3)), columns=["a", "b", "c"])
    y = X["a"] + rng.standard_normal(400) > 0
    X.loc[[7, 200], "b"] = 1e6
    model = HorseshoeProbitClassifier(n_iter=5, burn_in=5, standardize=standardize)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, y)
    far = [str(w.message) for w in caught if "far out" in str(w.message)]
    assert len(far) == 1
    assert far[0].startswith("Column 'b' has values far out: the standard deviation of 'b' is 7.1e+04, but nine in")
    assert "Clip them" in far[0]
    assert not any("different scales" in str(w.message) for w in caught)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(X.clip(-5, 5), y)
    assert not any("far out" in str(w.message) for w in caught)


def test_the_column_that_stands_out_most_is_told_with_its_numbers(seed):
    """Not the one whose standard deviation is the largest."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((400, 3)) * [1, 1, 1e6]
    y = X[:, 0] + rng.standard_normal(400) > 0
    X[[7, 200], 1], X[[7, 200], 2] = 1e4, 2e9
    low, high = np.quantile(X[:, 1], [0.05, 0.95], method="nearest")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        HorseshoeProbitClassifier(n_iter=5, burn_in=5).fit(X, y)
    (said,) = [str(w.message) for w in caught if "far out" in str(w.message)]
    assert said.startswith("Columns 'x1', 'x2' have values far out: the standard deviation of 'x1' is 7.1e+02, but")
    assert f"lie within {high - low:.2g}." in said
