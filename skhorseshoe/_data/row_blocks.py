"""Blocks and segments of rows, and the questions that a segment answers.

Rows are cut into blocks, and blocks are grouped into segments; both depend only on the shape of X. Sums over rows are
added in a tree: neighbours in pairs, then pairs in pairs. A block is a leaf, a segment a node. So the sum over all rows
has the same bits, whichever thread or machine computes a segment.
"""

import zlib
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends.moments import merge_moments
from .._model import PROBIT
from .._utils.memmap import check_whole, cut
from .column_checks import extremes, sample, widest
from .contrasts import absolute_deviations
from .indicator_sets import level_sums
from .row_pairs import times_label

# of a row, where columns are weighted by it: where classes are separated all may be 0 in floats, and there is no mean
LEAST_INFORMATION = 1e-150
_MAX_BLOCKS = 64  # there are more only if blocks would be larger than ``_LARGE_BLOCK``
_LARGE_BLOCK = 2**28  # elements read in a block
_MAX_SUMS = 2**20  # most numbers in the sums of all blocks, for a chain
_BLOCK_WORK = 2**18  # fewest elements read in a block; less is not worth a thread
_DRAW_COST = 100  # elements that are read in the time of drawing a truncated normal
_SEGMENT_ROWS = 128  # fewest rows of a segment for each column, so that it is large relative to its X'X
_BYTES_AT_A_TIME = 2**20  # bytes of linear predictors to compute at a time
_ROWS_AT_A_TIME = 4096  # rows to check at a time; nearly always the first of them show that the classes overlap


def block_bounds(shape, size=None):
    """The rows at which blocks begin, and the blocks at which segments begin; both with the end, int64.

    shape : (n, p) of X. size : how many numbers X stores, by default n p. A segment has a power of two of blocks, the
    last one maybe fewer.
    """
    n, p = shape
    work = (n * p if size is None else size) + n * _DRAW_COST
    n_blocks = min(max(_MAX_BLOCKS, work // _LARGE_BLOCK), n, work // _BLOCK_WORK, _MAX_SUMS // (p + 1))
    bounds = np.linspace(0, n, max(1, n_blocks) + 1).astype(np.int64)
    n_blocks, size = len(bounds) - 1, 1
    while size < n_blocks and -(-n_blocks // size) > n // (_SEGMENT_ROWS * (p + 1)):
        size *= 2
    return bounds, np.append(np.arange(0, n_blocks, size), n_blocks)


def collapse(nodes, n_leaves, add):
    """Add neighbours that are both there, and their sums, as far as possible; changes ``nodes`` and returns it.

    nodes : sums by (level, i); at level l, over the leaves i 2^l to (i + 1) 2^l - 1. add : function that adds two sums.
    """
    level, width = 0, n_leaves
    while width > 1:
        for i in sorted(i for its_level, i in nodes if its_level == level):
            if i ^ 1 >= width:  # the last of an odd number of nodes has no neighbour
                nodes[level + 1, i // 2] = nodes.pop((level, i))
            elif i % 2 == 0 and (level, i + 1) in nodes:
                nodes[level + 1, i // 2] = add(nodes.pop((level, i)), nodes.pop((level, i + 1)))
        level, width = level + 1, (width + 1) // 2
    return nodes


class Segment(NamedTuple):
    """Consecutive rows, on the device. Answers are tuples; ``ADD`` has the functions that add those of neighbours."""

    X: object  # (n, p)
    y: object  # (n,) uint8
    weight: object  # (n,) float64, or (0,) for none
    bounds: object  # of its blocks, int64, from 0 to n
    start: int  # number of its first row among all rows; random numbers are functions of it
    likelihood: object = PROBIT
    offset: object = None  # (n,), or (n, d) of d contrasts of classes; None for none

    # With a ``shift``, offsets and effects of groups are added to the linear predictors.

    def latent(self, ops, threads, coef, sweep, key, shift=None):
        """X'z (n_chains, q) and z'z (n_chains,)."""
        latent, coef = self._bind(ops.latent, shift), ops.to_device(coef)
        return latent(self.X, self.y, coef, self.bounds, sweep, key, threads, self.start)

    def score(self, ops, threads, coef, shift=None, own=None):
        """Log-likelihood (n_chains,) and its gradient (n_chains, q). own : as in ``ops.score``."""
        score = self._bind(ops.score, shift, own)
        return score(self.X, self.y, self.weight, ops.to_device(coef), self.bounds, threads)

    def line(self, ops, threads, coef, direction, steps, shift=None, own=None):
        """Log-likelihoods at coef + step direction, for the steps (n_chains, k) of each chain; (n_chains, k)."""
        coef, direction, steps = ops.to_device((coef, direction, steps))
        line = self._bind(ops.line, shift, own)
        return (line(self.X, self.y, self.weight, coef, direction, steps, self.bounds, threads),)

    def gram(self, ops, threads, centre, scale, fit_intercept, beta=None, spare=()):
        """X' diag(weight) X, or the information averaged over beta; (q, q). spare : as in ``ops.gram``."""
        gram = self._bind(ops.gram)
        return (gram(self.X, self.weight, centre, scale, fit_intercept, threads, beta, spare),)

    def moments(self, ops, threads, by_label=False):
        """Total weight, weight of the second class, and mean and variance of the columns (p,).

        by_label : whether rows of the second class count twice.
        """
        counted = times_label(self.weight, self.y) if by_label else self.weight
        y, weight = ops.to_host((self.y, counted))
        size = float(weight.sum()) if len(weight) else len(y)
        ones = float(weight @ (y > 0)) if len(weight) else int((y > 0).sum())
        return size, ones, *ops.moments(self.X, counted)

    def class_sizes(self, ops, threads):
        """The weights of the rows of each class; (K,)."""
        weight = self.weight if len(self.weight) else None
        return (np.bincount(self.y, weight, self.likelihood.n_classes).astype(float),)

    def class_information(self, ops, threads, centre, scale, fit_intercept, coef, intercept, terms):
        """What an information of several classes consists of: X' diag(w) X (a, q, q) for a weights, w'(X, 1) (b, p + 1)
        for b others, and totals.

        coef, intercept : of points, (m, p) and (m,). terms : function of linear predictors (n, m) and weights (n,) of
        some rows, with these weights (n, a), (n, b), and totals.
        """
        weight, parts = self.weight if len(self.weight) else np.ones(len(self.y)), []
        for some in cut(0, len(self.y), _ROWS_AT_A_TIME):
            eta = np.empty((some.stop - some.start, len(coef)))
            ops.each_block(self.X[some], coef, threads, _BYTES_AT_A_TIME, partial(_put, eta))
            eta += intercept
            if self.offset is not None:
                by_point = eta.reshape(len(eta), -1, self.likelihood.n_predictors)
                by_point += self.offset[some].reshape(len(eta), 1, -1)
            parts.append(terms(eta, weight[some]))
        of_squares, of_sums, totals = zip(*parts, strict=True)
        of_squares, of_sums = (np.ascontiguousarray(np.concatenate(some).T) for some in (of_squares, of_sums))
        squares = [ops.gram(self.X, w, centre, scale, fit_intercept, threads) for w in of_squares]
        sums = [ops.sums_by_group(self.X, np.zeros(len(w), np.int32), 1, w) for w in of_sums]
        return np.stack(squares), np.reshape(sums, (len(sums), self.X.shape[1] + 1)), sum(totals)

    def information_moments(self, ops, threads, coef, intercept):
        """As ``moments``, with the information of each row, averaged over the points (m, p), as a further weight."""
        weight = np.empty(len(self.y))

        def put(eta, at):
            weight[at] = self.likelihood.information(ops.to_host(eta) + intercept).mean(axis=1)

        ops.each_block(self.X, coef, threads, _BYTES_AT_A_TIME, put)
        weight *= ops.to_host(self.weight) if len(self.weight) else 1.0
        return self._replace(weight=ops.to_device(weight.clip(LEAST_INFORMATION))).moments(ops, threads)

    def deviations(self, ops, threads, centre):
        """Sums of the distances of columns from a centre (p,), by weight; (p,)."""
        return (absolute_deviations(self.X, ops.to_host(self.weight), centre),)

    def misplaced(self, ops, threads, coef, intercept):
        """For each point, 1 if a row is not on the side of its class, else 0; (m,). coef, intercept : (m d, p) and
        (m d,), with d linear predictors a row."""
        d = self.likelihood.n_predictors
        undecided, answer = np.arange(len(coef) // d), np.ones(len(coef) // d)
        for rows in cut(0, len(self.y), _ROWS_AT_A_TIME):  # the first rows decide nearly all points
            if len(undecided):
                at = (d * undecided[:, None] + np.arange(d)).ravel()
                undecided = undecided[~self._misplaced(ops, threads, coef[at], intercept[at], rows)]
        answer[undecided] = 0.0
        return (answer,)

    def extremes(self, ops, threads, fit_intercept):
        """The smallest and largest values in each class, exact for one-sided columns; (K, p) each."""
        return extremes(self.X, ops.to_host(self.y), fit_intercept, self.likelihood.n_classes)

    def level_sums(self, ops, threads, sets):
        """The smallest and the largest sum over the levels in a row, for each set."""
        return level_sums(self.X, sets)

    def sample(self, ops, threads, step):
        """One of every ``step`` rows, counted among all rows; (m, p)."""
        return (sample(self.X, self.start, step),)

    def _bind(self, function, shift=None, own=None):
        """A function of a back end, with a shift if there is one, and a likelihood other than probit: only back ends of
        the host take them."""
        function = function if shift is None else partial(function, shift=shift)
        function = function if own is None else partial(function, own=own)
        return function if self.likelihood is PROBIT else partial(function, likelihood=self.likelihood)

    def _misplaced(self, ops, threads, coef, intercept, rows):
        misplaced, y, d = [], ops.to_host(self.y[rows]), self.likelihood.n_predictors

        def compare(eta, at):
            eta = ops.to_host(eta) + intercept
            if self.offset is not None:
                eta += np.tile(self.offset[rows][at].reshape(len(eta), d), len(coef) // d)
            by_point = eta > 0 if d == 1 else self.likelihood.utilities(eta).argmax(axis=2)
            misplaced.append((by_point != y[at, None]).any(axis=0))

        ops.each_block(self.X[rows], coef, threads, _BYTES_AT_A_TIME, compare)
        return np.any(misplaced, axis=0)

    def checksum(self, ops, threads):
        """The checksums of X, y and the weights, which must be on the host."""
        check_whole(self.X)
        of_X = (self.X.data, self.X.indices, self.X.indptr) if issparse(self.X) else (self.X,)
        return _checksum(of_X), _checksum([self.y]), _checksum([self.weight])


def _put(out, values, at):
    out[at] = values


def _checksum(arrays):
    value = 0
    for array in arrays:
        value = zlib.crc32(array.reshape(-1).view(np.uint8), value)
    return value


def _sums_of_parts(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _merge_moments(a, b):
    """Moments of two groups of rows taken together."""
    (n, ones, *of_columns), (other_n, other_ones, *of_other_columns) = a, b
    size, mean, variance = merge_moments((n, *of_columns), (other_n, *of_other_columns))
    return size, ones + other_ones, mean, variance


def _join(a, b):
    """A checksum of two checksums, in the order of the rows."""
    return tuple(zlib.crc32(x.to_bytes(4, "little") + y.to_bytes(4, "little")) for x, y in zip(a, b, strict=True))


def _stack(a, b):
    return tuple(np.concatenate(both) for both in zip(a, b, strict=True))


ADD = dict.fromkeys((Segment.latent, Segment.score, Segment.line, Segment.gram, Segment.misplaced), _sums_of_parts)
ADD |= dict.fromkeys((Segment.deviations, Segment.class_sizes, Segment.class_information), _sums_of_parts)
ADD |= dict.fromkeys((Segment.moments, Segment.information_moments), _merge_moments)
ADD |= dict.fromkeys((Segment.extremes, Segment.level_sums), widest)
ADD |= {Segment.sample: _stack, Segment.checksum: _join}
