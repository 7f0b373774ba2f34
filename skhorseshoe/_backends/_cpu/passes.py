"""Passes over the rows of X, tile by tile; ``exports/passes.cpp`` documents their arrays.

X is an array, or a CSR matrix in which indices ascend within a row. shift : ``Shift``, or None. X of a file comes in
``pieces_of_X``.
"""

from typing import NamedTuple

import numpy as np

from ..._model import PROBIT
from ..._utils import memmap
from ..._utils.memmap import cut, is_on_disk, read_ahead
from ..constants import FLUSH_ROWS, TILE_BYTES
from .library import function, record

_latent_pass, _score_pass = function("latent_pass"), function("score_pass")
_line_pass, _product_pass = function("line_pass"), function("product_pass")
_BY_ROW = "offset", "codes", "known", "common", "predictors", "terms"  # fields of ``Shift`` with a number for each row
_KINDS = {"f": 0, "d": 1}  # by type code; a CSR matrix adds 2, and 2 more if its indices have 64 bits


def rows_of(X):
    """X as the fields of ``StoredX``: kind, numbers, indices, starts of rows, number of rows and of columns."""
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
    """Terms that are added to linear predictors, and arrays by row that a pass reads or writes; None for none."""

    offset: object = None  # (n,) float64, or (n, d) of d linear predictors a row
    codes: object = None  # (n,) int32, the group of each row
    effects: object = None  # (n_groups, n_chains) float64
    slopes: object = None  # (n_groups, n_chains) change of the effects along the direction of a line
    known: object = None  # (n, n_known) of X's type: x beta of the first chains up to a factor, so that X is not read
    factor: object = None  # (n_known,) float64
    common: object = None  # (n,) of X's type: x beta of the other chains, or None if there are none
    predictors: object = None  # (n, n_chains) of X's type, overwritten with x beta
    terms: object = None  # (n, n_chains) of X's type, overwritten with the weights of rows in the sums of a pass

    def record(self, rows):
        """The record of a slice of rows."""
        cut = {name: None if values is None else values[rows] for name in _BY_ROW for values in [getattr(self, name)]}
        fields = self._replace(**cut)._asdict()
        widths = [fields[name].shape[1] for name in ("effects", "terms") if fields[name] is not None]
        n_known = 0 if self.known is None else self.known.shape[1]
        return record("Shift", fields | {"n_chains": max(widths, default=0), "n_known": n_known})


def pass_rows(y, weight, bounds, shift=None, likelihood=PROBIT, own=None, own_sums=None):
    """The fields of ``PassRows``. y, weight : (n,), or None."""
    n_own, of_rows = 0 if own is None else own.shape[1], (y, weight, bounds, len(bounds) - 1)
    return likelihood.number, *of_rows, shift, own, own_sums, n_own, likelihood.n_predictors


def latent_pass(X, y, coef, bounds, first_row, sweep, key, sums, squares, shift=None, likelihood=PROBIT):
    """Draws latents z and adds to the sums of z_i x_i and of z_i^2."""
    rows = pass_rows(y, None, bounds, shift, likelihood)
    _latent_pass(rows_of(X), rows, (coef, *coef.shape), squares.shape[1], first_row, sweep, key, sums, squares)


def score_pass(X, y, weight, coef, bounds, sums, logliks, shift=None, likelihood=PROBIT, own=None, own_sums=None):
    """Adds to the log-likelihood and the score. own, own_sums : as in ``PassRows``."""
    rows = pass_rows(y, or_none(weight), bounds, shift, likelihood, own, own_sums)
    _score_pass(rows_of(X), rows, (coef, *coef.shape), logliks.shape[1], sums, logliks)


def line_pass(X, y, weight, both, steps, bounds, logliks, shift=None, likelihood=PROBIT, own=None):
    """Adds to the log-likelihoods at steps along lines."""
    rows = pass_rows(y, or_none(weight), bounds, shift, likelihood, own)
    _line_pass(rows_of(X), rows, (both, *both.shape), steps, *steps.shape, logliks)


def product_pass(X, weight, vectors, bounds, sums):
    """Adds X' diag(weight) X vectors to sums, for a CSR matrix X; the other arrays are float64."""
    _product_pass(rows_of(X), pass_rows(None, or_none(weight), bounds), (vectors, *vectors.shape), sums)


def pieces_of_X(X, bounds, first, last):
    """The pieces of the blocks first to last - 1: (rows of X, their slice, bounds, their blocks).

    Rows in memory, in an array or a CSR matrix, are one piece with all blocks.
    """
    if not is_on_disk(X):
        return ((X, slice(0, X.shape[0]), bounds[first : last + 1], slice(first, last)),)
    return _pieces_of_X_on_disk(X, bounds, first, last)


def _pieces_of_X_on_disk(X, bounds, first, last):
    """Pieces within a block, cut so that its sums keep their bits. float16, which no kernel reads, becomes float32."""
    dtype = np.float32 if X.dtype == np.float16 else X.dtype
    tile = _tile_rows(X.shape[1] * np.dtype(dtype).itemsize)
    flushed = FLUSH_ROWS // tile * tile  # rows from flush to flush: pieces that end at a flush keep the bits of a block
    step = flushed * max(1, memmap.WINDOW // (flushed * X.strides[0]))
    slices = (rows for block in range(first, last) for rows in cut(*map(int, bounds[block : block + 2]), step))
    for rows in read_ahead(X, slices, bounds[last]):
        block = np.searchsorted(bounds, rows.start, side="right") - 1
        x = X[rows].astype(dtype, copy=False)
        yield x, rows, np.array([0, len(x)], np.int64), slice(block, block + 1)


def _tile_rows(row_bytes):
    """Number of rows of a tile, as in ``exports/dense_rows.hpp``: those that fit TILE_BYTES, a multiple of four."""
    return min(256, max(4, TILE_BYTES // max(1, row_bytes) // 4 * 4))
