"""The coordinates of the prior for split Hamiltonian Monte Carlo, and exchanges of coefficients."""

import numpy as np

from .. import Path
from ..horseshoe_quantile import quantile_table
from .exchange import put_in, take_out, weigh_exchange
from .path_kernels import turn_path
from .prior_kernels import begin_prior_path, kick_prior_path, place_prior_path, prior_coordinates

_SHARED = 2**11  # coefficients of all chains, whose coordinates outweigh handing a chain to another thread


class PriorCoordinates:
    """u = (w - centre) / size, w the coordinates of ``prior_kernels.py``. What is made on a path is overwritten.

    fixed : ``FixedPrior``. distance : (p,) d of the shrunk columns. tau_0 : scale of tau. centre, size : (q + 1,).
    """

    def __init__(self, fixed, distance, tau_0, centre, size, n_chains, threads):
        self.centre, self.size, self.threads = centre, size, threads
        self.fixed, self.coordinates = (fixed.anchor, fixed.diagonal), (centre, size, distance, tau_0, quantile_table())
        self.made = *np.empty((3, n_chains, len(distance))), *np.empty((2, n_chains))

    def of(self, beta, tau_sq_inv):
        """The w of coefficients, the other coefficients, and log tau; (n_chains, q + 1)."""
        out = np.empty((len(beta), beta.shape[1] + 1))
        prior_coordinates(self.coordinates, beta, tau_sq_inv, out)
        return out

    def begin(self, state, key):
        """A ``Path`` from a state, with fresh v."""
        path = Path(*np.empty((3, len(state.beta), len(self.centre))), np.empty(len(state.beta)))
        given = state.beta, state.tau_sq_inv, state.loglik, state.score
        how = self.fixed, self.coordinates, given, state.sweep, *key
        _share(self.threads, path.u.shape, lambda *chains: begin_prior_path(*how, *chains, path, self.made))
        return path

    def turn(self, path, angle):
        """A half-kick, and a turn of (u, v)."""
        turn_path(angle, *path[:3])
        return path

    def place(self, path):
        """beta and tau^-2."""
        beta, tau_sq_inv = np.empty((len(path.u), path.u.shape[1] - 1)), np.empty(len(path.u))
        how = beta, tau_sq_inv, self.made
        _share(self.threads, beta.shape, lambda *chains: place_prior_path(self.coordinates, path.u, *chains, *how))
        return beta, tau_sq_inv

    def kick(self, path, angle, beta, loglik, score):
        """A half-kick at beta; with it the path knows its force and its energy there."""
        how = angle, self.fixed, self.coordinates, beta, loglik, score
        _share(self.threads, path.u.shape, lambda *chains: kick_prior_path(*how, *chains, path, self.made))
        return path


class Exchanges:
    """Exchanges of shrunk coefficients, see ``exchange.py``.

    fixed : ``FixedPrior``. precision : (p,) of what a coefficient that is away from zero has. square : (p,) of the
    spreads of the columns, 0 for those that take no part.
    """

    def __init__(self, fixed, precision, square, threads):
        self.fixed, self.precision, self.square = fixed, precision * (square > 0), square
        self.threads = threads

    def take_out(self, beta, uniform):
        """The columns that go out, the logarithms of their probabilities, and the coefficients without them."""
        out, chance, without = np.empty(len(beta), np.int64), np.empty(len(beta)), np.empty_like(beta)
        how = beta, self.precision, uniform, out, chance, without
        _share(self.threads, beta.shape, lambda *chains: take_out(*chains, *how))
        return out, chance, without

    def put_in(self, beta, out, score, uniform, standard):
        """The columns that come in, the logarithms of the densities of that, and the coefficients with and without
        them."""
        column, density = np.empty(len(beta), np.int64), np.empty(len(beta))
        new, without = np.empty_like(beta), np.empty_like(beta)
        prior = self.square, self.fixed.diagonal
        how = beta, out, score, *prior, uniform, standard, column, density, new, without
        _share(self.threads, beta.shape, lambda *chains: put_in(*chains, *how))
        return column, density, new, without

    def weigh(self, old, new, out, column, score, tau_sq_inv, logs):
        """Minus the logarithm of the Metropolis ratio (n_chains,). old, new : beta and log-likelihood."""
        change, fixed = np.empty(len(out)), (self.fixed.anchor, self.fixed.diagonal)
        prior = self.precision, self.square, fixed
        how = old, new, out, column, score, *prior, tau_sq_inv, logs, change
        _share(self.threads, score.shape, lambda *chains: weigh_exchange(*chains, *how))
        return change


def _share(threads, shape, some):
    """Call ``some`` with the first and the last of chains, for all of them. shape : (n_chains, columns)."""
    n_chains, n_columns = shape
    if n_chains * n_columns < _SHARED:
        some(0, n_chains)
    else:
        threads.run(some, n_chains)
