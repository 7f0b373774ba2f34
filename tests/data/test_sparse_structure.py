"""Sparse matrices whose arrays name places that they do not have: refused before anything reads there."""

import sys

import numpy as np
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
N, P = 40, 6
Y = np.arange(N) % 2


def rows(kind="csr", index=np.int32):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.uniform(size=(N, P)) * (rng.random((N, P)) < 0.4))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X.asformat(kind, copy=True)


def index(value, *places):
    def spoil(X):
        X.indices[list(places)] = value

    return spoil


def start(value, place):
    def spoil(X):
        X.indptr[place] = value

    return spoil


def shorter(name):
    def spoil(X):
        setattr(X, name, getattr(X, name)[:-1])

    return spoil


def of_numbers(X):
    X.indices = X.indices.astype(float)


SPOILT = {
    "below zero": (index(-1, 3), r"X.indices\[3\] is -1, but X has places 0 to \d+ there"),
    "far beyond": (index(10**8, 0), r"X.indices\[0\] is 100000000, but"),
    "just beyond": (index(max(N, P), 5), r"X.indices\[5\] is 40, but"),
    "two equal ones": (index(10**7, 0, 1), r"X.indices\[0\] is 10000000, but"),
    "an end beyond the numbers": (start(10**6, -1), r"X.indptr ends with 1000000, but X stores \d+ numbers"),
    "a start beyond its end": (start(10**6, 3), "must begin with 0 and never descend"),
    "a start below zero": (start(-5, 0), "must begin with 0 and never descend"),
    "starts that descend": (start(0, 4), "must begin with 0 and never descend"),
    "a start too few": (shorter("indptr"), r"X.indptr has \d+ numbers, but X, of its shape and data, needs"),
    "an index too few": (shorter("indices"), r"X.indptr ends with \d+, but X stores \d+ numbers"),
    "a number too few": (shorter("data"), r"X.indptr ends with \d+, but X stores \d+ numbers"),
    "indices that are no integers": (of_numbers, "X.indices must be a one-dimensional array of integers"),
}


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(n_iter=5, burn_in=2, random_state=0, sampler="gibbs").fit(rows(), Y)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("how", SPOILT)
def test_places_that_x_does_not_have_are_refused_in_fit_and_in_predictions(how, kind, model):
    spoil, says = SPOILT[how]
    X = rows(kind)
    spoil(X)
    for use in (lambda: model.predict_proba(X), lambda: model.score(X, Y), lambda: HorseshoeSelector(model).fit(X, Y)):
        with pytest.raises(ValueError, match=says):
            use()
    with pytest.raises(ValueError, match=says):
        HorseshoeProbitClassifier(n_iter=5, burn_in=2).fit(X, Y)


@pytest.mark.parametrize("how", ["below zero", "far beyond"])
def test_indices_of_64_bits_are_looked_at_too(how, model):
    X = rows(index=np.int64)
    SPOILT[how][0](X)
    with pytest.raises(ValueError, match=SPOILT[how][1]):
        model.predict(X)


def test_other_formats_are_looked_at_before_scipy_converts_them(model):
    coo, lil, bsr, flat = rows("coo"), rows("lil"), rows().tobsr((4, 2)), rows().tobsr((4, 2))
    coo.col[2] = -7
    lil.rows[5] = [99] * len(lil.rows[5])
    bsr.indices[1] = 3
    flat.data = flat.data.ravel()
    for X, says in (
        (coo, r"X.col\[2\] is -7"),
        (lil, r"is 99, but"),
        (bsr, r"X.indices\[1\] is 3"),
        (flat, "X.data has the shape"),
    ):
        with pytest.raises(ValueError, match=says):
            model.predict(X)
    lil, dia = rows("lil"), sp.dia_array((np.ones((2, P)), [0, 1]), shape=(N, P))
    lil.data[0] = [1.0] * 10_000
    dia.offsets = np.array([0, 1, 2], np.int32)
    for X, says in ((lil, "lists of the same lengths"), (dia, "X.offsets has 3 numbers")):
        with pytest.raises(ValueError, match=says):
            model.predict(X)
    dok = rows("dok")
    dok._dict[0, 77] = 1.0
    with pytest.raises(ValueError, match="'dok' format whose parts do not fit together"):
        model.predict(dok)


def test_a_matrix_with_room_to_spare_is_read_as_before(model):
    """SciPy allows more numbers than the starts say."""
    X = rows()
    want = model.predict_proba(X)
    X.indices, X.data = np.append(X.indices, 99).astype(np.int32), np.append(X.data, np.nan)
    np.testing.assert_array_equal(model.predict_proba(X), want)


@pytest.mark.parametrize("how", ["below zero", "an end beyond the numbers"])
def test_a_matrix_on_a_gpu_is_looked_at_there(how, one_gpu):
    X = sys.modules["cupyx.scipy.sparse"].csr_matrix(rows())
    SPOILT[how][0](X)
    with pytest.raises(ValueError, match=SPOILT[how][1]):
        HorseshoeProbitClassifier(n_iter=5, burn_in=2).fit(X, Y)
