"""How rows are cut, and what is asked of a piece of them.

Rows are cut into blocks, and blocks are grouped into segments, by the shape of X alone. Sums over rows are added in a
tree: neighbours in pairs, then pairs in pairs. A block is a leaf, a segment a node. So whoever computes which segments,
a thread or a machine, the sum of all rows has the same bits.
"""

import zlib
from typing import NamedTuple

import numpy as np
from scipy.sparse import issparse

from .._backends.moments import merge_moments
from .._utils.memmap import check_whole
from .column_checks import extremes, sample, widest
from .factors import level_sums

_MAX_BLOCKS = 64
_LARGE_BLOCK = 2**28  # elements read in a block; where 64 blocks would be larger, there are more
_MAX_SUMS = 2**20  # numbers in the blocks' sums, for a chain
_BLOCK_WORK = 2**18  # elements read in a block; less is not worth a thread
_DRAW_COST = 100  # a truncated normal takes as long as reading about this many elements
_SEGMENT_ROWS = 128  # for each column: a segment is large beside a matrix X'X, of which each has its own
_TOGETHER = 2**20  # bytes of linear predictors
_CHECKED_ROWS = 4096  # looked at together; nearly always the first of them tell that the classes overlap


def layout(n, p, size=None):
    """The rows at which blocks begin, and the blocks at which segments begin; with the ends, int64.

    size : how many numbers are stored, n p by default. A segment is a power of two of blocks, the last one maybe fewer.
    """
    work = (n * p if size is None else size) + n * _DRAW_COST
    n_blocks = min(max(_MAX_BLOCKS, work // _LARGE_BLOCK), n, work // _BLOCK_WORK, _MAX_SUMS // (p + 1))
    bounds = np.linspace(0, n, max(1, n_blocks) + 1).astype(np.int64)
    n_blocks, size = len(bounds) - 1, 1
    while size < n_blocks and -(-n_blocks // size) > n // (_SEGMENT_ROWS * (p + 1)):
        size *= 2
    return bounds, np.append(np.arange(0, n_blocks, size), n_blocks)


def collapse(nodes, n_leaves, add):
    """Add neighbours that are both there, and their sums, as far as it goes; changes ``nodes`` and returns it.

    nodes : sums by (level, i); that of level l is over the leaves i 2^l to (i + 1) 2^l - 1. add : of two sums.
    """
    level, width = 0, n_leaves
    while width > 1:
        for i in sorted(i for its_level, i in nodes if its_level == level):
            if i ^ 1 >= width:  # the last of an odd number
                nodes[level + 1, i // 2] = nodes.pop((level, i))
            elif i % 2 == 0 and (level, i + 1) in nodes:
                nodes[level + 1, i // 2] = add(nodes.pop((level, i)), nodes.pop((level, i + 1)))
        level, width = level + 1, (width + 1) // 2
    return nodes


class Segment(NamedTuple):
    """Consecutive rows, where the back end reads them. Its answers are tuples; neighbours' are added by ``ADD``."""

    X: object  # (n, p)
    y: object  # (n,) uint8
    weight: object  # (n,) float64, or (0,) for none
    bounds: object  # of its blocks, int64, from 0 to n
    start: int  # number of its first row among all rows, which the random numbers are functions of

    # Where there is a ``shift``, linear predictors are shifted by offsets and effects of groups.

    def latent(self, ops, threads, coef, sweep, key, **shift):
        """X'z (n_chains, q) and z'z (n_chains,)."""
        return ops.latent(self.X, self.y, ops.to_device(coef), self.bounds, sweep, key, threads, self.start, **shift)

    def score(self, ops, threads, coef, **shift):
        """Log-likelihood (n_chains,) and its gradient (n_chains, q)."""
        return ops.score(self.X, self.y, self.weight, ops.to_device(coef), self.bounds, threads, **shift)

    def line(self, ops, threads, coef, direction, steps, **shift):
        """Log-likelihoods at coef + step direction, for the steps (n_chains, k) of each chain; (n_chains, k)."""
        arguments = ops.to_device((coef, direction, steps))
        return (ops.line(self.X, self.y, self.weight, *arguments, self.bounds, threads, **shift),)

    def gram(self, ops, threads, centre, scale, fit_intercept, beta=None, spare=()):
        """X' diag(weight) X, or the information averaged over beta; (q, q). spare : as in ``ops.gram``."""
        return (ops.gram(self.X, self.weight, centre, scale, fit_intercept, threads, beta, spare),)

    def moments(self, ops, threads):
        """Size, that of the second class, and mean and variance of the columns (p,)."""
        y, weight = ops.to_host((self.y, self.weight))
        size = float(weight.sum()) if len(weight) else len(y)
        ones = float(weight @ y) if len(weight) else int(y.sum(dtype=np.int64))
        return size, ones, *ops.moments(self.X, self.weight)

    def misplaced(self, ops, threads, coef, intercept):
        """For each point (m, p) whether a row is on the wrong side; as numbers (m,)."""
        left, found = np.arange(len(coef)), np.ones(len(coef))
        for start in range(0, len(self.y), _CHECKED_ROWS):  # the first rows tell of nearly all points
            if len(left):
                rows = slice(start, start + _CHECKED_ROWS)
                left = left[~self._misplaced(ops, threads, coef[left], intercept[left], rows)]
        found[left] = 0.0
        return (found,)

    def extremes(self, ops, threads, fit_intercept):
        """The least and the largest values in each class, as far as they tell ``one_sided`` columns; (2, p) each."""
        return extremes(self.X, ops.to_host(self.y), fit_intercept)

    def level_sums(self, ops, threads, factors):
        """The least and the largest sum of the levels in a row, of each of the factors."""
        return level_sums(self.X, factors)

    def sample(self, ops, threads, step):
        """One of every ``step`` rows, counted among all rows; (m, p)."""
        return (sample(self.X, self.start, step),)

    def _misplaced(self, ops, threads, coef, intercept, rows):
        wrong, y = [], ops.to_host(self.y[rows])

        def compare(eta, at):
            wrong.append(((ops.to_host(eta) + intercept > 0) != y[at, None]).any(axis=0))

        ops.each_block(self.X[rows], coef, threads, _TOGETHER, compare)
        return np.any(wrong, axis=0)

    def checksum(self, ops, threads):
        """Of X, y and the weights, which are here in the memory of the host."""
        check_whole(self.X)
        of_X = (self.X.data, self.X.indices, self.X.indptr) if issparse(self.X) else (self.X,)
        return _checksum(*of_X), _checksum(self.y), _checksum(self.weight)


def _checksum(*arrays):
    value = 0
    for array in arrays:
        value = zlib.crc32(array.reshape(-1).view(np.uint8), value)
    return value


def _add(a, b):
    return tuple(x + y for x, y in zip(a, b, strict=True))


def _merge(a, b):
    """Moments of two groups of rows as those of both."""
    (n, ones, *of_columns), (other_n, other_ones, *others) = a, b
    size, mean, variance = merge_moments((n, *of_columns), (other_n, *others))
    return size, ones + other_ones, mean, variance


def _join(a, b):
    """A checksum of two checksums, in the order of the rows."""
    return tuple(zlib.crc32(x.to_bytes(4, "little") + y.to_bytes(4, "little")) for x, y in zip(a, b, strict=True))


def _stack(a, b):
    return tuple(np.concatenate(both) for both in zip(a, b, strict=True))


ADD = dict.fromkeys((Segment.latent, Segment.score, Segment.line, Segment.gram, Segment.misplaced), _add)
ADD |= {Segment.moments: _merge, Segment.extremes: widest, Segment.level_sums: widest}
ADD |= {Segment.sample: _stack, Segment.checksum: _join}
