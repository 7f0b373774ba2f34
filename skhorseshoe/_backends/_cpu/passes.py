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

_latent_pass, _score_pass, _line_pass = function("latent_pass"), function("score_pass"), function("line_pass")
NO_WEIGHT = np.empty(0)
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


def latent(X, y, coef, bounds, sweep, key, threads, first_row=0, shift=None, likelihood=PROBIT):
    """X'z (and 1'z) for the latents z of the likelihood, (n_chains, q); z'z, (n_chains,); float64.

    One pass over X. bounds : edges of the blocks of rows. Sums of blocks are added in pairs, so that the result does
    not depend on the number of threads. Row i has the random numbers of row first_row + i. shift : ``Shift``, or None.
    With d linear predictors a row there are d latents, and coef and X'z are (n_chains d, q).
    """
    by_columns, n_chains = by_column(coef), len(coef) // likelihood.n_predictors
    sums, squares = np.zeros((len(bounds) - 1, *by_columns.shape)), np.zeros((len(bounds) - 1, n_chains))

    def add(inputs, rows, blocks):
        _latent_pass(*inputs, n_chains, first_row + rows.start, sweep, key, sums[blocks], squares[blocks])

    _add_blocks(add, X, y, NO_WEIGHT, by_columns, bounds, threads, shift, likelihood)
    return by_chain(add_pairs(sums), len(coef)), add_pairs(squares)


def score(X, y, weight, coef, bounds, threads, shift=None, likelihood=PROBIT, own=None):
    """Log-likelihood (n_chains,) and its gradient (n_chains, q), float64; one pass over X, blocks as in ``latent``.

    weight : (n,) float64 that multiplies the rows' terms, or (0,) for none. own : parameters of the likelihood
    (n_chains, k), by which the gradient (n_chains, k) comes third; None for a likelihood without. With d linear
    predictors a row coef and gradient are (n_chains d, q), those of a chain one after the other.
    """
    by_columns, n_chains = by_column(coef), len(coef) // likelihood.n_predictors
    sums, logliks = np.zeros((len(bounds) - 1, *by_columns.shape)), np.zeros((len(bounds) - 1, n_chains))
    own_sums = None if own is None else np.zeros((len(bounds) - 1, *own.shape))

    def add(inputs, rows, blocks):
        _score_pass(*inputs, n_chains, sums[blocks], logliks[blocks])

    _add_blocks(add, X, y, weight, by_columns, bounds, threads, shift, likelihood, own, own_sums)
    answer = add_pairs(logliks), by_chain(add_pairs(sums), len(coef))
    return answer if own is None else (*answer, add_pairs(own_sums))


def line(X, y, weight, coef, direction, steps, bounds, threads, shift=None, likelihood=PROBIT, own=None):
    """Log-likelihoods at coef + step direction (n_chains, q) for the steps (n_chains, k); (n_chains, k) float64.

    One pass over X, the rest as in ``score``; with d linear predictors coef and direction are (n_chains d, q).
    """
    both, logliks = by_column(np.concatenate([coef, direction])), np.zeros((len(bounds) - 1, *steps.shape))

    def add(inputs, rows, blocks):
        _line_pass(*inputs, steps, *steps.shape, logliks[blocks])

    _add_blocks(add, X, y, weight, both, bounds, threads, shift, likelihood, own, as_X=False)
    return add_pairs(logliks)


def _add_blocks(add, X, y, weight, coef, bounds, threads, shift, likelihood, own=None, own_sums=None, as_X=True):
    """Call add(inputs, rows, blocks) for all pieces of X: the first arguments of a pass, rows and blocks as slices.
    as_X : whether coefficients, by column, are of X's type in a pass, or float64."""

    def add_pieces(first, last):
        for x, rows, edges, blocks in pieces_of_X(X, bounds, first, last):
            beta = coef.astype(x.dtype, copy=False) if as_X else coef
            of_shift = None if shift is None else shift.record(rows)
            of_own = None if own_sums is None else own_sums[blocks]
            of_pass = pass_rows(y[rows], or_none(weight[rows]), edges, of_shift, likelihood, own, of_own)
            add((rows_of(x), of_pass, (beta, *beta.shape)), rows, blocks)

    threads.run(add_pieces, len(bounds) - 1)


def by_column(coef):
    """coef (m, q) with the chains as the last axis, padded with zeros to a multiple of four; (q, width) float64."""
    if n_more := -len(coef) % 4:
        coef = np.concatenate([coef, np.zeros((n_more, coef.shape[1]))])
    return coef.T.copy()


def by_chain(sums, m):
    """The inverse of ``by_column``, without the padding; (m, q)."""
    return sums[:, :m].T.copy()


def add_pairs(sums):
    """The sum over the first axis as a tree of pairs: each node has the same bits wherever it is summed."""
    while len(sums) > 1:
        even = len(sums) // 2 * 2
        sums = np.concatenate([sums[:even:2] + sums[1:even:2], sums[even:]])
    return sums[0]


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
