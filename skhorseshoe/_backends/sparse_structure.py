"""Whether the arrays of a sparse matrix are well-formed: code that reads them, here and in SciPy, does not check."""

import numpy as np

_CURE = "The arrays of a sparse matrix must name places that it has: build it anew, as with scipy.sparse.csr_array."


def check(X):
    """Raise a ValueError unless a sparse matrix is well-formed; in one pass over its indices."""
    if X.format == "lil":
        columns, values = ([len(row) if isinstance(row, list) else -1 for row in rows] for rows in (X.rows, X.data))
        if columns != values or -1 in columns or len(columns) != X.shape[0]:
            raise ValueError(f"X.rows and X.data must have lists of the same lengths, one for each row. {_CURE}")
    if X.format == "dia":
        _check_kind(X.offsets, "X.offsets", len(X.data))
        if X.data.ndim != 2 or (len(X.offsets) and int(abs(X.offsets.astype(np.int64)).max()) > max(X.shape)):
            raise ValueError(f"X.offsets and X.data name diagonals that X does not have. {_CURE}")
    if X.format == "coo":
        for axis, name in enumerate(("row", "col")):
            _check_range(getattr(X, name), X.shape[axis], f"X.{name}", len(X.data))
    if X.format not in ("csr", "csc", "bsr"):
        return
    if X.data.ndim != (3 if X.format == "bsr" else 1):
        raise ValueError(f"X.data has the shape {X.data.shape}. {_CURE}")
    (height, width), major = X.blocksize if X.format == "bsr" else (1, 1), X.format == "csc"
    n, p = X.shape[major] // height, X.shape[1 - major] // width
    indptr = X.indptr
    _check_kind(indptr, "X.indptr", n + 1)
    if int(indptr[0]) != 0 or bool(np.any(indptr[1:] < indptr[:-1])):
        raise ValueError(f"X.indptr must begin with 0 and never descend. {_CURE}")
    stored, ends = min(len(X.indices), len(X.data)), int(indptr[-1])
    if ends > stored:
        raise ValueError(f"X.indptr ends with {ends}, but X stores {stored} numbers. {_CURE}")
    _check_range(X.indices[:ends], p, "X.indices", ends)


def _check_kind(values, name, size):
    if getattr(values, "ndim", 0) != 1 or values.dtype.kind not in "iu":
        raise ValueError(f"{name} must be a one-dimensional array of integers. {_CURE}")
    if len(values) != size:
        raise ValueError(f"{name} has {len(values)} numbers, but X, of its shape and data, needs {size}. {_CURE}")


def _check_range(values, size, name, stored):
    """Raise a ValueError unless each value is from 0 to size - 1. A negative one, as unsigned, exceeds any size."""
    _check_kind(values, name, stored)
    unsigned = values.view(np.dtype(f"u{values.dtype.itemsize}"))
    if len(values) and int(np.max(unsigned)) >= size:
        k = int(np.argmax(unsigned >= size))
        raise ValueError(f"{name}[{k}] is {int(values[k])}, but X has places 0 to {size - 1} there. {_CURE}")
