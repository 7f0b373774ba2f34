"""The back end for NVIDIA GPUs: CuPy arrays, CUDA kernels of our own, Cholesky factors from cuSOLVER.

It has the names of ``_cpu/dense.py``; ``contract.py`` says where they are documented. Arrays that describe the chains
are on the device.
"""

from contextlib import contextmanager, suppress
from copy import copy

import cupy as cp
import numpy as np

from ..line_moves import move as move_along_lines  # noqa: F401 - part of what a back end offers
from .async_copy import Outbox, Watch  # noqa: F401
from .cuda import TYPES
from .dense_passes import gram, hold, latent, line, moments, score  # noqa: F401
from .gaussian import Precision, Root  # noqa: F401
from .host_streaming import gpu_array
from .lapack import VERDICT
from .launch import blocks_for, i32, kernel, launch, random_arguments
from .line_proposals import first_inside, proposals  # noqa: F401
from .mass_matrix import MassMatrix  # noqa: F401
from .memory import explained, is_of_memory, place  # noqa: F401
from .predict import PREDICTORS_AT_ONCE, average_probabilities, each_block, next_hermite, quantiles, special  # noqa: F401
from .variates import draw_lambda_given_beta, draw_tau_given_beta, exponential, gamma, normal, uniform  # noqa: F401

empty_like, where, concatenate, exp, minimum = cp.empty_like, cp.where, cp.concatenate, cp.exp, cp.minimum
MOST_FUSED_ROWS = 0  # every line move is a pass
SEGMENTED = False  # a launch takes longer than many a segment

_NUMBERS_AT_A_TIME = 2**24  # number of elements that are checked at a time


@contextmanager
def using(name):
    """A context in which everything is computed on this GPU, such as "cuda:0"."""
    with _card(name):
        outer, VERDICT.minors = VERDICT.minors, None  # of a fit, if this is a prediction within it
        try:
            yield
        except BaseException as error:
            with suppress(RuntimeError):  # the GPU may have failed
                cp.cuda.runtime.deviceSynchronize()  # other streams still use memory
            if is_of_memory(error):
                raise explained(error) from error
            raise
        finally:
            VERDICT.minors = outer


def give_back(name):
    """Free unused memory that CuPy keeps: of this GPU, and pinned memory of the host."""
    with _card(name):
        cp.get_default_memory_pool().free_all_blocks()
        cp.get_default_pinned_memory_pool().free_all_blocks()


def _card(name):
    return cp.cuda.Device(int(name.partition(":")[2]))


def to_device(values):
    """Arrays of the host, also in tuples, dicts and objects, as arrays of the device."""
    return _moved(lambda value: gpu_array(value) if isinstance(value, np.ndarray) else value, values)


def to_host(values):
    """Arrays of the device as arrays of the host; a LinAlgError if a matrix could not be factorised."""
    moved = _moved(lambda value: cp.asnumpy(value) if isinstance(value, cp.ndarray) else value, values)
    VERDICT.raise_if_bad()
    return moved


def _moved(move, values):
    """Copy a tuple, a dict or an object with move applied to its contents."""
    if isinstance(values, tuple):
        moved = [_moved(move, value) for value in values]
        return type(values)(*moved) if hasattr(values, "_fields") else tuple(moved)
    if isinstance(values, dict):
        return {name: _moved(move, value) for name, value in values.items()}
    if type(values).__module__.startswith(__package__.partition(".")[0]) and not isinstance(values, np.ndarray):
        out = copy(values)
        vars(out).update(_moved(move, vars(values)))
        return out
    return move(values)


def times_symmetric(v, M, threads=None):
    """As ``cpu.times_symmetric``."""
    return v @ M


def metropolis(change, new, old, key, sweep):
    """As ``cpu.metropolis``."""
    accept, acceptance = cp.empty(len(change), bool), cp.empty(len(change))
    arguments = cp.ascontiguousarray(change), i32(len(change)), random_arguments(key, sweep), accept, acceptance
    launch(kernel("chains", "accept_proposals"), blocks_for(len(change)), arguments)
    pairs = zip(new, old, strict=True)
    return *(cp.where(accept[:, None] if a.ndim > 1 else accept, a, b) for a, b in pairs), acceptance


def checked(X):
    """X (n, p), C-contiguous, of a type that the kernels read, on its own GPU; copied only if necessary.

    ``sklearn.utils.check_array`` does this for arrays of the host, but would bring X there.
    """
    _check_convertible(X)
    with X.device:
        X = cp.ascontiguousarray(X if X.dtype.name in TYPES else X.astype(cp.float64))
        if X.dtype.kind == "f" and not _is_finite(X):
            raise ValueError(
                "Input X contains NaN or infinity. Impute or drop such rows first: HorseshoeProbitClassifier does not "
                "accept missing values."
            )
    return X


def _check_convertible(X):
    """Raise a ValueError if no conversion can help."""
    if not isinstance(X, cp.ndarray):
        raise ValueError(
            "X is a sparse CuPy matrix, but a GPU takes dense rows only. Give X.get(), which the CPU fits as it is; or "
            "X.toarray(), if the dense rows have room on the GPU."
        )
    if X.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {X.ndim}D array instead. Reshape X with X.reshape(-1, 1) if it has a single "
            "feature or X.reshape(1, -1) if it is a single sample."
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"X has the dtype {X.dtype}; real numbers are needed, of which float32 is the fastest.")
    for size, kind in zip(X.shape, ("sample", "feature"), strict=True):
        if size == 0:
            raise ValueError(f"Found array with 0 {kind}(s) (shape={X.shape}) while a minimum of 1 is required.")


def _is_finite(X):
    """Checked in blocks: flags of all elements at once would take a quarter of the memory of X."""
    flat = X.reshape(-1)
    blocks = (flat[start : start + _NUMBERS_AT_A_TIME] for start in range(0, flat.size, _NUMBERS_AT_A_TIME))
    return all(bool(cp.isfinite(block).all()) for block in blocks)


def put_on_device_of(X, values):
    """An array of the host as one of the GPU that X is on."""
    with X.device:
        return cp.asarray(values)
