"""The back end for the parameter ``device``."""

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

# Least size of X, in elements, for which "auto" takes a GPU. A pass over less takes the CPU less time than a GPU needs
# for launches, 0.2 to 0.5 ms a sweep: an estimate, not a measurement.
_NUMBERS_WORTH_A_GPU = 2**22


class Device(NamedTuple):
    """The device on which to compute."""

    ops: BackEnd  # a module
    name: str  # "cpu" or "cuda:0"
    reason: str  # why this one


@cache
def gpu_status(index=0):
    """Whether the GPU with this number can be used, and its name or the reason why not; found once a process."""
    return importlib.import_module("._gpu.probe", __package__).probe(index)


if hasattr(os, "register_at_fork"):  # a child cannot use CUDA: there the GPU is looked up again, and not found
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
    if device == "auto" and not _may_have_gpu():  # no reason to give
        return Device(_back_end("cpu"), "cpu", "")
    if device == "auto" and size < _NUMBERS_WORTH_A_GPU:
        why = f"X has {size} elements, a GPU is worth it from about {_NUMBERS_WORTH_A_GPU}"
        return Device(_back_end("cpu"), "cpu", why)
    index = int(device.partition(":")[2] or 0)
    works, why = gpu_status(index)
    if works:
        return Device(_back_end("gpu"), f"cuda:{index}", why)
    if device == "auto":
        return Device(_back_end("cpu"), "cpu", f"no GPU: {why}")
    raise RuntimeError(f"device={device!r} cannot be used: {why} Use device='cpu' or device='auto'.")


def with_room(device, X, n_chains, kind):
    """This ``Device``, or the CPU if the fit does not fit into its memory."""
    try:
        with device.ops.using(device.name):
            device.ops.place(X, n_chains, kind)
    except MemoryError as error:
        return Device(_back_end("cpu"), "cpu", f"no room on the GPU: {error}")
    return device


def on_gpu(values):
    """Whether this is an array of CuPy, or sparse of CuPy, which ``checked`` refuses. False if CuPy is not imported."""
    array = getattr(sys.modules.get("cupy"), "ndarray", ())
    return isinstance(values, array) or f"{type(values).__module__}.".startswith("cupyx.scipy.sparse.")


def device_for(device, X):
    """``device``, or the GPU that X is on, which must not contradict ``device``."""
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
    """The device on which a model with this ``device``, fitted on ``fitted_on``, answers: the GPU that X is on, or that
    of the fit if it works here, X is dense and "cpu" is not asked for; else the CPU."""
    if on_gpu(X):
        return resolve(device_for(device, X))
    index, sparse = fitted_on.partition(":")[2], issparse(X)
    usable = index and device != "cpu" and not sparse and gpu_status(int(index))[0]
    return resolve(fitted_on if usable else "cpu", sparse=sparse)


def context_of(X):
    """A context in which the GPU that X is on, if it is on one, is the current one."""
    return X.device if on_gpu(X) else nullcontext()


def checked(X):
    """An X on a GPU as ``fit`` and ``predict`` need it, copied only if necessary; or a ValueError."""
    return _back_end("gpu").checked(X)


def to_host(values):
    """An array of the host."""
    return _back_end("gpu").to_host(values) if on_gpu(values) else values


def put_on_device_of(X, values):
    """An array of the host as one of the device that X is on; labels that CuPy cannot hold stay on the host."""
    return _back_end("gpu").put_on_device_of(X, values) if on_gpu(X) and values.dtype.kind in "biuf" else values


def host_back_end():
    """The back end for arrays of the host."""
    return _back_end("cpu")


def give_back(name):
    """Free the memory that a fit has reserved on this device, for other programs and fits."""
    if name != "cpu":
        _back_end("gpu").give_back(name)


def _may_have_gpu():
    """Whether a driver of NVIDIA or CuPy is installed, even if it is broken."""
    return shutil.which("nvidia-smi") is not None or "cupy" in sys.modules or _is_installed("cupy")


def _is_installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # the package is broken
        return True


def _back_end(name):
    # The import compiles or loads kernels, so it must not happen before the first fit.
    return importlib.import_module(f".{_MODULES[name]}", __package__)
