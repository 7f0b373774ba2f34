"""Variates of size p on the GPU: one thread for each, or one block for each chain."""

import cupy as cp
import numpy as np

from .cuda import THREADS
from .launch import blocks_for, i32, i64, kernel, launch
from .sweep_counter import random_arguments


def normal(shape, key, sweep, purpose, attempt=0):
    """Independent N(0, 1); (n_chains, m) float64."""
    out = cp.empty(shape)
    function = kernel("scales", "fill_normal")
    arguments = out, i64(out.size), i32(shape[1]), np.uint32(attempt), *random_arguments(key, sweep, purpose)
    launch(function, blocks_for(out.size), *arguments)
    return out


def uniform(shape, key, sweep, purpose):
    """Independent uniforms on (0, 1), 52 bits; (n_chains, m) float64."""
    out = cp.empty(shape)
    arguments = out, i64(out.size), i32(shape[1]), *random_arguments(key, sweep, purpose)
    launch(kernel("scales", "fill_uniform"), blocks_for(out.size), *arguments)
    return out


def exponential(rate, key, sweep, purpose):
    """Exponential with the given rates; rate (n_chains, m) or (n_chains,), float64, positive."""
    rate = cp.ascontiguousarray(rate)
    out = cp.empty_like(rate)
    sizes = i64(out.size), i32(out.size // len(out))
    function = kernel("scales", "fill_exponential")
    launch(function, blocks_for(out.size), rate, out, *sizes, *random_arguments(key, sweep, purpose))
    return out


def gamma(shape, rate, key, sweep, purpose):
    """Gamma with one shape >= 1 and a rate for each chain; rate (n_chains,) float64, positive."""
    rate = cp.ascontiguousarray(rate)
    out = cp.empty_like(rate)
    function = kernel("scales", "fill_gamma")
    arguments = np.float64(shape), rate, out, i32(len(out))
    launch(function, blocks_for(len(out)), *arguments, *random_arguments(key, sweep, purpose))
    return out


def global_scale(beta, tau_sq_inv, tau_0, key, sweep):
    """tau^-2 given beta (n_chains, p), every lambda_j integrated out; a slice step from the current one."""
    beta, out = cp.ascontiguousarray(beta), cp.empty_like(tau_sq_inv)
    function = kernel("scales", "global_scale")
    arguments = beta, tau_sq_inv, np.float64(tau_0), out, i32(beta.shape[1]), *random_arguments(key, sweep)
    launch(function, len(beta), *arguments, shared_bytes=8 * THREADS // 32)
    return out


def local_scales(beta, tau_sq_inv, key, sweep):
    """lambda_j^-2 given beta (n_chains, p) and tau; independent of the current ones."""
    beta = cp.ascontiguousarray(beta)
    out = cp.empty_like(beta)
    function = kernel("scales", "local_scales")
    arguments = beta, tau_sq_inv, out, i64(out.size), i32(beta.shape[1]), *random_arguments(key, sweep)
    launch(function, blocks_for(out.size), *arguments)
    return out
