"""What tests of the GPU share: CuPy's arrays and its sparse matrices, which are in the emulator or on a card, and what
the CPU draws."""

import sys

import numba
import numpy as np
import scipy.sparse as sp

from skhorseshoe._backends import LATENT
from skhorseshoe._backends._cpu.philox import stream
from skhorseshoe._backends._cpu.truncated_normal import truncated_normal
from skhorseshoe._fit import fit

SHORT = {"burn_in": 10, "n_iter": 5, "n_chains": 2}


@numba.njit
def truncated_normals(means, sweep, first, k0, k1):
    """The CPU's draws for the rows from the first on, of the first chain; of their own code, as kernels call it."""
    out = np.empty_like(means)
    for i in range(len(means)):
        row, st = numba.uint32(first + i), stream(0, LATENT, first + i)
        out[i] = truncated_normal(means[i], means, 0, numba.uint32(sweep), row, st, k0, k1)
    return out


def on_host(values):
    """A CuPy array, which it must be, as one of NumPy's."""
    cupy = sys.modules["cupy"]
    assert isinstance(values, cupy.ndarray)
    return cupy.asnumpy(values)


def assert_same_model(ours, theirs):
    """All attributes of two models, bit for bit and of the same types."""
    ours, theirs = vars(ours), vars(theirs)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_array_equal(ours[name], value, err_msg=name)
        assert type(ours[name]) is type(value)


def held_by_fits(monkeypatch):
    """A list to which each fit from now on adds the X that its back end holds."""
    held = []

    class Rows(fit.Rows):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            held.append(self.held[0])

    monkeypatch.setattr(fit, "Rows", Rows)
    return held


def check_answer(model, answer, X, on_card):
    """What a model answers is on the host for X there, on the card for ``on_card(X)``, and that of the CPU."""
    ask = getattr(model, answer)
    ours, beside_x = ask(X), on_host(ask(on_card(X)))
    try:
        theirs = getattr(model.set_params(device="cpu"), answer)(X)
    finally:
        model.set_params(device="cuda")
    assert type(ours) is np.ndarray
    np.testing.assert_array_equal(ours, beside_x)
    assert ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-13)


def sparse_rows(n, p, density=0.2, dtype="float64", index="int32", whole=None):
    """Rows, some of them empty; the last column is empty; zeros are stored too.

    The first column is stored in all other rows, or has this number in all.
    """
    rng = np.random.default_rng(2)
    X = np.where(rng.random((n, p)) < density, rng.standard_normal((n, p)) + 1, 0.0)
    X[:, 0], X[:, max(1, p - 1) :] = 1.0 + rng.random(n), 0.0
    X[::7] = 0.0
    X[:, 0] = X[:, 0] if whole is None else whole
    X = sp.csr_array(X.astype(dtype))
    X.data[(rng.random(X.nnz) < 0.1) & (X.indices > 0)] = 0.0
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    y = rng.integers(0, 2, n).astype(np.uint8)
    return X, y


def check_any_batch(model, X):
    """A row has the same answer whatever rows come with it; the answers (n, 2)."""
    proba = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X[40:42]), proba[40:42])
    return proba
