"""Where the rows live. A sampler asks them for X'X or the information once, and each sweep for X'z or the score."""

import numpy as np

from ._columns import Columns

_MAX_BLOCKS = 64
_MAX_SUMS = 2**20  # numbers in the blocks' sums, for a chain
_BLOCK_WORK = 2**18  # elements read in a block; less is not worth a thread
_CHECKED_ROWS = 4096  # looked at together; nearly always the first of them tell that the classes overlap
_DRAW_COST = 100  # a truncated normal takes as long as reading about this many elements


class Rows:
    """Rows in memory, each read once per question.

    X : (n, p), C-contiguous or CSR, of floating-point numbers. y : (n,) uint8, 1 where the second class was seen.
    ops : the back end, for such an X. threads : the threads to use. weight : (n,) float64 that multiplies the rows'
    terms of the log-likelihood, or None. unpenalized : (p,) bool, or None. standardize : whether the coefficients are
    those of columns of unit variance.
    """

    def __init__(self, X, y, fit_intercept, ops, threads, *, weight=None, unpenalized=None, standardize=False):
        self.X, self.y = X, y
        self.weight = np.empty(0) if weight is None else weight
        self.held = ops.hold(X, y, self.weight)
        self.ops = ops
        self.threads = threads
        # The layout depends on the size of X alone: sums over rows have the same bits for any number of threads.
        n, p = X.shape
        self.n = n
        work = X.size + n * _DRAW_COST
        n_blocks = min(_MAX_BLOCKS, n, work // _BLOCK_WORK, _MAX_SUMS // (p + 1))
        self.bounds = np.linspace(0, n, max(1, n_blocks) + 1).astype(np.int64)
        with np.errstate(over="ignore", invalid="ignore"):  # too large a column is refused by its size
            mean, variance = ops.moments(self.held[0], self.held[2])
            # A spread within the rounding of X is none.
            sd = np.sqrt(np.where(variance > (16 * np.finfo(X.dtype).eps * mean) ** 2, variance, 0.0))
        unpenalized = np.zeros(p, bool) if unpenalized is None else unpenalized
        self.columns = Columns(mean, sd, unpenalized, fit_intercept, standardize)
        self._translate = ops.to_device(self.columns)

    def base_rate(self):
        """Share of the second class, moved a little inwards so that it is never 0 or 1."""
        ones = self.weight @ self.y if len(self.weight) else self.y.sum(dtype=np.int64)
        return (ones + 0.5) / (self.size() + 1)

    def size(self):
        """The number of rows, or the sum of their weights."""
        return float(self.weight.sum()) if len(self.weight) else len(self.y)

    def gram(self):
        """X' diag(weight) X of the sampler's columns; (q, q)."""
        return self._matrix()

    def information(self, beta, spare=()):
        """Fisher information of the probit likelihood, averaged over the rows of beta (m, q); (q, q).

        spare : matrices of that shape that may be overwritten.
        """
        beta = self.ops.to_host(beta)
        by_column = beta.copy()
        by_column[:, : self.X.shape[1]] = beta[:, self.columns.place]
        return self._matrix(by_column, spare)

    def _matrix(self, *beta_and_spare):
        c, (X, _, weight) = self.columns, self.held
        H = self.ops.gram(X, weight, c.centre, c.scale, c.fit_intercept, self.threads, *beta_and_spare)
        return c.matrix(H)

    def collapsed(self, fixed, n_chains):
        """The rows for a sampler that integrates the coefficients out. fixed : ``FixedPrior``."""
        c = self.columns
        return self.ops.CollapsedRows(
            self.X,
            self.y,
            c.order,
            c.centre + c.scale * c.mean[c.place],  # with an intercept the means of X's columns
            c.scale,
            c.mean if c.fit_intercept else None,
            fixed.variances,
            fixed.slab_precision,
            n_chains,
            self.threads,
        )

    def separated_by(self, beta):
        """Whether one of the rows of beta (m, q) puts every row of X on the side of its class."""
        blocks = [slice(start, start + _CHECKED_ROWS) for start in range(0, len(self.y), _CHECKED_ROWS)]
        points = self.columns.of_X(self.ops.to_host(beta))
        return any(all(self._on_their_sides(point, rows) for rows in blocks) for point in points)

    def _on_their_sides(self, point, rows):
        p = self.X.shape[1]
        intercept = point[p:] if self.columns.fit_intercept else np.zeros(1)
        upper = self.ops.mean_probability(self.held[0][rows], point[None, :p], intercept, self.threads, 64)[:, 1]
        return ((upper > 0.5) == self.y[rows]).all()

    def latent(self, beta, sweep, key):
        """X'z (n_chains, q) and z'z (n_chains,) for z drawn given beta. No weights: a fraction of a z has no law."""
        X, y, _ = self.held
        coef = self._translate.of_X(beta)
        xtz, ztz = self.ops.latent(X, y, coef, self.bounds, sweep, key, self.threads)
        return self._translate.gradient(xtz), ztz

    def score(self, beta):
        """Log-likelihood (n_chains,) and its gradient (n_chains, q) at beta."""
        coef = self._translate.of_X(beta)
        loglik, score = self.ops.score(*self.held, coef, self.bounds, self.threads)
        return loglik, self._translate.gradient(score)
