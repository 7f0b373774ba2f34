"""CuPy arrays that come from outside, and those that go back."""

import cupy as cp

from ..sparse_structure import check
from .csr import Csr
from .cuda import TYPES

_CHECKED = 2**24  # elements looked at together


def checked(X):
    """X (n, p), C-contiguous or ``Csr``, of a type that the kernels read, on its own GPU; not copied if it is so.

    What ``sklearn.utils.check_array`` does for arrays of the host, which would bring X there.
    """
    _check_kind(X)
    dense = isinstance(X, cp.ndarray)
    with (X if dense else X.data).device:  # a sparse matrix of CuPy's does not say where it is
        X = _contiguous(X) if dense else _csr(X)
        if X.dtype.kind == "f" and not _is_finite(X if dense else X.data):
            raise ValueError(
                "Input X contains NaN or infinity. Impute or drop such rows first: HorseshoeProbitClassifier does not "
                "accept missing values."
            )
    return X


def _contiguous(X):
    return cp.ascontiguousarray(X if X.dtype.name in TYPES else X.astype(cp.float64))


def _csr(X):
    """A CSR matrix of CuPy's as ``Csr``, with ascending indices and none twice; its own arrays if they are so."""
    check(X)
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    data = X.data if X.dtype.name in ("float32", "float64") else X.data.astype(cp.float64)
    return Csr(data, X.indices, X.indptr, X.shape)


def _check_kind(X):
    """Raise a ValueError if no conversion can help."""
    if not isinstance(X, cp.ndarray) and X.format != "csr":
        raise ValueError(f"X is a CuPy matrix in {X.format!r} format; sparse rows on a GPU are CSR: give X.tocsr().")
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape X with X.reshape(-1, 1) if it has a single "
            "feature or X.reshape(1, -1) if it is a single sample."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X has the dtype {X.dtype}; real numbers are needed, of which float32 is the fastest.")
    for size, what in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required.")


def _is_finite(X):
    """Looked at in parts: an answer for every element at once would take a quarter of X again."""
    flat = X.reshape(-1)
    parts = (flat[start : start + _CHECKED] for start in range(0, flat.size, _CHECKED))
    return all(bool(cp.isfinite(part).all()) for part in parts)


def put_beside(X, values):
    """An array of the host as one of the GPU that X is on."""
    with X.device:
        return cp.asarray(values)
