"""Where the rows live. A sampler asks them for X'X or the information once, and each sweep for X'z or the score."""

import numpy as np

_MAX_BLOCKS = 64
_MAX_SUMS = 2**20  # numbers in the blocks' sums, for a chain
_BLOCK_WORK = 2**18  # elements read in a block; less is not worth a thread
_CHECKED_ROWS = 4096  # looked at together; nearly always the first of them tell that the classes overlap
_DRAW_COST = 100  # a truncated normal takes as long as reading about this many elements


class Rows:
    """Rows in memory, each read once per question.

    X : (n, p) C-contiguous float32 or float64, not copied. y : (n,) uint8, 1 where the second class was seen.
    ops : the back end. threads : the threads to use.
    """

    def __init__(self, X, y, fit_intercept, ops, threads):
        self.X, self.y = X, y
        self.held = ops.hold(X, y)
        self.fit_intercept = fit_intercept
        self.ops = ops
        self.threads = threads
        # The layout depends on the shape of X alone: sums over rows have the same bits for any number of threads.
        n, p = X.shape
        work = n * (p + _DRAW_COST)
        n_blocks = min(_MAX_BLOCKS, n, work // _BLOCK_WORK, _MAX_SUMS // (p + 1))
        self.bounds = np.linspace(0, n, max(1, n_blocks) + 1).astype(np.int64)

    def base_rate(self):
        """Share of the second class, moved a little inwards so that it is never 0 or 1."""
        return (self.y.sum(dtype=np.int64) + 0.5) / (len(self.y) + 1)

    def gram(self):
        """X'X, bordered by the column of ones if there is an intercept; (q, q)."""
        return self.ops.gram(self.held[0], self.fit_intercept, self.threads)

    def information(self, beta, spare=()):
        """Fisher information of the probit likelihood, averaged over the rows of beta (m, q); (q, q).

        spare : matrices of that shape that may be overwritten.
        """
        return self.ops.gram(self.held[0], self.fit_intercept, self.threads, beta, spare)

    def separated_by(self, beta):
        """Whether one of the rows of beta (m, q) puts every row of X on the side of its class."""
        blocks = [slice(start, start + _CHECKED_ROWS) for start in range(0, len(self.y), _CHECKED_ROWS)]
        return any(all(self._on_their_sides(point, rows) for rows in blocks) for point in beta)

    def _on_their_sides(self, point, rows):
        p = self.X.shape[1]
        intercept = point[p:] if self.fit_intercept else np.zeros(1)
        upper = self.ops.mean_probability(self.held[0][rows], point[None, :p], intercept, self.threads, 64)[:, 1]
        return ((upper > 0.5) == self.y[rows]).all()

    def latent(self, beta, sweep, key):
        """X'z for z drawn given beta; (n_chains, q)."""
        return self.ops.latent(*self.held, beta, self.bounds, sweep, key, self.threads)

    def score(self, beta):
        """Log-likelihood (n_chains,) and its gradient (n_chains, q) at beta."""
        return self.ops.score(*self.held, beta, self.bounds, self.threads)
