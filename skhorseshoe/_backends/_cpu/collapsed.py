"""``CollapsedRows`` on the CPU: chains and blocks of columns are shared among threads. Its kernels are for one chain.

V = I + X W X', W = diag(w) the prior variances of the coefficients, P = V^-1, so that z ~ N(0, V) on the side of y.
P follows each change of one w_j by the formula of Sherman & Morrison.
"""

import math

import numpy as np
from numba import uint32

from ..._utils.memmap import check_whole
from .. import JITTERS, LATENT, LENGTH, LOCAL_SLICE, rows_not_definite
from ..collapsed_base import Collapsed, diagonal
from ..constants import (
    IN_THE_SPAN,
    LARGEST_TERM,
    LEAST_PRECISION,
    LOCAL_WIDTH,
    MOST_INFORMED,
    ROUNDING,
    SCAN_ATTEMPTS,
    SCAN_BLOCKS,
)
from ..limits import KEPT
from .arithmetic import add_square, dot
from .gaussian import Precision
from .jit import device, kernel
from .lapack import ROUTINES, UPPER, add_products, cholesky, invert
from .normal_tail import fisher_weight
from .philox import exponential_1, gamma_1, philox, stream, unit
from .truncated_normal import truncated_normal


class CollapsedRows(Collapsed):
    """As ``Collapsed``; X : (n, p) float32 or float64."""

    xp = np
    Precision = Precision
    block, kept = 2**17, KEPT
    _information = staticmethod(fisher_weight)

    @staticmethod
    def _unfinished(flags, attempt):
        return flags.nonzero()[0]

    @staticmethod
    def _heaviest(heavy, weight):
        (which,) = heavy.nonzero()
        return which[weight[which].argsort(kind="stable")]

    def _fill(self, first, block):
        check_whole(self.X)
        fill_columns(self.X, self.order, self.centre, self.root[first:], first, block)

    def _columns(self, which):
        out = np.ones((len(which), len(self.X)))
        inside = which < len(self.order)
        j = self.order[which[inside]]
        check_whole(self.X)
        out[inside] = ((self.X[:, j] - self.centre[j]) * self.root[which[inside]]).T
        return out

    @staticmethod
    def _weighted(block, roots, memory):
        (some,) = roots.nonzero()
        if 2 * len(some) < len(roots):
            block, roots = block.take(some, axis=1), roots[some]
        return Collapsed._weighted(block, roots, memory)

    @staticmethod
    def _add_products(block, P):
        if block.size:
            add_products(block, P, of_columns=False, routines=ROUTINES)

    def _invert(self, P, build):
        self._factorise(P, build)
        log_det = 2.0 * np.log(diagonal(P)).sum()
        invert(P, ROUTINES)
        return log_det

    @staticmethod
    def _factorise(P, build):
        for jitter in JITTERS:
            if jitter:
                build()
            diagonal(P)[...] *= 1.0 + jitter
            minor = cholesky(P, UPPER, ROUTINES)
            if minor == 0:
                return
        raise rows_not_definite(len(P), minor)

    @staticmethod
    def _add_heavy(c, P, columns, weights):
        factors, precision, products = *np.empty((2, len(weights))), np.empty(columns.shape)
        return add_heavy(P, columns, weights, factors, precision, products), factors, precision, products

    def _draw_heavy(self, joined, rest, noise):
        coef = np.empty(len(noise))
        draw_heavy(self._columns(joined.which), joined.precision, joined.products, noise, rest, coef)
        return coef

    @staticmethod
    def quadratic_form(P, z):
        return np.array([quadratic(*each) for each in zip(P, z, strict=True)])

    def latent(self, z, n_scans, index, sweep, key):
        z = z.copy()

        def scan(first, last):
            for c in range(first, last):
                scan_latent(z[c], self.P[c], self.y, n_scans, n_scans * index, c, sweep, *key)

        self.threads.run(scan, self.n_chains)
        return z

    def _draw_latent(self, mean, scan, sweep, key):
        z = np.empty(mean.shape)
        draw_latent(mean, self.y, scan, sweep, *key, z)
        return z

    def length(self, z, index, sweep, key):
        z = z.copy()
        for c in range(self.n_chains):
            scale_latent(z[c], self.P[c], index, c, sweep, *key)
        return z

    def _scan_local_scales(self, lambda_sq_inv, z, closeness, n_columns, tau_sq_inv, index, sweep, key):
        def scan(first, last):
            for c in range(first, last):
                which = closest(closeness[c], n_columns)
                given = lambda_sq_inv[c], self.w[c], self.P[c], z[c], which, self._columns(which), tau_sq_inv[c]
                self.log_det[c] += scan_local_scales(*given, self.slab_precision, index, c, sweep, *key)

        self.threads.run(scan, self.n_chains)


def closest(closeness, n_columns):
    """Numbers of the n_columns largest, in their order; of equals, the first."""
    least = np.partition(closeness, -n_columns)[-n_columns]
    chosen = closeness > least
    chosen[(closeness == least).nonzero()[0][: n_columns - chosen.sum()]] = True
    return chosen.nonzero()[0]


@kernel
def fill_columns(X, order, centre, root, first, out):
    """out[i, k] = (X[i, j] - centre[j]) root[k] with j = order[first + k]; X continues with a column of ones.

    X (n, p) of either type, order (p,), centre (p,), root (m,), out (n, m) float64.
    """
    m = out.shape[1]
    inside = max(0, min(m, order.shape[0] - first))
    for i in range(out.shape[0]):
        for k in range(inside):
            j = order[first + k]
            out[i, k] = (X[i, j] - centre[j]) * root[k]
        for k in range(inside, m):
            out[i, k] = root[k]


@kernel
def quadratic(P, z):
    """z'Pz, never below its rounding error."""
    total, size = 0.0, 0.0
    for i in range(z.shape[0]):
        total += z[i] * dot(P[i], z)
        size += P[i, i] * z[i] * z[i]
    return max(total, ROUNDING * size)


@kernel
def add_heavy(P, columns, weights, factors, precision, products):
    """P after the columns (m, n) join one by one with these weights, of any size; returns the rise of log|V|.

    factors, precision (m,), products (m, n) : overwritten, as in ``Joined``. A column that lies among those before it,
    as far as rounding can tell, adds nothing to what their weights say. About its coefficient the data are then taken
    to say as much as rounding does, so that coefficients of the same columns do not drive each other away.
    """
    rise = 0.0
    before = np.diag(P).copy()
    for k in range(columns.shape[0]):
        x, g = columns[k], products[k]
        size = 0.0
        for i in range(g.shape[0]):
            g[i] = dot(P[i], x)
            size += x[i] * x[i] * before[i]
        s = dot(g, x)
        if s > IN_THE_SPAN * size:
            factors[k], precision[k] = weights[k] / (1.0 + weights[k] * s), 1.0 / weights[k] + s
            add_square(P, -factors[k], g)
            rise += math.log1p(weights[k] * s)
        else:
            factors[k], precision[k] = 0.0, 1.0 / weights[k] + IN_THE_SPAN * size
    for i in range(before.shape[0]):
        P[i, i] = max(P[i, i], ROUNDING * before[i])
    return rise


@kernel
def draw_heavy(columns, precision, products, noise, rest, coef):
    """Coefficients of the columns that joined P, given z and integrated over all others; coef (m,), overwritten.

    The last to join comes first: its law has those before it integrated out, as has the P that it joined. rest : (n,),
    z, of which each column takes its part. noise : (m,) standard normal.
    """
    for k in range(coef.shape[0] - 1, -1, -1):
        coef[k] = dot(products[k], rest) / precision[k] + noise[k] / math.sqrt(precision[k])
        for i in range(rest.shape[0]):
            rest[i] -= coef[k] * columns[k, i]


@kernel
def scan_latent(z, P, y, n_scans, first, chain, sweep, k0, k1):
    """z_i ~ N(z_i - (Pz)_i / P_ii, 1 / P_ii) on the side of y_i, one after the other (Holmes & Held 2006); in place.

    first : number of the first scan of this sweep, of ``n_scans``.
    """
    n, Pz = z.shape[0], np.empty(z.shape[0])
    for i in range(n):
        Pz[i] = dot(P[i], z)
    st = stream(chain, LATENT, 0)
    for scan in range(first, first + n_scans):
        for i in range(n):
            sd = 1.0 / math.sqrt(P[i, i])
            mean = z[i] / sd - Pz[i] * sd
            side = 1.0 if y[i] else -1.0
            new = side * sd * truncated_normal(side * mean, z, SCAN_BLOCKS * scan, uint32(sweep), i, st, k0, k1)
            change = new - z[i]
            z[i] = new
            for j in range(n):
                Pz[j] += P[i, j] * change


@kernel
def draw_latent(mean, y, scan, sweep, k0, k1, z):
    """z_i ~ N(mean_i, 1) on the side of y_i; (n_chains, n). scan : whose random numbers these are."""
    for c in range(mean.shape[0]):
        st = stream(c, LATENT, 0)
        for i in range(mean.shape[1]):
            side = 1.0 if y[i] else -1.0
            z[c, i] = side * truncated_normal(side * mean[c, i], z, SCAN_BLOCKS * scan, uint32(sweep), i, st, k0, k1)


@kernel
def scale_latent(z, P, index, chain, sweep, k0, k1):
    """The length of z given its direction and the scales: z'Pz has the law Gamma(n/2, 1/2); in place."""
    drawn = gamma_1(z.shape[0] / 2.0, uint32(sweep), index, stream(chain, LENGTH, 0), k0, k1)
    z *= math.sqrt(2.0 * drawn / quadratic(P, z))


@kernel
def scan_local_scales(lambda_sq_inv, w, P, z, which, columns, tau_sq_inv, slab_precision, n_th, chain, sweep, k0, k1):
    """lambda_j for each j of ``which``, one after the other, beta and the length of z integrated out; in place.

    With column j left out, s = x_j' P x_j, r = x_j' P z and Q = z'Pz, the law of lambda_j is proportional to

        (1 + w s)^(-1/2) (Q - w r^2 / (1 + w s))^(-n/2) (1 + lambda_j^2 tau^2 / c^2)^(-1/2) / (1 + lambda_j^2),

    w = 1 / (tau^-2 lambda_j^-2 + c^-2). The third factor is the density of the slab's "0 seen with error c", beta_j
    integrated out.

    A slice step in log lambda_j. Where w s or its terms are too large, s is lost to rounding: such a lambda_j stays,
    and none goes there. columns : (m, n), those of ``which``. n_th : number of this scan in the sweep. Returns the
    change of log|V|.
    """
    st = stream(chain, LOCAL_SLICE, 0)
    n, g = z.shape[0], np.empty(z.shape[0])
    Q, rise, trace = quadratic(P, z), 0.0, np.trace(P)
    for k in range(which.shape[0]):
        j, x = which[k], columns[k]
        for i in range(n):
            g[i] = dot(P[i], x)
        s, r = max(dot(g, x), 0.0), dot(g, z)
        left = 1.0 - w[j] * s
        if left * (1.0 + MOST_INFORMED) < 1.0:
            continue
        s_without, r_without, g_square = s / left, r / left, dot(g, g)
        largest = LARGEST_TERM / max(dot(x, x) * (trace + w[j] * g_square / left), LEAST_PRECISION)
        largest = min(largest, MOST_INFORMED / max(s_without, LEAST_PRECISION))
        if w[j] > largest:
            continue
        q_without = Q + w[j] * r * r_without
        now = -0.5 * math.log(lambda_sq_inv[j])
        d = max(tau_sq_inv * lambda_sq_inv[j], LEAST_PRECISION)
        level = _log_density(now, w[j], slab_precision / d, s_without, r_without, q_without, n)
        level -= exponential_1(uint32(SCAN_ATTEMPTS * n_th), uint32(sweep), uint32(j), st, k0, k1)
        low, high = now, now
        for attempt in range(SCAN_ATTEMPTS * n_th + 1, SCAN_ATTEMPTS * n_th + 400):
            a, b, c, d = philox(uint32(attempt), uint32(sweep), uint32(j), st, k0, k1)
            if high == low:
                low = now - LOCAL_WIDTH * unit(a, b)
                high = low + LOCAL_WIDTH
            proposed = low + (high - low) * unit(c, d)
            precision = math.exp(-2.0 * proposed)
            d = max(tau_sq_inv * precision, LEAST_PRECISION)
            weight, bound = 1.0 / (d + slab_precision), slab_precision / d
            if weight <= largest and _log_density(proposed, weight, bound, s_without, r_without, q_without, n) >= level:
                change = weight - w[j]
                factor = change / (1.0 + change * s)
                add_square(P, -factor, g)
                Q = max(Q - factor * r * r, ROUNDING * Q)
                trace -= factor * g_square
                rise += math.log1p(change * s)
                lambda_sq_inv[j], w[j] = precision, weight
                break
            if proposed < now:
                low = proposed
            else:
                high = proposed
    return rise


@device
def _log_density(log_lambda, w, bound, s, r, q, n):
    """bound : lambda^2 tau^2 / c^2."""
    informed = 1.0 + w * s
    explained = min(w * r * r / (informed * q), 1.0 - ROUNDING)
    size = abs(log_lambda)
    prior = -size - math.log1p(math.exp(-2.0 * size))  # of log lambda, lambda ~ C+(0, 1)
    return prior - 0.5 * math.log(informed) - 0.5 * math.log1p(bound) - 0.5 * n * math.log1p(-explained)
