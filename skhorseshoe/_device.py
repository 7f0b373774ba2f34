"""From the ``device`` parameter to a back end."""

import importlib
from functools import cache
from typing import NamedTuple

NAMES = ("auto", "cpu", "cuda", *(f"cuda:{i}" for i in range(16)))

# Elements of X from which "auto" takes a GPU. Below, a pass takes the CPU less time than a GPU needs to be told what to
# do: an estimate, 0.2 to 0.5 ms of launches a sweep, not a measurement.
_WORTH_A_GPU = 2**22


class Device(NamedTuple):
    """Where to compute."""

    ops: object  # the back end's module
    name: str  # "cpu" or "cuda:0"
    reason: str  # why there


@cache
def gpu_status(index=0):
    """Whether the GPU with this number can be used, and its name or the reason why not; looked up once a process."""
    return importlib.import_module("._ops._gpu_probe", __package__).probe(index)


def resolve(device, size=0, sparse=False):
    """The back end for ``device``, one of ``NAMES``, and an X with this number of elements, ``sparse`` or not.

    Raises
    ------
    RuntimeError
        If a GPU is asked for by name and cannot be used: there is never a silent fallback to another device.
    ValueError
        If a GPU is asked for by name and X is sparse.
    """
    if sparse:
        if device not in ("auto", "cpu"):
            raise ValueError(
                f"device={device!r} cannot be used for a sparse X, which is computed on the CPU: use device='cpu' or "
                "'auto', or, if it has room, the dense X.toarray()."
            )
        return Device(_back_end("sparse"), "cpu", "asked for" if device == "cpu" else "X is sparse")
    if device == "cpu":
        return Device(_back_end("cpu"), "cpu", "asked for")
    if device == "auto" and size < _WORTH_A_GPU:
        return Device(_back_end("cpu"), "cpu", f"X has {size} elements, a GPU is worth it from about {_WORTH_A_GPU}")
    index = int(device.partition(":")[2] or 0)
    works, why = gpu_status(index)
    if works:
        return Device(_back_end("gpu"), f"cuda:{index}", why)
    if device == "auto":
        return Device(_back_end("cpu"), "cpu", f"no GPU: {why}")
    raise RuntimeError(f"device={device!r} cannot be used: {why} Use device='cpu' or device='auto'.")


def give_back(name):
    """Return the memory that a fit on this device has left unused, so that other programs and fits can have it."""
    _back_end("cpu" if name == "cpu" else "gpu").give_back(name)


def _back_end(name):
    # Compiles or loads kernels: not before the first fit.
    return importlib.import_module(f"._ops.{name}", __package__)
