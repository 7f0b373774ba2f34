"""Gaussians with precision H + diag(d), a different d for each chain, by Cholesky factors."""

import ctypes

import numpy as np
from scipy.linalg.blas import dtrmm, dtrmv, dtrsv
from scipy.linalg.lapack import dpotri

from . import COEF, JITTERS, LEAST_REST, log_half_cauchy, not_definite
from ._lapack import potrf, solve_lower
from ._local_moves import move_local_scales

_SHARED_SIZE = 128  # of a matrix whose factorisation outweighs handing a chain to another thread


class Precision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), for each chain its own b and d.

    H : (q, q) float64, symmetric positive semi-definite.
    """

    def __init__(self, H, threads, memory_of=None, n_workers=None):
        """memory_of : another Precision of the same size, never used between two uses of this one's results.
        n_workers : threads that factorise, each of which takes a matrix; all by default."""
        self.H = H
        self.threads = threads
        n_workers = (n_workers or threads.n) if len(H) >= _SHARED_SIZE else 1
        self.work = [np.empty_like(H) for _ in range(n_workers)] if memory_of is None else memory_of.work
        self.workers = [_Cholesky(H, work) for work in self.work]

    def begin(self, d):
        """``draw`` with this very d comes next: what can be computed before its b is known may begin. Nothing here."""

    @staticmethod
    def noise(ops, shape, key, sweep):
        """What ``draw`` takes for randomness."""
        return ops.normal(shape, key, sweep, COEF)

    def draw(self, b, d, noise, total=None, gamma=None):
        """beta_c = g_c Q_c^-1 b_c + L_c^-T noise_c with Q_c = L_c L_c'; (n_chains, q) float64, as b, d and noise.

        g_c is 1, or with total and gamma (n_chains,) that of g_c^2 = 2 gamma_c / (total_c - b_c' Q_c^-1 b_c).
        """
        beta = np.empty_like(b)

        def one(w, c):
            factor = self.workers[w].factorise(d[c])
            half = dtrsv(factor, b[c], lower=1)
            if total is not None:
                rest = total[c] - half @ half
                if rest > LEAST_REST * total[c]:
                    half *= np.sqrt(2.0 * gamma[c] / rest)
            half += noise[c]
            beta[c] = dtrsv(factor, half, lower=1, trans=1, overwrite_x=1)

        _share_out(self.threads, self.workers, len(b), one)
        return beta

    def inverse_diagonal(self, d, sweep):
        """The diagonal of Q_c^-1; (n_chains, q). sweep : for those who need random numbers for it."""
        out = np.empty_like(d)
        for c in range(len(d)):
            inverse, _ = dpotri(self.workers[0].factorise(d[c]), lower=1, overwrite_c=1)
            out[c] = np.diag(inverse)
        return out


class _Cholesky:
    """Lower Cholesky factors of H + diag(d), one after the other in the same memory."""

    def __init__(self, H, work=None):
        self.H = H
        self.work = np.empty_like(H) if work is None else work
        self.diagonal = self.work.reshape(-1)[:: len(H) + 1]
        self.factor = self.work.T  # what is column by column for LAPACK is row by row here
        self.order, self.info = ctypes.c_int(len(H)), ctypes.c_int(0)
        order = ctypes.byref(self.order)
        self.arguments = b"L", order, self.work.ctypes.data, order, ctypes.byref(self.info)

    def factorise(self, d):
        """The factor, in Fortran order; its upper triangle is not cleared, and the next call overwrites it.

        Rounding can make a nearly singular matrix indefinite. The diagonal is then raised by as little as helps.
        """
        for jitter in JITTERS:
            self.work[...] = self.H
            self.diagonal += d
            if jitter:
                self.diagonal *= 1.0 + jitter
            potrf(*self.arguments)
            if self.info.value == 0 and self.diagonal[-1] > 0.0:  # OpenBLAS lets NaN pass, which reaches the last
                return self.factor
        raise not_definite(len(self.H), self.info.value or len(self.H))


class Root:
    """L with L L' = H, for Gaussians with covariance H (q, q), which is positive semi-definite."""

    def __init__(self, H):
        self.factor = _Cholesky(H).factorise(0.0)

    def times(self, x):
        """L x_c; x (m, q)."""
        return dtrmm(1.0, self.factor, x.T, lower=1).T


class Whitening:
    """For each chain N(m, M^-1) with M = H + diag(d) = L L' and m = M^-1 b, in the coordinates u = L'(beta - m).

    H : (q, q) float64. b : (q,) float64. The first p of d are the prior precisions of the shrunk coefficients.
    """

    def __init__(self, H, b, n_chains, p, threads, memory_of=None):
        """memory_of : a Precision of the same size, which is not used while this computes."""
        self.threads = threads
        self.H = H
        self.p = p
        self.b = b
        self.factors = [_Cholesky(H) for _ in range(n_chains)]
        n_workers = threads.n if len(H) >= _SHARED_SIZE else 1
        self.spare = [_Cholesky(H, work) for work in (memory_of.work if memory_of else [None] * n_workers)]
        self.mean = np.empty((n_chains, len(H)))
        self.log_norm = np.empty(n_chains)

    def refer(self, H, b):
        """Take another H and b."""
        self.H[...] = H
        self.b = b

    def set(self, d):
        """Take d (n_chains, q) for the chains."""

        def one(w, c):
            self.mean[c], self.log_norm[c] = self._moments(self.factors[c].factorise(d[c]), d[c])

        _share_out(self.threads, self.spare, len(d), one)

    def _moments(self, factor, d):
        """m, and the logarithm of |D|^(1/2) |M|^(-1/2) exp(m' M m / 2), which depends on the scales."""
        half = dtrsv(factor, self.b, lower=1)
        log_norm = 0.5 * np.log(d[: self.p]).sum() - np.log(factor.diagonal()).sum() + 0.5 * half @ half
        return dtrsv(factor, half, lower=1, trans=1, overwrite_x=1), log_norm

    def whiten(self, beta):
        """u = L'(beta - m)."""
        return np.array([dtrmv(f.factor, x, lower=1, trans=1) for f, x in zip(self.factors, beta - self.mean)])  # noqa: B905

    def unwhiten(self, u):
        """beta = m + L^-T u."""
        return self.mean + [dtrsv(f.factor, x, lower=1, trans=1) for f, x in zip(self.factors, u)]  # noqa: B905

    def force(self, gradient):
        """A gradient in beta as one in u: L^-1 gradient."""
        return np.array([dtrsv(f.factor, g, lower=1) for f, g in zip(self.factors, gradient)])  # noqa: B905

    def move_global_scale(self, lambda_sq_inv, tau_sq_inv, tau_0, steps, thresholds):
        """Metropolis steps in log tau that leave |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(log tau) invariant.

        steps, thresholds : (n_chains, k), the moves and standard exponentials. Returns tau^-2, whose d it takes, and
        the share of the steps that were accepted; (n_chains,) each.
        """
        out, accepted = tau_sq_inv.copy(), np.zeros(len(tau_sq_inv))

        def one(w, c):
            for step, threshold in zip(steps[c], thresholds[c]):  # noqa: B905
                proposed = out[c] * np.exp(-2.0 * step)
                d = np.zeros(len(self.b))
                d[: self.p] = proposed * lambda_sq_inv[c]
                candidate = self.spare[w]
                mean, log_norm = self._moments(candidate.factorise(d), d)
                rise = log_half_cauchy(proposed * tau_0**2) - log_half_cauchy(out[c] * tau_0**2)
                gain = log_norm - self.log_norm[c] + rise
                if gain > -threshold:
                    self.spare[w], self.factors[c] = self.factors[c], candidate
                    self.mean[c], self.log_norm[c], out[c] = mean, log_norm, proposed
                    accepted[c] += 1

        _share_out(self.threads, self.spare, len(out), one)
        return out, accepted / steps.shape[1]

    def move_local_scales(self, lambda_sq_inv, tau_sq_inv, columns, sweep, key):
        """Slice steps in the log lambda_j of some columns that leave |D|^(1/2) |M|^(-1/2) exp(m' M m / 2) p(lambda)
        invariant, there and back (``_local_moves.py``).

        columns : k of them. Returns lambda^-2, whose d it takes; (n_chains, p).
        """
        out = lambda_sq_inv.copy()
        places = np.arange(len(columns))

        def one(w, c):
            units = np.zeros((len(self.b), len(columns)), order="F")
            units[columns, places] = 1.0
            solve_lower(self.factors[c].factor, units)
            moved = out[c, columns]
            move_local_scales(units.T @ units, self.mean[c, columns], moved, tau_sq_inv[c], c, sweep, *key)
            out[c, columns] = moved
            d = np.zeros(len(self.b))
            d[: self.p] = tau_sq_inv[c] * out[c]
            self.mean[c], self.log_norm[c] = self._moments(self.factors[c].factorise(d), d)

        _share_out(self.threads, self.spare, len(out), one)
        return out


def _share_out(threads, workers, n_chains, one):
    """Call one(w, c) for each chain c, with the worker w that no other thread uses meanwhile."""

    def some(first, last):
        for w in range(first, last):
            for c in range(w, n_chains, len(workers)):
                one(w, c)

    threads.run(some, len(workers))
