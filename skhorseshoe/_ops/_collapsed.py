"""Algebra of the size of the rows, for more columns than rows: V = I + X W X', P = V^-1, for each chain its own W.

W = diag(w) holds the prior variances of the coefficients: w_j = 1 / (tau^-2 lambda_j^-2 + c^-2) of the shrunk ones, and
fixed ones of the others. No matrix has the columns on both sides, and X is converted to float64 block by block.

This is what all devices share. Arrays are those of the device; NumPy's functions, called with them, are the device's
own. ``_cpu_collapsed.py`` and ``_gpu_collapsed.py`` have the rest.
"""

import numpy as np

from . import JITTERS

_HEAVY = 1e6  # times the least scale of V: columns beyond are brought in one by one
_LEAST = 1e-280  # of lambda^-2, which can underflow
_LARGEST = 1e250  # of w_j |x_j|^2
_WIDTH = 2.0  # of the slice in log tau
_HELD = 100.0  # w_j |x_j|^2 at which a column is held half of the time while tau moves


class Collapsed:
    """The rows for chains whose coefficients are integrated out: ``CollapsedRows`` of each back end are its children.

    X : (n, p) float32 or float64. y : (n,) 1 where z is positive, else 0.
    order : (p,) X's columns in the order of the coefficients. centre, scale : (p,) in X's order; the columns here are
    (x - centre) / scale. anchor : (p,), or None without an intercept, which is the coefficient of a last column of ones
    less anchor . beta. variances : prior variances of the last columns, which are not shrunk. slab_precision : c^-2.
    X and y are on the device, the others on the host.
    """

    Precision = None  # of the back end, for the coefficients of heavy columns
    block = 0  # elements of a block of columns

    def __init__(self, X, y, order, centre, scale, anchor, variances, slab_precision, n_chains, threads):
        self.X, self.y, self.threads = X, y, threads
        self.order, self.centre = self._placed(order), self._placed(centre)
        self.anchor = None if anchor is None else self._placed(anchor)
        n_ones = 0 if anchor is None else 1
        n_shrunk = len(order) + n_ones - len(variances)
        self.root = self._placed(np.append(1.0 / scale[order], np.ones(n_ones)))
        self.n_shrunk, self.slab_precision, self.n_chains = n_shrunk, slab_precision, n_chains
        n, q = len(X), len(self.root)
        self.step = max(64, self.block // n)
        self.starts = range(0, q, self.step)
        self.square = self._empty(q)
        for columns, block in self._blocks(self.root, self.starts):
            self.square[columns] = (block**2).sum(axis=0)
        self.w = self._empty((n_chains, q))
        self.w[:, n_shrunk:] = self._placed(variances)
        self.P = self._empty((n_chains, n, n))
        self.spare = self._empty((n_chains, n, n))
        self.log_det = self._empty(n_chains)

    # The n x n matrices ----------------------------------------------------------------------------------------------

    def set(self, lambda_sq_inv, tau_sq_inv):
        """Take the scales of the chains: lambda^-2 (n_chains, n_shrunk) and tau^-2 (n_chains,)."""

        def some(first, last):
            for c in range(first, last):
                self.w[c, : self.n_shrunk] = self._variances(lambda_sq_inv[c], tau_sq_inv[c])
                self.log_det[c] = self._invert(self.w[c], self.P[c])

        self._run(some, self.n_chains)

    def _variances(self, lambda_sq_inv, tau_sq_inv):
        least = self.square[: self.n_shrunk] / _LARGEST
        return 1.0 / np.maximum(tau_sq_inv * lambda_sq_inv + self.slab_precision, np.maximum(least, 1.0 / _LARGEST))

    def _invert(self, w, P, row_root=None):
        """P = V^-1 in place, and log|V|; row_root : (n,) that multiplies the rows of X, or None.

        A few columns with huge weights would cost the others all digits in a Cholesky factor. They join P afterwards,
        one by one, with errors of the size of rounding. There are fewer of them than rows.
        """
        heavy = self._heavy(w)
        log_det = self._invert_light(w, heavy, P, row_root)
        if len(heavy):
            columns = self._columns(heavy)
            if row_root is not None:
                columns *= row_root
            log_det += self._add_heavy(P, columns, w[heavy])
        return log_det

    def _heavy(self, w):
        """Columns with huge weights beside the others, the lightest first."""
        n, weight = len(self.X), w * self.square
        level = 1.0
        if len(weight) >= n:
            level = np.maximum(self._smallest(weight, len(weight) - n), 1.0)
        (heavy,) = (weight > _HEAVY * level).nonzero()
        return heavy if len(heavy) < 2 else heavy[weight[heavy].argsort(kind="stable")]

    def _invert_light(self, w, heavy, P, row_root=None):
        """As ``_invert``, without the heavy columns."""
        root = self.root * np.sqrt(w)
        root[heavy] = 0.0
        diagonal = P.reshape(-1)[:: len(P) + 1]
        # Rounding can make a nearly singular matrix indefinite; then the diagonal is raised by a share of itself.
        for jitter in JITTERS:
            P[...] = 0.0
            diagonal[...] = 1.0
            for _, block in self._blocks(root, self.starts):
                if row_root is not None:
                    block *= row_root[:, None]
                self._add_products(block, P)
            diagonal *= 1.0 + jitter
            minor = self._factorise(P)
            if minor == 0:
                break
        else:
            raise np.linalg.LinAlgError(
                f"I + X W X' is not positive definite ({len(P)} rows, minor {minor}), even with its diagonal "
                f"raised by {JITTERS[-1]:g}. Some columns of X are very large: scale them (StandardScaler)."
            )
        log_det = 2.0 * np.log(diagonal).sum()
        self._invert_factor(P)
        return log_det

    # Products with X by blocks of columns ----------------------------------------------------------------------------

    def _blocks(self, root, starts):
        """Blocks of columns (n, m) times root (q,), float64, each in the memory of the one before."""
        memory = self._empty(len(self.X) * min(self.step, len(root)))
        for first in starts:
            m = min(self.step, len(root) - first)
            block = memory[: len(self.X) * m].reshape(-1, m)
            self._fill(root[first : first + m], first, block)
            yield slice(first, first + m), block

    def predictor(self, beta):
        """X beta for beta (m, q); (m, n)."""
        if self.anchor is not None:
            beta = beta.copy()
            beta[:, -1:] += beta[:, :-1] @ self.anchor[:, None]
        return self._times(beta)

    def _times(self, beta):
        parts = self._empty((len(self.starts), len(beta), len(self.X)))

        def some(first, last):
            for i, (columns, block) in enumerate(self._blocks(self.root, self.starts[first:last]), first):
                parts[i] = beta[:, columns] @ block.T

        self._run(some, len(parts))
        return parts.sum(axis=0)

    def _products(self, rows):
        """X'r for rows r (m, n); (m, q)."""
        out = self._empty((len(rows), len(self.root)))

        def some(first, last):
            for columns, block in self._blocks(self.root, self.starts[first:last]):
                out[:, columns] = rows @ block

        self._run(some, len(self.starts))
        return out

    # What a device does by itself ------------------------------------------------------------------------------------

    # Beside what follows, children have ``_empty`` (an array of this shape), ``_placed`` and ``_on_host`` (an array of
    # the host brought to the device, and the way back), ``_smallest`` (the k-th number of an array from below, counted
    # from 0), ``_run`` (as ``Threads.run``), ``_fill`` (a block of columns),
    # ``_add_products`` (to the triangle that the next reads), ``_factorise`` (in place; the minor that is not positive,
    # or 0), ``_invert_factor`` (the inverse, in place of the factor), ``_add_heavy`` (as the kernel ``add_heavy``),
    # ``_quadratic`` (z'Pz), ``_information`` (of rows about their linear predictors) and ``_scan_local_scales`` (given
    # how close the columns are to z, it draws in place).

    def _columns(self, which):
        """Single columns as rows, scaled; (len(which), n) float64."""
        raise NotImplementedError

    def latent(self, z, n_scans, index, sweep, key):
        """z given the scales, beta integrated out, by scans over the rows; (n_chains, n)."""
        raise NotImplementedError

    def length(self, z, index, sweep, key):
        """The length of z given its direction and the scales."""
        raise NotImplementedError

    # Draws -----------------------------------------------------------------------------------------------------------

    def some_latent(self, beta):
        """z on the right sides, as far from zero as X beta; (n_chains, n)."""
        return (2.0 * self.y - 1.0) * abs(self.predictor(beta))

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
        with probability h_j / (1 + h_j), h_j = lambda_j^2 tau^2 |x_j|^2 / ``_HELD``: then lambda_j tau stays as tau
        moves, otherwise lambda_j does.
        """
        lambda_sq_inv, tau_sq_inv, uniform = lambda_sq_inv.copy(), tau_sq_inv.copy(), self._on_host(uniform)

        def some(first, last):
            for c in range(first, last):
                move = _Move(self, c, z[c], lambda_sq_inv[c], tau_sq_inv[c], tau_0, chances[c])
                shift = _slice(move, uniform[c])
                tau_sq_inv[c] *= np.exp(-2.0 * shift)
                lambda_sq_inv[c, move.held] *= np.exp(2.0 * shift)
                move.take(shift)

        self._run(some, self.n_chains)
        return tau_sq_inv, lambda_sq_inv

    def coefficients(self, z, prior_noise, row_noise):
        """beta given z and the scales (Bhattacharya, Chakraborty & Mallick 2016); (n_chains, q).

        prior_noise (n_chains, q), row_noise (n_chains, n) : standard normal.
        """
        w, z, P, apart = self.w.copy(), z.copy(), list(self.P), []
        for c in range(self.n_chains):
            heavy = self._heavy(w[c])
            if len(heavy):
                coef, P[c] = self._heavy_coefficients(c, heavy, z[c], prior_noise[c, heavy]), self.spare[c]
                z[c] -= coef @ self._columns(heavy)
                w[c, heavy] = 0.0
                apart.append((c, heavy, coef))
        u = np.sqrt(w) * prior_noise
        v = self._times(u) + row_noise
        rest = z - v
        for c in range(self.n_chains):
            rest[c] = P[c] @ rest[c]
        beta = u + w * self._products(rest)
        for c, heavy, coef in apart:
            beta[c, heavy] = coef
        if self.anchor is not None:
            beta[:, -1] -= beta[:, :-1] @ self.anchor
        return beta

    def _heavy_coefficients(self, c, heavy, z, noise):
        """Coefficients of the heavy columns, the others integrated out; leaves P without these columns in ``spare``.

        The formula for all coefficients at once is a difference of terms of the size of w, which loses all digits.
        """
        P = self.spare[c]
        self._invert_light(self.w[c], heavy, P)
        columns = self._columns(heavy)
        projected = columns @ P
        precision = self.Precision(projected @ columns.T, self.threads)
        return precision.draw((projected @ z)[None], 1.0 / self.w[c, heavy][None], noise[None])[0]

    def information(self, beta):
        """The Fisher information of each row, averaged over the rows of beta (m, q); (n,)."""
        return sum(map(self._information, self.predictor(beta))) / len(beta)

    def shrinkage(self, lambda_sq_inv, tau_sq_inv, information):
        """kappa_j = var(beta_j | y, scales) / var(beta_j | scales); (n_chains, n_shrunk).

        It is 1 - w_j x_j' (F^-1 + X W X')^-1 x_j, F the diagonal of the rows' Fisher information (n,).
        """
        out = self._empty(self.w.shape)
        root = np.sqrt(information)

        def some(first, last):
            for c in range(first, last):
                w, P = self.w[c], self.spare[c]
                w[: self.n_shrunk] = self._variances(lambda_sq_inv[c], tau_sq_inv[c])
                self._invert(w, P, root)
                for columns, block in self._blocks(self.root, self.starts):
                    block *= root[:, None]
                    out[c, columns] = 1.0 - w[columns] * (block * (P @ block)).sum(axis=0)

        self._run(some, self.n_chains)
        for c in range(self.n_chains):
            heavy = self._heavy(self.w[c])
            if len(heavy):
                out[c, heavy] = self._heavy_shrinkage(c, heavy, root)
        return out[:, : self.n_shrunk]

    def _heavy_shrinkage(self, c, heavy, root):
        """The same for the heavy columns, of which the difference from 1 leaves nothing but rounding."""
        P, d = self.spare[c], 1.0 / self.w[c, heavy]
        self._invert_light(self.w[c], heavy, P, root)
        columns = self._columns(heavy) * root
        return d * self.Precision(columns @ P @ columns.T, self.threads).inverse_diagonal(d[None], 0)[0]


class _Move:
    """Log-density of a shift of log tau for one chain, beta and the length of z integrated out; the columns that are
    held keep lambda_j tau."""

    def __init__(self, rows, c, z, lambda_sq_inv, tau_sq_inv, tau_0, chances):
        self.rows, self.c, self.z = rows, c, z
        self.lambda_sq_inv, self.tau_sq_inv, self.tau_0 = lambda_sq_inv, tau_sq_inv, tau_0
        variances = 1.0 / np.maximum(lambda_sq_inv * tau_sq_inv, 1.0 / _LARGEST)
        self.odds = np.minimum(variances * rows.square[: rows.n_shrunk] / _HELD, _LARGEST)
        is_held = chances * (1.0 + self.odds) < self.odds
        (self.held,), (self.free,) = is_held.nonzero(), (~is_held).nonzero()
        self.bound = variances[self.free] * rows.slab_precision
        self.w, self.log_det = rows.w[c].copy(), None
        self.now = self._value(0.0, rows.P[c], rows.log_det[c])

    def __call__(self, shift):
        rows, free = self.rows, self.free
        w = rows._variances(self.lambda_sq_inv, self.tau_sq_inv * np.exp(-2.0 * shift))
        self.w[free] = w[free]
        self.log_det = rows._invert(self.w, rows.spare[self.c])
        return self._value(shift, rows.spare[self.c], self.log_det)

    def _value(self, shift, P, log_det):
        ratio = np.exp(-2.0 * shift) * self.tau_sq_inv * self.tau_0**2  # tau_0^2 / tau^2
        prior = -0.5 * np.log(ratio) - np.log1p(1.0 / ratio)  # of log tau
        held = self.lambda_sq_inv[self.held]
        prior += _log_prior(held * np.exp(2.0 * shift)).sum()  # of log lambda_j = log psi_j - log tau
        prior -= 0.5 * np.log1p(self.bound * np.exp(2.0 * shift)).sum()  # the slab, beta integrated out
        choice = -np.log1p(self.odds[self.free] * np.exp(2.0 * shift)).sum()  # of which columns are held
        return float(prior + choice - 0.5 * log_det - 0.5 * len(P) * np.log(self.rows._quadratic(P, self.z)))

    def take(self, shift):
        """Make the scales at the last shift that was evaluated, or 0, those of the chain."""
        if shift == 0.0:
            return
        rows, c = self.rows, self.c
        rows.w[c] = self.w
        rows.log_det[c] = self.log_det
        rows.P[c] = rows.spare[c]


def _log_prior(lambda_sq_inv):
    """log p(log lambda) of lambda ~ C+(0, 1), up to a constant."""
    return 0.5 * np.log(lambda_sq_inv) - np.log1p(lambda_sq_inv)


def _slice(move, uniform):
    """A slice step from 0 in an interval of fixed length (Neal 2003); 0 if no attempt is in the slice."""
    level = move.now + np.log(uniform[0])
    low = -_WIDTH * uniform[1]
    high = low + _WIDTH
    for u in uniform[2:]:
        shift = low + (high - low) * u
        if move(shift) >= level:
            return shift
        low, high = (shift, high) if shift < 0 else (low, shift)
    return 0.0


def closest(closeness, n_columns):
    """Numbers of the n_columns largest along the last axis, in their order; of equals, the first."""
    which = (-closeness).argsort(axis=-1, kind="stable")[..., :n_columns].copy()
    which.sort()
    return which
