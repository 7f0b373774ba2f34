"""Sparse matrices whose arrays name places that they do not have: refused before anything reads there."""

import numpy as np
import pytest
import scipy.sparse as sp

from skhorseshoe import HorseshoeProbitClassifier, HorseshoeSelector

N, P = 40, 6
Y = np.arange(N) % 2


def rows(kind="csr", index=np.int32):
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.uniform(size=(N, P)) * (rng.random((N, P)) < 0.4))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X.asformat(kind, copy=True)


def change(name, place, value):
    def spoil(X):
        getattr(X, name)[place] = value

    return spoil


def shorter(name):
    return lambda X: setattr(X, name, getattr(X, name)[:-1])


SPOILT = {
    "an index below zero": (change("indices", 3, -1), r"X.indices\[3\] is -1, but X has places 0 to \d+ there"),
    "an index beyond": (change("indices", 5, max(N, P)), r"X.indices\[5\] is 40, but"),
    "two equal ones": (change("indices", slice(2), 10**7), r"X.indices\[0\] is 10000000, but"),
    "an end beyond the numbers": (change("indptr", -1, 10**6), r"X.indptr ends with 1000000, but X stores \d+ numbers"),
    "a start below zero": (change("indptr", 0, -5), "must begin with 0 and never descend"),
    "starts that descend": (change("indptr", 4, 0), "must begin with 0 and never descend"),
    "a start too few": (shorter("indptr"), r"X.indptr has \d+ numbers, but X, of its shape and data, needs"),
    "an index too few": (shorter("indices"), r"X.indptr ends with \d+, but X stores \d+ numbers"),
    "a number too few": (shorter("data"), r"X.indptr ends with \d+, but X stores \d+ numbers"),
    "numbers as objects": (
        lambda X: setattr(X, "data", X.data.astype(object)),
        "stored values have dtype object; numbers",
    ),
    "text": (
        lambda X: setattr(X, "data", X.data.astype(str)),
        "stored values have dtype <U32; numbers are needed: X.data =",
    ),
    "indices of floats": (lambda X: setattr(X, "indices", X.indices * 1.0), "X.indices must be .* of integers"),
}


@pytest.fixture(scope="module")
def model():
    return HorseshoeProbitClassifier(n_iter=5, burn_in=2, random_state=0, sampler="gibbs").fit(rows(), Y)


@pytest.mark.parametrize("wrong", ["order", "twice"])
def test_an_order_that_scipy_remembers_is_looked_at_again(wrong):
    """SciPy keeps its flags where indices change in place."""
    X = rows()
    assert X.has_canonical_format
    X.indices[:] = {"order": np.array([3, 0, 5, 4, 1, 2]), "twice": np.array([0, 1, 1, 2, 3, 3])}[wrong][X.indices]
    given, how = X.indices.copy(), {"n_iter": 20, "burn_in": 20, "random_state": 0, "sampler": "gibbs"}
    of_sparse, of_array = (HorseshoeProbitClassifier(**how).fit(each, Y).coef_draws_ for each in (X, X.toarray()))
    np.testing.assert_allclose(of_sparse, of_array, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(X.indices, given)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("how", SPOILT)
def test_places_that_x_does_not_have_are_refused(how, kind, model):
    spoil, says = SPOILT[how]
    X = rows(kind)
    spoil(X)
    unfitted = HorseshoeProbitClassifier(n_iter=5, burn_in=2)
    for use in (lambda: unfitted.fit(X, Y), lambda: model.score(X, Y), lambda: HorseshoeSelector(model).fit(X, Y)):
        with pytest.raises(ValueError, match=says):
            use()


def test_indices_of_64_bits_are_looked_at_too(model):
    X = rows(index=np.int64)
    X.indices[0] = 10**8
    with pytest.raises(ValueError, match=r"X.indices\[0\] is 100000000"):
        model.predict(X)


def other_formats():
    """Spoilt matrices, and what is said of them."""
    coo, lil, short, dok = rows("coo"), rows("lil"), rows("lil"), rows("dok")
    bsr, flat = rows().tobsr((4, 2)), rows().tobsr((4, 2))
    dia = sp.dia_array((np.ones((2, P)), [0, 1]), shape=(N, P))
    coo.col[2] = -7
    lil.rows[5] = [99] * len(lil.rows[5])
    short.data[0] = [1.0] * 10_000
    bsr.indices[1] = 3
    flat.data = flat.data.ravel()
    dia.offsets = np.array([0, 1, 2], np.int32)
    dok._dict[0, 77] = 1.0
    yield from ((coo, r"X.col\[2\] is -7"), (lil, "is 99, but"), (short, "lists of the same lengths"))
    yield from ((bsr, r"X.indices\[1\] is 3"), (flat, "X.data has the shape"), (dia, "X.offsets has 3 numbers"))
    yield dok, "'dok' format whose parts do not fit together"


@pytest.mark.parametrize(("X", "says"), list(other_formats()))
def test_other_formats_are_checked_before_scipy_converts_them(X, says, model):
    with pytest.raises(ValueError, match=says):
        model.predict(X)


def test_a_matrix_with_room_to_spare_is_read_as_before(model):
    """SciPy allows more numbers than the starts say."""
    X = rows()
    want = model.predict_proba(X)
    X.indices, X.data = np.append(X.indices, 99).astype(np.int32), np.append(X.data, np.nan)
    np.testing.assert_array_equal(model.predict_proba(X), want)
