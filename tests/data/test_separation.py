"""Planes that separate the classes are found, wherever the rows are, and only where there are any."""

import numpy as np
import pytest
from laws import peak_memory
from scipy.optimize import linprog
from scipy.sparse import csr_array, csr_matrix
from sklearn.exceptions import ConvergenceWarning

from skhorseshoe import HorseshoeProbitClassifier
from skhorseshoe._backends._cpu import dense as cpu
from skhorseshoe._backends._cpu import sparse as sparse_cpu
from skhorseshoe._data import separation as module
from skhorseshoe._data.rows import Rows
from skhorseshoe._data.separation import COMPLETE, NONE, QUASI, separates_within, separation
from skhorseshoe._utils.threads import Threads


def of(X, y, fit_intercept=True):
    dense = X.toarray() if hasattr(X, "toarray") else X
    return separation(X, np.asarray(y, np.uint8), fit_intercept, dense.mean(axis=0), dense.std(axis=0))


def by_one_programme(X, y, fit_intercept):
    """The same by a programme with a variable for each side of a row: as many as possible at a distance from the plane.

    Of more than two classes, in order, a row between two planes has a side to each."""
    K, n = y.max() + 1, len(X)
    rows = []
    for x, k in zip(np.column_stack([X, np.full(n, float(fit_intercept))]), y, strict=True):
        for plane, sign in ((k - 1, 1.0), (k, -1.0)):
            if 0 <= plane < K - 1:
                rows.append(sign * np.append(x, np.arange(1, K - 1) == plane))
    m, q = np.shape(rows)
    bounds = [(None, None)] * q + [(0, 1)] * m
    limits = np.hstack([-np.array(rows), np.eye(m)])
    found = linprog(np.append(np.zeros(q), -np.ones(m)), A_ub=limits, b_ub=np.zeros(m), bounds=bounds, method="highs")
    apart = round(-found.fun)
    return NONE if not apart else COMPLETE if apart == m else QUASI


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_answer_is_that_of_a_programme_of_all_rows(fit_intercept, seed):
    rng = np.random.default_rng(seed)
    seen = set()
    for noise in [0.0, 0.02, 1.0] * 10:
        X = rng.integers(-3, 4, (60, 3)).astype(float)
        y = X @ [1.0, -1.0, 0.5] + 0.25 * fit_intercept + noise * rng.standard_normal(60) > 0
        if y.all() or not y.any():
            continue
        want = by_one_programme(X, y.astype(int), fit_intercept)
        assert of(X, y, fit_intercept) == of(csr_matrix(X), y, fit_intercept) == want
        seen.add(want)
    assert len(seen) > 1


@pytest.mark.parametrize("n", [50, 5000])
def test_one_row_on_the_other_side_of_many_is_found(n, seed):
    """Also where the first programme has not seen it, and whatever the scales of the columns."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1e-3, 1.0, 1e6] + [0.0, 50.0, 0.0]
    score = X / X.std(axis=0) @ [1.0, 2.0, -1.0]
    y = score > np.median(score)
    assert of(X, y) == of(X.astype(np.float32), y) == COMPLETE
    y[score.argmax()] = False
    assert of(X, y) == NONE


def test_independent_rows_are_separated_for_any_classes(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 400))
    assert of(X, rng.random(40) < 0.3) == COMPLETE
    X[1] = X[0]
    assert of(X, np.arange(40) == 0) == QUASI


def test_wide_rows_are_judged_in_less_memory_than_they_have(seed):
    X = np.random.default_rng(seed).standard_normal((40, 100_000))
    mean, sd = X.mean(axis=0), X.std(axis=0)
    assert peak_memory(lambda: separation(X, np.arange(40) % 2, True, mean, sd)) < X.nbytes


def test_no_column_separates_nothing():
    assert of(np.ones((10, 1)), np.arange(10) % 2) == NONE


def test_what_would_take_too_long_is_not_known(monkeypatch, seed):
    monkeypatch.setattr(module, "_PROGRAMME_NUMBERS", 100)
    rng = np.random.default_rng(seed)
    assert of(rng.standard_normal((200, 3)), rng.random(200) < 0.5) is None


def by_all_pairs(X, y, group):
    """Whether a plane divides the classes within groups, by a programme with all pairs of rows."""
    classes = [(X[(group == g) & y], X[(group == g) & ~y]) for g in np.unique(group)]
    pairs = np.vstack([(events[:, None] - others).reshape(-1, X.shape[1]) for events, others in classes])
    cost, margins = np.append(np.zeros(X.shape[1]), -1.0), np.ones((len(pairs), 1))
    found = linprog(cost, A_ub=np.hstack([-pairs, margins]), b_ub=np.zeros(len(pairs)), bounds=(-1, 1), method="highs")
    return -found.fun > 1e-8


def test_separation_within_groups_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    seen = set()
    for noise in [0.0, 0.1, 1.0] * 10:
        group = rng.permutation(np.repeat(np.arange(150), 5))
        Z = rng.standard_normal((750, 3))
        y = Z @ [1.0, 0.5, 0.0] + 2 * rng.standard_normal(150)[group] + noise * rng.standard_normal(750) > 0
        X, want = Z * [1e-3, 1.0, 1e4] + [5.0, 0.0, 1e4], by_all_pairs(Z, y, group)
        for rows in (X, csr_matrix(X)):
            assert separates_within(rows, y.astype(np.uint8), group, X.mean(axis=0), X.std(axis=0)) == want
        seen.add(want)
    assert len(seen) == 2
    y = (np.arange(150) < 70)[group].astype(np.uint8)  # no group has both classes
    assert not separates_within(X, y, group, X.mean(axis=0), X.std(axis=0))


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ordered_classes_are_separated_by_parallel_planes_in_their_order(fit_intercept, seed):
    rng = np.random.default_rng(seed)
    seen = set()
    for i in range(30):
        X = rng.integers(-3, 4, (60, 3)).astype(float)
        noise = [0.0, 0.02, 1.0][i % 3]
        y = np.digitize(X @ [1.0, -1.0, 0.5] + noise * rng.standard_normal(60), [0.0, 1.2, 3.1][: 2 + i % 2])
        if i % 5 == 0:
            X[:, 2] = y == y.max()  # which separates the highest class alone
        elif i % 5 == 1:
            X[:, 2] = y == 1  # of a class in the middle, whose likelihood this bounds on both sides
        want = by_one_programme(X, y, fit_intercept)
        assert of(X, y, fit_intercept) == of(csr_matrix(X), y, fit_intercept) == want
        seen.add(want)
    assert len(seen) == 3


@pytest.mark.parametrize("given", [{}, {"offset": np.zeros(40)}], ids=["plain", "offset"])
@pytest.mark.parametrize("kind", ["array", "sparse"])
def test_rows_that_tell_nothing_far_out_have_a_diagonal_all_the_same(kind, given):
    """The information of each row is 0 in floats there: columns weighted by it would have no mean."""
    X = np.random.default_rng(0).integers(0, 2, (40, 3)).astype(float)
    X[:2, 0] = 0, 1
    ops, held = (cpu, X) if kind == "array" else (sparse_cpu, csr_array(X))
    rows = Rows(held, X[:, 0] > 0, True, ops, Threads(1), **given)
    diagonal, centre, size = rows.information_diagonal(np.array([[2000.0, 0, 0, -1000.0]]))
    assert (diagonal >= 0).all()
    assert diagonal.max() < 1e-100
    assert 0 < size < 1e-100
    assert np.isfinite(centre).all()


@pytest.mark.filterwarnings("ignore:Column 'x0'")
def test_separated_classes_leave_shrinkage_a_number():
    """Of a table whose chains have a diagonal mass matrix, and go far out."""
    rng = np.random.default_rng(0)
    X = (rng.random((400, 100)) < 0.08).astype(float)
    X[:, 0] = rng.random(400) < 0.4
    clf = HorseshoeProbitClassifier(n_iter=5, burn_in=100, n_jobs=1, random_state=0)
    with pytest.warns(ConvergenceWarning, match="separate"):
        clf.fit(csr_array(X), X[:, 0] > 0)
    assert "tau_step" not in clf.tuning_
    assert ((clf.shrinkage_ >= 0) & (clf.shrinkage_ <= 1)).all()
