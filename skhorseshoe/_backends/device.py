"""From the ``device`` parameter to a back end."""

import importlib.util
import os
import shutil
import sys
from contextlib import nullcontext
from functools import cache
from typing import NamedTuple

from scipy.sparse import issparse

from .contract import BackEnd

_MODULES = {"cpu": "_cpu.dense", "sparse": "_cpu.sparse", "gpu": "_gpu.dense"}
NAMES = ("auto", "cpu", "cuda", *(f"cuda:{i}" for i in range(16)))

# Elements of X from which "auto" takes a GPU. Below, a pass takes the CPU less time than a GPU needs to be told what to
# do: an estimate, 0.2 to 0.5 ms of launches a sweep, not a measurement.
_WORTH_A_GPU = 2**22


class Device(NamedTuple):
    """Where to compute."""

    ops: BackEnd  # a module
    name: str  # "cpu" or "cuda:0"
    reason: str  # why there


@cache
def gpu_status(index=0):
    """Whether the GPU with this number can be used, and its name or the reason why not; looked up once a process."""
    return importlib.import_module("._gpu.probe", __package__).probe(index)


if hasattr(os, "register_at_fork"):  # CUDA does not come along: there the GPU is looked up again, and not found
    os.register_at_fork(after_in_child=gpu_status.cache_clear)


def resolve(device, size=0, sparse=False):
    """The back end for ``device``, one of ``NAMES``, and an X with this number of elements, ``sparse`` or not.

    Raises
    ------
    RuntimeError
        If a GPU is asked for by name and cannot be used: there is never a silent fallback to another device.
    ValueError
        If a GPU is asked for by name, and X is sparse.
    """
    if device == "cpu":
        return Device(_back_end("sparse" if sparse else "cpu"), "cpu", "asked for")
    if device == "auto" and sparse:
        return Device(_back_end("sparse"), "cpu", "X is sparse")
    if sparse:
        raise ValueError(
            f"X is sparse and device={device!r} is asked for, but a GPU takes dense rows only. Use device='cpu' or "
            "device='auto'; or give X.toarray(), if the dense rows have room in memory."
        )
    if device == "auto" and not _may_have_gpu():  # nobody here has thought of one
        return Device(_back_end("cpu"), "cpu", "")
    if device == "auto" and size < _WORTH_A_GPU:
        return Device(_back_end("cpu"), "cpu", f"X has {size} elements, a GPU is worth it from about {_WORTH_A_GPU}")
    index = int(device.partition(":")[2] or 0)
    works, why = gpu_status(index)
    if works:
        return Device(_back_end("gpu"), f"cuda:{index}", why)
    if device == "auto":
        return Device(_back_end("cpu"), "cpu", f"no GPU: {why}")
    raise RuntimeError(f"device={device!r} cannot be used: {why} Use device='cpu' or device='auto'.")


def with_room(device, X, n_chains, sampler):
    """This ``Device``; or, if the fit cannot have its memory there, the CPU."""
    try:
        with device.ops.using(device.name):
            device.ops.place(X, n_chains, sampler)
    except MemoryError as error:
        return Device(_back_end("cpu"), "cpu", f"no room on the GPU: {error}")
    return device


def on_gpu(values):
    """Whether this is CuPy's: an array, or sparse, which ``checked`` refuses. Where CuPy has not been imported there is
    none."""
    array = getattr(sys.modules.get("cupy"), "ndarray", ())
    return isinstance(values, array) or f"{type(values).__module__}.".startswith("cupyx.scipy.sparse.")


def beside(device, X):
    """``device``; for an X on a GPU that GPU, which must not be at odds with ``device``."""
    if not on_gpu(X):
        return device
    where = f"cuda:{X.device.id}"
    if device not in ("auto", where) and (device, where) != ("cuda", "cuda:0"):
        raise ValueError(
            f"X is a CuPy array on {where!r} and device={device!r} is asked for. Use device={where!r} or 'auto', or "
            "give X as an array of the host: X.get()."
        )
    return where


def for_answers(device, fitted_on, X):
    """Where a model with this ``device``, fitted on ``fitted_on``, answers: on the GPU that X is on, or on that of the
    fit if it works here, X is dense and "cpu" is not asked for; else on the CPU."""
    if on_gpu(X):
        return resolve(beside(device, X))
    index, sparse = fitted_on.partition(":")[2], issparse(X)
    usable = index and device != "cpu" and not sparse and gpu_status(int(index))[0]
    return resolve(fitted_on if usable else "cpu", sparse=sparse)


def of(X):
    """A context in which the GPU that X is on is the current one, if X is on one."""
    return X.device if on_gpu(X) else nullcontext()


def checked(X):
    """An X on a GPU as ``fit`` and ``predict`` want it, not copied if it is so already; or a ValueError."""
    return _back_end("gpu").checked(X)


def to_host(values):
    """An array of the host."""
    return _back_end("gpu").to_host(values) if on_gpu(values) else values


def put_beside(X, values):
    """An array of the host as one of the device that X is on; labels that CuPy cannot hold stay where they are."""
    return _back_end("gpu").put_beside(X, values) if on_gpu(X) and values.dtype.kind in "biuf" else values


def of_host():
    """The back end for arrays of the host."""
    return _back_end("cpu")


def give_back(name):
    """Return the memory that a fit on this device has left unused, so that other programs and fits can have it."""
    if name != "cpu":
        _back_end("gpu").give_back(name)


def _may_have_gpu():
    """Whether there is a driver of NVIDIA's, or CuPy, be it broken."""
    return shutil.which("nvidia-smi") is not None or "cupy" in sys.modules or _is_installed("cupy")


def _is_installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # of a package that is broken
        return True


def _back_end(name):
    # Compiles or loads kernels: not before the first fit.
    return importlib.import_module(f".{_MODULES[name]}", __package__)
