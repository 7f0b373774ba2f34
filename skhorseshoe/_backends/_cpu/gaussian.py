"""Gaussians with precision H + diag(d), a different d for each chain, by Cholesky factors."""

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsv
from scipy.linalg.lapack import dpotri

from .. import COEF_PURPOSE, LEAST_RESIDUAL, not_definite
from .library import function

_upper_cholesky_factor = function("upper_cholesky_factor")

LEAST_SHARED_COLUMNS = 128  # least number of columns of a matrix for which threads share the chains


class Precision:
    """Draws from N(Q^-1 b, Q^-1) with Q = H + diag(d), with b and d of each chain.

    H : (q, q) float64, symmetric positive semi-definite.
    """

    def __init__(self, H, threads, memory_from=None, n_workers=None):
        """memory_from : a Precision of the same size that is not used while this one is. n_workers : threads that
        compute Cholesky factors, each with a matrix; all by default."""
        self.H = H
        self.threads = threads
        n_workers = (n_workers or threads.n) if len(H) >= LEAST_SHARED_COLUMNS else 1
        self.work = [np.empty_like(H) for _ in range(n_workers)] if memory_from is None else memory_from.work

    @staticmethod
    def noise(ops, shape, key, sweep):
        """The random part of ``draw``."""
        return ops.normal(shape, key, sweep, COEF_PURPOSE)

    def draw(self, b, d, noise, total=None, gamma=None):
        """beta_c = g_c Q_c^-1 b_c + L_c^-T noise_c with Q_c = L_c L_c'; (n_chains, q) float64, as b, d and noise.

        g_c is 1, or with total and gamma (n_chains,) that of g_c^2 = 2 gamma_c / (total_c - b_c' Q_c^-1 b_c). b
        and noise may have several rows for each one of d, those of a chain one after the other.
        """
        beta, n_rows = np.empty_like(b), len(b) // len(d)

        def draw_chain(w, c):
            factor = _lower_cholesky_factor(self.H, d[c], self.work[w])
            for row in range(c * n_rows, (c + 1) * n_rows):
                half = dtrsv(factor, b[row], lower=1)
                if total is not None:
                    residual = total[row] - half @ half
                    if residual > LEAST_RESIDUAL * total[row]:
                        half *= np.sqrt(2.0 * gamma[row] / residual)
                half += noise[row]
                beta[row] = dtrsv(factor, half, lower=1, trans=1, overwrite_x=1)

        share_out(self.threads, self.work, len(d), draw_chain)
        return beta

    def inverse_diagonal(self, d, sweep):
        """The diagonal of Q_c^-1; (n_chains, q). sweep : for implementations that need random numbers."""
        out = np.empty_like(d)
        for c in range(len(d)):
            inverse, _ = dpotri(_lower_cholesky_factor(self.H, d[c], self.work[0]), lower=1, overwrite_c=1)
            out[c] = np.diag(inverse)
        return out


def _lower_cholesky_factor(H, d, work):
    """The lower Cholesky factor of H + diag(d) in Fortran order, in ``work``; its upper triangle is undefined."""
    minor = _upper_cholesky_factor(H, np.ascontiguousarray(d), len(H), work)  # transposed, the lower factor
    if minor:
        raise not_definite(len(H), minor)
    return work.T


class Root:
    """L with L L' = H, for Gaussians with covariance H (q, q), which is positive semi-definite."""

    def __init__(self, H):
        self.factor = _lower_cholesky_factor(H, np.zeros(len(H)), np.empty_like(H))

    def times(self, x):
        """L x_c; x (m, q)."""
        return dtrmm(1.0, self.factor, x.T, lower=1).T


def share_out(threads, spare, n_chains, task):
    """Call task(w, c) for each chain c, with scratch spare[w] that no other thread uses meanwhile."""

    def run_worker(first, last):
        for w in range(first, last):
            for c in range(w, n_chains, len(spare)):
                task(w, c)

    threads.run(run_worker, len(spare))
