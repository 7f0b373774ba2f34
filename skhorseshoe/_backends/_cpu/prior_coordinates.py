"""The coordinates of the prior for split Hamiltonian Monte Carlo, and exchanges of coefficients."""

from typing import NamedTuple

import numpy as np

from ..._utils.threads import share_ranges
from ..horseshoe_quantile import quantile_table
from .library import function, record
from .mass_matrix import Dynamics

_coordinates, _minus_log_ratio = function("prior_coordinates"), function("minus_log_ratio")
_propose_leaving, _propose_entering = function("propose_leaving"), function("propose_entering")
_fused_exchanges = function("fused_exchanges")


class PriorCoordinates(Dynamics):
    """u = (w - centre) / size, with w the coordinates of ``core/priors/coordinates.hpp``.

    fixed : ``FixedPrior``. distance : (p,) d of the shrunk columns. tau_0 : scale of tau. centre, size : (q + 1,).
    n_contrasts : coefficients of a column, side by side, which share a lambda.
    """

    def __init__(self, fixed, distance, tau_0, centre, size, n_chains, threads, n_contrasts=1):
        super().__init__(threads, (n_chains, len(centre)))
        self.q, p, table = len(centre) - 1, len(distance), quantile_table(n_contrasts)
        scratch = dict(zip(("slope", "carried", "pull", "across"), np.empty((4, n_chains, p)), strict=True))
        scratch |= dict(zip(("pull_of_tau", "prior_energy"), np.empty((2, n_chains)), strict=True))
        fields = {"anchor": fixed.anchor, "diagonal": fixed.diagonal, "distance": distance}
        fields |= {"centre": centre, "size": size, "tau_0": tau_0}
        fields |= {"cubics": table.cubics, "starts": table.starts, "n_starts": len(table.starts)}
        fields |= {"n_cubics": len(table.cubics), "p": p, "n_contrasts": n_contrasts, "q": self.q}
        self.own = record("PriorCoordinates", fields | scratch)
        self.record = record("Dynamics", (None, None, None, self.own))

    def from_beta(self, beta, tau_sq_inv):
        """w of the shrunk coefficients, the other coefficients, and log tau; (n_chains, q + 1)."""
        out = np.empty((len(beta), beta.shape[1] + 1))
        _coordinates(self.own, np.ascontiguousarray(beta), tau_sq_inv, len(beta), out)
        return out

    def begin(self, state, key):
        """A ``Trajectory`` from a state, with fresh v."""
        return self._begin((state[0], None, *state[1:4]), state.sweep, key)

    def to_beta(self, trajectory):
        """beta and tau^-2."""
        tau_sq_inv = np.empty(self.shape[0])
        return super().to_beta(trajectory, tau_sq_inv), tau_sq_inv

    def fused_trajectory(self, state, rows, step, n_steps, key, threads):
        """beta, tau^-2, log-likelihood, score and acceptance after a trajectory and its test."""
        new, plan = _copies(state), (step, n_steps, False, (0.0, 0.0, 0, None, 0))
        return *new, self._fused((new[0], None, *new[1:]), rows, plan, state.sweep, key, False, None, threads)


class Exchange(NamedTuple):
    """A proposal of all chains, as in ``exports/exchange.cpp``."""

    out: np.ndarray  # (n_chains,) the column that leaves
    into: np.ndarray  # (n_chains,) the column that enters
    log_probability: np.ndarray  # (n_chains,) of the one
    log_density: np.ndarray  # (n_chains,) of the other, with its value
    new: np.ndarray  # (n_chains, q) coefficients
    without: np.ndarray  # (n_chains, q) without the last of the two columns that was chosen


class Exchanges:
    """Exchanges of shrunk coefficients, see ``core/exchange.hpp``.

    fixed : ``FixedPrior``. precision : (p,) of a coefficient away from zero. square : (p,) squared spreads of the
    columns, 0 for those that take no part.
    """

    def __init__(self, fixed, precision, square, threads):
        self.threads = threads
        fields = {"precision": precision * (square > 0), "square": square, "p": len(square), "q": len(fixed.anchor)}
        self.record = record("ExchangePrior", fields | {"anchor": fixed.anchor, "diagonal": fixed.diagonal})

    def propose_leaving(self, beta, uniform):
        """An ``Exchange`` with the columns that leave, and the coefficients without them."""
        columns, logs, both = np.empty((2, len(beta)), np.int64), np.empty((2, len(beta))), np.empty((2, *beta.shape))
        exchange, inputs = Exchange(*columns, *logs, *both), (self.record, beta, np.ascontiguousarray(uniform))
        share_ranges(self.threads, beta.shape, lambda first, last: _propose_leaving(*inputs, first, last, exchange))
        return exchange

    def propose_entering(self, exchange, beta, score, uniform, standard):
        """Complete an exchange by the columns that enter. score : without those that leave."""
        inputs = self.record, beta, *map(np.ascontiguousarray, (score, uniform, standard))
        share_ranges(self.threads, beta.shape, lambda first, last: _propose_entering(*inputs, first, last, exchange))

    def minus_log_ratio(self, state, exchange, loglik, score):
        """Minus the logarithm of the Metropolis ratio (n_chains,). loglik : of the new coefficients. score : without
        the columns that enter."""
        change, at = np.empty(len(loglik)), (state.beta, None, state.tau_sq_inv, state.loglik, None)
        arrays = map(np.ascontiguousarray, (loglik, score))
        inputs = self.record, at, exchange, *arrays
        share_ranges(self.threads, score.shape, lambda first, last: _minus_log_ratio(*inputs, first, last, change))
        return change

    def fused(self, state, rows, numbers, stride, key):
        """The state after m exchanges and their tests, in one call. numbers : uniforms (n_chains, 2 m) and normals
        (n_chains, m). stride : added to the number of the sweep for each exchange."""
        new, acceptance, n = _copies(state), np.empty(len(state.beta)), numbers[1].shape[1]
        inputs = self.record, rows, *numbers, n, state.sweep, stride, key
        _fused_exchanges(*inputs, len(acceptance), (new[0], None, *new[1:]), acceptance)
        return *new, acceptance


def _copies(state):
    return tuple(np.array(values, order="C") for values in state[:4])
