"""Passes over the rows of X, tile by tile, each row once: ``exports/passes.cpp``, which says what their arrays are.

X is an array, or a CSR matrix in which indices ascend within a row. An offset is None here: no model has one.
"""

import numpy as np

from .library import function

_latent_pass, _score_pass = function("latent_pass"), function("score_pass")
_line_pass, _product_pass = function("line_pass"), function("product_pass")
_KINDS = {"f": 0, "d": 1}  # by the type code of the numbers; of a CSR matrix 2 more, and 2 for indices of 64 bits


def rows_of(X):
    """X as the core takes it: the kind, numbers, indices and starts of rows, and how many rows and columns."""
    if isinstance(X, np.ndarray):
        return _KINDS[X.dtype.char], X, None, None, *X.shape
    if X.indices.dtype != X.indptr.dtype:
        raise TypeError(f"Indices of {X.indices.dtype} and starts of rows of {X.indptr.dtype} are not of one type.")
    kind = _KINDS[X.dtype.char] + 2 + 2 * (X.indices.itemsize == 8)
    return kind, X.data, X.indices, X.indptr, *X.shape


def or_none(weight):
    """Weights of rows, if there are any."""
    return weight if len(weight) else None


def latent_pass(X, y, coef, bounds, first_row, sweep, key, sums, squares, offset=None):
    """Draws latents and adds up what weighs the rows by them."""
    where = *coef.shape, bounds, *squares.shape, first_row
    _latent_pass(*rows_of(X), y, offset, coef, *where, sweep, *key, sums, squares)


def score_pass(X, y, weight, coef, bounds, sums, logliks, offset=None):
    """Adds up the log-likelihood and its gradient."""
    where = *coef.shape, bounds, *logliks.shape
    _score_pass(*rows_of(X), y, or_none(weight), offset, coef, *where, sums, logliks)


def line_pass(X, y, weight, both, steps, bounds, logliks, offset=None):
    """Adds up log-likelihoods at steps along lines."""
    where = *both.shape, steps, *steps.shape, bounds, len(logliks)
    _line_pass(*rows_of(X), y, or_none(weight), offset, both, *where, logliks)


def product_pass(X, weight, vectors, bounds, sums):
    """Adds X' diag(weight) X vectors, of a CSR matrix; all but X float64."""
    _product_pass(*rows_of(X), or_none(weight), vectors, *vectors.shape, bounds, len(sums), sums)
