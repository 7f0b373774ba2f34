"""What tests of the GPU share, in the emulator or on a card: arrays there, small problems, and what the CPU draws."""

import importlib
import sys

import laws
import numpy as np
import scipy.sparse as sp
from scipy import stats
from scipy.special import log_ndtr

from skhorseshoe._backends._cpu import dense, passes
from skhorseshoe._data.rows import Rows
from skhorseshoe._fit import opened_rows

KEY = np.array([0x12345678, 0x9ABCDEF0], np.uint32)
NONE = np.empty(0)  # for no weights
SHORT = {"burn_in": 10, "n_iter": 5, "n_chains": 2}


def module(name):
    """A module of the back end, in the emulator or on the card that a fixture has set up."""
    return importlib.import_module(f"skhorseshoe._backends._gpu.{name}")


def truncated_normals(means, sweep, first, key, chain=0, positive=True):
    """The latents that the CPU's pass draws for rows with these means, from the first on."""
    kept = np.empty((len(means), chain + 1), means.dtype)
    y, bounds, ones = np.full(len(means), positive, np.uint8), np.array([0, len(means)]), np.ones((chain + 1, 1))
    dense.latent(means[:, None], y, ones, bounds, sweep, key, laws.ALONE, first, passes.Shift(terms=kept))
    return kept[:, chain]


def log_phi_and_ratio(t):
    """log Phi(t) and phi(t) / Phi(t) by SciPy."""
    return log_ndtr(t), np.exp(stats.norm.logpdf(t) - log_ndtr(t))


def on_card(X):
    """A CuPy array."""
    return sys.modules["cupy"].asarray(X)


def on_host(values):
    """A CuPy array, which it must be, as one of NumPy's."""
    cupy = sys.modules["cupy"]
    assert isinstance(values, cupy.ndarray)
    return cupy.asnumpy(values)


def left_on_host(X):
    """Rows that a fit would leave on the host because the GPU has no room for them."""
    return X.view(module("host_streaming").HostRows)


def assert_same_model(ours, theirs):
    """All attributes of two models, bit for bit and of the same types."""
    ours, theirs = vars(ours), vars(theirs)
    assert ours.keys() == theirs.keys()
    for name, value in theirs.items():
        np.testing.assert_equal(ours[name], value, err_msg=name)
        assert type(ours[name]) is type(value)


def assert_all_close(ours, theirs, **tolerance):
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def held_by_fits(monkeypatch):
    """A list to which each fit from now on adds the X that its back end holds."""
    held = []

    class Watched(opened_rows.Rows):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            held.append(self.held[0])

    monkeypatch.setattr(opened_rows, "Rows", Watched)
    return held


def chains_of(sampler, ops, X, y, *burn_in_and_saved):
    """Three chains before their first sweep."""
    return laws.chains_of(Rows(X, y.astype(np.uint8), True, ops, None), sampler, *(burn_in_and_saved or (0,)))


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
