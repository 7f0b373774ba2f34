"""The back end for NVIDIA GPUs: CuPy arrays, CUDA kernels of our own, Cholesky factors from cuSOLVER.

The same names as in ``cpu.py``, where they are described. Arrays that describe the chains live on the device.
"""

from contextlib import contextmanager, suppress
from copy import copy

import cupy as cp
import numpy as np

from ._gpu_answers import average_phi, each_block, ndtr, quantiles  # noqa: F401 - part of what a back end offers
from ._gpu_clock import ATTEMPTS, CLOCK, random_arguments
from ._gpu_collapsed_host import collapsed_rows as CollapsedRows  # noqa: F401 - as are these
from ._gpu_csr import Csr
from ._gpu_gaussian import Precision, Root, Whitening, times_symmetric  # noqa: F401
from ._gpu_input import checked, put_beside  # noqa: F401
from ._gpu_kernels import blocks_for, i32, i64, kernel, launch
from ._gpu_memory import explained, is_of_memory, place  # noqa: F401
from ._gpu_outbox import Outbox, Watch  # noqa: F401
from ._gpu_recorded import recorded  # noqa: F401
from ._gpu_rows import gram, hold, latent, moments, score  # noqa: F401
from ._gpu_stream import brought
from ._gpu_verdict import VERDICT
from .cuda import THREADS

empty_like, where, concatenate = cp.empty_like, cp.where, cp.concatenate
exp, cos, sin, minimum = cp.exp, cp.cos, cp.sin, cp.minimum
SEGMENTED = False  # a launch for each would take longer than many a segment


@contextmanager
def using(name):
    """A context in which everything is computed on this GPU, as in "cuda:0"."""
    with _card(name):
        before = VERDICT.minors, CLOCK.zero, CLOCK.attempts  # of a fit in which this is a prediction
        VERDICT.minors, CLOCK.zero, CLOCK.attempts = {}, None, ATTEMPTS
        try:
            yield
        except BaseException as error:
            with suppress(RuntimeError):  # of a GPU that has failed
                cp.cuda.runtime.deviceSynchronize()  # what streams beside the main one use must not be given back yet
            if is_of_memory(error):
                raise explained(error) from error
            raise
        finally:
            VERDICT.minors, CLOCK.zero, CLOCK.attempts = before


def give_back(name):
    """Return unused memory, which CuPy would keep for its next arrays: of this GPU, and pinned memory of the host."""
    with _card(name):
        cp.get_default_memory_pool().free_all_blocks()
        cp.get_default_pinned_memory_pool().free_all_blocks()


def _card(name):
    return cp.cuda.Device(int(name.partition(":")[2]))


def to_device(values):
    """Arrays of the host, also in tuples, dicts and objects that hold them, as arrays of the device."""
    return _each(lambda value: brought(value) if isinstance(value, np.ndarray) else value, values)


def to_host(values):
    """The way back; a LinAlgError if a matrix could not be factorised."""
    moved = _each(_to_host, values)
    VERDICT.raise_if_bad()
    return moved


def _to_host(value):
    if isinstance(value, Csr):
        return value.get()
    return cp.asnumpy(value) if isinstance(value, cp.ndarray) else value


def _each(move, values):
    """Apply move to what is in a tuple, a dict or an object; those themselves are not changed."""
    if isinstance(values, tuple):
        moved = [_each(move, value) for value in values]
        return type(values)(*moved) if hasattr(values, "_fields") else tuple(moved)
    if isinstance(values, dict):
        return {name: _each(move, value) for name, value in values.items()}
    if type(values).__module__.startswith(__package__.partition(".")[0]) and not isinstance(values, (np.ndarray, Csr)):
        out = copy(values)
        vars(out).update(_each(move, vars(values)))
        return out
    return move(values)


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
