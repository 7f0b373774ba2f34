"""Sparse rows: the same answers as those of the same rows in full, from the stored numbers alone."""

import numpy as np
import pytest
import scipy.sparse as sp
from laws import ALONE, KEY, peak_memory

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse
from skhorseshoe._data.row_blocks import Segment
from skhorseshoe._data.rows import Rows
from skhorseshoe.selection import HorseshoeSelector


def made(n, p, seed, density=0.1, dtype=np.float64):
    """Sparse rows, with a column of ones and one that is empty; labels that two columns explain."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)) + 1, 0.0)
    X[:, 2], X[:, 3] = 1.0, 0.0
    y = X[:, 0] - X[:, 1] + rng.standard_normal(n) > 0
    return sp.csr_array(X.astype(dtype)), y.astype(np.uint8)


def model(**parameters):
    return HorseshoeProbitClassifier(**{"n_iter": 20, "burn_in": 20, "random_state": 0, **parameters})


@pytest.mark.parametrize(("weighted", "standardize"), [(False, False), (True, True)])
@pytest.mark.parametrize(("dtype", "index"), [(np.float64, np.int32), (np.float32, np.int64)])
def test_every_question_has_the_answer_of_the_rows_in_full(dtype, index, standardize, weighted, seed):
    X, y = made(9000, 40, seed, dtype=dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    rng = np.random.default_rng(seed)
    weight = rng.random(9000) + 0.5 if weighted else None
    unpenalized = np.arange(40) == 5
    full, ours = (
        Rows(rows, y, True, ops, ALONE, weight=weight, unpenalized=unpenalized, standardize=standardize)
        for rows, ops in ((X.toarray(), cpu), (X, sparse))
    )
    beta = 0.3 * rng.standard_normal((5, 41))
    np.testing.assert_allclose(ours.columns.mean, full.columns.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours.columns.sd, full.columns.sd, rtol=1e-12)
    np.testing.assert_allclose(ours.gram(), full.gram(), rtol=1e-11, atol=1e-9)
    spare = [np.full((41, 41), 7.0)]
    # In float32 the information is that of coefficients which are float64 in both.
    np.testing.assert_allclose(ours.information(beta, spare), full.information(beta), rtol=1e-9, atol=1e-7)
    tolerance = {"rtol": 1e-10, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-4, "atol": 1e-2}
    fused = ours.score(beta)
    for one, other in zip(fused, full.score(beta), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)
    ours.fuses_scores = False
    for one, other in zip(fused, ours.score(beta), strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(ours.latent(beta, 3, KEY), full.latent(beta, 3, KEY), strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def test_a_centred_column_far_from_zero_keeps_its_digits(seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([1e6 + rng.standard_normal(500), rng.random(500) < 0.1])
    centre, scale = X.mean(axis=0), X.std(axis=0)
    H = sparse.gram(sp.csr_array(X), np.empty(0), centre, scale, True, ALONE)
    np.testing.assert_allclose(H, cpu.gram(X, np.empty(0), centre, scale, True, ALONE), rtol=1e-9, atol=1e-6)


@pytest.mark.parametrize("sampler", ["gibbs", "pxda", "hmc"])
def test_the_first_draws_are_those_of_the_rows_in_full(sampler, seed):
    X, y = made(4000, 30, seed)
    clf = model(sampler=sampler, n_iter=5, burn_in=3, standardize=True, unpenalized=[0])
    weight = np.random.default_rng(seed).integers(0, 3, len(y))
    ours, full = (clf.fit(rows, y, sample_weight=weight).coef_draws_ for rows in (X, X.toarray()))
    np.testing.assert_allclose(ours, full, rtol=1e-6, atol=1e-8)


def test_draws_have_the_same_bits_for_any_number_of_threads(seed):
    X, y = made(20_000, 30, seed)
    one, three = (model(n_iter=4, burn_in=10, n_jobs=n, sampler="hmc").fit(X, y) for n in (1, 3))
    np.testing.assert_array_equal(one.coef_draws_, three.coef_draws_)
    np.testing.assert_array_equal(one.predict_proba(X), three.predict_proba(X))


@pytest.mark.parametrize("sampler", ["hmc", pytest.param("pxda", marks=pytest.mark.slow)])
def test_nothing_of_the_size_of_the_rows_in_full_is_made(sampler, seed):
    n, p = 40_000, 300
    X = sp.random(n, p, density=0.005, format="csr", random_state=seed)
    y = np.arange(n) % 2
    clf = model(sampler=sampler, n_iter=2, burn_in=3, standardize=True)
    clf.fit(X[:500], y[:500]).predict_proba(X[:500])
    assert peak_memory(lambda: clf.fit(X, y).predict_proba(X)) < 8 * n * p / 6


def test_every_format_and_type_is_read(seed):
    X, y = made(200, 6, seed)
    X.data = np.rint(4 * X.data)
    draws = model().fit(X, y).coef_draws_
    for other in (X.tocsc(), X.tocoo(), X.tolil(), sp.csr_matrix(X), X.astype(np.int64), sp.dok_array(X)):
        np.testing.assert_array_equal(model().fit(other, y).coef_draws_, draws)


def test_numbers_stored_twice_or_out_of_order_are_added_up(seed):
    X, y = made(200, 6, seed)
    backwards = np.concatenate([np.arange(b - 1, a - 1, -1) for a, b in zip(X.indptr, X.indptr[1:], strict=False)])
    data, indices = np.repeat(X.data[backwards] / 2, 2), np.repeat(X.indices[backwards], 2)
    twice = sp.csr_array((data, indices, 2 * X.indptr), shape=X.shape)
    before = twice.data.copy()
    clf = model().fit(twice, y)
    np.testing.assert_array_equal(clf.coef_draws_, model().fit(X, y).coef_draws_)
    np.testing.assert_array_equal(clf.predict_proba(twice), clf.predict_proba(X))
    np.testing.assert_array_equal(twice.data, before)


def test_predictions_are_those_of_the_rows_in_full(seed):
    X, y = made(1200, 12, seed)
    clf = model().fit(X, y)
    for method in ("predict_proba", "predict_proba_samples", "predict_interval", "decision_function", "predict"):
        np.testing.assert_allclose(*(getattr(clf, method)(rows) for rows in (X, X.toarray())), rtol=1e-10, atol=1e-13)
    assert clf.score(X, y) == clf.score(X.toarray(), y)
    for rows in (slice(0, 1), slice(500, 530), slice(700, 1200)):  # whatever rows come with them
        np.testing.assert_array_equal(clf.predict_proba(X[rows]), clf.predict_proba(X)[rows])


def test_selection_is_that_of_the_rows_in_full(seed):
    X, y = made(1500, 15, seed, density=0.3)
    fitted = [(model(n_iter=200, burn_in=100).fit(rows, y), rows) for rows in (X, X.toarray())]
    for rule in ("dss", "interval", "shrinkage"):
        selectors = [HorseshoeSelector(clf, rule=rule, prefit=True).fit(rows, y) for clf, rows in fitted]
        np.testing.assert_array_equal(*(selector.support_ for selector in selectors))
        assert sp.issparse(selectors[0].transform(X))


def test_a_checksum_is_of_the_numbers_and_of_their_places():
    data, columns, starts = np.arange(1.0, 7.0), [0, 1, 2, 0, 1, 2], [0, 1, 3, 4, 6]
    stored = [(data, columns, starts), (-data, columns, starts)]
    stored += [(data, [0, 0, 2, 0, 1, 2], starts), (data, columns, [0, 2, 3, 4, 6])]
    y, empty = np.zeros(4, np.uint8), np.empty(0)
    sums = {Segment(sp.csr_array(arrays), y, empty, None, 0).checksum(None, None)[0] for arrays in stored}
    assert len(sums) == 4


@pytest.mark.parametrize(("row", "column", "value"), [(0, 3, np.nan), (2, 0, np.inf), (5, 3, np.nan)])
def test_a_number_that_is_none_is_told_by_its_place(row, column, value):
    """The last row has no other one."""
    X = np.eye(6, 4)
    X[row, column] = value
    with pytest.raises(ValueError, match=rf"the first is in row {row} of column {column}\."):
        model().fit(sp.csr_array(X), np.arange(6) % 2)
