"""Random numbers of one purpose, for all chains."""

import numpy as np

from ..._utils.threads import ONE_THREAD, share_ranges
from .library import function

_fill_normal, _fill_uniform = function("fill_normal"), function("fill_uniform")
_fill_exponential, _fill_gamma = function("fill_exponential"), function("fill_gamma")
_draw_tau_given_beta, _draw_lambda_given_beta = function("draw_taus_given_beta"), function("draw_lambdas_given_beta")


def normal(shape, key, sweep, purpose, attempt=0):
    """Independent N(0, 1); (n_chains, m) float64."""
    out = np.empty(shape)
    _fill_normal(out, *shape, attempt, purpose, sweep, key)
    return out


def uniform(shape, key, sweep, purpose):
    """Independent uniforms on (0, 1), 52 bits; (n_chains, m) float64."""
    out = np.empty(shape)
    _fill_uniform(out, *shape, purpose, sweep, key)
    return out


def exponential(rate, key, sweep, purpose):
    """Exponential with the given rates; rate (n_chains, m) or (n_chains,), float64, positive."""
    out = np.empty_like(rate)
    _fill_exponential(out, len(rate), out.size // len(rate), purpose, sweep, key)
    return out / rate


def gamma(shape, rate, key, sweep, purpose):
    """Gamma with one shape >= 1 and a rate for each chain; rate (n_chains,) float64, positive."""
    out = np.empty_like(rate)
    _fill_gamma(shape, rate, out, len(rate), purpose, sweep, key)
    return out


def draw_tau_given_beta(beta, tau_sq_inv, tau_0, key, sweep, n_contrasts=1, threads=ONE_THREAD):
    """tau^-2 given beta (n_chains, p n_contrasts), column by column, with every lambda_j integrated out: a slice step
    from the current value."""
    beta, out, n_columns = np.ascontiguousarray(beta), np.empty_like(tau_sq_inv), beta.shape[1] // n_contrasts
    inputs = beta, tau_sq_inv, tau_0, out, n_columns, n_contrasts, sweep, key
    share_ranges(threads, beta.shape, lambda first, last: _draw_tau_given_beta(*inputs, first, last))
    return out


def draw_lambda_given_beta(beta, tau_sq_inv, key, sweep, n_contrasts=1, threads=ONE_THREAD):
    """lambda_j^-2 given beta (n_chains, p n_contrasts), column by column, and tau; independent of the current values.
    Each stands n_contrasts times."""
    beta, out, n_columns = np.ascontiguousarray(beta), np.empty(beta.shape), beta.shape[1] // n_contrasts
    inputs = beta, tau_sq_inv, out, n_columns, n_contrasts, sweep, key
    share_ranges(threads, beta.shape, lambda first, last: _draw_lambda_given_beta(*inputs, first, last))
    return out
