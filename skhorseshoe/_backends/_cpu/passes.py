"""Passes over the rows of X, tile by tile, each row once: ``exports/passes.cpp``, which says what their arrays are.

X is an array, or a CSR matrix in which indices ascend within a row. shift : ``Shift``, or None.
"""

from typing import NamedTuple

import numpy as np

from .library import function, record

_latent_pass, _score_pass = function("latent_pass"), function("score_pass")
_line_pass, _product_pass = function("line_pass"), function("product_pass")
_OF_ROWS = "offset", "codes", "known", "common", "predictors", "terms"
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


class Shift(NamedTuple):
    """What is added to the linear predictors of rows, and what is kept of each row; None where there is none."""

    offset: object = None  # (n,) float64
    codes: object = None  # (n,) int32, the group of each row
    effects: object = None  # (n_groups, n_chains) float64
    slopes: object = None  # (n_groups, n_chains) by which they change along the direction of a line
    known: object = (
        None  # (n, n_known) of X's type, x beta of the first chains but for a factor, which X then is not asked
    )
    factor: object = None  # (n_known,) float64
    common: object = None  # (n,) of X's type, that of the other chains; None where there are none
    predictors: object = None  # (n, n_chains) of X's type, to be overwritten with x beta
    terms: object = None  # (n, n_chains) likewise, with what the rows are weighted by in sums over them

    def of(self, rows):
        """That of some rows, a slice, as the core takes it; and what must live as long."""
        cut = {name: None if values is None else values[rows] for name in _OF_ROWS for values in [getattr(self, name)]}
        fields = self._replace(**cut)._asdict()
        widths = [fields[name].shape[1] for name in ("effects", "terms") if fields[name] is not None]
        n_known = 0 if self.known is None else self.known.shape[1]
        return record("Shift", n_chains=max(widths, default=0), n_known=n_known, **fields)


def latent_pass(X, y, coef, bounds, first_row, sweep, key, sums, squares, shift=None):
    """Draws latents and adds up what weighs the rows by them."""
    where = *coef.shape, bounds, *squares.shape, first_row
    _latent_pass(*rows_of(X), y, shift, coef, *where, sweep, *key, sums, squares)


def score_pass(X, y, weight, coef, bounds, sums, logliks, shift=None):
    """Adds up the log-likelihood and its gradient."""
    where = *coef.shape, bounds, *logliks.shape
    _score_pass(*rows_of(X), y, or_none(weight), shift, coef, *where, sums, logliks)


def line_pass(X, y, weight, both, steps, bounds, logliks, shift=None):
    """Adds up log-likelihoods at steps along lines."""
    where = *both.shape, steps, *steps.shape, bounds, len(logliks)
    _line_pass(*rows_of(X), y, or_none(weight), shift, both, *where, logliks)


def product_pass(X, weight, vectors, bounds, sums):
    """Adds X' diag(weight) X vectors, of a CSR matrix; all but X float64."""
    _product_pass(*rows_of(X), or_none(weight), vectors, *vectors.shape, bounds, len(sums), sums)
