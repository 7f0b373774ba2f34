"""The coordinates of the prior for split Hamiltonian Monte Carlo, and exchanges of coefficients."""

import numpy as np

from .. import Path
from ..horseshoe_quantile import quantile_table
from .gaussian import turn_path
from .library import function, record

_coordinates, _begin = function("prior_coordinates"), function("begin_prior_path")
_place, _kick = function("place_prior_path"), function("kick_prior_path")
_take_out, _put_in, _weigh = function("take_out"), function("put_in"), function("weigh_exchange")
_near_path, _near_exchanges = function("near_prior_path"), function("near_exchanges")

SHARED = 2**11  # coefficients of all chains, whose coordinates outweigh handing a chain to another thread


class PriorCoordinates:
    """u = (w - centre) / size, w the coordinates of ``core/prior_coordinates.hpp``. What is made on a path is
    overwritten.

    fixed : ``FixedPrior``. distance : (p,) d of the shrunk columns. tau_0 : scale of tau. centre, size : (q + 1,).
    """

    def __init__(self, fixed, distance, tau_0, centre, size, n_chains, threads):
        self.threads, p, table = threads, len(distance), quantile_table()
        made = dict(zip(("slope", "carried", "pull"), np.empty((3, n_chains, p)), strict=True))
        made |= dict(zip(("pull_of_tau", "energy"), np.empty((2, n_chains)), strict=True))
        how = {"anchor": fixed.anchor, "diagonal": fixed.diagonal, "centre": centre, "size": size, "distance": distance}
        how |= {"cubics": table.cubics, "starts": table.starts, "n_starts": len(table.starts), "tau_0": tau_0}
        self.record = record("PriorCoordinates", **how, **made, p=p, q=len(centre) - 1)
        self.shape = n_chains, len(centre)

    def of(self, beta, tau_sq_inv):
        """The w of coefficients, the other coefficients, and log tau; (n_chains, q + 1)."""
        out = np.empty((len(beta), beta.shape[1] + 1))
        _coordinates(self.record, np.ascontiguousarray(beta), tau_sq_inv, len(beta), out)
        return out

    def begin(self, state, key):
        """A ``Path`` from a state, with fresh v."""
        path = Path(*np.empty((3, *self.shape)), np.empty(self.shape[0]))
        how = self.record, *map(np.ascontiguousarray, (state.beta, state.tau_sq_inv, state.loglik, state.score))
        _share(self.threads, self.shape, lambda *chains: _begin(*how, state.sweep, *key, *chains, *path))
        return path

    def turn(self, path, angle):
        """A half-kick, and a turn of (u, v)."""
        turn_path(angle, *path[:3], path.u.size)
        return path

    def place(self, path):
        """beta and tau^-2."""
        beta, tau_sq_inv = np.empty((len(path.u), path.u.shape[1] - 1)), np.empty(len(path.u))
        _share(self.threads, beta.shape, lambda *chains: _place(self.record, path.u, *chains, beta, tau_sq_inv))
        return beta, tau_sq_inv

    def kick(self, path, angle, beta, loglik, score):
        """A half-kick at beta; with it the path knows its force and its energy there."""
        how = self.record, angle, beta, loglik, np.ascontiguousarray(score)
        _share(self.threads, path.u.shape, lambda *chains: _kick(*how, *chains, *path))
        return path

    def near_path(self, state, rows, angle, n_turns, key):
        """beta, tau^-2, log-likelihood and score after a path and its test, and the probabilities with which these
        were accepted, in one call. rows : the record of them."""
        new, chance = _copies(state), np.empty(len(state.beta))
        _near_path(self.record, rows, angle, n_turns, state.sweep, *key, len(chance), *new, chance)
        return *new, chance


class Exchanges:
    """Exchanges of shrunk coefficients, see ``core/exchange.hpp``.

    fixed : ``FixedPrior``. precision : (p,) of what a coefficient that is away from zero has. square : (p,) of the
    spreads of the columns, 0 for those that take no part.
    """

    def __init__(self, fixed, precision, square, threads):
        self.threads = threads
        how = {"precision": precision * (square > 0), "square": square, "p": len(square), "q": len(fixed.anchor)}
        self.record = record("ExchangePrior", **how, anchor=fixed.anchor, diagonal=fixed.diagonal)

    def take_out(self, beta, uniform):
        """The columns that go out, the logarithms of their probabilities, and the coefficients without them."""
        out, log_chance, without = np.empty(len(beta), np.int64), np.empty(len(beta)), np.empty(beta.shape)
        how = self.record, beta, np.ascontiguousarray(uniform)
        _share(self.threads, beta.shape, lambda *chains: _take_out(*how, *chains, out, log_chance, without))
        return out, log_chance, without

    def put_in(self, beta, out, score, uniform, standard):
        """The columns that come in, the logarithms of the densities of that, and the coefficients with and without
        them."""
        column, log_density = np.empty(len(beta), np.int64), np.empty(len(beta))
        new, without = np.empty(beta.shape), np.empty(beta.shape)
        how = self.record, beta, out, *map(np.ascontiguousarray, (score, uniform, standard))
        _share(self.threads, beta.shape, lambda *chains: _put_in(*how, *chains, column, log_density, new, without))
        return column, log_density, new, without

    def weigh(self, old, new, out, column, score, tau_sq_inv, logs):
        """Minus the logarithm of the Metropolis ratio (n_chains,). old, new : beta and log-likelihood."""
        change = np.empty(len(out))
        how = *old, *new, out, column, score, tau_sq_inv, *logs
        how = self.record, *map(np.ascontiguousarray, how)
        _share(self.threads, score.shape, lambda *chains: _weigh(*how, *chains, change))
        return change

    def near(self, state, rows, uniform, standard, apart, key):
        """As ``PriorCoordinates.near_path``, of exchanges. uniform (n_chains, 2 m), standard (n_chains, m) : the random
        numbers of m of them. apart : what the number of the sweep grows by from one to the next."""
        new, chance, n = _copies(state), np.empty(len(state.beta)), standard.shape[1]
        how = self.record, rows, uniform, standard, n, state.sweep, apart, *key
        _near_exchanges(*how, len(chance), *new, chance)
        return *new, chance


def _copies(state):
    return [np.array(part, order="C") for part in state[:4]]


def _share(threads, shape, some):
    """Call ``some`` with the first and the last of chains, for all of them. shape : (n_chains, columns)."""
    n_chains, n_columns = shape
    if n_chains * n_columns < SHARED:
        some(0, n_chains)
    else:
        threads.run(some, n_chains)
