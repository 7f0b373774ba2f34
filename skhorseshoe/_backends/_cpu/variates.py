"""Random numbers of one purpose, for all chains."""

import numpy as np
from numba import uint32

from .jit import kernel
from .philox import exponential_1, fill_units, gamma_1, normal_and_unit, stream
from .scales import draw_global_scale, draw_local_scales


def normal(shape, key, sweep, purpose, attempt=0):
    """Independent N(0, 1); (n_chains, m) float64."""
    out = np.empty(shape)
    _fill_normal(out, attempt, sweep, purpose, *key)
    return out


def uniform(shape, key, sweep, purpose):
    """Independent uniforms on (0, 1), 52 bits; (n_chains, m) float64."""
    out = np.empty(shape)
    _fill_uniform(out, sweep, purpose, *key)
    return out


def exponential(rate, key, sweep, purpose):
    """Exponential with the given rates; rate (n_chains, m) or (n_chains,), float64, positive."""
    out = np.empty_like(rate)
    _fill_exponential(out.reshape(len(rate), -1), sweep, purpose, *key)
    return out / rate


def gamma(shape, rate, key, sweep, purpose):
    """Gamma with one shape >= 1 and a rate for each chain; rate (n_chains,) float64, positive."""
    out = np.empty_like(rate)
    _fill_gamma(shape, rate, out, sweep, purpose, *key)
    return out


def global_scale(beta, tau_sq_inv, tau_0, key, sweep):
    """tau^-2 given beta (n_chains, p), every lambda_j integrated out; a slice step from the current one."""
    out = np.empty_like(tau_sq_inv)
    draw_global_scale(np.ascontiguousarray(beta), tau_sq_inv, tau_0, sweep, *key, out)
    return out


def local_scales(beta, tau_sq_inv, key, sweep):
    """lambda_j^-2 given beta (n_chains, p) and tau; independent of the current ones."""
    out = np.empty(beta.shape)
    draw_local_scales(np.ascontiguousarray(beta), tau_sq_inv, sweep, *key, out)
    return out


@kernel
def _fill_normal(out, attempt, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j], _ = normal_and_unit(attempt, uint32(sweep), j, st, k0, k1)


@kernel
def _fill_uniform(out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        fill_units(out[c], uint32(sweep), 0, stream(c, purpose, 0), k0, k1)


@kernel
def _fill_exponential(out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        st = stream(c, purpose, 0)
        for j in range(out.shape[1]):
            out[c, j] = exponential_1(uint32(0), uint32(sweep), uint32(j), st, k0, k1)


@kernel
def _fill_gamma(shape, rate, out, sweep, purpose, k0, k1):
    for c in range(out.shape[0]):
        out[c] = gamma_1(shape, uint32(sweep), 0, stream(c, purpose, 0), k0, k1) / rate[c]
