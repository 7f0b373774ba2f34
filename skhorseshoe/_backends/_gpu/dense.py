"""The back end for NVIDIA GPUs: CuPy arrays, CUDA kernels of our own, Cholesky factors from cuSOLVER.

The same names as in ``_cpu/dense.py``, where they are described. Arrays that describe the chains live on the device.
"""

from contextlib import contextmanager, suppress
from copy import copy

import cupy as cp
import numpy as np

from ..lines import move as move_along_lines  # noqa: F401 - part of what a back end offers
from .async_copy import Outbox, Watch  # noqa: F401
from .collapsed import collapsed_rows as CollapsedRows  # noqa: F401 - as are these
from .csr import Csr
from .cuda_graph import recorded  # noqa: F401
from .dense_passes import gram, hold, latent, line, moments, score  # noqa: F401
from .gaussian import Precision, Root, Whitening, metropolis, times_symmetric  # noqa: F401
from .host_streaming import brought
from .lapack import VERDICT
from .line_moves import NEAR_ROWS, first_inside, proposals  # noqa: F401
from .memory import explained, is_of_memory, place  # noqa: F401
from .predict import average_phi, each_block, ndtr, quantiles  # noqa: F401
from .sweep_counter import ATTEMPTS, CLOCK
from .validation import checked, put_beside  # noqa: F401
from .variates import exponential, gamma, global_scale, local_scales, normal, uniform  # noqa: F401

empty_like, where, concatenate = cp.empty_like, cp.where, cp.concatenate
exp, growth, minimum = cp.exp, cp.expm1, cp.minimum
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
