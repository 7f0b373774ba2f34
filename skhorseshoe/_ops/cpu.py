"""The back end for the CPU: NumPy arrays, kernels compiled by Numba, LAPACK from SciPy.

Every array that describes the chains has them as its leading axis. Arrays of size p are float64.
"""

import ctypes
import math

import numpy as np
from numba import uint32
from numba.extending import get_cython_function_address
from scipy.linalg.blas import dtrsv
from scipy.linalg.lapack import dpotri
from scipy.special import log_ndtr

from ._jit import REORDER_SUMS, jit
from ._normal import upper_tail
from ._passes import latent_pass
from ._philox import exponential_1, gamma_1, normal_and_unit, stream

empty_like = np.empty_like

_DRAWS = 256  # of a row, whose probabilities are computed together

_GRAM_BLOCK = 2**20  # elements of X converted to float64 at a time
_LOG_TAU = math.log(2 * math.pi)
_GRAM_PARTS = 2  # partial sums; a constant, so that the sum does not depend on the number of threads


def latent(X, y, coef, bounds, sweep, key, threads):
    """X'z (and 1'z) for z_i ~ N(x_i beta, 1) truncated to the side of y_i; (n_chains, q) float64.

    One pass over X. ``bounds`` are the blocks of rows whose sums are added in order, so the result does not
    depend on the number of threads.
    """
    n_blocks = len(bounds) - 1
    coef = coef.astype(X.dtype, copy=False)
    sums = np.empty((n_blocks, *coef.shape))
    threads.run(lambda first, last: latent_pass(X, y, coef, bounds, first, last, sweep, *key, sums), n_blocks)
    return sums[0] if n_blocks == 1 else sums.sum(axis=0)


def gram(X, fit_intercept, threads, beta=None):
    """X'X, bordered by the column of ones if there is an intercept; (q, q) float64, summed in float64.

    With beta (q,) it is the Fisher information of the probit likelihood there: X' diag(w) X,
    w = phi(eta)^2 / (Phi(eta) Phi(-eta)), eta = X beta.
    """
    n, p = X.shape
    q = p + fit_intercept
    step = max(64, _GRAM_BLOCK // q)
    parts = np.zeros((min(_GRAM_PARTS, -(-n // step)), q, q))
    edges = np.linspace(0, n, len(parts) + 1).astype(int)

    def add(first, last):
        block = np.empty((min(step, n), q))
        for part in range(first, last):
            for start in range(edges[part], edges[part + 1], step):
                rows = block[: min(step, edges[part + 1] - start)]
                rows[:, p:] = 1.0
                rows[:, :p] = X[start : start + len(rows)]
                if beta is not None:
                    eta = rows @ beta
                    rows *= np.exp(-0.5 * (eta**2 + _LOG_TAU + log_ndtr(eta) + log_ndtr(-eta)))[:, None]
                parts[part] += rows.T @ rows

    with np.errstate(over="ignore", invalid="ignore"):  # the caller looks whether all is finite
        threads.run(add, len(parts))
        return parts[0] if len(parts) == 1 else parts.sum(axis=0)


class Precision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), for each chain its own b and d.

    H : (q, q) float64, symmetric positive semi-definite.
    """

    def __init__(self, H, threads):
        self.threads = threads
        # Chains are shared out only where a factorisation outweighs the handover.
        self.workers = [_Cholesky(H) for _ in range(threads.n if len(H) >= 128 else 1)]

    def draw(self, b, d, noise):
        """beta_c = Q_c^-1 b_c + L_c^-T noise_c with Q_c = L_c L_c'; all (n_chains, q) float64."""
        beta = np.empty_like(b)

        def some(first, last):
            for c in range(first, len(b), len(self.workers)):
                factor = self.workers[first].factorise(d[c])
                half = dtrsv(factor, b[c], lower=1)
                half += noise[c]
                beta[c] = dtrsv(factor, half, lower=1, trans=1, overwrite_x=1)

        self.threads.run(some, len(self.workers))
        return beta

    def inverse_diagonal(self, d):
        """The diagonal of Q_c^-1; (n_chains, q)."""
        out = np.empty_like(d)
        for c in range(len(d)):
            inverse, _ = dpotri(self.workers[0].factorise(d[c]), lower=1, overwrite_c=1)
            out[c] = np.diag(inverse)
        return out


class _Cholesky:
    """Lower Cholesky factors of H + diag(d), one after the other in the same memory."""

    # SciPy's own wrapper of this routine holds the GIL; through ctypes the chains run side by side.
    _potrf = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(
        get_cython_function_address("scipy.linalg.cython_lapack", "dpotrf")
    )

    def __init__(self, H):
        self.H = H
        self.work = np.empty_like(H)
        self.diagonal = self.work.reshape(-1)[:: len(H) + 1]
        self.factor = self.work.T  # what is column by column for LAPACK is row by row here
        self.order, self.info = ctypes.c_int(len(H)), ctypes.c_int(0)
        order = ctypes.byref(self.order)
        self.arguments = b"L", order, self.work.ctypes.data, order, ctypes.byref(self.info)

    def factorise(self, d):
        """The factor, in Fortran order; its upper triangle is not cleared, and the next call overwrites it.

        Rounding can make a nearly singular matrix indefinite. The diagonal is then raised by as little as helps, at
        most 1e-6 of itself: what that changes is the prior of a direction that the data do not determine.
        """
        for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6):
            self.work[...] = self.H
            self.diagonal += d
            if jitter:
                self.diagonal *= 1.0 + jitter
            self._potrf(*self.arguments)
            if self.info.value == 0:
                return self.factor
        raise np.linalg.LinAlgError(
            f"X'X + D is not positive definite ({len(d)} columns, minor {self.info.value}), even with its diagonal "
            "raised by 1e-6. Some columns of X are very large or nearly equal: scale them (StandardScaler) or drop one."
        )


def normal(shape, key, sweep, purpose):
    """Independent N(0, 1); (n_chains, m) float64."""
    out = np.empty(shape)
    _fill_normal(out, sweep, purpose, *key)
    return out


def exponential(rate, key, sweep, purpose):
    """Exponential with the given rates; rate (n_chains, m) or (n_chains,), float64, positive."""
    out = np.empty_like(rate)
    _fill_exponential(rate.reshape(len(rate), -1), out.reshape(len(rate), -1), sweep, purpose, *key)
    return out


def gamma(shape, rate, key, sweep, purpose):
    """Gamma with one shape >= 1 and a rate for each chain; rate (n_chains,) float64, positive."""
    out = np.empty_like(rate)
    _fill_gamma(shape, rate, out, sweep, purpose, *key)
    return out


@jit
def _fill_normal(out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j], _ = normal_and_unit(0, uint32(sweep), j, st, k0, k1)


@jit
def _fill_exponential(rate, out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j] = exponential_1(0, uint32(sweep), j, st, k0, k1) / rate[c, j]


@jit
def _fill_gamma(shape, rate, out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        out[c] = gamma_1(shape, uint32(sweep), 0, stream(c, purpose, 0), k0, k1) / rate[c]


def mean_probability(X, coef, intercept, threads, block_rows):
    """Averages over draws of Phi(-eta) and Phi(eta), eta = intercept + coef x; (n, 2) float64.

    coef : (n_draws, p), intercept : (n_draws,). Every block has ``block_rows`` rows, the last one padded, so
    that the matrix product treats a row in the same way whatever rows come with it.
    """
    n, p = X.shape
    out = np.empty((n, 2))

    def some(first, last):
        rows = np.zeros((block_rows, p))
        eta = np.empty((block_rows, len(coef)))
        for start in range(first * block_rows, min(n, last * block_rows), block_rows):
            stop = min(n, start + block_rows)
            rows[: stop - start] = X[start:stop]
            np.matmul(rows, coef.T, out=eta)
            _mean_phi(eta[: stop - start], intercept, out[start:stop])

    threads.run(some, -(-n // block_rows))
    return out


@jit
def _mean_phi(eta, intercept, out):
    """Both tails are summed, so that a small probability keeps its relative accuracy; eta is overwritten."""
    n_draws = eta.shape[1]
    tail, scratch = np.empty(_DRAWS), np.empty(_DRAWS)
    for i in range(eta.shape[0]):
        lower, upper = 0.0, 0.0
        for start in range(0, n_draws, _DRAWS):
            stop = min(n_draws, start + _DRAWS)
            t = eta[i, start:stop]
            for s in range(stop - start):
                t[s] += intercept[start + s]
            upper_tail(t, scratch, tail)
            below, above = _sum_tails(t, tail)
            lower += below
            upper += above
        out[i, 0] = lower / n_draws
        out[i, 1] = upper / n_draws


@jit(fastmath=REORDER_SUMS)
def _sum_tails(t, tail):
    """Sums of Phi(-t) and Phi(t) from P(N > |t|)."""
    lower, upper = 0.0, 0.0
    for s in range(t.shape[0]):
        lower += tail[s] if t[s] > 0.0 else 1.0 - tail[s]
        upper += 1.0 - tail[s] if t[s] > 0.0 else tail[s]
    return lower, upper
