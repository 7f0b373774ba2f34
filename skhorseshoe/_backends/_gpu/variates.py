"""Variates of size p on the GPU: one thread for each, or one block for each chain."""

import cupy as cp
import numpy as np

from .cuda import THREADS
from .launch import blocks_for, i32, i64, kernel, launch, random_arguments


def normal(shape, key, sweep, purpose, attempt=0):
    """Independent N(0, 1); (n_chains, m) float64."""
    return _filled("fill_normal", cp.empty(shape), (), np.uint32(attempt), random_arguments(key, sweep, purpose))


def uniform(shape, key, sweep, purpose):
    """Independent uniforms on (0, 1), 52 bits; (n_chains, m) float64."""
    return _filled("fill_uniform", cp.empty(shape), (), random_arguments(key, sweep, purpose))


def exponential(rate, key, sweep, purpose):
    """Exponential with the given rates; rate (n_chains, m) or (n_chains,), float64, positive."""
    rate = cp.ascontiguousarray(rate)
    return _filled("fill_exponential", cp.empty_like(rate), (rate,), random_arguments(key, sweep, purpose))


def gamma(shape, rate, key, sweep, purpose):
    """Gamma with one shape >= 1 and a rate for each chain; rate (n_chains,) float64, positive."""
    rate = cp.ascontiguousarray(rate)
    return _filled("fill_gamma", cp.empty_like(rate), (np.float64(shape), rate), random_arguments(key, sweep, purpose))


def draw_tau_given_beta(beta, tau_sq_inv, tau_0, key, sweep, n_contrasts=1, threads=None):
    """tau^-2 given beta (n_chains, p), with every lambda_j integrated out: a slice step from the current value.
    n_contrasts : 1 here."""
    beta, out = cp.ascontiguousarray(beta), cp.empty_like(tau_sq_inv)
    function = kernel("chains", "draw_taus_given_beta")
    arguments = beta, tau_sq_inv, np.float64(tau_0), out, i32(beta.shape[1]), random_arguments(key, sweep)
    launch(function, len(beta), arguments, shared_bytes=8 * THREADS // 32)
    return out


def draw_lambda_given_beta(beta, tau_sq_inv, key, sweep, n_contrasts=1, threads=None):
    """lambda_j^-2 given beta (n_chains, p) and tau; independent of the current values."""
    beta = cp.ascontiguousarray(beta)
    return _filled("draw_lambdas_given_beta", cp.empty_like(beta), (beta, tau_sq_inv), random_arguments(key, sweep))


def _filled(name, out, inputs, *random):
    """out (n_chains, ...), filled by a kernel, one element by each thread.

    inputs, random : arguments of the kernel before out and after its sizes.
    """
    sizes = i64(out.size), i32(out.size // len(out))
    launch(kernel("chains", name), blocks_for(out.size), inputs, out, sizes, random)
    return out
