"""Where the chains start: spread more widely than the posterior, so that R-hat can tell if they met."""

import numpy as np
from scipy.special import ndtri

from .gibbs import State

_SIGNAL = 2.0  # standard deviation of the linear predictor at the start; 2 says "nearly every row is certain"
_LOG_TAU = 2.0  # standard deviation of log(tau / tau_0) at the start


def initial_state(n_chains, columns, base_rate, tau_0, key):
    """Random directions of the same predictive strength, an intercept that keeps the base rate, tau log-normal.

    columns : ``Columns``. base_rate : share of the second class, in (0, 1). Always drawn on the host: the start is the
    same on every device.
    """
    rng = np.random.Generator(np.random.Philox(key=int(key[0]) | int(key[1]) << 32))
    mean, sd, p, fit_intercept = columns.mean, columns.sd, len(columns.mean), columns.fit_intercept
    moves = sd > 0
    # Coefficients of constant columns must not start at zero: a scale given a zero is zero too, for ever.
    unit = 1.0 / np.maximum(abs(mean), 1.0)
    np.divide(_SIGNAL / np.sqrt(max(1, moves.sum())), sd, out=unit, where=moves)
    beta = np.zeros((n_chains, p + fit_intercept))
    beta[:, :p] = rng.standard_normal((n_chains, p)) * unit
    if fit_intercept:
        centre = ndtri(base_rate) * np.hypot(1.0, _SIGNAL)
        beta[:, p] = centre + rng.standard_normal(n_chains) - beta[:, :p] @ mean
    log_tau = np.log(tau_0) + _LOG_TAU * rng.standard_normal(n_chains)
    ones = np.ones((n_chains, columns.n_shrunk))
    return State(beta, ones, ones, np.exp(-2 * log_tau), np.full(n_chains, tau_0**2), 0)
