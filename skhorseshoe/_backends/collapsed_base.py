"""Algebra of the size of the rows, for more columns than rows: V = I + X W X', P = V^-1, for each chain its own W.

W = diag(w) holds the prior variances of the coefficients: w_j = 1 / (tau^-2 lambda_j^-2 + c^-2) of the shrunk ones, and
fixed ones of the others. No matrix has the columns on both sides, and X is converted to float64 block by block.

``Collapsed`` is what all devices share. Arrays are those of the device; NumPy's functions, called with them, are the
device's own. ``CollapsedRows`` in ``_cpu/collapsed.py`` and ``_gpu/collapsed.py`` add what a device does by itself:

    xp                  the array library
    block               elements of a block of columns
    kept                elements of scaled columns up to which they are kept
    Precision           that of the back end
    _fill               a block of scaled columns
    _columns            single columns as rows, scaled; (len(which), n) float64
    _weighted           a block of columns times the roots of their weights; those without a weight may be left out
    _add_products       x x' to the triangle of a matrix that the next reads
    _invert             a symmetric matrix, in place; returns its log-determinant. Rounding can make a nearly singular
                        one indefinite: then a function that is given builds it again, and the diagonal is raised by a
                        share of itself
    _heaviest           the numbers of the heavy columns, the lightest first, perhaps after those of other columns
    _add_heavy          heavy columns join P
    _draw_heavy         their coefficients
    quadratic_form      z'Pz of each chain
    _information        of rows about their linear predictors
    _unfinished         the chains whose flag is set, or more; none where no flag is set, or an attempt later
    _draw_latent        z given its means, with the random numbers of a scan
    _scan_local_scales  lambda_j^-2, in place, given how close the columns are to z
    latent              z given the scales, beta integrated out, by scans over the rows; (n_chains, n)
    length              z with another length, given its direction and the scales
"""

from typing import NamedTuple

import numpy as np

from .density_of_tau import DensityOfTau
from .lines import LARGEST

_HEAVY = 1e6  # times the least scale of V: columns beyond are brought in one by one
_LEAST = 1e-280  # of lambda^-2, which can underflow
_WIDTH = 2.0  # of the slice in log tau


class Joined(NamedTuple):
    """The columns with huge weights, which joined a matrix P one by one, and what is left of that for their draws.

    which, weights, factors, precision : (m,). The columns, the lightest first, with their weights w_k; a weight of 0
    is that of a column which has not joined. With P_k the matrix after column k, and P_0 that before all of them,
    g_k = P_(k-1) x_k is row k of ``products`` (m, n), ``factors`` w_k / (1 + w_k x_k'g_k), so that
    P_k = P_(k-1) - factor g_k g_k', and ``precision`` is 1 / w_k + x_k'g_k: that of coefficient k given z and the
    coefficients of the columns after it.
    """

    which: object
    weights: object
    factors: object
    precision: object
    products: object


class Collapsed:
    """The rows for chains whose coefficients are integrated out.

    X : (n, p) float32 or float64. y : (n,) 1 where z is positive, else 0.
    order : (p,) X's columns in the order of the coefficients. centre, scale : (p,) in X's order; the columns here are
    (x - centre) / scale. anchor : (p,), or None without an intercept, which is the coefficient of a last column of ones
    less anchor . beta. variances : prior variances of the last columns, which are not shrunk. slab_precision : c^-2.
    X and y are on the device, the others on the host.
    """

    def __init__(self, X, y, order, centre, scale, anchor, variances, slab_precision, n_chains, threads):
        empty, place = self.xp.empty, self.xp.asarray
        self.X, self.y, self.threads = X, y, threads
        self.order, self.centre = place(order), place(centre)
        self.anchor = None if anchor is None else place(anchor)
        n_ones = 0 if anchor is None else 1
        self.root = place(np.append(1.0 / scale[order], np.ones(n_ones)))
        n, q = len(X), len(self.root)
        self.n_shrunk, self.slab_precision, self.n_chains = q - len(variances), slab_precision, n_chains
        self.step = max(64, self.block // n)
        self.starts = range(0, q, self.step)
        self.square, self.blocks = empty(q), {}
        for columns, block in self._blocks(self.starts):
            self.square[columns] = (block**2).sum(axis=0)
            if n * q <= self.kept:
                self.blocks[columns.start] = block.copy()
        self.w, self.light = empty((n_chains, q)), empty((n_chains, q))
        self.w[:, self.n_shrunk :] = place(variances)
        self.P, self.spare, self.log_det = empty((n_chains, n, n)), empty((n_chains, n, n)), empty(n_chains)
        self.moving = None if np.any(slab_precision) else empty((n_chains, n, n))  # the part of V that grows with tau^2
        self.joined = [None] * n_chains  # of the matrices that were made last

    # Draws -----------------------------------------------------------------------------------------------------------

    def set(self, lambda_sq_inv, tau_sq_inv):
        """Take the scales of the chains: lambda^-2 (n_chains, n_shrunk) and tau^-2 (n_chains,)."""
        self.w[:, : self.n_shrunk] = self.variances(lambda_sq_inv, tau_sq_inv)
        self.make(self.P, range(self.n_chains))

    def some_latent(self, beta):
        """z on the right sides, as far from zero as X beta; (n_chains, n)."""
        return (2.0 * self.y - 1.0) * abs(self.predictor(beta))

    def redrawn(self, beta, scan, sweep, key):
        """z given beta (n_chains, q) alone; (n_chains, n). scan : a number that no scan of ``latent`` has."""
        return self._draw_latent(self.predictor(beta), scan, sweep, key)

    def local_scales(self, z, lambda_sq_inv, tau_sq_inv, n_columns, index, sweep, key):
        """lambda_j^-2 of the n_columns columns whose direction is closest to z's, given z / |z| and tau; moves P along.

        Which columns depends on z / |z| alone, so that given it they are any fixed choice.
        """
        lambda_sq_inv = np.maximum(lambda_sq_inv, _LEAST)
        closeness = self._products(z)[:, : self.n_shrunk] ** 2 / np.maximum(self.square[: self.n_shrunk], _LEAST)
        n_columns = min(n_columns, self.n_shrunk)
        self._scan_local_scales(lambda_sq_inv, z, closeness, n_columns, tau_sq_inv, index, sweep, key)
        return lambda_sq_inv

    def global_scale(self, z, lambda_sq_inv, tau_sq_inv, tau_0, uniform, chances):
        """tau^-2, and the lambda_j^-2 that go with it, given z / |z|; a slice step in log tau. Moves P along.

        uniform : (n_chains, 2 + attempts), chances : (n_chains, n_shrunk), all uniform on (0, 1). Each column is held
        with probability h_j / (1 + h_j), h_j = lambda_j^2 tau^2 |x_j|^2 / ``HELD``: then lambda_j tau stays as tau
        moves, otherwise lambda_j does.
        """
        density = DensityOfTau(self, z, lambda_sq_inv, tau_sq_inv, tau_0, chances)
        growth = np.exp(2.0 * self._slice(density, uniform))
        self.P, self.spare = self.spare, self.P
        return tau_sq_inv / growth, self.xp.where(density.held, lambda_sq_inv * growth[:, None], lambda_sq_inv)

    def _slice(self, density, uniform):
        """A slice step from 0 in an interval of fixed length for each chain (Neal 2003); 0 if no attempt is in it.

        Chains that have come to their ends stay there while the others go on. The last evaluation of the density is
        where all of them end.
        """
        where, n_attempts = self.xp.where, uniform.shape[1] - 2
        log_level = density.now + np.log(uniform[:, 0])
        low = -_WIDTH * uniform[:, 1]
        high, shift, active = low + _WIDTH, 0.0 * low, low <= 0.0
        for k in range(n_attempts):
            chains = self._unfinished(active, k)
            if len(chains) == 0:
                return shift
            shift = where(active, low + (high - low) * uniform[:, 2 + k], shift)
            outside = active & ~(density(shift, chains) >= log_level)
            low, high = where(outside & (shift < 0), shift, low), where(outside & (shift >= 0), shift, high)
            active = outside
        shift = where(active, 0.0, shift)
        density(shift, self._unfinished(active, n_attempts))
        return shift

    def coefficients(self, z, prior_noise, row_noise):
        """beta given z and the scales (Bhattacharya, Chakraborty & Mallick 2016); (n_chains, q).

        P must be as ``set`` or ``global_scale`` has left it. prior_noise (n_chains, q), row_noise (n_chains, n) :
        standard normal. The coefficients of heavy columns are drawn first, the others integrated out: the formula for
        all at once is a difference of terms of the size of w, which loses all digits.
        """
        where, w, rest = self.xp.where, self.w.copy(), z.copy()
        apart, heavy = [(c, joined) for c, joined in enumerate(self.joined) if joined], []
        for c, joined in apart:
            heavy.append(self._draw_heavy(joined, rest[c], prior_noise[c, joined.which]))
            w[c, joined.which] = where(joined.weights > 0, 0.0, w[c, joined.which])
        u = np.sqrt(w) * prior_noise
        rest -= self._times(u) + row_noise
        inverse = times_each(self.P, rest)
        for c, (_, _, factors, _, products) in apart:  # without the heavy columns
            inverse[c] += (factors * (products @ rest[c])) @ products
        beta = u + w * self._products(inverse)
        for (c, joined), coef in zip(apart, heavy, strict=True):
            beta[c, joined.which] = where(joined.weights > 0, coef, beta[c, joined.which])
        if self.anchor is not None:
            beta[:, -1] -= beta[:, :-1] @ self.anchor
        return beta

    # Shrinkage -------------------------------------------------------------------------------------------------------

    def information(self, beta):
        """The Fisher information of each row, averaged over the rows of beta (m, q); (n,)."""
        return sum(map(self._information, self.predictor(beta))) / len(beta)

    def shrinkage(self, lambda_sq_inv, tau_sq_inv, information):
        """kappa_j = var(beta_j | y, scales) / var(beta_j | scales); (n_chains, n_shrunk).

        It is 1 - w_j x_j' (F^-1 + X W X')^-1 x_j, F the diagonal of the rows' Fisher information (n,).
        """
        out = self.xp.empty(self.w.shape)
        root = np.sqrt(information)
        self.w[:, : self.n_shrunk] = self.variances(lambda_sq_inv, tau_sq_inv)
        self.make(self.spare, range(self.n_chains), root)

        def make(first, last):
            for columns, block in self._blocks(self.starts):
                block = block * root[:, None]
                for c in range(first, last):
                    out[c, columns] = 1.0 - self.w[c, columns] * (block * (self.spare[c] @ block)).sum(axis=0)

        self.threads.run(make, self.n_chains)
        for c, joined in enumerate(self.joined):
            (at,) = ((),) if joined is None else (joined.weights > 0).nonzero()
            if len(at):
                out[c, joined.which[at]] = self._heavy_shrinkage(c, joined.which[at], root)
        return out[:, : self.n_shrunk]

    def _heavy_shrinkage(self, c, heavy, root):
        """The same for the heavy columns, of which the difference from 1 leaves nothing but rounding."""
        light = [(self.spare, self.light)], [c], root
        self.build(*light)
        self._invert(self.spare[c], lambda: self.build(*light))
        columns, d = self._columns(heavy) * root, 1.0 / self.w[c, heavy]
        return d * self.Precision(columns @ self.spare[c] @ columns.T, self.threads).inverse_diagonal(d[None], 0)[0]

    # The n x n matrices ----------------------------------------------------------------------------------------------

    def variances(self, lambda_sq_inv, tau_sq_inv):
        """w of the shrunk columns, from lambda^-2 and tau^-2."""
        least = self.square[: self.n_shrunk] / LARGEST
        precision = tau_sq_inv[:, None] * lambda_sq_inv + self.slab_precision
        return 1.0 / np.maximum(precision, np.maximum(least, 1.0 / LARGEST))

    def make(self, matrices, chains, row_root=None):
        """The inverse P of V for the w of each of these chains, with log|V|.

        matrices : those of all chains, overwritten. row_root : (n,) that multiplies the rows of X, or None.

        A few columns with huge weights would cost the others all digits in a Cholesky factor. They join P afterwards,
        one by one, with errors of the size of rounding. There are fewer of them than rows.
        """

        def fill(first, last):
            mine, light = chains[first:last], [(matrices, self.light)]
            heaviest = {c: self.choose(c) for c in mine}
            self.build(light, mine, row_root)
            for c in mine:
                self.finish(matrices, c, heaviest[c], lambda c=c: self.build(light, [c], row_root), row_root)

        self.threads.run(fill, len(chains))

    def choose(self, c):
        """The heavy columns of chain c; the roots of the others' weights are put into ``light``."""
        heavy, heaviest = self._heavy(self.w[c])
        self.light[c] = self.xp.where(heavy, 0.0, np.sqrt(self.w[c]))
        return heaviest

    def finish(self, matrices, c, heaviest, build, row_root=None):
        """From V of the light columns, which build() makes once more, to P and log|V| of all."""
        self.log_det[c] = self._invert(matrices[c], build)
        self.joined[c] = None
        if len(heaviest):
            self.log_det[c] += self._join(c, matrices[c], heaviest, row_root)

    def _heavy(self, w):
        """Which columns have huge weights beside the others, (q,) bool, and their numbers as ``_heaviest`` has them."""
        n, weight = len(self.X), w * self.square
        level = 1.0
        if len(weight) >= n:
            # Sorted, for that is a library's on a GPU; CuPy's partition is a kernel that no tool has checked for races.
            level = np.maximum(self.xp.sort(weight)[len(weight) - n], 1.0)
        heavy = weight > _HEAVY * level
        return heavy, self._heaviest(heavy, weight)

    def build(self, parts, chains, row_root=None):
        """Matrices for these chains, each with its columns' roots of weights (n_chains, q), whose sum is V; every block
        of columns is read once."""
        for k, (matrices, _) in enumerate(parts):
            for c in chains:
                matrices[c][...] = 0.0
                diagonal(matrices[c])[...] = k == 0
        memory = self.xp.empty(len(self.X) * min(self.step, len(self.root)))
        for columns, block in self._blocks(self.starts):
            if row_root is not None:
                block = block * row_root[:, None]
            for matrices, roots in parts:
                for c in chains:
                    self._add_products(self._weighted(block, roots[c, columns], memory), matrices[c])

    @staticmethod
    def _weighted(block, roots, memory):
        return np.multiply(block, roots, out=memory[: block.size].reshape(block.shape))

    def _join(self, c, P, which, row_root):
        """Have the heavy columns of chain c join P; returns the rise of log|V|."""
        w, columns = self.w[c, which], self._columns(which)
        weights = w * (self.light[c, which] == 0.0)
        if row_root is not None:
            columns *= row_root
        rise, *rest = self._add_heavy(c, P, columns, weights)
        self.joined[c] = Joined(which, weights, *rest)
        return rise

    # Products with X by blocks of columns ----------------------------------------------------------------------------

    def _blocks(self, starts):
        """Blocks of columns, scaled, (n, m) float64, to be read only. Those not kept are each in the memory of the one
        before."""
        q = len(self.root)
        memory = self.xp.empty(len(self.X) * min(self.step, q))
        for first in starts:
            m = min(self.step, q - first)
            if (block := self.blocks.get(first)) is None:
                block = memory[: len(self.X) * m].reshape(-1, m)
                self._fill(first, block)
            yield slice(first, first + m), block

    def predictor(self, beta):
        """X beta for beta (m, q); (m, n)."""
        if self.anchor is not None:
            beta = beta.copy()
            beta[:, -1:] += beta[:, :-1] @ self.anchor[:, None]
        return self._times(beta)

    def _times(self, beta):
        parts = self.xp.empty((len(self.starts), len(beta), len(self.X)))

        def multiply(first, last):
            for i, (columns, block) in enumerate(self._blocks(self.starts[first:last]), first):
                parts[i] = beta[:, columns] @ block.T

        self.threads.run(multiply, len(parts))
        return parts.sum(axis=0)

    def _products(self, rows):
        """X'r for rows r (m, n); (m, q)."""
        out = self.xp.empty((len(rows), len(self.root)))

        def multiply(first, last):
            for columns, block in self._blocks(self.starts[first:last]):
                out[:, columns] = rows @ block

        self.threads.run(multiply, len(self.starts))
        return out


def diagonal(matrix):
    """The diagonal of a contiguous matrix, to read and write."""
    return matrix.reshape(-1)[:: len(matrix) + 1]


def times_each(P, z):
    """P_c z_c for each chain c."""
    return (P @ z[:, :, None]).reshape(z.shape)
