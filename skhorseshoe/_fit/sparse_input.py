"""Sparse X with more columns than rows, as the sampler reads it fastest.

X that holds nearly all of its numbers, such as genotypes, is read as an array. Of X with many empty columns, as
hashing words makes it, the sampler has the other columns alone: the data tell nothing of an empty column, and without a
slab of its own its coefficient has the horseshoe as its law, which leaves tau and the others as they are, and is 0 in
the columns of X (see ``Columns``).
"""

import numpy as np
from scipy.sparse import csr_array, issparse

from ..diagnostics import convergence

_EMPTY_SHARE = 0.1  # of the columns that must be empty, for X without them to be worth its indices
_LARGER_BY = 1.5  # bytes of an array relative to those of CSR, up to which X is read as an array

# Attributes of a fitted model whose last axis is the columns, and what an empty column has there.
_EMPTY_VALUES = {"coef_draws_": 0.0, "coef_": 0.0, "shrinkage_": 1.0, "inclusion_score_": 0.0}
_EMPTY_VALUES |= {"_column_means": 0.0, "_column_sd": 0.0}
_EMPTY_MOMENTS = {"mean": 0.0, "sd": 0.0, "prob_positive": 0.5}


def array_if_as_small(X):
    """X as an array if that is not much larger, which it is where a third is stored; else as it is."""
    if not issparse(X) or X.shape[0] * X.shape[1] * X.dtype.itemsize > _LARGER_BY * (X.data.nbytes + X.indices.nbytes):
        return X
    return X.toarray()


def stored_columns(X, unpenalized):
    """The columns that hold something or are unpenalised, ascending; None where X is an array or has most of them."""
    if not issparse(X):
        return None
    is_stored = unpenalized.copy()
    is_stored[X.indices] = True
    is_stored[0] |= not is_stored.any()
    return np.flatnonzero(is_stored) if is_stored.mean() <= 1 - _EMPTY_SHARE else None


def take_columns(X, columns):
    """X, in CSR form, with these columns, which hold all that is stored; numbers are not copied. Indices have 32 bits
    where these suffice, which are read faster."""
    place = np.zeros(X.shape[1], X.indices.dtype if max(X.nnz, len(columns)) >= 2**31 else np.int32)
    place[columns] = np.arange(len(columns))
    starts = X.indptr.astype(place.dtype, copy=False)
    return csr_array((X.data, place[X.indices], starts), shape=(X.shape[0], len(columns)))


def in_all_columns(values, columns, n_columns, value=0.0):
    """Values (..., k + m), of the k columns and m others, with a place for each of the n_columns of X, in which empty
    columns have ``value``; (..., n_columns + m)."""
    n_others = values.shape[-1] - len(columns)
    out = np.full((*values.shape[:-1], n_columns + n_others), value, values.dtype)
    out[..., columns] = values[..., : len(columns)]
    out[..., n_columns:] = values[..., len(columns) :]
    return out


def put_back(attributes, columns, n_columns):
    """The attributes of a model of these columns, with a place for each of the n_columns of X."""

    def wide(values, value):
        return in_all_columns(values, columns, n_columns, value)

    def wider(values, empty):
        return {**values, **{name: wide(values[name], value) for name, value in empty.items()}}

    of_zeros = convergence(np.zeros_like(attributes["coef_draws_"][..., :1]))
    of_an_empty_column = {**_EMPTY_VALUES, "rhat_": of_zeros.rhat[0], "ess_": of_zeros.ess_bulk[0]}
    moments = attributes["moments_"]
    return {
        **wider(attributes, of_an_empty_column),
        "_fitted_rows": wider(attributes["_fitted_rows"], {"paired_means": 0.0}),
        "prior_": wider(attributes["prior_"], {"slab_scale": np.inf}),
        "moments_": None if moments is None else wider(moments, _EMPTY_MOMENTS),
        "_dependent": [columns[each] for each in attributes["_dependent"]],
        "_factors": [{**each, "columns": columns[each["columns"]]} for each in attributes["_factors"]],
    }
