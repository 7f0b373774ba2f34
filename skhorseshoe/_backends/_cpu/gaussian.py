"""Gaussians with precision H + diag(d), a different d for each chain, by Cholesky factors."""

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsv
from scipy.linalg.lapack import dpotri

from .. import COEF, LEAST_REST, Path, not_definite
from .library import function, record

_upper_factor = function("upper_factor")
_begin_path, turn_path, _place_path = function("begin_path"), function("turn_path"), function("place_path")
_kick_path, _move_scales, _near_path = function("kick_path"), function("move_scales"), function("near_path")

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
            factor = _lower_factor(self.H, d[c], self.work[w])
            half = dtrsv(factor, b[c], lower=1)
            if total is not None:
                rest = total[c] - half @ half
                if rest > LEAST_REST * total[c]:
                    half *= np.sqrt(2.0 * gamma[c] / rest)
            half += noise[c]
            beta[c] = dtrsv(factor, half, lower=1, trans=1, overwrite_x=1)

        _share_out(self.threads, self.work, len(b), one)
        return beta

    def inverse_diagonal(self, d, sweep):
        """The diagonal of Q_c^-1; (n_chains, q). sweep : for those who need random numbers for it."""
        out = np.empty_like(d)
        for c in range(len(d)):
            inverse, _ = dpotri(_lower_factor(self.H, d[c], self.work[0]), lower=1, overwrite_c=1)
            out[c] = np.diag(inverse)
        return out


def _lower_factor(H, d, work):
    """The lower Cholesky factor of H + diag(d) in Fortran order, in this memory; its upper triangle is not cleared."""
    minor = _upper_factor(H, np.ascontiguousarray(d), len(H), work)  # which Fortran's order makes the lower one
    if minor:
        raise not_definite(len(H), minor)
    return work.T


class Root:
    """L with L L' = H, for Gaussians with covariance H (q, q), which is positive semi-definite."""

    def __init__(self, H):
        self.factor = _lower_factor(H, np.zeros(len(H)), np.empty_like(H))

    def times(self, x):
        """L x_c; x (m, q)."""
        return dtrmm(1.0, self.factor, x.T, lower=1).T


class Whitening:
    """For each chain N(m, M^-1) with M = H + diag(d) = L L' and m = M^-1 b, in the coordinates u = L'(beta - m).

    H : (q, q) float64. b : (n_chains, q) float64, or (q,) for all. d is tau^-2 lambda^-2 for the first p coefficients,
    0 for the others. What is computed for some chains is one call of the core (``exports/paths.cpp``); in a path
    everything is overwritten.
    """

    def __init__(self, H, b, n_chains, p, threads, memory_of=None):
        """memory_of : a Precision of the same size, which is not used while this computes."""
        q = len(H)
        self.threads, self.H, self.b = threads, H, b
        n_workers = threads.n if q >= _SHARED_SIZE else 1
        self.spare = memory_of.work if memory_of else [np.empty((q, q)) for _ in range(n_workers)]
        self.factors, self.mean, self.log_norm = np.empty((n_chains, q, q)), np.empty((n_chains, q)), np.empty(n_chains)
        self._p, self._of_reference = p, None
        if b is not None:
            self._record()

    def refer(self, H, b):
        """Take another H and b."""
        self.H[...] = H
        self.tend(b)

    def tend(self, b):
        """Take another b."""
        self.b = b
        self._record()

    def _record(self):
        """Where the core finds all of this."""
        made = {"factors": self.factors, "mean": self.mean, "log_norm": self.log_norm}
        self._all = record("Gaussians", H=self.H, b=self._of_chains(self.b), p=self._p, q=len(self.H), **made)

    def _recorded(self, reference):
        if self._of_reference is not reference:
            point, slope, information, _ = self._of_reference = reference
            self._reference = record("Reference", point=point, slope=self._of_chains(slope), information=information)
        return self._reference

    def _of_chains(self, values):
        return np.ascontiguousarray(np.broadcast_to(values, self.mean.shape))

    def begin(self, reference, state, key, same_scales=False):
        """A ``Path`` from the coefficients and the scales of a state, with fresh v. same_scales : whether these are the
        scales of the path before."""
        path = Path(*np.empty((3, *state.beta.shape)), np.empty(len(state.beta)))
        how = (
            self._all,
            self._recorded(reference),
            *map(np.ascontiguousarray, state[:5]),
            state.sweep,
            *key,
            same_scales,
        )
        self._share(lambda spare, *chains: _begin_path(*how, *chains, *path))
        return path

    def turn(self, path, angle):
        """A half-kick, and a turn of (u, v)."""
        turn_path(angle, *path[:3], path.u.size)
        return path

    def place(self, path):
        """beta = m + L^-T u."""
        beta = np.empty_like(path.u)
        self._share(lambda spare, *chains: _place_path(self._all, *chains, path.u, beta))
        return beta

    def kick(self, path, angle, reference, beta, loglik, score):
        """A half-kick at beta; with it the path knows its force and its energy there."""
        how = angle, self._all, self._recorded(reference), beta, loglik, np.ascontiguousarray(score)
        self._share(lambda spare, *chains: _kick_path(*how, *chains, *path))
        return path

    def move_scales(self, lambda_sq_inv, tau_sq_inv, tau_0, tuning, sweep, key):
        """lambda^-2 and tau^-2 after moves of tau, of the slow lambda_j and of tau again, u held; and the share of the
        moves of tau that were accepted. The moves of tau are split, so that all are their own mirror image.
        """
        scales = lambda_sq_inv.copy(), tau_sq_inv.copy(), np.empty(len(tau_sq_inv))
        how = self._all, tau_0, *_moves(tuning), sweep, *key
        self._share(lambda spare, *chains: _move_scales(*how, *chains, spare, *scales))
        return scales

    def near_path(self, state, rows, reference, tuning, tau_0, key, same_scales):
        """The state after a path and its test, in one call. rows : the record of them."""
        new = [np.array(part, order="C") for part in state[:5]]
        turns, chance = (tuning.step, tuning.n_steps), np.empty(len(state.beta))
        tau_chance = np.empty(len(chance)) if tuning.tau_moves else None
        how = self._all, self._recorded(reference), rows, *turns, tau_0, *_moves(tuning), state.sweep, *key, same_scales
        self._check(_near_path(*how, len(chance), self.spare[0], *new, chance, tau_chance))
        return *new, state.sweep, chance, state.tau_acceptance if tau_chance is None else tau_chance

    def _share(self, some):
        """Call some(spare, first, last) for ranges of chains, with scratch that no other thread uses meanwhile."""
        n_chains, q = self.mean.shape
        if q < _SHARED_SIZE:
            self._check(some(self.spare[0], 0, n_chains))
        else:
            _share_out(self.threads, self.spare, n_chains, lambda w, c: self._check(some(self.spare[w], c, c + 1)))

    def _check(self, minor):
        if minor:
            raise not_definite(len(self.H), minor)


def _moves(tuning):
    slow = np.asarray(tuning.slow, np.int64)
    return tuning.tau_step, tuning.tau_moves, slow, len(slow)


def _share_out(threads, spare, n_chains, one):
    """Call one(w, c) for each chain c, with spare[w] for scratch that no other thread uses meanwhile."""

    def some(first, last):
        for w in range(first, last):
            for c in range(w, n_chains, len(spare)):
                one(w, c)

    threads.run(some, len(spare))
